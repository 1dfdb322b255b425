"""Synthetic run records, written through the records' own interface."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.runs import Recipe, Run, RunSpec, Writer

SAMPLES = 400
NOISE = 0.4


def make_spec(method: str = "diw", seed: int = 1, **changes: Any) -> RunSpec:
    """A spec; `changes` are fields of it or of its recipe."""
    names = {field.name for field in fields(Recipe)}
    recipe = {"epochs": 12, **{k: v for k, v in changes.items() if k in names}}
    values = {
        "method_fields": {"bound": 50.0} if method == "diw" else {},
        "shift": "symmetric:0.4",
        "model": "lenet5",
        **{k: v for k, v in changes.items() if k not in names},
    }
    return RunSpec(method=method, seed=seed, recipe=Recipe(**recipe), **values)


def make_run(
    root: Path,
    method: str = "diw",
    seed: int = 1,
    *,
    lift: float = 0.0,
    samples: dict[str, NDArray[Any]] | None = None,
    n: int = SAMPLES,
    finished: bool = True,
    balanced_gap: float = 0.0,
    **changes: Any,
) -> Run:
    """A run that looks like the real ones: `uniform` memorises the noise, `diw` does not.

    Args:
        root: The folder of runs.
        method: `clean` has no training weights, `uniform` equal ones, others telling ones.
        seed: Also of the numbers.
        lift: Added to every accuracy.
        samples: In place of label noise at 0.4.
        n: Training samples.
        finished: Whether the records are closed.
        balanced_gap: Balanced below plain test accuracy.
        changes: Fields of the spec or its recipe.
    """
    spec = make_spec(method, seed, **changes)
    run = Run.create(spec.run(root).folder, spec.as_json())
    rng = np.random.default_rng([seed, len(method)])
    if samples is None:
        truth = np.arange(n) % 10
        flipped = np.random.default_rng(seed).random(n) < NOISE
        samples = {
            "targets": np.where(flipped, (truth + 1) % 10, truth),
            "true_labels": truth,
            "flipped": flipped,
        }
    run.write_samples(**samples)
    epochs = spec.recipe.epochs
    journal = Writer(run.folder, epochs, n)
    for epoch in range(1, epochs + 1):
        weights = weigh(method, epoch, samples, n, rng)
        row = metrics(method, epoch, epochs, weights, rng, lift, balanced_gap)
        journal.append(row, None if method == "clean" else weights)
    if finished:
        run.finish()
    return run


def weigh(
    method: str,
    epoch: int,
    samples: dict[str, NDArray[Any]],
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.float64] | None:
    if method == "clean":
        return None
    if method == "uniform" or epoch == 1:
        return np.ones(n)
    if method == "random":
        return np.maximum(0.0, rng.normal(size=n)) / 0.4
    flipped = samples.get("flipped", np.zeros(n, dtype=bool))
    weights = np.where(flipped, rng.exponential(0.15, n), rng.gamma(6.0, 0.27, n))
    return weights / weights.mean()


def metrics(
    method: str,
    epoch: int,
    epochs: int,
    weights: NDArray[np.float64] | None,
    rng: np.random.Generator,
    lift: float,
    balanced_gap: float,
) -> dict[str, Any]:
    progress = epoch / epochs
    rise = 0.84 * (1 - np.exp(-6 * progress))
    decay = {"uniform": 0.06, "random": 0.02}.get(method, 0.0) * progress
    accuracy = float(rise - decay + lift + rng.normal(0, 0.003))
    row: dict[str, Any] = {
        "epoch": epoch,
        "train_loss": float(2.3 * np.exp(-progress)),
        "test_accuracy": accuracy,
        "balanced_accuracy": accuracy - balanced_gap,
        "seconds": 1.5 * epoch,
        "weighted": weights is not None and method != "uniform" and epoch > 1,
    }
    if weights is not None:
        row["ess"] = float(weights.sum() ** 2 / (weights.size * (weights**2).sum()))
        row["share_zero"] = float((weights == 0).mean())
        row["share_bound"] = 0.0
        row["weight_max"] = float(weights.max())
        row["vanished"] = 0
    return row
