import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.runs import Recipe, RunSpec
from diw.runs.spec import ALWAYS, LATER, field_values
from diw.training.recorded import with_method


def test_json_and_back() -> None:
    spec = with_method(RunSpec(shift="pair:0.3", seed=4, recipe=Recipe(lr=0.5)), "diw")
    assert RunSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec


def test_the_folder_is_named_by_everything_that_decides_the_result(tmp_path: Path) -> None:
    spec = with_method(RunSpec(), "diw")
    others = [
        replace(spec, seed=1),
        replace(spec, recipe=Recipe(lr=0.5)),
        with_method(spec, "diw", {"bound": 10}),
        with_method(spec, "uniform"),
    ]
    folders = {s.run(tmp_path).folder for s in [spec, *others]}
    assert len(folders) == 5
    # A field given its default value is the same run, and so is an alias.
    assert with_method(spec, "diw2-l", {"bound": "50"}).run(tmp_path) == spec.run(tmp_path)


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="format 0 is not 1"):
        RunSpec.from_json({**RunSpec().as_json(), "format": 0})


def test_a_field_that_was_added_later_is_stated_only_where_it_is_set() -> None:
    @dataclass
    class Grown:
        old: int = 1
        new: int = field(default=2, metadata=LATER)

    assert field_values(Grown()) == {"old": 1}
    assert field_values(Grown(new=3)) == {"old": 1, "new": 3}


@pytest.mark.parametrize(
    "name",
    [f.name for f in (*fields(RunSpec), *fields(Recipe)) if f.name not in ("recipe", *ALWAYS)],
)
def test_a_record_from_before_a_field_existed_has_its_default(name: str) -> None:
    now = RunSpec(method="uniform", shift="pair:0.3", seed=4, recipe=Recipe(epochs=9, lr=0.5))
    written = {key: value for key, value in now.as_json().items() if key != name}
    spec, default = RunSpec.from_json(written).as_json(), RunSpec().as_json()
    assert spec == {**now.as_json(), **({name: default[name]} if name in default else {})}


@pytest.mark.parametrize("name", ALWAYS)
def test_what_no_run_wrote_is_refused(name: str) -> None:
    written = {key: value for key, value in RunSpec().as_json().items() if key != name}
    with pytest.raises(UsageError, match=f"has no {name}"):
        RunSpec.from_json(written)
    with pytest.raises(UsageError, match="unknown key mood"):
        RunSpec.from_json({**RunSpec().as_json(), "mood": 1})


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("constant", {1: 0.1, 400: 0.1}),
        ("step:100:0.1", {1: 0.1, 100: 0.1, 101: 0.01, 201: 0.001}),
        ("exponential:0.5", {1: 0.1, 2: 0.05, 4: 0.0125}),
    ],
)
def test_learning_rates_by_epoch(schedule, rates) -> None:
    recipe = Recipe(lr=0.1, schedule=schedule, ramp=0)
    assert {epoch: recipe.learning_rate(epoch) for epoch in rates} == pytest.approx(rates)


def test_the_rate_rises_over_the_ramp() -> None:
    recipe = Recipe(lr=0.1, schedule="constant", ramp=4)
    rates = [recipe.learning_rate(epoch) for epoch in range(1, 7)]
    assert rates == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1, 0.1])


def test_the_cosine_ends_at_zero_after_the_last_epoch() -> None:
    recipe = Recipe(epochs=4, lr=0.1, schedule="cosine", ramp=0)
    rates = [recipe.learning_rate(epoch) for epoch in range(1, 6)]
    half = 0.1 / 2
    expected = [0.1, half * (1 + 0.5**0.5), half, half * (1 - 0.5**0.5), 0]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"batch_size": -1},
        {"trusted_batch_size": 0},
        {"lr": 0},
        {"lr": float("nan")},
        {"momentum": -1},
        {"weight_decay": -1},
        {"ramp": -1},
        {"optimizer": "lion"},
        {"reduction": "none"},
        {"schedule": "cosine:2"},
        {"passes": 0},
        {"patience": 0},
        {"schedule": "step:0:0.1"},
        {"schedule": "step:5"},
    ],
)
def test_bad_recipes_name_the_field(wrong) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))}: "):
        Recipe(**wrong)
