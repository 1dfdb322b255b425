"""Results are shown in one line."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import diw
from diw.brief import in_a_line
from diw.data import load

X = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


@dataclass
class Thing:
    __repr__ = in_a_line

    part: Any
    _hidden: int = 0


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (np.zeros((3, 2)), "array (3, 2)"),
        (torch.zeros(5), "Tensor (5,)"),
        (1 / 3, "0.333333"),
        (np.arange(1000).tolist(), "[0, 1, 2, 3, ...]"),
        (None, "None"),
        (Thing(torch.zeros(5)), "Thing(part=Tensor (5,))"),
        (["one\ntwo"], r"['one\ntwo']"),
    ],
)
def test_a_part_is_as_long_as_one_reads(part: Any, shown: str) -> None:
    assert repr(Thing(part)) == f"Thing(part={shown})"


def results() -> list[Any]:
    objective = diw.Objective(torch.nn.Linear(4, 2), "uniform", trusted=(X[:50], Y[:50]))
    data = torch.utils.data.TensorDataset(X, Y)
    shares = np.random.default_rng(0).dirichlet([1, 1], 200)
    audit = diw.audit(
        probabilities=shares, given=Y.numpy(), verified=dict(enumerate(Y[:40].tolist()))
    )
    diagnosis = diw.diagnose(X.numpy(), Y.numpy(), X[:50].numpy(), Y[:50].numpy())
    match = diw.kmm(X[:, 0], X[:50, 1])
    result = objective((X, Y))
    return [match, result, result.weights, audit, audit.model, diagnosis, diw.IndexedDataset(data)]


@pytest.mark.filterwarnings("ignore::diw.errors.DIWWarning")
def test_what_a_user_gets_fits_into_some_lines() -> None:
    for result in [*results(), load(), load().train]:
        line = repr(result)
        assert line.startswith(f"{type(result).__name__}("), line
        assert "\n" not in line
        assert len(line) < 800, line
