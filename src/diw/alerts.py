"""Are the weights of a training healthy? From its metrics, so that it is said while it trains.

And `warn`, which says something where the user's code led to it.
"""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from diw.errors import DIWWarning

LEAST_ESS = 0.1
MOST_AT_BOUND = 0.1
MOST_AT_ZERO = 0.9
EPOCHS = 5
"""The trusted loss must rise over so many epochs, while the training loss falls."""
RISE = 0.1, 0.05
"""And by so much: of itself, and at all; a loss close to zero doubles without harm."""

Metrics = Mapping[str, Any]
"""What is known of an epoch: `epoch`, and the names that the checks below look for."""


def complaints(
    rows: Sequence[Metrics],
    method: str,
    bound: str = "bound",
    unit: str = "epoch",
    doubtful: str = "objective.method.doubtful_trusted has their places",
) -> dict[str, str]:
    """What is wrong with the weights so far, in a line by kind; each names the first epoch.

    Args:
        rows: The metrics of the finished epochs.
        method: Its name; `remember` is not recommended to itself.
        bound: How the reader sets the bound: the name of a field, or a flag.
        unit: What a row stands for, in a loop without epochs.
        doubtful: Where the reader finds trusted samples whose labels look wrong.
    """
    found: dict[str, str] = {}
    weighted = [row for row in rows if row.get("weighted")]
    another = "" if method == "remember" else ", or the method remember"
    checks: dict[str, tuple[Callable[[Metrics], bool], str]] = {
        "ess": (
            lambda row: float(row.get("ess") or 1.0) < LEAST_ESS,
            "few samples carry the training (effective sample size under 10%); try a smaller "
            f"{bound}, or more trusted samples",
        ),
        "bound": (
            lambda row: float(row.get("share_bound") or 0.0) > MOST_AT_BOUND,
            f"more than a tenth of the weights are at the bound; try a larger {bound}, or check "
            "that trusted and training data are of one kind",
        ),
        "zero": (
            lambda row: float(row.get("share_zero") or 0.0) > MOST_AT_ZERO,
            "nine tenths of the weights are zero; try more trusted samples, a longer "
            f"warm-up{another}",
        ),
        "doubtful": (
            lambda row: float(row.get("doubtful_trusted") or 0.0) >= 1,
            f"some trusted labels look wrong and are not trusted any more; check them: {doubtful}",
        ),
    }
    for kind, (is_bad, words) in checks.items():
        first = next((row for row in weighted if is_bad(row)), None)
        if first is not None:
            found[kind] = f"from {unit} {first['epoch']}: {words}"
    since = _rises(rows)
    if since is not None:
        found["trusted"] = (
            f"from {unit} {since}: the trusted loss rises while the training loss falls: the "
            "network learns labels by heart; train for fewer epochs, or keep the network of an "
            "earlier one"
        )
    return found


def _rises(rows: Sequence[Metrics]) -> int | None:
    """The epoch from which the trusted loss has risen for five epochs while the other fell."""
    known = [row for row in rows if row.get("selection_loss") is not None]
    for end in range(EPOCHS, len(known)):
        window = known[end - EPOCHS : end + 1]
        held = [float(row["selection_loss"]) for row in window]
        train = [float(row["train_loss"]) for row in window]
        risen = held[-1] - held[0] > max(RISE[0] * held[0], RISE[1])
        if risen and train[-1] < train[0] and all(a < b for a, b in pairwise(held)):
            return int(window[0]["epoch"])
    return None


def warn(message: str, category: type[Warning] = DIWWarning) -> None:
    """Warn at the line outside of this package that led here."""
    frame, depth = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "diw":
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)
