"""`done`: written last, it says what every file of a finished run holds.

Whoever reads a file of a finished run compares it with the seal first, so that a changed byte, a
lost line or another run's file is reported and never taken for a result.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from diw.errors import DamageError, RunError, UsageError, one_line
from diw.files import Fingerprint, fingerprint, write_json

DONE = "done"

FORMAT = 1
"""Of the content of `done`; versions of diw before there were checksums left it empty."""

_compared: set[tuple[object, ...]] = set()
"""Files that were compared and have not been touched since: hashing them once is enough."""


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
            stat = path.stat()
            known = (path, stat.st_ino, stat.st_mtime_ns, stat.st_size, *expected.values())
            if known in _compared:
                return
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
        _compared.add(known)

    def _damage(self, path: Path, what: str) -> Exception:
        """The error to raise; another command may have discarded the run meanwhile."""
        if read_seal(self.folder) != self:
            return RunError(f"{self.folder}: another command has replaced this run; try again")
        return DamageError(f"{path}: {what}; train this run again")


def seal(folder: Path, epochs: int, names: Iterable[str]) -> None:
    """Write `done` over those of the named files that are there."""
    files = {name: fingerprint(folder / name) for name in names if (folder / name).exists()}
    write_json(folder / DONE, {"format": FORMAT, "epochs": epochs, "files": files})


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
        if values["format"] != FORMAT:
            raise UsageError(f"{path}: its format {values['format']!r} is not known; upgrade diw")
        files = {str(name): {**sealed} for name, sealed in values["files"].items()}
        if any(set(sealed) != {"size", "sha256"} for sealed in files.values()):
            raise TypeError("entries without size and sha256")
        return Seal(folder, int(values["epochs"]), files)
    except UsageError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"{path}: is damaged: {one_line(error)}") from None
