"""Record real mini-batches: what a LeNet-5 sees during training on noisy Fashion-MNIST labels.

    python scripts/record_minibatches.py FOLDER        (or with $DIW_DATA)

writes tests/matching/minibatches.npz: the losses of training and trusted
mini-batches at several epochs under two kinds of label noise, and for one of
them the inputs of the last layer with their labels. Tests and benchmarks of the
solver read that file, so nobody needs the data to run them.

The script stands alone (plain torch, no part of diw), so that a change of the
package cannot change what its solver is tested on.
"""

import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

EPOCHS = (0, 1, 2, 5, 10, 20)
BATCHES = 4
SIZE = 256
LEARNING_RATE = {"pair": 2e-4, "symmetric": 3e-4}  # for summed losses, as in the paper


def read(folder: Path, name: str) -> np.ndarray:
    """One IDX file of Fashion-MNIST, gzipped or not."""
    path = next((p for p in (folder / f"{name}.gz", folder / name) if p.is_file()), None)
    if path is None:
        raise SystemExit(f"{folder}: has no file {name}.gz")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def noisy(labels: torch.Tensor, kind: str, generator: torch.Generator) -> torch.Tensor:
    """Labels of which 30% are the next class (pair) or 40% any other one (symmetric)."""
    rate, most = (0.3, 1) if kind == "pair" else (0.4, 9)
    shift = torch.randint(1, most + 1, labels.shape, generator=generator)
    flip = torch.rand(labels.shape, generator=generator) < rate
    return torch.where(flip, (labels + shift) % 10, labels)


def lenet() -> nn.Sequential:
    """LeNet-5 without its last layer."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
    )  # fmt: skip


def record(images: torch.Tensor, labels: torch.Tensor, kind: str) -> dict[str, np.ndarray]:
    """Train with one kind of noise and keep what a matching step would see."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    dirty = noisy(labels, kind, generator)
    trusted = torch.randperm(len(labels), generator=generator)[:1000]
    body, head = lenet(), nn.Linear(84, 10)
    parameters = [*body.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE[kind], weight_decay=1e-4)
    out: dict[str, list[np.ndarray]] = {"train": [], "trusted": []}

    @torch.no_grad()
    def look(index: torch.Tensor, targets: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        hidden = body(images[index])
        losses = functional.cross_entropy(head(hidden), targets[index], reduction="none")
        return losses.numpy(), hidden.numpy()

    hidden: dict[str, np.ndarray] = {}
    for epoch in range(max(EPOCHS) + 1):
        order = torch.randperm(len(labels), generator=generator)
        if epoch in EPOCHS:
            for b in range(BATCHES):
                train = order[b * SIZE : (b + 1) * SIZE]
                held = trusted[torch.randperm(1000, generator=generator)[:SIZE]]
                (loss, features), (loss_t, features_t) = look(train, dirty), look(held, labels)
                out["train"].append(loss)
                out["trusted"].append(loss_t)
                hidden = {
                    "features_train": features, "labels_train": dirty[train].numpy(),
                    "features_trusted": features_t, "labels_trusted": labels[held].numpy(),
                }  # fmt: skip
        for index in order.split(SIZE):
            optimizer.zero_grad()
            loss = functional.cross_entropy(head(body(images[index])), dirty[index])
            (loss * len(index)).backward()
            optimizer.step()
        print(kind, epoch, f"loss of the last batch {float(loss.detach()):.3f}", flush=True)
    losses = {f"{kind}_{name}": np.stack(values) for name, values in out.items()}
    return losses | (hidden if kind == "symmetric" else {})


def main() -> None:
    """Read the data, train twice, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=os.environ.get("DIW_DATA"), type=Path)
    parser.add_argument("--out", default="tests/matching/minibatches.npz", type=Path)
    arguments = parser.parse_args()
    if arguments.folder is None:
        parser.error("give the folder of Fashion-MNIST or set DIW_DATA")
    folder = Path(arguments.folder)
    if (folder / "fashion-mnist").is_dir():
        folder = folder / "fashion-mnist"
    torch.set_num_threads(1)
    images = torch.tensor(read(folder, "train-images-idx3-ubyte"))[:, None] / 255.0
    labels = torch.tensor(read(folder, "train-labels-idx1-ubyte"), dtype=torch.int64)
    arrays = {"epochs": np.repeat(EPOCHS, BATCHES)}
    for kind in LEARNING_RATE:
        arrays |= record(images, labels, kind)
    part = arguments.out.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.replace(arguments.out)


if __name__ == "__main__":
    main()
