import shutil
from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.records import find_runs
from diw.reports.comparison import compare_runs, shared_entries
from diw.reports.words import describe, shift_in_words

from .factory import make_run, make_spec


def test_runs_of_one_setting_meet_and_others_do_not(tmp_path: Path) -> None:
    for seed in (2, 1):
        for method in ("diw", "uniform"):
            make_run(tmp_path, method, seed)
    make_run(tmp_path, "diw", 1, shift="pair:0.3")
    pair, symmetric = compare_runs(find_runs(tmp_path))
    assert list(pair.methods) == ["diw"]
    assert list(symmetric.methods) == ["uniform", "diw"]
    assert symmetric.seeds == [1, 2]
    assert [t.summary.seed for t in symmetric.methods["diw"]] == [1, 2]
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


def test_a_spec_in_words() -> None:
    words = describe(make_spec())
    assert words.title == "40% symmetric label noise on Fashion-MNIST"
    assert words.protocol == (
        "Embedded subset, LeNet-5, 500 trusted samples, 12 epochs, batches of 256"
    )


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        ("none", "no simulated shift"),
        ("pair:0.3", "30% pair-flip label noise"),
        ("symmetric:0.125", "12.5% symmetric label noise"),
        ("prior:0.2,100", "class-prior shift (20% minority, 100:1)"),
        (
            "prior:0.2,1e+2+pair:0.3",
            "class-prior shift (20% minority, 1e+2:1) and 30% pair-flip label noise",
        ),
        ("longtail:10", "long-tailed classes (10:1)"),
        ("contaminated:0.2", "20% contamination of the classes"),
        ("contaminated:file.csv", "shift contaminated:file.csv"),
        ("covariate:2,3", "covariate shift (strength 2)"),
        ("matrix:noise.csv", "label noise by noise.csv"),
        ("prior:", "shift prior:"),
        ("newer:1", "shift newer:1"),
    ],
)
def test_shifts_in_words(shift: str, words: str) -> None:
    assert shift_in_words(shift) == words


def test_trusted_samples_in_words() -> None:
    assert "10 trusted samples per class" in describe(make_spec(trusted="10/class")).protocol
    assert "trusted" not in describe(make_spec(trusted=None)).protocol


def test_own_data_keep_their_names() -> None:
    words = describe(make_spec(data="mine.csv", trusted="good.csv", model="a:b"))
    assert words.title.endswith("on mine.csv")
    assert words.protocol.startswith("a:b, trusted: good.csv")
