"""Are the weights of a run healthy? From its metrics, so that it can be said while it trains."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from diw.records import Row

LEAST_ESS = 0.1
MOST_AT_BOUND = 0.1
MOST_AT_ZERO = 0.9
EPOCHS = 5
"""The trusted loss must rise over so many epochs, while the training loss falls."""


def complaints(rows: Sequence[Row], method: str) -> dict[str, str]:
    """What is wrong with the weights so far, in a line by kind; each names the first epoch.

    Args:
        rows: The metrics of the finished epochs.
        method: Its name, for the fields to change.
    """
    found: dict[str, str] = {}
    weighted = [row for row in rows if row.get("weighted")]
    checks: dict[str, tuple[Callable[[Row], bool], str]] = {
        "ess": (
            lambda row: float(row.get("ess") or 1.0) < LEAST_ESS,
            "few samples carry the training (effective sample size under 10%); try a smaller "
            f"--set {method}.bound, or more trusted samples",
        ),
        "bound": (
            lambda row: float(row.get("share_bound") or 0.0) > MOST_AT_BOUND,
            "more than a tenth of the weights are at the bound; try a larger "
            f"--set {method}.bound, or check that trusted and training data are of one kind",
        ),
        "zero": (
            lambda row: float(row.get("share_zero") or 0.0) > MOST_AT_ZERO,
            "nine tenths of the weights are zero; try more trusted samples, a longer warm-up, or "
            "--method remember",
        ),
    }
    for kind, (is_bad, words) in checks.items():
        first = next((row for row in weighted if is_bad(row)), None)
        if first is not None:
            found[kind] = f"from epoch {first['epoch']}: {words}"
    epoch = _rises(rows)
    if epoch is not None:
        found["trusted"] = (
            f"from epoch {epoch}: the held-out trusted loss rises while the training loss falls: "
            "the network learns labels by heart; train for fewer --epochs, or keep an earlier "
            "epoch with --selection"
        )
    return found


def _rises(rows: Sequence[Row]) -> int | None:
    """The epoch from which the trusted loss has risen for five epochs while the other fell."""
    known = [row for row in rows if row.get("selection_loss") is not None]
    for end in range(EPOCHS, len(known)):
        window = known[end - EPOCHS : end + 1]
        held = [float(row["selection_loss"]) for row in window]
        train = [float(row["train_loss"]) for row in window]
        risen = all(a < b for a, b in pairwise(held))
        if risen and train[-1] < train[0] and held[-1] > 1.1 * held[0]:
            return int(window[0]["epoch"])
    return None
