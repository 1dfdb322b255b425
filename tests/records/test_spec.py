import json
from dataclasses import replace
from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.experiments.sources import with_method
from diw.records.recipe import Recipe
from diw.records.spec import RunSpec


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
