"""What a training step costs: our loop against a bare one, and every method against uniform.

    python -m benchmarks.steps

One thread, LeNet-5 on the embedded images, batches of 256, trusted batches of
256. Times are the processor's and all contenders take turns, so that a busy
machine changes little; a figure is the median over the turns of the ratio
within a turn.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch.nn import functional

from diw.data import load
from diw.data.split import Split, make_split
from diw.models import make_model
from diw.records import Recipe, Run
from diw.training import Training
from diw.weighting import describe, find, make, methods

STEPS = 10
BATCH = 256
TURNS = 9
GOALS = {"uniform / bare": 1.10, "diw / uniform": 1.6, "matching share of diw": 0.08}


@dataclass
class Loop:
    """One contender: trains `STEPS` steps a turn."""

    turn: Callable[[], None]
    seconds: list[float]
    matching: list[float]


def small_split(trusted: int = 500) -> Split:
    """As many embedded images as `STEPS` full batches take, 40% mislabelled."""
    split = make_split(load("embedded"), shift="symmetric:0.4", trusted=trusted, seed=0)
    rows = torch.arange(STEPS * BATCH)
    known = {name: getattr(split, name)[rows] for name in ("flipped", "true_labels")}
    weights = split.true_weights
    return Split(
        **{**vars(split), **known, "train": split.train.subset(rows)}
        | {"true_weights": None if weights is None else weights[rows]}
    )


def bare_loop(split: Split) -> Loop:
    """What one writes by hand in PyTorch: no weights, no records."""
    model = make_model("lenet5", shape=(1, 28, 28), num_classes=10, seed=0)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, weight_decay=1e-4)
    images, labels = split.train.take(torch.arange(len(split.train)))
    images = images.mul(255).to(torch.uint8)

    def turn() -> None:
        for index in torch.randperm(len(images)).split(BATCH):
            inputs = images[index].float().div_(255)
            loss = functional.cross_entropy(model(inputs), labels[index], reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return Loop(turn, [], [])


def our_loop(method: str, split: Split, folder: Path) -> Loop:
    """Our training loop's own code, past every warm-up and preparation."""
    has = {field.name for field in describe(find(method))}
    training = Training(
        split=split,
        make_model=lambda: make_model("lenet5", shape=(1, 28, 28), num_classes=10, seed=0),
        method=make(method, {"pretraining": 1} if "pretraining" in has else None),
        recipe=Recipe(lr=1e-4, batch_size=BATCH, trusted_batch_size=BATCH),
        run=Run.create(folder / method, {"method": method}),
        seed=0,
        device=torch.device("cpu"),
    )
    training.objective.prepare()
    epoch = 1
    loop = Loop(lambda: None, [], [])
    matching = 0.0
    solve = getattr(training.method, "solve", None)

    def timed(problems):
        nonlocal matching
        assert solve is not None
        started = time.process_time()
        result = solve(problems)
        matching += time.process_time() - started
        return result

    if solve is not None:
        training.method.solve = timed  # type: ignore[attr-defined]

    def turn() -> None:
        nonlocal epoch, matching
        epoch += 1
        matching = 0.0
        training.train_epoch(epoch)
        loop.matching.append(matching)

    loop.turn = turn
    return loop


def measure(loops: dict[str, Loop], turns: int = TURNS) -> None:
    """Let all contenders take turns; the first turn warms up and does not count."""
    for turn in range(turns + 1):
        for loop in loops.values():
            started = time.process_time()
            loop.turn()
            if turn:
                loop.seconds.append(time.process_time() - started)
            else:
                loop.matching.clear()


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median over turns of the ratio within a turn."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def main() -> None:
    """Print the time per step of every method, and the goals with what was measured."""
    torch.set_num_threads(1)
    split = small_split()
    with tempfile.TemporaryDirectory() as folder:
        loops = {"bare": bare_loop(split)}
        loops |= {name: our_loop(name, split, Path(folder)) for name in methods()}
        measure(loops)
    uniform = loops["uniform"].seconds
    print(f"LeNet-5, batch {BATCH}, trusted batch {BATCH}, one thread, {TURNS} turns")
    print(f"{'':10} {'ms/step':>10} {'/ uniform':>10} {'matching':>9}")
    for name, loop in loops.items():
        steps = STEPS if name != "clean" else -(-len(split.trusted) // BATCH)
        step_ratio = ratio(loop.seconds, uniform) * STEPS / steps
        share = ratio(loop.matching, loop.seconds) if any(loop.matching) else None
        print(f"{name:10} {median(loop.seconds) / steps * 1e3:10.2f} {step_ratio:10.2f}", end="")
        print(f" {share:9.1%}" if share is not None else "")
    diw = loops["diw"]
    measured = {
        "uniform / bare": ratio(uniform, loops["bare"].seconds),
        "diw / uniform": ratio(diw.seconds, uniform),
        "matching share of diw": ratio(diw.matching, diw.seconds),
    }
    for name, value in measured.items():
        verdict = "met" if value <= GOALS[name] else "MISSED"
        print(f"{name}: {value:.3f} (goal at most {GOALS[name]}: {verdict})")


if __name__ == "__main__":
    main()
