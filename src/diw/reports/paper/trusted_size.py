"""Accuracy against the size of the trusted set."""

import re
from typing import Any

from diw.reports.paper.figures import why_empty
from diw.reports.paper.results import Sheet
from diw.reports.paper.style import Drawing, empty, legend_above, look, panels, styled
from diw.reports.statistics import mean_and_std


def trusted_size_drawing(sheet: Sheet) -> Drawing:
    """The last test accuracy over the number of trusted samples, one line a method."""
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
                handles.append(
                    panel.errorbar(
                        size,
                        mean,
                        spread,
                        color=colour,
                        ls=dash,
                        marker="o",
                        ms=3,
                        capsize=2,
                        label=method,
                    )
                )
        if handles:
            panel.set_xscale("log")
            ticks = sorted(set(sizes.values()))
            panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            panel.minorticks_off()
            panel.set(xlabel="trusted samples", ylabel="test accuracy, %")
            legend_above(figure, handles)
        else:
            empty(panel, why_empty(sheet.results))
    return Drawing(
        sheet.name, "Test accuracy in the last epoch by the number of trusted samples.", figure
    )


def _size(variant: str) -> int:
    digits = re.sub(r"\D", "", variant)
    return int(digits) if digits else 0
