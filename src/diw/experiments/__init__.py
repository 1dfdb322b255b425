"""Runs as data: what to run, running one, running many."""

from diw.experiments.execute import execute
from diw.experiments.grid import run_all
from diw.experiments.spec import RunSpec

__all__ = ["RunSpec", "execute", "run_all"]
