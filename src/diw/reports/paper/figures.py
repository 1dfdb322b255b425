"""Curves over epochs: test accuracy of the methods, and the denoising effect of one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from diw.reports.figures import Curve, curve
from diw.reports.paper.results import Result, Setting, Sheet
from diw.reports.paper.style import SUBSETS, Drawing, empty, legend_above, look, panels, styled
from diw.reports.words import count

SUBSET_KEYS = {
    "intact": ("intact_accuracy", "intact, training"),
    "given": ("mislabelled_accuracy_given", "mislabelled, by given label"),
    "true": ("mislabelled_accuracy_true", "mislabelled, by true label"),
    "test": ("test_accuracy", "test"),
}


def accuracy_curves(sheet: Sheet) -> Drawing:
    """Test accuracy by epoch, a panel for each data set and shift (Fang et al. 2020, Figure 3)."""
    rows = _grid(sheet)
    with styled():
        figure, axes = panels(len(rows), max(map(len, rows)), sharey="row")
        for line, settings in zip(axes, rows, strict=True):
            late: list[Curve] = []
            for panel, setting in zip(line, settings, strict=True):
                panel.set_title(setting.label)
                late += _accuracy_panel(panel, sheet, setting)
            _settle(line[0], late)
            line[0].set_ylabel(f"{_data(sheet, settings)}\ntest accuracy, %")
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
                    empty(panel, why_empty([result]))
                else:
                    panel.set_ylim(-3, 103)
            line[0].set_ylabel(f"{_data(sheet, settings)}\naccuracy, %")
        _label_epochs(axes)
        handles = [_handle(SUBSET_KEYS[kind][1], *SUBSETS[kind]) for kind in SUBSET_KEYS]
        legend_above(figure, handles)
    return Drawing(
        sheet.name, f"Accuracy of {method} on parts of the training data, {_over(sheet)}.", figure
    )


def why_empty(results: Sequence[Result]) -> str:
    """What an empty panel says."""
    return "no data" if all(result.state == "no data" for result in results) else "not run"


def draw_curve(axes: Any, line: Curve, colour: str, dash: str) -> None:
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
            draw_curve(axes, line, *look(method, sheet.methods))
            drawn.append(line)
    if not drawn:
        empty(axes, why_empty([sheet.at(setting, method) for method in sheet.methods]))
    return drawn


def _subset(axes: Any, result: Result, kind: str) -> bool:
    line = curve(result.trials, SUBSET_KEYS[kind][0]) if result.trials else None
    if line is not None:
        draw_curve(axes, line, *SUBSETS[kind])
    return line is not None


def _settle(axes: Any, lines: Sequence[Curve]) -> None:
    """Cut off the first steep epochs, which would press the rest together."""
    if not lines:
        return
    late = np.concatenate([100 * line.mean[len(line.mean) // 10 :] for line in lines])
    low, high = float(late.min()), float(late.max())
    room = max(0.06 * (high - low), 1.0)
    axes.set_ylim(max(0.0, low - room), min(100.0, high + room))


def _grid(sheet: Sheet) -> list[list[Setting]]:
    """Settings by data set: a row of panels each, but no row or column without any finished run.

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


def _data(sheet: Sheet, settings: Sequence[Setting]) -> str:
    title = settings[0].data_title
    synthetic = any(sheet.at(settings[0], method).synthetic for method in sheet.methods)
    return f"{title} (synthetic)" if synthetic else title


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
