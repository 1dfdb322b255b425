"""The soaks in their short forms."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("soak", "options", "words"),
    [
        ("kill", ["--kills", "1"], "all bitwise equal"),
        ("pairs", ["--pairs", "2"], "2 pairs, nothing wrong"),
        ("fuzz", ["--cases", "15"], "15 cases, nothing wrong"),
        ("readers", ["--files", "25"], "25 files, nothing wrong"),
        ("numbers", ["--problems", "100"], "100 problems, nothing wrong"),
        ("solver", ["--problems", "30"], "30 problems, nothing wrong"),
    ],
)
def test_a_short_soak_finds_nothing(soak, options, words, tmp_path) -> None:
    command = [sys.executable, "-m", f"tools.soak.{soak}", "--folder", str(tmp_path), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert words in done.stdout
