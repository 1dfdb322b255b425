"""t-SNE of the last layer's representation of the training data."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from diw.records import Run
from diw.reports.palette import RULE
from diw.reports.paper.figures import why_empty
from diw.reports.paper.results import Setting, Sheet
from diw.reports.paper.style import CLASSES, WIDTH, Drawing, empty, legend_above, styled

MOST_POINTS = 1000
ITERATIONS = 500
COLUMNS = 5


def tsne_drawings(sheet: Sheet) -> list[Drawing]:
    """A figure for each setting: a panel a method, of its first trial (Figure 5 of the paper)."""
    return [_drawing(sheet, setting) for setting in sheet.settings]


def project(run: Run) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Places (m, 2) and true labels (m,) of a run's observed samples; None if it has none.

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


def _drawing(sheet: Sheet, setting: Setting) -> Drawing:
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
                empty(panel, why_empty([result]))
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
    synthetic = any(sheet.at(setting, method).synthetic for method in sheet.methods)
    place = f"{setting.data_title}{' (synthetic)' if synthetic else ''}, {setting.label}"
    return Drawing(
        f"{sheet.name}-{setting.data}",
        f"t-SNE of the last layer's representation of training data, {place}, one trial; colours "
        "are true classes.",
        figure,
    )
