"""An experiment's records as the command leaves them, with numbers chosen by the test."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diw.runs import Run, Writer
from tests.reports.factory import make_spec

DIW, UNIFORM, RANDOM = (88.0, 88.2, 87.9), (80.0, 81.0, 79.5), (87.8, 88.3, 87.6)
"""Accuracies by seed of three methods; random cannot be distinguished from diw."""

MADE = {"command": "python -m reproduction test", "commit": "abc"}


def write_run(runs: Path, *, seed: int, accuracies: Sequence[float], **changes: Any) -> str:
    """A finished run; returns its folder's name. Keys of `changes` join the spec or its records."""
    rows: Mapping[str, Sequence[float]] = changes.pop("rows", {})
    weights: Sequence[float] | None = changes.pop("weights", None)
    samples = changes.pop("samples", {})
    hidden = changes.pop("hidden", None)
    spec = make_spec(changes.pop("method", "diw"), seed, epochs=len(accuracies), **changes)
    run = Run.create(spec.run(runs).folder, spec.as_json())
    n = len(weights) if weights is not None else 4
    run.write_samples(**{"targets": np.arange(n) % 2, **samples})
    journal = Writer(run.folder, len(accuracies), n)
    for epoch, accuracy in enumerate(accuracies):
        journal.append(
            {
                "epoch": epoch + 1,
                "train_loss": 1.0,
                "test_accuracy": accuracy,
                "balanced_accuracy": accuracy,
                "weighted": weights is not None,
                "ess": 1.0,
                "seconds": epoch + 1.0,
                **{key: values[epoch] for key, values in rows.items()},
            },
            np.ones(n) if weights is None else np.array(weights),
        )
    if hidden is not None:
        run.write_arrays("hidden", **hidden)
    run.finish()
    return run.folder.name


def write_experiment(
    folder: Path,
    cells: Sequence[Mapping[str, Any]],
    *,
    name: str = "test",
    outputs: Sequence[str] = ("accuracy",),
    claims: Sequence[Mapping[str, Any]] = (),
    scale: str = "cpu",
    rounding: float | None = None,
) -> Path:
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    content = {
        "name": name,
        "title": "A test",
        "source": "Fang et al. 2020, Table 0",
        "about": "About <it>.",
        "scale": scale,
        "outputs": list(outputs),
        "claims": list(claims),
        "rounding": rounding,
        "protocol": ["because"],
        "made": MADE,
        "cells": [dict(cell) for cell in cells],
    }
    (own / "experiment.json").write_text(json.dumps(content))
    return own


def cell(method: str, runs: Sequence[str] = (), **changes: Any) -> dict[str, Any]:
    return {
        "data": "fashion-mnist",
        "shift": "symmetric:0.4",
        "variant": "",
        "method": method,
        "state": "planned",
        "reason": "",
        "synthetic": False,
        "runs": {str(seed): run for seed, run in enumerate(runs)},
        "published": {},
        **changes,
    }


def published(mean: float, std: float = 0.5, best: bool = False) -> dict[str, Any]:
    return {"accuracy": {"mean": mean, "std": std, "best": best}}


def trials(runs: Path, method: str, finals: Sequence[float], **changes: Any) -> list[str]:
    """One run per seed, ending at `finals` per cent after a best epoch 2 points above."""
    return [
        write_run(
            runs,
            seed=seed,
            accuracies=[(final + 2) / 100, final / 100],
            method=method,
            **changes,
        )
        for seed, final in enumerate(finals)
    ]
