"""`diw export-weights`: what a run has learned of each training row, for other learners."""

from pathlib import Path

import click

from diw.cli.options import FILE, PATH, Network, Results, takes
from diw.errors import UsageError
from diw.runs import find_run

EXAMPLES = """
\b
Examples:
  diw export-weights model --out weights.csv
"""


@click.command("export-weights", epilog=EXAMPLES)
@click.argument("run", type=PATH)
@click.option("--out", type=FILE, required=True, help="A .csv file.")
@takes
def export_weights(run: Path, out: Path, network: Network, results: Results) -> None:
    """Write weight, given and predicted label of every training row, and the suspects.

    RUN is a run of `diw train` or `diw compare`. Rows are named as you know them: by
    file and row (counted from 0), images by their file. The weight is the mean of the
    last ten weighted epochs: give it as sample_weight to a learner of your own. Or leave
    out the rows with suspect 1: as many as labels are estimated to be wrong, those that
    `diw audit` ranks first.
    """
    import csv

    import numpy as np

    from diw.auditing.run import audit_run
    from diw.files import plain_text
    from diw.outputs import creating
    from diw.reports.summary import settled_weights

    if out.suffix.lower() != ".csv":
        raise UsageError(f"out: cannot write {out.name}; choose a .csv file")
    found = find_run(run)
    results.outputs(runs=[found]).file(out)
    predictor = network.predictor(found)
    if not len(found.ledger()):
        raise UsageError(f"{found.folder}: {found.spec.method} trains on trusted rows alone")
    weights = settled_weights(found)
    suspects = audit_run(found, **network.given).suspected
    train = found.source.split.train
    batches = predictor.probabilities(train.inputs)
    predicted = (int(number) for batch in batches for number in batch.argmax(1))
    count = 0
    with (
        creating(out, force=results.force) as new,
        new.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "row", "weight", "label", "predicted", "suspect"])
        rows = zip(found.source.places, train.targets.tolist(), predicted, strict=True)
        for place, (row, label, guess) in enumerate(rows):
            weight = 1.0 if weights is None or np.isnan(weights[place]) else weights[place]
            names = (plain_text(train.classes[number]) for number in (label, guess))
            cells = [plain_text(row.file), row.key[1], f"{weight:.6g}", *names]
            writer.writerow([*cells, int(suspects[place])])
            count += 1
    click.echo(f"{count:,} rows to {out}")
    results.write({"run": str(found.folder), "rows": count, "suspects": int(suspects.sum())})
