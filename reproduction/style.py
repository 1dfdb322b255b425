"""One style for the paper's figures: text width, fonts, colours safe for colour blindness."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diw.files import replacing
from diw.reports import COLOURS, INK, MUTED, RULE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.5
"""Inches: the text width of the paper, so that letters come out at the size chosen here."""

DPI = 220

LETTERS = 105
"""How many letters of a legend fit in the text width."""
HANDLE = 6
"""Letters that a legend's line and the space around it take."""

_BLUE, _VERMILION, _GREEN, _PINK, _SKY, _ORANGE, _GREY = COLOURS

METHODS = {
    "clean": (_ORANGE, ":"),
    "uniform": (_GREY, "-"),
    "random": (_SKY, "--"),
    "truth": (_PINK, "-."),
    "iw": (_GREEN, "-."),
    "reweight": (_VERMILION, "--"),
    "diw": (_BLUE, "-"),
}
"""The same colour and dash for a method in every figure; others take what is left in turn."""

CLASSES = (
    *("#332288", "#88CCEE", "#44AA99", "#117733", "#999933"),
    *("#DDCC77", "#CC6677", "#882255", "#AA4499", "#777777"),
)
"""For ten classes: Tol's muted scheme and a grey."""

SUBSETS = {
    "intact_accuracy": ("intact, training", _GREEN, "-"),
    "mislabelled_accuracy_given": ("mislabelled, by given label", _VERMILION, "--"),
    "mislabelled_accuracy_true": ("mislabelled, by true label", _BLUE, "-."),
    "test_accuracy": ("test", _GREY, ":"),
}
"""Parts of the data by the metric that is their accuracy: label, colour and dash."""

GROUPS = {"intact": "#44AA99", "mislabelled": "#882255"}

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 7,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "diw",
}


@dataclass(frozen=True)
class Drawing:
    """A figure, the name of its files and what it shows in words."""

    name: str
    caption: str
    figure: "Figure"

    def save(self, folder: Path) -> Path:
        """Write PNG and PDF, atomically; the same records give the same bytes. Returns the PNG."""
        for kind, varying in (("png", "Software"), ("pdf", "CreationDate")):
            with styled(), replacing(folder / f"{self.name}.{kind}") as temporary:
                self.figure.savefig(temporary, format=kind, dpi=DPI, metadata={varying: None})
        return folder / f"{self.name}.png"


@contextmanager
def styled() -> Generator[None]:
    """Matplotlib with this style inside the block, whatever the user's is."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def panels(rows: int, columns: int, height: float = 1.55, **options: Any) -> Any:
    """A figure and its axes as an array (rows, columns), for use inside `styled`.

    `height`: that of a row, in inches; `options` go to `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    # Few panels make a narrow figure: no panel is much wider than a third of the page.
    width = WIDTH * min(1.0, columns / 3 + 0.25)
    figure = Figure(figsize=(width, rows * height + 0.65), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def look(method: str, methods: Sequence[str]) -> tuple[str, str]:
    """The colour and dash of a method among others."""
    if method in METHODS:
        return METHODS[method]
    others = [name for name in methods if name not in METHODS]
    taken = {METHODS[name] for name in methods if name in METHODS}
    free = [
        (colour, dash)
        for dash in ("-", "--", "-.", ":")
        for colour in COLOURS
        if (colour, dash) not in taken
    ]
    return free[others.index(method) % len(free)]


def empty(axes: "Axes", reason: str) -> None:
    """Say in an empty panel why it is empty."""
    # Ticks are hidden, not removed: panels of a row share their axes.
    axes.tick_params(bottom=False, labelbottom=False)
    if len(axes.get_shared_y_axes().get_siblings(axes)) == 1:
        axes.tick_params(left=False, labelleft=False)
    axes.grid(visible=False)
    axes.text(
        0.5, 0.5, reason, ha="center", va="center", transform=axes.transAxes, color=MUTED, wrap=True
    )


def legend_above(figure: "Figure", handles: Sequence[Any]) -> None:
    """One legend for all panels, above them, in as many rows as its words need."""
    room = LETTERS * figure.get_figwidth() / WIDTH
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    columns = max(1, int(room // (longest + HANDLE)))
    rows = -(-len(handles) // columns)
    figure.legend(
        handles=list(handles),
        loc="outside upper center",
        ncols=max(1, -(-len(handles) // max(1, rows))),  # rows of equal length
        handlelength=2.2,
        columnspacing=1.2,
    )
