"""Each format against what its readers (a CSV reader, an HTML parser, a terminal) make of it."""

import csv
import io
from html.parser import HTMLParser

import pytest

from diw.pages import (
    Cell,
    Column,
    Table,
    number_cell,
    show,
    text_cell,
    to_csv,
    to_html,
    to_markdown,
    to_plain,
)

TABLE = Table(
    (Column("method", "method", "left"), Column("accuracy", "accuracy %"), Column("ess", "ESS")),
    (
        (text_cell("a_b & <c>"), number_cell(0.79041, 0.0055, scale=100), number_cell(None)),
        (
            text_cell("d|e"),
            number_cell(0.84, 0.001, scale=100, strong=True),
            number_cell(0.31, digits=1),
        ),
    ),
    caption="50% noise",
    notes=("A note.",),
)


def test_numbers() -> None:
    assert number_cell(0.79041, 0.0055, scale=100).text == "79.04 ± 0.55"
    assert number_cell(1234.5, digits=0).text == "1,234"
    assert number_cell(0.5, 0.1, show_spread=False) == Cell("0.50", 0.5, 0.1)
    assert number_cell(None).text == "–"


def test_plain_text_is_aligned_and_marked() -> None:
    assert to_plain(TABLE) == (
        "50% noise\n"
        "\n"
        "method         accuracy %  ESS\n"
        "---------  --------------  ---\n"
        "a_b & <c>  79.04 ± 0.55      –\n"
        "d|e        84.00 ± 0.10 *  0.3\n"
        "\n"
        "A note.\n"
    )


def test_markdown_escapes_pipes() -> None:
    lines = to_markdown(TABLE).splitlines()
    assert lines[2:6] == [
        "| method | accuracy % | ESS |",
        "|---|---:|---:|",
        "| a_b & <c> | 79.04 ± 0.55 | – |",
        "| d\\|e | **84.00 ± 0.10** | 0.3 |",
    ]


def test_csv_keeps_full_precision() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(TABLE))))
    assert list(rows[0]) == ["method", "accuracy", "accuracy_std", "ess", "marked"]
    assert (float(rows[0]["accuracy"]), float(rows[0]["accuracy_std"])) == (0.79041, 0.0055)
    assert (rows[0]["ess"], rows[0]["marked"]) == ("", "")
    assert (rows[1]["method"], rows[1]["marked"]) == ("d|e", "accuracy")


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_a_real_table_and_escapes_everything() -> None:
    parser = Cells()
    parser.feed(to_html(TABLE))
    assert "c" not in parser.tags
    assert parser.tags.count("th") == 5
    assert "a_b & <c>" in parser.text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_codes_only_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    pipe, terminal = io.StringIO(), Terminal()
    show(TABLE, pipe)
    show(TABLE, terminal)
    assert "\x1b" not in pipe.getvalue()
    assert "\x1b[1m" in terminal.getvalue()
    assert "A note." in terminal.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    show(TABLE, dumb)
    assert "\x1b" not in dumb.getvalue()
