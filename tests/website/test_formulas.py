"""Every formula of the pages can be drawn as MathML; GitHub's LaTeX knows more than the site's."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MADE = ("repository", "gallery", "_build")
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^$\n]+?)\$(?!\w)", re.DOTALL)
FENCED = re.compile(r"^```.*?^```$|^    .*?$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def formulas() -> list[tuple[str, str]]:
    pages = (page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
    return [
        (str(page.relative_to(DOCS)), (shown or inline).strip())
        for page in sorted(pages)
        for shown, inline in FORMULA.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    ]


def test_every_formula_can_be_drawn() -> None:
    converter = pytest.importorskip("docutils.utils.math.latex2mathml")
    found = formulas()
    assert len(found) > 20
    for page, formula in found:
        try:
            assert "<math" in converter.tex2mathml(formula)
        except Exception as error:
            raise AssertionError(f"{page}: {formula}") from error
