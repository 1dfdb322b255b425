"""A run epoch by epoch: its records, which epoch's network is kept, and checkpoints.

`metrics.jsonl` gets a line, `weights.npy` and `losses.npy` a row per epoch. They are on the disk
before the checkpoint that counts on them is written, and the checkpoint holds their sizes and
checksums (`marks`). Resuming compares what is there with these, and cuts off what came after.

The newest two checkpoints are kept, each behind its checksum. A damaged one is never believed: the
one before is used instead, which costs an epoch and changes no bit of the result.
"""

import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from diw.errors import DamageError, DIWWarning, one_line
from diw.files import Fingerprint, append, replacing, sync_folder, unseal, write_sealed

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

METRICS = "metrics.jsonl"
WEIGHTS = "weights.npy"
LOSSES = "losses.npy"

CHECKPOINTS = ("checkpoint.pt", "checkpoint.old.pt")
"""The newest and the one before."""

LARGEST = 65504.0
"""Of float16: larger losses are kept as this."""

SMOOTHED_OVER = 3
"""Epochs over which the loss is averaged: that of few samples is noisy."""

Row = dict[str, Any]
"""One epoch's metrics: `epoch` counts from 1."""

State = dict[str, Any]
"""Everything that a training needs to go on: tensors and plain values by name."""


class Writer:
    """Adds epochs to the records of a run, and checkpoints that count on them.

    Rows are written plainly, not through a memory map: a full disk is then an error that can be
    reported, where a map would kill the process.

    Args:
        folder: The run's.
        epochs: How many there will be.
        samples: n, the length of a row of weights or losses.
    """

    def __init__(self, folder: Path, epochs: int, samples: int) -> None:
        self._folder = folder
        self._metrics = _Growing(folder / METRICS)
        self._weights = _Array(folder / WEIGHTS, epochs, samples)
        self._losses = _Array(folder / LOSSES, epochs, samples)

    def append(
        self,
        row: Row,
        weights: "NDArray[np.floating[Any]] | None" = None,
        losses: "NDArray[np.floating[Any]] | None" = None,
    ) -> None:
        """Add one finished epoch; `weights` and `losses` (n,) are kept as float16. All is synced.

        Losses are left out of a run that an older version began without them.
        """
        begun = self._metrics.size > 0
        if weights is not None:
            self._weights.add(weights)
        if losses is not None and (self._losses.size or not begun):
            self._losses.add(losses.clip(max=LARGEST))
        self._metrics.append((json.dumps(row, allow_nan=False) + "\n").encode())

    def checkpoint(self, state: State) -> None:
        """Make `state`, and the records as they are, the place to resume from."""
        import torch

        buffer = io.BytesIO()
        torch.save({**state, "records": self.marks}, buffer)
        newest, before = (self._folder / name for name in CHECKPOINTS)
        with replacing(newest) as temporary:
            write_sealed(temporary, buffer.getbuffer())
            if newest.exists():
                newest.replace(before)

    def resume(self, device: "torch.device", take: Callable[[State], None]) -> None:
        """Go on from the newest sound checkpoint; from the beginning where there is none at all.

        Args:
            device: Where its tensors are put.
            take: Takes over a state; an error of it means that the state is not of this run.
        """
        damages: list[str] = []
        for path in (self._folder / name for name in CHECKPOINTS):
            if not path.exists():
                continue
            try:
                state = _read(path, device)
                self.cut(state["records"])
                take(state)
            except DamageError as damage:
                damages.append(str(damage))
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                damages.append(f"{path}: does not belong to this run: {one_line(error)}")
            else:
                if damages:
                    message = f"{damages[0]}; goes on from {path.name}"
                    warnings.warn(message, DIWWarning, stacklevel=2)
                return
        if damages:
            words = "; ".join(damages)
            raise DamageError(f"{words}; remove {self._folder} to train from the beginning")
        self.cut({})

    def close(self) -> None:
        """Make the arrays whole where a run ended before its last epoch: readable by `np.load`."""
        self._weights.close()
        self._losses.close()

    @property
    def _files(self) -> "tuple[_Growing, ...]":
        return self._metrics, self._weights, self._losses

    @property
    def marks(self) -> dict[str, Fingerprint]:
        """What the files hold now, for the checkpoint that counts on it."""
        return {file.path.name: file.mark for file in self._files if file.size}

    def cut(self, marks: Mapping[str, Fingerprint]) -> None:
        """Cut the files back to what `marks` says; a `DamageError` where they do not hold that."""
        for file in self._files:
            file.check(marks.get(file.path.name))
        for file in self._files:
            file.cut()


class _Growing:
    """A file that only grows, with the checksum of what it holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._digest = hashlib.sha256()

    @property
    def mark(self) -> Fingerprint:
        return {"size": self.size, "sha256": self._digest.hexdigest()}

    def append(self, content: bytes) -> None:
        append(self.path, content)
        self._digest.update(content)
        self.size += len(content)

    def check(self, mark: Fingerprint | None) -> None:
        """Refuse a file that does not begin with what `mark` says, and remember where that ends."""
        size = 0 if mark is None else int(mark["size"])
        digest = hashlib.sha256()
        held = 0
        if size and self.path.exists():
            with self.path.open("rb") as file:
                first = self._first(file)
                digest.update(first)
                held = len(first)
                while held < size and (piece := file.read(min(1 << 20, size - held))):
                    digest.update(piece)
                    held += len(piece)
        if held < size:
            raise DamageError(f"{self.path}: holds {held:,} of the {size:,} bytes written")
        if mark is not None and digest.hexdigest() != mark["sha256"]:
            raise DamageError(f"{self.path}: is damaged: its checksum is wrong")
        self.size, self._digest = size, digest

    def _first(self, file: BinaryIO) -> bytes:
        """What the file begins with as it was appended, where that is no longer in it."""
        return b""

    def cut(self) -> None:
        """Cut off what was written after the mark that was checked."""
        if not self.path.exists():
            return
        if not self.size:
            self.path.unlink()
            sync_folder(self.path.parent)
        elif self.path.stat().st_size > self.size:
            with self.path.open("rb+") as file:
                file.truncate(self.size)
                os.fsync(file.fileno())


class _Array(_Growing):
    """A `.npy` file of float16 that grows by rows; its header has all rows from the start."""

    def __init__(self, path: Path, rows: int, columns: int) -> None:
        super().__init__(path)
        self.header = _npy_header((rows, columns))
        self.row_bytes = 2 * columns
        self._columns = columns

    def add(self, values: "NDArray[np.floating[Any]]") -> None:
        content = values.astype("<f2").tobytes()
        self.append(content if self.size else self.header + content)

    def close(self) -> None:
        """Let the header say how many rows there are. It keeps its length, as NumPy provides."""
        if self.size:
            self._write_header(self._closed())

    def cut(self) -> None:
        super().cut()
        if self.size:  # killed between `close` and the end of the run
            self._write_header(self.header)

    def _closed(self) -> bytes:
        rows = (self.path.stat().st_size - len(self.header)) // self.row_bytes
        return _npy_header((rows, self._columns))

    def _first(self, file: BinaryIO) -> bytes:
        """The header as it was, if it is that or a closed one; otherwise what is there counts."""
        if file.read(len(self.header)) in (self.header, self._closed()):
            return self.header
        file.seek(0)
        return b""

    def _write_header(self, header: bytes) -> None:
        with self.path.open("rb+") as file:
            if file.read(len(header)) != header:
                file.seek(0)
                file.write(header)
                os.fsync(file.fileno())


def parse_metrics(content: bytes) -> list[Row]:
    """The epochs in `metrics.jsonl`, from 1 on, up to a line that is not the next epoch."""
    rows: list[Row] = []
    for line in content.splitlines():
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict) or row.get("epoch") != len(rows) + 1:
            break
        rows.append(row)
    return rows


def kept_epoch(losses: Sequence[float]) -> int:
    """The epoch, from 1, whose mean loss over itself and the two before it is lowest.

    Its network is the one that is kept. Test samples are never looked at; training and reports use
    the same rule, so a table names the epoch that predictions use.

    Args:
        losses: After each epoch, at least one, the loss of trusted samples that are neither trained
            on nor matched with.
    """
    smooth = [
        sum(window) / len(window)
        for end in range(1, len(losses) + 1)
        if (window := losses[max(0, end - SMOOTHED_OVER) : end])
    ]
    return min(range(len(smooth)), key=lambda place: smooth[place]) + 1


def is_over(losses: Sequence[float], patience: int) -> bool:
    """Whether the last `patience` epochs brought no better one."""
    return bool(losses) and len(losses) - kept_epoch(losses) >= patience


def chosen_epoch(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The epoch, from 1, that was kept for its held-out trusted loss; None for the last.

    Args:
        rows: The metrics of each epoch.
    """
    held_out = [float(loss) for row in rows if (loss := row.get("selection_loss")) is not None]
    return kept_epoch(held_out) if held_out else None


def _read(path: Path, device: "torch.device") -> State:
    """The state in a checkpoint."""
    import torch

    content = unseal(path, path.read_bytes())
    try:
        state = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    except Exception as error:  # torch and pickle raise many kinds
        raise DamageError(f"{path}: cannot be read: {one_line(error)}") from None
    if not isinstance(state, dict):
        raise DamageError(f"{path}: is not a checkpoint")
    return state


def _npy_header(shape: tuple[int, int]) -> bytes:
    import numpy as np

    file = io.BytesIO()
    described = {"descr": "<f2", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()
