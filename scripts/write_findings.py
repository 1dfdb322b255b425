"""Write docs/findings.md: each claim of the paper with what the kept results say of it.

    python -m scripts.write_findings

The claims, and what they depend on, are those of the experiments' specs; verdicts and counts are
read from results/SCALE/NAME/NAME.json. A test compares the page with the results.
"""

import json
from pathlib import Path

from reproduction.catalogue import Experiment, catalogue

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "findings.md"

HEAD = """# Which of the paper's findings hold

What Fang et al. 2020 claim, what our runs say of it, and what it depends on. The claims of a table
are tested by counting cells, with paired t-tests over seeds; those of a figure by a number that can
be computed from it. Everything here is computed from [the runs that we keep](../results/README.md);
the levels of accuracy at `cpu` scale are not the paper's (fewer images and epochs), so compare
orders.

"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page's text, from the kept results."""
    listed = [one for one in catalogue().values() if not one.name.startswith("beyond")]
    parts = [_part(one) for one in listed if one.claims]
    return HEAD + "\n".join(part for part in parts if part)


def _part(experiment: Experiment) -> str:
    path = ROOT / "results" / "cpu" / experiment.name / f"{experiment.name}.json"
    if not path.is_file():
        return ""
    kept = json.loads(path.read_text(encoding="utf-8"))
    verdicts = {verdict["claim"]: verdict for verdict in kept["verdicts"]}
    lines = [
        f"## {experiment.title}",
        "",
        f"{experiment.source}; `python -m reproduction {experiment.name} --scale cpu`.",
        "",
        "| claim | verdict | ours, and the paper's | depends on |",
        "|---|---|---|---|",
    ]
    for claim in experiment.claims:
        verdict = verdicts.get(claim["text"])
        if verdict is not None:
            finding, depends = verdict["finding"].rstrip("."), claim.get("depends", "")
            cells = [claim["text"], f"**{verdict['outcome']}**", finding, depends]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
