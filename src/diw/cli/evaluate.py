"""`diw evaluate`: how right a trained network is on labelled rows, class by class."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from diw.cli.options import COUNT, device_option, json_option, read_device, writable_file
from diw.errors import UsageError

if TYPE_CHECKING:
    from diw.data import Dataset
    from diw.records import Run

EXAMPLES = """
\b
Examples:
  diw evaluate model test.csv
  diw evaluate model                      the run's own test data
  diw evaluate model test.npz --json scores.json
"""


@click.command(epilog=EXAMPLES)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--label", metavar="COLUMN", help="The labels, where not named as in training.")
@click.option("--batch-size", type=COUNT, default=256, show_default=True)
@device_option
@json_option
def evaluate(
    run: Path,
    file: Path | None,
    label: str | None,
    batch_size: int,
    device: str,
    json_file: Path | None,
) -> None:
    """Print accuracy, accuracy by class and the confusion matrix.

    RUN is a run of `diw train` or `diw compare`, or a folder that holds one. FILE has labels and
    is read as the training data were; without FILE the rows that the run
    itself was scored on are used.
    """
    from diw.cli.scores import class_table, confusion_table
    from diw.predicting import Predictor
    from diw.records import find_run, write_json
    from diw.reports import show

    writable_file(json_file, "json")
    if file is None and label is not None:
        raise UsageError("label: goes with a FILE; the run's own test data have their labels")
    found = find_run(run)
    predictor = Predictor.load(found, read_device(device))
    if file is None:
        data, source = _own_test(found)
    else:
        data, notes = predictor.read_labelled(file, label)
        source = str(file)
        for note in notes:
            click.echo(f"note: {note}", err=True)
    scores = predictor.score(data, batch_size)
    click.echo(f"{source}: {scores.rows:,} rows")
    click.echo(f"accuracy           {100 * scores.accuracy:.2f}%")
    click.echo(f"balanced accuracy  {100 * scores.balanced_accuracy:.2f}%\n")
    show(class_table(scores))
    click.echo()
    show(confusion_table(scores))
    if json_file is not None:
        content = {"run": str(found.folder), "data": source, **scores.as_json()}
        write_json(json_file, content)


def _own_test(run: "Run") -> "tuple[Dataset, str]":
    """What the run was scored on, drawn again from its spec, and its name."""
    from diw.experiments.sources import load_split, stamp

    spec = run.spec
    if stamp(spec).files != spec.files:
        names = ", ".join(spec.files)
        raise UsageError(
            f"{run.folder}: its data ({names}) are not here or have changed since; give a FILE"
        )
    split = load_split(spec)
    return split.test, f"{split.scored_on} rows of {spec.test or spec.data}"
