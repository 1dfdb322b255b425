"""The paper's tables: ours beside theirs, marks where there is nothing, honest statistics."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from diw.pages import Cell, Column, Table, number_cell, to_csv, to_markdown, to_plain
from reproduction.results import read_sheet
from reproduction.tables import detail_table, matrix_table, to_latex
from reproduction.tests.factory import (
    DIW,
    RANDOM,
    UNIFORM,
    cell,
    published,
    trials,
    write_experiment,
    write_run,
)


def test_ours_stand_above_the_papers_with_the_difference(folder: Path) -> None:
    text = to_markdown(matrix_table(read_sheet(folder)))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    ours, theirs, apart = lines[2:5]
    assert "Fashion-MNIST | 0.4 symmetric | ours" in ours
    assert f"{np.mean(UNIFORM):.2f} ({np.std(UNIFORM, ddof=1):.2f})" in ours
    assert "77.13 (2.21)" in theirs
    assert "**88.29 (0.18)**" in theirs
    assert f"+{np.mean(UNIFORM) - 77.13:.2f}" in apart
    assert f"−{88.29 - np.mean(DIW):.2f}" in apart
    assert ours.count("not run") == 1
    assert ours.count("n/a") == 1
    assert lines[5].count("no data") == 5


def test_best_and_comparable_are_those_of_the_paired_test(folder: Path) -> None:
    """The oracle is SciPy's own test on the same trials."""
    assert ttest_rel(RANDOM, DIW).pvalue > 0.05 > ttest_rel(UNIFORM, DIW).pvalue
    sheet = read_sheet(folder)
    rows = list(csv.DictReader(io.StringIO(to_csv(detail_table(sheet)))))
    verdicts = {row["method"]: row["verdict"] for row in rows if row["data"] == "Fashion-MNIST"}
    assert verdicts == {
        "uniform": "worse",
        "random": "comparable",
        "diw": "best",
        "siw-f": "",
        "diw1-f": "",
    }
    uniform = rows[0]
    assert float(uniform["p_value"]) == pytest.approx(ttest_rel(UNIFORM, DIW).pvalue)
    assert float(uniform["ours"]) == pytest.approx(np.mean(UNIFORM))
    assert float(uniform["ours_std"]) == pytest.approx(np.std(UNIFORM, ddof=1))
    assert float(uniform["best"]) == pytest.approx(np.mean(UNIFORM) + 2)
    assert float(uniform["last10"]) == pytest.approx(np.mean(UNIFORM) + 1)
    assert float(uniform["difference"]) == pytest.approx(np.mean(UNIFORM) - 77.13)
    assert "**88.03 (0.15)**" in to_markdown(matrix_table(sheet))
    assert "88.03 (0.15) *" in to_plain(matrix_table(sheet))
    assert r"\textbf{88.03 (0.15)}" in to_latex(matrix_table(sheet))


def test_one_trial_claims_nothing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = [cell("uniform", trials(runs, "uniform", [80])), cell("diw", trials(runs, "diw", [88]))]
    table = matrix_table(read_sheet(write_experiment(tmp_path, cells)))
    assert not any(c.strong for row in table.rows for c in row)
    assert any("no test is claimed" in note for note in table.notes)
    assert [c.text for c in table.rows[0]] == [
        "Fashion-MNIST",
        "0.4 symmetric",
        "ours",
        "80.00",
        "88.00",
    ]


def test_generated_images_are_named_and_never_compared(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = [cell("diw", trials(runs, "diw", [88, 87]), published=published(88.29), synthetic=True)]
    sheet = read_sheet(write_experiment(tmp_path, cells, scale="smoke"))
    table = matrix_table(sheet)
    assert table.rows[0][0].text == "Fashion-MNIST (synthetic)"
    assert table.rows[2][3].text == "–"
    assert any("nothing can be compared" in note for note in table.notes)


def test_distances_are_marked_where_they_are_lowest(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    truth = np.array([0.5, 0.5, 0.5, 2.5])
    near, far = [0.6, 0.6, 0.6, 2.2], [1.0, 1.0, 1.0, 1.0]

    def run(method: str, weights: list[float], seed: int) -> str:
        return write_run(
            runs,
            seed=seed,
            accuracies=[0.5],
            method=method,
            weights=[w + 0.001 * seed for w in weights],
            samples={"true_weights": truth},
        )

    cells = [
        cell(
            method,
            [run(method, weights, seed) for seed in range(3)],
            shift="prior:0.2,100",
            published={
                "mae": {"mean": 0.45, "std": 0.02, "best": True},
                "rmse": {"mean": 3.19, "std": 0.07, "best": True},
            },
        )
        for method, weights in (("iw", far), ("diw", near))
    ]
    sheet = read_sheet(write_experiment(tmp_path, cells, outputs=["distance"]))
    table = matrix_table(sheet)
    assert [row[1].text for row in table.rows if row[1].text] == [
        "ratio 100:1, MAE",
        "ratio 100:1, RMSE",
    ]
    mae = table.rows[0]
    assert mae[3].value == pytest.approx(np.abs(np.array(far) - truth).mean(), abs=2e-3)
    assert (mae[3].strong, mae[4].strong) == (False, True)
    assert any("the lowest" in note for note in table.notes)


def test_latex_escapes_what_is_special() -> None:
    columns = (Column("method", "method", "left"), Column("accuracy", "accuracy"))
    rows = (
        (Cell("a_b & <c>"), number_cell(0.79041, 0.0055, scale=100)),
        (Cell("d"), Cell("–", strong=True)),
    )
    text = to_latex(Table(columns, rows, "50% noise"))
    assert r"\caption{50\% noise}" in text
    assert r"a\_b \& <c> & 79.04 $\pm$ 0.55 \\" in text
    assert r"d & \textbf{--} \\" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
