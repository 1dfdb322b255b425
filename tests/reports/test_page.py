import json
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from diw.reports.comparison import compare_runs
from diw.reports.page import write_report
from diw.runs import Run

from .factory import make_run

METHODS = ("uniform", "diw", "clean")
EVIL = "<script>alert('x')</script><img src=https://example.org/x>&\""


class Page(HTMLParser):
    """What a browser would make of the page, without running it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.by_id: dict[str, str] = {}
        self.text = ""
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open = dict(attrs).get("id")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.by_id[self._open] = self.by_id.get(self._open, "") + data
        self.text += data

    @property
    def drawings(self) -> list[dict[str, Any]]:
        return json.loads(self.by_id["drawings"])


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [make_run(tmp_path / "runs", method, seed) for method in METHODS for seed in (1, 2)]


def page_of(runs: list[Run], path: Path) -> Page:
    write_report(compare_runs(runs), path)
    return Page(path.read_text(encoding="utf-8"))


def test_page_has_title_table_and_figures(runs: list[Run], tmp_path: Path) -> None:
    page = page_of(runs, tmp_path / "new" / "report.html")
    assert page.tags.count("h1") == 1
    assert page.tags.count("table") == 2
    assert "40% symmetric label noise on Fashion-MNIST" in page.text
    assert "How to read this" in page.text
    # Accuracy, the weights of diw (uniform's are equal, clean has none), effective sample size.
    assert [len(drawing["data"]) for drawing in page.drawings] == [6, 2, 4]
    described = [value for name, value in page.attributes if name == "aria-label"]
    assert len(described) == 3
    accuracy, weights, sizes = (value or "" for value in described)
    last = {
        name: [run.metrics()[-1] for run in runs if run.spec.method == name] for name in METHODS
    }
    for name, rows in last.items():
        mean = 50 * sum(row["test_accuracy"] for row in rows)
        assert f"{name} {mean:.1f}%" in accuracy
    assert weights.startswith("Histogram of the weights of diw")
    assert "uniform 100.0%" in sizes
    assert "clean" not in sizes


def test_page_asks_nothing_of_the_network(runs: list[Run], tmp_path: Path) -> None:
    page = page_of(runs, tmp_path / "report.html")
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not {"src", "srcset", "action"} & {name for name, _ in page.attributes}
    links = [value or "" for name, value in page.attributes if name == "href"]
    assert len(links) == len(runs)  # to the folders of the runs, beside the page
    assert all((tmp_path / link).is_dir() for link in links)
    policy = [value for name, value in page.attributes if name == "content"][1]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_same_records_same_bytes(runs: list[Run], tmp_path: Path) -> None:
    write_report(compare_runs(runs), tmp_path / "a.html")
    write_report(compare_runs(reversed(runs)), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(p.name for p in tmp_path.glob("[!.]*")) == ["a.html", "b.html", "runs"]


def test_nothing_from_a_spec_becomes_markup(tmp_path: Path) -> None:
    harmless = page_of([make_run(tmp_path / "a")], tmp_path / "a.html")
    run = make_run(tmp_path / "b", data=EVIL, shift=EVIL, model=EVIL, trusted=EVIL, label=EVIL)
    variants = [
        make_run(
            tmp_path / "b",
            method=name,
            data=EVIL,
            shift=EVIL,
            model=EVIL,
            trusted=EVIL,
            label=EVIL,
        )
        for name in (EVIL, "</script>")
    ]
    page = page_of([run], tmp_path / "b.html")
    assert page.tags == harmless.tags
    page_of([run, *variants], tmp_path / "c.html")
    assert "<img src=" not in (tmp_path / "c.html").read_text(encoding="utf-8")
    names = {trace["name"] for trace in Page((tmp_path / "c.html").read_text()).drawings[0]["data"]}
    assert names == {escape(name, quote=False) for name in ("diw", EVIL, "</script>")}


def test_several_settings_have_a_section_each(runs: list[Run], tmp_path: Path) -> None:
    other = make_run(tmp_path / "runs", "diw", shift="pair:0.3")
    page = page_of([*runs, other], tmp_path / "report.html")
    assert page.tags.count("article") == 2
    assert "30% pair-flip label noise on Fashion-MNIST" in page.text


@pytest.mark.browser
def test_a_browser_draws_it_without_complaint(runs: list[Run], tmp_path: Path) -> None:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no Chromium on the PATH")
    write_report(compare_runs(runs), tmp_path / "report.html")
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run"
    flags += " --disable-component-update --disable-sync --disable-quic --enable-logging=stderr"
    flags += f" --user-data-dir={tmp_path / 'profile'} --virtual-time-budget=5000 --dump-dom"
    done = subprocess.run(
        [browser, *flags.split(), (tmp_path / "report.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # The page's policy forbids every request, so one that is tried appears on the console too.
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count('class="main-svg"') >= 3
