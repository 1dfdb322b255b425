"""`diw verify`: whether the files of runs are still what was written."""

from pathlib import Path

import click

from diw.errors import RunError, UsageError

EXAMPLES = """
\b
Examples:
  diw verify model                 one run
  diw verify runs                  every run below a folder
  diw verify runs/compare model    several
"""


@click.command(epilog=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
def verify(runs: tuple[Path, ...]) -> None:
    """Compare every file of finished runs with its size and checksum.

    Each of RUNS is a run or a folder of runs. Other verbs compare what they read; this one reads
    everything. The exit code is 1 if a file is damaged or missing.
    """
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
