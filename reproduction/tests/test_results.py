"""An experiment's records: which runs count, and the numbers behind its figures."""

from pathlib import Path

import numpy as np
import pytest

from diw.errors import UsageError
from reproduction.results import ones_distance, read_sheet
from reproduction.tests.factory import cell, trials, write_experiment


def test_an_unfinished_run_does_not_count(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    names = trials(runs, "diw", [88, 60])
    (runs / names[1] / "done").unlink()
    sheet = read_sheet(write_experiment(tmp_path, [cell("diw", names)]))
    assert sheet.results[0].values("accuracy") == {0: pytest.approx(88)}


def test_a_folder_without_an_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no experiment\.json"):
        read_sheet(tmp_path)


def test_weights_of_one_have_the_distance_of_the_simulated_shift() -> None:
    """By the definition: 4,000 samples of eight classes and 40 of two."""
    true = np.repeat([0.8 + 0.2 / 100, 0.2 + 100 - 20], [8 * 4000, 2 * 40])
    assert true.mean() == pytest.approx(1)
    assert ones_distance("prior:0.2,100", "mae") == pytest.approx(np.abs(true - 1).mean())
    rmse = np.sqrt(((true - 1) ** 2).mean())
    assert ones_distance("prior:0.2,100", "rmse") == pytest.approx(rmse)


def test_only_a_class_prior_shift_has_that_distance() -> None:
    with pytest.raises(UsageError, match="is not a class-prior shift"):
        ones_distance("pair:0.3", "mae")
