"""`diw methods`: every method with its fields."""

import json
from pathlib import Path

from click.testing import CliRunner

from diw.cli.main import diw


def test_methods_lists_every_method_with_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "methods.json"
    result = CliRunner().invoke(diw, ["methods", "--json", str(path)])
    assert result.exit_code == 0, result.output
    listed = {method["name"]: method for method in json.loads(path.read_text())}
    assert {"uniform", "random", "clean", "diw", "reweight"} <= listed.keys()
    assert listed["diw"]["aliases"] == ["diw2-l"]
    assert all(method["summary"].endswith(".") for method in listed.values())
    fields = {field["name"]: field for field in listed["diw"]["fields"]}
    assert fields["bound"]["default"] == 50.0
    assert all(field["text"] for method in listed.values() for field in method["fields"])
    assert [name for name, method in listed.items() if method["default"]] == ["remember"]
    assert "remember (the default)" in result.output
    assert "diw (also called diw2-l)" in result.output
