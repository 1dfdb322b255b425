"""What an audit found: the rows, the most suspicious first, and how many labels are wrong."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from diw.auditing.samples import Located, Origin
from diw.brief import in_a_line
from diw.files import plain_text
from diw.labels.model import LabelModel
from diw.labels.share import Share
from diw.labels.transitions import Bools, Floats, Ints
from diw.metrics import auroc, average_precision

if TYPE_CHECKING:
    from diw.auditing.diagnosis import Diagnosis

COLUMNS = ("place", "file", "row", "label", "suggested", "probability", "score", "weight")


@dataclass(frozen=True)
class Audit:
    """Rows ranked by how wrong their labels look.

    Attributes:
        labels: (n,) given labels, as numbers of `classes`.
        suggested: (n,) the most probable other label.
        probability: (n,) its probability.
        score: (n,) in [0, 1], high where the label looks wrong. With verified rows it is the
            probability that the label is wrong.
        suspected: (n,) bool, the suspects: another class is more probable than the given one, and
            the given one is right with a probability below one half.
        weight: (n,) mean weight in a training; without one, the probability that the label is
            right.
        trusted: (n,) bool; trusted and verified rows are not ranked.
        classes: Names by class number.
        wrong: The share of wrong labels, with `value`, `low` and `high`; None where nothing tells.
        known_from: What tells it, in words.
        doubtful: Trusted or verified rows whose own labels look wrong, the worst first. All else is
            judged by them.
        model: The model of right labels; None where no row was verified.
        notes: What else a user should know, a sentence each.
        places: Where each row is from; None if only arrays were given.
        diagnosis: Tests and estimates from the trusted set; None without one.
        flipped: (n,) bool, which labels are wrong, known for simulated noise; else None.
        origin: What the data are called and how a page shows them; None if only arrays were given.
    """

    __repr__ = in_a_line

    labels: Ints
    suggested: Ints
    probability: Floats
    score: Floats
    suspected: Bools
    weight: Floats
    trusted: Bools
    classes: tuple[str, ...]
    wrong: Share | None = None
    known_from: str = "the trusted samples"
    doubtful: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    model: LabelModel | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    places: Sequence[Located] | None = field(default=None, repr=False)
    diagnosis: "Diagnosis | None" = field(default=None, repr=False)
    flipped: Bools | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)

    @cached_property
    def order(self) -> Ints:
        """Places of the rows that are not trusted, the most suspicious first."""
        ranked = np.argsort(-self.score, kind="stable")
        return ranked[~self.trusted[ranked]]

    @property
    def count(self) -> int:
        """How many rows are suspects."""
        return int(self.suspected[self.order].sum())

    @property
    def total(self) -> int:
        """How many rows the share of wrong labels is of: with a label model verified ones, too."""
        return len(self.order) if self.model is None else len(self.labels)

    @property
    def wrong_rows(self) -> tuple[int, int, int] | None:
        """How many labels are wrong in all: estimate and 95% interval."""
        if self.wrong is None:
            return None
        value, low, high = (round(self.total * share) for share in self.wrong.as_list())
        return value, low, high

    @cached_property
    def suspects(self) -> Any:
        """The suspects, worst first: a pandas DataFrame, or a list of mappings without pandas.

        Columns: place in the arrays, file and row as you know them, given and suggested label, the
        probability of the suggested one, score, weight.
        """
        rows = [self._row(int(place)) for place in self._suspects]
        if find_spec("pandas") is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=list(COLUMNS))

    @property
    def _suspects(self) -> Ints:
        return self.order[self.suspected[self.order]]

    def rows(self, count: int) -> list[dict[str, Any]]:
        """The first `count` rows, worst first."""
        return [self._row(int(place)) for place in self.order[:count]]

    def _row(self, place: int) -> dict[str, Any]:
        where = None if self.places is None else self.places[place]
        values = (
            place,
            None if where is None else where.file,
            place if where is None else where.row,
            self.classes[self.labels[place]],
            self.classes[self.suggested[place]],
            round(float(self.probability[place]), 4),
            round(float(self.score[place]), 4),
            round(float(self.weight[place]), 4),
        )
        return dict(zip(COLUMNS, values, strict=True))

    def to_csv(self, doubtful: bool = False) -> str:
        """The suspects as the content of a CSV file.

        Args:
            doubtful: The doubtful trusted rows instead.
        """
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(COLUMNS)
        for place in self.doubtful if doubtful else self._suspects:
            cells = ["" if cell is None else cell for cell in self._row(int(place)).values()]
            table.writerow([plain_text(c) if isinstance(c, str) else c for c in cells])
        return out.getvalue()

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values: numbers, and what the label model says of each class."""
        found: dict[str, Any] = {
            "rows": len(self.order),
            "suspects": self.count,
            "doubtful_trusted": len(self.doubtful),
            "wrong": None if self.wrong_rows is None else list(self.wrong_rows),
            "share": None if self.wrong is None else self.wrong.as_list(),
            **(self.quality() or {}),
        }
        if self.model is not None:
            shares = zip(self.classes, self.model.by_class, strict=False)
            pairs = self.model.pairs.items()
            found["by_class"] = {name: one and one.as_list() for name, one in shares}
            found["pairs"] = [
                {"right": self.classes[i], "given": self.classes[j], "share": one.as_list()}
                for (i, j), one in pairs
            ]
        return {**found, "notes": list(self.notes)}

    def quality(self) -> dict[str, float] | None:
        """AUROC and average precision of the score, a wrong label being the positive.

        None where it is not known which labels are wrong.
        """
        if self.flipped is None:
            return None
        truth, score = self.flipped[self.order], self.score[self.order]
        if truth.all() or not truth.any():
            return None
        return {"auroc": auroc(score, truth), "average_precision": average_precision(score, truth)}

    def precision_recall(self, points: int = 100) -> list[tuple[float, float]] | None:
        """(recall, precision) when the first 1, …, n are called wrong; None without truth."""
        if self.quality() is None or self.flipped is None:
            return None
        hits = np.cumsum(self.flipped[self.order])
        cuts = np.unique(np.linspace(1, len(hits), points).round().astype(int))
        return [(float(hits[c - 1] / hits[-1]), float(hits[c - 1] / c)) for c in cuts]
