"""`Shift`: a sequence of stages that is applied to labels, and says what it did."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from diw.seeding import numpy_generator
from diw.shifts.base import Bools, Floats, Ints, Passage, Shifted, Stage

if TYPE_CHECKING:
    from diw.data import Inputs


@final
@dataclass(frozen=True)
class Shift:
    """A distribution shift; no stages means none.

    Attributes:
        stages: Applied in this order, each to what the one before left.
    """

    stages: tuple[Stage, ...] = ()

    @property
    def text(self) -> str:
        """The shift as `parse_shift` reads it."""
        return "+".join(stage.text for stage in self.stages) or "none"

    @property
    def moves_labels(self) -> bool:
        """Whether any stage changes labels."""
        return any(stage.moves_labels for stage in self.stages)

    def apply(
        self,
        targets: npt.ArrayLike,
        num_classes: int,
        seed: int,
        *,
        protected: npt.ArrayLike | None = None,
        inputs: "Inputs | None" = None,
    ) -> Shifted:
        """Shift a data set; the same arguments always give the same answer.

        Args:
            targets: (n,) clean labels in [0, num_classes).
            num_classes: k.
            seed: Decides every draw; what is protected does not change the draws of other labels.
            protected: Row numbers or an (n,) mask of rows that keep their label and are kept.
            inputs: Needed by covariate shift only.
        """
        labels = np.asarray(targets, np.int64)
        if labels.ndim != 1 or (
            len(labels) and not 0 <= labels.min() <= labels.max() < num_classes
        ):
            raise ValueError(f"targets: expected (n,) labels in 0..{num_classes - 1}")
        passage = Passage(
            original=labels,
            num_classes=num_classes,
            protected=_mask(protected, len(labels)),
            inputs=inputs,
            keep=np.arange(len(labels)),
            targets=labels.copy(),
            through=np.eye(num_classes),
            selected=np.ones(len(labels)),
        )
        for place, stage in enumerate(self.stages):
            # The name alone, so that a matrix read from another path gives the same draws.
            name = stage.text.partition(":")[0]
            stage.act(passage, numpy_generator(seed, "shift", place, name))
        return self._summary(passage)

    def _summary(self, passage: Passage) -> Shifted:
        true = passage.original[passage.keep]
        intact = passage.targets == true
        weights = _true_weights(passage, true, intact)
        facts: dict[str, Any] = {
            "shift": self.text,
            "rows": len(passage.keep),
            "dropped": len(passage.original) - len(passage.keep),
            "class_counts": np.bincount(passage.targets, minlength=passage.num_classes).tolist(),
            **passage.facts,
        }
        if self.moves_labels:
            facts["flipped"] = int((~intact).sum())
            facts["flip_rate"] = float((~intact).mean()) if len(intact) else 0.0
        return Shifted(
            keep=passage.keep,
            targets=passage.targets,
            flipped=~intact if self.moves_labels else None,
            true_weights=weights,
            facts=facts,
        )


def _true_weights(passage: Passage, true: Ints, intact: Bools) -> Floats | None:
    """(m,) p_te / p_tr of the rows left, with mean one; None when all labels are wrong."""
    k = passage.num_classes
    rows = np.bincount(passage.original, minlength=k)
    sure = np.bincount(passage.original[passage.protected], minlength=k) / np.maximum(rows, 1)
    arrives = sure[true] + (1 - sure[true]) * passage.selected * np.diag(passage.through)[true]
    weights = np.divide(1.0, arrives, out=np.zeros(len(true)), where=intact)
    total = float(weights.sum())
    return weights * (len(weights) / total) if total > 0 else None


def _mask(protected: npt.ArrayLike | None, n: int) -> Bools:
    """Row numbers or a mask, as a mask."""
    mask = np.zeros(n, np.bool_)
    if protected is None:
        return mask
    given = np.asarray(protected)
    if given.dtype == np.bool_ and given.shape == (n,):
        return given.astype(np.bool_)
    rows: Ints = given.astype(np.int64)
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        raise ValueError(f"protected: row numbers must lie in 0..{n - 1}")
    mask[rows] = True
    return mask
