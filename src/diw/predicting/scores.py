"""The scores of a network, class by class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Scores:
    """Counts of true against predicted classes, and the accuracies that follow.

    Attributes:
        classes: Class names by class number.
        confusion: (k, k) int64; entry (i, j) counts rows of class i predicted as class j.
    """

    classes: tuple[str, ...]
    confusion: NDArray[np.int64]

    def __post_init__(self) -> None:
        k = len(self.classes)
        if self.confusion.shape != (k, k) or not self.confusion.sum():
            raise ValueError(f"confusion: expected counts ({k}, {k}) of at least one row")

    @property
    def counts(self) -> NDArray[np.int64]:
        """(k,) rows of each true class."""
        return self.confusion.sum(axis=1)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of rows predicted correctly."""
        return int(self.confusion.trace()) / self.rows

    @property
    def class_accuracies(self) -> tuple[float | None, ...]:
        """The accuracy per true class; None for a class without rows."""
        right = self.confusion.diagonal().tolist()
        counts = self.counts.tolist()
        return tuple(r / n if n else None for r, n in zip(right, counts, strict=True))

    @property
    def balanced_accuracy(self) -> float:
        """The mean accuracy of the classes that have rows."""
        return float(np.mean([a for a in self.class_accuracies if a is not None]))

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values by name."""
        return {
            "rows": self.rows,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "per_class": [
                {"class": name, "rows": int(n), "accuracy": accuracy}
                for name, n, accuracy in zip(
                    self.classes, self.counts, self.class_accuracies, strict=True
                )
            ],
            "classes": list(self.classes),
            "confusion_matrix": self.confusion.tolist(),
        }
