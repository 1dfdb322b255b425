"""Every example is short and runs, in its quick form; the notebook runs from top to bottom."""

import json
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

pytestmark = pytest.mark.filterwarnings("error::diw.errors.DIWWarning")
"""What readers copy should not warn them."""

HOME = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(HOME.glob("*.py"))


@pytest.fixture(autouse=True)
def _drawing(tmp_path, monkeypatch):
    """Figures are drawn in memory, and files left in a folder of the test's own."""
    mpl.use("agg")
    plt.close("all")  # what other tests have drawn
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_draws_and_is_short(example, monkeypatch, capsys) -> None:
    assert len(example.read_text().splitlines()) <= 60
    monkeypatch.setattr(sys, "argv", [str(example), "--quick"])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()


def test_there_are_examples_for_a_gallery() -> None:
    assert len(EXAMPLES) >= 8


def test_the_notebook_runs_from_top_to_bottom(capsys) -> None:
    cells = json.loads((HOME / "quickstart.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert "accuracy" in capsys.readouterr().out
    assert plt.get_fignums()
