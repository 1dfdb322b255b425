"""Draw the idea in two dimensions: losses, matched weights and the boundary, epoch by epoch.

    python scripts/draw_idea.py docs/figures/idea.html

Trains a small network on a toy with 40% wrong labels, without weights and with `diw`, and writes
one fragment of HTML with everything in it: `scripts/idea_template.html` with the recorded numbers,
each as one character. It is part of the first page of the site, and works by itself, too.
"""

import json
import string
import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import diw

DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
TRAIN, TRUSTED, WRONG = 320, 50, 0.4
EPOCHS, EVERY = 60, 2
GRID = (36, 27)
LEFT, RIGHT, LOW, HIGH = -1.6, 2.6, -1.5, 1.65
LARGEST_LOSS, LARGEST_WEIGHT = 4.2, 4.2  # one is then one of the 64 levels


def moons(n: int, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Two interleaved half circles: points (n, 2), labels (n,)."""
    side, angle = generator.integers(0, 2, n), generator.uniform(0, np.pi, n)
    x = np.where(side, 1 - np.cos(angle), np.cos(angle))
    y = np.where(side, 0.5 - np.sin(angle), np.sin(angle))
    points = np.stack([x, y], 1) + generator.normal(0, 0.15, (n, 2))
    return torch.tensor(points, dtype=torch.float32), torch.tensor(side)


def packed(values: Tensor | NDArray[np.floating], largest: float) -> str:
    """Numbers in [0, largest] as one character each, cut at the ends."""
    places = np.rint(np.clip(np.asarray(values, np.float64) / largest, 0, 1) * 63).astype(int)
    return "".join(DIGITS[place] for place in places.ravel())


def record(method: str) -> dict[str, object]:
    """Train by a method, and pack what the figure shows of each recorded epoch."""
    generator = np.random.default_rng(3)
    (x, right), trusted, test = (moons(n, generator) for n in (TRAIN, TRUSTED, 2000))
    wrong = torch.tensor(generator.random(TRAIN) < WRONG)
    x, right = torch.cat([x, trusted[0]]), torch.cat([right, trusted[1]])  # trained on, too
    wrong = torch.cat([wrong, torch.zeros(TRUSTED, dtype=torch.bool)])
    y = torch.where(wrong, 1 - right, right)
    across, up = np.linspace(LEFT, RIGHT, GRID[0]), np.linspace(HIGH, LOW, GRID[1])
    plane = torch.tensor(np.stack(np.meshgrid(across, up), -1).reshape(-1, 2)).float()

    torch.manual_seed(1)
    layers = (nn.Linear(2, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    objective = diw.Objective(model, method, trusted=trusted)
    loader = DataLoader(TensorDataset(x, y), batch_size=80, shuffle=True)
    frames: list[dict[str, object]] = []
    for epoch in range(EPOCHS + 1):
        if epoch:
            objective.start_epoch(epoch)
            for batch in loader:
                optimizer.zero_grad()
                objective(batch).loss.backward()
                optimizer.step()
                objective.after_step()
        if epoch % EVERY == 0:
            frames.append({"epoch": epoch, **look(model, objective, (x, y), trusted, test, plane)})
    return {
        "points": packed((x[:, 0] - LEFT) / (RIGHT - LEFT), 1)
        + packed((x[:, 1] - LOW) / (HIGH - LOW), 1),
        "trusted": packed((trusted[0][:, 0] - LEFT) / (RIGHT - LEFT), 1)
        + packed((trusted[0][:, 1] - LOW) / (HIGH - LOW), 1),
        "labels": "".join(str(int(label)) for label in y),
        "trustedLabels": "".join(str(int(label)) for label in trusted[1]),
        "wrong": "".join(str(int(flag)) for flag in wrong),
        "frames": frames,
    }


def look(
    model: nn.Module,
    objective: diw.Objective,
    train: tuple[Tensor, Tensor],
    trusted: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    plane: Tensor,
) -> dict[str, object]:
    """What the figure shows of one epoch."""
    losses = nn.CrossEntropyLoss(reduction="none")
    with torch.no_grad():
        accuracy = float((model(test[0]).argmax(1) == test[1]).double().mean())
        seen = {
            "plane": packed(model(plane).softmax(1)[:, 1], 1),
            "losses": packed(losses(model(train[0]), train[1]), LARGEST_LOSS),
            "trustedLosses": packed(losses(model(trusted[0]), trusted[1]), LARGEST_LOSS),
        }
    weights = objective.weigh(train).train
    assert weights is not None
    return {"accuracy": round(accuracy, 4), **seen, "weights": packed(weights, LARGEST_WEIGHT)}


def main() -> None:
    """Train both ways and write the fragment."""
    torch.set_num_threads(1)
    runs = {method: record(method) for method in ("uniform", "diw")}
    shared = runs["diw"]
    data = {
        "grid": GRID,
        "largestLoss": LARGEST_LOSS,
        "largestWeight": LARGEST_WEIGHT,
        **{name: value for name, value in shared.items() if name != "frames"},
        "runs": {method: run["frames"] for method, run in runs.items()},
    }
    template = Path(__file__).with_name("idea_template.html").read_text(encoding="utf-8")
    text = template.replace("DATA_HERE", json.dumps(data, separators=(",", ":")))
    Path(sys.argv[1]).write_text(text, encoding="utf-8")
    for method in runs:
        last = data["runs"][method][-1]
        print(f"{method}: {last['accuracy']:.1%} after {last['epoch']} epochs")
    print(f"{sys.argv[1]}: {len(text.encode()) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
