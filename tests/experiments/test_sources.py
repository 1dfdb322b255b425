from pathlib import Path

import numpy as np
import pytest

from diw.errors import UsageError
from diw.experiments.sources import load_bundle, load_split, stamp
from diw.records import RunSpec


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
    bundle = load_bundle(RunSpec(train_samples=1000))
    assert bundle.train.class_counts.tolist() == [100] * 10
    assert bundle.clean is not None
    assert len(bundle.clean) == 1000
