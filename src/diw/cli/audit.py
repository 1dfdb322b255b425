"""`diw audit`: which training labels look wrong, and a page to check them."""

from pathlib import Path

import click

from diw.cli.options import (
    COUNT,
    FOLDER,
    device_option,
    json_option,
    model_options,
    read_device,
    writable_folder,
    write_results,
)
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


@click.command(epilog=EXAMPLES)
@click.argument("run", type=click.Path(path_type=Path))
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
@device_option()
@model_options
@json_option
def audit(
    run: Path,
    out: Path,
    top: int,
    samples: bool,
    device: str,
    model: str | None,
    trust_model: bool,
    json_file: Path | None,
) -> None:
    """Find training labels that look wrong.

    RUN is a run of `diw train` or `diw compare`; its data are read again. OUT gets suspects.csv
    (file and row, given and suggested label, score), trusted.csv if trusted labels are doubtful,
    and audit.html, a page to look at suspects and to mark each as wrong, right or to be dropped.
    The page saves corrections.csv, which `diw train --corrections` applies.
    """
    from diw.auditing.audits import audit as audit_labels
    from diw.auditing.page import write_audit
    from diw.files import write_text

    found = find_run(run)
    result = audit_labels(found, device=read_device(device), model=model, trust_model=trust_model)
    folder = writable_folder(out, "out")
    write_audit(result, folder, top=top, samples=samples)
    doubtful, trusted = len(result.doubtful), int(result.trusted.sum())
    if doubtful:
        write_text(folder / "trusted.csv", result.to_csv(doubtful=True))
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
    names = ["suspects.csv", "audit.html", *(["trusted.csv"] if doubtful else [])]
    click.echo("\n".join(str(folder / name) for name in names))
    write_results(json_file, summary)
