"""`diw data` as a user meets it: output, files and exit codes."""

import gzip
import json

import pytest

from diw.cli.main import main
from diw.data import BENCHMARKS
from diw.data.benchmarks.catalogue import Benchmark, DataFile


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(["data", *arguments])
    captured = capsys.readouterr()
    return exit_.value.code or 0, captured.out, captured.err


@pytest.fixture
def little(tmp_path, monkeypatch) -> Benchmark:
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
    for name in list(BENCHMARKS):
        monkeypatch.delitem(BENCHMARKS, name)
    monkeypatch.setitem(BENCHMARKS, "little", benchmark)
    return benchmark


def test_the_list_says_what_is_here_and_whether_it_is_right(capsys, little, tmp_path):
    code, out, _ = run(capsys, "--json", str(tmp_path / "list.json"))
    assert code == 0
    assert "verified" in out
    listing = json.loads((tmp_path / "list.json").read_text())
    assert [(entry["name"], entry["state"]) for entry in listing] == [
        ("embedded", "verified"),
        ("little", "verified"),
    ]
    assert listing[1]["folder"] == str(tmp_path / "data" / "little")


def test_the_list_names_what_is_missing_or_altered(capsys, little, tmp_path):
    file = tmp_path / "data" / "little" / "a.gz"
    file.write_bytes(gzip.compress(b"another"))
    assert "altered" in run(capsys)[1]
    file.unlink()
    code, out, _ = run(capsys)
    assert code == 0
    assert "diw data fetch little" in out


def test_check_passes_and_fails_by_its_exit_code(capsys, little, tmp_path):
    code, out, _ = run(capsys, "check", "little")
    assert code == 0
    assert "a.gz: verified" in out
    file = tmp_path / "data" / "little" / "a.gz"
    file.write_bytes(file.read_bytes()[:-9])
    code, out, err = run(capsys, "check", "little", "--json", str(tmp_path / "check.json"))
    assert code == 1
    assert "truncated" in out
    assert err.count("\n") == 1
    assert json.loads((tmp_path / "check.json").read_text())["state"] == "altered"
    file.unlink()
    assert run(capsys, "check", "little")[0] == 1


def test_fetch_of_what_is_here_says_where(capsys, little, tmp_path):
    code, out, _ = run(capsys, "fetch", "little")
    assert code == 0
    assert str(tmp_path / "data" / "little") in out


def test_an_unknown_name_is_wrong_use(capsys):
    code, _, err = run(capsys, "fetch", "mnist")
    assert code == 2
    assert "fashion-mnist, cifar-10, cifar-100" in err
    assert err.count("\n") == 1
