"""Sheets as they are written, and as people and spreadsheets give them back."""

import csv
import io
from pathlib import Path

import pytest

from diw.data import read_verified
from diw.errors import UsageError
from diw.trust import read_items
from diw.trust.sheet import read_sheet, write_sheet, write_verified
from tests.trust.made import CLASSES, drawn_from, fill, write_lines, write_table


@pytest.fixture
def made(tmp_path: Path):
    """The right labels, the draw and its sheet, not filled yet."""
    right = write_table(tmp_path / "x.csv")
    draw = drawn_from(tmp_path / "x.csv")
    shown = read_items(str(tmp_path / "x.csv"), "kind").show(draw.rows)
    sheet = tmp_path / "check.csv"
    sheet.write_text(write_sheet(draw, 0, shown, [0.1] * 40), encoding="utf-8", newline="")
    return right, draw, sheet


def lines_of(sheet: Path) -> list[dict[str, str]]:
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_sheet_has_a_mark_of_utf_8_no_formula_and_no_given_label(made) -> None:
    _, _, sheet = made
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    first = lines_of(sheet)[0]
    assert list(first) == ["file", "row", "right", "note", "size", "word", "drawn", "content"]
    assert first["word"] == "'=1+1"
    assert first["right"] == first["note"] == ""


def test_columns_that_mean_something_else_here_are_renamed(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("row,mark,kind\n" + "1,a,ant\n2,b,bee\n" * 20)
    draw = drawn_from(tmp_path / "x.csv", 6)
    shown = read_items(str(tmp_path / "x.csv"), "kind").show(draw.rows)
    text = write_sheet(draw, 0, shown, [0.1] * 6, show_given=True)
    header = text.splitlines()[0].lstrip("\ufeff")
    assert header == "file,row,right,note,label,row (data),mark (data),drawn,content"


def test_a_filled_sheet_is_read_whatever_its_order_and_separator(made) -> None:
    right, draw, sheet = made
    fill(sheet, right, ";")
    expected = {place: right[row] for place, row in enumerate(draw.rows)}
    assert {place: one.right for place, one in read_sheet(sheet, draw).items()} == expected
    lines = [dict(sorted(line.items())) for line in reversed(lines_of_semicolons(sheet))][:25]
    write_lines(sheet, lines, "\t")
    found = read_sheet(sheet, draw)
    assert len(found) == 25
    assert all(one.right == expected[place] for place, one in found.items())


def lines_of_semicolons(sheet: Path) -> list[dict[str, str]]:
    with sheet.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


@pytest.mark.parametrize("changed", ["row", "file"])
def test_rows_are_known_by_what_they_hold_and_not_by_number_alone(made, changed) -> None:
    right, draw, sheet = made
    fill(sheet, right)
    lines = lines_of(sheet)
    for line in lines:
        line[changed] = ""
    write_lines(sheet, lines)
    assert len(read_sheet(sheet, draw)) == 40


def test_notes_are_read_and_what_cannot_be_told_has_no_class(made) -> None:
    right, draw, sheet = made
    fill(sheet, right)
    lines = lines_of(sheet)
    lines[0] |= {"right": "", "note": "Cannot tell"}
    lines[1] |= {"right": "", "note": "drop"}
    lines[2] |= {"note": "unsure"}
    lines[3] |= {"right": "?"}
    lines[4] |= {"right": "", "note": "ask Ben"}
    write_lines(sheet, lines)
    found = read_sheet(sheet, draw)
    said = {place: (one.right, one.note) for place, one in found.items() if place < 5}
    assert said == {
        0: (None, "cannot tell"),
        1: (None, "drop"),
        2: (right[draw.rows[2]], "unsure"),
        3: (None, "cannot tell"),
    }


def test_truth_values_and_numbers_are_known_as_spreadsheets_write_them(tmp_path: Path) -> None:
    for classes, written in ((("false", "true"), ("FALSCH", "WAHR")), (("01", "02"), ("1", "2,0"))):
        body = "".join(f"{row},{classes[row % 2]}\n" for row in range(40))
        (tmp_path / "x.csv").write_text("size,kind\n" + body)
        draw = drawn_from(tmp_path / "x.csv", 6)
        sheet = tmp_path / "sheet.csv"
        lines = [
            {"row": str(row), "right": written[row % 2], "content": content}
            for row, content in zip(draw.rows, draw.contents, strict=True)
        ]
        write_lines(sheet, lines, ";")
        assert [one.right for one in read_sheet(sheet, draw).values()] == list(draw.given)


def change(line: dict[str, str], **values: str):
    return line | values


BAD = {
    "a misspelt label": (
        lambda lines: [change(lines[0], right="cta"), *lines[1:]],
        r"check.csv: line 2: 'cta' is not a class; is 'cat' meant\?",
    ),
    "a row twice": (
        lambda lines: [
            *lines,
            change(lines[0], right=next(iter({"ant", "bee"} - {lines[0]["right"]}))),
        ],
        "check.csv: lines 2 and 42 say different things of the same row; keep one of them",
    ),
    "an empty sheet": (
        lambda lines: [change(line, right="") for line in lines],
        "check.csv: no row is checked yet: fill in the column 'right'",
    ),
    "other data": (
        lambda lines: [change(line, content="a" * 16, row="7777") for line in lines],
        "check.csv: is a sheet of other data: no row of it was drawn here",
    ),
    "a row of other data": (
        lambda lines: [*lines, change(lines[0], content="b" * 16, row="9")],
        r"check.csv: line 42: .*x.csv, row 9 was not drawn from .*x.csv, or has changed since",
    ),
    "another given label": (
        lambda lines: [change(line, label="dog") for line in lines],
        "check.csv: line 2: its label is .* in the data, and 'dog' here",
    ),
    "no column": (
        lambda lines: [{"row": line["row"]} for line in lines],
        "check.csv: has no column 'right'; is it a sheet of diw trust draw?",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line_and_the_sheet_is_left_alone(made, name: str) -> None:
    right, draw, sheet = made
    fill(sheet, right)
    write_lines(sheet, BAD[name][0](lines_of(sheet)))
    before = sheet.read_bytes()
    with pytest.raises(UsageError, match=BAD[name][1]) as error:
        read_sheet(sheet, draw)
    assert "\n" not in str(error.value)
    assert sheet.read_bytes() == before


def test_the_same_answer_twice_is_one(made) -> None:
    right, draw, sheet = made
    fill(sheet, right)
    write_lines(sheet, [*lines_of(sheet), lines_of(sheet)[0]])
    assert len(read_sheet(sheet, draw)) == 40


def test_what_is_written_is_what_verified_of_other_verbs_reads(made, tmp_path: Path) -> None:
    right, draw, sheet = made
    fill(sheet, right)
    answers = read_sheet(sheet, draw)
    path = tmp_path / "verified.csv"
    path.write_text(write_verified(draw, answers, [0.125] * 40))
    assert read_sheet(path, draw).keys() == answers.keys()
    items = read_items(str(tmp_path / "x.csv"), "kind")
    keys = [(file, str(row)) for file, row in items.places(range(len(items)))]
    found = read_verified(path, keys, items.given, CLASSES, items.contents)
    assert found.places.tolist() == sorted(draw.rows)
    assert found.right.tolist() == [right[row] for row in sorted(draw.rows)]
    assert len(list(csv.reader(io.StringIO(path.read_text())))) == 41


def test_a_sheet_saved_with_german_settings_is_read_by_all_verbs(made, tmp_path: Path) -> None:
    right, draw, sheet = made
    fill(sheet, right)
    lines = [
        line | {"size": "", "drawn": line["drawn"].replace(".", ",")} for line in lines_of(sheet)
    ]
    write_lines(sheet, lines, ";")
    sheet.write_bytes(b"\xef\xbb\xbf" + sheet.read_bytes().rstrip() + b"\r\n;;;;;;;\r\n")
    items = read_items(str(tmp_path / "x.csv"), "kind")
    keys = [(file, str(row)) for file, row in items.places(range(len(items)))]
    found = read_verified(sheet, keys, items.given, CLASSES, items.contents)
    assert found.places.tolist() == sorted(draw.rows)
    assert found.drawn is not None
    assert found.drawn.tolist() == [0.1] * 40
    assert len(read_sheet(sheet, draw)) == 40
