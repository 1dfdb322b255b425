from pathlib import Path

import pytest
import torch

from diw.data import Bundle, Dataset
from diw.data.corrections import Correction, corrected, read_corrections
from diw.data.dataset import TensorInputs
from diw.data.split import Split, make_split
from diw.errors import UsageError

HEAD = "file,row,label,mark,correct\n"


@pytest.fixture
def split() -> Split:
    data = Dataset(TensorInputs(torch.arange(12.0)[:, None]), torch.arange(12) % 2, ("a", "b"))
    bundle = Bundle("x", "table", data, test=data, clean=torch.ones(12, dtype=torch.bool))
    return make_split(bundle, trusted=[3, 8], seed=0)


def keys(split: Split) -> list[tuple[str, str]]:
    return [("x.csv", str(row)) for row in split.rows.tolist()]


def test_labels_change_and_rows_go(split: Split) -> None:
    marks = {
        ("x.csv", "0"): Correction("a", "wrong", "b"),
        ("x.csv", "1"): Correction("b", "drop", ""),
        ("x.csv", "2"): Correction("a", "right", ""),
        ("other.csv", "2"): Correction("a", "right", ""),
    }
    after, words = corrected(split, keys(split), marks)
    assert words == (
        "1 labels changed (1 a → b), 1 rows dropped, 1 confirmed; "
        "1 are not training rows of this run"
    )
    assert after.rows.tolist() == [0, *range(2, 12)]
    assert after.train.targets.tolist() == [1, *(torch.arange(2, 12) % 2).tolist()]
    assert after.train.take(torch.arange(11))[0].flatten().tolist() == [0.0, *range(2, 12)]
    assert after.rows[after.trusted_places].tolist() == [3, 8]
    assert after.flipped is not None
    assert after.flipped.tolist() == [True] + [False] * 10
    assert split.train.targets.tolist() == (torch.arange(12) % 2).tolist()  # left as it was


@pytest.mark.parametrize(
    ("key", "one", "words"),
    [
        (("x.csv", "0"), Correction("b", "right", ""), "its label is 'a', and was 'b'"),
        (("x.csv", "0"), Correction("a", "wrong", "c"), "'c' is not a class"),
        (("x.csv", "3"), Correction("b", "drop", ""), "is a trusted row"),
        (("y.csv", "0"), Correction("a", "right", ""), "none of their rows .* x.csv, 0"),
    ],
)
def test_corrections_of_other_data_are_refused(split: Split, key, one, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        corrected(split, keys(split), {key: one})


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(HEAD + '"a,b.png","","x","wrong","y"\nt.csv,3,x,drop,\n', encoding="utf-8")
    assert read_corrections(path) == {
        ("a,b.png", ""): Correction("x", "wrong", "y"),
        ("t.csv", "3"): Correction("x", "drop", ""),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("file,row\n", "has no column 'label'"),
        (HEAD, "marks no row"),
        (HEAD + "a,1,x,maybe,\n", "not 'maybe'"),
        (HEAD + "a,1,x,wrong,\n", "row 0"),
        ("\xff", "is not UTF-8 text"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=words):
        read_corrections(path)
    with pytest.raises(UsageError, match="No such file"):
        read_corrections(tmp_path / "none.csv")
