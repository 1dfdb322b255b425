import numpy as np
import pytest

import diw
from diw.auditing import diagnose_data
from diw.data import Bundle, load
from diw.data.split import make_split
from diw.errors import UsageError
from diw.labels.crossfit import Embedding, cross_fit
from diw.labels.transitions import estimate_noise
from tests.own_data import done, refused, write_csv


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load()


def draw(seed: int, n: int = 800, m: int = 150):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n + m)
    x = rng.normal(size=(n + m, 6)) + 2.5 * np.eye(6)[y]
    return x[:n], y[:n], x[n:], y[n:], rng


def test_no_shift_is_rarely_called_one() -> None:
    called = sum(
        bool(diw.diagnose(*draw(seed, 200, 60)[:4], seed=seed).shifts) for seed in range(20)
    )
    assert called <= 3  # at 5% more than three have the probability 0.016


def test_shifts_are_named() -> None:
    x, y, x_trusted, y_trusted, rng = draw(0)
    noisy = np.where(rng.random(800) < 0.3, (y + 1) % 3, y)
    found = diw.diagnose(x, noisy, x_trusted, y_trusted)
    assert found.shifts == ("label noise",)
    assert found.method == "remember"
    assert found.noise.low <= (noisy != y).mean() <= found.noise.high
    # Class i is labelled i + 1: the largest entry off the diagonal of each row.
    off = found.noise.transitions - np.diag(np.diag(found.noise.transitions))
    assert off.argmax(1).tolist() == [1, 2, 0]
    kept = (y > 0) | (rng.random(800) < 0.1)
    found = diw.diagnose(x[kept], y[kept], x_trusted, y_trusted)
    assert found.shifts == ("class-prior shift",)
    assert "class 0 is" in found.sentence
    assert found.ratios[0, 1] > 3
    found = diw.diagnose(x + np.array([0, 0, 0, 0, 1, 1]), y, x_trusted, y_trusted)
    assert found.shifts == ("covariate shift",)
    found = diw.diagnose(x, y, x_trusted, y_trusted)
    assert found.shifts == ()
    assert found.sentence.startswith("No evidence of a shift")
    assert found.noise.low == 0


def test_labels_without_relation_to_the_inputs_tell_nothing_of_wrong_ones() -> None:
    """Intervals such as 0.49 to 1 were once given."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(550, 5)), rng.integers(0, 3, 550)
        found = diw.diagnose(x[:500], y[:500], x[500:], y[500:], seed=seed)
        assert found.noise.low < 0.05
        assert found.noise.high > 0.9


@pytest.mark.parametrize("unit", [1e4, 1e-4])
def test_units_hide_no_shift(unit: float) -> None:
    x, y, x_trusted, y_trusted, _ = draw(0)
    x[:, 5] += 3
    scale = np.array([unit, 1, 1, 1, 1, 1])
    found = diw.diagnose(x * scale, y, x_trusted * scale, y_trusted)
    assert found.shifts == ("covariate shift",)


def test_time_stamps_keep_their_differences() -> None:
    """In float32 an hour around 1.7e9 seconds is a handful of values, a minute is none."""
    x, y, x_trusted, y_trusted, rng = draw(0, 300, 100)
    early, late = 1.7e9 + 30 * rng.random(300), 1.7e9 + 30 + 30 * rng.random(100)
    found = diw.diagnose(np.c_[early, x], y, np.c_[late, x_trusted], y_trusted)
    assert "covariate shift" in found.shifts
    assert found.p_values["features"] == 0.001


def test_rows_that_are_trusted_too_are_left_out_and_tell_how_many_labels_are_wrong() -> None:
    called = 0
    for seed in range(10):
        x, y, x_trusted, y_trusted, _ = draw(seed, 300, 60)
        both, given = np.concatenate([x, x_trusted]), np.concatenate([y, y_trusted])
        found = diw.diagnose(both, given, x_trusted, y_trusted, seed=seed)
        assert (found.overlap, found.verified, found.train) == (60, 60, 300)
        assert found.noise.low == 0
        called += bool(found.shifts)
    assert called <= 2
    wrong = np.random.default_rng(0).random(360) < 0.3
    found = diw.diagnose(both, np.where(wrong, (given + 1) % 3, given), x_trusted, y_trusted)
    assert found.noise.low <= wrong.mean() <= found.noise.high
    assert found.shifts[0] == "label noise"


def test_rows_that_coincide_by_chance_stay() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (360, 4)), rng.integers(0, 2, 360)
    assert diw.diagnose(x[:300], y[:300], x[300:], y[300:]).overlap == 0


def test_errors_that_follow_from_the_inputs_are_named() -> None:
    """What a rule gets wrong is learned as if it were right: trusted labels fit worse."""
    x, y, x_trusted, y_trusted, _ = draw(0, 800, 200)
    rule = np.where(x[:, 5] > 0.3, 0, y)
    found = diw.diagnose(x, rule, x_trusted, y_trusted)
    assert found.shifts[0] == "systematic label errors"
    assert not found.share_known
    assert "Check some rows of the training data" in found.sentence
    assert found.as_json()["wrong_labels"]["share"] is None
    found = diw.diagnose(  # the same rows, with both labels known, tell it
        np.concatenate([x, x_trusted]),
        np.concatenate([rule, np.where(x_trusted[:, 5] > 0.3, 0, y_trusted)]),
        x_trusted,
        y_trusted,
    )
    assert found.noise.low <= (rule != y).mean() <= found.noise.high


def test_many_classes_are_diagnosed() -> None:
    rng = np.random.default_rng(0)
    y, x = rng.integers(0, 300, 1200), rng.normal(size=(1200, 8))
    assert len(diw.diagnose(x[:1000], y[:1000], x[1000:], y[1000:]).classes) > 290


@pytest.mark.parametrize(
    ("shift", "name"),
    [("symmetric:0.4", "label noise"), ("prior:0.2,100", "class-prior shift")],
)
def test_on_the_embedded_images(bundle: Bundle, shift: str, name: str) -> None:
    trusted = 200 if name == "label noise" else "10/class"
    split = make_split(bundle, shift=shift, trusted=trusted, seed=1, trusted_in_train=False)
    import torch

    some = split.train.subset(torch.arange(0, len(split.train), 4))
    assert diagnose_data(some, split.trusted).shifts == (name,)


def test_predictions_are_of_a_classifier_that_has_not_seen_the_sample() -> None:
    """Labels without any relation to the inputs cannot be predicted."""
    rng = np.random.default_rng(0)
    labels, x = rng.integers(0, 2, 300), rng.normal(size=(300, 5))
    embedding = Embedding.fit(x, 0)
    predicted = cross_fit(embedding.features(embedding.components(x)), labels, 2, 0)
    assert predicted.sum(1) == pytest.approx(1)
    assert predicted[np.arange(300), labels].mean() == pytest.approx(0.5, abs=0.06)


def test_noise_of_perfect_predictions_is_the_count() -> None:
    rng = np.random.default_rng(3)
    true = rng.integers(0, 4, 2000)
    given = np.where(rng.random(2000) < 0.2, rng.integers(0, 4, 2000), true)
    sure = np.eye(4) * 0.96 + 0.01
    found = estimate_noise(sure[true], given, sure[true[:300]], true[:300], 0)
    assert found.share == pytest.approx((given != true).mean(), abs=0.01)
    table = np.zeros((4, 4))
    np.add.at(table, (true, given), 1)
    assert found.transitions == pytest.approx(table / table.sum(1, keepdims=True), abs=0.03)


X, Y, *_ = draw(0, 50, 10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X[:3], Y, X, Y), "X: has 3 rows for 50 labels"),
        ((X[:, 0], Y, X, Y), "X: expected rows of numbers"),
        ((X, Y, X * np.nan, Y), "X_trusted: holds NaN"),
        ((X, Y, X[:, :2], Y), r"X_trusted: rows of shape \(2,\), those of X have \(6,\)"),
        ((X, Y, X[:2], Y[:2]), "at least 5 of each"),
        ((X, Y, X, Y), "0 training and 50 trusted samples; .* apart from each other"),
        ((X, np.where(Y == 1, np.nan, Y), X, Y), "y: row .* has no label"),
        ((X, X[:, 0], X, Y), "y: 50 different values in 50 rows are a quantity"),
        ((X, X[:, :2] > 0, X, Y), "several labels per row are not supported"),
        ((X, Y, X, Y.astype(str)), "y_trusted: . is of another kind than y"),
    ],
)
def test_wrong_arguments_are_named(arguments, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        diw.diagnose(*arguments)


def test_the_command(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, trusted = write_csv(tmp_path / "a.csv", 120, 0), write_csv(tmp_path / "b.csv", 40, 1)
    out = done(
        *("diagnose", "--data", train, "--trusted", trusted, "--label", "status"),
        *("--json", "found.json"),
    )
    assert "adjusted p" in out
    assert "wrong labels: " in out
    assert "as broken" in out
    assert f"diw train --data {train} --label status --trusted {trusted} --method uniform" in out
    assert (tmp_path / "found.json").exists()
    assert "no such file" in refused(
        "diagnose", "--data", train, "--trusted", "no.csv"
    ).lower() or ("there is no file" in refused("diagnose", "--data", train, "--trusted", "no.csv"))
