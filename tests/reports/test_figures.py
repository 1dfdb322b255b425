"""Charts hold the numbers of the records; the page's own test draws them in a browser."""

from pathlib import Path

import numpy as np
import pytest

from diw.reports.comparison import compare_runs
from diw.reports.figures import (
    COLOURS,
    accuracy_chart,
    curve,
    ess_chart,
    looks,
    pooled_weights,
    settled_range,
    translucent,
    weight_charts,
)
from diw.runs import Run

from .factory import make_run


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [make_run(tmp_path, method, seed) for method in ("uniform", "diw") for seed in (1, 2)]


def test_curves_are_means_over_seeds(runs: list[Run]) -> None:
    (comparison,) = compare_runs(runs)
    found = curve(comparison.methods["diw"], "test_accuracy")
    assert found is not None
    values = np.array([[row["test_accuracy"] for row in run.metrics()] for run in runs[2:4]])
    assert found.epochs.tolist() == list(range(1, 13))
    assert found.mean == pytest.approx(values.mean(axis=0))
    assert found.std == pytest.approx(np.abs(values[0] - values[1]) / np.sqrt(2))


def test_one_seed_has_no_band(tmp_path: Path) -> None:
    (comparison,) = compare_runs([make_run(tmp_path)])
    figure = accuracy_chart(comparison, looks(comparison.methods))
    assert len(figure.data) == 1
    assert "one seed" in figure.caption


def test_no_size_figure_without_weights(tmp_path: Path) -> None:
    (comparison,) = compare_runs([make_run(tmp_path, "clean")])
    assert ess_chart(comparison, looks(comparison.methods)) is None
    assert weight_charts(comparison) == []


def test_histograms_hold_every_sample_once(runs: list[Run]) -> None:
    (comparison,) = compare_runs(runs)
    (figure,) = weight_charts(comparison)
    assert [trace["name"] for trace in figure.data] == ["intact", "mislabelled"]
    for trace in figure.data:
        assert sum(trace["y"][:-1]) == pytest.approx(1, abs=1e-4)
    weights = pooled_weights(comparison.methods["diw"])
    assert sum(part.size for part in weights.values()) == 800
    assert weights["intact"].mean() > 1 > weights["mislabelled"].mean()


def test_one_distribution_where_the_truth_is_unknown(tmp_path: Path) -> None:
    (comparison,) = compare_runs([make_run(tmp_path, samples={"targets": np.arange(400) % 10})])
    (figure,) = weight_charts(comparison)
    assert [trace["name"] for trace in figure.data] == ["all samples"]


def test_class_prior_shift_is_shown_by_true_weight(tmp_path: Path) -> None:
    samples = {"targets": np.arange(400) % 10, "true_weights": np.repeat([0.8, 20.8], [390, 10])}
    (comparison,) = compare_runs([make_run(tmp_path, samples=samples)])
    assert [trace["name"] for trace in weight_charts(comparison)[0].data] == [
        "true weight 0.8",
        "true weight 20.8",
    ]


def test_the_axis_leaves_out_the_first_steep_epochs(runs: list[Run]) -> None:
    (comparison,) = compare_runs(runs)
    curves = [curve(trials, "test_accuracy") for trials in comparison.methods.values()]
    low, high = settled_range([one for one in curves if one is not None])
    late = np.concatenate([one.mean[1:] for one in curves if one is not None])
    room = 0.08 * np.ptp(late)
    assert (low, high) == pytest.approx((late.min() - room, late.max() + room))


def test_looks_differ_for_every_method_of_the_paper() -> None:
    labels = [f"method {place}" for place in range(14)]
    assert len(set(looks(labels).values())) == 14
    assert looks(reversed(labels)) == looks(labels)
    assert translucent(COLOURS[0], 0.5) == "rgba(0,114,178,0.5)"
