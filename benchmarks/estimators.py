"""Estimators of the ratio: their error to the true one, and their time, on five standard cases.

    python -m benchmarks estimators [--quick] [--save]

The error is √mean((w − r)²), where r is the true ratio of the densities at the training
values and both have mean one; equal weights are the line to beat. Contenders take turns on the same
draws. adapt and skada are measured in the same run where they are installed; diw needs neither.
Least squares are there twice: with the median rule's width, and with a width and a penalty chosen
from the same list by us and by adapt, whose likelihood chooses among five widths. Finding the
median counts as time for all.
How the classifiers' time grows with the number of values and columns is measured besides.
"""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Times, machine, take_turns
from diw.files import write_json
from diw.matching import KMM, ULSIF, Chi2, Entropy, Estimator, Isotonic, Logistic
from diw.matching.problem import width
from diw.matching.ulsif import PENALTIES, WIDTHS

RESULTS = Path(__file__).parent / "results" / "estimators.json"

OURS = {
    "kmm": KMM(gamma="median"),
    "stopped": KMM(gamma="median", solver="stopped"),
    "entropy": Entropy(gamma="median"),
    "chi2": Chi2(gamma="median"),
    "ulsif, median": ULSIF(gamma="median"),
    "ulsif, chosen": ULSIF(),
    "rulsif, chosen": ULSIF(alpha=0.1),
    "logistic": Logistic(),
    "logistic, linear": Logistic(features="linear", penalty=1.0),
    "isotonic": Isotonic(),
}
NARROWER = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Where adapt's likelihood looks for γ, in units of the median rule's."""
TRAIN, TRUSTED = 1000, 300
DRAWS = 10
SIZES = ((1000, 50), (10**4, 10), (10**5, 10), (10**6, 10), (10**4, 50), (10**5, 50))
"""Training values and columns; with `SIZES_TRUSTED` trusted values, or `TRUSTED` beside few."""
SIZES_TRUSTED = 3000
CLASSIFIERS = ("logistic", "logistic, linear", "adapt IWC", "skada discriminator")

Draw = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Training values, trusted values, the true ratio at the training values."""


def gaussian(d: int, rng: np.random.Generator) -> Draw:
    """N(0, I) against a mean moved by one, over all dimensions together."""
    mean = 1.0 / np.sqrt(d)
    train, trusted = rng.normal(size=(TRAIN, d)), rng.normal(mean, 1.0, (TRUSTED, d))
    return train, trusted, np.exp((train * mean).sum(1) - 0.5)


def heavy_tails(rng: np.random.Generator) -> Draw:
    """Student's t with three degrees of freedom against one moved by one."""
    train, trusted = rng.standard_t(3, TRAIN), rng.standard_t(3, TRUSTED) + 1.0
    ratio = ((1 + train**2 / 3) / (1 + (train - 1) ** 2 / 3)) ** 2
    return train[:, None], trusted[:, None], ratio


CASES: dict[str, Callable[[np.random.Generator], Draw]] = {
    "Gaussian, 1 dimension": lambda rng: gaussian(1, rng),
    "Gaussian, 2 dimensions": lambda rng: gaussian(2, rng),
    "Gaussian, 10 dimensions": lambda rng: gaussian(10, rng),
    "Gaussian, 50 dimensions": lambda rng: gaussian(50, rng),
    "heavy tails, 1 dimension": heavy_tails,
}


def contenders() -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Functions of training and trusted values to weights, by name: ours, then peers'."""

    def ours(estimator: Estimator) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        return lambda train, trusted: estimator.fit_weights(train, trusted)

    found: dict[str, Any] = {"equal weights": lambda train, trusted: np.ones(len(train))}
    found |= {name: ours(estimator) for name, estimator in OURS.items()}
    return found | _adapt() | _skada()


def _adapt() -> dict[str, Any]:
    try:
        module = importlib.import_module("adapt.instance_based")
    except ImportError:
        return {}

    def call(
        name: str, factors: Sequence[float] = (), **options: Any
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        def fit(train: np.ndarray, trusted: np.ndarray) -> np.ndarray:
            median = width(train, "median")
            gamma = [median * factor for factor in factors] if factors else median
            estimator = getattr(module, name)(
                kernel="rbf", gamma=gamma, verbose=0, random_state=0, **options
            )
            return np.asarray(estimator.fit_weights(train, trusted)).ravel()

        return fit

    def odds(train: np.ndarray, trusted: np.ndarray) -> np.ndarray:
        estimator = module.IWC(verbose=0, random_state=0)
        return np.asarray(estimator.fit_weights(train, trusted)).ravel()

    return {
        "adapt IWC": odds,
        "adapt KMM": call("KMM", B=50),
        "adapt ULSIF, median": call("ULSIF", lambdas=list(PENALTIES)),
        "adapt ULSIF, chosen": call("ULSIF", WIDTHS, lambdas=list(PENALTIES)),
        "adapt KLIEP, median": call("KLIEP"),
        "adapt KLIEP, chosen": call("KLIEP", NARROWER),
    }


def _skada() -> dict[str, Any]:
    try:
        module = importlib.import_module("skada")
    except ImportError:
        return {}

    def call(name: str, **options: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        def fit(train: np.ndarray, trusted: np.ndarray) -> np.ndarray:
            adapter = getattr(module, name)(**options)
            X = np.vstack([train, trusted])
            domain = np.r_[np.ones(len(train)), -2.0 * np.ones(len(trusted))]
            adapter.fit(X, sample_domain=domain)
            _, found = adapter.fit_transform(X, sample_domain=domain)
            return np.asarray(found["sample_weight"])[: len(train)]

        return fit

    def turned(train: np.ndarray, trusted: np.ndarray) -> np.ndarray:
        """One over its weights: skada 0.6 divides training by trusted odds."""
        return 1.0 / call("DiscriminatorReweightAdapter")(train, trusted)

    return {
        "skada discriminator": call("DiscriminatorReweightAdapter"),
        "skada discriminator, turned round": turned,
        "skada KMM": call("KMMReweightAdapter", gamma=None),
        "skada Gaussian": call("GaussianReweightAdapter"),
        "skada density": call("DensityReweightAdapter"),
    }


def error(weights: np.ndarray, ratio: np.ndarray) -> float:
    """√mean((w − r)²), both with mean one."""
    if not weights.mean() > 0:
        return float("nan")
    return float(np.sqrt(((weights / weights.mean() - ratio / ratio.mean()) ** 2).mean()))


def measure(draws: int) -> dict[str, dict[str, dict[str, float] | str]]:
    """Error and time by case and contender."""
    figures: dict[str, dict[str, dict[str, float] | str]] = {}
    for case, draw in CASES.items():
        errors: dict[str, list[float]] = {}
        times: dict[str, Times] = {}
        failed: dict[str, str] = {}
        for seed in range(draws):
            train, trusted, ratio = draw(np.random.default_rng(seed))
            for name, fit in contenders().items():
                if name in failed or (name == "isotonic" and train.shape[1] > 1):
                    continue
                try:
                    weights = times.setdefault(name, Times()).call(fit, train, trusted)
                except Exception as reason:  # a peer's failure is a figure too
                    failed[name] = f"failed: {type(reason).__name__}"
                    continue
                errors.setdefault(name, []).append(error(weights, ratio))
        figures[case] = {
            name: {
                "error": float(np.mean(values)),
                "standard_error": float(np.std(values) / np.sqrt(len(values))),
                "processor_seconds": float(np.median(times[name].processor)),
            }
            for name, values in errors.items()
            if name not in failed
        } | failed
        print(f"{case}: done", flush=True)
    return figures


def measure_sizes(quick: bool) -> dict[str, dict[str, float]]:
    """Processor seconds of the classifiers by size and name: the best of several turns."""
    figures: dict[str, dict[str, float]] = {}
    fits = {name: fit for name, fit in contenders().items() if name in CLASSIFIERS}
    for n, d in SIZES:
        if quick and n * d > 10**5:
            continue
        rng = np.random.default_rng(0)
        trusted = TRUSTED if n <= TRAIN else SIZES_TRUSTED
        values = rng.normal(size=(n, d)), rng.normal(1 / np.sqrt(d), 1.0, (trusted, d))
        turns = 3 if n == 10**6 else 30 if n <= 10**4 else 7
        times = take_turns(
            {name: lambda x, fit=fit: fit(*x) for name, fit in fits.items()}, [values] * turns
        )[0]
        figures[f"{n} × {d}"] = {name: min(found.processor) for name, found in times.items()}
        print(f"{n} × {d}: done", flush=True)
    return figures


def main(quick: bool = False, save: bool = False) -> None:
    """Measure, print a table of errors and times, perhaps save the figures."""
    figures = measure(2 if quick else DRAWS)
    names = list(dict.fromkeys(name for rows in figures.values() for name in rows))
    print("\nerror to the true ratio (processor time)")
    print("".ljust(36) + "".join(case.ljust(28) for case in figures))
    for name in names:
        cells = [_shown(rows.get(name)).ljust(28) for rows in figures.values()]
        print((name.ljust(36) + "".join(cells)).rstrip())
    sizes = measure_sizes(quick)
    print("\nprocessor time of classifiers by training values and columns, ms")
    for size, found in sizes.items():
        shown = "".join(f"{name} {1e3 * seconds:.1f}".ljust(30) for name, seconds in found.items())
        print(f"{size:14}{shown}".rstrip())
    if save:
        RESULTS.parent.mkdir(exist_ok=True)
        facts = {"train": TRAIN, "trusted": TRUSTED, "draws": DRAWS, "machine": machine()}
        write_json(RESULTS, {**facts, "cases": figures, "sizes": sizes})
        print(f"figures: {RESULTS}")


def _shown(cell: dict[str, float] | str | None) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    milliseconds = 1e3 * cell["processor_seconds"]
    return f"{cell['error']:.3f} ± {cell['standard_error']:.3f} ({milliseconds:.1f} ms)"
