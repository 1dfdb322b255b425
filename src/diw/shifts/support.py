"""Support shift: some classes, or a region of the input space, are missing in training.

Fang et al. 2023: where the test data have support that the training data lack, no weight of a
training sample makes up for it. Only trusted samples show what is missing.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from diw.errors import UsageError
from diw.shifts.covariate import AlongDirection
from diw.shifts.priors import last_classes
from diw.shifts.shift import Passage, Stage


@final
@dataclass(frozen=True)
class Support(Stage):
    """The last classes are missing, but for the trusted rows of them that are trained on."""

    name: ClassVar[str] = "support"
    usage: ClassVar[str] = "SHARE"
    share: float

    def __post_init__(self) -> None:
        self.check(0 <= self.share < 1, "share", "lies in [0, 1)", self.share)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop every row of the missing classes."""
        missing = last_classes(self.share, passage.num_classes, self.name)
        if not missing:
            return
        first = passage.num_classes - missing
        passage.facts["missing_classes"] = list(range(first, passage.num_classes))
        passage.drop_to((passage.targets < first) | passage.kept_protected)
        present = np.arange(passage.num_classes) < first
        passage.through = passage.through * present


@final
@dataclass(frozen=True)
class Region(AlongDirection):
    """The far end of one direction is missing, but for the trusted rows that are trained on.

    Attributes:
        share: The share of all rows that lies there.
    """

    name: ClassVar[str] = "region"
    usage: ClassVar[str] = "SHARE[,FEATURE]"
    share: float
    feature: int | None = None

    def __post_init__(self) -> None:
        self.check(0 <= self.share < 1, "share", "lies in [0, 1)", self.share)
        super().__post_init__()

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop every row beyond the quantile of all rows, as they were before the shift."""
        if self.share == 0 or not len(passage.keep):
            return
        z = self.positions(passage, rng)
        there = (z <= np.quantile(z, 1 - self.share))[passage.keep]
        if there.all():
            raise UsageError(
                f"shift: {self.text} takes no row, so many share the largest value; "
                "raise the share or choose another feature"
            )
        passage.selected = passage.selected * there
        passage.facts["missing_share"] = float(1 - there.mean())
        passage.drop_to(there | passage.kept_protected)
