"""The page in a real browser: marks, keys, a reload, and the file that it saves."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from diw.auditing.page import render
from diw.auditing.result import Audit
from diw.auditing.samples import Origin, Samples
from diw.data.marks import read_corrections
from diw.runs.sources import Place

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    n = 80
    shown = Samples(None, ["size"], [[str(row)] for row in range(n)])
    found = Audit(
        labels=np.arange(n) % 3,
        suggested=(np.arange(n) + 1) % 3,
        probability=np.full(n, 0.8),
        score=np.linspace(0.9, 0.3, n),
        suspected=np.ones(n, bool),
        weight=np.ones(n),
        trusted=np.zeros(n, bool),
        classes=("ant", "<b>bee", "cat"),
        places=[Place('odd ",name.csv', row, False) for row in range(n)],
        origin=Origin("x.csv", "key", lambda places: shown, lambda places: [""] * len(places)),
    )
    path = tmp_path / "audit.html"
    path.write_text(render(found), encoding="utf-8")
    return path


def test_marks_by_mouse_and_key_survive_a_reload_and_are_saved(page_file, tmp_path: Path) -> None:
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(page_file.as_uri())
        cards = page.locator(".card")
        assert cards.count() == 60  # the rest is made when it is scrolled to
        cards.nth(0).locator("button", has_text="Wrong").click()
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("ArrowRight")  # chooses the first sample in view
        page.keyboard.press("ArrowRight")
        page.keyboard.press("r")  # and on to the next
        page.keyboard.press("d")
        page.keyboard.press("2")  # row 3 is of class 0, and is wrong: a cat
        done = "4 of 80 marked: 2 wrong, 1 right, 1 to drop"
        api.expect(page.locator("#done")).to_have_text(done)
        for _ in range(30):  # the browser writes its storage behind the page's back
            page.wait_for_timeout(1000)
            page.reload()
            if page.locator("#done").text_content() == done:
                break
        api.expect(page.locator("#done")).to_have_text(done)
        page.select_option("#state", "marked")
        assert cards.count() == 4
        with page.expect_download() as waiting:
            page.click("#save")
        waiting.value.save_as(tmp_path / "corrections.csv")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        browser.close()
    assert problems == []
    found = read_corrections(tmp_path / "corrections.csv")
    marks = {key[1]: (one.label, one.mark, one.correct) for key, one in found.items()}
    assert marks == {
        "0": ("ant", "wrong", "<b>bee"),
        "1": ("<b>bee", "right", ""),
        "2": ("cat", "drop", ""),
        "3": ("ant", "wrong", "cat"),
    }
    with (tmp_path / "corrections.csv").open() as file:
        assert {row["file"] for row in csv.DictReader(file)} == {'odd ",name.csv'}
