"""Verdicts: counted by hand here, computed there; for ours and for the published numbers."""

from pathlib import Path

import numpy as np
import pytest

from diw.pages import to_markdown
from diw.runs import Run
from reproduction.catalogue import catalogue
from reproduction.claims import KINDS, Verdict, verdicts
from reproduction.plan import cell_json, plan
from reproduction.results import concentration, denoising, read_sheet
from reproduction.tables import matrix_table
from reproduction.tests.factory import cell, published, trials, write_experiment, write_run


def judge(folder: Path, cells: list, **claim: object) -> Verdict:
    sheet = read_sheet(write_experiment(folder, cells, claims=[{"text": "So it is.", **claim}]))
    return verdicts(sheet)[0]


def test_specs_use_only_known_kinds() -> None:
    used = {claim["kind"] for one in catalogue().values() for claim in one.claims}
    assert used == set(KINDS)


def test_best_counts_settings_by_data(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = []
    for shift, diw in (("pair:0.3", (88, 88.2, 87.9)), ("symmetric:0.4", (70, 70.3, 70.1))):
        other = trials(runs, "uniform", (80, 80.5, 79.5), shift=shift)
        cells += [
            cell("uniform", other, shift=shift, published=published(77)),
            cell("diw", trials(runs, "diw", diw, shift=shift), shift=shift,
                 published=published(88, best=True)),
        ]  # fmt: skip
    verdict = judge(tmp_path, cells, kind="best", method="diw")
    assert verdict.outcome == "holds in part"
    assert verdict.finding == (
        "Fashion-MNIST: diw is best or comparable in 1 of 2, "
        "in the paper best or comparable in 2 of 2."
    )
    assert verdict.line.startswith("So it is. Holds in part: ")


def test_above_counts_pairs_and_tests(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = [
        cell("iw", trials(runs, "iw", (80, 80.2, 79.9)), published=published(82.69)),
        cell("siw-f", trials(runs, "siw-f", (79, 80.9, 80.3)), published=published(82.41)),
        cell("siw-l", trials(runs, "siw-l", (85, 85.3, 84.8)), published=published(85.46)),
    ]
    pairs = [["siw-f", "iw"], ["siw-l", "iw"], ["iw", "siw-l"]]
    verdict = judge(tmp_path, cells, kind="above", pairs=pairs)
    assert verdict.outcome == "holds in part"
    # siw-f − iw: −1, 0.7, 0.4, so +0.03 on average and far from certain.
    assert verdict.finding == (
        "the mean is higher in 2 of 3 comparisons (1 by a paired t-test at 5%, which is against "
        "it in 1); in the paper in 1 of 3."
    )
    verdict = judge(tmp_path, cells, kind="not-below", pairs=[["iw", "siw-f"], ["iw", "siw-l"]])
    assert verdict.finding == (
        "not below in 1 of 2 comparisons; in the paper the mean is not below in 1 of 2."
    )


def test_what_rounding_can_do_is_no_difference(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = [
        cell("random", trials(runs, "random", (80, 80.2, 79.9))),
        cell("diw", trials(runs, "diw", (80.5, 80.7, 80.4))),
        cell("siw-l", trials(runs, "siw-l", (85, 85.3, 84.8))),
    ]
    claim = {"text": "So it is.", "kind": "above", "pairs": [["diw", "random"], ["siw-l", "diw"]]}
    own = write_experiment(tmp_path, cells, claims=[claim], rounding=0.4)
    assert verdicts(read_sheet(own))[0].finding == (
        "the mean is higher by more than 0.8 points in 1 of 2 comparisons (1 by a paired t-test "
        "at 5%, which is against it in 0; 1 not distinguishable from the effect of rounding)."
    )
    text = to_markdown(matrix_table(read_sheet(own)))
    assert "means closer than 0.8 are not distinguishable" in text


def test_robust_compares_losses_between_rates(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    numbers = {
        "symmetric:0.4": {"uniform": (77, 77.13), "diw": (88, 88.29)},
        "symmetric:0.5": {"uniform": (74, 73.70), "diw": (87.5, 87.67)},
    }
    cells = [
        cell(
            method,
            trials(runs, method, [ours], shift=shift),
            shift=shift,
            published=published(theirs),
        )
        for shift, row in numbers.items()
        for method, (ours, theirs) in row.items()
    ]
    options = {"from": "symmetric:0.4", "to": "symmetric:0.5", "rivals": ["uniform"]}
    verdict = judge(tmp_path, cells, kind="robust", method="diw", **options)
    assert verdict.outcome == "holds"
    assert verdict.finding == (
        "Fashion-MNIST: diw loses 0.5 points, its rivals 3.0 to 3.0 "
        "(in the paper diw loses 0.6 points, its rivals 3.4 to 3.4)."
    )


def test_overfitting_is_the_fall_from_the_best_epoch(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cells = [cell("uniform", trials(runs, "uniform", (78, 79)))]  # 2 points under its best
    assert judge(tmp_path, cells, kind="overfits", method="uniform", points=1.5).outcome == "holds"
    verdict = judge(tmp_path, cells, kind="overfits", method="uniform", points=3.0)
    assert verdict.outcome == "does not hold"
    assert "in 0 of 1 (Fashion-MNIST, 0.4 symmetric: 2.0)" in verdict.finding


def test_separation_by_auroc(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    flipped = np.array([False, False, False, True])
    weights = {"iw": [1.0, 0.0, 1.0, 2.0], "diw": [1.2, 1.4, 1.3, 0.1]}
    cells = [
        cell(
            method,
            [
                write_run(
                    runs,
                    seed=0,
                    accuracies=[0.5],
                    method=method,
                    weights=w,
                    samples={"flipped": flipped},
                )
            ],
        )
        for method, w in weights.items()
    ]
    verdict = judge(tmp_path, cells, kind="separates", method="diw")
    assert verdict.outcome == "holds"
    assert "highest in 1 of 1 (means: iw 0.000, diw 1.000)" in verdict.finding


def test_concentration_is_the_share_of_variance_between_classes(tmp_path: Path) -> None:
    labels = np.array([0, 0, 1, 1])
    points = {"all": [[0, 0], [0, 0], [2, 0], [2, 0]], "half": [[0, -1], [0, 1], [2, -1], [2, 1]]}
    runs = {
        name: write_run(
            tmp_path / "runs",
            seed=0,
            accuracies=[0.5],
            method=name,
            hidden={"features": np.array(p, dtype=np.float32), "true_labels": labels},
        )
        for name, p in points.items()
    }
    share = {name: concentration(Run(tmp_path / "runs" / run)) for name, run in runs.items()}
    assert share == {"all": pytest.approx(1.0), "half": pytest.approx(0.5)}
    cells = [cell(name, [run]) for name, run in runs.items()]
    claim = {"better": ["all"], "worse": ["half"]}
    assert judge(tmp_path, cells, kind="concentrated", **claim).outcome == "holds"


def test_denoising_is_read_from_the_last_epoch(tmp_path: Path) -> None:
    rows = {
        "mislabelled_accuracy_given": [0.9, 0.1],
        "mislabelled_accuracy_true": [0.0, 0.7],
        "intact_accuracy": [0.5, 0.9],
    }
    name = write_run(tmp_path / "runs", seed=0, accuracies=[0.5, 0.6], rows=rows)
    assert denoising(Run(tmp_path / "runs" / name)) == (0.1, 0.7, 0.9)
    verdict = judge(tmp_path, [cell("diw", [name])], kind="denoises", method="diw")
    assert verdict.outcome == "holds"
    assert "70% by the true label, 10% by the given one, 90% on intact data" in verdict.finding
    plain = write_run(tmp_path / "runs", seed=1, accuracies=[0.5])
    assert denoising(Run(tmp_path / "runs" / plain)) is None


def test_published_weights_against_weights_of_one(tmp_path: Path, monkeypatch) -> None:
    """In the paper DIW's RMSE beats weights of one and its MAE does not, at either ratio."""
    monkeypatch.setattr("reproduction.plan.find", lambda _: None)
    experiment = catalogue()["weight-distance"]
    runs = tmp_path / "runs"
    cells = [cell_json(c) for c in plan(experiment, "paper")]
    for one in cells:
        if one["method"] == "diw":
            truth = {"true_weights": np.ones(4)}
            run = write_run(
                runs, seed=0, accuracies=[0.5], weights=[1, 1, 1, 1.1], samples=truth,
                shift=one["shift"],
            )  # fmt: skip
            one.update(state="planned", runs={"0": run})
    folder = write_experiment(tmp_path, cells, claims=experiment.claims, outputs=["distance"])
    found = {(v.claim[-60:], v.finding) for v in verdicts(read_sheet(folder))}
    by_metric = {claim: finding for claim, finding in found if "claimed" in claim}
    assert any("absolute" in c and "in the paper in 0 of 2" in f for c, f in by_metric.items())
    assert any("square" in c and "in the paper in 2 of 2" in f for c, f in by_metric.items())


def test_nothing_is_claimed_without_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("reproduction.plan.find", lambda _: None)
    for name, experiment in catalogue().items():
        cells = [cell_json(c) for c in plan(experiment, "paper")]
        folder = write_experiment(
            tmp_path, cells, name=name, claims=experiment.claims, outputs=experiment.outputs
        )
        for verdict in verdicts(read_sheet(folder)):
            assert verdict.outcome == "not tested"
            assert verdict.finding == "no finished runs to test it on."
