"""The documentation has a page for every method, with numbers from the code and the results."""

import re
import runpy
from pathlib import Path

import pytest

from diw.methods import describe, find, methods

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "methods"
TABLES = runpy.run_path(str(DOCS / "_ext" / "method_tables.py"))
SECTIONS = ("Idea", "Equation", "When", "Fields", "Cost", "Measured")


@pytest.mark.parametrize("name", methods())
def test_every_method_has_a_page_with_every_part(name) -> None:
    text = (PAGES / f"{name}.md").read_text()
    assert text.startswith(f"# `{name}`\n")
    for section in SECTIONS:
        found = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        assert found, section
        assert found[1].strip(), section
    for kind in ("fields", "cost", "figures"):
        assert f"```{{method-{kind}}} {name}\n```" in text
    assert "$$" in text


@pytest.mark.parametrize("name", methods())
def test_the_table_of_a_method_has_its_fields_with_their_meaning(name) -> None:
    table = TABLES["fields_table"](name)
    for field in describe(find(name)):
        [row] = re.findall(rf"^\| `{field.name}` \| `(.+)` \| (.+) \|$", table, re.M)
        assert row[0] == repr(field.default)
        assert len(row[1]) > 10
    assert f"`{name}` has no fields" in table or describe(find(name))


@pytest.mark.parametrize("name", methods())
def test_the_cost_of_every_method_was_measured(name) -> None:
    ratio = float(re.search(r"\*\*([\d.]+) times\*\*", TABLES["cost_line"](name))[1])
    assert 0.5 < ratio < 10


def test_figures_are_those_of_the_committed_tables() -> None:
    text = (DOCS.parent / "results/cpu/label-noise/label-noise.md").read_text()
    rows = TABLES["figures_table"]("diw").splitlines()
    [row] = [line for line in rows if "`pair:0.3`" in line and "[label-noise, cpu]" in line]
    last = row.split("|")[5].strip()
    assert re.fullmatch(r"\d\d\.\d\d \(\d\.\d\d\)", last)
    assert last in text


@pytest.mark.parametrize("name", methods())
def test_the_index_lists_every_method(name) -> None:
    text = (PAGES / "index.md").read_text()
    assert re.search(rf"^\| \[`{re.escape(name)}`\]\({re.escape(name)}\.md\)", text, re.M)
    assert re.search(rf"^{re.escape(name)}$", text, re.M), "the table of contents"


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (PAGES / link).resolve().exists(), f"{page}: {link}"
