"""`diw audit`: which training labels look wrong, and a page to check them."""

from pathlib import Path

import click

from diw.cli.options import COUNT, FOLDER, PATH, Network, Results, takes
from diw.runs import find_run

EXAMPLES = """
\b
Examples:
  diw audit model --out check
  diw audit model --out check --top 2000
  diw audit model --out check --no-samples
  diw train --data train.csv --trusted trusted.csv --corrections corrections.csv --out model-2
"""

TOP = 500
DOUBTFUL = "doubtful-trusted.csv"
"""Not `trusted.csv`, which is how people call the file that they give."""


@click.command(epilog=EXAMPLES)
@click.argument("run", type=PATH)
@click.option("--out", type=FOLDER, required=True, help="Folder for suspects.csv and audit.html.")
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
    run: Path,
    out: Path,
    top: int,
    samples: bool,
    network: Network,
    results: Results,
) -> None:
    """Find training labels that look wrong.

    RUN is a run of `diw train` or `diw compare`; its data are read again. OUT gets suspects.csv
    (file and row, given and suggested label, score), doubtful-trusted.csv if trusted labels are
    doubtful, and audit.html, a page to look at suspects and to mark each as wrong, right or to be
    dropped. The page saves corrections.csv, which `diw train --corrections` applies.
    """
    from diw.auditing.audits import audit as audit_labels
    from diw.auditing.page import PAGE, SUSPECTS, write_audit
    from diw.outputs import create_text

    found, force = find_run(run), results.force
    folder = results.outputs(runs=[found]).folder(out, SUSPECTS, PAGE, DOUBTFUL)
    result = audit_labels(found, **network.given)
    write_audit(result, folder, top=top, samples=samples, force=force)
    doubtful, trusted = len(result.doubtful), int(result.trusted.sum())
    if doubtful:
        create_text(folder / DOUBTFUL, result.to_csv(doubtful=True), force=force)
    summary = {
        "run": str(found.folder),
        "rows": len(result.order),
        "suspects": result.count,
        "doubtful_trusted": doubtful,
        "wrong": None if result.wrong is None else list(result.wrong),
        **(result.quality() or {}),
    }
    ranked = f"{len(result.order):,} training rows, {result.count:,} suspects"
    if result.wrong is not None:
        wrong, low, high = result.wrong
        ranked += f"; about {wrong:,} labels are wrong (95% interval {low:,} to {high:,})"
    click.echo(ranked)
    if "auroc" in summary:
        click.echo(
            f"against the simulated noise: AUROC {summary['auroc']:.3f}, "
            f"average precision {summary['average_precision']:.3f}"
        )
    if doubtful:
        click.echo(
            f"{doubtful:,} of {trusted:,} trusted labels are doubtful, too: check them first"
        )
    names = [SUSPECTS, PAGE, *([DOUBTFUL] if doubtful else [])]
    click.echo("\n".join(str(folder / name) for name in names))
    results.write(summary)
