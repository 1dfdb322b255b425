"""Weights of intact and of mislabelled data: box plots above histograms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.records import Run
from diw.reports.paper.figures import why_empty
from diw.reports.paper.results import Result, Setting, Sheet
from diw.reports.paper.style import GROUPS, Drawing, empty, legend_above, panels, styled

BINS = 40
REACH = 0.99
"""The quantile of the weights that ends the axes: a few heavy samples would stretch them."""


def weight_drawings(sheet: Sheet) -> list[Drawing]:
    """A figure for each setting: a column a method (Fang et al. 2020, Figures 4 and 9)."""
    return [_drawing(sheet, setting) for setting in sheet.settings]


def final_weights(run: Run) -> dict[str, NDArray[np.float64]]:
    """The weights of the final epoch by group; empty where the truth or the weights are unknown."""
    flipped, ledger = run.samples().get("flipped"), run.ledger()
    if flipped is None or not len(ledger):
        return {}
    weights = np.asarray(ledger[-1], dtype=np.float64)
    seen, wrong = np.isfinite(weights), flipped.astype(bool)
    return {"intact": weights[seen & ~wrong], "mislabelled": weights[seen & wrong]}


def _pooled(result: Result) -> dict[str, NDArray[np.float64]]:
    parts = [final_weights(trial.run) for trial in result.trials]
    parts = [part for part in parts if part]
    if not parts:
        return {}
    return {name: np.concatenate([part[name] for part in parts]) for name in GROUPS}


def _drawing(sheet: Sheet, setting: Setting) -> Drawing:
    from matplotlib.patches import Patch

    with styled():
        figure, axes = panels(2, len(sheet.methods), height=1.5)
        for column, method in enumerate(sheet.methods):
            result = sheet.at(setting, method)
            weights = _pooled(result)
            axes[0, column].set_title(method)
            if not weights:
                empty(axes[0, column], why_empty([result]))
                empty(axes[1, column], why_empty([result]))
                continue
            reach = max(2.0, float(np.quantile(np.concatenate(list(weights.values())), REACH)))
            _boxes(axes[0, column], weights, reach)
            _histograms(axes[1, column], weights, reach)
        axes[0, 0].set_ylabel("weight")
        axes[1, 0].set_ylabel("share of the group, %")
        legend_above(figure, [Patch(color=colour, label=name) for name, colour in GROUPS.items()])
    synthetic = any(sheet.at(setting, method).synthetic for method in sheet.methods)
    place = f"{setting.data_title}{' (synthetic)' if synthetic else ''}, {setting.label}"
    name = f"{sheet.name}-{setting.data}-{setting.label}".replace(" ", "-")
    return Drawing(
        name,
        f"Weights in the final epoch, {place}. Boxes: quartiles and the 5% and 95% quantiles.",
        figure,
    )


def _boxes(axes: Any, weights: Mapping[str, NDArray[np.float64]], reach: float) -> None:
    names = [name for name in GROUPS if weights[name].size]
    drawn = axes.boxplot(
        [weights[name] for name in names],
        tick_labels=names,
        whis=(5, 95),
        showfliers=False,
        widths=0.55,
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.1},
    )
    for box, name in zip(drawn["boxes"], names, strict=True):
        box.set(facecolor=GROUPS[name], alpha=0.6)
    axes.axhline(1, ls=":", lw=0.8, color="black")
    axes.set_ylim(-0.03 * reach, 1.05 * reach)
    axes.grid(visible=False, axis="x")


def _histograms(axes: Any, weights: Mapping[str, NDArray[np.float64]], reach: float) -> None:
    edges = np.linspace(0, reach, BINS + 1)
    for name, colour in GROUPS.items():
        values = weights[name]
        counts = np.histogram(np.minimum(values, reach), edges)[0]
        share = 100 * counts / max(1, values.size)
        axes.stairs(share, edges, color=colour, fill=True, alpha=0.4)
        axes.stairs(share, edges, color=colour, lw=1.0)
    axes.axvline(1, ls=":", lw=0.8, color="black")
    axes.set_xlabel("weight")
