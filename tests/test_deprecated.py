"""Names of version 0.2 still work, and say what to write instead."""

import importlib
import sys

import numpy as np
import pytest

import diw
from diw.deprecated import NAMES
from diw.methods import Task
from tests.networks import plain_network, samples

OBJECTIVE = diw.Objective(plain_network(), "uniform", samples(20))
STEP = OBJECTIVE.step(samples(8), fits=True)
RESULT = OBJECTIVE(samples(8))
WEIGHTS = RESULT.weights
TASK: Task = OBJECTIVE.task
ROWS = np.random.default_rng(0).normal(size=(2, 20, 2))


def matched(**options):
    return diw.kmm(*ROWS, **options).weights.tolist()


def imported_weighting():
    sys.modules.pop("diw.weighting", None)
    import diw.weighting as old

    del diw.weighting  # as before the import, for other tests
    return old


@pytest.mark.parametrize(
    ("old", "new", "instead"),
    [
        *[
            (
                lambda module=module, name=name: getattr(importlib.import_module(module), name),
                lambda module=module, new=new: getattr(importlib.import_module(module), new),
                f"{module}.{name} is deprecated and goes with diw 1.0: use {module}.{new}",
            )
            for module, names in NAMES.items()
            for name, new in names.items()
        ],
        (lambda: imported_weighting().make, lambda: diw.methods.make, r"diw\.methods"),
        (lambda: imported_weighting().Weighting, lambda: diw.Method, "Weighting is Method"),
        (
            lambda: STEP.fit.losses.tolist(),
            lambda: STEP.train_forward.losses.tolist(),
            "train_forward",
        ),
        (
            lambda: STEP.seen_train.losses.tolist(),
            lambda: STEP.train_detached.losses.tolist(),
            "train_detached",
        ),
        (
            lambda: STEP.probe_train.losses.tolist(),
            lambda: STEP.train_eval.losses.tolist(),
            "train_eval",
        ),
        (
            lambda: STEP.probe_trusted.losses.tolist(),
            lambda: STEP.trusted_eval.losses.tolist(),
            "trusted_eval",
        ),
        (lambda: WEIGHTS.estimate, lambda: WEIGHTS.recorded, "recorded"),
        (lambda: WEIGHTS.diagnostics, lambda: WEIGHTS.metrics, "metrics"),
        (lambda: RESULT.diagnostics, lambda: RESULT.metrics, "metrics"),
        (
            lambda: diw.Objective(plain_network(), "diw", task=TASK).task,
            lambda: diw.Objective(plain_network(), "diw", TASK).task,
            "third argument",
        ),
        (lambda: matched(solver="diw"), lambda: matched(solver="exact"), "use solver='exact'"),
    ],
)
def test_an_old_name_warns_at_the_users_line_and_does_the_same(old, new, instead):
    with pytest.warns(DeprecationWarning, match=instead) as caught:
        found = old()
    assert [warning.filename for warning in caught] == [__file__]
    expected = new()
    assert found is expected or (isinstance(expected, list) and found == expected)


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match=r"huggingface' has no attribute 'nothing'"):
        _ = importlib.import_module("diw.integrations.huggingface").nothing
