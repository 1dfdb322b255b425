"""`diw trust` as a user meets it: draw, check, read, draw again."""

import csv
import json
from pathlib import Path

import pytest

from diw.trust import Draw
from tests.own_data import done, refused
from tests.trust.made import fill, write_lines, write_table

DRAW = ("trust", "draw", "x.csv", "--label", "kind", "--out", "check")


@pytest.fixture
def right(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_table(Path("x.csv"))


def test_from_a_table_to_what_is_known_and_on(right) -> None:
    out = done(*DRAW, "-n", "60", "--json", "drawn.json")
    assert out.splitlines() == ["60 of 300 rows drawn", "check/check.html", "check/check.csv"]
    assert len(set(json.loads(Path("drawn.json").read_text())["rows"])) == 60
    fill(Path("check/check.csv"), right, ";")
    out = done("trust", "read", "check/check.csv", "--out", "verified.csv", "--json", "known.json")
    assert "60 of 60 drawn rows checked, of 300 in all" in out
    assert "50 more rows would narrow" in out
    assert "diw train --data x.csv --label kind --verified verified.csv --out model" in out
    assert "diw trust draw x.csv --label kind -n 50 --out check" in out
    known = json.loads(Path("known.json").read_text())
    assert known["checked"] == 60
    assert known["wrong"][1] < 0.3 < known["wrong"][2]
    with Path("verified.csv").open(newline="") as file:
        assert {line["right"] for line in csv.DictReader(file)} == {"ant", "bee", "cat"}


def test_a_second_draw_goes_on_and_leaves_what_was_filled(right) -> None:
    done(*DRAW, "-n", "40")
    fill(Path("check/check.csv"), right)
    first = Path("check/check.csv").read_bytes()
    done("trust", "read", "check/check.csv", "--out", "check/verified.csv")
    out = done(*DRAW, "-n", "30", "--seed", "5")
    assert "30 of 300 rows drawn, 70 with those before" in out
    assert Path("check/check.csv").read_bytes() == first
    fill(Path("check/check-2.csv"), right)
    assert len(set(Draw.load(Path("check")).rows)) == 70
    page = Path("check/check.html").read_text()
    assert page.count('"answer":null') == 30  # the page knows what was checked before
    out = done("trust", "read", "check/check.csv", "check/check-2.csv")
    assert "70 of 70 drawn rows checked" in out
    assert "agree" not in out


def test_two_people_are_held_against_each_other(right) -> None:
    done(*DRAW, "-n", "40")
    fill(Path("check/check.csv"), right)
    Path("ben.csv").write_bytes(Path("check/check.csv").read_bytes())
    with Path("ben.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    lines[0]["right"] = {"ant": "bee", "bee": "cat", "cat": "ant"}[lines[0]["right"]]
    write_lines(Path("ben.csv"), lines)
    out = done("trust", "read", "check/check.csv", "ben.csv", "--draw", "check")
    assert "check/check.csv and ben.csv agree on 39 of 40 rows (Cohen's kappa 0.9" in out
    assert "to talk about" in out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace("ant\n", "bee\n", 90),
            "has another label; what was marked is safe",
        ),
        (lambda text: text.replace("=1+1", "=1+2"), "has another content; what was marked is safe"),
        (lambda text: text + "1,a,ant\n", "it has 301 rows now; what was marked is safe"),
        (lambda text: text + "1,a,dog\n", "its classes are ant, bee, cat, dog now"),
    ],
)
def test_data_that_changed_are_named_and_nothing_is_lost(right, change, words) -> None:
    done(*DRAW, "-n", "40")
    fill(Path("check/check.csv"), right)
    before = {path: path.read_bytes() for path in Path("check").iterdir()}
    Path("x.csv").write_text(change(Path("x.csv").read_text().replace("\r", "")))
    for call in (("trust", "read", "check/check.csv"), (*DRAW, "-n", "10")):
        line = refused(*call)
        assert "x.csv: has changed since rows were drawn from it: " in line
        assert words in line
    assert {path: path.read_bytes() for path in Path("check").iterdir()} == before


def test_what_cannot_be_read_is_one_line(right, tmp_path: Path) -> None:
    assert "no such file; save it from check.html" in refused("trust", "read", "check/verified.csv")
    Path("alone.csv").write_text("row,right\n1,ant\n")
    line = refused("trust", "read", "alone.csv")
    assert line.endswith("holds no draw.json; name the folder of the draw with --draw")
    assert "no such file" in refused("trust", "draw", "no.csv", "--out", "check")
    assert "-n" in refused(*DRAW, "-n", "0")
    assert "5 rows cannot hold 2 of each of 3 classes" in refused(*DRAW, "-n", "5")
    assert not Path("check/check.csv").exists()


def test_data_that_are_not_there_any_more_are_said_to_be_unchecked(right, capfd) -> None:
    done(*DRAW, "-n", "40")
    fill(Path("check/check.csv"), right)
    Path("x.csv").unlink()
    assert "40 of 40 drawn rows checked" in done("trust", "read", "check/check.csv")


def test_rows_are_drawn_where_a_run_doubts_them(workplace) -> None:
    call = ("trust", "draw", "train.csv", "--label", "status", "--out", "check")
    out = done(*call, "-n", "10", "--from", "model")
    assert out.startswith("10 of 80 rows drawn\nof how many labels are wrong they tell as much as")
    rounds = Draw.load(Path("check")).rounds
    assert rounds[0].way == "informed"
    assert 0 < min(rounds[0].chance) < max(rounds[0].chance) <= 1
    line = refused(*call, "-n", "10", "--from", "model", "--probabilities", "test.csv")
    assert line.startswith("diw: --from: give either")
    line = refused("trust", "draw", "train.npz", "--out", "other", "--from", "model")
    assert "was not trained on rows of train.npz" in line


def test_when_all_rows_are_checked_nothing_more_is_asked_for(right) -> None:
    done(*DRAW, "-n", "300")
    fill(Path("check/check.csv"), right)
    out = done("trust", "read", "check/check.csv")
    assert "300 of 300 drawn rows checked" in out
    assert "more" not in out
    assert "trust draw" not in out
