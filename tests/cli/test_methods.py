"""`diw methods`: every method in a line, those that are named with their fields."""

import json
from pathlib import Path

from tests.own_data import done


def test_methods_are_listed_in_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "methods.json"
    out = done("methods", "--json", path)
    listed = {method["name"]: method for method in json.loads(path.read_text())}
    assert {"uniform", "random", "clean", "diw", "reweight"} <= listed.keys()
    assert listed["diw"]["aliases"] == ["diw2-l"]
    assert all(method["summary"].endswith(".") for method in listed.values())
    fields = {field["name"]: field for field in listed["diw"]["fields"]}
    assert fields["bound"]["default"] == 50.0
    assert all(field["text"] for method in listed.values() for field in method["fields"])
    assert [name for name, method in listed.items() if method["default"]] == ["remember"]
    lines = out.splitlines()
    assert "diw         Matches the loss values" in out
    assert any(line.startswith("remember *") for line in lines)
    assert len(lines) == len(listed) + 2  # a line each, an empty one and a hint


def test_a_method_by_name_or_alias_with_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    out = done("methods", "remember", "diw2-l", "--json", path)
    assert "remember (the default)\n" in out
    assert "diw (also called diw2-l)\n" in out
    assert "    folds = 4\n        One of so many parts" in out
    assert all(len(line) <= 96 for line in out.splitlines())
    assert [method["name"] for method in json.loads(path.read_text())] == ["remember", "diw"]
