"""The paper's figures: accuracy curves, denoising, weights, t-SNE, size of the trusted set.

Drawn by matplotlib, which is imported only here and in `style`, inside the functions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diw.pages import count
from diw.reports import RULE, Curve, curve, mean_and_std, settled_range
from diw.runs import Run
from reproduction.results import FilledCell, Setting, Sheet
from reproduction.style import (
    CLASSES,
    GROUPS,
    SUBSETS,
    WIDTH,
    Drawing,
    empty,
    legend_above,
    look,
    panels,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 40
REACH = 0.99
"""The quantile of the weights that ends the axes: a few heavy samples would stretch them."""

MOST_POINTS = 1000
ITERATIONS = 500
COLUMNS = 5
"""Of t-SNE: points per panel at most, iterations, panels per row."""


def drawings(sheet: Sheet) -> list[Drawing]:
    """The figures that an experiment asks for, in its order."""
    return [one for kind in sheet.outputs if kind in _MAKERS for one in _MAKERS[kind](sheet)]


class Line(NamedTuple):
    """One curve of each panel: a metric of a method, and how it is drawn."""

    method: str
    metric: str
    label: str
    colour: str
    dash: str


def accuracy_curves(sheet: Sheet) -> Drawing:
    """Test accuracy by epoch, one panel per data set and shift (Fang et al. 2020, Figure 3)."""
    ran = [m for m in sheet.methods if any(sheet.at[s, m].trials for s in sheet.settings)]
    lines = [Line(m, "test_accuracy", m, *look(m, sheet.methods)) for m in ran]
    figure = _curves_by_epoch(sheet, lines, "test accuracy, %", zoom=True)
    return Drawing(f"{sheet.name}-curves", f"Test accuracy by epoch, {_over(sheet)}.", figure)


def denoising_curves(sheet: Sheet) -> Drawing:
    """Accuracy on intact and mislabelled training data by epoch (Fang et al. 2020, Figure 6)."""
    method = sheet.methods[0]
    lines = [Line(method, metric, *drawn) for metric, drawn in SUBSETS.items()]
    figure = _curves_by_epoch(sheet, lines, "accuracy, %", zoom=False)
    caption = f"Accuracy of {method} on parts of the training data, {_over(sheet)}."
    return Drawing(sheet.name, caption, figure)


def _curves_by_epoch(sheet: Sheet, lines: Sequence[Line], ylabel: str, *, zoom: bool) -> "Figure":
    """One row of panels per data set; with `zoom` its axis shows the late epochs' range."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    rows = _grid(sheet)
    with styled():
        figure, axes = panels(len(rows), max(map(len, rows)), sharey="row")
        for row, settings in zip(axes, rows, strict=True):
            drawn: list[Curve] = []
            for panel, setting in zip(row, settings, strict=True):
                panel.set_title(setting.label)
                for line in lines:
                    trials = sheet.at[setting, line.method].trials
                    found = curve(trials, line.metric) if trials else None
                    if found is not None:
                        _draw_curve(panel, found, line.colour, line.dash)
                        drawn.append(found)
                if panel.lines:
                    panel.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
                else:
                    empty(panel, _why_empty([sheet.at[setting, m] for m in sheet.methods]))
            if drawn:
                low, high = settled_range(drawn) if zoom else (-0.03, 1.03)
                row[0].set_ylim(100 * low, 100 * high)
            row[0].set_ylabel(f"{sheet.data_title(settings[0])}\n{ylabel}")
        for panel in axes[-1]:
            panel.set_xlabel("epoch")
        handles = [Line2D([], [], color=one.colour, ls=one.dash, label=one.label) for one in lines]
        legend_above(figure, handles)
    return figure


def final_weights(run: Run) -> dict[str, NDArray[np.float64]]:
    """The weights of the final epoch by group; empty where the truth or the weights are unknown."""
    flipped, ledger = run.samples().get("flipped"), run.ledger()
    if flipped is None or not len(ledger):
        return {}
    weights = np.asarray(ledger[-1], dtype=np.float64)
    seen, wrong = np.isfinite(weights), flipped.astype(bool)
    return {"intact": weights[seen & ~wrong], "mislabelled": weights[seen & wrong]}


def _pooled(result: FilledCell) -> dict[str, NDArray[np.float64]]:
    parts = [final_weights(trial.run) for trial in result.trials]
    parts = [part for part in parts if part]
    if not parts:
        return {}
    return {name: np.concatenate([part[name] for part in parts]) for name in GROUPS}


def weight_drawing(sheet: Sheet, setting: Setting) -> Drawing:
    """The weights of one setting, one column per method (Fang et al. 2020, Figures 4 and 9)."""
    from matplotlib.patches import Patch

    with styled():
        figure, axes = panels(2, len(sheet.methods), height=1.5)
        for column, method in enumerate(sheet.methods):
            result = sheet.at[setting, method]
            weights = _pooled(result)
            axes[0, column].set_title(method)
            if not weights:
                empty(axes[0, column], _why_empty([result]))
                empty(axes[1, column], _why_empty([result]))
                continue
            reach = max(2.0, float(np.quantile(np.concatenate(list(weights.values())), REACH)))
            _boxes(axes[0, column], weights, reach)
            _histograms(axes[1, column], weights, reach)
        axes[0, 0].set_ylabel("weight")
        axes[1, 0].set_ylabel("share of the group, %")
        legend_above(figure, [Patch(color=colour, label=name) for name, colour in GROUPS.items()])
    place = f"{sheet.data_title(setting)}, {setting.label}"
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


def project(run: Run) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Positions (m, 2) and true labels (m,) of a run's observed samples; None if it has none.

    Van der Maaten and Hinton 2008, from the principal components and with a fixed seed.
    """
    from sklearn.manifold import TSNE

    kept: Mapping[str, NDArray[np.float64]] = run.arrays("hidden")
    if not kept:
        return None
    step = max(1, -(-len(kept["features"]) // MOST_POINTS))
    features = kept["features"][::step].astype(np.float64)
    labels = kept["true_labels"][::step].astype(np.int64)
    if np.ptp(features, axis=0).max() == 0:
        return np.zeros((len(features), 2)), labels  # a dead layer has nothing to unfold
    perplexity = min(30.0, (len(features) - 1) / 3)
    embedding = TSNE(perplexity=perplexity, init="pca", max_iter=ITERATIONS, random_state=0)
    places = embedding.fit_transform(features)
    return np.asarray(places, dtype=np.float64), labels


def tsne_drawing(sheet: Sheet, setting: Setting) -> Drawing:
    """One setting, one panel per method, of its first trial (Fang et al. 2020, Figure 5)."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = -(-len(sheet.methods) // COLUMNS)
    numbers: set[int] = set()
    with styled():
        side = WIDTH / COLUMNS
        figure = Figure(figsize=(WIDTH, rows * (side + 0.2) + 0.45), layout="constrained")
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for panel, method in zip(axes, sheet.methods, strict=False):
            result = sheet.at[setting, method]
            projected = project(result.trials[0].run) if result.trials else None
            panel.set_title(method)
            if projected is None:
                empty(panel, _why_empty([result]))
                continue
            places, labels = projected
            colours = [CLASSES[label % len(CLASSES)] for label in labels]
            panel.scatter(*places.T, c=colours, s=1.6, lw=0, rasterized=True)
            panel.set(xticks=[], yticks=[])
            panel.grid(visible=False)
            panel.set_box_aspect(1)
            for spine in panel.spines.values():
                spine.set(visible=True, color=RULE)
            numbers |= set(labels.tolist())
        for panel in axes[len(sheet.methods) :]:
            panel.set_axis_off()
        handles = [
            Line2D([], [], marker="o", ls="", ms=3.5, color=CLASSES[n % len(CLASSES)], label=str(n))
            for n in sorted(numbers)[: len(CLASSES)]
        ]
        if handles:
            legend_above(figure, handles)
    place = f"{sheet.data_title(setting)}, {setting.label}"
    return Drawing(
        f"{sheet.name}-{setting.data}",
        f"t-SNE of the last layer's representation of training data, {place}, one trial; colours "
        "are true classes.",
        figure,
    )


def trusted_size_drawing(sheet: Sheet) -> Drawing:
    """Last test accuracy against the number of trusted samples, one line per method."""
    sizes = {setting: _size(setting.variant) for setting in sheet.settings}
    with styled():
        figure, axes = panels(1, 1, height=2.2)
        panel = axes[0, 0]
        handles: list[Any] = []
        for method in sheet.methods:
            colour, dash = look(method, sheet.methods)
            points = [
                (sizes[setting], *mean_and_std(list(values.values())))
                for setting in sheet.settings
                if (values := sheet.at[setting, method].values("accuracy"))
            ]
            if points:
                size, mean, std = zip(*points, strict=True)
                spread = [value or 0.0 for value in std]
                looks: dict[str, Any] = {"color": colour, "ls": dash, "label": method}
                handles.append(
                    panel.errorbar(size, mean, spread, marker="o", ms=3, capsize=2, **looks)
                )
        if handles:
            panel.set_xscale("log")
            ticks = sorted(set(sizes.values()))
            panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            panel.minorticks_off()
            panel.set(xlabel="trusted samples", ylabel="test accuracy, %")
            legend_above(figure, handles)
        else:
            empty(panel, _why_empty(sheet.results))
    return Drawing(
        sheet.name, "Test accuracy in the last epoch by the number of trusted samples.", figure
    )


def _size(variant: str) -> int:
    digits = re.sub(r"\D", "", variant)
    return int(digits) if digits else 0


def _why_empty(results: Sequence[FilledCell]) -> str:
    """What an empty panel says."""
    return "no data" if all(result.state == "no data" for result in results) else "not run"


def _draw_curve(axes: Any, line: Curve, colour: str, dash: str) -> None:
    """A mean with a band of one standard deviation, in per cent."""
    mean, std = 100 * line.mean, 100 * line.std
    if line.trials > 1:
        axes.fill_between(line.epochs, mean - std, mean + std, color=colour, alpha=0.18, lw=0)
    marker = "o" if len(line.epochs) == 1 else None
    axes.plot(line.epochs, mean, color=colour, ls=dash, marker=marker, ms=3)


def _grid(sheet: Sheet) -> list[list[Setting]]:
    """Settings by data set, one row of panels each; rows and columns without runs are left out.

    If nothing is finished, all of them, to say so.
    """
    rows: dict[str, list[Setting]] = {}
    for setting in sheet.settings:
        rows.setdefault(setting.data, []).append(setting)
    ran = {s for s in sheet.settings if any(sheet.at[s, method].trials for method in sheet.methods)}
    if not ran:
        return list(rows.values())
    labels = {setting.label for setting in ran}
    kept = [row for row in rows.values() if ran.intersection(row)]
    return [[setting for setting in row if setting.label in labels] for row in kept]


def _over(sheet: Sheet) -> str:
    trials = max((len(result.trials) for result in sheet.results), default=0)
    if trials < 2:
        return "one trial"
    return f"mean and standard deviation over {count(trials, 'trial')}"


_MAKERS: dict[str, Callable[[Sheet], list[Drawing]]] = {
    "curves": lambda sheet: [accuracy_curves(sheet)],
    "denoising": lambda sheet: [denoising_curves(sheet)],
    "weights": lambda sheet: [weight_drawing(sheet, setting) for setting in sheet.settings],
    "tsne": lambda sheet: [tsne_drawing(sheet, setting) for setting in sheet.settings],
    "trusted-size": lambda sheet: [trusted_size_drawing(sheet)],
}
"""By the name that specs use."""
