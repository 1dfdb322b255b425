from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from diw.cli.main import diw
from diw.data.split import make_split
from diw.errors import UsageError
from diw.experiments.sources import load_bundle, load_split, stamp, with_method
from diw.runs import Recipe, RunSpec


@pytest.fixture
def own(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((60, 3)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", X=inputs, y=inputs.argmax(1))
    np.savez(tmp_path / "trusted.npz", X=inputs[:20] + 1e-3, y=inputs[:20].argmax(1))
    return tmp_path


def test_a_changed_file_makes_another_run(own: Path) -> None:
    spec = RunSpec(data=str(own / "mine.npz"), trusted=str(own / "trusted.npz"))
    first = stamp(spec)
    assert set(first.files) == {spec.data, spec.trusted}
    np.savez(own / "trusted.npz", X=np.zeros((5, 3), np.float32), y=np.arange(5) % 3)
    assert stamp(spec).run(own) != first.run(own)
    assert stamp(RunSpec()).files == {}


def test_trusted_rows_by_number_and_from_a_file(own: Path) -> None:
    (own / "rows.txt").write_text("3\n5\n8\n11\n20\n21\n30\n31\n32\n33\n")
    numbers = "rows:3,5,8,11,20,21,30,31,32,33"
    splits = [
        load_split(RunSpec(data=str(own / "mine.npz"), trusted=trusted))
        for trusted in (numbers, str(own / "rows.txt"))
    ]
    assert len(splits[0].trusted) == len(splits[1].trusted) == 7  # three are held out for scoring
    assert (splits[0].trusted.targets == splits[1].trusted.targets).all()


@pytest.mark.parametrize("trusted", ["rows:1,x", "nowhere.txt"])
def test_bad_rows_name_the_argument(trusted: str, own: Path) -> None:
    with pytest.raises(UsageError, match=r"^trusted: "):
        load_split(RunSpec(data=str(own / "mine.npz"), trusted=trusted))


def test_a_part_of_the_training_data_is_stratified() -> None:
    split = load_split(RunSpec(train_samples=1000, trusted=50))
    assert split.train.class_counts.tolist() == [100] * 10
    assert len(load_bundle(RunSpec(train_samples=1000)).train) == 10_000  # as read


def test_a_split_is_built_once_for_runs_on_the_same_data(own: Path, monkeypatch) -> None:
    built = count_splits(monkeypatch)
    spec = RunSpec(data=str(own / "mine.npz"), trusted=str(own / "trusted.npz"))
    first = load_split(spec)
    assert load_split(with_method(spec, "uniform")) is first
    assert load_split(replace(spec, recipe=Recipe(epochs=2), model="mlp")) is first
    assert len(built) == 1
    for changed in ({"seed": 1}, {"train_samples": 30}, {"shift": "symmetric:0.3"}):
        assert load_split(replace(spec, **changed)) is not first
    before = load_split(spec)
    np.savez(own / "trusted.npz", X=np.ones((9, 3), np.float32), y=np.arange(9) % 3)
    assert len(load_split(spec).trusted) != len(before.trusted)  # the file has changed


def test_commands_build_the_split_of_a_trial_once(tmp_path: Path, monkeypatch) -> None:
    """Checking the options, the line about the data, and every method's run share it."""
    built = count_splits(monkeypatch)
    shared = ["--shift", "symmetric:0.4", "--model", "mlp", "--epochs", "1"]
    compared = ["--methods", "uniform,diw", "--seeds", "2", "--jobs", "1", *shared]
    for arguments, expected in (
        (["compare", *compared, "--out", str(tmp_path / "runs")], 2),
        (["train", *shared, "--seed", "7", "--out", str(tmp_path / "run")], 1),
    ):
        built.clear()
        result = CliRunner().invoke(diw, arguments)
        assert result.exit_code == 0, result.output
        assert len(built) == expected


def count_splits(monkeypatch) -> list[int]:
    """A list that grows by one with every split that is built, starting with none kept."""
    built: list[int] = []

    def counted(*arguments, **options):
        built.append(1)
        return make_split(*arguments, **options)

    monkeypatch.setattr("diw.experiments.sources.make_split", counted)
    load_split(RunSpec(seed=999))  # takes the place of what an earlier test left
    built.clear()
    return built
