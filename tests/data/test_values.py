"""Values in parts: arrays on disk and folders of Parquet files."""

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from diw.data.values import find_parts, moments_of, standardised, with_places
from diw.errors import UsageError


def write_table(path, values, **more) -> None:
    columns = {name: values[:, i] for i, name in enumerate("ab")} | more
    parquet.write_table(pyarrow.table(columns), path, row_group_size=7)


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(3, [1, 100], (40, 2))


def read(parts):
    return np.concatenate([part.read() for part in parts])


def test_a_folder_of_tables_is_read_in_the_order_of_names(tmp_path, values) -> None:
    write_table(tmp_path / "2.parquet", values[25:], label=["x"] * 15)
    write_table(tmp_path / "1.parquet", values[:25], label=["x"] * 25)
    parts = find_parts(tmp_path, ["label"], part_values=10, group_values=10)
    assert max(part.rows for part in parts) == 5
    np.testing.assert_array_equal(read(parts), values)


def test_a_row_group_of_moderate_size_is_read_at_once(tmp_path, values) -> None:
    write_table(tmp_path / "1.parquet", values)
    parts = find_parts(tmp_path, part_values=6)
    assert [part.rows for part in parts] == [7] * 5 + [5]
    np.testing.assert_array_equal(read(parts), values)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_arrays_are_mapped(tmp_path, values, kind) -> None:
    np.save(tmp_path / "z.npy", values.astype(kind))
    np.save(tmp_path / "one.npy", values[:, 0].astype(kind))
    parts = find_parts(tmp_path / "z.npy", part_values=10)
    assert [part.rows for part in parts] == [5] * 8
    np.testing.assert_array_equal(read(parts), values.astype(kind))
    np.testing.assert_array_equal(read(find_parts(tmp_path / "one.npy")), values[:, 0].astype(kind))


def test_all_parts_are_scaled_alike(tmp_path, values) -> None:
    np.save(tmp_path / "z.npy", values)
    parts = find_parts(tmp_path / "z.npy", part_values=14)
    parts, shift, factor = standardised(parts, [moments_of(part) for part in parts])
    expected = (values - values.mean(0)) / values.std(0)
    np.testing.assert_allclose(read(parts), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose((values - shift) * factor, expected, rtol=1e-12, atol=1e-12)


def test_weights_go_to_their_places(tmp_path, values) -> None:
    np.save(tmp_path / "z.npy", values)
    parts = with_places(find_parts(tmp_path / "z.npy", part_values=10), tmp_path / "w")
    for number in (5, 0, 7, 1, 2, 3, 4, 6):
        parts[number].write(np.full(5, float(number)))
    np.testing.assert_array_equal(np.load(tmp_path / "w"), np.repeat(np.arange(8.0), 5))


def test_what_cannot_be_read_is_named(tmp_path, values) -> None:
    def says(words, path, drop=()):
        with pytest.raises(UsageError, match=words):
            read(find_parts(path, drop))

    says("no such file", tmp_path / "no.npy")
    says("only .npy and .parquet are read in parts", tmp_path / "z.csv")
    says(r"holds no .parquet and no .npy files", tmp_path)
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'")
    says(r"bad.npy: not a readable .npy file", tmp_path / "bad.npy")
    np.save(tmp_path / "cut.npy", values)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-8])
    says(r"cut.npy: not a readable .npy file", tmp_path / "cut.npy")
    np.save(tmp_path / "text.npy", np.array(["a"]))
    says(r"text.npy: expected rows of numbers", tmp_path / "text.npy")
    np.save(tmp_path / "nan.npy", np.array([1.0, np.nan]))
    says(r"nan.npy: it holds missing, infinite or huge values", tmp_path / "nan.npy")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1nothing")
    says(r"bad.parquet: not a readable Parquet file", tmp_path / "bad.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    write_table(folder / "1.parquet", values, label=["x"] * 40)
    says(r"column 'label' holds no numbers \(string\); leave it out: --drop label", folder)
    says(r"^drop: .* has no column 'other'", folder, ["other"])
    parquet.write_table(pyarrow.table({"a": [1.0, None]}), folder / "2.parquet")
    (folder / "1.parquet").unlink()
    says(r"holds missing, infinite or huge", folder)
    np.save(folder / "1.npy", values)
    says(r"holds both .parquet and .npy files", folder)
