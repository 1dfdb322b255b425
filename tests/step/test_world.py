"""Two processes with half a batch each are one process with the whole batch."""

import copy
from pathlib import Path

import pytest
import torch
from torch import multiprocessing
from torch.nn.parallel import DistributedDataParallel

import diw
from diw.errors import UsageError
from diw.methods import make
from diw.step.world import LOCAL, Memory
from tests.networks import plain_network, samples

REMEMBER = {"warmup_steps": 3, "block": 1, "every": 2}
CASES = {
    "uniform": ("uniform", 1e-10),
    "random": ("random", 1e-10),
    "reweight": ("reweight", 1e-10),
    "well conditioned": (make("diw", {"ridge": 0.1, "warmup": 0}), 1e-10),
    "remembered": (make("diw", {"ridge": 0.1, "momentum": 0.5, "warmup": 0}), 1e-6),
    "the paper's ridge": (make("diw", {"warmup": 0}), 1e-6),
    "remember": (make("remember", REMEMBER), 1e-6),
    "elr": ("elr", 1e-6),
    "glc": (make("glc", {"pretraining": 1}), 1e-10),
    "adiw": (make("adiw", {"warmup": 0}), 1e-6),
}
SIZES = [(9, 7)] * 4 + [(3, 2)]  # the last batch of a pass is smaller; no two shares are equal


def train(method, rank: int | None, reduction: str = "mean", inside: bool = False):
    """Twenty steps in float64: parameters, and the weights of the last batch."""
    model = plain_network(torch.float64)
    inputs, targets = samples(70, dtype=torch.float64)
    trusted = samples(30, seed=1, dtype=torch.float64)
    rate, remembers = 0.05, getattr(method, "name", method) == "remember"
    true = targets.clone()
    if remembers:  # half of the labels of a class are wrong, and there is time to learn
        targets[::2], rate = targets[::2].clamp(min=1), 0.5
    host = model if rank is None else DistributedDataParallel(model)
    world = LOCAL if rank is None else diw.Distributed()
    options = {"trusted_batch_size": 11, "reduction": reduction, "world": world}
    options["pretrain"] = lambda _: plain_network(torch.float64)
    if inside:  # the first 30 training samples are the trusted ones
        targets[:30] = true[:30]
        trusted, options["trusted_index"] = (inputs[:30], targets[:30]), torch.arange(30)
    objective = diw.Objective(host, copy.deepcopy(method), trusted, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for epoch in range(1, 5):
        objective.start_epoch(epoch)
        start = 0
        for first, second in SIZES:
            whole = torch.arange(start, start + first + second)
            index = whole if rank is None else whole.split([first, second])[rank]
            start += first + second
            result = objective((inputs[index], targets[index], index))
            optimizer.zero_grad()
            result.loss.backward()
            optimizer.step()
            objective.after_step()
    return [p.detach() for p in model.parameters()], result.weights.train, objective.state_dict()


def process(rank: int, folder: str) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    found = {name: train(method, rank)[:2] for name, (method, _) in CASES.items()}
    found["sum"] = train("reweight", rank, "sum")[:2]
    found["state"] = train(*[CASES["remembered"][0], rank])[2]
    found["tables"] = train(CASES["remember"][0], rank)[2]
    found["trusted inside"] = train(CASES["remember"][0], rank, inside=True)[:2]
    for method in ("mwnet", "giw"):
        with pytest.raises(UsageError, match=f"^world: {method} weighs the batch of one process"):
            train(method, rank)
    with pytest.raises(UsageError, match=r"^world: diw2-f matches each class alone"):
        objective = diw.Objective(plain_network(), "diw2-f", samples(20), world=diw.Distributed())
        objective.start_epoch(2)
        objective(samples(16))
    torch.save({"found": found}, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    multiprocessing.start_processes(process, (str(folder),), nprocs=2, start_method="fork")
    return [torch.load(Path(folder) / f"{rank}.pt") for rank in (0, 1)]


@pytest.mark.parametrize("name", [*CASES, "sum", "trusted inside"])
def test_two_processes_are_one_with_the_joint_batch(name, ranks) -> None:
    if name == "sum":
        parameters, weights, _ = train("reweight", None, "sum")
        tolerance = 1e-10
    elif name == "trusted inside":
        parameters, weights, _ = train(CASES["remember"][0], None, inside=True)
        tolerance = 1e-6
    else:
        method, tolerance = CASES[name]
        parameters, weights, _ = train(method, None)
    ours = [result["found"][name] for result in ranks]
    for first, second, alone in zip(ours[0][0], ours[1][0], parameters, strict=True):
        assert torch.equal(first, second)
        torch.testing.assert_close(first, alone, rtol=0, atol=tolerance)
    both = torch.cat([ours[0][1], ours[1][1]])
    torch.testing.assert_close(both, weights, rtol=0, atol=100 * tolerance)


@pytest.mark.parametrize(("name", "kept"), [("remembered", "state"), ("remember", "tables")])
def test_the_state_is_that_of_one_process(name, kept, ranks) -> None:
    """So a job goes on with another number of processes."""
    alone = train(CASES[name][0], None)[2]
    method = alone.pop("name")
    for result in ranks:
        state = result["found"][kept]
        assert state.pop("name") == method
        torch.testing.assert_close(state, alone, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_without_a_process_group_there_is_no_world() -> None:
    with pytest.raises(UsageError, match=r"^world: torch.distributed is not initialised"):
        diw.Distributed()
    assert LOCAL.share(torch.arange(3)).tolist() == [0, 1, 2]


def test_reads_back_what_was_written_and_nan_elsewhere() -> None:
    memory = Memory()
    memory.write("w", torch.tensor([7, 2]), torch.tensor([0.5, 1.5]))
    memory.write("w", torch.tensor([1000]), torch.tensor([3.0]))
    read = memory.read("w", torch.tensor([2, 3, 7, 1000, 99999]))
    assert read.tolist()[0::2][:2] == [1.5, 0.5]
    assert read[[1, 4]].isnan().all()
    assert read[3] == 3.0


def test_state_survives() -> None:
    memory, other = Memory(), Memory()
    memory.write("w", torch.tensor([1]), torch.tensor([2.0]))
    other.load_state_dict(memory.state_dict())
    memory.write("w", torch.tensor([1]), torch.tensor([9.0]))
    assert other.read("w", torch.tensor([1])).item() == 2.0


def test_a_loader_without_indices_gets_a_message() -> None:
    with pytest.raises(UsageError, match=r"yield \(inputs, targets, index\)"):
        Memory().read("w", None)
