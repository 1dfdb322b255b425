"""Files of NumPy arrays: `.npz` into memory, `.npy` memory-mapped, never unpickled.

`.npz` holds `X`, `y` and perhaps `clean`. An `.npy` file holds X; its labels are
in `NAME.labels.npy`, or `y….npy` beside `X….npy`, or the file that `label` names.
"""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError

MAX_BYTES = 1 << 32
"""What the arrays of an .npz may take in memory; larger data belong into a (mapped) .npy file."""

_MAX_RATIO = 1100  # deflate packs at most 1032 to 1, so a claim beyond this is a lie


@dataclass(frozen=True)
class Arrays:
    """X (n, ...) and what goes with it, as found in the files."""

    source: str
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any] | None
    clean: npt.NDArray[np.bool_] | None


def read_npz(path: Path, label: str | None = None) -> Arrays:
    """The arrays of an .npz file; `label` names another array than `y`."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                name.removesuffix(".npy"): name
                for name in archive.namelist()
                if name.endswith(".npy")
            }
            names = {
                "inputs": _pick(members, ("X", "x")),
                "labels": _pick(members, (label,) if label else ("y", "Y")),
                "clean": _pick(members, ("clean",)),
            }
            if names["inputs"] is None:
                held = ", ".join(sorted(members)) or "none"
                raise UsageError(f"{path}: no array X in it (it holds: {held})")
            if label and names["labels"] is None:
                raise UsageError(f"{path}: no array {label!r} (it holds: {', '.join(members)})")
            arrays = {
                role: None if name is None else _read_member(archive, members[name], path)
                for role, name in names.items()
            }
    except UsageError:
        raise
    except Exception as error:  # zipfile and zlib raise many kinds at broken files
        raise UsageError(f"{path}: not a readable .npz file: {_short(error)}") from None
    return _together(path, arrays["inputs"], arrays["labels"], arrays["clean"])


def beside(path: Path, label: str | None = None) -> tuple[Path, Path]:
    """The files, there or not, that hold the labels and the clean marks of an .npy of inputs."""
    labels = Path(label) if label else _beside(path, "labels", "y")
    return labels, _beside(path, "clean", "clean")


def read_npy(path: Path, label: str | None = None) -> Arrays:
    """A memory-mapped array and, from the files beside it, its labels."""
    labels, clean = beside(path, label)
    if label and not labels.is_file():
        raise UsageError(f"{labels}: no such file of labels")
    return _together(
        path,
        _map(path),
        np.array(_map(labels)) if labels.is_file() else None,
        np.array(_map(clean)) if clean.is_file() else None,
    )


def _pick(members: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in members), None)


def _read_member(archive: zipfile.ZipFile, name: str, path: Path) -> npt.NDArray[Any]:
    """One array, after its header said what it will take."""
    info = archive.getinfo(name)
    with archive.open(info) as stream:
        size = _announced(stream, f"{path}: {name}")
    if size > MAX_BYTES or size > _MAX_RATIO * max(1, path.stat().st_size):
        raise UsageError(
            f"{path}: {name} announces {size:,} bytes, more than can be; save large data as .npy"
        )
    with archive.open(info) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _announced(stream: IO[bytes], source: str) -> int:
    """Bytes the array after this .npy header has; Python objects are refused."""
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise UsageError(f"{source}: unknown .npy version {version}")
    shape, _, dtype = readers[version](stream)
    if dtype.hasobject:
        raise UsageError(f"{source}: holds Python objects, which are never unpickled; save numbers")
    size = dtype.itemsize
    for side in shape:
        size *= int(side)
    return size


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # the header parser raises many kinds at broken files
        raise UsageError(f"{path}: not a readable .npy file: {_short(error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise UsageError(f"{path}: not an .npy file")
    return array


def _beside(path: Path, word: str, letter: str) -> Path:
    """The file that belongs to an .npy of inputs: `X_a.npy` -> `y_a.npy`, else NAME.word.npy."""
    replaced = re.sub(r"^[Xx](?=_|$)|(?<=_)[Xx]$", letter, path.stem)
    stem = replaced if replaced != path.stem else f"{path.stem}.{word}"
    return path.with_name(f"{stem}.npy")


def _together(path: Path, inputs: Any, labels: Any, clean: Any) -> Arrays:
    """Refuse arrays that do not belong to each other."""
    if inputs.dtype.kind not in "fiub":
        raise UsageError(f"{path}: X must hold numbers, got {inputs.dtype}")
    if not 2 <= inputs.ndim <= 4 or 0 in inputs.shape:
        raise UsageError(
            f"{path}: X must be rows of features (n, d) or images (n, h, w), (n, h, w, c) or "
            f"(n, c, h, w), got shape {inputs.shape}"
        )
    for name, array in (("labels", labels), ("clean", clean)):
        if array is not None and array.shape != (len(inputs),):
            raise UsageError(
                f"{path}: X has {len(inputs)} rows, its {name} have shape {array.shape}"
            )
    if clean is not None:
        if clean.dtype.kind not in "bui" or not np.isin(clean, (0, 1)).all():
            raise UsageError(f"{path}: clean must hold true or false")
        clean = clean.astype(np.bool_)
    return Arrays(str(path), inputs, labels, clean)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
