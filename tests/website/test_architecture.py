"""The architecture page says what is there, and what the import contract checks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "diw"
UNSAID = {"__main__", "_version", "weighting"}  # what a map need not show


def _names(line: str) -> set[str]:
    return set(re.split(r"\s*[|:]\s*", line.strip()))


def test_the_layers_are_those_of_the_import_contract():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = config["tool"]["importlinter"]["contracts"][0]
    checked = [_names(line) - UNSAID for line in contract["layers"]]
    section = PAGE.split("## What may import what")[1].split("## ")[0]
    said = [_names(line) for line in re.findall(r"^    (.+)$", section, re.MULTILINE)]
    assert said == [names for names in checked if names]


def test_every_folder_and_module_has_a_line():
    section = PAGE.split("## A line a folder")[1].split("## ")[0]
    rows = "".join(line for line in section.splitlines() if line.startswith("|"))
    said = set(re.findall(r"`([a-z_]+)(?:/|\.py)`", rows.replace("`options.py`", "")))
    there = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert said == there - UNSAID - {"__init__"}


def test_every_file_that_the_page_names_is_there():
    for name in re.findall(r"`([a-z]+/[a-z_]+\.py)`", PAGE):
        assert (SOURCE / name).exists(), name
