"""The page about shifts has them all."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_names_every_shift_as_it_is_written():
    from diw.shifts import USAGE

    text = (DOCS / "shifts.md").read_text(encoding="utf-8")
    for usage in USAGE.values():
        assert all(f"`{form}`" in text for form in _forms(usage))


def _forms(usage: str) -> list[str]:
    """`contaminated:RATE|FILE` stands for two."""
    name, colon, values = usage.partition(":")
    return [f"{name}{colon}{value}" for value in values.split("|")]
