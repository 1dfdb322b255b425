"""The page's figures as plotly.js reads them: plain dictionaries, so nothing heavy is imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.reports.comparison import Comparison, Trial
from diw.reports.palette import INK, MUTED, RULE, Look, translucent

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Figure:
    """A drawing, and the same in words for those who do not see it."""

    title: str
    caption: str
    description: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """What plotly.js draws."""
        return {"data": self.data, "layout": self.layout}


@dataclass(frozen=True)
class Curve:
    """A quantity by epoch over seeds: mean and standard deviation, shape (epochs,) each."""

    epochs: NDArray[np.int64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    trials: int


def curve(trials: Sequence[Trial], key: str) -> Curve | None:
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


def accuracy_figure(comparison: Comparison, looks: Mapping[str, Look]) -> Figure:
    """Test accuracy by epoch, one line a method and a band of one deviation over seeds."""
    curves = _curves(comparison, "test_accuracy")
    low, high = _settled_range(list(curves.values()))
    ends = _ends(curves)
    return Figure(
        title="Test accuracy by epoch",
        caption=_band_caption(comparison, "Lines: mean test accuracy")
        + f" The axis starts at {100 * low:.0f}%; double-click the plot to see all of it.",
        description=f"Line chart of test accuracy by epoch. In the last epoch: {ends}.",
        data=_lines(curves, looks),
        layout=_line_layout("test accuracy", [low, high]),
    )


def ess_figure(comparison: Comparison, looks: Mapping[str, Look]) -> Figure | None:
    """Effective sample size of the weights by epoch; None where no method weighs."""
    curves = _curves(comparison, "ess")
    if not curves:
        return None
    return Figure(
        title="Effective sample size by epoch",
        caption="The share of the samples that would inform as much with equal weights: 100% where"
        " all weigh the same, less the more the weights choose."
        + _band_caption(comparison, " Lines: mean"),
        description="Line chart of the effective sample size by epoch. In the last epoch: "
        f"{_ends(curves)}.",
        data=_lines(curves, looks),
        layout=_line_layout("effective sample size", [0, 1.05]),
    )


def base_layout() -> dict[str, Any]:
    """What all figures share."""
    return {
        "font": {"family": FONT, "size": 13, "color": INK},
        "margin": {"l": 64, "r": 16, "t": 12, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"font": {"family": FONT, "size": 13}},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#9aa5b1", "activecolor": INK},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "xanchor": "left"},
    }


def axis(title: str, **options: Any) -> dict[str, Any]:
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


def _curves(comparison: Comparison, key: str) -> dict[str, Curve]:
    found = {label: curve(trials, key) for label, trials in comparison.methods.items()}
    return {label: line for label, line in found.items() if line is not None}


def _lines(curves: Mapping[str, Curve], looks: Mapping[str, Look]) -> list[dict[str, Any]]:
    """Bands first, so that no band covers a line."""
    bands = [
        _band(label, line, looks[label].colour) for label, line in curves.items() if line.trials > 1
    ]
    lines = [
        {
            "type": "scatter",
            "mode": "lines" if len(line.epochs) > 1 else "markers",
            "name": escape(label, quote=False),  # plotly.js reads a name as markup
            "legendgroup": label,
            "x": line.epochs.tolist(),
            "y": line.mean.round(6).tolist(),
            "customdata": line.std.round(6).tolist(),
            "line": {"color": looks[label].colour, "width": 2.25, "dash": looks[label].dash},
            "marker": {"color": looks[label].colour},
            "hovertemplate": "%{y:.2%}" + (" ± %{customdata:.2%}" if line.trials > 1 else ""),
        }
        for label, line in curves.items()
    ]
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


def _line_layout(quantity: str, limits: list[float]) -> dict[str, Any]:
    return {
        **base_layout(),
        "hovermode": "x unified",
        "xaxis": axis("epoch", showgrid=False, rangemode="tozero", hoverformat="d"),
        "yaxis": axis(quantity, tickformat=".0%", range=limits),
    }


def _settled_range(curves: Sequence[Curve]) -> tuple[float, float]:
    """The range after the first tenth of the epochs: the first steep ones would hide the rest."""
    late = [line.mean[max(1, len(line.mean) // 10) :] for line in curves if len(line.mean) > 1]
    values = np.concatenate(late or [line.mean for line in curves])
    low, high = float(values.min()), float(values.max())
    room = max(0.08 * (high - low), 0.01)
    return max(0.0, low - room), min(1.0, high + room)


def _ends(curves: Mapping[str, Curve]) -> str:
    return ", ".join(f"{label} {100 * line.mean[-1]:.1f}%" for label, line in curves.items())


def _band_caption(comparison: Comparison, what: str) -> str:
    if len(comparison.seeds) > 1:
        return f"{what} over {len(comparison.seeds)} seeds; bands: ± one standard deviation."
    return f"{what} of one seed."
