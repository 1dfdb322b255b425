"""The command as a user meets it: exit codes, one-line errors, no torch for --help."""

import subprocess
import sys
from pathlib import Path

import pytest

from diw._version import __version__
from diw.cli.main import VERBS, main


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(exit.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_shows_examples_and_imports_nothing_heavy(verb: str) -> None:
    program = (
        "import sys; from diw.cli.main import main\n"
        f"try: main({[*([verb] if verb else []), '--help']!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'scipy', 'plotly', 'sklearn', 'joblib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage: diw" in done.stdout
    assert "Examples:" in done.stdout
    assert f"diw {verb}" in done.stdout.partition("Examples:")[2]


def test_version(capsys) -> None:
    assert run("--version", capsys=capsys)[1].strip() == f"diw, version {__version__}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--methods", "dwi"], ["--methods", "'dwi'", "did you mean diw", "uniform"]),
        (["--shift", "foo"], ["--shift", "'foo'", "symmetric:RATE", "pair:RATE"]),
        (["--shift", "symmetric:1"], ["--shift", "[0, 1)"]),
        (["--shift", "symmetric:-0.1"], ["--shift", "[0, 1)"]),
        (["--data", "foo"], ["--data", "'foo'", "embedded"]),
        (["--epochs", "-3"], ["--epochs", "-3"]),
        (["--seeds", "0"], ["--seeds", "0"]),
        (["--lr", "-1"], ["--lr", "-1"]),
        (["--trusted", "0"], ["--trusted", "at least one"]),
        (["--trusted", "-5"], ["--trusted", "-5"]),
        (["--trusted", "99999"], ["--trusted", "99999", "10000"]),
        (["--set", "diw.foo=1"], ["--set diw.foo", "no field 'foo'", "bound"]),
        (["--set", "diw.bound=x"], ["--set diw.bound", "'x'"]),
        (["--set", "diw.bound"], ["--set", "METHOD.FIELD=VALUE"]),
        (["--set", "reweight.x=1"], ["--set", "reweight"]),
        (["--set", "diw.bound=inf"], ["--set diw.bound", "inf"]),
        (["--set", "diw.bound=0.5"], ["--set diw.bound", "at least 1"]),
        (["--set", "diw.gamma=inf"], ["--set diw.gamma", "inf"]),
        (["--lr", "inf"], ["--lr", "inf"]),
        (["--model", "os:getcwd"], ["--model", "os:getcwd"]),
        (["--test", "nope.csv"], ["nope.csv", "no such file"]),
        (["--device", "tpu"], ["--device", "'tpu'", "cuda"]),
        (["--model", "vgg"], ["--model", "'vgg'", "lenet5"]),
        (["--json", "/no/such/folder/x.json"], ["--json", "/no/such/folder"]),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(arguments, words, capsys, tmp_path) -> None:
    code, out, error = run("compare", *arguments, "--out", str(tmp_path / "runs"), capsys=capsys)
    assert code == 2
    assert out == ""
    assert len(error.strip().splitlines()) == 1
    for word in words:
        assert word in error
    assert not list(tmp_path.rglob("spec.json"))


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    code, _, error = run("compare", "--out", str(tmp_path / "file" / "runs"), capsys=capsys)
    assert code == 2
    assert "--out" in error


def test_a_bad_file_is_not_blamed_on_a_field(tmp_path: Path, capsys) -> None:
    (tmp_path / "ragged.csv").write_text("x,label\n1\n")
    code, _, error = run("compare", "--data", str(tmp_path / "ragged.csv"), capsys=capsys)
    assert code == 2
    assert "ragged.csv" in error
    assert "--set" not in error


def test_unknown_verb(capsys) -> None:
    code, _, error = run("comparee", capsys=capsys)
    assert code == 2
    assert "comparee" in error
