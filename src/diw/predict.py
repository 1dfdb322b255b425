"""The network of a finished run: how it reads files, what it predicts, and predictions as files.

`encoding.json` in the run's folder says what the network expects: kind and shape of inputs, how
tables are standardised, the classes by name, and which factory builds the network whose
parameters are in `model.safetensors`.

Files of predictions are CSV and Parquet, written batch by batch, or .npz, written at once. Each
row has the predicted class by name and the probability of every class; images have their file
names before these. In CSV a name that a spreadsheet would take for a formula gets an apostrophe;
Parquet and .npz hold names as they are.
"""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from diw.data import Dataset, Encoding, FileRows, Inputs, Note, read_like
from diw.errors import UsageError, one_line
from diw.files import plain_text
from diw.models import MODELS, make_model
from diw.outputs import creating
from diw.runs import Run
from diw.runs.run import ENCODING
from diw.step.look import outputs_in_pieces
from diw.step.rows import Unlabelled
from diw.training.scores import Scores, evaluate

__all__ = ["Predictor", "check_format", "write_predictions"]

BATCH = 256
"""Rows per forward."""

Probabilities = NDArray[np.float32]

_ROW_GROUP = 1 << 16
"""Rows per Parquet row group: with a few hundred the file would be mostly headers."""


@dataclass(frozen=True)
class Predictor:
    """A trained network with the encoding of its training data.

    Attributes:
        model: The network in evaluation mode, on the device it predicts on.
        encoding: How rows are read, and the names of the classes.
    """

    model: nn.Module
    encoding: Encoding

    @classmethod
    def load(
        cls,
        run: Run,
        device: torch.device | str = "cpu",
        *,
        model: str | None = None,
        trust_model: bool = False,
    ) -> "Predictor":
        """The network of a finished run; a missing or damaged file raises `UsageError`.

        Args:
            run: The run.
            device: Where the network predicts.
            model: The network as `module:factory`, instead of what the run says.
            trust_model: Import the `module:factory` that the run names. It is code that runs here,
                so do it only if you know where the run comes from.
        """
        if not run.finished:
            raise UsageError(
                f"{run.folder}: this run is not finished ({len(run.metrics())} of "
                f"{run.spec.recipe.epochs} epochs); the command that started it resumes it"
            )
        content = run.read(ENCODING)
        encoding = Encoding.from_json(content)
        name, shape = model or content.get("model"), _shape(content.get("shape"))
        if not isinstance(name, str) or shape is None or not encoding.classes:
            raise UsageError(f"{run.folder / ENCODING}: lacks model, input shape or classes")
        if name not in MODELS and model is None and not trust_model:
            raise UsageError(
                f"model: {run.folder} names a network of its own, {name}, whose code would be run "
                "here; name it yourself if you have it, or trust the run with --trust-model"
            )
        path = run.verified("model.safetensors")
        if name in MODELS:
            _check_size(name, path, shape, len(encoding.classes))
        network = make_model(name, shape=shape, num_classes=len(encoding.classes), seed=0)
        _load_parameters(network, path)
        network = network.to(device).eval()
        if len(shape) == 3:  # as it was trained: the same arithmetic, the same last bits
            network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return cls(network, encoding)

    def read(self, path: Path, *, text_encoding: str | None = None) -> FileRows:
        """The rows of a file or folder; labels are ignored.

        Args:
            path: The file or folder.
            text_encoding: Of a CSV file that is not UTF-8.
        """
        return read_like(path, self.encoding, text_encoding=text_encoding)

    def read_labelled(
        self, path: Path, label: str | None = None, *, text_encoding: str | None = None
    ) -> tuple[Dataset, tuple[Note, ...]]:
        """The rows of a file or folder with their labels, and notes for the user.

        Args:
            path: The file or folder.
            label: The column, array or file of the labels, if it is not as in training.
            text_encoding: Of a CSV file that is not UTF-8.
        """
        rows = read_like(
            path, self.encoding, label=label, need_labels=True, text_encoding=text_encoding
        )
        return rows.dataset(self.encoding.classes), rows.notes

    def probabilities(self, inputs: Inputs, batch_size: int = BATCH) -> Iterator[Probabilities]:
        """Class probabilities (b, classes), float32, batch by batch; rows are read on demand."""
        for _, outputs in outputs_in_pieces(self.model, Unlabelled(inputs), piece=batch_size):
            yield outputs.values.float().softmax(1).cpu().numpy()

    def score(self, data: Dataset, batch_size: int = BATCH) -> Scores:
        """Compare predicted with true classes over labelled rows."""
        return evaluate(self.model, data, piece=batch_size)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of one input, or None for what cannot be one."""
    sides = tuple(value) if isinstance(value, list) and 1 <= len(value) <= 3 else (0,)
    return sides if all(type(side) is int and side > 0 for side in sides) else None


def _check_size(name: str, path: Path, shape: tuple[int, ...], num_classes: int) -> None:
    """Refuse a network that would take more memory than its file of parameters can fill."""
    try:
        with torch.device("meta"):  # only shapes
            network = make_model(name, shape=shape, num_classes=num_classes)
        size = sum(p.numel() * p.element_size() for p in network.parameters())
        if size <= path.stat().st_size:
            return
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (RuntimeError, OverflowError, ValueError):  # no network has such a shape
        pass
    raise UsageError(f"{path}: does not belong to this network: it has too few parameters")


def _load_parameters(model: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_model

    try:
        load_model(model, str(path))
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{path}: cannot be read: {one_line(error)}") from None
    except RuntimeError as error:  # names or shapes of parameters
        raise UsageError(f"{path}: does not belong to this network: {one_line(error)}") from None


@dataclass(frozen=True)
class Predictions:
    """Predictions for some consecutive rows.

    Attributes:
        texts: Columns of text, b entries each: file names if rows have them, and predicted classes.
        probabilities: (b, classes) float32.
    """

    texts: tuple[list[str], ...]
    probabilities: Probabilities


def check_format(path: Path) -> None:
    """Refuse, before any work, a format that is unknown or needs a package that is missing."""
    if path.suffix.lower() not in _WRITERS:
        endings = ", ".join(ending for ending in _WRITERS if ending)
        raise UsageError(f"out: cannot write {path.name}; choose one of {endings}")
    if _WRITERS[path.suffix.lower()] is _write_parquet:
        try:
            import pyarrow.parquet  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError:
            raise UsageError(
                f"out: writing {path.name} needs pyarrow: install diw with the extra 'parquet'"
            ) from None


def write_predictions(
    path: Path,
    batches: Iterable[Probabilities],
    classes: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    force: bool = False,
) -> NDArray[np.int64]:
    """Write predictions to a file, in the format of its ending, and count them.

    Args:
        path: `.csv` (the default), `.parquet` or `.npz`. It appears only when it is complete.
        batches: Probabilities (b, classes) in the order of the rows.
        classes: Class names by class number.
        names: One file name per row, if rows have names.
        force: Whether a file that diw did not make is replaced.

    Returns:
        (classes,) how often each class was predicted.
    """
    check_format(path)
    counts = np.zeros(len(classes), np.int64)

    def counted() -> Iterator[Predictions]:
        start = 0
        for probabilities in batches:
            numbers = probabilities.argmax(1)
            counts[:] += np.bincount(numbers, minlength=len(classes))
            labels = [classes[int(number)] for number in numbers]
            stop = start + len(labels)
            texts = (labels,) if names is None else (list(names[start:stop]), labels)
            yield Predictions(texts, probabilities)
            start = stop

    header = [*(["file"] if names is not None else []), "label", *(f"p_{name}" for name in classes)]
    with creating(path, force=force) as temporary:
        _WRITERS[path.suffix.lower()](temporary, counted(), header, classes)
    return counts


def _write_csv(
    path: Path, batches: Iterator[Predictions], header: list[str], classes: Sequence[str]
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for batch in batches:
            numbers = ([f"{p:.6g}" for p in row] for row in batch.probabilities.tolist())
            rows = zip(zip(*batch.texts, strict=True), numbers, strict=True)
            writer.writerows([*map(plain_text, texts), *row] for texts, row in rows)


def _write_parquet(
    path: Path, batches: Iterator[Predictions], header: list[str], classes: Sequence[str]
) -> None:
    import pyarrow
    import pyarrow.parquet

    text, number = pyarrow.string(), pyarrow.float32()
    kinds = [text] * (len(header) - len(classes)) + [number] * len(classes)
    schema = pyarrow.schema(list(zip(header, kinds, strict=True)))
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _joined(batches, _ROW_GROUP):
            columns = zip([*batch.texts, *batch.probabilities.T], kinds, strict=True)
            arrays = [pyarrow.array(column, kind) for column, kind in columns]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _write_npz(
    path: Path, batches: Iterator[Predictions], header: list[str], classes: Sequence[str]
) -> None:
    (batch,) = _joined(batches, sys.maxsize)
    *files, labels = batch.texts
    names = np.array(classes)
    arrays: dict[str, Any] = {
        "labels": np.array(labels, names.dtype),
        "probabilities": batch.probabilities,
        "classes": names,
    }
    if files:
        arrays["files"] = np.array(files[0])
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _joined(batches: Iterator[Predictions], rows: int) -> Iterator[Predictions]:
    """Batches of at least `rows` rows; the last may have fewer."""
    held: list[Predictions] = []

    def join() -> Predictions:
        columns = zip(*(part.texts for part in held), strict=True)
        texts = tuple([text for part in column for text in part] for column in columns)
        return Predictions(texts, np.concatenate([part.probabilities for part in held]))

    for batch in batches:
        held.append(batch)
        if sum(len(part.probabilities) for part in held) >= rows:
            yield join()
            held.clear()
    if held:
        yield join()


_WRITERS: dict[str, Callable[[Path, Iterator[Predictions], list[str], Sequence[str]], None]] = {
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    "": _write_csv,
}
"""By the file's ending."""
