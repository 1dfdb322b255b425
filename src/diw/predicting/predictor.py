"""The network of a finished run, and how it reads files.

`encoding.json` in the run's folder says what the network expects: kind and
shape of inputs, how tables are standardised, the classes by name, and which
factory builds the network whose parameters are in `model.safetensors`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from diw.data import Dataset, Encoding, FileRows, Inputs, Note, read_like
from diw.errors import UsageError, one_line
from diw.models import make_model
from diw.predicting.scores import Scores
from diw.records import Run, write_json
from diw.step.probe import outputs_in_pieces
from diw.step.rows import Unlabelled

ENCODING = "encoding.json"

BATCH = 256
"""Rows per forward."""


def write_encoding(run: Run, encoding: Encoding, model: str, shape: tuple[int, ...]) -> None:
    """Record with `run` what predictions need besides the parameters.

    That is how files were read, the name of the network or its `module:factory`, and the shape of
    one input.
    """
    content = {"model": model, "shape": list(shape), **encoding.as_json()}
    write_json(run.folder / ENCODING, content)


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
    def load(cls, run: Run, device: torch.device | str = "cpu") -> "Predictor":
        """The network of a finished run; a missing or damaged file raises `UsageError`."""
        if not run.finished:
            raise UsageError(
                f"{run.folder}: this run is not finished ({len(run.metrics())} of "
                f"{run.spec.recipe.epochs} epochs); the command that started it resumes it"
            )
        content = run.read(ENCODING)
        encoding = Encoding.from_json(content)
        name, shape = content.get("model"), content.get("shape")
        if not isinstance(name, str) or not isinstance(shape, list):
            raise UsageError(f"{run.folder / ENCODING}: lacks the model or its input shape")
        model = make_model(
            name, shape=tuple(map(int, shape)), num_classes=len(encoding.classes), seed=0
        )
        _load_parameters(model, run.model)
        model = model.to(device).eval()
        if len(shape) == 3:  # as it was trained: the same arithmetic, the same last bits
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return cls(model, encoding)

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

    def probabilities(self, inputs: Inputs, batch_size: int = BATCH) -> Iterator[NDArray[Any]]:
        """Class probabilities (b, classes), float32, batch by batch; rows are read on demand."""
        for _, outputs in outputs_in_pieces(self.model, Unlabelled(inputs), piece=batch_size):
            yield outputs.values.float().softmax(1).cpu().numpy()

    def score(self, data: Dataset, batch_size: int = BATCH) -> Scores:
        """Compare predicted with true classes over labelled rows."""
        k = data.num_classes
        confusion = np.zeros(k * k, np.int64)
        start = 0
        for batch in self.probabilities(data.inputs, batch_size):
            true = data.targets[start : start + len(batch)].numpy()
            confusion += np.bincount(true * k + batch.argmax(1), minlength=k * k)
            start += len(batch)
        return Scores(data.classes, confusion.reshape(k, k))


def _load_parameters(model: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_model

    try:
        load_model(model, str(path))
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{path}: cannot be read: {one_line(error)}") from None
    except RuntimeError as error:  # names or shapes of parameters
        raise UsageError(f"{path}: does not belong to this network: {one_line(error)}") from None
