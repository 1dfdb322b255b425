"""One thread, no clocks and no dice: results must not depend on the machine or the day."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.clusters import Cluster

torch.set_num_threads(1)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A dask scheduler without workers, ended with its workers after the test."""
    pytest.importorskip("distributed")
    made = Cluster(tmp_path)
    yield made
    made.close()
