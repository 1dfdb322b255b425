"""Each row of "What each verb promises" in docs/reliability.md: what it reads, what it writes."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from diw.cli.main import VERBS
from diw.outputs import MADE
from tests.auditing.made import CLASSES, make, some, write_table
from tests.cli.calls import CALLS
from tests.own_data import done

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
OUT = {verb: call[call.index("--out") + 1] for verb, call in CALLS.items() if "--out" in call}
OUT |= {"train": "fresh", "report": "model/report.html"}
GIVEN = {
    **{"DATA": "train.csv", "TRAIN": "train.csv", "TRUSTED": "trusted.csv", "TEST": "test.csv"},
    "RUN": "model",
}
"""The words of the table, as they are in the calls."""
DATA = ("train.csv", "trusted.csv", "test.csv")
watches: list[set[Path]] = []
"""The files that were opened, while a test watches."""


def watch(event: str, values: tuple[object, ...]) -> None:
    if watches and event == "open" and isinstance(values[0], str):
        watches[-1].add(Path(values[0]).absolute())


sys.addaudithook(watch)


def rows() -> dict[str, tuple[str, str]]:
    """What the table says: reads and writes by verb."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## What each verb promises")
    lines = re.findall(r"^\| `([a-z-]+)` \| (.*?) ?\| (.*) \|$", section, re.MULTILINE)
    return {verb: (reads, writes) for verb, reads, writes in lines}


def test_every_verb_has_a_row() -> None:
    assert rows().keys() == set(VERBS)


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of each file, by its path in the folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in found
    }


def is_promised(path: str, verb: str, writes: str) -> bool:
    """Whether the row of the verb names this file among what it writes."""
    place = Path(path)
    names = set(re.findall("`([^`]+)`", writes))
    runs = ("RUN" in names or "runs" in writes) and any(
        (folder / "spec.json").exists() for folder in place.parents
    )
    named = {"found.json": "JSON", OUT.get(verb): "OUT"}.get(path) in names
    return place.name == MADE or named or runs or any(path.endswith(f"/{name}") for name in names)


def watched(verb: str, call: Sequence[str], workplace: Path) -> tuple[set[str], set[str]]:
    """What a call reads and writes, with no other file touched, by paths in the workplace."""
    before = files(workplace)
    watches.append(set())
    done(*call, "--json", "found.json")
    opened = watches.pop()
    after = files(workplace)
    written = {path for path in after if after[path] != before.get(path)}
    assert before.keys() <= after.keys()
    assert "found.json" in written
    assert [path for path in written if not is_promised(path, verb, rows()[verb][1])] == []
    touched = {str(path.relative_to(workplace)) for path in opened if workplace in path.parents}
    return touched & before.keys(), written


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_reads_and_writes_what_its_row_says(verb: str, workplace: Path) -> None:
    reads, _ = rows()[verb]
    call = [OUT["train"] if verb == "train" and word == "model" else word for word in CALLS[verb]]
    call += ["--jobs", "1", "--no-learners"] if verb == "compare" else []
    touched, _ = watched(verb, call, workplace)
    words = set(re.findall("`([^`]+)`", reads))
    known = {GIVEN[word] for word in words & GIVEN.keys()} | (
        set(DATA) if "its data" in reads else set()
    )
    known |= (
        {word for word in call[1:] if Path(word).suffix == ".csv"} if "FILE" in words else set()
    )
    read = {path for path in touched if not path.startswith("model/")}
    assert read <= known
    assert ("RUN" in words) == any(path.startswith("model/") for path in touched)
    if "DATA" in words or "TRAIN" in words:
        assert read == set(DATA) & set(call)


MORE = {
    "CORRECTIONS": ("train", (*CALLS["train"][:-1], "fresh", "--corrections", "marks.csv")),
    "VERIFIED": ("audit", (*CALLS["audit"], "--verified", "marks.csv")),
    "TABLE": (
        "audit",
        ("audit", "--probabilities", "p.csv", "--label", "status", "--verified", "marks.csv"),
    ),
}
"""Calls that read what others do not: a word of the row, the verb and the call."""


@pytest.mark.parametrize("word", MORE)
def test_what_is_read_with_more_options_is_in_the_row_too(word: str, workplace: Path) -> None:
    verb, call = MORE[word]
    if word == "TABLE":
        p, given, right = make(120)
        write_table(workplace / "p.csv", p, given)
        marks = [f"{row},{CLASSES[label]}" for row, label in some(right, 60).items()]
        (workplace / "marks.csv").write_text("\n".join(["row,right", *marks]) + "\n")
        call, known = (*call, "--out", "check"), {"p.csv", "marks.csv"}
    else:
        lines = (workplace / "train.csv").read_text().splitlines()[1:]
        marks = [f"train.csv,{row},{line.split(',')[3]},right,," for row, line in enumerate(lines)]
        head = "file,row,label,mark,correct,content"
        (workplace / "marks.csv").write_text("\n".join([head, *marks[:60]]) + "\n")
        known = {*DATA, "marks.csv"}
    read, _ = watched(verb, call, workplace)
    assert f"`{word}`" in rows()[verb][0]
    assert {path for path in read if not path.startswith("model/")} == known
