"""Run records: what a run leaves on disk.

A run that is killed loses at most the epoch that was being trained.

A run is a folder:

    spec.json       what was asked; its hash names the folder
    encoding.json   how inputs are read and which network reads them, for predictions
    facts.json      what was drawn and done to the data, and what is scored
    samples.npz     the training samples: given targets, and what is known of a simulated shift
    metrics.jsonl   one line per epoch, append only
    weights.npy     the ledger: (epochs, n) float16, each training sample's weight by epoch
    checkpoint.pt   everything needed to resume, replaced atomically after each epoch
    model.safetensors   the final network
    hidden.npz      the final representation of some samples, where the spec asks to observe it
    restored        marks a run that was not trained here: it has metrics alone
    done            written last; a run without it is unfinished

Nothing here imports torch, and NumPy only where arrays are read, so that `--help` is quick.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diw.errors import UsageError
from diw.records.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row = dict[str, Any]
"""One epoch's metrics: `epoch` counts from 1."""

FILES = (
    *("done", "model.safetensors", "checkpoint.pt", "metrics.jsonl", "weights.npy"),
    *("samples.npz", "hidden.npz", "facts.json", "encoding.json", "spec.json", "restored"),
)
"""What a run writes, in the order it is safely removed."""

PRETRAINING = "pretraining"
"""The folder, inside a run's, of the run that some methods start from."""


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block succeeds.

    The content reaches the disk before the name does, so a reader sees the old
    file or the whole new one, never a part. A pipe or a device is written to, and
    what a link points at is replaced, not the link.
    """
    if path.parts[:2] == ("/", "dev") or (path.exists() and not path.is_file()):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "content"
            path.write_bytes((Path(folder) / "content").read_bytes())
        return
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: object) -> None:
    """Write `content` as indented JSON, atomically."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


@dataclass(frozen=True)
class Run:
    """One run's folder: written by the training loop, read by every report."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, spec: Mapping[str, Any]) -> "Run":
        """Make (or find again) the folder of the run that `spec` describes."""
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "spec.json").exists():
            write_json(folder / "spec.json", spec)
        return cls(folder)

    @cached_property
    def spec_json(self) -> dict[str, Any]:
        """What was asked, as it was written."""
        return self.read("spec.json")

    @cached_property
    def spec(self) -> RunSpec:
        """What was asked; fields that did not exist yet have their defaults."""
        try:
            return RunSpec.from_json(self.spec_json)
        except (TypeError, UsageError) as error:
            raise UsageError(f"{self.folder / 'spec.json'}: {error}") from None

    def read(self, name: str) -> dict[str, Any]:
        """One of the run's JSON files; a missing or damaged one is a `UsageError`."""
        path = self.folder / name
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            raise UsageError(f"{self.folder}: has no {name}; train it again") from None
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: cannot be read: {error}") from None
        if not isinstance(content, dict):
            raise UsageError(f"{path}: is not what a run writes; train it again")
        return content

    @property
    def finished(self) -> bool:
        """Whether the run reached its last epoch and closed its records."""
        return (self.folder / "done").exists()

    @property
    def restored(self) -> bool:
        """Whether the metrics come from kept results and nothing was trained."""
        return (self.folder / "restored").exists()

    @property
    def checkpoint(self) -> Path:
        """Where the state to resume from is kept."""
        return self.folder / "checkpoint.pt"

    @property
    def model(self) -> Path:
        """Where the final network is kept."""
        return self.folder / "model.safetensors"

    def metrics(self) -> list[Row]:
        """The finished epochs in order; a line cut off by a kill does not count."""
        path = self.folder / "metrics.jsonl"
        rows: list[Row] = []
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    rows.append(json.loads(line))
                except json.JSONDecodeError:
                    break
        return rows

    def keep_epochs(self, epochs: int) -> None:
        """Drop what was written after epoch `epochs`, the last one in the checkpoint."""
        rows = [row for row in self.metrics() if row["epoch"] <= epochs]
        lines = [json.dumps(row) + "\n" for row in rows]
        write_text(self.folder / "metrics.jsonl", "".join(lines))

    def append(self, row: Row) -> None:
        """Add one finished epoch."""
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")

    def open_ledger(self, epochs: int, samples: int) -> "NDArray[np.float16]":
        """The ledger as a writable memory map, one row per epoch: no run holds it in memory."""
        import numpy as np

        path = self.folder / "weights.npy"
        if path.exists():
            ledger = np.lib.format.open_memmap(path, mode="r+")
            if ledger.shape == (epochs, samples):
                return ledger
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(epochs, samples))

    def ledger(self) -> "NDArray[np.float16]":
        """The weights by finished epoch and training sample, shape (finished epochs, n), read-only.

        Zero rows of a killed run's unfinished epochs are cut off. Empty, (0, 0),
        for a run that trains on trusted data alone.
        """
        import numpy as np

        path = self.folder / "weights.npy"
        if not path.exists():
            return np.zeros((0, 0), dtype=np.float16)
        return np.load(path, mmap_mode="r")[: len(self.metrics())]

    def write_samples(self, **arrays: "NDArray[Any]") -> None:
        """Keep what is known of the training samples (`targets`, `flipped`, `true_weights`, …)."""
        if not (self.folder / "samples.npz").exists():
            self.write_arrays("samples", **arrays)

    def samples(self) -> "dict[str, NDArray[Any]]":
        """What `write_samples` kept; the keys that are not known are absent."""
        return self.arrays("samples")

    def write_arrays(self, name: str, **arrays: "NDArray[Any]") -> None:
        """Keep `NAME.npz`, atomically."""
        import numpy as np

        with replacing(self.folder / f"{name}.npz") as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    def arrays(self, name: str) -> "dict[str, NDArray[Any]]":
        """What `write_arrays` kept under `name`; empty where nothing was."""
        import numpy as np

        path = self.folder / f"{name}.npz"
        if not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def forget(self) -> None:
        """Remove what the run wrote, `done` first; other files in the folder stay."""
        for name in FILES:
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / PRETRAINING, ignore_errors=True)

    def finish(self) -> None:
        """Close the records; the checkpoint is no longer needed."""
        write_text(self.folder / "done", "")
        self.checkpoint.unlink(missing_ok=True)


def find_runs(path: Path) -> list[Run]:
    """Every run at or below `path`, in a stable order."""
    if not path.exists():
        raise UsageError(f"{path}: no such run or folder of runs")
    runs = [Run(spec.parent) for spec in sorted(path.rglob("spec.json"))]
    folders = {run.folder.absolute() for run in runs}  # the parent of "." is "." as well
    # A run inside another one's folder is a part of it: its pretraining.
    return [run for run in runs if run.folder.absolute().parent not in folders]


def find_run(path: Path) -> Run:
    """The one run at or below `path`; several are refused with their names."""
    runs = find_runs(path)
    if not runs:
        raise UsageError(f"{path}: holds no run; train one with `diw train`")
    if len(runs) > 1:
        names = ", ".join(f"{run.folder} ({_words(run)})" for run in runs[:10])
        more = f" and {len(runs) - 10} more" if len(runs) > 10 else ""
        raise UsageError(f"{path}: holds {len(runs)} runs; choose one: {names}{more}")
    return runs[0]


def _words(run: Run) -> str:
    return f"{run.spec_json.get('method')} seed {run.spec_json.get('seed')}"
