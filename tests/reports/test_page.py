import json
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diw.records import Run
from diw.reports.comparison import compare_runs
from diw.reports.figures import accuracy_figure, curve, ess_figure
from diw.reports.findings import finding
from diw.reports.histograms import pooled_weights, weight_figures
from diw.reports.page import write_report
from diw.reports.palette import COLOURS, looks, translucent

from .factory import make_run

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
    methods = ("uniform", "diw", "clean")
    return [make_run(tmp_path / "runs", method, seed) for method in methods for seed in (1, 2)]


def page_of(runs: list[Run], path: Path) -> Page:
    write_report(runs, path)
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
    assert all(value and len(value) > 40 for value in described)


def test_page_asks_nothing_of_the_network(runs: list[Run], tmp_path: Path) -> None:
    page = page_of(runs, tmp_path / "report.html")
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in page.attributes}
    policy = [value for name, value in page.attributes if name == "content"][1]
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_same_records_same_bytes(runs: list[Run], tmp_path: Path) -> None:
    write_report(runs, tmp_path / "a.html")
    write_report(reversed(runs), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(p.name for p in tmp_path.glob("*")) == ["a.html", "b.html", "runs"]


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


def test_curves_are_means_over_seeds(runs: list[Run]) -> None:
    (comparison,) = compare_runs(runs)
    found = curve(comparison.methods["diw"], "test_accuracy")
    assert found is not None
    values = np.array([[row["test_accuracy"] for row in run.metrics()] for run in runs[2:4]])
    assert found.epochs.tolist() == list(range(1, 13))
    assert found.mean == pytest.approx(values.mean(axis=0))
    assert found.std == pytest.approx(np.abs(values[0] - values[1]) / np.sqrt(2))


def test_one_seed_has_no_band(tmp_path: Path) -> None:
    (comparison,) = compare_runs([make_run(tmp_path)])
    figure = accuracy_figure(comparison, looks(comparison.methods))
    assert len(figure.data) == 1
    assert "one seed" in figure.caption


def test_no_size_figure_without_weights(tmp_path: Path) -> None:
    (comparison,) = compare_runs([make_run(tmp_path, "clean")])
    assert ess_figure(comparison, looks(comparison.methods)) is None
    assert weight_figures(comparison) == []


def test_histograms_hold_every_sample_once(runs: list[Run]) -> None:
    (comparison,) = compare_runs(runs)
    (figure,) = weight_figures(comparison)
    assert [trace["name"] for trace in figure.data] == ["intact", "mislabelled"]
    for trace in figure.data:
        assert sum(trace["y"][:-1]) == pytest.approx(1, abs=1e-4)
    weights = pooled_weights(comparison.methods["diw"])
    assert sum(part.size for part in weights.values()) == 800
    assert weights["intact"].mean() > 1 > weights["mislabelled"].mean()


def test_one_distribution_where_the_truth_is_unknown(tmp_path: Path) -> None:
    (comparison,) = compare_runs([make_run(tmp_path, samples={"targets": np.arange(400) % 10})])
    (figure,) = weight_figures(comparison)
    assert [trace["name"] for trace in figure.data] == ["all samples"]


def test_class_prior_shift_is_shown_by_true_weight(tmp_path: Path) -> None:
    samples = {"targets": np.arange(400) % 10, "true_weights": np.repeat([0.8, 20.8], [390, 10])}
    (comparison,) = compare_runs([make_run(tmp_path, samples=samples)])
    assert [trace["name"] for trace in weight_figures(comparison)[0].data] == [
        "true weight 0.8",
        "true weight 20.8",
    ]


def test_looks_differ_for_every_method_of_the_paper() -> None:
    labels = [f"method {place}" for place in range(14)]
    assert len(set(looks(labels).values())) == 14
    assert looks(reversed(labels)) == looks(labels)
    assert translucent(COLOURS[0], 0.5) == "rgba(0,114,178,0.5)"


def test_the_finding_may_be_against_weighting(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make_run(tmp_path / "for", "uniform", seed)
        make_run(tmp_path / "for", "diw", seed)
        make_run(tmp_path / "against", "uniform", seed, lift=0.2)
        make_run(tmp_path / "against", "diw", seed)
    found = {
        name: finding(compare_runs(map(Run, sorted((tmp_path / name).iterdir())))[0])
        for name in ("for", "against")
    }
    assert found["for"].startswith("diw ends at 8")
    assert "points above uniform" in found["for"]
    assert "paired t-test p" in found["for"]
    assert found["against"].startswith("No method ends above uniform")


@pytest.mark.browser
def test_a_browser_draws_it_without_complaint(runs: list[Run], tmp_path: Path) -> None:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no Chromium on the PATH")
    write_report(runs, tmp_path / "report.html")
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
