"""An experiment with finished, missing and absent cells."""

from pathlib import Path

import pytest

from reproduction.tests.factory import (
    DIW,
    RANDOM,
    UNIFORM,
    cell,
    published,
    trials,
    write_experiment,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    cells = [
        cell("uniform", trials(runs, "uniform", UNIFORM), published=published(77.13, 2.21)),
        cell("random", trials(runs, "random", RANDOM), published=published(84.58, 0.76)),
        cell("diw", trials(runs, "diw", DIW), published=published(88.29, 0.18, best=True)),
        cell("siw-f", [], published=published(82.36)),
        cell("diw1-f", [], state="absent", reason="too few samples of a class"),
    ]
    missing = [
        cell(c["method"], [], data="cifar-10", state="no data", reason="cifar-10 is not here")
        for c in cells
    ]
    return write_experiment(tmp_path, [*cells, *missing])
