"""CSV and Parquet files: what is read, what is noted, what is refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from diw.data import Encoding, load, read_like
from diw.errors import UsageError


def everything(data):
    return data.take(torch.arange(len(data)))


CSV = "age,colour,income,label\n20,red,1.5,yes\n40,blue,,no\n60,red,2.5,no\n,green,2.0,yes\n"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "train.csv").write_text(CSV)
    return tmp_path / "train.csv"


def test_csv_is_encoded_and_missing_values_are_reported(table):
    bundle = load(table)
    inputs, targets = everything(bundle.train)
    ages = np.array([20, 40, 60, 40.0])  # the missing one is the mean of the others
    spread = np.array([20, 40, 60]).std()
    np.testing.assert_allclose(inputs[:, 0], (ages - 40) / spread, atol=1e-6)
    assert inputs[:, 1:4].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_allclose(inputs[1, 4], 0, atol=1e-6)
    assert bundle.train.classes == ("no", "yes")
    assert targets.tolist() == [1, 0, 0, 1]
    said = " ".join(map(str, bundle.notes))
    assert "column 'age': 1 of 4 values missing, set to the mean" in said
    assert "column 'income': 1 of 4 values missing" in said


def test_parquet_reads_like_csv(table, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "age": pa.array([20, 40, 60, None]),
        "colour": pa.array(["red", "blue", "red", "green"]).dictionary_encode(),
        "income": pa.array([1.5, None, 2.5, 2.0], pa.float32()),
        "label": pa.array(["yes", "no", "no", "yes"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    ours, theirs = load(tmp_path / "train.parquet"), load(table)
    assert torch.equal(everything(ours.train)[0], everything(theirs.train)[0])
    assert ours.train.targets.tolist() == theirs.train.targets.tolist()
    assert ours.encoding == theirs.encoding
    pq.write_table(pa.table({"label": [1, 2], "x": [[1], [2]]}), tmp_path / "lists.parquet")
    with pytest.raises(UsageError, match="column 'x' has type list"):
        load(tmp_path / "lists.parquet")


def test_keys_are_left_out_and_a_note_says_so(tmp_path):
    lines = "".join(f"name {row},{row % 9},{row % 2}\n" for row in range(150))
    (tmp_path / "a.csv").write_text(f"name,size,y\n{lines}")
    bundle = load(tmp_path / "a.csv")
    assert bundle.train.shape == (1,)
    assert "column 'name': has 150 different values; it is not used" in str(bundle.notes[0])


def test_wrong_later_tables_are_refused_by_place(table, tmp_path):
    encoding = load(table).encoding
    (tmp_path / "new.csv").write_text("age,colour,income\nold,red,1\n")
    with pytest.raises(UsageError, match="'old' in row 0 of column 'age' is not a number"):
        read_like(tmp_path / "new.csv", encoding)
    (tmp_path / "new.csv").write_text("age,colour\n1,red\n")
    with pytest.raises(UsageError, match="lacks the columns 'income'"):
        read_like(tmp_path / "new.csv", encoding)
    np.savez(tmp_path / "new.npz", X=np.zeros((2, 3)))
    with pytest.raises(UsageError, match=r"new\.npz: expected rows like the training data's"):
        read_like(tmp_path / "new.npz", encoding)


def test_later_files_are_read_as_the_training_file_was(table, tmp_path):
    bundle = load(table)
    encoding = Encoding.from_json(json.loads(json.dumps(bundle.encoding.as_json())))
    assert encoding == bundle.encoding
    # other order, an unseen colour, no labels, a column more
    (tmp_path / "new.csv").write_text("income;colour;age;extra\n1.5;red;20;1\n2;pink;40;2\n")
    rows = read_like(tmp_path / "new.csv", encoding)
    assert rows.targets is None
    taken = rows.inputs.take(torch.arange(2))
    assert torch.equal(taken[0], everything(bundle.train)[0][0])
    assert taken[1, 1:4].tolist() == [0, 0, 0]
    assert any(
        "'colour': 1 of 2 values not in the training data" in str(note) for note in rows.notes
    )
    assert any("not used: extra" in str(note) for note in rows.notes)
    with pytest.raises(UsageError, match=r"new\.csv"):
        read_like(tmp_path / "new.csv", encoding, need_labels=True)


def test_labels_that_are_not_needed_are_ignored(table, tmp_path):
    encoding = load(table).encoding
    (tmp_path / "new.csv").write_text(
        "age,colour,income,label,clean\n20,red,1,,?\n40,red,1,maybe,2\n"
    )
    rows = read_like(tmp_path / "new.csv", encoding)
    assert rows.targets is None
    assert not any("not used" in str(note) for note in rows.notes)
    with pytest.raises(UsageError, match="the label in row 0 is missing"):
        read_like(tmp_path / "new.csv", encoding, need_labels=True)


def test_tables_are_read_without_torch(table):
    code = (
        "import sys; from pathlib import Path; from diw.data.tables import read_csv; "
        "from diw.data.numbers import numbers_of; from diw.data.values import find_parts; "
        f"numbers_of(read_csv(Path({str(table)!r})), 'age'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
