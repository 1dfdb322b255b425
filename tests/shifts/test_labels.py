import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare

from diw.errors import UsageError
from diw.seeding import numpy_generator
from diw.shifts import Contaminated, Matrix, Pair, Shift, Symmetric, parse_shift
from diw.shifts.labels import flip, read_matrix, reverse

N = 20_000
MIXTURE = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.3, 0.3, 0.4]])


def stochastic(k: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(k) * 0.7, size=k)


def rows_for(matrix: np.ndarray) -> int:
    """Rows, balanced over the classes, that give every possible transition ten expected cases."""
    return max(N, int(10 * len(matrix) / matrix[matrix > 0].min()))


def p_value(labels: np.ndarray, given: np.ndarray, matrix: np.ndarray) -> float:
    """χ² of the realised transitions against the matrix, all rows of it together."""
    k = len(matrix)
    found = np.zeros((k, k))
    np.add.at(found, (labels, given), 1)
    expected = np.bincount(labels, minlength=k)[:, None] * matrix
    possible = expected > 0
    assert expected[possible].min() >= 5  # below that χ² is no approximation
    assert (found[~possible] == 0).all()
    ones = int(((matrix > 0).sum(axis=1)).sum()) - k  # degrees of freedom: one sum a row is fixed
    if ones == 0:
        return 1.0
    cells = int(possible.sum())
    return chisquare(found[possible], expected[possible], ddof=cells - 1 - ones).pvalue


def test_matrices_are_the_papers():
    assert np.allclose(Pair(0.3).transition(3), [[0.7, 0.3, 0.0], [0.0, 0.7, 0.3], [0.3, 0.0, 0.7]])
    assert np.allclose(
        Symmetric(0.4).transition(3), [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    )


@pytest.mark.parametrize("k", [2, 3, 10, 100])
@pytest.mark.parametrize("rate", [0.0, 0.05, 0.4, 0.9])
@pytest.mark.parametrize("kind", [Pair, Symmetric])
def test_realised_rates_follow_the_matrix(kind, rate, k):
    matrix = kind(rate).transition(k)
    labels = np.arange(rows_for(matrix)) % k
    assert p_value(labels, flip(labels, matrix, numpy_generator(0, "x")), matrix) > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_any_matrix_is_followed(seed):
    matrix = 0.95 * stochastic(6, seed) + 0.05 / 6
    matrix[2] = np.eye(6)[4]
    labels = np.random.default_rng(seed).integers(0, 6, N)
    assert p_value(labels, flip(labels, matrix, numpy_generator(seed, "x")), matrix) > 1e-3


def test_the_chi_square_test_would_notice_a_wrong_rate():
    labels = np.arange(N) % 10
    drawn = flip(labels, Symmetric(0.42).transition(10), numpy_generator(0, "x"))
    assert p_value(labels, drawn, Symmetric(0.4).transition(10)) < 1e-3


@given(
    hnp.arrays(np.int64, st.integers(0, 50), elements=st.integers(0, 4)),
    st.integers(0, 2**31),
    st.sampled_from(["symmetric:0", "pair:0", "contaminated:0", "prior:0,5", "longtail:1", "none"]),
)
def test_rate_zero_is_the_identity(labels, seed, text):
    shifted = parse_shift(text).apply(labels, 5, seed)
    assert np.array_equal(shifted.targets, labels)
    assert np.array_equal(shifted.keep, np.arange(len(labels)))
    if len(labels):
        assert np.array_equal(shifted.true_weights, np.ones(len(labels)))


@given(st.integers(0, 2**31), st.sampled_from(["symmetric:0.8", "pair:0.8"]))
def test_protected_labels_stay_and_other_draws_do_not_depend_on_them(seed, text):
    labels = np.arange(200) % 5
    protected = np.arange(0, 200, 7)
    with_them = parse_shift(text).apply(labels, 5, seed, protected=protected)
    without = parse_shift(text).apply(labels, 5, seed)
    assert np.array_equal(with_them.targets[protected], labels[protected])
    others = np.setdiff1d(np.arange(200), protected)
    assert np.array_equal(with_them.targets[others], without.targets[others])


def test_true_weights_of_symmetric_noise_are_flat_on_intact_rows():
    labels = np.arange(1000) % 10
    shifted = parse_shift("symmetric:0.4").apply(labels, 10, 1)
    intact = shifted.targets == labels
    assert (shifted.true_weights[~intact] == 0).all()
    assert np.allclose(shifted.true_weights[intact], 1000 / intact.sum())
    assert shifted.facts["flip_rate"] == pytest.approx((~intact).mean())


def test_true_weights_of_a_matrix_are_one_over_its_diagonal():
    matrix = np.array([[0.5, 0.5], [0.0, 1.0]])
    labels = np.arange(1000) % 2
    shifted = Shift((Matrix(matrix),)).apply(labels, 2, 0)
    intact = shifted.targets == labels
    assert (shifted.true_weights[~intact] == 0).all()
    zero, one = (shifted.true_weights[intact & (labels == c)] for c in (0, 1))
    assert np.allclose(zero / one[0], 2)
    assert shifted.true_weights.mean() == pytest.approx(1)


def test_two_flips_in_a_row_know_the_label_that_came_back():
    labels = np.arange(60_000) % 2
    shifted = parse_shift("pair:0.4+pair:0.4").apply(labels, 2, 0)
    assert (shifted.targets != labels).mean() == pytest.approx(2 * 0.4 * 0.6, abs=0.01)
    assert np.array_equal(shifted.true_weights > 0, shifted.targets == labels)


@given(st.integers(0, 2**31))
def test_the_seed_decides(seed):
    labels = np.arange(300) % 10
    shift = parse_shift("symmetric:0.5")
    first = shift.apply(labels, 10, seed)
    assert np.array_equal(first.targets, shift.apply(labels, 10, seed).targets)
    assert not np.array_equal(first.targets, shift.apply(labels, 10, seed + 1).targets)


def test_matrix_files(tmp_path):
    matrix = stochastic(3, 0)
    np.save(tmp_path / "t.npy", matrix)
    np.savetxt(tmp_path / "t.csv", matrix, delimiter=",")
    np.savetxt(tmp_path / "t.txt", matrix)
    labels = np.arange(300) % 3
    results = [
        parse_shift(f"matrix:{tmp_path / name}").apply(labels, 3, 0).targets
        for name in ("t.npy", "t.csv", "t.txt")
    ]
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0.5,0.5\n0.5,0.6\n", "row 1 sums to 1.1"),
        ("0.5,0.5\n", "square"),
        ("1,0\n0\n", "not a matrix"),
        ("a,b\nc,d\n", "not a matrix"),
        ("-1,2\n0,1\n", "not negative"),
        ("nan,1\n0,1\n", "finite"),
        ("", "square"),
    ],
)
def test_wrong_matrix_files_are_named(tmp_path, content, message):
    file = tmp_path / "t.csv"
    file.write_text(content)
    with pytest.raises(UsageError, match=message) as error:
        read_matrix(str(file), 2)
    assert str(file) in str(error.value)
    with pytest.raises(UsageError, match="no such file"):
        read_matrix(str(tmp_path / "absent.csv"), 2)


def test_a_matrix_of_another_size_is_refused():
    with pytest.raises(UsageError, match="3 x 3, but the data have 4 classes"):
        Shift((Matrix(np.eye(3)),)).apply(np.arange(8) % 4, 4, 0)


def test_reversal_by_hand():
    # p(ỹ) = 1/2 each; joint [[.4, .1], [.2, .3]]; q = (.6, .4)
    marginal, transition = reverse([[0.8, 0.2], [0.4, 0.6]], [0.5, 0.5])
    assert np.allclose(marginal, [0.6, 0.4])
    assert np.allclose(transition, [[2 / 3, 1 / 3], [1 / 4, 3 / 4]])


def test_each_given_class_is_the_mixture_asked_for():
    labels = np.arange(60_000) % 3
    shifted = Shift((Contaminated(MIXTURE),)).apply(labels, 3, 0)
    true = labels[shifted.keep]
    for label, row in enumerate(MIXTURE):
        found = np.bincount(true[shifted.targets == label], minlength=3)
        possible = row > 0
        assert found[~possible].sum() == 0
        assert chisquare(found[possible], found.sum() * row[possible]).pvalue > 1e-3
    shares = np.bincount(shifted.targets) / len(shifted.targets)
    assert np.allclose(shares, 1 / 3, atol=0.01)


def test_true_weights_of_a_contamination_bring_back_the_clean_distribution():
    labels = np.arange(60_000) % 3
    shifted = Shift((Contaminated(MIXTURE),)).apply(labels, 3, 0)
    flipped = shifted.targets != labels[shifted.keep]
    assert (shifted.true_weights[flipped] == 0).all()
    weighted = np.bincount(shifted.targets, shifted.true_weights)
    assert np.allclose(weighted / weighted.sum(), 1 / 3, atol=0.01)


def test_on_balanced_classes_an_even_contamination_drops_nothing():
    labels = np.arange(5_000) % 10
    shifted = parse_shift("contaminated:0.3").apply(labels, 10, 0)
    assert len(shifted.keep) == 5_000
    assert (shifted.targets != labels).mean() == pytest.approx(0.3, abs=0.03)


def test_rows_protected_from_contamination_stay():
    labels = np.arange(600) % 3
    protected = np.arange(30)
    shifted = Shift((Contaminated(MIXTURE),)).apply(labels, 3, 0, protected=protected)
    places = np.searchsorted(shifted.keep, protected)
    assert np.array_equal(shifted.keep[places], protected)
    assert np.array_equal(shifted.targets[places], labels[protected])


def test_a_mixture_of_classes_without_rows_is_refused():
    with pytest.raises(UsageError, match="every class that is mixed in"):
        Shift((Contaminated(MIXTURE),)).apply(np.array([0, 2, 2]), 3, 0)
    with pytest.raises(UsageError, match="4 classes"):
        Shift((Contaminated(MIXTURE),)).apply(np.arange(8) % 4, 4, 0)
