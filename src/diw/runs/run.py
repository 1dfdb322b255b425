"""What a run leaves on disk; one that is killed loses at most the epoch that was being trained.

A run is a folder:

    spec.json       what was asked; its hash names the folder
    encoding.json   how inputs are read and which network reads them, for predictions
    facts.json      what was drawn and done to the data, what is scored, where the command was given
    samples.npz     the training samples: given targets, and what is known of a simulated shift
    rows.csv        the training samples as the user knows them: file, row, trusted or not
    metrics.jsonl   one line per epoch, append only
    weights.npy     the ledger: (epochs, n) float16, each training sample's weight by epoch
    losses.npy      the same of losses, in the training forward, before each step
    checkpoint.pt   everything needed to resume, behind its checksum, replaced after each epoch
    checkpoint.old.pt   the one before, in case that the newest is damaged
    model.safetensors   the final network
    confusion.npz   the final network's scored rows: counts (k, k) by true and predicted class
    hidden.npz      the final representation of some samples, where the spec asks to observe it
    restored        marks a run that was not trained here: it has metrics alone
    done            written last, with the size and SHA-256 of each file; without it the run is
                    unfinished

Whoever reads a file of a finished run compares it with `done` first (`Seal`), so that a changed
byte, a lost line or another run's file is reported and never taken for a result.

Arrays over training samples have one order, that of `rows.csv`: the rows of the training data
as they were read, without those that a shift removed or that were held out; trusted rows from a
file of their own come last.

Nothing here imports torch, and NumPy only where arrays are read, so that `--help` is quick.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diw.errors import DamageError, RunError, UsageError, one_line
from diw.files import (
    Fingerprint,
    fingerprint,
    read_archive,
    remove_temporaries,
    replacing,
    sync_folder,
    write_json,
)
from diw.runs.journal import CHECKPOINTS, LOSSES, METRICS, WEIGHTS, Row, parse_metrics
from diw.runs.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from diw.runs.sources import Source

DONE = "done"
ENCODING = "encoding.json"
FACTS = "facts.json"
MODEL = "model.safetensors"
ROWS = "rows.csv"
SPEC = "spec.json"

RESULTS = (
    *(MODEL, METRICS, WEIGHTS, LOSSES, "samples.npz", ROWS, "hidden.npz", "confusion.npz"),
    *(FACTS, ENCODING, "restored", SPEC),
)
"""What a finished run holds, in the order it is safely removed: without a spec there is no run."""

FILES = (DONE, *CHECKPOINTS, *RESULTS)
"""All that a run writes into its folder."""

PRETRAINING = "pretraining"
"""The folder, inside a run's, of the run that some methods start from."""

SEAL_FORMAT = 1
"""Of the content of `done`; versions of diw before there were checksums left it empty."""


@dataclass(frozen=True)
class Run:
    """One run's folder: written by the training loop, read by every report."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, spec: Mapping[str, Any]) -> "Run":
        """Make (or find again) the folder of the run that `spec` describes."""
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)
        if not (folder / SPEC).exists():
            write_json(folder / SPEC, spec)
        return cls(folder)

    @cached_property
    def spec_json(self) -> dict[str, Any]:
        """What was asked, as it was written."""
        return self.read(SPEC)

    @cached_property
    def spec(self) -> RunSpec:
        """What was asked; fields that did not exist yet have their defaults."""
        values = self.spec_json
        try:
            return RunSpec.from_json(values)
        except (TypeError, UsageError) as error:
            raise UsageError(f"{self.folder / 'spec.json'}: {error}") from None

    def read(self, name: str) -> dict[str, Any]:
        """One of the run's JSON files; a missing or damaged one is a `UsageError`."""
        path = self.verified(name)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(f"{self.folder}: has no {name}; train it again") from None
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{path}: cannot be read: {one_line(error)}") from None
        if not isinstance(content, dict):
            raise UsageError(f"{path}: is not what a run writes; train it again")
        return content

    @property
    def finished(self) -> bool:
        """Whether the run reached its last epoch and closed its records."""
        return (self.folder / DONE).exists()

    @property
    def restored(self) -> bool:
        """Whether the metrics come from kept results and nothing was trained."""
        return (self.folder / "restored").exists()

    @property
    def untidy(self) -> bool:
        """Whether it holds what only an unfinished run needs."""
        return any((self.folder / name).exists() for name in CHECKPOINTS)

    @cached_property
    def source(self) -> "Source":
        """The data that it was trained on, found and compared; see `diw.runs.sources`."""
        from diw.runs.sources import source_of

        return source_of(self)

    @property
    def model(self) -> Path:
        """Where the final network is kept."""
        return self.folder / MODEL

    def verified(self, name: str) -> Path:
        """The path of one of the run's files, which is as it was when the run was finished.

        A changed or missing file is a `DamageError`. Nothing is compared while the run is
        unfinished, or if it was finished by a version that kept no checksums.
        """
        sealed = read_seal(self.folder)
        if sealed is not None:
            sealed.check(name)
        return self.folder / name

    def verify(self) -> int:
        """Compare every file of the run with what `done` says; return their number.

        The pretraining of a run is a part of it. Raises `DamageError` at the first difference.
        """
        sealed = read_seal(self.folder)
        if sealed is None:
            raise UsageError(f"{self.folder}: is not finished, so there is nothing to compare")
        for name in sealed.files:
            sealed.check(name)
        self.metrics()
        self.ledger()
        self.losses()
        self.samples()
        before = Run(self.folder / PRETRAINING)
        return len(sealed.files) + (before.verify() if before.finished else 0)

    def metrics(self) -> list[Row]:
        """The finished epochs in order; a line that a kill cut off does not count."""
        path = self.verified(METRICS)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = b""
        rows = parse_metrics(content)
        sealed = read_seal(self.folder)
        if sealed is not None:
            expected = len(content.splitlines()) if sealed.epochs is None else sealed.epochs
            if len(rows) != expected:
                raise DamageError(
                    f"{path}: is damaged: {len(rows)} of {expected} epochs can be read; "
                    "train this run again"
                )
        return rows

    def ledger(self) -> "NDArray[np.float16]":
        """The weights by finished epoch and training sample, shape (finished epochs, n), read-only.

        Empty, (0, 0), for a run that trains on trusted data alone.
        """
        return self._by_epoch(WEIGHTS)

    def losses(self) -> "NDArray[np.float16]":
        """The losses by finished epoch and training sample, as `ledger`.

        Each is that of the training forward, before the step that used it. Empty, (0, 0), also
        for runs of versions that kept none.
        """
        return self._by_epoch(LOSSES)

    def _by_epoch(self, name: str) -> "NDArray[np.float16]":
        import numpy as np

        path = self.verified(name)
        if not path.exists():
            return np.zeros((0, 0), dtype=np.float16)
        epochs = len(self.metrics())
        try:
            with path.open("rb") as file:
                np.lib.format.read_magic(file)
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                start = file.tell()
            if dtype != np.float16 or len(shape) != 2 or min(shape) < 1 or shape[0] < epochs:
                raise ValueError(f"{dtype} {shape} is not a row per epoch")
            shape = (epochs, shape[1])
            if not epochs:
                return np.zeros(shape, np.float16)
            return np.memmap(path, np.float16, "r", start, shape)
        except (ValueError, OSError, OverflowError) as error:
            raise DamageError(f"{path}: cannot be read: {one_line(error)}") from None

    def write_samples(self, **arrays: "NDArray[Any]") -> None:
        """Keep what is known of the training samples (`targets`, `flipped`, `true_weights`, …)."""
        if not (self.folder / "samples.npz").exists():
            self.write_arrays("samples", **arrays)

    def samples(self) -> "dict[str, NDArray[Any]]":
        """What `write_samples` kept, one entry per sample; unknown keys are absent."""
        arrays = self.arrays("samples")
        if len({array.shape for array in arrays.values()}) > 1:
            raise DamageError(f"{self.folder / 'samples.npz'}: holds arrays of different shapes")
        return arrays

    def write_arrays(self, name: str, **arrays: Any) -> None:
        """Keep `NAME.npz`, atomically."""
        import numpy as np

        with replacing(self.folder / f"{name}.npz") as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    def arrays(self, name: str) -> "dict[str, NDArray[Any]]":
        """What `write_arrays` kept under `name`; empty where nothing was."""
        path = self.verified(f"{name}.npz")
        return read_archive(path) if path.exists() else {}

    def forget(self) -> None:
        """Remove what the run wrote, `done` first; the lock and other files in the folder stay."""
        (self.folder / DONE).unlink(missing_ok=True)
        sync_folder(self.folder)
        self.tidy()
        shutil.rmtree(self.folder / PRETRAINING, ignore_errors=True)
        for name in RESULTS:
            (self.folder / name).unlink(missing_ok=True)
        sync_folder(self.folder)

    def finish(self) -> None:
        """Close the records: every file's size and checksum, and the checkpoints removed."""
        present = [name for name in RESULTS if (self.folder / name).exists()]
        files = {name: fingerprint(self.folder / name) for name in present}
        content = {"format": SEAL_FORMAT, "epochs": len(self.metrics()), "files": files}
        write_json(self.folder / DONE, content)
        self.tidy()

    def tidy(self) -> None:
        """Remove what only an unfinished run needs, and what killed writers left."""
        for name in CHECKPOINTS:
            (self.folder / name).unlink(missing_ok=True)
        for name in FILES:
            remove_temporaries(self.folder / name)


@dataclass(frozen=True)
class Seal:
    """What a run's `done` says.

    Attributes:
        folder: The run's.
        epochs: Epochs in `metrics.jsonl`; None where `done` does not say.
        files: Size and SHA-256 by name; empty where `done` does not say.
    """

    folder: Path
    epochs: int | None = None
    files: Mapping[str, Fingerprint] = field(default_factory=dict[str, Fingerprint])

    def check(self, name: str) -> None:
        """Compare a file with what was sealed; a difference is a `DamageError`."""
        if name not in self.files:
            return
        path, expected = self.folder / name, self.files[name]
        try:
            found = fingerprint(path)
        except FileNotFoundError:
            raise self._damage(path, "is missing") from None
        except OSError as error:
            raise self._damage(path, f"cannot be read ({error.strerror})") from None
        if found["size"] != expected["size"]:
            sizes = f"{found['size']:,} bytes, not {expected['size']:,}"
            raise self._damage(path, f"is damaged: it has {sizes}")
        if found != expected:
            raise self._damage(path, "is damaged: its checksum is wrong")

    def _damage(self, path: Path, what: str) -> Exception:
        """The error to raise; another command may have discarded the run meanwhile."""
        if read_seal(self.folder) != self:
            return RunError(f"{self.folder}: another command has replaced this run; try again")
        return DamageError(f"{path}: {what}; train this run again")


def read_seal(folder: Path) -> Seal | None:
    """The seal of a finished run; None while it is unfinished."""
    path = folder / DONE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamageError(f"{path}: cannot be read: {error.strerror}") from None
    if not content:
        return Seal(folder)
    try:
        values = json.loads(content)
        if values["format"] != SEAL_FORMAT:
            raise UsageError(f"{path}: its format {values['format']!r} is not known; upgrade diw")
        files = {str(name): {**sealed} for name, sealed in values["files"].items()}
        if any(set(sealed) != {"size", "sha256"} for sealed in files.values()):
            raise TypeError("entries without size and sha256")
        return Seal(folder, int(values["epochs"]), files)
    except UsageError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"{path}: is damaged: {one_line(error)}") from None


def find_runs(path: Path) -> list[Run]:
    """Every run at or below `path`, in a stable order."""
    if not path.exists():
        raise UsageError(f"{path}: no such run or folder of runs")
    folders = {spec.parent for spec in path.rglob(SPEC)}
    # A finished run that has lost its spec is one too: whoever reads it says so.
    folders |= {done.parent for done in path.rglob(DONE) if (done.parent / METRICS).exists()}
    runs = [Run(folder) for folder in sorted(folders)]
    folders = {folder.absolute() for folder in folders}  # the parent of "." is "." as well
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
