import pytest
import torch

from diw.training import evaluate
from tests.problems import tiny_split


def test_evaluate_counts_every_sample_and_balances_classes() -> None:
    split = tiny_split()

    class Always(torch.nn.Module):
        def forward(self, x):
            return torch.eye(3)[0].expand(len(x), 3)

    row = evaluate(Always(), split.test)
    share = (split.test.targets == 0).double().mean().item()
    assert row["test_accuracy"] == pytest.approx(share)
    assert row["balanced_accuracy"] == pytest.approx(1 / 3)
