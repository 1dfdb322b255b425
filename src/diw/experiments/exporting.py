"""The training rows of a run as its user knows them, with what the run says of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diw.data.images import ImageFiles
from diw.data.own import read_raw, shared_label
from diw.errors import UsageError
from diw.experiments.sources import is_own, load_bundle, load_split, stamp
from diw.predicting import Predictor
from diw.records import Run, RunSpec


@dataclass(frozen=True)
class TrainingRow:
    """One row of the training data: where it is from, its given and its predicted label.

    Attributes:
        file: The data file, or the image.
        row: The row of that file, counted from 0; None for an image.
    """

    file: str
    row: int | None
    label: str
    predicted: str


def training_rows(run: Run, predictor: Predictor) -> Iterator[TrainingRow]:
    """The rows that `run` was trained on, in the order of its weights.

    The data are read again, so its files must be there unchanged.
    """
    spec = run.spec
    if stamp(spec).files != spec.files:
        names = ", ".join(spec.files)
        raise UsageError(f"{run.folder}: its data ({names}) are not here or have changed since")
    split, bundle = load_split(spec), load_bundle(spec)
    if spec.train_samples is not None:
        raise UsageError(f"{run.folder}: was trained on a part of its data; use all of them")
    own_rows, classes = len(bundle.train), bundle.train.classes
    images = _image_names(spec)
    predicted = (
        classes[int(number)]
        for batch in predictor.probabilities(split.train.inputs)
        for number in batch.argmax(1)
    )
    for row, label, guess in zip(
        split.rows.tolist(), split.train.targets.tolist(), predicted, strict=True
    ):
        if images is not None:
            yield TrainingRow(images[row], None, classes[label], guess)
        elif row < own_rows:
            yield TrainingRow(spec.data, row, classes[label], guess)
        else:  # from the trusted file, whose rows follow
            yield TrainingRow(str(spec.trusted), row - own_rows, classes[label], guess)


def _image_names(spec: RunSpec) -> list[str] | None:
    """The image files of the data, then of the trusted data; None where rows are not images."""
    if not is_own(spec.data) or not Path(spec.data).is_dir():
        return None
    names: list[str] = []
    for folder in (spec.data, spec.trusted):
        if isinstance(folder, str) and Path(folder).is_dir():
            content = read_raw(Path(folder), shared_label(spec.label)).content
            if not isinstance(content, ImageFiles):
                return None
            names += [str(file) for file in content.files]
    return names
