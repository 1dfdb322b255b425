"""Numbers behind the paper's figures, so that a claim about a picture can be counted."""

import numpy as np

from diw.records import Run


def concentration(run: Run) -> float | None:
    """How concentrated the classes are in the last layer: Σ between / Σ total variance, in [0, 1].

    1 where every class is a single point, 0 where all classes have one centre.
    None where the run did not observe its hidden outputs.
    """
    kept = run.arrays("hidden")
    if not kept:
        return None
    features = kept["features"].astype(np.float64)
    labels = kept["true_labels"]
    centred = features - features.mean(axis=0)
    total = float((centred**2).sum())
    between = sum(
        float((labels == label).sum() * (centred[labels == label].mean(axis=0) ** 2).sum())
        for label in np.unique(labels)
    )
    return between / total if total > 0 else 0.0


def denoising(run: Run) -> tuple[float, float, float] | None:
    """Final training accuracy on mislabelled data by given and by true label, and on intact data.

    None where the run did not observe them.
    """
    keys = ("mislabelled_accuracy_given", "mislabelled_accuracy_true", "intact_accuracy")
    last = run.metrics()[-1]
    values = [last.get(key) for key in keys]
    if any(value is None for value in values):
        return None
    given, true, intact = map(float, values)  # pyright: ignore[reportArgumentType]
    return given, true, intact


def ones_distance(shift: str, metric: str) -> float:
    """The distance from weights of one to the true weights of the class-prior shift (μ, ρ).

    Fang et al. 2020, supplement A.3: w* is 1−μ+μ/ρ for a majority and μ+ρ−μρ for a minority
    class, of which a share μ/(μ+(1−μ)ρ) of the samples are.

    Args:
        shift: `prior:MU,RHO`.
        metric: `mae` or `rmse`.
    """
    minority, ratio = map(float, shift.partition(":")[2].split(",")[:2])
    share = minority / (minority + (1 - minority) * ratio)
    misses = np.array([minority - minority / ratio, (1 - minority) * (ratio - 1)])
    shares = np.array([1 - share, share])
    if metric == "mae":
        return float(shares @ misses)
    return float(np.sqrt(shares @ misses**2))
