"""The check of the site finds what it is there for."""

import runpy
from pathlib import Path

CHECK = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "check_site.py"))


def written(folder: Path, name: str, body: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(body, encoding="utf-8")


def test_a_whole_site_has_no_problems(tmp_path) -> None:
    written(
        tmp_path, "index.html", '<h1 id="top">A</h1><a href="b/c.html#x">c</a><a href="#top">a</a>'
    )
    written(
        tmp_path,
        "b/c.html",
        '<p id="x"></p><a href="../index.html">a</a><script src="s.js"></script>',
    )
    written(tmp_path, "b/s.js", "")
    written(tmp_path, "s.css", "body { background: url(data:image/png;base64,AA) }")
    assert CHECK["problems"](tmp_path) == []


def test_every_kind_of_problem_is_found(tmp_path) -> None:
    written(
        tmp_path,
        "index.html",
        '<a href="missing.html">1</a><a href="#nowhere">2</a><a href="../out.html">3</a>'
        '<script src="https://cdn.example/x.js"></script><link href="//fonts.example/f.css">'
        '<a href="https://example.org">a link away is no problem</a>',
    )
    written(tmp_path, "site.css", '@font-face { src: url("https://fonts.example/f.woff2") }')
    found = CHECK["problems"](tmp_path)
    assert len(found) == 6
    for part in (
        *("missing.html leads nowhere", "#nowhere has no such", "out.html leads out"),
        *("cdn.example/x.js from", "fonts.example/f.css from", "site.css: loads"),
    ):
        assert any(part in line for line in found), part
