"""Which labels are wrong: one model of given and right labels, fitted on verified rows.

Errors of people and of rules are a function of the sample, so no rate per class describes them, and
a model that learned from the given labels has learned the errors as well. Some rows of which both
the given and the right label are known tell how far to believe each witness:

    score(x, y) = a log p(y|x) + b [y = given] + c log T(y, given) + d log v(y|x) + e_y
    P(right class = y | x, given) = softmax of the score over y

p are cross-fitted probabilities of any learner of the given labels; T is how often verified rows of
class y were given this label, relative to one common rate of errors; v is a small model of the
verified rows alone; e are small class biases. The coefficients maximise the likelihood of the
verified labels, penalised towards what is usual. Whatever enters the score of a verified row is
from fits without its label.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from diw.brief import in_a_line
from diw.errors import UsageError
from diw.labels.share import Share
from diw.labels.transitions import Bools, Floats, Ints

FLOOR = 1e-4
"""Added to probabilities before the logarithm: a witness that is quite sure can be wrong."""
PART = 65_536
"""Rows at a time."""


@dataclass(frozen=True)
class Coefficients:
    """How far each witness is believed; the defaults are what is usual."""

    model: float = 0.8
    """a, of the learner's cross-fitted probabilities."""
    given: float = 1.5
    """b, of the given label."""
    transitions: float = 0.5
    """c, of which labels were given to which classes."""
    verified: float = 0.2
    """d, of the small model of the verified rows."""

    def __str__(self) -> str:
        return (
            f"believe the model {self.model:.1f}, the given label {self.given:.1f}, "
            f"the transitions {self.transitions:.1f}, the verified rows {self.verified:.1f}"
        )


@dataclass(frozen=True)
class LabelModel:
    """A fitted model of right labels.

    Attributes:
        coefficients: How far each witness is believed.
        biases: (k,) e.
        log_ratios: (k, k) log T, of right class and given label.
        transitions: (k, k) probability that a row of class i is labelled j.
        share: The share of wrong labels; None where no random rows were verified.
        by_class: The share of wrong labels among those given as each class, where it is known.
        pairs: By (right, given): the share of the rows given as the one class that are of the
            other, for pairs that occur among the verified rows.
        doubtful: (m,) the probability that the label of each verified row is itself wrong.
        unseen: (u,) classes of which nobody verified a row.
        lead: What T and v add to the score of a right label on average, beyond the best other
            class. Labels of unseen classes get it unheard, or they would be called wrong more
            often than others.
        notes: What a user should know, in a sentence each.
    """

    __repr__ = in_a_line

    coefficients: Coefficients
    biases: Floats
    log_ratios: Floats
    transitions: Floats
    share: Share | None = None
    by_class: tuple[Share | None, ...] = ()
    pairs: Mapping[tuple[int, int], Share] = field(default_factory=dict[tuple[int, int], Share])
    doubtful: Floats = field(default_factory=lambda: np.zeros(0))
    unseen: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    lead: float = 0.0
    notes: tuple[str, ...] = ()

    @classmethod
    def plain(cls, log_ratios: Floats) -> "LabelModel":
        """With these (k, k) log T, usual coefficients, and nothing else."""
        k = len(log_ratios)
        return cls(Coefficients(), np.zeros(k), log_ratios, np.eye(k))

    def posterior(
        self, log_p: Floats, given: Ints, log_v: NDArray[np.floating] | None = None
    ) -> Floats:
        """(n, k) P(right class | x, given).

        Args:
            log_p: (n, k) logarithms of predictions from fits without the row.
            given: (n,) the given labels.
            log_v: (n, k) of the small model of the verified rows, or (folds, n, k) of its fits,
                which are averaged; None where there is none.
        """
        n, k = log_p.shape
        found = np.empty((n, k))
        for part in parts(n):
            v = None if log_v is None else voices_of(log_v[..., part, :], self.unseen)
            score = self._score(log_p[part], given[part], v)
            found[part] = softmax(score, axis=1)
        return found

    def _score(self, log_p: Floats, given: Ints, voices: Floats | None) -> Floats:
        """(n, k), from centred log v."""
        weight = self.coefficients
        score = weight.model * floored(log_p) + weight.transitions * self.log_ratios.T[given]
        score += self.biases
        unheard = np.isin(given, self.unseen)
        score[np.arange(len(given)), given] += weight.given + self.lead * unheard
        if voices is not None:
            score += weight.verified * voices
        return score

    def suspects(self, posterior: Floats, given: Ints) -> Bools:
        """(n,) which labels are probably wrong.

        Another class is more probable than the given label, and that is right with a probability
        below one half. This is the only definition of a suspect.

        Args:
            posterior: (n, k) P(right class | x, given).
            given: (n,) the given labels.
        """
        right = posterior[np.arange(len(given)), given]
        return (posterior.max(axis=1) > right) & (right < 0.5)

    def to_json(self) -> str:
        """All of it as the text of a JSON file."""
        plain: dict[str, Any] = {
            "coefficients": asdict(self.coefficients),
            "share": None if self.share is None else self.share.as_list(),
            "by_class": [None if one is None else one.as_list() for one in self.by_class],
            "pairs": [[*pair, *one.as_list()] for pair, one in self.pairs.items()],
            "lead": self.lead,
            "notes": list(self.notes),
        }
        for name in ("biases", "log_ratios", "transitions", "doubtful", "unseen"):
            plain[name] = getattr(self, name).tolist()
        return json.dumps({"label_model": 1, **plain}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "LabelModel":
        """What `to_json` wrote."""
        try:
            plain: dict[str, Any] = json.loads(text)
            if plain.pop("label_model") != 1:
                raise UsageError("label model: written by a newer version of diw")
            share, by_class = plain.pop("share"), plain.pop("by_class")
            arrays = {
                name: np.array(plain.pop(name), np.float64)
                for name in ("biases", "log_ratios", "transitions", "doubtful")
            }
            return cls(
                Coefficients(**plain.pop("coefficients")),
                share=None if share is None else Share(*share),
                by_class=tuple(None if one is None else Share(*one) for one in by_class),
                pairs={(i, j): Share(*one) for i, j, *one in plain.pop("pairs")},
                unseen=np.array(plain.pop("unseen"), np.int64),
                lead=float(plain.pop("lead")),
                notes=tuple(plain.pop("notes")),
                **arrays,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"label model: not a file that diw wrote ({error})") from None


def floored(log_p: Floats) -> Floats:
    """(n, k) log(p + FLOOR)."""
    return np.log(np.exp(log_p) + FLOOR)


def voices_of(log_v: NDArray[np.floating], unseen: Ints) -> Floats:
    """(n, k) log v, floored and centred for each row; the mean where there are several fits.

    Of a class without verified rows v knows nothing: it is taken to be as probable as the best
    other one, so that its right labels are not called wrong. A class that only some fits do not see
    has the mean of the others there.
    """
    if log_v.ndim == 3:
        return np.mean([voices_of(one, unseen) for one in log_v], axis=0)
    silent: Bools = np.asarray(np.isnan(log_v).all(axis=0))
    silent[unseen] = True
    if silent.all():
        return np.zeros(log_v.shape)
    found = floored(np.asarray(log_v, np.float64))
    found -= found[:, ~silent].mean(axis=1, keepdims=True)
    found[:, silent] = 0.0
    found[:, unseen] = found.max(axis=1, keepdims=True)
    return found


def parts(n: int) -> Iterator[slice]:
    """N rows, some at a time."""
    return (slice(start, start + PART) for start in range(0, n, PART))
