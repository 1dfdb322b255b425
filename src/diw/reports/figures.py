"""Curves over epochs and distributions of weights; the page's charts as plotly.js reads them.

Charts are plain dictionaries, so that nothing heavy is imported. The colours are Okabe and Ito's
(2008), which colour-blind readers can distinguish, without their yellow: it is too faint for a line
on white.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.reports.comparison import Comparison
from diw.reports.summary import WINDOW, Summary, groups, settled_weights, suspect_groups

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
DASHES = ("solid", "dash", "dot", "dashdot")

GROUPS = ("#44AA99", "#882255", "#DDCC77", "#332288")
"""For groups of samples (Tol's muted scheme): none is also the colour of a method."""

INK = "#1f2933"
MUTED = "#616e7c"
RULE = "#e4e7eb"

Look = tuple[str, str]
"""Colour and dash of one method, everywhere on a page."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

BINS = 48
WEIGHTS_LEGEND = (
    f"Mean weight of each training sample over the last {WINDOW} weighted epochs, all seeds "
    "together. Dotted: the weight one of unweighted training. The last step holds all larger "
    "weights."
)
ALL = "all samples"
_LINE_AT_ONE = {
    "type": "line",
    "x0": 1,
    "x1": 1,
    "y0": 0,
    "y1": 1,
    "yref": "paper",
    "line": {"color": MUTED, "width": 1, "dash": "dot"},
}
"""The weight that every sample has in unweighted training."""


@dataclass(frozen=True)
class Chart:
    """A figure of the page, and the same in words for those who do not see it."""

    title: str
    caption: str
    description: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    """What plotly.js draws, and how."""


@dataclass(frozen=True)
class Curve:
    """A quantity by epoch over seeds: mean and standard deviation, shape (epochs,) each."""

    epochs: NDArray[np.int64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    trials: int


def curve(trials: Sequence[Summary], key: str) -> Curve | None:
    """Gather `key` over the epochs that all trials have; None where none recorded it."""
    series: list[dict[int, float]] = []
    for trial in trials:
        rows = [row for row in trial.run.metrics() if row.get(key) is not None]
        series.append({int(row["epoch"]): float(row[key]) for row in rows})
    epochs = sorted(set.intersection(*(set(values) for values in series)))
    if not epochs:
        return None
    table = np.array([[values[epoch] for epoch in epochs] for values in series])
    std = table.std(axis=0, ddof=1) if len(series) > 1 else np.zeros(len(epochs))
    return Curve(np.array(epochs), table.mean(axis=0), std, len(series))


def settled_range(curves: Sequence[Curve]) -> tuple[float, float]:
    """The axis of accuracy curves, in [0, 1]: the range after the first tenth of the epochs.

    The first, steep epochs would press the rest together.
    """
    late = [line.mean[max(1, len(line.mean) // 10) :] for line in curves if len(line.mean) > 1]
    values = np.concatenate(late or [line.mean for line in curves])
    low, high = float(values.min()), float(values.max())
    room = max(0.08 * (high - low), 0.01)
    return max(0.0, low - room), min(1.0, high + room)


def accuracy_chart(comparison: Comparison, looks: Mapping[str, Look]) -> Chart:
    """Test accuracy by epoch: one line per method, with a band of one deviation over seeds."""
    curves = _curves(comparison, "test_accuracy")
    off = smothering(curves)
    low, high = settled_range([line for label, line in curves.items() if label != off])
    ends = _ends(curves)
    return Chart(
        title="Test accuracy by epoch",
        caption=_band_caption(comparison, "Lines: mean test accuracy")
        + f" The axis starts at {100 * low:.0f}%; double-click the plot to see all of it."
        + (f" {off} is off, because its band covers the others: click its name." if off else "")
        + (
            " A click on a name switches its line off or on." if len(curves) > 1 and not off else ""
        ),
        description=f"Line chart of test accuracy by epoch. In the last epoch: {ends}.",
        data=_lines(curves, looks, off),
        layout=_line_layout("test accuracy", [low, high]),
    )


def ess_chart(comparison: Comparison, looks: Mapping[str, Look]) -> Chart | None:
    """Effective sample size of the weights by epoch; None where no method weighs."""
    curves = _curves(comparison, "ess")
    if not curves:
        return None
    return Chart(
        title="Effective sample size by epoch",
        caption="The share of the samples that would inform as much with equal weights: 100% where"
        " all weights are equal, less the more they differ."
        + _band_caption(comparison, " Lines: mean"),
        description="Line chart of the effective sample size by epoch. In the last epoch: "
        f"{_ends(curves)}.",
        data=_lines(curves, looks),
        layout=_line_layout("effective sample size", [0, 1.05]),
    )


def weight_charts(comparison: Comparison) -> list[Chart]:
    """One histogram for each method whose weights differ between samples."""
    pooled = {label: pooled_weights(trials) for label, trials in comparison.methods.items()}
    return [
        _histogram(label, comparison.methods[label], weights)
        for label, weights in pooled.items()
        if weights
    ]


def pooled_weights(trials: Sequence[Summary]) -> dict[str, NDArray[np.float64]]:
    """Settled weights by group of samples, over all seeds; empty where a method has none."""
    pools: dict[str, list[NDArray[np.float64]]] = {}
    for trial in trials:
        weights = settled_weights(trial.run)
        if weights is None:
            continue
        seen = np.isfinite(weights)
        parts = groups(trial.run.samples()) or suspect_groups(trial.run)
        parts = parts or {ALL: np.ones_like(seen)}
        for name, members in parts.items():
            pools.setdefault(name, []).append(weights[seen & members])
    return {name: np.concatenate(parts) for name, parts in pools.items()}


def _histogram(
    label: str, trials: Sequence[Summary], weights: Mapping[str, NDArray[np.float64]]
) -> Chart:
    everything = np.concatenate(list(weights.values()))
    # A few heavy samples would stretch the axis: what lies above goes into the last step.
    limit = max(float(np.quantile(everything, 0.995)), 1.2)
    edges = np.linspace(0.0, limit, BINS + 1)
    means = ", ".join(f"{name} {part.mean():.2f}" for name, part in weights.items() if part.size)
    known = [trial.weight_auroc for trial in trials if trial.weight_auroc is not None]
    area = f" AUROC {np.mean(known):.3f}." if known else ""
    return Chart(
        title=label,
        caption=f"Mean weight: {means}.{area}",
        description=f"Histogram of the weights of {label}, averaged over its last {WINDOW} "
        f"weighted epochs. Mean weight: {means}.{area}",
        data=[
            _steps(name, part, edges, place) for place, (name, part) in enumerate(weights.items())
        ],
        layout=_layout(
            _axis("mean weight of a sample", showgrid=False, range=[0, limit]),
            _axis("share of the group", tickformat=".0%", rangemode="tozero"),
            shapes=[_LINE_AT_ONE],
        ),
    )


def _steps(
    name: str, weights: NDArray[np.float64], edges: NDArray[np.float64], place: int
) -> dict[str, Any]:
    """A step from each edge to the next; the last height is repeated to reach the last edge."""
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


def _curves(comparison: Comparison, key: str) -> dict[str, Curve]:
    found = {label: curve(trials, key) for label, trials in comparison.methods.items()}
    return {label: line for label, line in found.items() if line is not None}


def smothering(curves: Mapping[str, Curve]) -> str | None:
    """The method that ends lowest, if its band covers half of the others' lines; else None."""
    if len(curves) < 2:
        return None
    worst = min(curves, key=lambda label: curves[label].mean[-1])
    band = curves[worst]
    covered: list[bool] = []
    for label, line in curves.items():
        shared = min(len(line.mean), len(band.mean))
        late = slice(shared // 4, shared)
        if label != worst:
            covered += (np.abs(line.mean[late] - band.mean[late]) <= band.std[late]).tolist()
    return worst if np.mean(covered) > 0.5 else None


def _lines(
    curves: Mapping[str, Curve], looks: Mapping[str, Look], off: str | None = None
) -> list[dict[str, Any]]:
    """Bands first, so that no band covers a line; the method `off` starts invisible."""
    bands: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for label, line in curves.items():
        colour, dash = looks[label]
        several = line.trials > 1
        seen: dict[str, Any] = {"visible": "legendonly"} if label == off else {}
        if several:
            bands.append(_band(label, line, colour) | seen)
        lines.append(
            {
                "type": "scatter",
                "mode": "lines" if len(line.epochs) > 1 else "markers",
                "name": escape(label, quote=False),  # plotly.js reads a name as markup
                "legendgroup": label,
                "x": line.epochs.tolist(),
                "y": line.mean.round(6).tolist(),
                "customdata": line.std.round(6).tolist(),
                "line": {"color": colour, "width": 2.25, "dash": dash},
                "marker": {"color": colour},
                "hovertemplate": "%{y:.2%}" + (" ± %{customdata:.2%}" if several else ""),
                **seen,
            }
        )
    return bands + lines


def _band(label: str, line: Curve, colour: str) -> dict[str, Any]:
    upper, lower = line.mean + line.std, line.mean - line.std
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(label, quote=False),  # plotly.js reads a name as markup
        "legendgroup": label,
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [*line.epochs.tolist(), *line.epochs[::-1].tolist()],
        "y": [*upper.round(6).tolist(), *lower[::-1].round(6).tolist()],
        "fill": "toself",
        "fillcolor": translucent(colour, 0.14),
        "line": {"width": 0},
    }


def _layout(xaxis: dict[str, Any], yaxis: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What all charts share, with axes of their own."""
    return {
        "font": {"family": FONT, "size": 13, "color": INK},
        "margin": {"l": 64, "r": 16, "t": 12, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"font": {"family": FONT, "size": 13}},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#9aa5b1", "activecolor": INK},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "xanchor": "left"},
        "hovermode": "x unified",
        "xaxis": xaxis,
        "yaxis": yaxis,
        **more,
    }


def _axis(title: str, **options: Any) -> dict[str, Any]:
    """A quiet axis: thin rules, no box."""
    return {
        "title": {"text": title, "font": {"size": 13, "color": MUTED}, "standoff": 10},
        "gridcolor": RULE,
        "linecolor": RULE,
        "zeroline": False,
        "tickfont": {"color": MUTED},
        "automargin": True,
        **options,
    }


def _line_layout(quantity: str, limits: list[float]) -> dict[str, Any]:
    return _layout(
        _axis("epoch", showgrid=False, rangemode="tozero", hoverformat="d"),
        _axis(quantity, tickformat=".0%", range=limits),
    )


def _ends(curves: Mapping[str, Curve]) -> str:
    return ", ".join(f"{label} {100 * line.mean[-1]:.1f}%" for label, line in curves.items())


def _band_caption(comparison: Comparison, what: str) -> str:
    if len(comparison.seeds) > 1:
        return f"{what} over {len(comparison.seeds)} seeds; bands: ± one standard deviation."
    return f"{what} of one seed."


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for each label, the same whatever order they come in."""
    return {
        label: (COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)])
        for place, label in enumerate(sorted(set(labels)))
    }


def translucent(colour: str, opacity: float) -> str:
    """`#rrggbb` as an rgba() value."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
