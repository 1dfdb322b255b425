"""No bytes make a reader do anything but read or refuse with one line, in bounded memory."""

import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diw.data import load
from diw.errors import UsageError

CAP = 64_000_000
"""Bytes that reading any of these small files may take."""

fuzz = settings(
    deadline=5000,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def survive(path: Path) -> None:
    """Load and take everything; only a one-line refusal may be raised."""
    tracemalloc.start()
    try:
        bundle = load(path)
        bundle.train.take(torch.arange(len(bundle.train)))
    except UsageError as error:
        message = str(error)
        if "\n" in message or not message:
            pytest.fail(f"not one line: {message!r}")
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < CAP


def saved(path: Path, kind: str) -> Path:
    """A small file, or a folder of two pictures, that can be read; what of it is damaged."""
    if kind == "npz":
        np.savez_compressed(path / "a.npz", X=np.arange(24.0).reshape(6, 4), y=list("ababab"))
    elif kind == "npy":
        np.save(path / "X.npy", np.arange(24.0).reshape(6, 4))
        np.save(path / "y.npy", np.arange(6) % 2)
        return path / "X.npy"
    elif kind == "png":
        from PIL import Image

        picture = Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3))
        for name in ("a", "b"):
            (path / name).mkdir(exist_ok=True)
            picture.save(path / name / "1.png")
        return path / "a" / "1.png"
    elif kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"x": [1.0, 2.0, None], "label": list("aba")}), path / "a.parquet")
    return path / f"a.{kind}"


@pytest.mark.parametrize("kind", ["npz", "npy", "png", "parquet"])
@fuzz
@given(st.data())
def test_damaged_files(tmp_path, kind, data):
    """A few bytes are changed, and perhaps the end is cut off."""
    file = saved(tmp_path, kind)
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(1, len(content)))
    file.write_bytes(content[:end] if data.draw(st.booleans()) else content)
    survive(tmp_path if kind == "png" else file)


@fuzz
@given(st.binary(max_size=200), st.sampled_from([".npz", ".npy", ".csv", ".tsv", ".parquet"]))
def test_any_bytes(tmp_path, content, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    survive(path)


cell = st.one_of(
    st.sampled_from(["", "1", "-2.5", "nan", "inf", "1e400", "x", '"', "é", "1_0", "\x00", "?"]),
    st.text(max_size=6),
)


@fuzz
@given(
    st.lists(st.lists(cell, min_size=1, max_size=4), max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_table(tmp_path, lines, delimiter, newline):
    body = newline.join(delimiter.join(line) for line in lines)
    path = tmp_path / "a.csv"
    path.write_bytes(f"x{delimiter}label{newline}{body}".encode("utf-8", "surrogatepass"))
    survive(path)


numbers = st.one_of(
    st.integers(-3, 300), st.floats(allow_nan=True, allow_infinity=True), st.booleans()
)


@fuzz
@given(
    st.lists(st.integers(0, 4), max_size=5),
    st.sampled_from(["u1", "i8", ">f4", "f2", "f8", "c8", "S3", "U2", "?", "M8[s]", "V4"]),
    st.lists(numbers, max_size=6),
)
def test_any_arrays(tmp_path, shape, dtype, labels):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.zeros(shape, dtype), y=np.array(labels))
    survive(path)


def announce(shape: str) -> bytes:
    """An .npy file whose header promises `shape` doubles and that holds none."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize("shape", ["(500000000, 4)", "(1000000, 64)", "(-5, 3)", "(9" * 40 + ",)"])
def test_headers_that_promise_too_much(tmp_path, shape):
    (tmp_path / "X.npy").write_bytes(announce(shape))
    survive(tmp_path / "X.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", announce(shape))
    survive(tmp_path / "a.npz")


def blank_png(side: int) -> bytes:
    """A PNG of a hundred bytes that announces side x side pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_an_image_chunk_that_announces_too_much_takes_no_memory(tmp_path):
    file = saved(tmp_path, "png")
    whole = bytearray(file.read_bytes())
    at = whole.index(b"IDAT")
    whole[at - 4 : at] = struct.pack(">I", 1 << 30)
    file.write_bytes(whole)
    survive(tmp_path)


@pytest.mark.parametrize(
    ("side", "message"), [(10_000, "10000 x 10000 pixels are too many"), (60_000, "exceeds limit")]
)
def test_an_image_of_too_many_pixels_is_not_unfolded(tmp_path, side, message):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(blank_png(side))
    survive(tmp_path)
    with pytest.raises(UsageError, match=message):
        load(tmp_path)
