"""`diw reproduce`: the paper's tables and figures, ours beside theirs."""

import os
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import (
    COUNT,
    device_option,
    read_device,
    records_option,
    say,
    timeout_option,
    writable_folder,
)
from diw.errors import RunError, UsageError
from diw.runs import EXPERIMENT, RUNS, RunSpec

if TYPE_CHECKING:
    from diw.experiments.reproduce import Filter, Order

EXAMPLES = """
\b
Examples:
  diw reproduce --list                              which results there are
  diw reproduce all --scale smoke                   every table and figure, in minutes
  diw reproduce label-noise --scale cpu --dry-run   what would run, and for how long
  diw reproduce label-noise --scale cpu --jobs 2    the first table on a small machine
  diw reproduce label-noise --scale cpu --finished  its table so far, while it runs elsewhere
  diw reproduce ablation --scale paper --only method=diw,noise=0.4s --trials 1
  diw reproduce all --scale paper --engine dask --scheduler tcp://10.0.0.1:8786
"""


@click.command(epilog=EXAMPLES, short_help="Reproduce the tables and figures of the paper.")
@click.argument("names", nargs=-1, metavar="NAME…|all")
@click.option(
    "--scale",
    type=click.Choice(["smoke", "cpu", "paper"]),
    default="smoke",
    show_default=True,
    help="smoke: minutes; its numbers mean nothing. cpu: a night on two cores. "
    "paper: the paper's protocol.",
)
@click.option("--trials", type=COUNT, help="Number of seeds.  [default: that of the scale]")
@click.option(
    "--jobs",
    type=COUNT,
    default=os.cpu_count() or 1,
    help="Runs at the same time.  [default: one per core]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="AXIS=VALUE,…",
    help="Run only these: method, noise, data, seed. An axis given twice admits both values.",
)
@records_option
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default="results",
    show_default=True,
    help="Folder of kept results. A run that it holds is not trained again, unless weights are "
    "needed.",
)
@click.option("--dry-run", is_flag=True, help="Print what would run and how long it would take.")
@click.option("--finished", is_flag=True, help="Train nothing: report the runs that are finished.")
@click.option("--list", "list_", is_flag=True, help="List the available results.")
@click.option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    default="local",
    show_default=True,
    help="This machine, or a dask cluster.",
)
@device_option("cpu")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Scheduler of the dask cluster, tcp://HOST:PORT."
)
@timeout_option
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
    from diw.experiments.catalogue import find_experiments
    from diw.experiments.kept import forget_restored, kept_records, restore
    from diw.experiments.reproduce import check_filter, order, provenance, read_filter

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
    made = provenance(sys.argv[1:])
    for one in orders:
        one.write(folder, made)
    if finished:
        specs = [spec for spec in specs if spec.run(folder / RUNS).finished]
    how = {"jobs": jobs, "scheduler": scheduler, "timeout": timeout}
    failures = _run(specs, _labels(orders, folder / RUNS), folder / RUNS, **how)
    _report(orders, folder)
    if failures:
        first = next(iter(failures.values()))
        raise RunError(f"{len(failures)} of {len(specs)} runs failed; the first: {first}")


def _list() -> None:
    from diw.experiments.catalogue import SCALES, catalogue
    from diw.experiments.plan import plan

    for experiment in catalogue().values():
        sizes = ", ".join(f"{scale} {len(plan(experiment, scale))}" for scale in SCALES)
        click.echo(f"{experiment.name:18}{experiment.title} ({experiment.source}); cells: {sizes}")
        click.echo(f"{'':18}{experiment.about}")


def _tell(
    orders: "Sequence[Order]", chosen: "Filter", runs: Path, jobs: int, kept: Container[str]
) -> None:
    """What would run: by experiment, runs that several share counted with the first."""
    from diw.cli.progress import clock
    from diw.experiments.estimate import Stopwatch
    from diw.experiments.reproduce import unique_runs

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


def _labels(orders: "Sequence[Order]", runs: Path) -> dict[str, str]:
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


def _run(
    specs: Sequence[RunSpec], labels: dict[str, str], runs: Path, **engine: Any
) -> dict[str, str]:
    from diw.cli.progress import Tracked, progress
    from diw.experiments.grid import try_all
    from diw.experiments.reproduce import unique_runs

    unique = unique_runs(specs, runs)
    done = sum(spec.run(runs).finished for spec in unique.values())
    click.echo(f"{len(unique)} runs, {done} of them finished before", err=True)
    tracked = [
        Tracked(spec.run(runs), labels[name], spec.recipe.epochs)
        for name, spec in unique.items()
        if not spec.run(runs).finished
    ]
    with progress(tracked):
        return try_all(specs, runs, **engine)


def _report(orders: "Sequence[Order]", folder: Path) -> None:
    """Tables, figures and verdicts of these experiments; the page holds earlier ones too."""
    from diw.experiments.catalogue import catalogue
    from diw.pages import show
    from diw.reports.paper.page import write_page
    from diw.reports.paper.results import read_sheet
    from diw.reports.paper.tables import matrix_table, metrics_of
    from diw.reports.paper.write import Section, read_section, write_sheet
    from diw.reports.summary import Summary

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
