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
from diw.models import MODELS, make_model
from diw.predicting.scores import Scores
from diw.runs import Run, write_json
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
