"""What an audit found: the training samples, the most suspicious first."""

import csv
import io
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from diw.auditing.samples import Origin
from diw.labels.transitions import Floats, Ints
from diw.metrics import auroc, average_precision

if TYPE_CHECKING:
    from diw.auditing.diagnosis import Diagnosis
    from diw.experiments.places import Place

FEWEST = 20
"""Suspects are at least so many: someone who asks wants to look at some."""

DOUBTFUL = 0.05
"""A trusted label is doubtful if a classifier that has not seen it finds it less probable."""

COLUMNS = ("place", "file", "row", "label", "suggested", "probability", "score", "weight")


@dataclass(frozen=True)
class Audit:
    """The samples of a training set, ranked by how wrong their labels look.

    Attributes:
        labels: (n,) given labels, as numbers of `classes`.
        suggested: (n,) the most probable other label.
        probability: (n,) its probability under the trained network.
        score: (n,) in [0, 1], high where the label looks wrong.
        weight: (n,) mean weight.
        trusted: (n,) bool; trusted samples are not ranked.
        classes: Names by class number.
        places: Where each sample is from; None if only arrays were given.
        diagnosis: Tests and estimates from the trusted set; None without one.
        flipped: (n,) bool, which labels are wrong, known for simulated noise; else None.
        opinion: (n,) the probability of the given label by a classifier fitted without the sample;
            None if only arrays were given.
        origin: What they are called and how a page shows them; None if only arrays were given.
    """

    labels: Ints
    suggested: Ints
    probability: Floats
    score: Floats
    weight: Floats
    trusted: NDArray[np.bool_]
    classes: tuple[str, ...]
    places: "list[Place] | None" = field(default=None, repr=False)
    diagnosis: "Diagnosis | None" = field(default=None, repr=False)
    flipped: NDArray[np.bool_] | None = field(default=None, repr=False)
    opinion: Floats | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)

    @cached_property
    def order(self) -> Ints:
        """Places of the samples that are not trusted, the most suspicious first."""
        ranked = np.argsort(-self.score, kind="stable")
        return ranked[~self.trusted[ranked]]

    @cached_property
    def doubtful(self) -> Ints:
        """Places of the trusted samples whose own labels look wrong, the least probable first.

        Everything else is judged by the trusted samples, so they are worth a second look. About
        one right label in fifty is hard enough to be among them.
        """
        if self.opinion is None:
            return np.empty(0, np.int64)
        ranked = np.argsort(self.opinion, kind="stable")
        return ranked[self.trusted[ranked] & (self.opinion[ranked] < DOUBTFUL)]

    @property
    def wrong(self) -> tuple[int, int, int] | None:
        """How many labels are wrong in all: estimate and 95% interval; None without trusted."""
        if self.diagnosis is None:
            return None
        noise, n = self.diagnosis.noise, len(self.order)
        return round(n * noise.share), round(n * noise.low), round(n * noise.high)

    @property
    def count(self) -> int:
        """How many samples are suspects: as many as labels may be wrong, by the upper limit.

        Without a trusted set, those with another label that is more probable than not.
        """
        likely = int((self.probability[self.order] > 0.5).sum())
        found = likely if self.wrong is None else self.wrong[2]
        return min(len(self.order), max(found, FEWEST))

    @property
    def droppable(self) -> NDArray[np.bool_]:
        """(n,) which samples to leave out of a training elsewhere: as many as labels are wrong.

        By the estimate, not its upper limit: what is right but hard should stay. Without a trusted
        set, those with another label that is more probable than not.
        """
        if self.wrong is None:
            return (self.probability > 0.5) & ~self.trusted
        chosen = np.zeros(len(self.labels), bool)
        chosen[self.order[: self.wrong[0]]] = True
        return chosen

    @cached_property
    def suspects(self) -> Any:
        """The suspects, worst first: a pandas DataFrame, or a list of mappings without pandas.

        Columns: place in the run's arrays, file and row as you know them, given and suggested
        label, the probability of the suggested one, score, mean weight.
        """
        rows = self.rows(self.count)
        if find_spec("pandas") is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=list(COLUMNS))

    def rows(self, count: int) -> list[dict[str, Any]]:
        """The first `count` samples, worst first."""
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
            doubtful: The doubtful trusted samples instead.
        """
        from diw.files import plain_text

        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(COLUMNS)
        places = self.doubtful if doubtful else self.order[: self.count]
        for row in (self._row(int(place)) for place in places):
            cells = ["" if value is None else value for value in row.values()]
            table.writerow([plain_text(c) if isinstance(c, str) else c for c in cells])
        return out.getvalue()

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
