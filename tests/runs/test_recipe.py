"""Recipes that fit one's own data: as many steps as they need, whatever their size."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.errors import UsageError
from diw.runs.spec import (
    DECAY,
    EPOCHS,
    MOST_DECAY,
    PASSES,
    STEPS,
    fit_batch_size,
    fit_decay,
    fit_recipe,
    held_out_share,
)


@given(st.integers(1, 2_000_000))
def test_enough_steps_and_passes_in_few_epochs(rows: int) -> None:
    recipe = fit_recipe(rows, {})
    passes = recipe.epochs * (recipe.passes or 0)
    steps = passes * ceil(rows / recipe.batch_size)
    assert steps >= STEPS
    assert passes >= PASSES
    assert recipe.epochs <= EPOCHS
    assert steps <= 2.1 * max(STEPS, PASSES * ceil(rows / recipe.batch_size))


def test_what_the_user_sets_is_kept() -> None:
    recipe = fit_recipe(1000, {"epochs": 7, "lr": 0.5, "optimizer": "sgd", "batch_size": 10})
    assert (recipe.epochs, recipe.passes, recipe.lr, recipe.batch_size) == (7, 1, 0.5, 10)
    assert fit_recipe(1000, {"optimizer": "sgd"}).lr == 0.05
    assert fit_recipe(1000, {}).optimizer == "adamw"
    assert fit_recipe(1000, {}, steps=100).epochs == ceil(100 / ceil(1000 / fit_batch_size(1000)))
    with pytest.raises(UsageError, match="steps: give either"):
        fit_recipe(1000, {"epochs": 7}, steps=100)


def test_batches_grow_with_the_data() -> None:
    sizes = [fit_batch_size(rows) for rows in (10, 1000, 2000, 5000, 10**6)]
    assert sizes == [32, 32, 64, 256, 256]


def test_an_epoch_is_chosen_only_by_enough_rows() -> None:
    assert held_out_share(31) == 0
    assert held_out_share(100) == 0.3


@given(st.integers(1, 5000), st.integers(1, 500))
def test_only_small_tables_with_many_columns_have_a_strong_decay(rows: int, columns: int) -> None:
    decay = fit_recipe(rows, {}, columns=columns).weight_decay
    assert decay == fit_decay(rows, columns)
    assert DECAY <= decay <= MOST_DECAY
    assert (decay > DECAY) == (rows < 1024 and rows < 50 * columns)
    assert fit_recipe(rows, {"weight_decay": 0.5}, columns=columns).weight_decay == 0.5
    assert fit_recipe(rows, {"optimizer": "sgd"}, columns=columns).weight_decay == 1e-4
    assert fit_recipe(rows, {}).weight_decay == DECAY  # images
