import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from diw.errors import UsageError
from diw.pages import Cell, Table
from diw.reports.comparison import compare_runs, compare_table, finding, shared_entries
from diw.runs import Run, find_runs

from .factory import make_run, make_spec


def test_runs_of_one_setting_meet_and_others_do_not(tmp_path: Path) -> None:
    for seed in (2, 1):
        for method in ("diw", "uniform"):
            make_run(tmp_path, method, seed)
    make_run(tmp_path, "diw", 1, shift="pair:0.3")
    pair, symmetric = compare_runs(find_runs(tmp_path))
    assert list(pair.methods) == ["diw"]
    assert list(symmetric.methods) == ["diw", "uniform"]
    assert symmetric.seeds == [1, 2]
    assert [t.seed for t in symmetric.methods["diw"]] == [1, 2]
    assert symmetric.spec.shift == symmetric.shared["shift"] == "symmetric:0.4"
    assert "method" not in symmetric.shared


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"mine.csv": [1, 652, 2]}},
        {"test": "other.csv"},
        {"label": "status"},
        {"train_samples": 100},
        {"test_samples": 100},
        {"trusted": 10},
        {"trusted_in_train": False},
        {"model": "mlp"},
        {"epochs": 3},
        {"batch_size": 32},
    ],
    ids=str,
)
def test_runs_that_answer_different_questions_share_no_table(tmp_path: Path, change: dict) -> None:
    own = {"data": "mine.csv", "files": {"mine.csv": [1, 652, 1]}, "test": "test.csv"}
    make_run(tmp_path, "uniform", **own)
    make_run(tmp_path, "diw", **own)
    make_run(tmp_path, "diw", **own | change)
    assert sorted(len(one.trials) for one in compare_runs(find_runs(tmp_path))) == [1, 2]


def test_variants_of_a_method_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    make_run(tmp_path, "diw", method_fields={"bound": 50.0, "ridge": 1e-5})
    make_run(tmp_path, "diw", method_fields={"bound": 10.0, "ridge": 1e-5})
    # A rate of its own makes a method no stranger to the others.
    make_run(tmp_path, "uniform", lr=0.1)
    (comparison,) = compare_runs(find_runs(tmp_path))
    assert set(comparison.methods) == {"diw (bound=50.0)", "diw (bound=10.0)", "uniform"}


def test_no_two_variants_share_a_label(tmp_path: Path) -> None:
    for momentum in (0.0, 0.9):  # of the optimiser; the method has one of its own
        make_run(tmp_path, "diw", method_fields={"momentum": 0.8}, momentum=momentum)
    (comparison,) = compare_runs(find_runs(tmp_path))
    assert set(comparison.methods) == {"diw (recipe.momentum=0.0)", "diw (recipe.momentum=0.9)"}


def test_a_copied_run_counts_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    shutil.copytree(run.folder, tmp_path / "b" / run.folder.name)
    (comparison,) = compare_runs(find_runs(tmp_path))
    assert len(comparison.trials) == 1


def test_unfinished_runs_are_left_out(tmp_path: Path) -> None:
    make_run(tmp_path, "diw", finished=False)
    with pytest.raises(UsageError, match="none is finished"):
        compare_runs(find_runs(tmp_path))
    make_run(tmp_path, "uniform")
    (comparison,) = compare_runs(find_runs(tmp_path))
    assert list(comparison.methods) == ["uniform"]


def test_shared_entries() -> None:
    specs = [make_spec("diw", lr=0.1), make_spec("uniform", lr=0.2, observe=("hidden",))]
    differing = {"method", "method_fields", "lr", "observe"}
    assert shared_entries(specs).keys() == specs[0].as_json().keys() - differing


def column(table: Table, key: str) -> list[Cell]:
    place = [column.key for column in table.columns].index(key)
    return [row[place] for row in table.rows]


def table_of(root: Path, seeds: int, **options: object) -> Table:
    runs = [
        make_run(root, method, seed, **options)  # type: ignore[arg-type]
        for method in ("diw", "uniform", "clean")
        for seed in range(1, seeds + 1)
    ]
    (comparison,) = compare_runs(runs)
    return compare_table(comparison)


def test_compare_claims_no_test_below_three_seeds(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2)
    assert [column.key for column in table.columns] == [
        "method",
        "last_accuracy",
        "difference",
        "best_accuracy",
        "seconds",
        "ess",
        "weight_auroc",
    ]
    assert not any(cell.strong for row in table.rows for cell in row)
    assert any("No verdict below 3 seeds" in note for note in table.notes)
    assert any("peeks at the test set" in note for note in table.notes)


def test_compare_marks_from_three_seeds_on(tmp_path: Path) -> None:
    table = table_of(tmp_path, 3)
    verdicts = dict(
        zip(
            [cell.text for cell in column(table, "method")],
            [cell.text for cell in column(table, "verdict")],
            strict=True,
        )
    )
    assert verdicts["uniform"] == "worse"
    assert sorted(verdicts.values()) == ["best", "no clear difference", "worse"]
    assert verdicts[column(table, "method")[0].text] == "best"
    assert column(table, "method")[-1].text == "uniform"
    means = [cell.value for cell in column(table, "last_accuracy")]
    assert means == sorted(means, reverse=True)
    assert [cell.strong for cell in column(table, "last_accuracy")] == [True, False, False]
    best, *others = (cell.text for cell in column(table, "difference"))
    assert best == "–"
    assert all(re.fullmatch(r"−\d+\.\d \[[+−]\d+\.\d, [+−]\d+\.\d\]", text) for text in others)


def test_compare_shows_balanced_accuracy_where_it_differs(tmp_path: Path) -> None:
    table = table_of(tmp_path, 1, balanced_gap=0.1)
    last, balanced = column(table, "last_accuracy"), column(table, "balanced_accuracy")
    for plain, even in zip(last, balanced, strict=True):
        assert isinstance(plain.value, float)
        assert even.value == pytest.approx(plain.value - 0.1)


def test_compare_shows_the_distance_to_the_true_weights_where_no_label_was_moved(
    tmp_path: Path,
) -> None:
    samples = {
        "targets": np.arange(400) % 10,
        "flipped": np.zeros(400, bool),
        "true_weights": np.tile([0.5, 1.5], 200),
    }
    table = table_of(tmp_path, 1, samples=samples, shift="prior:0.2,10")
    keys = [column.key for column in table.columns]
    assert keys[-2:] == ["weight_mae", "weight_rmse"]
    assert "weight_auroc" not in keys
    methods = [cell.text for cell in column(table, "method")]
    assert column(table, "weight_mae")[methods.index("uniform")].value == 0.5
    assert any("distance from the true weights" in note for note in table.notes)


def test_the_finding_may_be_against_weighting(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make_run(tmp_path / "for", "uniform", seed)
        make_run(tmp_path / "for", "diw", seed)
        make_run(tmp_path / "against", "uniform", seed, lift=0.2)
        make_run(tmp_path / "against", "diw", seed)
    found = {
        name: finding(compare_runs(map(Run, sorted((tmp_path / name).iterdir())))[0])
        for name in ("for", "against")
    }
    assert found["for"].startswith("diw ends at 8")
    assert "points above uniform" in found["for"]
    assert "paired t-test p" in found["for"]
    assert found["against"].startswith("No method ends above uniform")
