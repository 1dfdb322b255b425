"""How long runs take, from a few of their steps."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diw.runs import Recipe
from diw.training.many import Stopwatch
from diw.training.recorded import Recorded, execute, with_method
from tests.problems import TINY


def test_an_estimate_is_near_the_truth(tmp_path: Path) -> None:
    """Within a factor of ten, on a machine that may be busy: the order of magnitude is asked."""
    spec = with_method(replace(TINY, train_samples=4000, recipe=Recipe(epochs=4)), "diw")
    expected = Stopwatch().seconds([spec])
    seconds = execute(spec, tmp_path).metrics()[-1]["seconds"]
    assert seconds / 10 < expected < seconds * 10


def test_an_estimate_counts_epochs_pretraining_and_runs() -> None:
    watch = Stopwatch()
    one = watch.seconds([with_method(TINY, "uniform")])
    assert watch.seconds([with_method(TINY, "random")]) == one  # measured once for both
    longer = with_method(replace(TINY, recipe=replace(TINY.recipe, epochs=6)), "uniform")
    assert watch.seconds([longer]) == pytest.approx(2 * one)
    pretrained = with_method(TINY, "siw-l", {"pretraining": 3})
    assert watch.seconds([pretrained]) == pytest.approx(2 * one)
    assert watch.seconds([longer, longer]) == pytest.approx(4 * one)


@pytest.mark.parametrize("method", ["giw", "glc", "iw-t"])
def test_a_method_that_no_other_stands_for_is_timed_after_one_epoch_of_pretraining(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    pretrain = Recorded._pretrain

    def noted(recorded: Recorded, epochs: int) -> torch.nn.Module:
        asked.append(epochs)
        return pretrain(recorded, epochs)

    monkeypatch.setattr(Recorded, "_pretrain", noted)
    assert Stopwatch().seconds([with_method(TINY, method)]) > 0
    assert asked == [1]
