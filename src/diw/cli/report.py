"""`diw report`: the table and the page again, from run records alone."""

from pathlib import Path

import click

from diw.cli.options import (
    FILE,
    json_option,
    samples_option,
    say_audit,
    writable_file,
    write_results,
)

EXAMPLES = """
\b
Examples:
  diw report runs                             every finished run below a folder
  diw report runs/compare --out noise.html    to a file of your choice
  diw report runs --json results.json         the numbers for a program
"""


@click.command(epilog=EXAMPLES)
@click.argument("runs", type=click.Path(path_type=Path))
@click.option("--out", type=FILE, help="The page.  [default: report.html in RUNS]")
@samples_option
@json_option
def report(runs: Path, out: Path | None, samples: bool, json_file: Path | None) -> None:
    """Show the results of finished runs and write their report page.

    RUNS is a run or a folder of runs. Nothing is trained; unfinished runs are
    left out. Other learners are those that `diw compare` has scored.
    """
    from diw.auditing.highlights import write_audit
    from diw.reports.comparison import compare_runs, compare_table, shared_entries
    from diw.reports.learners import kept_learners, learners_table
    from diw.reports.page import write_report
    from diw.reports.summary import results_json
    from diw.reports.table import show
    from diw.runs import find_runs

    all_runs = find_runs(runs)
    comparisons = compare_runs(all_runs)
    page = out or runs / "report.html"
    writable_file(page, "out")
    others = [kept_learners(comparison) for comparison in comparisons]
    for place, comparison in enumerate(comparisons):
        if place:
            click.echo()
        show(compare_table(comparison))
        if others[place]:
            click.echo()
            show(learners_table(comparison, others[place]))
    found = [write_audit(one, page.parent, samples=samples) for one in comparisons[:1]]
    write_report(comparisons, page, others, found)
    click.echo(f"\nReport:  {page}")
    say_audit(found[0], page.parent)
    unfinished = sum(not run.finished for run in all_runs)
    if unfinished:
        click.echo(f"Left out: {unfinished} of {len(all_runs)} runs, which are not finished.")
    trials = [trial for comparison in comparisons for trial in comparison.trials]
    spec = shared_entries([trial.run.spec for trial in trials])
    results = results_json(spec, trials)
    learners = others[0] if len(comparisons) == 1 else {}
    write_results(json_file, {**results, "learners": learners} if learners else results)
