"""The Python code on the pages of the documentation runs as it stands there."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
WITH_COMMANDS = {"own-data.md"}  # its code needs what its commands make: test_own_data_page.py
CODE = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
PAGES = {
    page: blocks
    for path in sorted(DOCS.rglob("*.md"))
    if (page := str(path.relative_to(DOCS))) not in WITH_COMMANDS
    and (blocks := CODE.findall(path.read_text(encoding="utf-8")))
}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(PAGES[page]):
        exec(compile(block, f"{page}, block {number}", "exec"), names)
