"""The page on verified rows says what the kept benchmarks say, and nothing else."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verified.md").read_text(encoding="utf-8")


def test_the_page_is_what_its_script_writes():
    pytest.importorskip("matplotlib")
    from scripts.write_verified import page

    assert page() == PAGE


@pytest.mark.parametrize("name", ["images", "model", "rows", "share", "speed"])
def test_every_file_of_results_says_how_it_was_made(name):
    path = ROOT / "benchmarks" / "results" / f"label-{name}.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["command"] == f"python -m benchmarks label_{name} --save"
    assert re.fullmatch("[0-9a-f]{7,}", kept["commit"])


def test_the_picture_is_small():
    assert (ROOT / "docs" / "images" / "verified-rows.png").stat().st_size < 150_000
