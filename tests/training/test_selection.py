"""The kept epoch: chosen by held-out trusted samples, resumed bit for bit, used for predictions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from diw.data.split import make_split
from diw.runs.journal import kept_epoch
from diw.training import evaluate
from diw.training.recorded import Recorded
from tests.problems import killed_at_record, tiny_bundle, tiny_training


def choosing(folder: Path, method: str = "diw", patience: int = 3, epochs: int = 8) -> Recorded:
    """A training at a high rate, so that the loss goes up and down."""
    training = tiny_training(folder, method, epochs=epochs, lr=0.05, patience=patience, passes=2)
    split = make_split(tiny_bundle(), shift="symmetric:0.4", trusted=20, seed=0, selection=0.5)
    return replace(training, split=split)


def test_held_out_samples_have_no_part_in_training(tmp_path: Path) -> None:
    split = choosing(tmp_path).split
    whole = make_split(tiny_bundle(), shift="symmetric:0.4", trusted=20, seed=0)
    assert split.selection is not None
    assert len(split.selection) + len(split.trusted) == len(whole.trusted) == 20
    assert len(split.train) + len(split.selection) == len(whole.train)
    assert split.facts["selection_rows"] == 10

    def rows(data):
        return {tuple(row.flatten().tolist()) for row in data.take(torch.arange(len(data)))[0]}

    assert not rows(split.selection) & (rows(split.train) | rows(split.trusted))
    assert rows(split.selection) | rows(split.trusted) == rows(whole.trusted)
    assert rows(split.test) == rows(whole.test)


def test_the_kept_network_is_that_of_the_chosen_epoch(tmp_path: Path) -> None:
    training = choosing(tmp_path / "run")
    training.finish()
    rows = training.run.metrics()
    kept = kept_epoch([row["selection_loss"] for row in rows])
    assert len(rows) == 8 or len(rows) - kept == 3
    scores = evaluate(training.model, training.split.test)
    assert scores.as_row().items() <= rows[kept - 1].items()
    again = choosing(tmp_path / "again", epochs=8)
    for epoch in range(1, kept + 1):
        again.training.train_epoch(epoch)
    assert_equal(load_file(training.run.model), again.model.state_dict())


def test_patience_ends_a_run_early(tmp_path: Path) -> None:
    training = choosing(tmp_path / "run", patience=1, epochs=30)
    training.finish()
    assert training.run.finished
    assert len(training.run.metrics()) < 30


def test_the_arrays_of_a_run_that_ended_early_are_whole(tmp_path: Path, monkeypatch) -> None:
    training = choosing(tmp_path / "run", patience=1, epochs=30)
    with monkeypatch.context() as patch:  # killed after the arrays were closed, before the seal
        patch.setattr(type(training.run), "finish", lambda run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            training.finish()
    resumed = choosing(tmp_path / "run", patience=1, epochs=30)
    resumed.finish()
    run = resumed.run
    assert run.verify()
    shape = len(run.metrics()), len(resumed.split.train)
    for name in ("weights.npy", "losses.npy"):
        assert np.load(run.folder / name).shape == shape
    assert run.ledger().shape == run.losses().shape == shape


def test_a_killed_run_keeps_the_same_network(tmp_path: Path, monkeypatch) -> None:
    whole = choosing(tmp_path / "whole")
    whole.finish()
    with killed_at_record(monkeypatch, 4):
        choosing(tmp_path / "killed").finish()
    resumed = choosing(tmp_path / "killed")
    resumed.finish()
    assert_equal(load_file(resumed.run.model), load_file(whole.run.model))
    assert [row["selection_loss"] for row in resumed.run.metrics()] == [
        row["selection_loss"] for row in whole.run.metrics()
    ]


def test_all_methods_take_the_same_number_of_steps(tmp_path: Path) -> None:
    lengths = {
        method: len(list(choosing(tmp_path / method, method).training.batches(1)))
        for method in ("clean", "uniform", "diw")
    }
    assert lengths == {"clean": 6, "uniform": 6, "diw": 6}  # two passes over 80 rows, 32 a step


def assert_equal(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
