"""`diw report`: the table and the page again, from run records alone."""

from pathlib import Path

import click

from diw.cli.options import FILE, json_option, writable_file, write_results

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
@json_option
def report(runs: Path, out: Path | None, json_file: Path | None) -> None:
    """Show the results of finished runs and write their report page.

    RUNS is a run or a folder of runs. Nothing is trained; unfinished runs are
    left out.
    """
    from diw.auditing.highlights import write_audit
    from diw.records import find_runs
    from diw.reports.comparison import compare_runs, compare_table, shared_entries
    from diw.reports.page import write_report
    from diw.reports.summary import results_json
    from diw.reports.table import show

    found = find_runs(runs)
    comparisons = compare_runs(found)
    page = out or runs / "report.html"
    writable_file(page, "out")
    for place, comparison in enumerate(comparisons):
        if place:
            click.echo()
        show(compare_table(comparison))
    write_report(
        comparisons, page, highlights=[write_audit(one, page.parent) for one in comparisons[:1]]
    )
    click.echo(f"\nReport:  {page}")
    unfinished = sum(not run.finished for run in found)
    if unfinished:
        click.echo(f"Left out: {unfinished} of {len(found)} runs, which are not finished.")
    trials = [trial for comparison in comparisons for trial in comparison.trials]
    spec = shared_entries([trial.run.spec for trial in trials])
    write_results(json_file, results_json(spec, trials))
