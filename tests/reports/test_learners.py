"""Other learners' accuracies are kept next to the runs, and found again by setting and seed."""

from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.reports.comparison import Comparison, compare_runs
from diw.reports.learners import FILE, keep_learners, kept_learners, learners_table
from tests.reports.factory import make_run


def comparison(root: Path, *, shift: str = "symmetric:0.4") -> Comparison:
    runs = [
        make_run(root, method, seed=seed, shift=shift)
        for method in ("uniform", "diw")
        for seed in (1, 2)
    ]
    (found,) = compare_runs(runs)
    return found


def test_scores_of_two_calls_are_kept_together(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    assert kept_learners(found) == {}
    keep_learners(found, {"SVC, all rows": {1: 0.5}}, tmp_path)
    keep_learners(found, {"SVC, all rows": {2: 0.6}, "SVC, weights of diw": {1: 0.7}}, tmp_path)
    assert kept_learners(found) == {
        "SVC, all rows": {1: 0.5, 2: 0.6},
        "SVC, weights of diw": {1: 0.7},
    }


def test_other_settings_seeds_and_methods_are_left_out(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    other = comparison(tmp_path, shift="pair:0.3")
    keep_learners(other, {"SVC, all rows": {1: 0.1}}, tmp_path)
    keep_learners(found, {"SVC, weights of remember": {1: 0.2}}, tmp_path)
    keep_learners(found, {"SVC, trusted rows": {1: 0.3, 9: 0.4}}, tmp_path)
    assert kept_learners(found) == {"SVC, trusted rows": {1: 0.3}}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    for text in ("{", "[1]"):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(UsageError, match=FILE):
            kept_learners(found)


def test_the_table_is_sorted_by_mean(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    table = learners_table(found, {"worst": {1: 0.01, 2: 0.01}, "first": {1: 1.0, 2: 1.0}})
    names = [row[0].text for row in table.rows]
    assert (names[0], names[-1]) == ("first", "worst")
