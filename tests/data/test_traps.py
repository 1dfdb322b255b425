"""Traps in files as people have them: each gets a right default or one clear line."""

import gzip
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from diw.data import load, read_like
from diw.data.checks import brief
from diw.data.values import read_values
from diw.errors import UsageError


def write(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def rows_of(make, count: int = 40) -> list[str]:
    return [make(row) for row in range(count)]


def inputs(bundle) -> torch.Tensor:
    return bundle.train.inputs.take(torch.arange(len(bundle.train)))


def refusal(*args, **options) -> str:
    with pytest.raises(UsageError) as error:
        load(*args, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_one_wrong_cell_is_named_with_its_remedy(tmp_path):
    rows = rows_of(lambda r: f"{r * 0.37:.2f},{r % 3},{r % 2}")
    rows[7] = '"1,5",1,1'
    said = refusal(write(tmp_path / "a.csv", "size,kind,label", rows))
    assert "a.csv: '1,5' in row 7 of column 'size' is not a number" in said
    assert "decimal point, or leave it empty" in said
    rows[7] = "unknown,1,1"
    said = refusal(write(tmp_path / "a.csv", "size,kind,label", rows))
    assert "'unknown' in row 7 of column 'size'" in said


def test_words_among_few_numbers_are_categories(tmp_path):
    path = write(tmp_path / "a.csv", "k,label", rows_of(lambda r: f"{r % 5 or 'other'},{r % 2}"))
    assert load(path).train.shape == (5,)
    # one word in a hundred, but the numbers are few: classes of something
    rows = rows_of(lambda r: f"{'x' if r == 3 else r % 5},{r % 2}")
    assert load(write(tmp_path / "b.csv", "k,label", rows)).train.shape == (6,)


def test_decimal_commas_are_numbers(tmp_path):
    german = rows_of(lambda r: f"{r * 0.37:.2f};{r % 3};{r % 2}".replace(".", ","))
    english = rows_of(lambda r: f"{r * 0.37:.2f},{r % 3},{r % 2}")
    ours = load(write(tmp_path / "de.csv", "size;kind;label", german))
    theirs = load(write(tmp_path / "en.csv", "size,kind,label", english))
    assert torch.equal(inputs(ours), inputs(theirs))
    later = read_like(tmp_path / "de.csv", theirs.encoding)
    assert torch.equal(later.inputs.take(torch.arange(40)), inputs(theirs))


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "customer_id"])
def test_row_numbers_are_left_out_and_said_once(tmp_path, name):
    train = write(tmp_path / "a.csv", f"{name},x,label", rows_of(lambda r: f"{r},{r % 7},{r % 2}"))
    later = write(tmp_path / "b.csv", f"{name},x,label", rows_of(lambda r: f"{r},{r % 5},{r % 2}"))
    bundle = load(train, trusted=later, allow_leaks=True)
    assert bundle.train.shape == (1,)
    said = [line for line in brief(bundle.notes) if "left out" in line]
    assert len(said) == 1
    assert f"column {name!r}" in said[0]
    assert not any("not used" in line for line in brief(bundle.notes))


def test_names_of_rows_are_left_out_and_measurements_are_not(tmp_path):
    rows = rows_of(lambda r: f"part {r},{r * 0.5},{(r * 7) % 41},{r % 2}")
    bundle = load(write(tmp_path / "a.csv", "name,size,count,label", rows))
    assert [column.name for column in bundle.encoding.rows.columns] == ["size", "count"]
    assert bundle.encoding.rows.left_out == ("name",)


@pytest.mark.parametrize(
    ("labels", "trusted", "words"),
    [
        (["Cat", "cat", "dog"], None, "'Cat' and 'cat' differ in case or blanks only"),
        (["new york", "newyork", "rome"], None, "'new york' and 'newyork' differ in case or blank"),
        (["cat", "dog"], ["Cat", "Dog"], "'Cat' and 'cat' differ in case or blanks only"),
        (["0", "1"], ["no", "yes"], "its labels ('no', 'yes') and those of"),
        (["cat"], ["cat", "dog"], "all rows have the label 'cat'"),
    ],
)
def test_labels_that_cannot_be_meant_are_refused(tmp_path, labels, trusted, words):
    def table(name, names):
        return write(
            tmp_path / name, "x,label", rows_of(lambda r: f"{r * 0.3},{names[r % len(names)]}")
        )

    given = {} if trusted is None else {"trusted": table("trusted.csv", trusted)}
    assert words in refusal(table("train.csv", labels), **given)


def test_large_numbers_are_scaled_in_double_precision(tmp_path):
    values = np.random.default_rng(0).normal(size=40)
    rows = [f"{float(1e100 * value)!r},{row % 2}" for row, value in enumerate(values)]
    scaled = inputs(load(write(tmp_path / "a.csv", "x,label", rows))).numpy().ravel()
    np.testing.assert_allclose(scaled, (values - values.mean()) / values.std(), rtol=1e-5)
    np.savez(tmp_path / "a.npz", X=1e100 * values[:, None], y=np.arange(40) % 2)
    np.testing.assert_allclose(inputs(load(tmp_path / "a.npz")).numpy().ravel(), scaled, rtol=1e-5)


def test_numbers_far_from_the_training_data_are_named(tmp_path):
    train = write(tmp_path / "a.csv", "x,label", rows_of(lambda r: f"{r * 0.3},{r % 2}"))
    trusted = write(tmp_path / "b.csv", "x,label", ["1,0", "1e25,1"])
    assert "b.csv: 1e+25 in row 1 of column 'x' is 3e+24 standard" in refusal(
        train, trusted=trusted
    )
    np.savez(tmp_path / "a.npz", X=np.arange(40.0)[:, None], y=np.arange(40) % 2)
    np.savez(tmp_path / "b.npz", X=[[1.0], [1e25]], y=[0, 1])
    assert "b.npz: 1e+25 in row 1, column 0" in refusal(
        tmp_path / "a.npz", trusted=tmp_path / "b.npz"
    )


def test_packed_and_foreign_text(tmp_path):
    plain = write(tmp_path / "a.csv", "x,label", rows_of(lambda r: f"{r % 7},{'für' * (r % 2)}b"))
    (tmp_path / "old.csv").write_bytes(plain.read_text().encode("latin-1"))
    assert load(tmp_path / "old.csv", text_encoding="latin-1").train.classes == ("b", "fürb")
    assert "encoding: there is no 'klingon'" in refusal(plain, text_encoding="klingon")
    for content in (gzip.compress(plain.read_bytes())[:-9], b"x,label\n"):
        (tmp_path / "cut.csv.gz").write_bytes(content)
        assert "not a readable .gz file" in refusal(tmp_path / "cut.csv.gz")


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "pipe.csv: is a pipe or a device" in refusal(tmp_path / "pipe.csv")
    for name in ("zero.csv", "zero.npz", "zero.parquet"):
        (tmp_path / name).symlink_to("/dev/zero")
        assert "is a pipe or a device" in refusal(tmp_path / name)


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("diw.data.tables.MAX_LINE", 1000)
    (tmp_path / "a.csv").write_text("x,label\n" + "1" * 2000)
    assert "a line of 1,000 characters" in refusal(tmp_path / "a.csv")


def test_many_columns_are_checked_in_linear_time(tmp_path):
    names = [f"c{place}" for place in range(60_000)]
    path = write(tmp_path / "a.csv", ",".join([*names, "c7", "label"]), [])
    started = time.perf_counter()
    assert "two columns are named 'c7'" in refusal(path)
    assert time.perf_counter() - started < 5  # a quadratic check takes minutes


def test_a_table_with_many_missing_cells_has_one_line(tmp_path):
    names = [f"c{place}" for place in range(30)]
    rows = rows_of(
        lambda r: ",".join(["" if (r + k) % 9 == 0 else f"{r * k}" for k in range(1, 31)])
    )
    rows = [f"{row},{place % 2}" for place, row in enumerate(rows)]
    bundle = load(write(tmp_path / "a.csv", ",".join([*names, "label"]), rows))
    assert len(bundle.notes) == 30
    (line,) = brief(bundle.notes)
    assert "missing values set to the mean in 30 columns ('c0', 'c1', 'c2', …)" in line


@pytest.mark.parametrize("damage", ["cut", "lying", "objects"])
def test_values_to_match_are_read_as_carefully(tmp_path, damage):
    good, bad = tmp_path / "good.npy", tmp_path / "bad.npy"
    np.save(good, np.arange(9.0))
    content = good.read_bytes()
    if damage == "cut":
        bad.write_bytes(content[:-20])
    elif damage == "lying":
        bad.write_bytes(content.replace(b"(9,)", b"(9999999999999,)"))
    else:
        np.save(bad, np.array([{}, []], dtype=object))
    with pytest.raises(UsageError, match=r"bad\.npy: not a readable \.npy file"):
        read_values(bad, good)
