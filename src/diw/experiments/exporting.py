"""The training rows of a run as its user knows them: where each is from, and its label."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from diw.errors import UsageError
from diw.experiments.places import Place
from diw.experiments.sources import load_bundle, load_split, stamp, training_places
from diw.files import write_text
from diw.predict import Predictor
from diw.runs import ROWS, Run, RunSpec


@dataclass(frozen=True)
class TrainingRow:
    """One row of the training data: where it is from, its given and its predicted label."""

    place: Place
    label: str
    predicted: str


def write_rows(run: Run, spec: RunSpec) -> None:
    """Write `rows.csv`: place in the run's arrays, file, row in it, and 1 for trusted rows."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["place", "file", "row", "trusted"])
    for number, place in enumerate(training_places(spec)):
        row = "" if place.row is None else place.row
        table.writerow([number, place.file, row, int(place.trusted)])
    write_text(run.folder / ROWS, out.getvalue())


def check_files(run: Run) -> None:
    """Refuse a run whose data files are not here, or are not what it was trained on."""
    spec = run.spec
    if stamp(spec).files != spec.files:
        names = ", ".join(spec.files)
        raise UsageError(f"{run.folder}: its data ({names}) are not here or have changed since")


def training_rows(run: Run, predictor: Predictor) -> Iterator[TrainingRow]:
    """The rows that `run` was trained on, in the order of its weights.

    The data are read again, so its files must be there unchanged.
    """
    check_files(run)
    split, classes = load_split(run.spec), load_bundle(run.spec).train.classes
    predicted = (
        classes[int(number)]
        for batch in predictor.probabilities(split.train.inputs)
        for number in batch.argmax(1)
    )
    places, labels = training_places(run.spec), split.train.targets.tolist()
    for place, label, guess in zip(places, labels, predicted, strict=True):
        yield TrainingRow(place, classes[label], guess)
