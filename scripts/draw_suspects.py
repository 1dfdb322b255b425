"""Draw the most suspicious training images of a run: docs/images/suspects.png.

diw train --data fashion-mnist --trusted 1000 --epochs 16 --out model
python scripts/draw_suspects.py model docs/images/suspects.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import diw
from diw.runs import Run

ROWS, COLUMNS = 3, 8

if __name__ == "__main__":
    run, out = Run(Path(sys.argv[1])), sys.argv[2]
    found = diw.audit(run)
    places = found.order[: ROWS * COLUMNS]
    images, _ = run.source.split.train.take(torch.from_numpy(places))
    figure, axes = plt.subplots(ROWS, COLUMNS, figsize=(COLUMNS * 1.35, ROWS * 1.75))
    for axis, image, row in zip(axes.flat, images, found.rows(len(places)), strict=True):
        axis.imshow(image[0], cmap="gray_r")
        axis.set_title(f"{row['label']}\n→ {row['suggested']}", fontsize=8)
        axis.set_xlabel(f"row {row['row']}", fontsize=7, color="#616e7c")
        axis.set_xticks([])
        axis.set_yticks([])
    figure.tight_layout()
    figure.savefig(out, dpi=110)
