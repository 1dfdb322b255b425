"""What one command asks for: filters, what is written of it, how long it takes, what made it."""

import json
from pathlib import Path

import pytest

from diw.errors import UsageError
from reproduction.catalogue import catalogue, find_experiments
from reproduction.order import check_filter, order, provenance, read_filter, unique_runs


@pytest.fixture
def here(monkeypatch) -> None:
    monkeypatch.setattr("reproduction.plan.find", lambda _: "here")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["method=diw,noise=0.4s"], {"method": {"diw"}, "shift": {"symmetric:0.4"}}),
        (["method=diw2-l"], {"method": {"diw"}}),
        (["noise=0.3p", "noise=0.5 symmetric"], {"shift": {"pair:0.3", "symmetric:0.5"}}),
        (["shift=prior:0.2,100,seed=0,seed=2"], {"shift": {"prior:0.2,100"}, "seed": {"0", "2"}}),
        ([], {}),
    ],
)
def test_filters(texts, expected) -> None:
    assert read_filter(texts) == expected


def test_wrong_filters_are_refused(here) -> None:
    with pytest.raises(UsageError, match="only: cannot read 'epochs=3'; write AXIS=VALUE"):
        read_filter(["epochs=3"])
    orders = order(find_experiments(("class-prior",)), "cpu", None)
    with pytest.raises(UsageError, match=r"only: no shift 'symmetric:0\.4' here; choose from pri"):
        check_filter(read_filter(["noise=0.4s"]), orders)


def test_a_filter_leaves_the_runs_it_names(here, tmp_path: Path) -> None:
    orders = order(find_experiments(("label-noise", "ablation")), "cpu", 2)
    chosen = read_filter(["method=diw,method=iw,noise=0.4s"])
    check_filter(chosen, orders)
    specs = [spec for one in orders for spec in one.specs(chosen)]
    assert len(specs) == 8
    runs = unique_runs(specs, tmp_path)
    assert len(runs) == 4  # both tables have these two methods
    assert {(spec.method, spec.shift, spec.seed) for spec in runs.values()} == {
        (method, "symmetric:0.4", seed) for method in ("iw", "diw") for seed in (0, 1)
    }


def test_what_was_asked_is_written(here, tmp_path: Path) -> None:
    (one,) = order(find_experiments(("class-prior",)), "paper", None)
    folder = one.write(tmp_path, {"command": "python -m reproduction"})
    content = json.loads((folder / "experiment.json").read_text())
    assert folder.name == content["name"] == "class-prior"
    assert len(content["cells"]) == 14
    first = content["cells"][0]
    assert first["published"] == {"accuracy": {"mean": 63.38, "std": 2.59, "best": False}}
    assert list(first["runs"]) == ["0", "1", "2", "3", "4"]
    spec = one.cells[0].specs[0]
    assert first["runs"]["0"] == spec.run(tmp_path).folder.name
    assert any("0.993" in reason for reason in content["protocol"])


def test_provenance_says_what_made_a_result() -> None:
    made = provenance(["python", "-m", "reproduction", "all"])
    assert made["command"] == "python -m reproduction all"
    assert made["torch"]
    assert int(made["cores"]) >= 1


def test_every_experiment_can_be_ordered_at_every_scale(here) -> None:
    for scale in ("smoke", "cpu", "paper"):
        for one in order(catalogue().values(), scale, 1):
            planned = [cell for cell in one.cells if cell.state == "planned"]
            assert len(one.specs({})) == len(planned)
