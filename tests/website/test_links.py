"""Links between files of the repository hold on disk, and on the site."""

import re
import runpy
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
MADE = {ROOT / "docs" / name for name in ("repository", "gallery", "_build")}
PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md"))
    if not MADE & set(page.parents)
]
FENCED = re.compile(r"^```.*?^```$|^    .*?$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", link) and not link.endswith(".rst"):
            assert (page.parent / link).exists(), link


@pytest.fixture(scope="module")
def repository():
    pytest.importorskip("sphinx")
    return runpy.run_path(str(ROOT / "docs" / "_ext" / "repository.py"))


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("docs/methods/diw.md", "/methods/diw.md"),
        (
            "results/cpu/label-noise/label-noise.md",
            "/repository/results/cpu/label-noise/label-noise.md",
        ),
        ("CONTRIBUTING.md", "/repository/CONTRIBUTING.md"),
        ("README.md", "/index.md"),
        ("examples/own_loop.py", "/gallery/own_loop.rst"),
        ("scripts/draw_idea.py", None),
    ],
)
def test_a_file_has_its_place_on_the_site(repository, path, place) -> None:
    assert repository["site_path"](PurePosixPath(path)) == place


def test_links_are_rewritten_outside_of_code(repository) -> None:
    text = "[a](../results/README.md#x), `b`\n\n    [c](../results/README.md)\n\n[d](https://e.org)"
    expected = text.replace("[a](../results/README.md#x)", "[a](/repository/results/README.md#x)")
    assert repository["with_site_links"](text, ROOT / "docs") == expected
