"""Matching the classes of mini-batches: `diw.weighting.by_class` with a memory between steps."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from diw.errors import UsageError
from diw.step.batch import Batch
from diw.step.step import Step
from diw.weighting.base import Task
from diw.weighting.by_class import Side, Solve, match_by_class
from diw.weighting.classes import ClassCounts, TrustedCache, class_labels

FEWEST = 3
"""Training samples a class, on average, below which a mini-batch cannot be matched by class."""
TELLING = 32
"""A first batch of at least this size tells the batch size; a smaller one may be a remainder."""


class Classwise:
    """Class counts and a cache of trusted values, kept from step to step."""

    def __init__(self, counts: ClassCounts, method: str):
        """Begin with an empty cache.

        Args:
            counts: Of the whole sets, or of what was seen.
            method: The method's name, for messages.
        """
        self._counts = counts
        self._cache = TrustedCache()
        self._method = method
        self._checked = False

    @classmethod
    def of(cls, task: Task, method: str) -> "Classwise":
        """Count the classes of a task; refuse mini-batches that hold too few of a class."""
        train = None if task.train is None else class_labels(task.train.targets, "train")
        trusted = class_labels(task.trusted.targets, "trusted")
        classwise = cls(ClassCounts(train, trusted), method)
        if task.batch_size is not None:
            classwise._check(task.batch_size)
        return classwise

    def see(self, train: Batch) -> None:
        """Count the classes of a batch, where those of the whole training set are not known."""
        self._counts.see(class_labels(train.targets, "train"))
        if not self._checked and len(train) >= TELLING:
            self._check(len(train))

    def match(
        self, step: Step, z_train: Tensor, z_trusted: Tensor, *, solve: Solve, bound: float
    ) -> tuple[Tensor, dict[str, float]]:
        """The step's weights, (n,), and what the solver says."""
        ours = class_labels(step.train.targets, "train")
        theirs = class_labels(step.trusted.targets, "trusted")
        assert step.trusted.index is not None  # the stream gives it
        self._cache.update(step.trusted.index, theirs, z_trusted)
        return match_by_class(
            Side(ours, lambda rows: z_train[rows.to(z_train.device)]),
            Side(theirs, lambda rows: z_trusted[rows.to(z_trusted.device)]),
            self._counts.ratios(),
            solve,
            bound=bound,
            spare=self._cache.of,
        )

    def state_dict(self) -> dict[str, Any]:
        """Counts and cache."""
        return {"counts": self._counts.state_dict(), "cache": self._cache.state_dict()}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], method: str) -> "Classwise":
        """What `state_dict` gave."""
        classwise = cls(ClassCounts.from_state_dict(state["counts"]), method)
        classwise._cache.load_state_dict(state["cache"])
        return classwise

    def _check(self, batch_size: int) -> None:
        self._checked = True
        classes = self._counts.classes
        if batch_size < FEWEST * classes:
            raise UsageError(
                f"{self._method}: mini-batches of {batch_size} from {classes} classes hold "
                f"{batch_size / classes:.1f} training samples a class, too few to match each "
                f"class alone (at least {FEWEST}); use diw, which matches all classes together, "
                f"siw-f, which matches the whole sets, or a batch size of {FEWEST * classes}"
            )
