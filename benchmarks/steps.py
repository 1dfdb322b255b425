"""What a training step costs: our loop against a bare one, and every method against uniform.

    python -m benchmarks steps [--save]

One thread, LeNet-5 on the embedded images, batches of 256, trusted batches of
256; the default also on ResNet-32, in batches of 64. Times are the processor's
and all contenders take turns, so that a busy machine changes little; a figure is
the median over the turns of the ratio within a turn.
"""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch.nn import functional

from benchmarks.measuring import machine
from diw.data import load
from diw.data.split import Split, make_split
from diw.methods import describe, find, make, methods
from diw.models import make_model
from diw.objective import Objective
from diw.runs import Recipe, Run
from diw.training.recorded import Recorded

STEPS = 10
BATCH = 256
TURNS = 9
GOALS = {
    "uniform / bare": 1.10,
    "diw / uniform": 1.6,
    "matching share of diw": 0.08,
    "remember / uniform": 1.10,
    "remember / uniform, ResNet-32": 1.05,
}


@dataclass
class Loop:
    """One contender: trains `STEPS` steps a turn."""

    turn: Callable[[], None]
    seconds: list[float]
    matching: list[float]


def small_split(trusted: int = 500) -> Split:
    """As many embedded images as `STEPS` full batches take, trusted ones first, 40% mislabelled."""
    split = make_split(load("embedded"), shift="symmetric:0.4", trusted=trusted, seed=0)
    others = torch.ones(len(split.train), dtype=torch.bool)
    others[split.trusted_index] = False
    rows = torch.cat([split.trusted_index, others.nonzero().flatten()])[: STEPS * BATCH]
    known = {name: getattr(split, name)[rows] for name in ("flipped", "true_labels")}
    weights = split.true_weights
    return Split(
        **{**vars(split), **known, "train": split.train.subset(rows)}
        | {"true_weights": None if weights is None else weights[rows]}
        | {"trusted_index": torch.arange(len(split.trusted_index))}
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
    past = {"pretraining": 1, "warmup": 0, "warmup_steps": 0}
    recorded = Recorded(
        split=split,
        make_model=lambda: make_model("lenet5", shape=(1, 28, 28), num_classes=10, seed=0),
        method=make(method, {name: value for name, value in past.items() if name in has}),
        recipe=Recipe(lr=1e-4, batch_size=BATCH, trusted_batch_size=BATCH),
        run=Run.create(folder / method, {"method": method}),
        seed=0,
        device=torch.device("cpu"),
    )
    training = recorded.training
    training.objective.prepare()
    epoch = 1
    loop = Loop(lambda: None, [], [])
    matching = 0.0
    solve = getattr(recorded.method, "solve", None)

    def timed(problems):
        nonlocal matching
        assert solve is not None
        started = time.process_time()
        result = solve(problems)
        matching += time.process_time() - started
        return result

    if solve is not None:
        recorded.method.solve = timed  # type: ignore[attr-defined]

    def turn() -> None:
        nonlocal epoch, matching
        epoch += 1
        matching = 0.0
        training.train_epoch(epoch)
        loop.matching.append(matching)

    loop.turn = turn
    return loop


def resnet_loop(method: str) -> Loop:
    """The objective on ResNet-32 and images of noise: two batches of 64 a turn."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(128, 3, 32, 32, generator=generator)
    labels = torch.randint(10, (128,), generator=generator)
    model = make_model("resnet32", shape=(3, 32, 32), num_classes=10, seed=0)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    weighting = make(method, {"warmup_steps": 0} if method == "remember" else None)
    trusted = (images[:32], labels[:32])
    objective = Objective(model, weighting, trusted, trusted_index=range(32))
    epoch = 0

    def turn() -> None:
        nonlocal epoch
        epoch += 1
        objective.start_epoch(epoch)
        for index in torch.randperm(128).split(64):
            optimizer.zero_grad()
            objective((images[index], labels[index], index)).loss.backward()
            optimizer.step()
            objective.after_step()

    return Loop(turn, [], [])


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


def main(save: bool = False) -> None:
    """Print the time per step of every method, and the goals; perhaps save the figures."""
    torch.set_num_threads(1)
    split = small_split()
    with tempfile.TemporaryDirectory() as folder:
        loops = {"bare": bare_loop(split)}
        loops |= {name: our_loop(name, split, Path(folder)) for name in methods()}
        measure(loops)
    deep = {name: resnet_loop(name) for name in ("uniform", "remember")}
    measure(deep, turns=5)
    uniform = loops["uniform"].seconds
    print(f"LeNet-5, batch {BATCH}, trusted batch {BATCH}, one thread, {TURNS} turns")
    print(f"{'':10} {'ms/step':>10} {'/ uniform':>10} {'matching':>9}")
    ratios: dict[str, float] = {}
    for name, loop in loops.items():
        steps = STEPS if name != "clean" else -(-len(split.trusted) // BATCH)
        step_ratio = ratio(loop.seconds, uniform) * STEPS / steps
        ratios[name] = round(step_ratio, 3)
        share = ratio(loop.matching, loop.seconds) if any(loop.matching) else None
        print(f"{name:10} {median(loop.seconds) / steps * 1e3:10.2f} {step_ratio:10.2f}", end="")
        print(f" {share:9.1%}" if share is not None else "")
    diw = loops["diw"]
    measured = {
        "uniform / bare": ratio(uniform, loops["bare"].seconds),
        "diw / uniform": ratio(diw.seconds, uniform),
        "matching share of diw": ratio(diw.matching, diw.seconds),
        "remember / uniform": ratio(loops["remember"].seconds, uniform),
        "remember / uniform, ResNet-32": ratio(deep["remember"].seconds, deep["uniform"].seconds),
    }
    for name, value in measured.items():
        verdict = "met" if value <= GOALS[name] else "MISSED"
        print(f"{name}: {value:.3f} (goal at most {GOALS[name]}: {verdict})")
    if save:
        figures = {"machine": machine(), "step over uniform": ratios, "goals": measured}
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (Path(__file__).parent / "results" / "steps.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
