"""`diw report`: the table and the page again, from run records alone; or their checksums."""

from pathlib import Path

import click

from diw.cli.options import FILE, PATH, Results, Shown, say, takes
from diw.errors import RunError, UsageError

EXAMPLES = """
\b
Examples:
  diw report runs                             every finished run below a folder
  diw report runs/compare --out noise.html    to a file of your choice
  diw report runs --json results.json         the numbers for a program
  diw report runs model --check               whether all files are as written
"""


@click.command(epilog=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option("--out", type=FILE, help="The page.  [default: report.html in the first of RUNS]")
@click.option(
    "--check",
    is_flag=True,
    help="Only compare every file of finished runs with its size and checksum; the exit code is 1 "
    "if one is damaged or missing.",
)
@takes
def report(
    runs: tuple[Path, ...], out: Path | None, check: bool, shown: Shown, results: Results
) -> None:
    """Show the results of finished runs and write their report page.

    Each of RUNS is a run or a folder of runs. Nothing is trained; unfinished runs are
    left out. Other learners are those that `diw compare` has scored.
    """
    if check:
        for flag, value in (("out", out), ("json", results.json_file)):
            if value is not None:
                raise UsageError(f"{flag}: --check writes nothing; leave it out")
        check_runs(runs)
    else:
        _report(runs, out or runs[0] / "report.html", shown, results)


@click.command(hidden=True)
@click.argument("runs", nargs=-1, required=True, type=PATH)
def verify(runs: tuple[Path, ...]) -> None:
    """Do as `diw report --check` does."""
    say(["diw verify is deprecated and goes with diw 1.0: use diw report --check"])
    check_runs(runs)


def check_runs(runs: tuple[Path, ...]) -> None:
    """Read every file of the runs; other verbs compare only what they read."""
    from diw.runs import find_runs

    found = [run for path in runs for run in find_runs(path)]
    if not found:
        raise UsageError(f"runs: no run in {', '.join(map(str, runs))}")
    damaged = 0
    for run in found:
        try:
            if run.finished:
                count = run.verify()
                words = f"{count} files as written" if count else "readable; it has no checksums"
            else:
                words = f"unfinished, {len(run.metrics())} epochs so far"
        except UsageError as error:
            damaged += 1
            words = str(error)
        click.echo(f"{run.folder}: {words.removeprefix(f'{run.folder}: ')}")
    if damaged:
        raise RunError(f"{damaged} of {len(found)} runs are damaged")


def _report(runs: tuple[Path, ...], page: Path, shown: Shown, results: Results) -> None:
    from diw.auditing.run import own_audit
    from diw.pages import show
    from diw.reports.comparison import compare_runs, compare_table, shared_entries
    from diw.reports.learners import kept_learners, learners_table
    from diw.reports.summary import results_json
    from diw.runs import find_runs

    all_runs = [run for path in runs for run in find_runs(path)]
    comparisons = compare_runs(all_runs)
    shown.claim(results.outputs(runs=all_runs), page)
    others = [kept_learners(comparison) for comparison in comparisons]
    for place, comparison in enumerate(comparisons):
        if place:
            click.echo()
        show(compare_table(comparison))
        if others[place]:
            click.echo()
            show(learners_table(comparison, others[place]))
    found = own_audit(comparisons[0].audited)
    shown.write(comparisons, page, others, found, force=results.force)
    unfinished = sum(not run.finished for run in all_runs)
    if unfinished:
        click.echo(f"Left out: {unfinished} of {len(all_runs)} runs, which are not finished.")
    trials = [trial for comparison in comparisons for trial in comparison.trials]
    content = results_json(shared_entries([trial.run.spec for trial in trials]), trials)
    learners = others[0] if len(comparisons) == 1 else {}
    results.write({**content, "learners": learners} if learners else content)
