"""Every method trains in the loop, and a killed run ends where an uninterrupted one does."""

from pathlib import Path

import numpy as np
import pytest
import torch

from diw.methods import describe, find
from diw.training.recorded import Recorded
from tests.contract.cases import DEFAULTS, Case
from tests.problems import assert_same, killed_at_record, results, tiny_training


def has_pretraining(case: Case) -> bool:
    return "pretraining" in {field.name for field in describe(find(case.method))}


def training_of(case: Case, folder: Path) -> Recorded:
    fields: dict[str, object] = {**case.fields}
    if has_pretraining(case):
        fields["pretraining"] = 2
    return tiny_training(folder, case.method, epochs=3, fields=fields, batch_size=40)


KILLS = [(case, 3) for case in DEFAULTS] + [(c, 5) for c in DEFAULTS if has_pretraining(c)]


@pytest.mark.parametrize(("case", "epoch"), KILLS, ids=str)
def test_a_killed_run_goes_on_bit_for_bit(case, epoch, tmp_path, monkeypatch) -> None:
    whole = training_of(case, tmp_path / "whole")
    whole.finish()
    with killed_at_record(monkeypatch, epoch):
        training_of(case, tmp_path / "killed").finish()
    torch.rand(17)  # another process has another random state
    resumed = training_of(case, tmp_path / "killed")
    resumed.finish()
    assert_same(results(resumed), results(whole))


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_the_ledger_keeps_every_samples_weight(case, tmp_path) -> None:
    training = training_of(case, tmp_path / "run")
    training.finish()
    ledger = training.run.ledger().astype(np.float64)
    if case.method == "clean":
        assert ledger.size == 0
        return
    assert ledger.shape == (3, 90)
    assert np.isfinite(ledger).all()
    np.testing.assert_allclose(ledger.mean(1), 1, atol=2e-3)  # float16
    unweighted = ("uniform", "glc", "elr")  # the latter two correct losses instead
    assert (ledger[1:] == 1).all() == (case.method in unweighted)
