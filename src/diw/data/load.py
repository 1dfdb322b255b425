"""The front door: a name or a path in, a `Bundle` out."""

import torch

from diw.data import embedded
from diw.data.dataset import Bundle, Dataset
from diw.data.inputs import TensorInputs
from diw.errors import UsageError

FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def load(data: str | None = None) -> Bundle:
    """Read a data set by name.

    Args:
        data: None or `"embedded"` for the Fashion-MNIST subset inside the package.
    """
    if data is None or data == "embedded":
        return load_embedded()
    raise UsageError(f"data: unknown data set {data!r}; choose embedded")


def load_embedded() -> Bundle:
    """10,000 training and 2,000 test images of Fashion-MNIST, all labels clean."""
    arrays = embedded.read()

    def part(name: str) -> Dataset:
        images = torch.from_numpy(arrays[f"{name}_images"]).unsqueeze(1)
        labels = torch.from_numpy(arrays[f"{name}_labels"]).long()
        return Dataset(TensorInputs(images), labels, FASHION_CLASSES)

    train = part("train")
    return Bundle(
        name="embedded",
        kind="image",
        train=train,
        test=part("test"),
        clean=torch.ones(len(train), dtype=torch.bool),
    )
