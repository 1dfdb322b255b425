"""Every registered method with its fields in all their kinds, and an objective that can run it."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from diw.methods import describe, find, make, methods
from diw.objective import Objective
from diw.step.batch import Batch
from tests.networks import plain_network, samples

N = 48
CLASSES = 3

# Fields that change what a method does, tried on every method that has them.
VARIANTS: dict[str, Any] = {
    "momentum": 0.5,
    "normalise": False,
    "noise": 0.4,
    "partition": False,
    "features": "output",
}


@dataclass(frozen=True)
class Case:
    """A method and some of its fields."""

    method: str
    fields: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.method, *(f"{k}={v}" for k, v in self.fields.items())])


# A method that starts late is tried without its warm-up.
READY: dict[str, dict[str, Any]] = {"remember": {"warmup_steps": 0, "block": 1}}

DEFAULTS = [Case(name, READY.get(name, {})) for name in methods()]
CASES = DEFAULTS + [
    Case(name, {field: value})
    for name, cls in methods().items()
    for field, value in VARIANTS.items()
    if field in {f.name for f in describe(cls)}
]
WEIGHING = [case for case in CASES if find(case.method).trains_on == "train"]
"""Those that weigh training samples: all but `clean`, which leaves the training data alone."""


def whole_train(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """A training set (N, 4) with labels, a third of them wrong."""
    inputs, targets = samples(N, seed=1, dtype=dtype, classes=CLASSES)
    wrong = torch.arange(N) % 3 == 0
    return inputs, torch.where(wrong, (targets + 1) % CLASSES, targets)


def true_weights() -> Tensor:
    """Zero for the wrong labels of `whole_train`, mean one."""
    return 1.5 * (torch.arange(N) % 3 != 0).double()


def batch(index: Tensor | slice | None = None, dtype: torch.dtype = torch.float32) -> Batch:
    """Some rows of the training set; all of them by default."""
    rows = torch.arange(N) if index is None else torch.arange(N)[index]
    inputs, targets = whole_train(dtype)
    return Batch(inputs[rows], targets[rows], rows)


def pretrained(network: nn.Module) -> nn.Module:
    """Another network of the same kind: other parameters, buffers that have moved."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(5)
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        network.train()(samples(N, seed=7, dtype=next(network.parameters()).dtype)[0])
    return network


def objective_of(
    case: Case,
    *,
    network: Any = plain_network,
    model: nn.Module | None = None,
    dtype: torch.dtype = torch.float32,
    trusted: int = 20,
    may_prepare: bool = True,
    **options: Any,
) -> Objective:
    """An objective past every warm-up that has all a method may ask for."""

    def pretrain(_epochs: int) -> nn.Module:
        assert may_prepare, "prepared twice"
        return pretrained(network(dtype))

    objective = Objective(
        model if model is not None else network(dtype),
        make(case.method, case.fields),
        samples(trusted, seed=2, dtype=dtype, classes=CLASSES),
        train=whole_train(dtype),
        true_weights=true_weights(),
        pretrain=pretrain,
        **options,
    )
    objective.start_epoch(100)
    return objective
