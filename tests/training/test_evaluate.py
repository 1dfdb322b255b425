import pytest
import torch

from diw.training import evaluate
from diw.training.evaluate import calibration_error
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
    confidence = torch.eye(3)[0].softmax(0)[0].item()
    assert row["calibration_error"] == pytest.approx(abs(share - confidence))


def test_calibration_error_is_the_mean_gap_of_the_bins() -> None:
    # 0.95 and 0.97 share the last bin (half right), 0.5 is alone in the eighth and right.
    error = calibration_error(torch.tensor([0.95, 0.97, 0.5]), torch.tensor([True, False, True]))
    assert error == pytest.approx((abs(1 - 0.95 - 0.97) + 0.5) / 3)
    assert calibration_error(torch.ones(4), torch.ones(4, dtype=torch.bool)) == 0
    assert calibration_error(torch.zeros(4), torch.ones(4, dtype=torch.bool)) == 1
