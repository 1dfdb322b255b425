import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from diw.data import Bundle, Dataset, load
from diw.data.corrections import corrected
from diw.data.dataset import TensorInputs
from diw.data.marks import Contents, Correction, read_corrections, read_verified
from diw.data.read import Raw, fingerprints, read_raw
from diw.data.split import Split, make_split
from diw.errors import DIWWarning, UsageError

HEAD = "file,row,label,mark,correct,content\n"


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
    assert after.rows[after.trusted_index].tolist() == [3, 8]
    assert after.flipped is not None
    assert after.flipped.tolist() == [True] + [False] * 10
    assert split.train.targets.tolist() == (torch.arange(12) % 2).tolist()  # left as it was


@pytest.mark.parametrize(
    ("key", "one", "words"),
    [
        (("x.csv", "0"), Correction("b", "right", ""), "its label is 'a', and was 'b'"),
        (("x.csv", "0"), Correction("a", "wrong", "c"), "'c' is not a class"),
        (("x.csv", "0"), Correction("a", "wrong", "B "), "'B ' is not a class"),
        (("x.csv", "0"), Correction("a", "wrong", "x" * 200_000), "'x{60}…' is not a class"),
        (("x.csv", "3"), Correction("b", "drop", ""), "is a trusted row"),
        (("y.csv", "0"), Correction("a", "right", ""), "none of their rows .* x.csv, 0"),
    ],
)
def test_corrections_of_other_data_are_refused(split: Split, key, one, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        corrected(split, keys(split), {key: one})


def test_files_are_known_from_another_folder(split: Split) -> None:
    marks = {("../here/x.csv", "0"): Correction("a", "wrong", "b")}
    assert corrected(split, keys(split), marks)[1].startswith("1 labels changed")
    images = [(f"data/{'ab'[row % 2]}/{row}.png", "") for row in range(12)]
    marks = {("C:\\\\pictures\\\\a\\\\4.png", ""): Correction("a", "wrong", "b")}
    assert corrected(split, images, marks)[1].startswith("1 labels changed")


def table(path: Path, rows: list[str]) -> tuple[Bundle, Raw]:
    path.write_text("x,word,label\n" + "\n".join(rows) + "\n")
    return load(path), read_raw(path, None)


def test_corrections_of_rows_that_moved_are_refused(tmp_path: Path) -> None:
    """Deleting a row of the table once moved every later correction to another row."""
    rows = [f"{row / 7:.2f},{'pq'[row % 2]},{'ab'[row % 2]}" for row in range(30)]

    def marks_of(lines: list[str], marked: list[int]) -> tuple[Split, dict, Contents]:
        bundle, raw = table(tmp_path / "t.csv", lines)
        split = make_split(bundle, trusted=[0, 1, 2, 3], seed=0)

        def contents(places: Sequence[int]) -> list[str]:
            return fingerprints(bundle.train, split.rows[list(places)].tolist(), raw)

        places = [split.rows.tolist().index(row) for row in marked]
        known = contents(places)
        marks = {
            ("t.csv", str(row)): Correction("ab"[row % 2], "wrong", "ba"[row % 2], content)
            for row, content in zip(marked, known, strict=True)
        }
        return split, marks, contents

    def named(split: Split) -> list[tuple[str, str]]:
        return [("t.csv", str(row)) for row in split.rows.tolist()]

    split, marks, contents = marks_of(rows, [11, 12, 13])
    assert corrected(split, named(split), marks, contents)[1].startswith("3 labels changed")
    for changed in (rows[:4] + rows[6:], rows[::-1], [*rows[:11], "9,p,b", *rows[12:]]):
        split, _, contents = marks_of(changed, [])
        with pytest.raises(UsageError, match=r"corrections: t.csv, row 1[123]: holds something el"):
            corrected(split, named(split), marks, contents)
    # Rows added at the end, another label, and 1.5 for 1.50 leave what was checked as it was.
    same = [*[f"{float(row.split(',')[0])}{row[row.index(',') :]}" for row in rows], "3,p,a"]
    split, _, contents = marks_of(same, [])
    assert corrected(split, named(split), marks, contents)[1].startswith("3 labels changed")


def test_every_kind_of_data_has_fingerprints(tmp_path: Path) -> None:
    from PIL import Image

    values = np.random.default_rng(0).normal(size=(8, 2))
    np.savez(tmp_path / "a.npz", X=values, y=np.arange(8) % 2)
    for row in range(8):
        (tmp_path / "i" / "ab"[row % 2]).mkdir(parents=True, exist_ok=True)
        pixels = np.full((5, 5), 9 * row, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "i" / "ab"[row % 2] / f"{row}.png")
    bundle, raw = table(tmp_path / "t.csv", [f"{row},p,{'ab'[row % 2]}" for row in range(8)])
    for read, found in (
        (bundle, raw),
        (load(tmp_path / "a.npz"), read_raw(tmp_path / "a.npz", None)),
        (load(tmp_path / "i"), read_raw(tmp_path / "i", None)),
        (bundle, None),
    ):
        names = fingerprints(read.train, range(8), found)
        assert len(set(names)) == 8
        assert all(re.fullmatch("[a-p]{16}", name) for name in names)  # Excel takes 12e4 for 120000
        assert fingerprints(read.train, [5, 2], found) == [names[5], names[2]]


SAVED = 'file,row,label,mark,correct,content\n"a,b.png","",x,wrong,y,aaaa\nt.csv,3,x,drop,,bbbb\n'
FOUND = {
    ("a,b.png", ""): Correction("x", "wrong", "y", "aaaa", 2),
    ("t.csv", "3"): Correction("x", "drop", "", "bbbb", 3),
}


@pytest.mark.parametrize(
    "content",
    [
        SAVED.encode(),
        SAVED.replace("\n", "\r\n").encode("utf-8-sig"),
        SAVED.replace(",", ";").replace('"a;b.png"', '"a,b.png"').encode("utf-8-sig"),
        SAVED.replace(",", "\t").replace('"a\tb.png"', '"a,b.png"').encode("utf-16"),
        SAVED.replace("\n", ",,,,\n").encode() + b",,,,,,,,,\n" * 3,
        b"sep=;\n" + SAVED.replace(",", ";").replace('"a;b.png"', '"a,b.png"').encode(),
        SAVED.encode() + b"\nt.csv,3.0,x,drop,,bbbb\n",
        SAVED.replace(",drop,", ",Drop,").encode(),
    ],
)
def test_a_file_is_read_as_the_page_or_a_spreadsheet_saves_it(tmp_path: Path, content) -> None:
    (tmp_path / "c.csv").write_bytes(content)
    found = read_corrections(tmp_path / "c.csv")
    assert {key: replace(one, line=0) for key, one in found.items()} == {
        key: replace(one, line=0) for key, one in FOUND.items()
    }


def test_a_correction_to_the_same_label_is_no_change(tmp_path: Path, split: Split) -> None:
    (tmp_path / "c.csv").write_text(HEAD + "x.csv,0,a,wrong,a,\nx.csv,1,b,wrong,a,\n")
    _, words = corrected(split, keys(split), read_corrections(tmp_path / "c.csv"))
    assert words == "1 labels changed (1 b → a), 0 rows dropped, 1 confirmed"


def test_files_without_fingerprints_are_read_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("file,row,label,mark,correct\nx.csv,0,a,right,\n")
    with pytest.warns(DIWWarning, match="no column 'content', by which rows are known again"):
        read_corrections(tmp_path / "c.csv")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("file,row\n", "has no column 'label'"),
        (HEAD, "marks no row"),
        (HEAD + "a,1,x,maybe,,\n", "not 'maybe'"),
        (HEAD + "a,1,x,wrong,,\n", "line 2"),
        (HEAD + f"a,1,x,{'y' * 200_000},,\n", "line 2 .* not 'y{60}…' with ''"),
        (HEAD + f"a,1,x,{'y' * 5_000_000},,\n", "field larger than field limit"),
        (HEAD + "a,1,x,right,,\nb,2,x,drop,,\na,1,x,wrong,y,\n", "lines 2 and 4 .* about a, row 1"),
        (HEAD + "a,1,x,right\n", "line 2 has 4 cells, the header 6"),
        ("\xff", "not UTF-8 text"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=words) as error:
        read_corrections(path)
    assert str(error.value).startswith("corrections: ")
    assert len(str(error.value)) < 300
    with pytest.raises(UsageError, match="No such file"):
        read_corrections(tmp_path / "none.csv")


KEYS = [("d/t.csv", str(row)) for row in range(6)]
PAIRS = ([1, 3], [1, 1], [0, 1])


@pytest.mark.parametrize(
    "content",
    [
        "row,right\n3,b\n1,a\n",
        "row;right\r\n1;a\r\n3;b\r\n;;\r\n",
        "file,row,label,right,note\nd/t.csv,1,b,a,sure\nd/t.csv,3,b,b,\nd/t.csv,4,a,,?\n",
        "row,right\n1.0,a\n3.0,b\n3,b\n",
        HEAD + "t.csv,1,b,wrong,a,\nt.csv,3,b,right,,\nt.csv,4,a,drop,,\n",
    ],
)
def test_verified_rows_are_pairs_of_given_and_right_label(tmp_path: Path, content: str) -> None:
    (tmp_path / "v.csv").write_text(content)
    found = read_verified(tmp_path / "v.csv", KEYS, [0, 1] * 3, ("a", "b"))
    assert (found.places.tolist(), found.given.tolist(), found.right.tolist()) == PAIRS
    assert found.dropped == int("drop" in content)


def test_verified_images_are_known_by_their_file(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("file,right\ncat/1.png,dog\n")
    keys = [("data/dog/1.png", ""), ("data/cat/1.png", "")]
    found = read_verified(tmp_path / "v.csv", keys, [1, 0], ("cat", "dog"))
    assert (found.places.tolist(), found.right.tolist()) == ([1], [1])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "row,right\n9,a\n",
            r"line 2 of .*v.csv: row 9 is not in the training data, which have 6 rows",
        ),
        ("row,right\n-1,a\n", "row -1 is not in the training data"),
        ("row,right\none,a\n", "row one is not in the training data"),
        ("row,right\n,a\n", "a row without a number is not in the training data"),
        ("row,right\n1,a\n2,a\n1,b\n", "lines 2 and 4 of .*v.csv disagree about row 1"),
        ("file,row,right\nd/t.csv,1,a\n,1,b\n", "lines 2 and 3 of .*v.csv disagree about row 1"),
        (
            "row,right\n1,zzz\n",
            "line 2 of .*row 1: 'zzz' is not a class; classes are 'a', 'b', 'alpha'",
        ),
        ("row,right\n1,alhpa\n", "'alhpa' is not a class; is 'alpha' meant"),
        ("row,right\n1,0\n", "'0' is not a class; classes are 'a', 'b', 'alpha'"),
        ("row,label,right\n1,alpha,b\n", "its label is 'b', and was 'alpha' when checked"),
        ("row,right\n", "marks no row"),
        ("row,right\n1,\n", "marks no row"),
        ("row,label\n1,a\n", "has no column 'right'; .* or give row and right"),
        ("right\na\n", "has no column 'row'"),
        ("row,right\n1\n", "line 2 has 1 cells, the header 2"),
        ("", "the first line must name the columns"),
    ],
)
def test_wrong_verified_rows_are_one_line(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "v.csv").write_text(content)
    with pytest.raises(UsageError, match=words) as error:
        read_verified(tmp_path / "v.csv", KEYS, [0, 1] * 3, ("a", "b", "alpha"))
    assert str(error.value).startswith("verified: ")
    assert "\n" not in str(error.value)


def test_verified_rows_that_moved_are_refused(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("row,right,content\n1,a,abcd\n2,b,\n")

    def names(now: str) -> Contents:
        return lambda places: [now for _ in places]

    found = read_verified(tmp_path / "v.csv", KEYS, [0, 1] * 3, ("a", "b"), names("abcd"))
    assert found.right.tolist() == [0, 1]
    with pytest.raises(UsageError, match="row 1: holds something else than the row that was chec"):
        read_verified(tmp_path / "v.csv", KEYS, [0, 1] * 3, ("a", "b"), names("efgh"))
