"""What a comparison found, as one computed sentence in favour or against."""

import numpy as np

from diw.reports.comparison import Comparison
from diw.reports.statistics import MARK_FROM, standings
from diw.reports.words import count

BASELINE = "uniform"


def finding(comparison: Comparison) -> str:
    """The method that ends highest against unweighted training, and how far to trust it."""
    means = {
        label: float(np.mean([trial.summary.last_accuracy for trial in trials]))
        for label, trials in comparison.methods.items()
    }
    best = max(means, key=lambda label: means[label])
    if len(means) == 1:
        return f"{best} ends at {_percent(means[best])} test accuracy."
    baseline = BASELINE if BASELINE in means else min(means, key=lambda label: means[label])
    if best == baseline:
        sentence = f"No method ends above {baseline}, at {_percent(means[baseline])} test accuracy."
    else:
        points = 100 * (means[best] - means[baseline])
        sentence = (
            f"{best} ends at {_percent(means[best])} test accuracy, {points:.1f} points above "
            f"{baseline} ({_percent(means[baseline])})."
        )
    return f"{sentence} {_trust(comparison, best, baseline)}"


def _trust(comparison: Comparison, best: str, baseline: str) -> str:
    seeds = len(comparison.seeds)
    trials = {
        label: {t.summary.seed: t.summary.last_accuracy for t in comparison.methods[label]}
        for label in dict.fromkeys((best, baseline))
    }
    p_value = None
    if seeds >= MARK_FROM and best != baseline:
        p_value = standings(trials)[baseline].p_value
    if p_value is None:
        return f"Mean of {count(seeds, 'seed')}."
    size = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    return f"Mean of {count(seeds, 'seed')}; paired t-test {size}."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"
