"""A spec in words, for titles."""

import re
from dataclasses import dataclass

from diw.records import RunSpec

_DATA = {
    "embedded": "Fashion-MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "cifar-100": "CIFAR-100",
}
_MODELS = {"lenet5": "LeNet-5", "resnet32": "ResNet-32", "mlp": "MLP", "auto": "default network"}
_FLIPS = {"symmetric": "symmetric", "pair": "pair-flip"}


@dataclass(frozen=True)
class Description:
    """What was run."""

    title: str
    """The question: shift and data."""
    protocol: str
    """How it was asked: model, trusted samples, epochs, batch size."""


def describe(spec: RunSpec) -> Description:
    """Say in words what a run did; unknown names stay as they are."""
    parts = ["Embedded subset"] if spec.data == "embedded" else []
    parts.append(_MODELS.get(spec.model, spec.model))
    if spec.trusted is not None:
        parts.append(_trusted(spec.trusted))
    parts.append(count(spec.recipe.epochs, "epoch"))
    parts.append(f"batches of {spec.recipe.batch_size}")
    return Description(_title(_DATA.get(spec.data, spec.data), spec.shift), ", ".join(parts))


def _trusted(trusted: int | str) -> str:
    """A number, "N/class", or a file."""
    if isinstance(trusted, int):
        return count(trusted, "trusted sample")
    number, slash, _ = trusted.partition("/class")
    if slash and number.isdecimal():
        return f"{count(int(number), 'trusted sample')} per class"
    return f"trusted: {trusted}"


def _title(data: str, shift: str) -> str:
    if shift == "none":
        return f"{data}, no simulated shift"
    words = shift_in_words(shift)
    return f"{words[0].upper()}{words[1:]} on {data}"


def shift_in_words(shift: str) -> str:
    """`symmetric:0.4` as "40% symmetric label noise"; what is not known as it was given."""
    parts = re.split(r"\+(?=[a-z]+:)", shift)
    return " and ".join(map(_part_in_words, parts))


def _part_in_words(part: str) -> str:
    name, _, argument = part.partition(":")
    numbers = argument.split(",")
    try:
        match name:
            case "none":
                return "no simulated shift"
            case "symmetric" | "pair":
                return f"{_percent(numbers[0])} {_FLIPS[name]} label noise"
            case "matrix":
                return f"label noise by {argument}"
            case "contaminated":
                return f"{_percent(numbers[0])} contamination of the classes"
            case "prior":
                return f"class-prior shift ({_percent(numbers[0])} minority, {numbers[1]}:1)"
            case "longtail":
                return f"long-tailed classes ({numbers[0]}:1)"
            case "covariate":
                return f"covariate shift (strength {numbers[0]})"
            case _:
                return f"shift {part}"
    except (ValueError, IndexError):
        return f"shift {part}"


def _percent(fraction: str) -> str:
    return f"{100 * float(fraction):.4g}%"


def count(number: int, thing: str) -> str:
    """`2 seeds`, `1 seed`, `10,000 samples`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
