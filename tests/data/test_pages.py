"""The code on the pages about data and shifts runs as it stands there."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["data.md", "shifts.md"])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


def test_the_page_names_every_shift_as_it_is_written():
    from diw.shifts import USAGE

    text = (DOCS / "shifts.md").read_text(encoding="utf-8")
    for usage in USAGE.values():
        assert all(f"`{form}`" in text for form in _forms(usage))


def _forms(usage: str) -> list[str]:
    """`contaminated:RATE|FILE` stands for two."""
    name, colon, values = usage.partition(":")
    return [f"{name}{colon}{value}" for value in values.split("|")]
