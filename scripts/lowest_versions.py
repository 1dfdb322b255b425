"""Print, as constraints for pip, the oldest versions that pyproject.toml allows.

    python scripts/lowest_versions.py > constraints.txt

torch keeps the version of constraints.txt: its releases are large, and an old one does not run with
the oldest NumPy that we allow.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXCEPT = ("torch",)


def main() -> None:
    """Every `name>=version` of the package, its extras and the tests as `name==version`."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = content["project"], content["dependency-groups"]
    wanted = [*project["dependencies"], *groups["test"], *groups["paper"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    found = (re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\w.]+)", entry) for entry in wanted)
    lowest = {match[1]: match[2] for match in found if match}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, _, version = line.partition("==")
        if name in EXCEPT:
            lowest[name] = version
    for name, version in sorted(lowest.items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
