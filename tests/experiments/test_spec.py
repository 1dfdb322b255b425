import json
from dataclasses import replace
from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.experiments.spec import RunSpec
from diw.recipe import Recipe


def test_json_and_back() -> None:
    spec = RunSpec(shift="pair:0.3", seed=4, recipe=Recipe(lr=0.5)).with_method("diw")
    assert RunSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec


def test_the_folder_is_named_by_everything_that_decides_the_result(tmp_path: Path) -> None:
    spec = RunSpec().with_method("diw")
    others = [
        replace(spec, seed=1),
        replace(spec, recipe=Recipe(lr=0.5)),
        spec.with_method("diw", {"bound": 10}),
        spec.with_method("uniform"),
    ]
    folders = {s.run(tmp_path).folder for s in [spec, *others]}
    assert len(folders) == 5
    # A field given its default value is the same run, and so is an alias.
    assert spec.with_method("diw2-l", {"bound": "50"}).run(tmp_path) == spec.run(tmp_path)


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="format 0 is not 1"):
        RunSpec.from_json({**RunSpec().as_json(), "format": 0})
