"""The paper's figures: accuracy curves, denoising, weights, t-SNE, size of the trusted set.

Drawn by matplotlib, which is imported only here and in `style`, inside the functions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.records import Run
from diw.reports.figures import Curve, curve, settled_range
from diw.reports.palette import RULE
from diw.reports.paper.results import Result, Setting, Sheet
from diw.reports.paper.style import (
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
from diw.reports.statistics import mean_and_std
from diw.reports.words import count

SUBSET_KEYS = {
    "intact": ("intact_accuracy", "intact, training"),
    "given": ("mislabelled_accuracy_given", "mislabelled, by given label"),
    "true": ("mislabelled_accuracy_true", "mislabelled, by true label"),
    "test": ("test_accuracy", "test"),
}

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


def accuracy_curves(sheet: Sheet) -> Drawing:
    """Test accuracy by epoch, one panel per data set and shift (Fang et al. 2020, Figure 3)."""
    rows = _grid(sheet)
    with styled():
        figure, axes = panels(len(rows), max(map(len, rows)), sharey="row")
        for line, settings in zip(axes, rows, strict=True):
            late: list[Curve] = []
            for panel, setting in zip(line, settings, strict=True):
                panel.set_title(setting.label)
                late += _accuracy_panel(panel, sheet, setting)
            if late:
                low, high = settled_range(late)
                line[0].set_ylim(100 * low, 100 * high)
            line[0].set_ylabel(f"{sheet.data_title(settings[0])}\ntest accuracy, %")
        _label_epochs(axes)
        shown = [m for m in sheet.methods if any(sheet.at(s, m).trials for s in sheet.settings)]
        legend_above(figure, [_handle(method, *look(method, sheet.methods)) for method in shown])
    return Drawing(f"{sheet.name}-curves", f"Test accuracy by epoch, {_over(sheet)}.", figure)


def denoising_curves(sheet: Sheet) -> Drawing:
    """Accuracy on intact and mislabelled training data by epoch (Fang et al. 2020, Figure 6)."""
    rows = _grid(sheet)
    method = sheet.methods[0]
    with styled():
        figure, axes = panels(len(rows), max(map(len, rows)), sharey="row")
        for line, settings in zip(axes, rows, strict=True):
            for panel, setting in zip(line, settings, strict=True):
                panel.set_title(setting.label)
                result = sheet.at(setting, method)
                drawn = [_subset(panel, result, kind) for kind in SUBSET_KEYS]
                if not any(drawn):
                    empty(panel, _why_empty([result]))
                else:
                    panel.set_ylim(-3, 103)
            line[0].set_ylabel(f"{sheet.data_title(settings[0])}\naccuracy, %")
        _label_epochs(axes)
        handles = [_handle(SUBSET_KEYS[kind][1], *SUBSETS[kind]) for kind in SUBSET_KEYS]
        legend_above(figure, handles)
    return Drawing(
        sheet.name, f"Accuracy of {method} on parts of the training data, {_over(sheet)}.", figure
    )


def weight_drawings(sheet: Sheet) -> list[Drawing]:
    """One figure per setting, one column per method (Fang et al. 2020, Figures 4 and 9)."""
    return [_weight_drawing(sheet, setting) for setting in sheet.settings]


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


def _weight_drawing(sheet: Sheet, setting: Setting) -> Drawing:
    from matplotlib.patches import Patch

    with styled():
        figure, axes = panels(2, len(sheet.methods), height=1.5)
        for column, method in enumerate(sheet.methods):
            result = sheet.at(setting, method)
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


def tsne_drawings(sheet: Sheet) -> list[Drawing]:
    """One figure per setting, one panel per method, of its first trial (the paper's Figure 5)."""
    return [_tsne_drawing(sheet, setting) for setting in sheet.settings]


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


def _tsne_drawing(sheet: Sheet, setting: Setting) -> Drawing:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = -(-len(sheet.methods) // COLUMNS)
    numbers: set[int] = set()
    with styled():
        side = WIDTH / COLUMNS
        figure = Figure(figsize=(WIDTH, rows * (side + 0.2) + 0.45), layout="constrained")
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for panel, method in zip(axes, sheet.methods, strict=False):
            result = sheet.at(setting, method)
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
                if (values := sheet.at(setting, method).values("accuracy"))
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


def _why_empty(results: Sequence[Result]) -> str:
    """What an empty panel says."""
    return "no data" if all(result.state == "no data" for result in results) else "not run"


def _draw_curve(axes: Any, line: Curve, colour: str, dash: str) -> None:
    """A mean with a band of one standard deviation, in per cent."""
    mean, std = 100 * line.mean, 100 * line.std
    if line.trials > 1:
        axes.fill_between(line.epochs, mean - std, mean + std, color=colour, alpha=0.18, lw=0)
    marker = "o" if len(line.epochs) == 1 else None
    axes.plot(line.epochs, mean, color=colour, ls=dash, marker=marker, ms=3)


def _accuracy_panel(axes: Any, sheet: Sheet, setting: Setting) -> list[Curve]:
    drawn: list[Curve] = []
    for method in sheet.methods:
        trials = sheet.at(setting, method).trials
        line = curve(trials, "test_accuracy") if trials else None
        if line is not None:
            _draw_curve(axes, line, *look(method, sheet.methods))
            drawn.append(line)
    if not drawn:
        empty(axes, _why_empty([sheet.at(setting, method) for method in sheet.methods]))
    return drawn


def _subset(axes: Any, result: Result, kind: str) -> bool:
    line = curve(result.trials, SUBSET_KEYS[kind][0]) if result.trials else None
    if line is not None:
        _draw_curve(axes, line, *SUBSETS[kind])
    return line is not None


def _grid(sheet: Sheet) -> list[list[Setting]]:
    """Settings by data set, one row of panels each; rows and columns without runs are left out.

    If nothing is finished, all of them, to say so.
    """
    rows: dict[str, list[Setting]] = {}
    for setting in sheet.settings:
        rows.setdefault(setting.data, []).append(setting)
    ran = {s for s in sheet.settings if any(sheet.at(s, method).trials for method in sheet.methods)}
    if not ran:
        return list(rows.values())
    labels = {setting.label for setting in ran}
    kept = [row for row in rows.values() if ran.intersection(row)]
    return [[setting for setting in row if setting.label in labels] for row in kept]


def _label_epochs(axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    for panel in axes.flat:
        if panel.lines:
            panel.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    for panel in axes[-1]:
        panel.set_xlabel("epoch")


def _handle(label: str, colour: str, dash: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, ls=dash, label=label)


def _over(sheet: Sheet) -> str:
    trials = max((len(result.trials) for result in sheet.results), default=0)
    if trials < 2:
        return "one trial"
    return f"mean and standard deviation over {count(trials, 'trial')}"


_MAKERS: dict[str, Callable[[Sheet], list[Drawing]]] = {
    "curves": lambda sheet: [accuracy_curves(sheet)],
    "denoising": lambda sheet: [denoising_curves(sheet)],
    "weights": weight_drawings,
    "tsne": tsne_drawings,
    "trusted-size": lambda sheet: [trusted_size_drawing(sheet)],
}
"""By the name that specs use."""
