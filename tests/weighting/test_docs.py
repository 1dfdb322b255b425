"""The documentation has a section for every method, and names each of its fields."""

import re
from pathlib import Path

import pytest

from diw.weighting import describe, find, methods

PAGES = Path(__file__).parents[2] / "docs" / "methods"
TEXT = {page.name: page.read_text() for page in PAGES.glob("*.md")}


def section(name: str) -> str:
    """The text under a method's heading."""
    for text in TEXT.values():
        found = re.search(rf"^## `{re.escape(name)}`\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        if found:
            return found[1]
    raise AssertionError(f"no section for {name}")


def named_in(name: str, seen: frozenset[str] = frozenset()) -> str:
    """A method's section with those it refers to for its fields."""
    text = section(name)
    others: list[str] = re.findall(r"`([a-z0-9-]+)`", text.partition("Fields")[2])
    known = {*methods()} - seen - {name}
    return text + "".join(named_in(other, seen | {name}) for other in others if other in known)


@pytest.mark.parametrize("name", methods())
def test_every_method_has_a_section_that_names_its_fields(name) -> None:
    text = named_in(name)
    shared = TEXT["index.md"].partition("## Every field of a match")[2]
    for field in describe(find(name)):
        assert f"`{field.name}`" in text or f"`{field.name}`" in shared, field.name


@pytest.mark.parametrize("name", methods())
def test_the_index_lists_every_method(name) -> None:
    assert re.search(rf"^\| `{re.escape(name)}`", TEXT["index.md"], re.M)


def test_links_between_the_pages_lead_somewhere() -> None:
    for page, text in TEXT.items():
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (PAGES / link).resolve().exists(), f"{page}: {link}"
