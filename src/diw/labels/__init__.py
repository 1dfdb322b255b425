"""Wrong labels: which are given for which, how many, and which they are; NumPy and SciPy alone.

- `transitions`: tables of predictions by label, and what they say of transitions between classes.
- `running`: the same over mini-batches of a training.
- `trusted`: whether the trusted labels themselves are right.
- `crossfit`: predictions for samples by a classifier that was not fitted on them.
- `history`: scores from the losses or weights of a training.
"""
