"""Downloads from a server on this machine: whole and verified, or nothing."""

import hashlib
import io
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from diw.data.benchmarks.catalogue import Benchmark, DataFile, Download
from diw.data.benchmarks.files import extract, fetch
from diw.errors import RunError

CONTENT = {"train.bin": b"t" * 5000, "test.bin": b"e" * 3000}
FILES = tuple(
    DataFile(name, len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
    for name, content in CONTENT.items()
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """A folder that is served, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DIW_DATA", raising=False)
    return tmp_path / "cache" / "diw"


def archive(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def benchmark(address: str, packed: bytes) -> Benchmark:
    url = f"{address}/set.tar.gz"
    md5 = hashlib.md5(packed, usedforsecurity=False).hexdigest()
    return Benchmark(
        "set", "a set", "set-folder", "cifar", ("a",), FILES[:1], FILES[1:], (Download(url, md5),)
    )


def left_in(cache) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def test_an_archive_is_fetched_once_and_verified(server, cache):
    folder, address = server
    packed = archive({f"set-folder/{name}": content for name, content in CONTENT.items()})
    (folder / "set.tar.gz").write_bytes(packed)
    found = fetch(benchmark(address, packed), progress=True)
    assert found == cache / "set-folder"
    assert {p.name: p.read_bytes() for p in found.iterdir()} == CONTENT
    assert left_in(cache) == ["set-folder"]
    (folder / "set.tar.gz").unlink()  # a second fetch asks nobody
    assert fetch(benchmark(address, packed), progress=False) == found


def test_an_altered_cache_is_fetched_anew(server, cache):
    folder, address = server
    packed = archive(CONTENT)
    (folder / "set.tar.gz").write_bytes(packed)
    found = fetch(benchmark(address, packed), progress=False)
    (found / "test.bin").write_bytes(b"e" * 2999 + b"x")
    fetch(benchmark(address, packed), progress=False)
    assert (found / "test.bin").read_bytes() == CONTENT["test.bin"]


def test_altered_files_elsewhere_are_named_and_left_alone(server, tmp_path, monkeypatch):
    _, address = server
    own = tmp_path / "own" / "set-folder"
    own.mkdir(parents=True)
    for name in CONTENT:
        (own / name).write_bytes(b"?")
    monkeypatch.setenv("DIW_DATA", str(tmp_path / "own"))
    with pytest.raises(RunError, match="truncated or altered"):
        fetch(benchmark(address, b""), progress=False)
    assert (own / "test.bin").read_bytes() == b"?"


@pytest.mark.parametrize("wrong", ["truncated", "other", "absent", "nobody"])
def test_a_failed_download_leaves_no_cache_behind(server, cache, wrong):
    folder, address = server
    packed = archive(CONTENT)
    if wrong == "truncated":
        (folder / "set.tar.gz").write_bytes(packed[:-20])
    elif wrong == "other":
        (folder / "set.tar.gz").write_bytes(archive({"train.bin": b"else"}))
    elif wrong == "nobody":
        address = "http://127.0.0.1:9"
    with pytest.raises(RunError, match=r"set\.tar\.gz: cannot be downloaded"):
        fetch(benchmark(address, packed), progress=True)
    assert left_in(cache) == []


def test_an_archive_with_wrong_contents_leaves_no_cache_behind(server, cache):
    folder, address = server
    for members in ({"train.bin": CONTENT["train.bin"]}, {**CONTENT, "test.bin": b"x" * 3000}):
        packed = archive(members)
        (folder / "set.tar.gz").write_bytes(packed)
        with pytest.raises(RunError, match=r"does not hold|altered"):
            fetch(benchmark(address, packed), progress=False)
        assert left_in(cache) == []


def test_leftovers_of_a_killed_fetch_do_not_matter(server, cache):
    folder, address = server
    packed = archive(CONTENT)
    (folder / "set.tar.gz").write_bytes(packed)
    (cache / ".set-folder.unfinished" / "ready").mkdir(parents=True)
    (cache / ".set-folder.unfinished" / "ready" / "train.bin").write_bytes(b"half")
    fetch(benchmark(address, packed), progress=False)
    assert left_in(cache) == ["set-folder"]


def test_extraction_writes_known_names_only(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, kind, target in (
            ("../../escaped.txt", tarfile.REGTYPE, ""),
            ("/tmp/absolute-escape.bin", tarfile.REGTYPE, ""),
            ("train.bin", tarfile.SYMTYPE, "/etc/passwd"),
            ("test.bin", tarfile.LNKTYPE, "train.bin"),
            ("fifo", tarfile.FIFOTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            tar.addfile(info)
        for name, content in CONTENT.items():
            info = tarfile.TarInfo(f"../up/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    (tmp_path / "evil.tar.gz").write_bytes(out.getvalue())
    into = tmp_path / "deep" / "into"
    into.mkdir(parents=True)
    extract(tmp_path / "evil.tar.gz", into, FILES)
    assert {p.name: p.read_bytes() for p in into.iterdir()} == CONTENT
    assert not any(p.is_symlink() for p in into.iterdir())
    written = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert written == ["deep/into/test.bin", "deep/into/train.bin", "evil.tar.gz"]


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(RunError, match="cannot be unpacked"):
        extract(tmp_path / "a.tar.gz", tmp_path, FILES)
