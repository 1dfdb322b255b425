"""`diw compare`: train several methods on the same shifted data and set them side by side."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diw.cli.options import (
    COUNT,
    FOLDER,
    json_option,
    read_device,
    read_fields,
    writable_file,
    writable_folder,
)
from diw.recipe import Recipe

if TYPE_CHECKING:
    from diw.experiments.spec import RunSpec
    from diw.records import Run

DEFAULT = Recipe()

EXAMPLES = """
\b
Examples:
  diw compare
  diw compare --shift pair:0.3 --methods uniform,reweight,diw --seeds 3
  diw compare --methods all --epochs 20 --jobs 4
  diw compare --set diw.bound=10 --set diw.momentum=0.8
"""


@click.command(epilog=EXAMPLES)
@click.option("--data", default="embedded", show_default=True, help="A data set: see `diw data`.")
@click.option(
    "--shift",
    default="symmetric:0.4",
    show_default=True,
    help="What is done to the training data: symmetric:RATE, pair:RATE, none, …",
)
@click.option(
    "--methods",
    default="uniform,diw",
    show_default=True,
    help="Names separated by commas, or all: see `diw methods`.",
)
@click.option("--seeds", type=COUNT, default=2, show_default=True, help="How many trials.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first.")
@click.option("--epochs", type=COUNT, default=DEFAULT.epochs, show_default=True)
@click.option("--batch-size", type=COUNT, default=DEFAULT.batch_size, show_default=True)
@click.option(
    "--lr",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT.lr,
    show_default=True,
    help="Learning rate of the summed losses.",
)
@click.option(
    "--trusted",
    default="500",
    show_default=True,
    metavar="N",
    help="How many trusted samples, or N/class.",
)
@click.option("--model", default="auto", show_default=True, help="lenet5, resnet32, mlp, …")
@click.option("--jobs", type=COUNT, default=2, show_default=True, help="Runs at once.")
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="auto",
    show_default=True,
)
@click.option("--out", type=FOLDER, default=Path("runs"), show_default=True, help="For records.")
@click.option("--fresh", is_flag=True, help="Forget earlier runs of this comparison.")
@click.option("--set", "settings", multiple=True, metavar="METHOD.FIELD=VALUE")
@json_option
def compare(
    data: str,
    shift: str,
    methods: str,
    seeds: int,
    seed: int,
    epochs: int,
    batch_size: int,
    lr: float,
    trusted: str,
    model: str,
    jobs: int,
    device: str,
    out: Path,
    fresh: bool,
    settings: tuple[str, ...],
    json_file: Path | None,
) -> None:
    """Train methods on the same shifted data and compare them.

    Without options: LeNet-5 on 10,000 Fashion-MNIST images of which 40% have a
    wrong label, trained once as they are and once with dynamic importance
    weighting, for two seeds. Finished runs are found again; interrupted ones
    go on where they stopped.
    """
    from diw.experiments.execute import load_split
    from diw.experiments.spec import RunSpec

    base = RunSpec(
        data=data,
        shift=shift,
        trusted=trusted if "/" in trusted or not trusted.isdecimal() else int(trusted),
        model=model,
        recipe=replace(DEFAULT, epochs=epochs, batch_size=batch_size, lr=lr),
    )
    specs = _plan(base, methods, range(seed, seed + seeds), settings)
    writable_file(json_file, "json")
    base = replace(base, device=read_device(device))
    specs = [replace(spec, device=base.device) for spec in specs]
    folder = writable_folder(out, "out") / "compare"
    if fresh:
        for spec in specs:
            shutil.rmtree(spec.run(folder).folder, ignore_errors=True)
    if not all(spec.run(folder).finished for spec in specs):
        load_split(specs[0])  # wrong data, shifts and trusted sets fail here, before any work
    _run(specs, folder, jobs)
    _report(base, [spec.run(folder) for spec in specs], folder, json_file)


def _plan(
    base: "RunSpec", methods: str, seeds: Sequence[int], settings: tuple[str, ...]
) -> "list[RunSpec]":
    """Every method with every seed; unknown names and fields fail here."""
    from diw.errors import UsageError
    from diw.weighting import find
    from diw.weighting import methods as all_methods

    names = list(all_methods()) if methods == "all" else [m.strip() for m in methods.split(",")]
    names = list(dict.fromkeys(find(name).name for name in names))
    fields = read_fields(settings)
    for method in fields.keys() - set(names):
        raise UsageError(f"set: {method} is not among --methods {methods}")
    return [
        replace(base.with_method(name, fields.get(name)), seed=seed)
        for seed in seeds
        for name in names
    ]


def _run(specs: "Sequence[RunSpec]", folder: Path, jobs: int) -> None:
    from diw.cli.progress import Tracked, progress
    from diw.experiments.grid import run_all

    tracked = [
        Tracked(spec.run(folder), f"{spec.method} seed {spec.seed}", spec.recipe.epochs)
        for spec in specs
        if not spec.run(folder).finished
    ]
    with progress(tracked):
        run_all(specs, folder, jobs=jobs)


def _report(base: "RunSpec", runs: "list[Run]", folder: Path, json_file: Path | None) -> None:
    from diw.records import write_json
    from diw.reports import compare_runs, compare_table, results_json, show, summarise
    from diw.reports.page import write_report

    for comparison in compare_runs(runs):
        show(compare_table(comparison))
    write_report(runs, folder / "report.html")
    click.echo(f"\nReport:  {folder / 'report.html'}\nRecords: {folder}")
    if json_file is not None:
        shared = {k: v for k, v in base.as_json().items() if not k.startswith("method")}
        write_json(json_file, results_json(shared, [summarise(run) for run in runs]))
