import numpy as np
import pytest
import torch

from diw.data import Bundle, Dataset
from diw.data.dataset import TensorInputs
from diw.data.marks import Verified
from diw.data.split import make_split, parse_trusted, stratified
from diw.errors import UsageError
from diw.shifts import parse_shift


def dataset(n: int, k: int = 4, seed: int = 0) -> Dataset:
    """Row i has input i, so rows can be recognised; classes are balanced."""
    inputs = torch.arange(n, dtype=torch.float32).add(1000 * seed).reshape(n, 1)
    return Dataset(TensorInputs(inputs), torch.arange(n) % k, tuple("abcdefgh"[:k]))


def bundle(n: int = 400, *, test: bool = True, trusted: bool = False, clean: bool = True) -> Bundle:
    return Bundle(
        name="numbers",
        kind="table",
        train=dataset(n),
        test=dataset(80, seed=1) if test else None,
        trusted=dataset(40, seed=2) if trusted else None,
        clean=torch.ones(n, dtype=torch.bool) if clean else None,
    )


def identity(data: Dataset) -> list[int]:
    return data.inputs.take(torch.arange(len(data))).flatten().long().tolist()


def test_trusted_rows_are_in_training_with_clean_labels():
    split = make_split(bundle(), shift="symmetric:0.9", trusted=100, seed=3)
    assert len(split.train) == 400
    assert len(split.trusted) == 100
    assert torch.equal(split.trusted.targets, torch.tensor(identity(split.trusted)) % 4)
    at = split.trusted_index
    assert [identity(split.train)[i] for i in at] == identity(split.trusted)
    assert torch.equal(split.train.targets[at], split.trusted.targets)
    assert not split.flipped[at].any()
    assert torch.equal(split.flipped, split.train.targets != split.true_labels)
    assert split.facts["trusted_in_train"] is True
    assert split.facts["trusted_rows"] == 100


@pytest.mark.parametrize("kind", [bool, int, np.uint8, float])
def test_truth_values_and_zeros_and_ones_are_a_mask(kind):
    """They were once the row numbers 0 and 1."""
    rows = [3, 17, 40, 50]
    mask = np.isin(np.arange(400), rows).astype(kind)
    if kind is float:
        with pytest.raises(UsageError, match=r"trusted: give a mask \(400,\) or row numbers"):
            make_split(bundle(), trusted=mask, seed=0)
        return
    for given in (mask, rows[::-1]):
        assert identity(make_split(bundle(), trusted=given, seed=0).trusted) == rows
    noisy = parse_shift("symmetric:0.9")
    labels = np.arange(400) % 4
    kept = noisy.apply(labels, 4, 0, protected=mask).targets
    assert np.array_equal(kept, noisy.apply(labels, 4, 0, protected=rows).targets)


def test_trusted_labels_can_be_made_wrong_wherever_they_are_used():
    right = make_split(bundle(), shift="symmetric:0.4", trusted=100, seed=3)
    split = make_split(bundle(), shift="symmetric:0.4", trusted=100, seed=3, trusted_wrong=0.1)
    assert identity(split.trusted) == identity(right.trusted)
    wrong = split.trusted.targets != right.trusted.targets
    assert int(wrong.sum()) == 10
    at = split.trusted_index
    assert torch.equal(split.train.targets[at], split.trusted.targets)
    assert torch.equal(split.flipped[at], wrong)
    others = torch.ones(len(split.train), dtype=torch.bool)
    others[at] = False
    assert torch.equal(split.train.targets[others], right.train.targets[others])
    assert torch.equal(split.true_labels, right.true_labels)
    with pytest.raises(UsageError, match="trusted_wrong: must be in"):
        make_split(bundle(), trusted=100, seed=3, trusted_wrong=1.0)


@pytest.mark.parametrize("shift", ["symmetric:0.9", "annotator:0.5", "prior:0.5,2+pair:0.6"])
def test_trusted_rows_keep_the_label_that_the_shift_would_have_given_them(shift):
    """With the right ones these are the pairs of somebody who verified some rows."""
    split = make_split(bundle(), shift=shift, trusted=100, seed=3, trusted_wrong=0.1)
    assert len(split.trusted_given) == len(split.trusted)
    right = torch.tensor(identity(split.trusted)) % 4
    others = torch.ones(len(split.train), dtype=torch.bool)
    others[split.trusted_index] = False
    rate = float(split.flipped[others].double().mean())
    assert float((split.trusted_given != right).double().mean()) == pytest.approx(rate, abs=0.2)
    assert make_split(bundle(), trusted=100, seed=3).trusted_given is None
    apart = make_split(bundle(), shift=shift, trusted=100, seed=3, trusted_in_train=False)
    assert apart.trusted_given is None


def test_verified_rows_are_trusted_with_their_right_labels():
    rows, right = np.array([2, 5, 9, 40]), np.array([3, 3, 1, 0])
    given = bundle().train.targets.numpy()[rows]
    split = make_split(bundle(), trusted=Verified(rows, given, right), seed=0)
    assert identity(split.trusted) == identity(bundle().train.subset(torch.from_numpy(rows)))
    assert split.trusted.targets.tolist() == right.tolist()
    assert split.train.targets[split.trusted_index].tolist() == right.tolist()
    assert split.trusted_given.tolist() == given.tolist()
    with pytest.raises(UsageError, match="shift: is simulated on labels that are right"):
        make_split(bundle(), shift="pair:0.1", trusted=Verified(rows, given, right), seed=0)


def test_trusted_rows_can_be_left_out_of_training():
    split = make_split(
        bundle(), shift="pair:0.3", trusted="5/class", seed=0, trusted_in_train=False
    )
    assert split.trusted.class_counts.tolist() == [5] * 4
    assert not set(identity(split.train)) & set(identity(split.trusted))
    assert len(split.train) == 380
    assert len(split.trusted_index) == 0
    assert split.facts["trusted_in_train"] is False


def test_the_seed_decides_everything():
    first, same, other = (
        make_split(bundle(), shift="symmetric:0.4", trusted=50, seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(first.train.targets, same.train.targets)
    assert identity(first.trusted) == identity(same.trusted)
    assert identity(first.trusted) != identity(other.trusted)
    assert not torch.equal(first.train.targets, other.train.targets)


def test_given_rows_are_taken_as_they_are():
    split = make_split(bundle(clean=False), trusted=[7, 3, 3], seed=0)
    assert identity(split.trusted) == [3, 7]


def test_a_trusted_file_joins_the_training_rows():
    split = make_split(bundle(trusted=True, clean=False), seed=0)
    assert identity(split.train)[-40:] == identity(split.trusted)
    assert len(split.train) == 440
    assert split.flipped is None
    assert split.true_labels is None
    assert split.true_weights is None
    apart = make_split(bundle(trusted=True, clean=False), seed=0, trusted_in_train=False)
    assert len(apart.train) == 400


def test_without_a_test_set_a_part_of_the_trusted_rows_is_scored_and_never_trained_on():
    split = make_split(bundle(test=False), shift="symmetric:0.4", trusted=40, seed=0)
    assert split.scored_on == "held-out trusted"
    assert len(split.test) == 12
    assert len(split.trusted) == 28
    assert not set(identity(split.test)) & set(identity(split.train))
    assert len(split.train) == 388
    assert torch.equal(split.test.targets, torch.tensor(identity(split.test)) % 4)


def test_a_given_test_set_is_scored_and_named():
    split = make_split(bundle(), trusted=10, seed=0)
    assert split.scored_on == "test"
    assert len(split.test) == 80
    part = make_split(bundle(), trusted=10, seed=0, test_rows=20)
    assert part.test.class_counts.tolist() == [5] * 4


def test_without_a_shift_clean_rows_have_weight_one():
    split = make_split(bundle(), trusted=10, seed=0)
    assert not split.flipped.any()
    assert torch.equal(split.true_weights, torch.ones(400, dtype=torch.float64))


def test_only_rows_marked_clean_are_drawn():
    marked = bundle()
    marked.clean[10:] = False
    split = make_split(marked, trusted=10, seed=0)
    assert identity(split.trusted) == list(range(10))
    assert split.flipped is None
    with pytest.raises(UsageError, match="only 10 are clean"):
        make_split(marked, trusted=11, seed=0)


@pytest.mark.parametrize(
    ("trusted", "message"),
    [
        (0, "at least one"),
        (401, "only 400"),
        ("101/class", "class 'a' has 100"),
        ("5/row", "N/class"),
        ("many", "N/class"),
        ("-3", "N/class"),
        ([], "no rows"),
        ([400], r"0\.\.399"),
        ([-1], r"0\.\.399"),
        (None, "give a file"),
    ],
)
def test_wrong_trusted_is_refused_in_one_line(trusted, message):
    with pytest.raises(UsageError, match=message) as error:
        make_split(bundle(), trusted=trusted, seed=0)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("trusted")


def test_unmarked_rows_are_not_taken_for_clean():
    with pytest.raises(UsageError, match="marked clean"):
        make_split(bundle(clean=False), trusted=10, seed=0)
    simulated = make_split(bundle(clean=False), shift="pair:0.2", trusted=10, seed=0)
    assert simulated.flipped is not None


def test_stratified_shares_are_within_one_row():
    labels = np.repeat([0, 1, 2], [100, 50, 7])
    rows = stratified(labels, 30, 0, "x")
    counts = np.bincount(labels[rows], minlength=3)
    assert len(set(rows.tolist())) == 30
    assert np.abs(counts - 30 * np.array([100, 50, 7]) / 157).max() <= 1


def test_trusted_texts(tmp_path):
    assert parse_trusted("500") == 500
    assert parse_trusted("10/class") == "10/class"
    assert parse_trusted("rows:3,17").tolist() == [3, 17]
    (tmp_path / "rows.txt").write_text("4\n8 15\n")
    assert parse_trusted(str(tmp_path / "rows.txt")).tolist() == [4, 8, 15]
    (tmp_path / "class").write_text("")
    assert parse_trusted(str(tmp_path / "class")) == tmp_path / "class"


@pytest.mark.parametrize(
    "text", ["rows:", "rows:1,x", "rows:99999999999999999999", "absent.txt", "absent.npz", "-5"]
)
def test_wrong_trusted_texts_are_refused(text):
    with pytest.raises(UsageError, match=r"^trusted: "):
        parse_trusted(text)
