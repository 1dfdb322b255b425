"""Class-prior shift: fewer rows of some classes.

Fang et al. 2020, Section 5 (class-prior shift): a fraction μ of the classes are minority classes,
and a majority class has ρ times as many rows as a minority one.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.shifts.shift import Floats, Ints, Passage, Stage


def class_sizes(counts: npt.ArrayLike, shares: npt.ArrayLike, largest: int | None = None) -> Ints:
    """(k,) rows to keep of each class, proportional to `shares` and rounded.

    Args:
        counts: (k,) rows there are.
        shares: (k,) relative sizes; 0 drops a class.
        largest: Rows of a class of share 1; None for the most that all classes allow.
    """
    have, share = np.asarray(counts, np.int64), np.asarray(shares, np.float64)
    wanted = share > 0
    if largest is None:
        # A tolerance, so that 600 / 0.1 is 6,000 and not 5,999.
        largest = int(np.floor((have[wanted] / share[wanted]).min() + 1e-6))
    sizes = np.rint(largest * share).astype(np.int64)
    short = np.flatnonzero(sizes > have)
    if len(short):
        label = int(short[0])
        raise UsageError(
            f"shift: class {label} would need {sizes[label]} rows and has {have[label]}; "
            "lower the size"
        )
    empty = np.flatnonzero((sizes == 0) & wanted)
    if len(empty):
        raise UsageError(
            f"shift: class {int(empty[0])} would be left without rows: {largest} of a largest "
            "class are too few for this ratio"
        )
    return sizes


def last_classes(share: float, num_classes: int, stage: str) -> int:
    """How many classes, the last ones, are a share of them; some must be, and some not.

    Args:
        share: The share, in [0, 1); zero is no class.
        num_classes: k.
        stage: The stage's name, for the message.
    """
    few = round(share * num_classes)
    if (few == 0 and share > 0) or few == num_classes:
        raise UsageError(
            f"shift: {stage} with {share:g} of {num_classes} classes takes {few} of them, "
            f"expected 1..{num_classes - 1}"
        )
    return few


def resample(passage: Passage, sizes: Ints, rng: np.random.Generator) -> None:
    """Keep `sizes[c]` of the rows labelled c: the protected ones, and others at random."""
    order = rng.permutation(len(passage.keep))
    order = order[np.argsort(~passage.kept_protected[order], kind="stable")]
    stay = np.zeros(len(passage.keep), np.bool_)
    chance = np.ones(passage.num_classes)
    for label, size in enumerate(sizes.tolist()):
        rows = order[passage.targets[order] == label]
        needed = int(passage.kept_protected[rows].sum())
        if size < needed:
            raise UsageError(
                f"shift: class {label} is left with {size} rows, but the trusted set holds "
                f"{needed} of it; take fewer trusted rows, a smaller ratio or more data"
            )
        stay[rows[:size]] = True
        if len(rows) > needed:
            chance[label] = (size - needed) / (len(rows) - needed)
    passage.drop_to(stay)
    passage.pass_classes(chance)


class ClassSizes(Stage):
    """A stage that drops rows until the classes have relative sizes `shares`.

    Attributes:
        ratio: ρ ≥ 1, the size of the largest class over that of the smallest.
        largest: Rows of a class of share 1; None for the most that the data allow.
    """

    ratio: float
    largest: int | None

    def __post_init__(self) -> None:
        self.check(self.ratio >= 1, "ratio", "is at least 1", self.ratio)
        if self.largest is not None:
            whole = self.largest >= 1 and not self.largest % 1
            self.check(whole, "size", "is a number of rows", self.largest)

    @abstractmethod
    def shares(self, num_classes: int) -> Floats:
        """(k,) relative class sizes, the largest 1."""

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop rows."""
        shares = self.shares(passage.num_classes)
        if self.largest is None and (shares == 1).all():
            return  # no shift: classes of unequal size stay as they are
        counts = np.bincount(passage.targets, minlength=passage.num_classes)
        resample(passage, class_sizes(counts, shares, self.largest), rng)


@final
@dataclass(frozen=True)
class Prior(ClassSizes):
    """The paper's class-prior shift: μ = `minority` of the classes, the last ones, have fewer rows.

    A minority class has 1 / ρ times the rows of a majority class.
    """

    name: ClassVar[str] = "prior"
    usage: ClassVar[str] = "MINORITY,RATIO[,SIZE]"
    minority: float
    ratio: float
    largest: int | None = None

    def __post_init__(self) -> None:
        self.check(0 <= self.minority < 1, "minority share", "lies in [0, 1)", self.minority)
        super().__post_init__()

    def shares(self, num_classes: int) -> Floats:
        """(k,) relative class sizes: 1 for majority classes, 1 / ρ for the last μk classes."""
        few = last_classes(self.minority, num_classes, self.name)
        shares = np.ones(num_classes)
        shares[num_classes - few :] = 1 / self.ratio
        return shares


@final
@dataclass(frozen=True)
class LongTail(ClassSizes):
    """Class sizes that fall exponentially, the first class ρ times the last."""

    name: ClassVar[str] = "longtail"
    usage: ClassVar[str] = "RATIO[,SIZE]"
    ratio: float
    largest: int | None = None

    def shares(self, num_classes: int) -> Floats:
        """(k,) relative class sizes ρ^(-c / (k - 1)): exponential from 1 down to 1 / ρ."""
        return self.ratio ** -(np.arange(num_classes) / max(1, num_classes - 1))
