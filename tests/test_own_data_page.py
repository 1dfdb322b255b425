"""The tutorial on your own data: every command and every program of it is run, in order."""

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own_data import diw

PAGE = Path(__file__).parents[1] / "docs" / "own-data.md"

QUICK = {"train": ["--epochs", "1"], "compare": ["--epochs", "1", "--seeds", "1", "--jobs", "1"]}
"""The same commands in less time."""


def run_line(line: str) -> str:
    """One line of the shell; `diw` and `python` in this process, which has everything imported."""
    words = shlex.split(line)
    if words[0] == "diw":
        code, out, error = diw(*words[1:], *QUICK.get(words[1], []))
        assert code == 0, f"{line}: {error}"
        return out + error
    if words[0] == "python":
        run_program(Path(words[1]).read_text())
        return ""
    return subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout


def run_program(text: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "page", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    said, printed = "", []
    for between, language, block in re.findall(
        r"(.*?)^```(python|sh)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        names = re.findall(r"[Ss]ave this as\s+`(\w+\.py)`", between)
        if language == "sh":
            said += "".join(run_line(line) for line in block.strip().splitlines())
        elif names:
            Path(names[-1]).write_text(block)
        else:
            printed.append(ast.literal_eval(run_program(block)))
    sys.modules.pop("mine", None)
    for quoted in re.findall(r"^    (note: .*|data: .*)$", text, re.MULTILINE):
        assert quoted in said
    header, *lines = Path("predictions.csv").read_text().splitlines()
    assert header == "label,p_faulty,p_good"
    assert printed == [[line.partition(",")[0] for line in lines]]
    assert len(lines) == 20
    for file in ("scores.json", "arrays.npz", "images.csv", "own.csv"):
        assert Path(file).stat().st_size > 0
    for listed in re.findall(r"^\| `([\w.]+)`(?:, `([\w.]+)`)? \| ", text, re.MULTILINE)[:6]:
        for file in filter(None, listed):
            assert (Path("model") / file).exists()
