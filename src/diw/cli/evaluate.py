"""`diw evaluate`: how right a trained network is on labelled rows, class by class."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from diw.cli.options import PATH, Forward, Results, takes
from diw.errors import UsageError
from diw.pages import (
    Cell,
    Column,
    Table,
    count_entry,
    make_table,
    number_entry,
    show,
    text_cell,
    text_entry,
)
from diw.runs import Run, find_run

if TYPE_CHECKING:
    from diw.data import Dataset
    from diw.training import Scores

EXAMPLES = """
\b
Examples:
  diw evaluate model test.csv
  diw evaluate model                      the run's own test data
  diw evaluate model test.npz --json scores.json
"""

LARGEST_MATRIX = 20
"""With more classes the most frequent confusions are listed instead of the matrix."""

WIDTH = 80
"""Characters per line in which class names must fit as headings; else numbers head the columns."""


@click.command(epilog=EXAMPLES)
@click.argument("run", type=PATH)
@click.argument("file", type=PATH, required=False)
@click.option("--label", metavar="COLUMN", help="Labels, if not named as in training.")
@takes
def evaluate(
    run: Path, file: Path | None, label: str | None, results: Results, forward: Forward
) -> None:
    """Print accuracy, accuracy per class and the confusion matrix.

    RUN is a run of `diw train` or `diw compare`, or a folder that holds one. FILE has labels and
    is read as the training data were; without FILE the rows that the run
    itself was scored on are used.
    """
    if file is None and label is not None:
        raise UsageError("label: goes with a FILE; the run's own test data have their labels")
    found = find_run(run)
    results.outputs(*([file] if file is not None else []), runs=[found])
    predictor = forward.network.predictor(found)
    if file is None:
        data, source = _own_test(found)
    else:
        data, notes = predictor.read_labelled(
            file, label, text_encoding=forward.reading.text_encoding
        )
        source = str(file)
        forward.reading.say(notes)
    scores = predictor.score(data, forward.batch_size)
    click.echo(f"{source}: {scores.rows:,} rows")
    click.echo(f"accuracy           {100 * scores.accuracy:.2f}%")
    click.echo(f"balanced accuracy  {100 * scores.balanced_accuracy:.2f}%\n")
    show(class_table(scores))
    click.echo()
    show(confusion_table(scores))
    results.write({"run": str(found.folder), "data": source, **scores.as_json()})


def _own_test(run: Run) -> "tuple[Dataset, str]":
    """What the run was scored on, drawn again from its spec, and its name."""
    try:
        split = run.source.split
    except UsageError as error:
        raise UsageError(f"{error}; give a FILE") from None
    return split.test, f"{split.scored_on} rows of {run.spec.test or run.spec.data}"


def class_table(scores: "Scores") -> Table:
    """One row per class: its rows, and the share of them that is right."""
    known = zip(scores.classes, scores.counts, scores.class_accuracies, strict=True)
    return make_table(
        [
            text_entry("class", "class", name),
            count_entry("rows", "rows", int(rows)),
            number_entry("accuracy", "accuracy %", accuracy, scale=100),
        ]
        for name, rows, accuracy in known
    )


def confusion_table(scores: "Scores") -> Table:
    """The confusion matrix, true classes down and predicted ones across; or its largest entries."""
    if len(scores.classes) > LARGEST_MATRIX:
        return _largest(scores)
    names = scores.classes
    cells = [max(len(name), len(f"{scores.rows:,}")) + 2 for name in names]
    short = max(map(len, names)) + sum(cells) > WIDTH
    columns = [Column("class", "true class", "left")]
    columns += [Column(name, str(place) if short else name) for place, name in enumerate(names)]
    rows: list[tuple[Cell, ...]] = []
    for place, name in enumerate(names):
        counts: list[int] = scores.confusion[place].tolist()
        cells = [Cell(f"{count:,}" if count else "·", count) for count in counts]
        rows.append((text_cell(f"{place} {name}" if short else name), *cells))
    return Table(tuple(columns), tuple(rows), "Confusion matrix: columns are predicted classes")


def _largest(scores: "Scores") -> Table:
    import numpy as np

    wrong = scores.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:LARGEST_MATRIX]
    places = [divmod(int(place), len(scores.classes)) for place in order]
    counted = [(scores.classes[i], scores.classes[j], int(wrong[i, j])) for i, j in places]
    rows = tuple(
        (text_cell(true), text_cell(predicted), Cell(f"{number:,}", number))
        for true, predicted, number in counted
        if number
    )
    columns = (
        Column("true", "true class", "left"),
        Column("predicted", "predicted", "left"),
        Column("rows", "rows"),
    )
    notes = ("--json FILE writes the whole matrix.",)
    return Table(columns, rows, "The most frequent confusions", notes)
