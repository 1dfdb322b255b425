"""Verified benchmark files to data sets in memory, bytes as they are."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from diw.data.benchmarks.catalogue import Benchmark, DataFile
from diw.data.benchmarks.idx import parse_idx
from diw.data.benchmarks.locate import read_content
from diw.data.dataset import Bundle, Dataset
from diw.data.encoding import Encoding, ImageRows
from diw.data.inputs import TensorInputs
from diw.errors import RunError

_PIXELS = 3 * 32 * 32


def read_benchmark(benchmark: Benchmark, folder: Path) -> Bundle:
    """Both parts of a benchmark, every file verified while it is read; all labels clean."""
    train = _read_part(benchmark, folder, benchmark.train)
    channels, height, width = train.shape
    return Bundle(
        name=benchmark.name,
        kind="image",
        train=train,
        test=_read_part(benchmark, folder, benchmark.test),
        clean=torch.ones(len(train), dtype=torch.bool),
        encoding=Encoding(benchmark.classes, ImageRows((channels, height, width))),
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
