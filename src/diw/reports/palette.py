"""One look for every figure: colours that colour-blind readers can distinguish, and dashes.

The colours are Okabe and Ito's (2008) without their yellow, which is too faint for a line on white.
"""

from collections.abc import Iterable

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
DASHES = ("solid", "dash", "dot", "dashdot")

GROUPS = ("#44AA99", "#882255", "#DDCC77", "#332288")
"""For groups of samples (Tol's muted scheme): none is also the colour of a method."""

INK = "#1f2933"
MUTED = "#616e7c"
RULE = "#e4e7eb"


Look = tuple[str, str]
"""Colour and dash of one method, everywhere on a page."""


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
