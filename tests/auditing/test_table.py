"""`diw audit --probabilities`: files in, suspects and a page out, and nothing is trained."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import diw
from diw.auditing.table import audit_file
from tests.auditing.made import CLASSES, make, some, write_table
from tests.own_data import diw as command
from tests.own_data import done, refused

P, GIVEN, RIGHT = make(300)
CHECKED = some(RIGHT, 60)
OPEN = next(row for row in range(300) if row not in CHECKED)
DROPPED = f"p.csv,{OPEN},{CLASSES[GIVEN[OPEN]]},drop,,"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of probabilities and a sheet of verified rows."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "p.csv", P, GIVEN)
    sheet = [f"{row};{CLASSES[label]};{CLASSES[GIVEN[row]]}" for row, label in CHECKED.items()]
    (tmp_path / "checked.csv").write_text("\n".join(["\ufeffrow;right;given", *sheet]) + "\n")
    return tmp_path


AUDIT = ("audit", "--probabilities", "p.csv", "--label", "status", "--out", "check")


def test_the_command_writes_suspects_the_page_and_numbers(here: Path) -> None:
    out = done(*AUDIT, "--verified", "checked.csv", "--json", "found.json")
    expected = diw.audit(probabilities=P, given=GIVEN, verified=CHECKED)
    wrong, low, high = expected.wrong_rows
    assert f"240 rows, {expected.count} suspects; about {wrong} labels are wrong" in out
    assert f"(95% interval {low} to {high})" in out
    numbers = json.loads((here / "found.json").read_text())
    assert numbers["share"] == pytest.approx(expected.wrong.as_list(), abs=1e-6)
    assert set(numbers["by_class"]) == set(CLASSES)
    with (here / "check" / "suspects.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["row"]) for row in rows] == list(expected.suspects["row"])
    assert {row["file"] for row in rows} == {"p.csv"}
    page = (here / "check" / "audit.html").read_text()
    assert "estimated from 60 verified rows" in page
    assert "Your verified rows say: believe the model" in page
    content = json.loads(page.split('id="audit">')[1].split("</script>")[0])
    assert content["columns"] == ["size", "=odd"]
    assert content["cells"][0][0] == str(content["rows"][0]["row"])


def test_marks_of_the_page_are_verified_rows_that_were_picked(here: Path) -> None:
    lines = ["file,row,label,mark,correct,content"]
    for row, label in CHECKED.items():
        given, right = CLASSES[GIVEN[row]], CLASSES[label]
        mark, correct = ("right", "") if given == right else ("wrong", right)
        lines.append(f"elsewhere/p.csv,{row},{given},{mark},{correct},")
    Path("corrections.csv").write_text("\n".join([*lines, DROPPED]) + "\n")
    code, out, said = command(*AUDIT, "--verified", "corrections.csv", "--no-samples")
    assert code == 0
    assert "labels are wrong" not in out  # picked rows say nothing of the share
    assert "picked" in said
    assert "holds none of them" in (here / "check" / "audit.html").read_text()


@pytest.mark.parametrize("kind", ["parquet", "npz", "csv.gz", "numbers"])
def test_every_format_says_the_same(here: Path, kind: str) -> None:
    expected = audit_file(Path("p.csv"), "status", Path("checked.csv"))
    label, path = "status", Path(f"other.{kind}")
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.csv.read_csv("p.csv"), path)
    elif kind == "npz":
        names = np.array(CLASSES)
        np.savez(path, probabilities=P, classes=names, status=names[GIVEN])
    elif kind == "csv.gz":
        import gzip

        path.write_bytes(gzip.compress(Path("p.csv").read_bytes()))
    else:  # columns named like the classes
        path = Path("named.csv")
        path.write_text(Path("p.csv").read_text().replace("p_", ""))
    found = audit_file(path, label, Path("checked.csv"))
    assert found.score == pytest.approx(expected.score, abs=1e-6)
    assert found.wrong.as_list() == pytest.approx(expected.wrong.as_list(), abs=1e-6)


def test_drawing_probabilities_weigh_the_verified_rows(here: Path) -> None:
    """Of class 2 only a tenth was drawn: what is seen there stands for ten times as many."""
    p, given, right = make(3000, 0.0)
    given = np.where((right == 2) & (np.arange(3000) % 2 == 0), 0, given)  # half of class 2
    chance = np.where(right == 2, 0.05, 0.5)
    drawn = np.random.default_rng(0).random(3000) < chance
    write_table(here / "p.csv", p, given)
    rows = [f"{row},{CLASSES[right[row]]},{chance[row]}" for row in np.flatnonzero(drawn)]
    Path("drawn.csv").write_text("\n".join(["row,right,drawn", *rows]) + "\n")
    found = audit_file(here / "p.csv", "status", Path("drawn.csv"))
    assert found.wrong.value == pytest.approx((given != right).mean(), abs=0.04)
    assert (given != right)[drawn].mean() < 0.08  # what the sheet says without them


def test_images_are_named_by_their_file(here: Path) -> None:
    names = np.array([f"photos/{row}.png" for row in range(300)])
    np.savez("p.npz", probabilities=P, classes=np.array(CLASSES), y=GIVEN, files=names)
    sheet = [f"/data/photos/{row}.png,{CLASSES[label]}" for row, label in CHECKED.items()]
    Path("images.csv").write_text("\n".join(["file,right", *sheet]) + "\n")
    found = audit_file(Path("p.npz"), "y", Path("images.csv"))
    assert int(found.trusted.sum()) == 60
    assert found.suspects.iloc[0]["file"].startswith("photos/")


def test_no_torch_is_imported(here: Path) -> None:
    script = (
        "import sys; from diw.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'torch' not in sys.modules, sorted(n for n in sys.modules if n.startswith(\"diw\"))"
    )
    arguments = [*AUDIT, "--verified", "checked.csv"]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, timeout=120)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--label", "no"), "--label: no column 'no'; columns are size, =odd, status, p_ant"),
        (("--probabilities", "no.csv"), "--probabilities: there is no file no.csv"),
        (("--label", "size"), "300 different values in 300 rows are a quantity"),
        (("--verified", "no.csv"), "cannot be read"),
    ],
)
def test_wrong_files_are_one_line(here: Path, flags: tuple[str, ...], words: str) -> None:
    assert words in refused(*AUDIT, *flags)
    assert not (here / "check").exists()


@pytest.mark.parametrize(
    ("sheet", "words"),
    [
        (
            "row,right\n0,cart\n",
            "line 2 of sheet.csv: row 0: 'cart' is not a class; is 'cat' meant?",
        ),
        ("row,right\n300,cat\n", "row 300 is not in the training data, which have 300 rows"),
        ("row,right\n0,cat\n0,bee\n", "lines 2 and 3 of sheet.csv disagree about row 0"),
        ("row,right\n0,1\n", "'1' is not a class; classes are 'ant'"),
        ("row,right,drawn\n0,cat,7\n", "drawn is '7', which is no probability"),
        (
            "row,right,given\n{odd},cat,none\n",
            "its label is 'bee', and was 'none' when checked",
        ),
    ],
)
def test_a_sheet_that_cannot_be_meant_is_one_line(here: Path, sheet: str, words: str) -> None:
    Path("sheet.csv").write_text(sheet.replace("{odd}", "7"))
    told = refused(*AUDIT, "--verified", "sheet.csv")
    assert words in told
    assert told.startswith("diw: --verified: ")
    assert not (here / "check").exists()


def test_no_pickle_is_read(here: Path) -> None:
    np.savez("o.npz", probabilities=P, status=np.array([{}, *GIVEN[1:]], object))
    told = refused(*AUDIT, "--probabilities", "o.npz")
    assert "o.npz: status: holds Python objects, which are never unpickled" in told
    assert not (here / "check").exists()


def test_a_run_or_a_table(here: Path) -> None:
    assert "either a RUN or --probabilities" in refused("audit", "--out", "check")
    assert "name the column" in refused("audit", "--probabilities", "p.csv", "--out", "check")
    assert "belongs to --probabilities" in refused("audit", "r", "--label", "y", "--out", "check")
    assert "no such run" in refused("audit", "r", "--out", "check")
