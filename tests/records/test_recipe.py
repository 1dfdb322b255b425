import pytest

from diw.errors import UsageError
from diw.records.recipe import Recipe


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
        {"schedule": "cosine"},
        {"schedule": "step:0:0.1"},
        {"schedule": "step:5"},
    ],
)
def test_bad_recipes_name_the_field(wrong) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(wrong))}: "):
        Recipe(**wrong)
