"""Matching class by class: the partition, the class priors and what to do with absent classes.

Fang et al. 2020, Eq. (8): p_te(x, y)/p_tr(x, y) = w_y* · p_te(z|y)/p_tr(z|y) with
w_y* = p_te(y)/p_tr(y). The second factor has mean one within a class, so the
matched weights are scaled to that before they are multiplied; a class then has
exactly the share of the total weight that its prior ratio gives it.

No sample is lost where a class is absent:

- from the trusted part of a mini-batch: the latest values of trusted samples of
  that class are taken, from a cache;
- from the cache too (no trusted sample of it was drawn yet), or from the whole
  trusted set: there is nothing to match, and its samples get w_y* alone;
- w_y* itself counts a class without any trusted sample as half a sample, so
  that its weight is small but not zero;
- from the training part: there is nothing to weigh.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from diw.matching import Match

HALF_A_SAMPLE = 0.5
"""What a class without trusted samples counts for (Jeffreys's pseudo-count)."""

Solve = Callable[[Iterable[tuple[Tensor, Tensor]]], list[Match]]
"""Matches each pair (z_train, z_trusted) by itself."""


@dataclass(frozen=True)
class Side:
    """Training or trusted samples: their labels (n,) and a way to the values z of some rows."""

    labels: Tensor
    values: Callable[[Tensor], Tensor]


def prior_ratios(train: Tensor, trusted: Tensor) -> Tensor:
    """w_y* = p_trusted(y)/p_train(y) of each class, (k,), from counts (k,) over the whole sets.

    A class without trusted samples counts as half a sample; one without
    training samples has no weight to give and gets 0.
    """
    ours, theirs = train.double(), trusted.double().clamp(min=HALF_A_SAMPLE)
    ratios = theirs / trusted.sum().clamp(min=1) * ours.sum() / ours
    return torch.where(ours > 0, ratios, 0.0)


def match_by_class(
    train: Side,
    trusted: Side,
    ratios: Tensor,
    solve: Solve,
    *,
    bound: float,
    spare: Callable[[int], Tensor | None] | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Weights (n,) from one matching problem a class, in float64 on the CPU; the solver's facts.

    w_i = w_y* · v_i / mean(v over the class), see the module's text.

    Args:
        train: The samples to weigh.
        trusted: The samples to match them to.
        ratios: (k,) w_y* by class.
        solve: Solves the problems; they are made one at a time, so it may be lazy.
        bound: B, to count the weights that reach it.
        spare: (label) → values of trusted samples that `trusted` lacks, or None.
    """
    ours, theirs = train.labels.cpu(), trusted.labels.cpu()
    weights = ratios[ours]
    matched: list[Tensor] = []
    sources: list[Callable[[], Tensor]] = []
    for label in ours.unique().tolist():
        rows = (theirs == label).nonzero().flatten()
        kept = spare(label) if spare is not None and not len(rows) else None
        if len(rows):
            sources.append(lambda rows=rows: trusted.values(rows))
        elif kept is not None:
            sources.append(lambda kept=kept: kept)
        else:
            continue
        matched.append((ours == label).nonzero().flatten())

    def problems() -> Iterator[tuple[Tensor, Tensor]]:
        for rows, source in zip(matched, sources, strict=True):
            z_train = train.values(rows)
            yield z_train, source().to(z_train)

    at_bound, iterations, covered = 0.0, 0.0, 0
    for rows, match in zip(matched, solve(problems()), strict=True):
        v = match.weights.double().cpu()
        weights[rows] *= v / v.mean()
        at_bound += share_at_bound(v, bound) * len(rows)
        iterations += match.iterations
        covered += len(rows)
    return weights, {
        "share_bound": at_bound / len(ours),
        "iterations": iterations,
        "share_unmatched": 1 - covered / len(ours),
    }


def share_at_bound(weights: Tensor, bound: float) -> float:
    """The share of matched weights (n,), before any scaling, that reach B."""
    return float((weights >= bound * (1 - 1e-6)).double().mean())
