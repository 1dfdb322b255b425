"""Is the diagnosis right? How often it calls no shift a shift, and names each shift of the paper.

    python -m benchmarks diagnosis [--quick] [--save]

On the embedded images, 500 trusted samples for label noise and for no shift, 10 per class for
class priors, as in the paper. A shift counts as named if it is named alone.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import machine
from diw.auditing import Diagnosis, diagnose_data
from diw.auditing.diagnosis import NOISE, PRIOR
from diw.data import Bundle, load
from diw.data.split import make_split
from diw.files import write_json

RESULTS = Path(__file__).parent / "results" / "diagnosis.json"

SHIFTS = {
    "pair:0.3": NOISE,
    "symmetric:0.4": NOISE,
    "symmetric:0.5": NOISE,
    "prior:0.2,100": PRIOR,
    "prior:0.2,200": PRIOR,
}
DRAWS, SEEDS = 200, 20
NO_SHIFT_ROWS = 3000
"""Training samples of a draw without shift, so that draws differ in all of their samples."""


def no_shift(bundle: Bundle, seed: int) -> Diagnosis:
    """A diagnosis of 500 samples against 3,000 others."""
    train = bundle.train
    rows = np.random.default_rng([seed, 2020]).permutation(len(train))
    import torch

    trusted, others = (
        torch.from_numpy(rows[:500]),
        torch.from_numpy(rows[500 : 500 + NO_SHIFT_ROWS]),
    )
    return diagnose_data(train.subset(others), train.subset(trusted), seed=seed)


def shifted(bundle: Bundle, shift: str, seed: int) -> tuple[Diagnosis, float]:
    """A diagnosis of a simulated shift, and the true share of wrong labels."""
    trusted = "10/class" if shift.startswith("prior") else 500
    split = make_split(bundle, shift=shift, trusted=trusted, seed=seed, trusted_in_train=False)
    wrong = 0.0 if split.flipped is None else float(split.flipped.double().mean())
    return diagnose_data(split.train, split.trusted, seed=seed), wrong


def main(quick: bool = False, save: bool = False) -> None:
    """Print the shares, and with `save` write them."""
    bundle = load()
    draws, seeds = (20, 3) if quick else (DRAWS, SEEDS)
    started = time.perf_counter()
    called = [bool(no_shift(bundle, seed).shifts) for seed in range(draws)]
    seconds = (time.perf_counter() - started) / draws
    print(f"no shift: {sum(called)} of {draws} called shifted; {seconds:.1f} s each", flush=True)
    named: dict[str, Any] = {}
    for shift, kind in SHIFTS.items():
        found = [shifted(bundle, shift, seed) for seed in range(seeds)]
        right = sum(diagnosis.shifts == (kind,) for diagnosis, _ in found)
        covered = sum(d.noise.low <= wrong <= d.noise.high for d, wrong in found)
        named[shift] = {"named": right, "interval_covers": covered, "of": seeds}
        print(
            f"{shift}: named {kind} in {right} of {seeds}; the 95% interval of the wrong labels "
            f"covers their share in {covered}",
            flush=True,
        )
    if save:
        no = {"called_shifted": sum(called), "of": draws, "seconds": round(seconds, 2)}
        write_json(RESULTS, {"machine": machine(), "no shift": no, "shifts": named})


if __name__ == "__main__":
    main(save=True)
