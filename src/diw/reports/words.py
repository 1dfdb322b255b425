"""A spec in words, for titles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DATA = {
    "embedded": "Fashion-MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "cifar-100": "CIFAR-100",
}
_MODELS = {"lenet5": "LeNet-5", "resnet32": "ResNet-32", "mlp": "MLP"}
_FLIPS = {"symmetric": "symmetric", "pair": "pair-flip"}


@dataclass(frozen=True)
class Description:
    """What was run."""

    title: str
    """The question: shift and data."""
    protocol: str
    """How it was asked: model, trusted samples, epochs, batch size."""


def describe(spec: Mapping[str, Any]) -> Description:
    """Say in words what runs with `spec` in common have done; unknown names stay as they are."""
    data = str(spec.get("data", "own data"))
    parts = ["Embedded subset"] if data == "embedded" else []
    if "model" in spec:
        parts.append(_MODELS.get(str(spec["model"]), str(spec["model"])))
    trusted = spec.get("trusted")
    if isinstance(trusted, int):
        parts.append(count(trusted, "trusted sample"))
    elif trusted is not None:
        parts.append(f"trusted: {trusted}")
    if "epochs" in spec:
        parts.append(count(int(spec["epochs"]), "epoch"))
    if "batch_size" in spec:
        parts.append(f"batches of {spec['batch_size']}")
    return Description(
        _title(_DATA.get(data, data), str(spec.get("shift", "none"))), ", ".join(parts)
    )


def _title(data: str, shift: str) -> str:
    if shift == "none":
        return f"{data}, no simulated shift"
    words = shift_in_words(shift)
    return f"{words[0].upper()}{words[1:]} on {data}"


def shift_in_words(shift: str) -> str:
    """`symmetric:0.4` as "40% symmetric label noise"; what is not known as it was given."""
    name, _, argument = shift.partition(":")
    if name == "none":
        return "no simulated shift"
    try:
        rate = float(argument)
    except ValueError:
        return f"shift {shift}"
    if name in _FLIPS:
        return f"{100 * rate:.4g}% {_FLIPS[name]} label noise"
    return f"shift {shift}"


def count(number: int, thing: str) -> str:
    """`2 seeds`, `1 seed`, `10,000 samples`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
