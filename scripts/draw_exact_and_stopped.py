"""Draw the weights of recorded mini-batches as functions of the loss: exact and stopped early.

python -m scripts.draw_exact_and_stopped [docs/images/exact-and-stopped.png]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from diw.matching import kmm
from diw.reports import COLOURS
from reproduction.style import DPI, WIDTH, styled

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "matching" / "minibatches.npz"
SHOWN = (12, 18, 23)


def main(path: Path) -> None:
    """One panel per mini-batch, from the middle to the end of training."""
    with np.load(RECORDED) as file:
        train, trusted, epochs = (
            file[name] for name in ("symmetric_train", "symmetric_trusted", "epochs")
        )
    with styled():
        figure, axes = plt.subplots(
            1, len(SHOWN), figsize=(WIDTH, 2.0), sharey=True, layout="constrained"
        )
        for axis, i in zip(axes, SHOWN, strict=True):
            order = train[i].argsort()
            for label, solver, colour in (
                ("exact", "diw", COLOURS[0]),
                ("stopped", "stopped", COLOURS[1]),
            ):
                weights = kmm(train[i], trusted[i], solver=solver).weights
                axis.plot(train[i][order], weights[order], label=label, color=colour)
            axis.set_xlabel(f"loss, epoch {epochs[i]}")
        axes[0].set_ylabel("weight")
        axes[0].legend(frameon=False)
        figure.savefig(path, dpi=DPI)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images/exact-and-stopped.png")
