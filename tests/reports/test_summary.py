from pathlib import Path

import numpy as np
import pytest

from diw.errors import UsageError
from diw.reports.summary import remark, results_json, summarise
from diw.runs import Run, Writer

from .factory import make_run, make_spec

PROMISED = (
    "method",
    "seed",
    "last_accuracy",
    "best_accuracy",
    "weight_auroc",
    "ess",
    "seconds",
    "run",
)


def test_accuracies_are_those_of_the_metrics(tmp_path: Path) -> None:
    run = make_run(tmp_path, "uniform", epochs=15)
    accuracies = [row["test_accuracy"] for row in run.metrics()]
    summary = summarise(run)
    assert summary.last_accuracy == accuracies[-1]
    assert summary.best_accuracy == max(accuracies) > summary.last_accuracy
    assert summary.last10_accuracy == pytest.approx(sum(accuracies[5:]) / 10)
    assert summary.seconds == run.metrics()[-1]["seconds"]
    assert summary.epochs == 15


def test_weights_that_tell_flipped_labels_have_a_high_auroc(tmp_path: Path) -> None:
    assert (summarise(make_run(tmp_path, "diw")).weight_auroc or 0) > 0.99
    guessing = summarise(make_run(tmp_path, "random", n=2000)).weight_auroc
    assert guessing == pytest.approx(0.5, abs=0.05)


def hand_made(folder: Path, ledger: list[list[float]], weighted: list[bool]) -> Run:
    run = Run.create(folder, make_spec().as_json())
    run.write_samples(targets=np.arange(4), flipped=np.array([False, False, True, True]))
    journal = Writer(run.folder, len(ledger), 4)
    for place, flag in enumerate(weighted):
        row = {"epoch": place + 1, "test_accuracy": 0.5, "seconds": 1.0, "weighted": flag}
        journal.append(row | {"ess": 1.0 if not flag else 0.25}, np.array(ledger[place]))
    run.finish()
    return run


def test_only_the_last_ten_weighted_epochs_count(tmp_path: Path) -> None:
    telling, wrong = [2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 50.0, 50.0]
    ledger = [wrong] + [wrong] + [telling] * 10 + [wrong]
    summary = summarise(hand_made(tmp_path, ledger, [False, True] + [True] * 10 + [False]))
    assert summary.weight_auroc == 1.0
    assert summary.ess == 0.25


def test_epochs_that_did_not_see_a_sample_do_not_count(tmp_path: Path) -> None:
    nan = float("nan")
    ledger = [[3.0, nan, 1.0, nan], [nan, nan, 1.0, 2.0]]
    # Seen: intact at 3; flipped at 1 and 2. The sample that no epoch saw has no weight at all.
    assert summarise(hand_made(tmp_path, ledger, [True, True])).weight_auroc == 1.0


@pytest.mark.parametrize("method", ["clean", "uniform"])
def test_no_auroc_without_weights_that_differ(tmp_path: Path, method: str) -> None:
    assert summarise(make_run(tmp_path, method)).weight_auroc is None


def test_no_auroc_where_the_truth_is_unknown_or_nothing_was_flipped(tmp_path: Path) -> None:
    targets = np.arange(400) % 10
    unknown = make_run(tmp_path / "a", samples={"targets": targets})
    none = make_run(tmp_path / "b", samples={"targets": targets, "flipped": targets < 0})
    assert summarise(unknown).weight_auroc is None
    assert summarise(none).weight_auroc is None


def test_effective_sample_size(tmp_path: Path) -> None:
    assert summarise(make_run(tmp_path, "clean")).ess is None
    assert summarise(make_run(tmp_path, "uniform")).ess == 1.0
    assert 0 < (summarise(make_run(tmp_path, "diw")).ess or 0) < 1


def test_classes_that_are_not_balanced_are_noticed(tmp_path: Path) -> None:
    assert summarise(make_run(tmp_path / "a")).balanced_classes
    assert not summarise(make_run(tmp_path / "b", balanced_gap=0.01)).balanced_classes
    skewed = {"targets": np.repeat([0, 1], [390, 10])}
    assert not summarise(make_run(tmp_path / "c", samples=skewed)).balanced_classes


def test_json_has_the_promised_keys(tmp_path: Path) -> None:
    summary = summarise(make_run(tmp_path, "clean", seed=4))
    content = results_json({"shift": "none"}, [summary])
    assert content["spec"] == {"shift": "none"}
    (result,) = content["results"]
    assert set(PROMISED) <= set(result)
    assert (result["method"], result["seed"], result["weight_auroc"]) == ("clean", 4, None)


def test_a_run_without_an_epoch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no finished epoch"):
        summarise(Run.create(tmp_path / "run", make_spec().as_json()))


def test_distances_to_the_true_weights_are_averaged_over_the_last_weighted_epochs(
    tmp_path: Path,
) -> None:
    true = np.tile([0.5, 1.5], 200)
    run = make_run(tmp_path, "diw", samples={"targets": np.zeros(400, int), "true_weights": true})
    window = run.ledger()[2:].astype(np.float64)  # ten of eleven weighted epochs
    summary = summarise(run)
    assert summary.weight_mae == pytest.approx(np.abs(window - true).mean())
    expected = np.sqrt(((window - true) ** 2).mean(axis=1)).mean()
    assert summary.weight_rmse == pytest.approx(expected)


def test_uniform_weights_have_a_distance_too_and_clean_ones_have_none(tmp_path: Path) -> None:
    samples = {"targets": np.zeros(400, int), "true_weights": np.tile([0.5, 1.5], 200)}
    uniform = summarise(make_run(tmp_path, "uniform", samples=samples))
    assert (uniform.weight_mae, uniform.weight_rmse) == (0.5, 0.5)
    clean = summarise(make_run(tmp_path, "clean", samples=samples))
    assert clean.weight_mae is None
    assert summarise(make_run(tmp_path, "diw")).weight_mae is None  # the truth is not known


@pytest.mark.parametrize(
    ("accuracy", "balanced", "losses", "said"),
    [
        (0.5, 0.5, [0.7, 0.7, 0.69, 0.7, 0.7], "never moved"),
        (0.9, 0.5, [0.7, 0.5, 0.4, 0.35, 0.33], "hardly better than guessing"),
        (1.0, 1.0, [0.7, 0.5, 0.3, 0.2, 0.1], None),
    ],
)
def test_a_run_that_learned_nothing_is_named(
    tmp_path: Path, accuracy: float, balanced: float, losses: list[float], said: str | None
) -> None:
    spec = make_spec("uniform", epochs=len(losses))
    run = Run.create(spec.run(tmp_path).folder, spec.as_json())
    run.write_samples(targets=np.arange(6) % 2)
    journal = Writer(run.folder, len(losses), 6)
    for epoch, loss in enumerate(losses, 1):
        row = {"epoch": epoch, "train_loss": loss, "test_accuracy": accuracy, "seconds": 1.0}
        journal.append(row | {"balanced_accuracy": balanced, "weighted": False}, np.ones(6))
    run.finish()
    remarked = remark(summarise(run))
    assert (said in (remarked or "")) if said else remarked is None
