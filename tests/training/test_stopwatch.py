"""How long runs take, from a few of their steps."""

from dataclasses import replace
from pathlib import Path

import pytest

from diw.runs import Recipe
from diw.training.many import Stopwatch
from diw.training.recorded import execute, with_method
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
