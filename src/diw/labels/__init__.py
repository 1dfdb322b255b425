"""Wrong labels: which are given for which, how many, and which they are; NumPy and SciPy alone.

- `model`: which labels are wrong, by one model; `fitting`: how verified rows decide it.
- `evidence`, `small`: what goes into it; `share`: how many labels are wrong, with an interval.
- `transitions`: tables of predictions by label, and what they say of transitions between classes.
- `running`: the same over mini-batches of a training.
- `trusted`: whether the trusted labels themselves are right.
- `crossfit`: predictions for samples by a classifier that was not fitted on them.
- `history`: scores from the losses or weights of a training.
"""

from diw.labels.evidence import Evidence
from diw.labels.fitting import fit
from diw.labels.model import Coefficients, LabelModel
from diw.labels.share import Share
from diw.labels.small import verified_log_p

__all__ = ["Coefficients", "Evidence", "LabelModel", "Share", "fit", "verified_log_p"]
