"""10,000 training and 2,000 test images of Fashion-MNIST inside the package.

Xiao, Rasul and Vollgraf 2017, MIT licence (`LICENSE.fashion-mnist` beside this
file); drawn class by class by `scripts/make_embedded_data.py`.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from diw.data.benchmarks.catalogue import FASHION_MNIST
from diw.data.benchmarks.readers import clean_images
from diw.data.dataset import Bundle, Dataset, TensorInputs

EMBEDDED = "embedded"
"""The name of this data set."""

PATH = Path(__file__).with_name("fashion-mnist-subset.npz")
"""The file, made by the script and never by hand."""

SHA256 = "6929bdcc17a20dfe663af8678e5558504ae29db8460692f618b243697ed325d2"
"""The `digest` of its arrays."""


def digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 over names, shapes and bytes of arrays, whatever compressed them."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def read() -> dict[str, npt.NDArray[Any]]:
    """`train_images` (10000, 28, 28), `train_labels`, `train_rows`; the same for `test`."""
    with np.load(PATH, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def load_embedded() -> Bundle:
    """10,000 training and 2,000 test images of Fashion-MNIST, all labels clean."""
    arrays = read()

    def part(name: str) -> Dataset:
        images = torch.from_numpy(arrays[f"{name}_images"]).unsqueeze(1)
        labels = torch.from_numpy(arrays[f"{name}_labels"]).long()
        return Dataset(TensorInputs(images), labels, FASHION_MNIST.classes)

    return clean_images(EMBEDDED, part("train"), part("test"))
