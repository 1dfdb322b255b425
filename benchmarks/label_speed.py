"""Seconds and memory of the label model beyond the learner's own fits.

    python -m benchmarks label_speed [--quick] [--save]

100,000 rows, 10 classes and 500 verified rows; 100 classes with 30 verified rows; and the memory of
a million rows, measured in processes of their own, beyond what the table and its predictions take.
"""

import time
from pathlib import Path

import numpy as np

from benchmarks.alone import run_alone
from benchmarks.measuring import machine, made_by
from diw.files import write_json
from diw.labels import Evidence, fit, verified_log_p
from diw.labels.evidence import draw_folds

RESULTS = Path(__file__).parent / "results" / "label-speed.json"
CASES = {
    "100,000 rows, 10 classes, 500 verified": (100_000, 10, 500),
    "100,000 rows, 100 classes, 30 verified": (100_000, 100, 30),
}
MILLION = 1_000_000, 10, 500
COLUMNS = 20


def made(n: int, k: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, given and right labels, and log p in a (n, k) table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    right = (X[:, :k] if k <= COLUMNS else X @ rng.normal(size=(COLUMNS, k))).argmax(axis=1)
    given = np.where(rng.random(n) < 0.3, rng.integers(0, k, n), right)
    log_p = np.full((n, k), np.log(0.3 / k))
    log_p[np.arange(n), np.where(rng.random(n) < 0.1, given, right)] = np.log(0.7)
    return X, given, right, log_p


def judge(X: np.ndarray, given: np.ndarray, right: np.ndarray, log_p: np.ndarray, m: int) -> None:
    """All that TrustedClassifier does beside fitting the learner."""
    rows = np.sort(np.random.default_rng(1).permutation(len(X))[:m])
    fold = draw_folds(m, 0)
    log_v = verified_log_p(X, rows, right[rows], fold, log_p.shape[1])
    evidence = Evidence(log_p, given, rows, right[rows], fold=fold, log_v=log_v)
    model = fit(evidence)
    model.suspects(model.posterior(log_p, given, log_v), given)


def memory() -> float:
    """The MiB of a million rows beyond the table and its predictions: peaks of two processes."""
    code = f"from benchmarks.label_speed import judge, made; table = made(*{MILLION})"
    judging = f"; judge(*table, {MILLION[2]})"
    peaks = [run_alone(["-c", code + more]).peak for more in ("", judging)]
    return 1024 * (peaks[1] - peaks[0])


def main(quick: bool = False, save: bool = False) -> None:
    """Print processor seconds of each case, and the memory of the large one."""
    results: dict[str, object] = {}
    for name, (n, k, m) in CASES.items():
        X, given, right, log_p = made(n // 10 if quick else n, k, m)
        start = time.process_time()
        judge(X, given, right, log_p, m)
        results[name] = {"processor seconds": round(time.process_time() - start, 2)}
    if not quick:
        results["1,000,000 rows, 10 classes, 500 verified"] = {"MiB": round(memory())}
    for name, figures in results.items():
        print(f"{name:44}", figures)
    if save:
        write_json(RESULTS, {**made_by("label_speed"), "machine": machine(), "results": results})


if __name__ == "__main__":
    main(save=True)
