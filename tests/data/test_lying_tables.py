"""Tables as Excel, pandas, R and people write them: read as what they are, or refused in a line."""

import datetime
import decimal
import gzip
import re

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from diw.data import load
from diw.data.columns import fit_table
from diw.data.numbers import numbers_of, words_of
from diw.data.read import read_raw
from diw.data.tables import TableFile, read_csv, read_parquet
from diw.errors import UsageError

NAN = float("nan")

# What stands between cells, the cells of a column x, beside it a column z, and the numbers meant
# (a text: the words of the refusal; None: words).
NUMBERS = {
    "plain": (",", ["950", "1200", "12500"], "1", [950, 1200, 12500]),
    "English thousands": (",", ["950", "1,200", "12,500"], "1", [950, 1200, 12500]),
    "only thousands": (",", ["1,200", "12,500"], "1", [1200, 12500]),
    "English, decimals": (",", ["1,200.50", "950.5", "3"], "1", [1200.5, 950.5, 3]),
    "English millions": (";", ["1,234,567", "950", "1,200"], "1", [1234567, 950, 1200]),
    "German": (";", ["0,5", "1,25", "12"], "1", [0.5, 1.25, 12]),
    "German thousands": (";", ["1.234,5", "0,5", "12.000"], "1", [1234.5, 0.5, 12000]),
    "German millions": (";", ["1.234.567", "950", "1.200"], "1", [1234567, 950, 1200]),
    "German by another column": (";", ["1.200", "950", "12.500"], "0,5", [1200, 950, 12500]),
    "German, three decimals": (";", ["1,234", "2,500"], "0,5", [1.234, 2.5]),
    "German between commas": (",", ["1,25", "0,5"], "1", [1.25, 0.5]),
    "points by another column": (";", ["1.200", "12.500"], "0.5", [1.2, 12.5]),
    "three decimals": (",", ["1.200", "12.500", "9.125"], "1", [1.2, 12.5, 9.125]),
    "three decimals, tabs": ("\t", ["1.200", "12.500"], "1", [1.2, 12.5]),
    "three decimals below one": (";", ["0.125", "1.250"], "1", [0.125, 1.25]),
    "nobody can tell": (";", ["1.200", "950", "12.500"], "1", "may be 1200 or a number with three"),
    "nobody can tell, commas": (
        ";",
        ["1,200", "950"],
        "1",
        "column 'x': 1,200 in row 0 may be 1200",
    ),
    "nobody can tell, tabs": ("\t", ["1,200", "950"], "1", "may be 1200 or a number with three"),
    "columns disagree": (";", ["1,200", "950"], "0,5 0.5", "may be 1200"),
    "Indian": (",", ["12,34,567", "1,00,000", "950"], "1", [1234567, 100000, 950]),
    "Indian crores": (";", ["1,23,45,678.50", "12.5"], "1", [12345678.5, 12.5]),
    "French": (";", ["1 234,5", "0,5", "12 000"], "1", [1234.5, 0.5, 12000]),
    "French, no-break": (";", ["1\u00a0234,5", "12\u202f000"], "1", [1234.5, 12000]),
    "Swiss": (";", ["1'234.5", "12’000", "3.25"], "1", [1234.5, 12000, 3.25]),
    "euros behind": (";", ["1.234,50 €", "0,99 €"], "1", [1234.5, 0.99]),
    "dollars in front": (",", ["$1,234.50", "$0.99"], "1", [1234.5, 0.99]),
    "percent": (",", ["12.5%", "3%", ""], "1", [12.5, 3, NAN]),
    "German percent": (";", ["12,5 %", "3 %"], "1", [12.5, 3]),
    "percent now and then": (",", ["12%", "0.3"], "1", None),
    "minus of a book": (",", ["\u22125", "\u22121.5"], "1", [-5, -1.5]),
    "minus behind": (";", ["1.234,50-", "0,5"], "1", [-1234.5, 0.5]),
    "minus of accountants": (",", ["(1,200.00)", "3.5"], "1", [-1200, 3.5]),
    "exponents": (",", ["1e-3", "2.5E+4", "1,200.5"], "1", [0.001, 25000, 1200.5]),
    "decimal commas and exponents": (";", ["1,2E+03", "4,5"], "1", [1200, 4.5]),
    "keys with underscores": (",", ["1_000", "2_000"], "1", None),
    "dates": (";", ["01.02.2020", "15.11.2021"], "1", None),
    "versions": (",", ["1.2.3", "1.2.4"], "1", None),
    "times": (",", ["12:30", "9:15"], "1", None),
    "leading zeros": (",", ["007", "0123"], "1", [7, 123]),
    "a wrong group": (",", ["1,2345,678", "950"], "1", None),
    "two marks": (",", ["1.5", "2,5"], "1", None),
    "missing, of Excel": (",", ["#N/A", "#DIV/0!", "3.5"], "1", [NAN, NAN, 3.5]),
    "missing, of German Excel": (";", ["#NV", "3,5"], "1", [NAN, 3.5]),
    "missing, of pandas": (",", ["<NA>", "NaT", "nan", "3.5"], "1", [NAN, NAN, NAN, 3.5]),
    "missing, of R": (",", ["NA", "3.5"], "1", [NAN, 3.5]),
}


def written(delimiter: str, cells: list[str], beside: str) -> str:
    def quoted(cell: str) -> str:
        return f'"{cell}"' if delimiter in cell else cell

    others = beside.split(" ")
    head = ["x", *(f"z{place}" for place in range(len(others))), "label"]
    lines = [[cell, *others, "ab"[row % 2]] for row, cell in enumerate(cells)]
    return "\n".join(delimiter.join(map(quoted, line)) for line in [head, *lines]) + "\n"


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_they_are_written(tmp_path, name):
    delimiter, cells, beside, meant = NUMBERS[name]
    path = tmp_path / "a.csv"
    path.write_text(written(delimiter, cells, beside), encoding="utf-8")
    if isinstance(meant, str):
        with pytest.raises(UsageError, match=re.escape(meant)) as error:
            load(path)
        assert "\n" not in str(error.value)
        return
    found = numbers_of(read_csv(path), "x")
    if meant is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, meant)


def test_how_numbers_were_read_is_said(tmp_path):
    cells = ["950", "1,200", "12,500"] * 4
    (tmp_path / "a.csv").write_text(written(",", cells, "1"))
    bundle = load(tmp_path / "a.csv")
    assert "column 'x': 1,200 is read as 1200" in " ".join(map(str, bundle.notes))
    assert bundle.encoding.rows.columns[0].mean == pytest.approx(np.mean([950, 1200, 12500]))


def grouped(value: float, digits: int, group: str, mark: str, indian: bool) -> str:
    """A number as one country writes it."""
    whole, _, rest = f"{abs(value):.{digits}f}".partition(".")
    size = 2 if indian else 3
    head, tail = whole[:-3], whole[-3:]
    groups = [head[max(0, end - size) : end] for end in range(len(head), 0, -size)][::-1]
    text = group.join([*groups, tail]) + (mark + rest if rest else "")
    return f"-{text}" if value < 0 and float(f"{value:.{digits}f}") else text


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6),
    st.sampled_from([",.", ".,", " ,", "'.", "\u202f,", ".", ","]),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from(",;\t"),
)
def test_numbers_of_any_country_are_read_as_meant_or_refused(
    values, marks, digits, indian, between
):
    group, mark = marks[:-1], marks[-1]
    cells = [grouped(v, digits, group, mark, indian and group == ",") for v in values]
    table = TableFile("a", {"x": list(cells)}, len(cells), between)
    meant = [float(f"{value:.{digits}f}") for value in values]
    try:
        found = numbers_of(table, "x")
    except UsageError:
        found = None
        assert all(len(re.findall("[.,]", cell)) <= 1 for cell in cells)  # nobody can tell
    else:
        assert found is not None
    alone = all(re.fullmatch(r"-?(\d{1,3}([.,]\d{3})?)", cell) for cell in cells)
    assume(not alone)  # 1,234 is read by the delimiter, whatever was meant
    np.testing.assert_allclose(found, meant)


TEXT = "x,word,label\n1.5,red,yes\n2.5,blue,no\n3.5,red,yes\n"
ROWS = {"x": ["1.5", "2.5", "3.5"], "word": ["red", "blue", "red"], "label": ["yes", "no", "yes"]}
SEMICOLONS = TEXT.replace(",", ";")
QUOTED = re.sub(r"([^,\n]+)", r'"\1"', TEXT)

FILES = {
    "plain": TEXT.encode(),
    "Excel: UTF-8 with its mark": TEXT.encode("utf-8-sig"),
    "Excel: Unicode text": TEXT.replace(",", "\t").encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "Excel: semicolons": SEMICOLONS.encode(),
    "Excel: a line that names the delimiter": b"sep=;\r\n" + SEMICOLONS.encode(),
    "Excel: columns that were once used": TEXT.replace("\n", ",,,\n").encode(),
    "Excel: rows that were once used": TEXT.encode() + b",,\n" * 5,
    "Windows": TEXT.replace("\n", "\r\n").encode(),
    "old Mac": TEXT.replace("\n", "\r").encode(),
    "no end of line at the end": TEXT.rstrip().encode(),
    "empty lines": TEXT.replace("\n", "\n\n").encode() + b"\n\n\n",
    "blanks": TEXT.replace(",", " , ").encode(),
    "everything quoted": QUOTED.encode(),
    "tabs": TEXT.replace(",", "\t").encode(),
    "R: row names": re.sub(r"(?m)^", '"r",', QUOTED)[:-4].replace('"r"', '""', 1).encode(),
    "pandas: the index": b",x,word,label\n0,1.5,red,yes\n1,2.5,blue,no\n2,3.5,red,yes\n",
    "R: one name too few": (b"x,word,label\n1,1.5,red,yes\n", "line 2 has 4 cells, the header 3"),
    "a line too short": (b"x,word,label\n1.5,red\n", "line 2 has 2 cells, the header 3"),
    "a title above": (b"Sales of 2020\n\nx,word,label\n1,red,yes\n", "cells, the header 1"),
    "two lines of names": (b"x,x,label\nmean,sd,\n1,2,yes\n", "two columns are named 'x'"),
    "Latin-1": ("x,label\n1,für\n".encode("latin-1"), "if Excel or an old program wrote it"),
    "a workbook": (b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00", "a.csv"),
    "a web page": (b"<!DOCTYPE html>\n<html><body>Login</body></html>\n", "a.csv"),
    "JSON": (b'{"x": [1, 2], "label": ["a", "b"]}\n', "a.csv"),
    "zeros of a full disk": (b"\0" * 300, "a.csv"),
    "nothing": (b"", "the first line must name the columns"),
    "a header alone": (b"x,word,label\n", "no rows below the header"),
    "an open quote": (b'x,word,label\n"1.5,red,yes\n', "not a CSV file"),
    "no label": (b"a,b\n1,2\n", "say which column is the label; columns are a, b"),
    "no features": (b"label\nx\ny\n", "no column besides the label"),
    "infinite": (b"x,label\n1,a\ninf,b\n", "inf in row 1 of column 'x' is too large"),
    "clean of words": (b"x,label,clean\n1,a,1\n2,b,maybe\n", "'clean' must hold 1 or 0"),
    "one class": (b"x,label\n1,a\n2,a\n", "at least 2 are needed"),
    "missing labels": (b"x,label\n1,a\n2,NA\n3,b\n", "the label in row 1 is missing"),
    "labels of Excel": (b"x,label\n1,a\n2,#N/A\n3,b\n", "the label in row 1 is missing"),
    "labels that are numbers": (
        b"x,label\n" + b"".join(b"1,%.2f\n" % (row / 7) for row in range(40)),
        "40 different labels in 40 rows; is this the label",
    ),
    "two spellings": (b"x,label\n1,Yes\n2,yes \n3,no\n", "differ in case or blanks only"),
    "an empty name": b",x,word,label\n,1.5,red,yes\n,2.5,blue,no\n,3.5,red,yes\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_files_as_programs_write_them(tmp_path, name, packed):
    case = FILES[name]
    content, refusal = case if isinstance(case, tuple) else (case, None)
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    if refusal is not None:
        with pytest.raises(UsageError, match=refusal) as error:
            load(path)
        assert "\n" not in str(error.value)
        assert path.name in str(error.value)
        return
    columns = {key: words for key, words in read_csv(path).columns.items() if key}
    assert columns == ROWS
    assert load(path).train.targets.tolist() == [1, 0, 1]


def test_a_row_without_values_stays_a_row(tmp_path):
    (tmp_path / "a.csv").write_text("x,z\n1,2\n,\n3,4\n,\n")
    assert read_csv(tmp_path / "a.csv").columns == {"x": ["1", None, "3"], "z": ["2", None, "4"]}


def test_accents_have_one_form_in_names_labels_and_words(tmp_path):
    one, two = "caf\u00e9", "cafe\u0301"
    (tmp_path / "a.csv").write_text(f"{two},x,label\n{one},1,{one}\n{two},2,{two}\nt,3,tea\n")
    bundle = load(tmp_path / "a.csv")
    assert bundle.train.classes == (one, "tea")
    assert bundle.encoding.rows.columns[0].name == one
    assert bundle.encoding.rows.columns[0].values == (one, "t")
    np.savez(tmp_path / "a.npz", X=np.arange(6.0).reshape(3, 2), y=np.array([one, two, "tea"]))
    assert load(tmp_path / "a.npz").train.classes == (one, "tea")


def test_small_files_that_unpack_to_much_are_refused_at_once(tmp_path):
    for name, content in (("blank", b"\n" * 5_000_000), ("row", b"1,a\n" * 1_000_000)):
        path = tmp_path / f"{name}.csv.gz"
        path.write_bytes(gzip.compress(b"x,label\n" + content))
        with pytest.raises(UsageError, match="unpacks to more than 100 times its size; unpack it"):
            read_csv(path)


def test_columns_of_small_numbers_are_kept_and_constant_ones_said(tmp_path):
    values = np.random.default_rng(0).normal(size=(40, 2)) * [1e-15, 1]
    lines = [f"{a!r},{b!r},7,{row % 2}" for row, (a, b) in enumerate(values.tolist())]
    (tmp_path / "a.csv").write_text("\n".join(["x,z,c,label", *lines]) + "\n")
    np.savez(tmp_path / "a.npz", X=np.column_stack([values, np.full(40, 7)]), y=np.arange(40) % 2)
    for name in ("a.csv", "a.npz"):
        bundle = load(tmp_path / name)
        x = bundle.train.inputs.take(torch.arange(40)).numpy()
        np.testing.assert_allclose(x.std(0), [1, 1, 0], rtol=1e-5)
        (note,) = bundle.notes
        assert note.column in ("c", "2")
        assert "is the same in all rows" in note.text


def frames():
    """Columns as pandas writes them to Parquet, and the words or numbers meant, or the refusal."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    day = datetime.date(2020, 1, 2)
    moment = datetime.datetime(2020, 1, 2, 3, 4)
    refused = "numbers and text can be used"
    return {
        "int8": (pd.Series([1, 2, 3], dtype="int8"), [1, 2, 3]),
        "uint64": (pd.Series([1, 2, 3], dtype="uint64"), [1, 2, 3]),
        "float16": (pd.Series([1.5, 2.5, NAN], dtype="float16"), [1.5, 2.5, NAN]),
        "float32": (pd.Series([1.5, 2.5, NAN], dtype="float32"), [1.5, 2.5, NAN]),
        "bool": (pd.Series([True, False, True]), [1, 0, 1]),
        "nullable bool": (pd.Series([True, None, False], dtype="boolean"), [1, NAN, 0]),
        "nullable int": (pd.Series([1, None, 3], dtype="Int64"), [1, NAN, 3]),
        "nullable float": (pd.Series([1.5, None, 3], dtype="Float32"), [1.5, NAN, 3]),
        "large keys": (pd.Series([2**53 + 1, 2**53 + 2, 5]), [str(2**53 + 1), str(2**53 + 2), "5"]),
        "larger keys": (pd.Series([2**64 - 1, 1, 2], dtype="uint64"), [str(2**64 - 1), "1", "2"]),
        "negative keys": (pd.Series([-(2**53) - 1, 1, 2]), [str(-(2**53) - 1), "1", "2"]),
        "large keys, missing": (
            pd.Series([2**60, None, 1], dtype="Int64"),
            [str(2**60), None, "1"],
        ),
        "str": (pd.Series(["a", "b ", "a"], dtype="str"), ["a", "b", "a"]),
        "object": (pd.Series(["a", None, "a"], dtype="object"), ["a", None, "a"]),
        "NA": (pd.Series(["a", "NA", pd.NA], dtype="string"), ["a", None, None]),
        "category": (pd.Series(["a", "b", None], dtype="category"), ["a", "b", None]),
        "category of numbers": (pd.Series([7, 8, 7], dtype="category"), [7, 8, 7]),
        "all missing": (pd.Series([None, None, None]), [None, None, None]),
        "dates": (pd.Series([day, day, None]), ["2020-01-02", "2020-01-02", None]),
        "datetimes": (pd.Series([moment, moment, None]), "2020-01-02 03:04:00"),
        "datetimes of a zone": (
            pd.Series([moment, moment, None]).dt.tz_localize("UTC"),
            "2020-01-02 03:04:00",
        ),
        "times": (pd.Series([datetime.time(3, 4), datetime.time(5, 6), None]), "03:04:00"),
        "durations": (pd.Series(pd.to_timedelta([1, 2, 3], unit="s")), "1"),
        "decimals": (
            pd.Series([decimal.Decimal("1.50"), decimal.Decimal("2"), None]),
            [1.5, 2, NAN],
        ),
        "decimal commas": (pd.Series(["1,5", "0,25", "2"]), [1.5, 0.25, 2]),
        "thousands": (pd.Series(["1,200", "950", "12,500"]), [1200, 950, 12500]),
        "accents": (pd.Series(["cafe\u0301", "caf\u00e9", "t"]), ["café", "café", "t"]),
        "infinite": (pd.Series([1.5, float("inf"), 2]), "inf in row 1 of column 'x' is too large"),
        "lists": (pd.Series([[1], [2], [3]]), refused),
        "dictionaries": (pd.Series([{"a": 1}, {"a": 2}, {"a": 3}]), refused),
        "bytes": (pd.Series([b"a", b"b", b"c"]), refused),
        "intervals": (pd.Series(pd.interval_range(0, 3)), refused),
        "periods": (pd.Series(pd.period_range("2020-01", periods=3, freq="M")), refused),
        "sparse": (pd.Series([0.0, 0.0, 1.5]), [0, 0, 1.5]),
        "constant": (pd.Series([1.5, 1.5, 1.5]), [1.5, 1.5, 1.5]),
        "small": (pd.Series([1e-300, 2e-300, 3e-300]), [1e-300, 2e-300, 3e-300]),
        "whole floats": (pd.Series([1.0, 2.0, 3.0]), [1, 2, 3]),
        "negative zero": (pd.Series([-0.0, 1, 2]), [0, 1, 2]),
        "mixed case": (pd.Series(["A", "a", "b"]), ["A", "a", "b"]),
        "long texts": (pd.Series(["x" * 200_000, "y", "z"]), ["x" * 200_000, "y", "z"]),
    }


@pytest.mark.parametrize("name", ["frame", "polars-like", "row groups"])
def test_parquet_columns_as_pandas_writes_them(tmp_path, name):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    cases = frames()
    assert len(cases) >= 40
    for case, (column, meant) in cases.items():
        frame = pd.DataFrame({"x": column, "z": [1.5, 2.5, 0.5], "label": ["a", "b", "a"]})
        options = {"frame": {}, "polars-like": {"compression": "zstd"}, "row groups": None}[name]
        frame.to_parquet(path, **({"row_group_size": 1} if options is None else options))
        if isinstance(meant, str) and not meant[0].isdigit():
            with pytest.raises(UsageError, match=meant) as error:
                load(path)
            assert "\n" not in str(error.value), case
            continue
        table = read_parquet(path)
        if isinstance(meant, str):
            assert words_of(table.columns["x"])[0].startswith(meant), case
        elif any(isinstance(value, str) for value in meant) or set(meant) == {None}:
            assert words_of(table.columns["x"]) == meant, case
        else:
            np.testing.assert_allclose(numbers_of(table, "x"), meant, err_msg=case)
        load(path)


def test_large_labels_of_parquet_stay_apart(tmp_path):
    pd = pytest.importorskip("pandas")
    keys = [2**53 + step for step in (0, 1, 2)] * 4
    pd.DataFrame({"x": np.arange(12.0) ** 2, "label": keys}).to_parquet(tmp_path / "a.parquet")
    bundle = load(tmp_path / "a.parquet")
    assert bundle.train.classes == tuple(str(2**53 + step) for step in (0, 1, 2))


@pytest.mark.parametrize("kind", ["cells", "text", "rows"])
def test_small_parquet_files_that_unpack_to_much(tmp_path, kind, monkeypatch):
    """79 KB once took 29 seconds and 1.7 GB: a dictionary of one long text, a million times."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    rows = {"cells": 9_000_000, "text": 300_000, "rows": 9_000_000}[kind]
    text = "x" * (100_000 if kind == "text" else 5)
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    columns = {"label": pa.array(np.zeros(rows, np.int8))}
    pq.write_table(pa.table(columns if kind == "rows" else {"x": words} | columns), path)
    if kind == "text":  # a hundred thousand equal cells are one text in memory
        column = read_raw(path, "label").content.columns["x"]
        assert len({id(cell) for cell in column}) == 1
        looked_at: list[str] = []
        monkeypatch.setattr("diw.data.columns.shown_mark", looked_at.append)
        fit_table(TableFile("a", {"x": column, "z": ["1", "2"] * (rows // 2)}, rows), ())
        assert len(looked_at) == 1  # each cell by itself took minutes
        return
    with pytest.raises(UsageError, match="more than 100 times its size; if that is meant, save it"):
        read_parquet(path)


@pytest.mark.parametrize("kind", ["lists", "bytes"])
def test_columns_of_parquet_that_cannot_be_used_are_not_unpacked(tmp_path, kind, monkeypatch):
    """A list of zeros for each row: a file of 4 KB that took 2.4 GB."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    column = pa.array([[0.0] * 9] * 40 if kind == "lists" else [b"0"] * 40)
    pq.write_table(pa.table({"x": column, "label": [0, 1] * 20}), tmp_path / "a.parquet")
    monkeypatch.delattr(pq.ParquetFile, "read")
    with pytest.raises(UsageError, match=r"column 'x' has type .*; numbers and text can be used"):
        read_parquet(tmp_path / "a.parquet")
