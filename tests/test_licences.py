"""The list of licences is complete, and nothing that the core needs is copyleft."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_dependency_of_the_core_is_copyleft() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    rows = dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", page, re.MULTILINE))
    rows.pop("package")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for entry in project["dependencies"]:
        assert re.split(r"[^\w.-]", entry, maxsplit=1)[0] in rows
    for package, licence in rows.items():
        assert re.search(r"MIT|BSD|Apache|PSF|MPL|ISC|Zlib", licence), package
        assert "GPL" not in licence, package
