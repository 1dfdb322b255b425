"""`python -m reproduction`: the paper's tables and figures, ours beside theirs."""

import os
import sys
from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from diw.cli import Tracked, clock, read_device, run, say, show_progress, writable_folder
from diw.errors import RunError, UsageError
from diw.pages import show
from diw.reports import Summary
from diw.runs import RunSpec
from diw.training import Stopwatch, try_all
from reproduction import observers
from reproduction.catalogue import EXPERIMENT, RUNS, SCALES, catalogue, find_experiments
from reproduction.kept import forget_restored, kept_records, restore
from reproduction.order import (
    Filter,
    Order,
    check_filter,
    order,
    provenance,
    read_filter,
    unique_runs,
)
from reproduction.page import Section, read_section, write_page, write_sheet
from reproduction.plan import plan
from reproduction.results import read_sheet
from reproduction.tables import matrix_table, metrics_of

PROGRAM = "python -m reproduction"

EXAMPLES = """
\b
Examples, from the root of the repository:
  python -m reproduction --list                              which results there are
  python -m reproduction all --scale smoke                   all tables and figures, in minutes
  python -m reproduction label-noise --scale cpu --dry-run   what would run, and for how long
  python -m reproduction label-noise --scale cpu --jobs 2    the first table on a small machine
  python -m reproduction label-noise --scale cpu --finished  as far as it is, while it runs
  python -m reproduction ablation --scale paper --only method=diw,noise=0.4s --trials 1
  python -m reproduction all --scale paper --engine dask --scheduler tcp://10.0.0.1:8786
"""

COUNT = click.IntRange(min=1)
FOLDER = click.Path(path_type=Path, file_okay=False)
option = partial(click.option, show_default=True)


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="NAME…|all")
@option(
    "--scale",
    type=click.Choice(SCALES),
    default="smoke",
    help="smoke: minutes; its numbers mean nothing. cpu: a night on two cores. "
    "paper: the paper's protocol.",
)
@option("--trials", type=COUNT, show_default="that of the scale", help="Number of seeds.")
@option(
    "--jobs",
    type=COUNT,
    default=os.cpu_count() or 1,
    show_default="one per core",
    help="Runs at the same time.",
)
@option(
    "--only",
    multiple=True,
    metavar="AXIS=VALUE,…",
    help="Run only these: method, noise, data, seed. An axis given twice admits both values.",
)
@option("--out", type=FOLDER, default=Path("runs"), help="Folder for run records.")
@option(
    "--results",
    type=FOLDER,
    default=Path("results"),
    help="Folder of kept results. A run that it holds is not trained again, unless weights are "
    "needed.",
)
@option("--dry-run", is_flag=True, help="Print what would run and how long it would take.")
@option("--finished", is_flag=True, help="Train nothing: report the runs that are finished.")
@option("--list", "list_", is_flag=True, help="List the available results.")
@option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    default="local",
    help="This machine, or a dask cluster.",
)
@option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="cpu",
    help="Where the network runs; auto takes the fastest there is.",
)
@option("--scheduler", metavar="ADDRESS", help="Scheduler of the dask cluster, tcp://HOST:PORT.")
@option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    show_default="wait",
    help="Give up after waiting so long for another process.",
)
def reproduce(
    names: tuple[str, ...],
    scale: Any,
    trials: int | None,
    jobs: int,
    only: tuple[str, ...],
    out: Path,
    results: Path,
    dry_run: bool,
    finished: bool,
    list_: bool,
    engine: str,
    device: str,
    scheduler: str | None,
    timeout: float | None,
) -> None:
    """Reproduce the tables and figures of Fang et al. 2020, ours beside theirs.

    NAME is a result (see --list), or all. Runs are shared between results,
    found again when they are finished and resumed when they were interrupted.
    Finished runs are also taken from kept results (--results).
    Cells whose data are missing are marked and do not stop the rest.
    """
    if list_:
        _list()
        return
    if not names:
        raise UsageError("name: say which result, or all; --list shows them")
    if (engine == "dask") != (scheduler is not None):
        raise UsageError("scheduler: --engine dask and --scheduler ADDRESS go together")
    orders = order(find_experiments(names), scale, trials, read_device(device))
    chosen = read_filter(only)
    check_filter(chosen, orders)
    folder = out / "reproduce" / scale
    records = kept_records(results)
    if dry_run:
        _tell(orders, chosen, folder / RUNS, jobs, records)
        return
    writable_folder(folder, "out")
    specs = [spec for one in orders for spec in one.specs(chosen)]
    trained = [spec for one in orders if one.needs_arrays for spec in one.specs(chosen)]
    forget_restored(trained, folder / RUNS)
    restored = restore([s for s in specs if s not in trained], folder / RUNS, records)
    if restored:
        click.echo(f"{restored} runs taken from {results}", err=True)
    made = provenance([*PROGRAM.split(), *sys.argv[1:]])
    for one in orders:
        one.write(folder, made)
    if finished:
        specs = [spec for spec in specs if spec.run(folder / RUNS).finished]
    how = {"jobs": jobs, "scheduler": scheduler, "timeout": timeout}
    failures = _train(specs, _labels(orders, folder / RUNS), folder / RUNS, **how)
    _report(orders, folder)
    if failures:
        first = next(iter(failures.values()))
        raise RunError(f"{len(failures)} of {len(specs)} runs failed; the first: {first}")


def _list() -> None:
    for experiment in catalogue().values():
        sizes = ", ".join(f"{scale} {len(plan(experiment, scale))}" for scale in SCALES)
        click.echo(f"{experiment.name:18}{experiment.title} ({experiment.source}); cells: {sizes}")
        click.echo(f"{'':18}{experiment.about}")


def _tell(
    orders: Sequence[Order], chosen: Filter, runs: Path, jobs: int, kept: Container[str]
) -> None:
    """What would run: by experiment, runs that several share counted with the first."""
    watch = Stopwatch()
    counted: set[str] = set()
    total, pending_total = 0.0, 0
    for one in orders:
        wanted = unique_runs(one.specs(chosen), runs)
        own = {name: spec for name, spec in wanted.items() if name not in counted}
        pending = [
            spec
            for name, spec in own.items()
            if (one.needs_arrays and spec.run(runs).restored)
            or not (spec.run(runs).finished or (name in kept and not one.needs_arrays))
        ]
        counted |= own.keys()
        seconds = watch.seconds(pending)
        total, pending_total = total + seconds, pending_total + len(pending)
        click.echo(
            f"{one.experiment.name:16}{len(wanted):4} runs, {len(wanted) - len(own)} shared with "
            f"the above, {len(own) - len(pending)} finished, {len(pending)} to do, "
            f"{clock(seconds)} on one core"
        )
        for reason in sorted({cell.reason for cell in one.cells if cell.state != "planned"}):
            click.echo(f"{'':16}{reason}")
    at_once = max(1, min(jobs, pending_total))
    click.echo(
        f"{'all':16}{pending_total:4} runs to do, about {clock(total / at_once)} with {at_once} at "
        "once (measured steps; without the single match of static methods)"
    )


def _labels(orders: Sequence[Order], runs: Path) -> dict[str, str]:
    """What each run is called in its first table, by the name of its folder."""
    return {
        spec.run(runs).folder.name: " ".join(
            part
            for part in (cell.data, cell.shift, cell.variant, cell.entry.label, f"seed {spec.seed}")
            if part
        )
        for one in reversed(orders)
        for cell in reversed(one.cells)
        for spec in cell.specs
    }


def _train(
    specs: Sequence[RunSpec], labels: dict[str, str], runs: Path, **engine: Any
) -> dict[str, str]:
    unique = unique_runs(specs, runs)
    done = sum(spec.run(runs).finished for spec in unique.values())
    click.echo(f"{len(unique)} runs, {done} of them finished before", err=True)
    tracked = [
        Tracked(spec.run(runs), labels[name], spec.recipe.epochs)
        for name, spec in unique.items()
        if not spec.run(runs).finished
    ]
    with show_progress(tracked):
        return try_all(specs, runs, setup=observers.enter, **engine)


def _report(orders: Sequence[Order], folder: Path) -> None:
    """Tables, figures and verdicts of these experiments; the page holds earlier ones too."""
    known: dict[Path, Summary] = {}
    named = {one.experiment.name for one in orders}
    sections: list[Section] = []
    for name in catalogue():
        if not (folder / name / EXPERIMENT).is_file():
            continue
        sheet = read_sheet(folder / name, known)
        section = write_sheet(sheet) if name in named else read_section(sheet)
        if section is None:
            continue
        sections.append(section)
        if name in named:
            click.echo(f"\n{sheet.facts['title']}\n")
            if metrics_of(sheet):
                show(matrix_table(sheet))
                click.echo()
            for verdict in section.verdicts:
                click.echo(f"- {verdict.line}")
            say(section.notes)
            click.echo(f"\nFiles:   {sheet.folder}")
    write_page(sections, folder / "report.html")
    click.echo(f"Report:  {folder / 'report.html'}")


if __name__ == "__main__":
    run(reproduce, PROGRAM)
