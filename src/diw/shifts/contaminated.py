"""Contaminated class-conditionals: each given class is a mixture of true classes.

Fang et al. 2020, Section 3: p_tr(x | ỹ) = Σ_y p(y | ỹ) p_te(x | y). The reverse of a transition
matrix: the mixture of what is *found* under a label is fixed, not what becomes of a class.
"""

from dataclasses import dataclass, field
from typing import final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.shifts.base import Floats, Passage, number_text
from diw.shifts.labels import check_size, check_stochastic, move_labels, symmetric_matrix
from diw.shifts.priors import class_sizes, resample


def reverse(mixture: npt.ArrayLike, prior: npt.ArrayLike) -> tuple[Floats, Floats]:
    """True-class distribution and transition matrix behind a contamination.

    With p(ỹ) = `prior` and C = `mixture`: q(y) = Σ_ỹ p(ỹ) C[ỹ, y] and
    T[y, ỹ] = p(ỹ) C[ỹ, y] / q(y) by Bayes' rule.

    Args:
        mixture: (k, k), C[ỹ, y] = p(y | ỹ), rows sum to one.
        prior: (k,) p(ỹ).

    Returns:
        q (k,) and T (k, k); a class with q(y) = 0 has the identity as its row.
    """
    joint = np.asarray(prior, np.float64)[:, None] * check_stochastic(mixture, "mixture")
    marginal = joint.sum(axis=0)
    transition = np.eye(len(marginal))
    present = marginal > 0
    transition[present] = joint.T[present] / marginal[present, None]
    return marginal, transition


@final
@dataclass(frozen=True, eq=False)
class Contaminated:
    """Given classes that are mixtures of true ones, with p(ỹ) as the classes were before.

    Attributes:
        rate: The share of other classes in each given class, in equal parts; used when there is
            no `mixture`.
        mixture: C (k, k), rows the given classes, columns the true ones.
    """

    rate: float = 0.0
    mixture: Floats | None = None
    source: str = ""
    moves_labels: bool = field(default=True, init=False)

    @property
    def text(self) -> str:
        """As `parse_shift` reads it."""
        return f"contaminated:{self.source or number_text(self.rate)}"

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop rows until the true classes are as q, then flip labels by T."""
        k = passage.num_classes
        mixture = symmetric_matrix(self.rate, k) if self.mixture is None else self.mixture
        check_size(mixture, k, self.source)
        counts = np.bincount(passage.targets, minlength=k)
        present = counts > 0
        if ((mixture[present] > 0) & ~present).any():
            raise UsageError("shift: contaminated needs rows of every class that is mixed in")
        if not present.any():
            return
        marginal, transition = reverse(mixture, counts / counts.sum())
        needed = np.divide(marginal, counts, out=np.zeros(k), where=present)
        # The class needed most keeps all its rows; sizes are taken from its count, not from the
        # whole, so that a contamination that needs no dropping drops nothing.
        largest = int(needed.argmax())
        shares = np.where(marginal > 0, marginal / marginal[largest], 0.0)
        sizes = class_sizes(counts, shares, int(counts[largest]))
        resample(passage, sizes, rng)
        move_labels(passage, transition, rng)
