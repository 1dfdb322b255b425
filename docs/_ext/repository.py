"""Files of the repository as pages of the site, and links that hold in both places.

A page of `docs/` may link to any file of the repository, as GitHub shows it. On the site such a
link leads to the page that the file has here: `CONTRIBUTING.md` and the results are copied to
`docs/repository`, examples have their page in the gallery, and any other file is a download.
"""

import re
import shutil
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
COPIES = DOCS / "repository"
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "results/**/*.md")
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"^(?:```.*?^```|    .*?$)", re.DOTALL | re.MULTILINE)


def site_path(path: PurePosixPath) -> str | None:
    """Where a file of the repository is on the site, from its root; None: nowhere."""
    if path.parts[0] == "docs":
        return "/" + "/".join(path.parts[1:])
    if path.parts[0] == "results" or str(path) in PAGES:
        return f"/repository/{path}"
    if path.parts[0] == "examples" and path.suffix == ".py":
        return f"/gallery/{path.stem}.rst"
    return {"README.md": "/index.md"}.get(str(path))


def with_site_links(text: str, folder: Path) -> str:
    """Markdown whose links to files, relative to `folder`, are those of the site."""

    def replaced(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if not target.is_relative_to(ROOT):
            return match[0]
        found = site_path(PurePosixPath(target.relative_to(ROOT).as_posix()))
        return f"{match[1]}{found}{match[3]}" if found else match[0]

    parts, last = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(replaced, text[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, LINK.sub(replaced, text[last:])])


LISTED = """
```{toctree}
:hidden:
:glob:
paper/**
cpu/**
```
"""


def copy_pages(app: Sphinx) -> None:
    """Copy what is shown, pictures included, where it has changed."""
    wanted: set[Path] = set()
    for source in (path for pattern in PAGES for path in ROOT.glob(pattern)):
        copy = COPIES / source.relative_to(ROOT)
        text = with_site_links(source.read_text(encoding="utf-8"), source.parent)
        text += LISTED if source == ROOT / "results" / "README.md" else ""
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")
        wanted.add(copy)
    for source in ROOT.glob("results/**/*.png"):
        copy = COPIES / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)
        wanted.add(copy)
    for old in COPIES.rglob("*"):
        if old.is_file() and old not in wanted:
            old.unlink()


def rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    """Rewrite the links of a page of `docs/`."""
    if not name.startswith(("repository/", "gallery/")):
        folder = (Path(app.srcdir) / name).parent
        source[0] = with_site_links(source[0], folder)


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy before the pages are collected; rewrite when one is read."""
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
