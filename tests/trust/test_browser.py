"""The page in a real browser: keys, a second look, undo, search, a reload, and what it saves."""

import csv
import shutil
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diw.auditing.samples import Samples, png
from diw.trust.draw import Draw, Round
from diw.trust.page import render
from diw.trust.sheet import Answer, read_sheet

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]


def made(n: int, classes: tuple[str, ...]) -> tuple[Draw, Samples]:
    """A draw of n rows of a table, given as each class in turn."""
    rows = list(range(n))
    draw = Draw(
        'odd ",name.csv',
        ".",
        "kind",
        None,
        classes,
        (50,) * len(classes),
        (Round("stratified", rows),),
        tuple(row % len(classes) for row in rows),
        tuple(('odd ",name.csv', row) for row in rows),
        tuple(f"content{chr(97 + row)}" for row in rows),
    )
    return draw, Samples(None, ["size"], [[str(row)] for row in rows])


@pytest.fixture
def page():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = browser.new_context(viewport={"width": 400, "height": 800}).new_page()
        problems: list[str] = []
        found.on("console", lambda message: problems.append(message.text))
        found.on("pageerror", lambda error: problems.append(str(error)))
        yield found
        assert problems == []
        assert found.evaluate("document.documentElement.scrollWidth") == 400
        browser.close()


def saved(page, path: Path) -> Path:
    with page.expect_download() as waiting:
        page.click("#save")
    assert waiting.value.suggested_filename == "verified.csv"
    waiting.value.save_as(path)
    return path


def test_rows_are_checked_by_keys_alone_and_read_back(page, tmp_path: Path) -> None:
    draw, shown = made(8, ("ant", "<b>bee", "cat"))
    file = tmp_path / "check.html"
    file.write_text(render(draw, shown, [0.05] * 8), encoding="utf-8")
    page.goto(file.as_uri())
    assert page.locator("#save").is_disabled()
    assert page.locator("#given").text_content() == ""  # nothing is said before one has chosen
    page.keyboard.press("2")
    said = page.locator("#said")
    api.expect(said).to_have_text("You said cat; it was given as ant.")
    page.keyboard.press("x")  # not sure of the next one
    page.keyboard.press("1")
    page.keyboard.press("c")
    page.keyboard.press("d")
    page.keyboard.press("0")
    page.keyboard.press("u")
    api.expect(said).to_have_text("Undone.")
    page.keyboard.press("2")
    done = "5 of 8 checked: 1 unsure, 1 cannot tell, 1 drop"
    api.expect(page.locator("#done")).to_contain_text(done)
    for _ in range(30):  # the browser writes its storage behind the page's back
        page.wait_for_timeout(1000)
        page.reload()
        if done in page.locator("#done").text_content():
            break
    api.expect(page.locator("#done")).to_contain_text(done)
    api.expect(page.locator("#number")).to_have_text("6 of 8")  # where one had stopped
    page.keyboard.press("ArrowLeft")
    api.expect(page.locator("#given")).to_have_text("You said cat; given as <b>bee.")
    page.keyboard.press("ArrowRight")
    for key in "001":
        page.keyboard.press(key)
    api.expect(said).to_contain_text("All are checked")
    page.click("#again")  # the unsure one, and the one that could not be told
    api.expect(page.locator("#number")).to_have_text("Second look: 1 of 2")
    assert page.locator("#given").text_content() == ""
    page.keyboard.press("1")
    page.keyboard.press("0")
    api.expect(said).to_contain_text("All are checked")
    found = read_sheet(saved(page, tmp_path / "verified.csv"), draw)
    assert {place: (one.right, one.note) for place, one in found.items()} == {
        0: (2, ""),
        1: (1, ""),
        2: (0, ""),
        3: (None, "drop"),
        4: (2, ""),
        5: (0, ""),
        6: (0, ""),
        7: (1, ""),
    }
    with (tmp_path / "verified.csv").open(newline="") as lines:
        first = next(csv.DictReader(lines))
    assert (first["file"], first["label"], first["drawn"]) == ('odd ",name.csv', "ant", "0.05")


def test_hundreds_of_classes_are_searched_and_all_has_a_name(page, tmp_path: Path) -> None:
    draw, shown = made(4, tuple(f"species {number:03d}" for number in range(300)))
    file = tmp_path / "check.html"
    answers = {0: Answer(299, "", 1)}
    file.write_text(render(draw, shown, [0.05] * 4, answers=answers), encoding="utf-8")
    page.goto(file.as_uri())
    api.expect(page.locator("#done")).to_contain_text("1 of 4 checked")  # known from before
    api.expect(page.locator("#classes button").first).to_have_text("species 299")
    page.keyboard.press("/")
    page.keyboard.type("217")
    assert page.locator("#classes button").count() == 1
    page.keyboard.press("Enter")
    api.expect(page.locator("#said")).to_contain_text("You said species 217")
    page.keyboard.press("b")  # no longer in the search field: the twelfth class
    api.expect(page.locator("#said")).to_contain_text("You said species 011")
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, progress')].filter(one => !one.hidden && "
        "!(one.textContent.trim() || one.ariaLabel || one.labels && one.labels.length)).length"
    )
    assert unnamed == 0
    assert np.all([one.right for one in read_sheet(saved(page, tmp_path / "v.csv"), draw).values()])


def test_the_given_label_is_shown_where_that_was_asked(page, tmp_path: Path) -> None:
    draw, shown = made(3, ("ant", "bee", "cat"))
    file = tmp_path / "check.html"
    file.write_text(render(draw, shown, [0.05] * 3, show_given=True), encoding="utf-8")
    page.goto(file.as_uri())
    api.expect(page.locator("#given")).to_have_text("Given as ant.")


def test_the_folder_of_an_image_which_is_its_label_is_shown_after_an_answer(
    page, tmp_path: Path
) -> None:
    draw, _ = made(3, ("ant", "bee", "cat"))
    names = [(f"photos/{name}/7.png", None) for name in draw.classes]
    draw = replace(draw, places=tuple(names))
    code = b64encode(png(np.zeros((1, 4, 4), np.uint8))).decode()
    dot = f"data:image/png;base64,{code}"
    file = tmp_path / "check.html"
    file.write_text(render(draw, Samples([dot] * 3, [], None), [0.05] * 3), encoding="utf-8")
    page.goto(file.as_uri())
    api.expect(page.locator("#where")).to_have_text("7.png")
    assert "ant" not in page.locator(".stage").inner_text()
    page.keyboard.press("1")
    page.keyboard.press("ArrowLeft")
    api.expect(page.locator("#where")).to_have_text("photos/ant/7.png")
