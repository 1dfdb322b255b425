"""`diw train`: one method on one data set, into one run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import FOLDER, json_option, read_fields, writable_folder, write_results
from diw.cli.setting import read_setting, setting_options
from diw.errors import UsageError
from diw.records import Run, RunSpec, spec_hash

if TYPE_CHECKING:
    from diw.data.split import Split

EXAMPLES = """
\b
Examples:
  diw train                                          DIW on the embedded data
  diw train --data train.csv --label status --trusted trusted.csv --out model
  diw train --data photos --trusted checked --test test --out model
  diw train --data train.npz --trusted checked-rows.txt --method uniform
  diw train --set bound=10 --epochs 20
"""

DEFAULT_FOLDER = Path("runs/train")
MANY = 10
"""Classes whose sizes are listed one by one; of more only the smallest and largest."""


@click.command(epilog=EXAMPLES)
@click.option("--method", default="diw", show_default=True, help="See `diw methods`.")
@setting_options(shift="none")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set a field of the method; may be given more than once.",
)
@click.option("--out", type=FOLDER, help=f"Folder of the run.  [default: one in {DEFAULT_FOLDER}]")
@click.option("--fresh", is_flag=True, help="Replace the run in this folder.")
@json_option
def train(
    method: str,
    seed: int,
    settings: tuple[str, ...],
    out: Path | None,
    fresh: bool,
    json_file: Path | None,
    **setting: Any,
) -> None:
    """Train one method on one data set.

    The run's folder then holds the network (model.safetensors), how it reads
    files (encoding.json), what was asked (spec.json), the metrics of each epoch
    and each sample's weights. A finished run is only reported; an interrupted
    one goes on where it stopped.
    """
    from diw.experiments.sources import with_method
    from diw.weighting import find, make

    name = find(method).name
    fields = _fields(name, settings)
    make(name, fields)
    spec = with_method(read_setting(seed=seed, simulated="none", **setting), name, fields)
    run = _claim(spec, out, fresh=fresh)
    _train(spec, run)
    _report(run, json_file)


def _fields(method: str, settings: Sequence[str]) -> dict[str, str]:
    """`FIELD=VALUE`, or `METHOD.FIELD=VALUE` as for `diw compare`."""
    full = [text if "." in text.partition("=")[0] else f"{method}.{text}" for text in settings]
    fields = read_fields(full)
    for other in fields:
        if other != method:
            raise UsageError(f"set: {other} is not the method that is trained, {method}")
    return fields.get(method, {})


def _claim(spec: RunSpec, out: Path | None, *, fresh: bool) -> Run:
    """The run's folder, or a refusal where it holds anything else."""
    from diw.experiments.execute import LOCK

    run = spec.run(DEFAULT_FOLDER) if out is None else Run(out)
    holds_run = (run.folder / "spec.json").exists()
    if holds_run and fresh:
        run.forget()
    elif holds_run and spec_hash(run.spec.as_json()) != spec_hash(spec.as_json()):
        differences = _differences(run.spec.as_json(), spec.as_json())
        raise UsageError(
            f"out: {run.folder} holds another run ({differences}); "
            "choose another folder, or replace it with --fresh"
        )
    elif not holds_run and any(entry.name != LOCK for entry in run.folder.glob("*")):
        raise UsageError(f"out: {run.folder} holds other files; choose a new or empty folder")
    writable_folder(run.folder, "out")
    return Run(run.folder)


def _differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """`epochs 60, now 5; …`, the first few."""
    flat_before, flat_now = _flat(before), _flat(now)
    names = [n for n in {**flat_before, **flat_now} if flat_before.get(n) != flat_now.get(n)]
    if not names:
        return "of the same files before they changed"
    if "method" in names:
        names = ["method"]
    said = [f"{name} {flat_before.get(name)}, now {flat_now.get(name)}" for name in names[:3]]
    return "; ".join(said) + (" …" if len(names) > 3 else "")


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec's plain values as JSON keeps them, the method's fields beside the others."""
    plain = json.loads(json.dumps(spec))
    fields = plain.pop("method_fields", {})
    plain.pop("files", None)
    return {**plain, **fields}


def _train(spec: RunSpec, run: Run) -> None:
    from diw.cli.progress import Tracked, progress
    from diw.experiments.execute import execute_run
    from diw.experiments.sources import load_split

    if run.finished:
        click.echo(f"{run.folder}: already trained; --fresh trains it again", err=True)
        return
    split = load_split(spec)
    click.echo(_sizes(split), err=True)
    label = f"{spec.method} seed {spec.seed}"
    with progress([Tracked(run, label, spec.recipe.epochs, split.scored_on)]):
        execute_run(spec, run)


def _sizes(split: "Split") -> str:
    """How many rows, of which classes, are trained on, trusted and scored."""
    trusted = "also trained on" if len(split.trusted_places) else "not trained on"
    return (
        f"data: {len(split.train):,} training rows ({_classes(split.train)}); "
        f"{len(split.trusted):,} trusted, {trusted} ({_classes(split.trusted)}); "
        f"scored on {len(split.test):,} {split.scored_on} rows"
    )


def _classes(part: Any) -> str:
    counts: list[int] = part.class_counts.tolist()
    if len(counts) > MANY:
        return f"{len(counts)} classes of {min(counts):,} to {max(counts):,}"
    return ", ".join(f"{name} {n:,}" for name, n in zip(part.classes, counts, strict=True))


def _report(run: Run, json_file: Path | None) -> None:
    from diw.reports.summary import results_json, summarise

    summary = summarise(run)
    lines = [
        (f"{summary.scored_on} accuracy", f"{100 * summary.last_accuracy:.2f}%"),
        ("seconds", f"{summary.seconds:.0f}"),
        ("run", str(run.folder)),
    ]
    if summary.ess is not None:
        lines.insert(1, ("effective sample size", f"{100 * summary.ess:.1f}% of the training rows"))
    if not summary.balanced_classes and summary.last_balanced_accuracy is not None:
        balanced = f"{100 * summary.last_balanced_accuracy:.2f}%, the mean over classes"
        lines.insert(1, ("balanced accuracy", balanced))
    width = max(len(name) for name, _ in lines)
    click.echo("\n".join(f"{name:{width}}  {value}" for name, value in lines))
    click.echo(
        f"\nNext:\n  diw predict {run.folder} FILE --out predictions.csv"
        f"\n  diw evaluate {run.folder} FILE\n  diw report {run.folder}"
    )
    write_results(json_file, results_json(run.spec_json, [summary]))
