"""Benchmarks as data sets in memory: read from verified files, or generated in their shape.

Inside the package are 10,000 training and 2,000 test images of Fashion-MNIST (Xiao, Rasul and
Vollgraf 2017, MIT licence: `LICENSE.fashion-mnist` beside this file), drawn class by class by
`scripts/make_embedded_data.py`.
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from diw.data.benchmarks.catalogue import FASHION_MNIST, Benchmark, DataFile
from diw.data.benchmarks.files import read_content
from diw.data.checks import Note
from diw.data.dataset import Bundle, Dataset, TensorInputs
from diw.data.encoding import Encoding, ImageRows
from diw.errors import RunError
from diw.seeding import numpy_generator

EMBEDDED = "embedded"
"""The name of the data set inside the package."""

EMBEDDED_FILE = Path(__file__).with_name("fashion-mnist-subset.npz")
"""Its file, made by the script and never by hand."""

EMBEDDED_SHA256 = "6929bdcc17a20dfe663af8678e5558504ae29db8460692f618b243697ed325d2"
"""The `digest` of its arrays."""

_PIXELS = 3 * 32 * 32
_UNSIGNED_BYTE = 0x08


def read_benchmark(benchmark: Benchmark, folder: Path) -> Bundle:
    """Both parts of a benchmark, every file verified while it is read; all labels clean."""
    train, test = (
        _read_part(benchmark, folder, part) for part in (benchmark.train, benchmark.test)
    )
    return clean_images(benchmark.name, train, test)


def clean_images(name: str, train: Dataset, test: Dataset, notes: tuple[Note, ...] = ()) -> Bundle:
    """A data set of images whose labels are all clean."""
    channels, height, width = train.shape
    return Bundle(
        name=name,
        kind="image",
        train=train,
        test=test,
        notes=notes,
        clean=torch.ones(len(train), dtype=torch.bool),
        encoding=Encoding(train.classes, ImageRows((channels, height, width))),
    )


def _read_part(benchmark: Benchmark, folder: Path, files: Sequence[DataFile]) -> Dataset:
    contents = [read_content(folder / file.name, file) for file in files]
    if benchmark.format == "idx":
        # A copy: torch wants memory it may write to.
        images, labels = (
            parse_idx(content, str(folder / file.name)).copy()
            for content, file in zip(contents, files, strict=True)
        )
        images = images[:, None]
    else:
        record = benchmark.label_bytes + _PIXELS
        for content, file in zip(contents, files, strict=True):
            if len(content) % record:
                raise RunError(f"{folder / file.name}: not a whole number of {record}-byte records")
        records = np.concatenate([np.frombuffer(c, np.uint8).reshape(-1, record) for c in contents])
        labels = records[:, benchmark.label_bytes - 1]
        images = np.ascontiguousarray(records[:, benchmark.label_bytes :]).reshape(-1, 3, 32, 32)
    return Dataset(
        TensorInputs(torch.from_numpy(images)),
        torch.from_numpy(labels.astype(np.int64)),
        benchmark.classes,
    )


def parse_idx(content: bytes, name: str) -> npt.NDArray[np.uint8]:
    """The array in the (unpacked) content of an idx file of unsigned bytes, `name` in messages."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE:
        raise RunError(f"{name}: not an idx file of unsigned bytes")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise RunError(f"{name}: truncated in its header")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    if len(content) - start != prod(shape):
        raise RunError(f"{name}: {prod(shape):,} bytes announced, {len(content) - start:,} found")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 over names, shapes and bytes of arrays, whatever compressed them."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def read_embedded() -> dict[str, npt.NDArray[Any]]:
    """`train_images` (10000, 28, 28), `train_labels`, `train_rows`; the same for `test`."""
    with np.load(EMBEDDED_FILE, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def load_embedded() -> Bundle:
    """10,000 training and 2,000 test images of Fashion-MNIST, all labels clean."""
    arrays = read_embedded()

    def part(name: str) -> Dataset:
        images = torch.from_numpy(arrays[f"{name}_images"]).unsqueeze(1)
        labels = torch.from_numpy(arrays[f"{name}_labels"]).long()
        return Dataset(TensorInputs(images), labels, FASHION_MNIST.classes)

    return clean_images(EMBEDDED, part("train"), part("test"))


def synthetic_like(benchmark: Benchmark, rows: int = 2000) -> Bundle:
    """`rows` images for training and a fifth of it for testing, balanced, around random patterns.

    A class is a smooth random pattern, an image that pattern under noise and a
    random brightness: learnable, and not trivially.
    """
    shape = (1, 28, 28) if benchmark.format == "idx" else (3, 32, 32)
    rng = numpy_generator(0, "synthetic", benchmark.name)
    coarse = rng.random((len(benchmark.classes), shape[0], 4, 4))
    patterns = coarse.repeat(shape[1] // 4, axis=2).repeat(shape[2] // 4, axis=3)

    def part(rows_per_class: int) -> Dataset:
        labels = np.tile(np.arange(len(benchmark.classes)), rows_per_class)
        brightness = rng.uniform(0.5, 1.0, (len(labels), 1, 1, 1))
        noise = rng.normal(0, 0.25, (len(labels), *shape))
        images = np.clip(patterns[labels] * brightness + noise, 0, 1)
        return Dataset(
            TensorInputs(torch.from_numpy((images * 255).astype(np.uint8))),
            torch.from_numpy(labels),
            benchmark.classes,
        )

    train = part(rows // len(benchmark.classes))
    test = part(rows // 5 // len(benchmark.classes))
    note = Note("", f"synthetic: generated images stand in for {benchmark.name}")
    return clean_images(f"{benchmark.name} (synthetic)", train, test, (note,))
