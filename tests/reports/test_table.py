"""Each format against what its readers (a CSV reader, an HTML parser, a terminal) make of it."""

import csv
import io
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from diw.reports import table as formats
from diw.reports.compare_table import compare_table
from diw.reports.comparison import compare_runs
from diw.reports.tables import Cell, Column, Table, column_values, number_cell, text_cell

from .factory import make_run

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


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table((Column("a", "a"), Column("b", "b")), ((Cell("x"),),))


def test_numbers() -> None:
    assert number_cell(0.79041, 0.0055, scale=100).text == "79.04 ± 0.55"
    assert number_cell(1234.5, digits=0, unit=" s").text == "1,234 s"
    assert number_cell(0.5, 0.1, show_spread=False) == Cell("0.50", 0.5, 0.1)
    assert number_cell(None).text == "–"


def test_plain_text_is_aligned_and_marked() -> None:
    assert formats.to_plain(TABLE) == (
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
    lines = formats.to_markdown(TABLE).splitlines()
    assert lines[2:6] == [
        "| method | accuracy % | ESS |",
        "|---|---:|---:|",
        "| a_b & <c> | 79.04 ± 0.55 | – |",
        "| d\\|e | **84.00 ± 0.10** | 0.3 |",
    ]


def test_latex_escapes_what_is_special() -> None:
    text = formats.to_latex(TABLE)
    assert r"\caption{50\% noise}" in text
    assert r"a\_b \& <c> & 79.04 $\pm$ 0.55 & -- \\" in text
    assert r"\textbf{84.00 $\pm$ 0.10}" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


def test_csv_keeps_full_precision() -> None:
    rows = list(csv.DictReader(io.StringIO(formats.to_csv(TABLE))))
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
    parser.feed(formats.to_html(TABLE))
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
    formats.show(TABLE, pipe)
    formats.show(TABLE, terminal)
    assert "\x1b" not in pipe.getvalue()
    assert "\x1b[1m" in terminal.getvalue()
    assert "A note." in terminal.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    formats.show(TABLE, dumb)
    assert "\x1b" not in dumb.getvalue()


def comparison_of(root: Path, seeds: int, **options: object) -> Table:
    runs = [
        make_run(root, method, seed, **options)  # type: ignore[arg-type]
        for method in ("diw", "uniform", "clean")
        for seed in range(1, seeds + 1)
    ]
    (comparison,) = compare_runs(runs)
    return compare_table(comparison)


def test_compare_claims_no_test_below_three_seeds(tmp_path: Path) -> None:
    table = comparison_of(tmp_path, 2)
    assert [column.key for column in table.columns] == [
        "method",
        "last_accuracy",
        "best_accuracy",
        "seconds",
        "ess",
        "weight_auroc",
    ]
    assert not any(cell.strong for row in table.rows for cell in row)
    assert any("No test is claimed below 3 seeds" in note for note in table.notes)
    assert any("peeks at the test set" in note for note in table.notes)


def test_compare_marks_from_three_seeds_on(tmp_path: Path) -> None:
    table = comparison_of(tmp_path, 3)
    verdicts = dict(
        zip(
            [cell.text for cell in column_values(table, "method")],
            [cell.text for cell in column_values(table, "verdict")],
            strict=True,
        )
    )
    assert verdicts["uniform"] == "worse"
    assert sorted(verdicts.values()) == ["best", "comparable", "worse"]
    assert column_values(table, "method")[0].text == "uniform"


def test_compare_shows_balanced_accuracy_where_it_differs(tmp_path: Path) -> None:
    table = comparison_of(tmp_path, 1, balanced_gap=0.1)
    last, balanced = (column_values(table, f"last_{k}accuracy") for k in ("", "balanced_"))
    for plain, even in zip(last, balanced, strict=True):
        assert isinstance(plain.value, float)
        assert even.value == pytest.approx(plain.value - 0.1)


def test_compare_shows_the_distance_to_the_true_weights_where_no_label_was_moved(
    tmp_path: Path,
) -> None:
    samples = {
        "targets": np.arange(400) % 10,
        "flipped": np.zeros(400, bool),
        "true_weights": np.tile([0.5, 1.5], 200),
    }
    table = comparison_of(tmp_path, 1, samples=samples, shift="prior:0.2,10")
    keys = [column.key for column in table.columns]
    assert keys[-2:] == ["weight_mae", "weight_rmse"]
    assert "weight_auroc" not in keys
    methods = [cell.text for cell in column_values(table, "method")]
    assert column_values(table, "weight_mae")[methods.index("uniform")].value == 0.5
    assert any("distance from the true weights" in note for note in table.notes)
