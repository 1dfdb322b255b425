"""The tables of intervals and p-values on the page about reliability hold what was measured."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
FOUND = json.loads((ROOT / "benchmarks" / "results" / "intervals.json").read_text())


def test_every_measured_interval_is_in_the_table() -> None:
    _, _, section = PAGE.partition("## What intervals and p-values are worth")
    said = re.findall(r"(\d+) of (\d+)", section.partition("The p-values")[0])
    measured = [(str(one["held"]), str(one["of"])) for one in FOUND["intervals"].values()]
    assert sorted(said) == sorted(measured)
    assert all(int(of) > 190 for _, of in said)


def test_every_p_value_of_no_shift_is_in_the_table() -> None:
    for name, one in FOUND["null"].items():
        cells = [", ".join(map(str, test.values())) for test in one["below"].values()]
        assert f"| {name} | {' | '.join(cells)} | {one['called']} |" in PAGE
