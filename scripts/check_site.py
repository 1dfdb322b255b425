"""Check the built site: every link inside leads somewhere, and nothing is loaded from elsewhere.

python scripts/check_site.py docs/_build/html
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "script": "src",
    "source": "src",
    "video": "src",
}
"""Elements that make a browser fetch something, and the attribute that says what."""


class Page(HTMLParser):
    """The ids of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, links and loads of one element."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if values.get(LOADED.get(tag, "")):
            self.loads.append(values[LOADED[tag]])


@cache
def read(path: Path) -> Page:
    """A page, parsed once."""
    return Page(path.read_text(encoding="utf-8"))


def problem(page: Path, target: str, root: Path) -> str | None:
    """What is wrong with a target inside the site, in words; None if nothing is."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
    if not path.is_relative_to(root.resolve()):
        return "leads out of the site"
    if not path.is_file():
        return "leads nowhere"
    if parts.fragment and path.suffix == ".html" and unquote(parts.fragment) not in read(path).ids:
        return "has no such place on its page"
    return None


def problems(root: Path) -> list[str]:
    """Everything that is wrong, one line each."""
    found: list[str] = []
    for path in sorted(root.rglob("*.html")):
        page, name = read(path), path.relative_to(root)
        for target in page.links + page.loads:
            if (wrong := problem(path, target, root)) is not None:
                found.append(f"{name}: {target} {wrong}")
        for target in page.loads:
            if urlsplit(target).scheme not in ("", "data") or urlsplit(target).netloc:
                found.append(f"{name}: loads {target} from elsewhere")
    for path in sorted(root.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        if any(
            mark in text for mark in ("url(http", 'url("http', "url('http", "url(//", "@import")
        ):
            found.append(f"{path.relative_to(root)}: loads something from elsewhere")
    return found


def main() -> None:
    """Print the problems; exit with 1 if there are any."""
    root = Path(sys.argv[1])
    found = problems(root)
    for line in found:
        print(line, file=sys.stderr)
    if found or not (root / "index.html").exists():
        sys.exit(f"{root}: {len(found)} problems" if found else f"{root}: there is no site")
    pages = len(list(root.rglob("*.html")))
    print(
        f"{root}: {pages} pages, every link inside leads somewhere, nothing loaded from elsewhere"
    )


if __name__ == "__main__":
    main()
