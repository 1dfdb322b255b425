"""`diw audit`: which training labels look wrong, how many are, and a page to check them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from diw.cli.options import (
    COUNT,
    FILE,
    FOLDER,
    PATH,
    Checked,
    Network,
    Results,
    say,
    takes,
)
from diw.errors import UsageError
from diw.runs import find_run

if TYPE_CHECKING:
    from diw.auditing import Audit

EXAMPLES = """
\b
Examples:
  diw audit model --out check
  diw audit model --out check --top 2000
  diw audit model --out check --no-samples
  diw audit --probabilities cross-fitted.csv --label status --verified checked.csv --out check
  diw train --data train.csv --trusted trusted.csv --corrections corrections.csv --out model-2
"""

TOP = 500
DOUBTFUL = "doubtful-trusted.csv"
"""Not `trusted.csv`, which is how people call the file that they give."""


@click.command(epilog=EXAMPLES)
@click.argument("run", required=False, type=PATH)
@click.option("--out", type=FOLDER, required=True, help="Folder for suspects.csv and audit.html.")
@click.option(
    "--probabilities",
    type=FILE,
    metavar="TABLE",
    help="Instead of RUN: class probabilities of any model for rows that it did not learn, as CSV, "
    "Parquet or .npz, with columns p_CLASS as `diw predict` writes them.",
)
@click.option("--label", metavar="COLUMN", help="The column of TABLE with the given labels.")
@click.option(
    "--top", type=COUNT, default=TOP, show_default=True, help="Samples in the page, worst first."
)
@click.option(
    "--samples/--no-samples",
    default=True,
    show_default=True,
    help="Put the images or rows themselves into the page.",
)
@takes
def audit(
    run: Path | None,
    out: Path,
    probabilities: Path | None,
    label: str | None,
    top: int,
    samples: bool,
    checked: Checked,
    network: Network,
    results: Results,
) -> None:
    """Find training labels that look wrong.

    RUN is a run of `diw train` or `diw compare`; its data are read again. Or give a TABLE of
    probabilities: then nothing is trained. OUT gets suspects.csv (file and row, given and suggested
    label, score), doubtful-trusted.csv if trusted labels are doubtful, and audit.html, a page to
    look at suspects and to mark each as wrong, right or to be dropped. The page saves
    corrections.csv, which `diw train --corrections` applies. Verified rows say how many labels are
    wrong.
    """
    from diw.auditing.page import PAGE, SUSPECTS, write_audit
    from diw.outputs import create_text

    if (run is None) == (probabilities is None):
        raise UsageError("probabilities: give either a RUN or --probabilities TABLE")
    if run is not None and label is not None:
        raise UsageError("label: belongs to --probabilities; a run knows its label")
    if run is None and label is None:
        raise UsageError("label: name the column with the given labels")
    found, force = None if run is None else find_run(run), results.force
    verified = checked.verified
    reads = [file for file in (probabilities, verified) if file is not None]
    outputs = results.outputs(*reads, runs=[] if found is None else [found])
    if found is not None:
        from diw.auditing.run import audit_run

        folder = outputs.folder(out, SUSPECTS, PAGE, DOUBTFUL)
        result = audit_run(found, verified, **network.given)
    else:
        from diw.auditing.table import audit_file

        assert probabilities is not None
        assert label is not None
        result = audit_file(probabilities, label, verified)
        folder = outputs.folder(out, SUSPECTS, PAGE, DOUBTFUL)
    write_audit(result, folder, top=top, samples=samples, force=force)
    names = [SUSPECTS, PAGE]
    if len(result.doubtful):
        create_text(folder / DOUBTFUL, result.to_csv(doubtful=True), force=force)
        names.append(DOUBTFUL)
    _say(result)
    click.echo("\n".join(str(folder / name) for name in names))
    source = {"run": str(found.folder)} if found else {"probabilities": str(probabilities)}
    results.write({**source, **result.as_json()})


def _say(result: "Audit") -> None:
    """How many are suspects, how many are wrong, and what else a user should know."""
    kind = "rows" if result.diagnosis is None else "training rows"
    ranked = f"{len(result.order):,} {kind}, {result.count:,} suspects"
    if result.wrong_rows is not None:
        wrong, low, high = result.wrong_rows
        ranked += f"; about {wrong:,} labels are wrong (95% interval {low:,} to {high:,})"
    click.echo(ranked)
    quality = result.quality()
    if quality is not None:
        click.echo(
            f"against the simulated noise: AUROC {quality['auroc']:.3f}, "
            f"average precision {quality['average_precision']:.3f}"
        )
    doubtful, trusted = len(result.doubtful), int(result.trusted.sum())
    if doubtful:
        click.echo(
            f"{doubtful:,} of {trusted:,} trusted labels are doubtful, too: check them first"
        )
    say(result.notes)
