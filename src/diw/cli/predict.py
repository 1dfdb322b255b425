"""`diw predict`: a trained network's predictions for the rows of a file."""

import sys
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import Any

import click

from diw.cli.options import FILE, PATH, Forward, Results, takes
from diw.runs import find_run

EXAMPLES = """
\b
Examples:
  diw predict model new.csv --out predictions.csv
  diw predict model photos --out predictions.parquet
  diw predict runs/train new.npz --out predictions.npz
"""

MANY = 20
"""Classes whose predictions are counted one by one."""


@click.command(epilog=EXAMPLES)
@click.argument("run", type=PATH)
@click.argument("file", type=PATH)
@click.option("--out", type=FILE, required=True, help="A .csv, .parquet or .npz file.")
@takes
def predict(run: Path, file: Path, out: Path, forward: Forward, results: Results) -> None:
    """Write the predicted class and the class probabilities of every row of FILE.

    RUN is a run of `diw train` or `diw compare`, or a folder that holds one. FILE is read as the
    training data were; any labels in it are ignored. Data larger than
    memory (.npy, a folder of images) are read batch by batch.
    """
    from diw.predict import check_format, write_predictions

    check_format(out)
    trained = find_run(run)
    results.outputs(file, runs=[trained]).file(out)
    predictor = forward.network.predictor(trained)
    rows = predictor.read(file, text_encoding=forward.reading.text_encoding)
    forward.reading.say(rows.notes)
    classes = predictor.encoding.classes
    batches = predictor.probabilities(rows.inputs, forward.batch_size)
    batches = _shown(batches, ceil(len(rows.inputs) / forward.batch_size))
    counts = write_predictions(out, batches, classes, rows.names, force=results.force).tolist()
    click.echo(f"{len(rows.inputs):,} rows of {file} to {out}")
    found = sorted(zip(counts, classes, strict=True), key=lambda pair: -pair[0])
    for count, name in found[:MANY]:
        click.echo(f"  {count:>9,}  {name}")
    if len(found) > MANY:
        click.echo(f"  {sum(count for count, _ in found[MANY:]):>9,}  in other classes")
    predicted = dict(zip(classes, counts, strict=True))
    results.write({"run": str(trained.folder), "data": str(file), "predicted": predicted})


def _shown(batches: Iterable[Any], number: int) -> Iterable[Any]:
    """The batches, with a bar in an interactive terminal."""
    from diw.pages import is_interactive

    if not is_interactive(sys.stderr):
        return batches
    from rich.console import Console
    from rich.progress import track

    return track(batches, "predict", number, console=Console(stderr=True), transient=True)
