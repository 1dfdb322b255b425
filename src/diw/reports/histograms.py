"""Where a method's weights went: their distribution, intact apart from mislabelled."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.reports.comparison import Comparison, Trial
from diw.reports.figures import Figure, axis, base_layout
from diw.reports.palette import GROUPS, MUTED, translucent
from diw.reports.weights import WINDOW, groups, settled_weights

BINS = 48
LEGEND = (
    f"Each training sample's mean weight over the last {WINDOW} weighted epochs, all seeds "
    "together. Dotted: the weight one of unweighted training. The last step holds all larger "
    "weights."
)
ALL = "all samples"


def weight_figures(comparison: Comparison) -> list[Figure]:
    """One histogram a method whose weights differ between samples."""
    figures: list[Figure] = []
    for label, trials in comparison.methods.items():
        weights = pooled_weights(trials)
        if weights:
            figures.append(_figure(label, trials, weights))
    return figures


def pooled_weights(trials: Sequence[Trial]) -> dict[str, NDArray[np.float64]]:
    """Settled weights by group of samples, over all seeds; empty where a method has none."""
    pools: dict[str, list[NDArray[np.float64]]] = {}
    for trial in trials:
        weights = settled_weights(trial.run)
        if weights is None:
            continue
        seen = np.isfinite(weights)
        parts = {group.name: group.members for group in groups(trial.run.samples())}
        for name, members in (parts or {ALL: np.ones_like(seen)}).items():
            pools.setdefault(name, []).append(weights[seen & members])
    return {name: np.concatenate(parts) for name, parts in pools.items()}


def _figure(
    label: str, trials: Sequence[Trial], weights: Mapping[str, NDArray[np.float64]]
) -> Figure:
    everything = np.concatenate(list(weights.values()))
    # A few heavy samples would stretch the axis: what lies above goes into the last step.
    limit = max(float(np.quantile(everything, 0.995)), 1.2)
    edges = np.linspace(0.0, limit, BINS + 1)
    means = ", ".join(f"{name} {part.mean():.2f}" for name, part in weights.items() if part.size)
    known = [t.summary.weight_auroc for t in trials if t.summary.weight_auroc is not None]
    area = f" AUROC {np.mean(known):.3f}." if known else ""
    return Figure(
        title=label,
        caption=f"Mean weight: {means}.{area}",
        description=f"Histogram of the weights of {label}, averaged over its last {WINDOW} "
        f"weighted epochs. Mean weight: {means}.{area}",
        data=[
            _steps(name, part, edges, place) for place, (name, part) in enumerate(weights.items())
        ],
        layout={
            **base_layout(),
            "hovermode": "x unified",
            "xaxis": axis("mean weight of a sample", showgrid=False, range=[0, limit]),
            "yaxis": axis("share of the group", tickformat=".0%", rangemode="tozero"),
            "shapes": [_line_at_one()],
        },
    )


def _steps(
    name: str, weights: NDArray[np.float64], edges: NDArray[np.float64], place: int
) -> dict[str, Any]:
    """A step from each edge to the next; the last height is said twice to reach the last edge."""
    counts = np.histogram(np.minimum(weights, edges[-1]), edges)[0]
    shares = (counts / max(1, weights.size)).round(6).tolist()
    colour = GROUPS[place % len(GROUPS)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": edges.round(4).tolist(),
        "y": [*shares, shares[-1]],
        "line": {"shape": "hv", "width": 1.5, "color": colour},
        "fill": "tozeroy",
        "fillcolor": translucent(colour, 0.35),
        "hovertemplate": "%{y:.1%}",
    }


def _line_at_one() -> dict[str, Any]:
    """The weight that every sample has in unweighted training."""
    return {
        "type": "line",
        "x0": 1,
        "x1": 1,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": MUTED, "width": 1, "dash": "dot"},
    }
