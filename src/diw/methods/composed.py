"""Methods composed of four choices, and the paper's nine as a table of them.

`compose` makes a method of one choice per column, see `diw.methods.matching`;
a new combination is one more line.
"""

from dataclasses import dataclass
from types import new_class
from typing import Any, cast

from diw.methods.dynamic import EachBatch
from diw.methods.matching import (
    ByClass,
    Frozen,
    HiddenOutputs,
    LossValues,
    Matching,
    NoNetwork,
    PretrainedStart,
    RawInputs,
    Together,
    Trained,
)
from diw.methods.registry import find
from diw.methods.static import Once

Choice = type[Matching]


def compose(
    name: str,
    matched: Choice,
    network: Choice,
    when: Choice,
    classes: Choice,
    text: str,
    *,
    aliases: tuple[str, ...] = (),
    costs_like: str = "",
) -> type[Matching]:
    """A method from four choices, registered by being made (and for as long as it is kept).

    Args:
        name: Its canonical name.
        matched: What is matched: `LossValues`, `HiddenOutputs`, `Logits`, `RawInputs`.
        network: Which network looks: `NoNetwork`, `Frozen`, `Trained`, `PretrainedStart`.
        when: `Once` or `EachBatch`.
        classes: `ByClass` or `Together`.
        text: What it does, in a line.
        aliases: Other names.
        costs_like: A method whose steps cost as much, see `Method`; empty for that of `when`.
    """
    if issubclass(when, Once) and not issubclass(network, (NoNetwork, Frozen)):
        raise TypeError(f"{name}: only a pretrained network, or none, can look before training")
    if issubclass(network, NoNetwork) and not issubclass(matched, RawInputs):
        raise TypeError(f"{name}: without a network only the inputs can be matched")
    body = {
        "name": name,
        "aliases": aliases,
        "__doc__": text,
        "__module__": __name__,
        "__reduce__": _reduce,
        **({"costs_like": costs_like} if costs_like else {}),
    }
    made = new_class(
        name.replace("-", "_").upper(),
        (classes, matched, network, when),  # the order in which fields are listed, from the right
        exec_body=lambda namespace: namespace.update(body),
    )
    return cast(type[Matching], dataclass(kw_only=True)(made))


def _reduce(method: Matching) -> tuple[Any, ...]:
    """Pickle by the method's name: a class made here has no place to be imported from."""
    return _revive, (method.name,), vars(method)


def _revive(name: str) -> Any:
    return object.__new__(find(name))


# fmt: off
METHODS = (  # Fang et al. 2020, supplement, methods (1) to (9)
    #        name      matched        network          when       classes
    compose("iw",     RawInputs,     NoNetwork,       Once,      ByClass,
            "Matches the raw inputs of each class, once: "
            "importance weighting as before deep learning."),
    compose("siw-f",  HiddenOutputs, Frozen,          Once,      ByClass,
            "Matches the hidden outputs of a pretrained network, each class alone, once."),
    compose("siw-l",  LossValues,    Frozen,          Once,      Together,
            "Matches the loss values of a pretrained network, once."),
    compose("diw1-f", HiddenOutputs, Frozen,          EachBatch, ByClass,
            "Matches the hidden outputs of a frozen, pretrained network, each class alone.",
            costs_like="diw2-f"),
    compose("diw1-l", LossValues,    Frozen,          EachBatch, Together,
            "Matches the loss values of a frozen, pretrained network.", costs_like="diw"),
    compose("diw2-f", HiddenOutputs, Trained,         EachBatch, ByClass,
            "Matches the hidden outputs of the network being trained itself, each class alone."),
    compose("diw",    LossValues,    Trained,         EachBatch, Together,
            "Matches the loss values of the network being trained itself; "
            "what the paper calls DIW.", aliases=("diw2-l",)),
    compose("diw3-f", HiddenOutputs, PretrainedStart, EachBatch, ByClass,
            "Matches the hidden outputs of the network being trained, pretrained a little, "
            "by class.", costs_like="diw2-f"),
    compose("diw3-l", LossValues,    PretrainedStart, EachBatch, Together,
            "Matches the loss values of the network being trained, pretrained a little.",
            costs_like="diw"),
)
# fmt: on
