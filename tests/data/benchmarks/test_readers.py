"""Readers of the benchmarks, on files the tests write and on the real ones where they are."""

import dataclasses
import gzip
import hashlib
import struct
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diw.data import BENCHMARKS, load
from diw.data.benchmarks.catalogue import CIFAR_10, CIFAR_100, FASHION_MNIST, Benchmark, DataFile
from diw.data.benchmarks.files import check_folder, find, read_content
from diw.data.benchmarks.readers import parse_idx, read_benchmark
from diw.errors import RunError, UsageError


def idx(array: np.ndarray) -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def install(benchmark: Benchmark, root: Path, contents: dict[str, bytes]) -> Benchmark:
    """Write files as the benchmark's, and the benchmark that expects them."""

    def expect(files):
        return tuple(
            DataFile(
                file.name,
                len(contents[file.name]),
                f"sha256:{hashlib.sha256(contents[file.name]).hexdigest()}",
            )
            for file in files
        )

    folder = root / benchmark.folder
    folder.mkdir(parents=True)
    for name, content in contents.items():
        packed = gzip.compress(content) if name.endswith(".gz") else content
        (folder / name).write_bytes(packed)
    return dataclasses.replace(
        benchmark, train=expect(benchmark.train), test=expect(benchmark.test)
    )


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_idx_files_become_grey_images(tmp_path, rng):
    images = rng.integers(0, 256, (7, 28, 28), np.uint8)
    labels = rng.integers(0, 10, 7, np.uint8)
    contents = dict.fromkeys((f.name for f in FASHION_MNIST.files), b"")
    for name in contents:
        contents[name] = idx(images if "images" in name else labels)
    bundle = read_benchmark(
        install(FASHION_MNIST, tmp_path, contents), tmp_path / FASHION_MNIST.folder
    )
    taken, targets = bundle.train.take(torch.arange(7))
    assert taken.shape == (7, 1, 28, 28)
    assert np.array_equal((taken[:, 0] * 255).round().numpy(), images)
    assert targets.tolist() == labels.tolist()
    assert bundle.clean.all()


@pytest.mark.parametrize(("benchmark", "head"), [(CIFAR_10, 1), (CIFAR_100, 2)])
def test_cifar_records_become_colour_images(tmp_path, rng, benchmark, head):
    pixels = {f.name: rng.integers(0, 256, (4, 3, 32, 32), np.uint8) for f in benchmark.files}
    labels = {f.name: rng.integers(0, len(benchmark.classes), 4, np.uint8) for f in benchmark.files}
    contents = {
        name: b"".join(
            bytes([99] * (head - 1)) + bytes([label]) + image.tobytes()
            for label, image in zip(labels[name], pixels[name], strict=True)
        )
        for name in pixels
    }
    bundle = read_benchmark(install(benchmark, tmp_path, contents), tmp_path / benchmark.folder)
    names = [file.name for file in benchmark.train]
    taken, targets = bundle.train.take(torch.arange(4 * len(names)))
    assert np.array_equal(
        (taken * 255).round().numpy(), np.concatenate([pixels[name] for name in names])
    )
    assert targets.tolist() == np.concatenate([labels[name] for name in names]).tolist()
    assert bundle.test.class_counts.sum() == 4
    assert bundle.train.num_classes == len(benchmark.classes)


def test_class_lists_are_complete():
    assert [len(each.classes) for each in BENCHMARKS.values()] == [10, 10, 100]
    assert len(set(CIFAR_100.classes)) == 100
    assert list(CIFAR_100.classes) == sorted(CIFAR_100.classes)


def test_roots_are_searched_in_order(tmp_path, monkeypatch):
    benchmark = dataclasses.replace(CIFAR_100)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("diw.data.benchmarks.files.DEBIAN", tmp_path / "debian")
    monkeypatch.delenv("DIW_DATA", raising=False)
    assert find(benchmark) is None
    places = [tmp_path / "debian", tmp_path / "cache" / "diw", tmp_path / "own"]
    monkeypatch.setenv("DIW_DATA", str(tmp_path / "own"))
    for place in places:
        folder = place / benchmark.folder
        folder.mkdir(parents=True)
        (folder / "train.bin").touch()
        assert find(benchmark) != folder  # incomplete
        (folder / "test.bin").touch()
        assert find(benchmark) == folder


@pytest.mark.parametrize("name", ["a.bin", "a.gz"])
def test_truncated_and_altered_files_are_named(tmp_path, name):
    content = b"0123456789" * 100
    file = DataFile(name, 1000, f"sha256:{hashlib.sha256(content).hexdigest()}")
    path = tmp_path / name

    def write(value: bytes) -> None:
        path.write_bytes(gzip.compress(value) if name.endswith(".gz") else value)

    write(content)
    assert read_content(path, file) == content
    for wrong in (content[:-1], content + b"0", b"", content[:-1] + b"x"):
        write(wrong)
        with pytest.raises(RunError, match=r"truncated|altered") as error:
            read_content(path, file)
        assert str(path) in str(error.value)
    write(content)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(RunError, match=r"truncated|altered"):
        read_content(path, file)
    path.write_bytes(b"not gzip at all")
    with pytest.raises(RunError, match=r"truncated|altered"):
        read_content(path, file)


def test_a_gzip_bomb_is_not_unfolded(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(RunError, match="more found"):
        read_content(path, DataFile("a.gz", 1000, "sha256:0"))


@given(st.binary(max_size=64))
def test_no_bytes_make_the_idx_parser_do_anything_but_refuse_or_fit(content):
    try:
        array = parse_idx(content, "file")
    except RunError:
        return
    assert array.nbytes <= len(content)


def test_an_unknown_name_lists_the_choices_and_what_is_readable():
    with pytest.raises(
        UsageError, match="choose embedded, fashion-mnist, cifar-10, cifar-100, or a path"
    ):
        load("imagenet")


def test_generated_images_are_named_synthetic(tmp_path, monkeypatch):
    monkeypatch.delenv("DIW_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bundle = load("cifar-100", synthetic_ok=True)
    assert "synthetic" in bundle.name
    assert "synthetic" in str(bundle.notes[0])
    assert bundle.train.shape == (3, 32, 32)
    assert bundle.train.class_counts.tolist() == [20] * 100
    again = load("cifar-100", synthetic_ok=True)
    rows = torch.arange(20)
    assert torch.equal(bundle.train.take(rows)[0], again.train.take(rows)[0])


@pytest.mark.data
@pytest.mark.parametrize("name", ["fashion-mnist", "cifar-10"])
def test_real_benchmarks_are_verified_complete_and_quick(name):
    if find(BENCHMARKS[name]) is None:
        pytest.skip("needs the real files in $DIW_DATA")
    assert set(check_folder(BENCHMARKS[name], find(BENCHMARKS[name])).values()) == {"verified"}
    start = time.process_time()
    bundle = load(name)
    seconds = time.process_time() - start
    assert len(set(bundle.train.class_counts.tolist())) == 1
    assert len(bundle.test) == 10_000
    if name == "fashion-mnist":
        assert seconds < 2
