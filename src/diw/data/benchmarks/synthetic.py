"""Generated images in the shape of a benchmark, to try a pipeline where the data are missing.

They are named synthetic wherever they show, and no result on them means
anything about the benchmark.
"""

import numpy as np
import torch

from diw.data.benchmarks.catalogue import Benchmark
from diw.data.dataset import Bundle, Dataset
from diw.data.encoding import Encoding, ImageRows
from diw.data.inputs import TensorInputs
from diw.seeding import numpy_generator


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
    return Bundle(
        name=f"{benchmark.name} (synthetic)",
        kind="image",
        train=train,
        test=part(rows // 5 // len(benchmark.classes)),
        clean=torch.ones(len(train), dtype=torch.bool),
        notes=(f"synthetic: generated images stand in for {benchmark.name}",),
        encoding=Encoding(benchmark.classes, ImageRows(shape)),
    )
