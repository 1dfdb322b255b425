"""List what the core of diw needs at run time: licences as a page, and an SBOM (CycloneDX).

    python scripts/list_dependencies.py docs/licences.md dist/sbom.json

Both are made from what is installed: what the package needs without
its extras, and what that needs.
"""

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# What the packages' own metadata say at length or not at all.
SAID_ELSEWHERE = {"scipy": "BSD-3-Clause", "safetensors": "Apache-2.0"}

HEAD = """# Licences

What the core of `diw` needs at run time, with the licence that each package states. None is
copyleft.
The extras need more; `released` needs cvxopt, which is under the GPL, and is never installed
unless asked for. Made by `make sbom`, with the versions of constraints.txt.

| package | licence |
|---|---|
"""


def main(page: Path, sbom: Path) -> None:
    """Write both files."""
    found = sorted(needed(["diw"]).values(), key=lambda one: name_of(one).lower())
    others = [one for one in found if name_of(one) != "diw"]
    lines = "".join(f"| {name_of(one)} | {licence_of(one)} |\n" for one in others)
    page.write_text(HEAD + lines, encoding="utf-8")
    sbom.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": [component(one) for one in found],
    }
    sbom.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"{len(others)} packages: {page}, {sbom}")


def needed(names: Iterable[str]) -> dict[str, Distribution]:
    """The installed packages of these names and all that they need, without extras, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue  # not for this system
        if name_of(one) in found:
            continue
        found[name_of(one)] = one
        for entry in one.requires or []:
            if "extra ==" not in entry:
                waiting.append(re.split(r"[^\w.-]", entry, maxsplit=1)[0])
    return found


def name_of(one: Distribution) -> str:
    """Its name."""
    return str(one.metadata["Name"])


def licence_of(one: Distribution) -> str:
    """Its licence, in the words of its metadata."""
    about = one.metadata
    stated = about.get("License-Expression") or SAID_ELSEWHERE.get(name_of(one))
    classifiers = [line for line in about.get_all("Classifier") or [] if "License" in line]
    classes = [line.rpartition(" :: ")[2] for line in classifiers]
    return str(stated or about.get("License") or "; ".join(classes)).partition("\n")[0]


def component(one: Distribution) -> dict[str, object]:
    """Its entry in the SBOM."""
    version = one.version.partition("+")[0]
    return {
        "type": "library",
        "name": name_of(one),
        "version": version,
        "purl": f"pkg:pypi/{name_of(one).lower().replace('_', '-')}@{version}",
        "licenses": [{"license": {"name": licence_of(one)}}],
    }


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
