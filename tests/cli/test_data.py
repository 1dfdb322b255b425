"""`diw data` as a user meets it: output, files and exit codes."""

import gzip
import json
from collections.abc import Iterator

import pytest

from diw.data import BENCHMARKS
from diw.data.benchmarks.catalogue import Benchmark, DataFile
from tests.own_data import diw, done


@pytest.fixture
def little(tmp_path, monkeypatch) -> Iterator[Benchmark]:
    """The only benchmark there is: one file, present in $DIW_DATA."""
    import hashlib

    content = b"content"
    file = DataFile("a.gz", len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
    benchmark = Benchmark("little", "a little one", "little", "idx", ("a",), (file,), (), ())
    folder = tmp_path / "data" / "little"
    folder.mkdir(parents=True)
    (folder / "a.gz").write_bytes(gzip.compress(content))
    monkeypatch.setenv("DIW_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    others = dict(BENCHMARKS)
    BENCHMARKS.clear()
    BENCHMARKS["little"] = benchmark
    yield benchmark
    BENCHMARKS.clear()
    BENCHMARKS.update(others)  # in their order, which messages show


def test_the_list_says_what_is_here_and_whether_it_is_right(little, tmp_path):
    assert "verified" in done("data", "--json", tmp_path / "list.json")
    listing = json.loads((tmp_path / "list.json").read_text())
    assert [(entry["name"], entry["state"]) for entry in listing] == [
        ("embedded", "verified"),
        ("little", "verified"),
    ]
    assert listing[1]["folder"] == str(tmp_path / "data" / "little")


def test_the_list_names_what_is_missing_or_altered(little, tmp_path):
    file = tmp_path / "data" / "little" / "a.gz"
    file.write_bytes(gzip.compress(b"another"))
    assert "altered" in done("data")
    file.unlink()
    assert "diw data fetch little" in done("data")


def test_check_passes_and_fails_by_its_exit_code(little, tmp_path):
    assert "a.gz: verified" in done("data", "check", "little")
    file = tmp_path / "data" / "little" / "a.gz"
    file.write_bytes(file.read_bytes()[:-9])
    code, out, err = diw("data", "check", "little", "--json", tmp_path / "check.json")
    assert code == 1
    assert "truncated" in out
    assert err.count("\n") == 1
    assert json.loads((tmp_path / "check.json").read_text())["state"] == "altered"
    file.unlink()
    assert diw("data", "check", "little")[0] == 1


def test_fetch_of_what_is_here_says_where(little, tmp_path):
    assert str(tmp_path / "data" / "little") in done("data", "fetch", "little")
