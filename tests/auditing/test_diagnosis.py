import numpy as np
import pytest

import diw
from diw.auditing import diagnose_data
from diw.data import Bundle, load
from diw.data.split import make_split
from diw.errors import UsageError
from diw.labels.crossfit import cross_fit, embed
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


def test_no_shift_is_rarely_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diw.auditing.shift_tests.PERMUTATIONS", 199)
    monkeypatch.setattr("diw.labels.crossfit.FEATURES", 100)
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
    labels = rng.integers(0, 2, 300)
    predicted = cross_fit(embed(rng.normal(size=(300, 5)), 0)[1], labels, 2, 0)
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


def test_wrong_arguments_are_named() -> None:
    x, y, *_ = draw(0, 50, 10)
    with pytest.raises(UsageError, match="X: expected rows of numbers"):
        diw.diagnose(x[:3], y, x, y)
    with pytest.raises(UsageError, match="X_trusted: holds NaN"):
        diw.diagnose(x, y, x * np.nan, y)
    with pytest.raises(UsageError, match="at least 5 of each"):
        diw.diagnose(x, y, x[:2], y[:2])


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
    assert (tmp_path / "found.json").exists()
    assert "no such file" in refused(
        "diagnose", "--data", train, "--trusted", "no.csv"
    ).lower() or ("there is no file" in refused("diagnose", "--data", train, "--trusted", "no.csv"))
