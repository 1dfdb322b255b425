"""What weighting costs inside a framework: its weighted step over its unweighted one.

    python -m benchmarks frameworks

The same small network, data and batches in a plain loop, in Lightning and in Hugging Face's
Trainer; `diw` against the framework's own unweighted training. A framework spends time of its own
on every step, which weighting does not change, so what is compared is the added time per step, in
units of the plain loop's unweighted step: it should be no more than in the plain loop, within 5%.
Contenders take turns, processor time, medians over the turns.
"""

import contextlib
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from statistics import median

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import diw
from diw.methods import make

BATCH, STEPS, WIDTH, CLASSES = 256, 60, 256, 10
TURNS = 7
LIMIT = 1.05


class Network(nn.Module):
    """A perceptron that takes and gives what Hugging Face's models do."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
            nn.Linear(1024, CLASSES),
        )  # fmt: skip

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor | None = None) -> dict:
        """Logits, and the mean loss where labels are given."""
        logits = self.layers(inputs)
        if labels is None:
            return {"logits": logits}
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


def data() -> tuple[TensorDataset, tuple[torch.Tensor, torch.Tensor]]:
    """Training and trusted samples."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(BATCH * STEPS, WIDTH, generator=generator)
    labels = torch.randint(CLASSES, (len(inputs),), generator=generator)
    return TensorDataset(inputs, labels), (inputs[:BATCH], labels[:BATCH])


def weighting() -> diw.Method:
    """`diw` without a warm-up: every step is weighted."""
    return make("diw", {"warmup": 0})


def plain(weighted: bool) -> Callable[[], None]:
    """A loop of one's own."""
    train, trusted = data()
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
    objective = diw.Objective(network, weighting(), trusted)

    def turn() -> None:
        objective.start_epoch(1)
        for inputs, labels in DataLoader(train, batch_size=BATCH):
            optimizer.zero_grad()
            if weighted:
                objective((inputs, labels)).loss.backward()
            else:
                network(inputs, labels)["loss"].backward()
            optimizer.step()
            objective.after_step()

    return turn


def lightning(weighted: bool) -> Callable[[], None]:
    """A LightningModule and its Trainer."""
    import lightning.pytorch as pl

    from diw.integrations.lightning import ImportanceWeighting

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    train, trusted = data()

    class Module(pl.LightningModule):
        """With and without weights."""

        def __init__(self) -> None:
            super().__init__()
            self.net = Network()

        def training_step(self, batch, batch_idx):
            """One loss."""
            return self.objective(batch).loss if weighted else self.net(*batch)["loss"]

        def configure_optimizers(self):
            """As in the plain loop."""
            return torch.optim.SGD(self.parameters(), lr=1e-4)

    module = Module()

    def turn() -> None:
        added = [ImportanceWeighting(trusted, weighting(), network="net")] if weighted else []
        trainer = pl.Trainer(
            max_epochs=1, callbacks=added, accelerator="cpu", logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(module, DataLoader(train, batch_size=BATCH))

    return turn


def hugging_face(weighted: bool) -> Callable[[], None]:
    """Hugging Face's Trainer, or ours."""
    from transformers import Trainer, TrainingArguments

    from diw.integrations.huggingface import ImportanceWeightedTrainer

    train, (inputs, labels) = data()
    samples = [{"inputs": x, "labels": y} for x, y in train]
    trusted = [{"inputs": x, "labels": y} for x, y in zip(inputs, labels, strict=True)]
    network = Network()

    def turn() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            arguments = TrainingArguments(
                folder, num_train_epochs=1, per_device_train_batch_size=BATCH, report_to=[],
                disable_tqdm=True, save_strategy="no", optim="sgd", learning_rate=1e-4,
                dataloader_pin_memory=False, logging_strategy="no",
            )  # fmt: skip
            common = {"model": network, "args": arguments, "train_dataset": samples}
            if weighted:
                made = ImportanceWeightedTrainer(
                    **common, trusted_dataset=trusted, method=weighting()
                )
            else:
                made = Trainer(**common)
            made.train()

    return turn


def main(quick: bool = False) -> None:
    """Print the cost of a step, and what weighting adds."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    hosts = {"plain loop": plain, "Lightning": lightning, "Hugging Face": hugging_face}
    turns = {(name, w): make_host(w) for name, make_host in hosts.items() for w in (False, True)}
    seconds: dict[tuple[str, bool], list[float]] = {key: [] for key in turns}
    for number in range(1 + (2 if quick else TURNS)):
        for key, turn in turns.items():
            started = time.process_time()
            turn()
            if number:
                seconds[key].append((time.process_time() - started) / STEPS)
    unit = median(seconds["plain loop", False])
    print(f"{'':14} {'unweighted':>12} {'weighted':>10} {'ratio':>7} {'added / plain step':>19}")
    ratios: dict[str, float] = {}
    for name in hosts:
        pairs = list(zip(seconds[name, True], seconds[name, False], strict=True))
        ratios[name] = median(a / b for a, b in pairs)
        added = median(a - b for a, b in pairs) / unit
        without, with_ = (median(seconds[name, w]) * 1e3 for w in (False, True))
        print(f"{name:14} {without:9.2f} ms {with_:7.2f} ms {ratios[name]:7.3f} {added:19.3f}")
    for name in ("Lightning", "Hugging Face"):
        value = ratios[name] / ratios["plain loop"]
        verdict = "met" if value <= LIMIT else "MISSED"
        print(f"{name} / plain loop: {value:.3f} (goal at most {LIMIT}: {verdict})")


if __name__ == "__main__":
    main()
