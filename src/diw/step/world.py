"""Several processes that train one network: what each must know of the others' samples.

Weights belong to the global mini-batch, the samples of all processes in the order of their
ranks. One number per sample travels; every process then solves the same small problem.
"""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

from diw.errors import RunError, UsageError, one_line

Value = TypeVar("Value")

OF_A_PEER = re.compile("gloo|nccl|peer|connection|socket", re.IGNORECASE)
"""What a failure to reach another process says; there is no class for it."""


class World:
    """One process alone: its batch is the global batch."""

    rank = 0
    size = 1

    def gather(self, values: Tensor) -> tuple[Tensor, slice]:
        """The values (n, …) of all processes, (N, …), and where one's own are among them."""
        return values, slice(None)

    def add(self, values: Tensor) -> Tensor:
        """The sum over all processes of a tensor that has the same shape everywhere."""
        return values

    def agreed(self, value: Value) -> Value:
        """What the first process has: files that it alone reads, decisions that all must share."""
        return value

    def host(self, model: nn.Module) -> nn.Module:
        """The network as the training forward calls it, so that gradients are averaged."""
        return model

    @contextmanager
    def together(self) -> Generator[None]:
        """Within the block, a process that was lost is a `RunError` that says so."""
        yield

    def share(self, index: Tensor) -> Tensor:
        """The part of some row numbers (m,) that this process looks at.

        Fewer rows than processes are looked at by all: repeated alike, they mean the same.
        """
        return index if len(index) < self.size else index.tensor_split(self.size)[self.rank]


LOCAL = World()
"""One process, or several that each weigh their own batch without asking the others."""


class Distributed(World):
    """The processes of `torch.distributed`, as `torchrun` starts them.

    Example:
        >>> torch.distributed.init_process_group("gloo")
        >>> objective = diw.Objective(ddp, "diw", trusted, world=diw.Distributed())
    """

    def __init__(self) -> None:
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            raise UsageError(
                "world: torch.distributed is not initialised; call init_process_group first"
            )
        self.rank = torch.distributed.get_rank()
        self.size = torch.distributed.get_world_size()

    def gather(self, values: Tensor) -> tuple[Tensor, slice]:
        """The values of all processes; their batches may differ in size."""
        values = values.detach().contiguous()
        sizes = [
            int(n) for n in torch.cat(self._all(torch.tensor([len(values)]).to(values.device)))
        ]
        room = values.new_zeros((max(sizes), *values.shape[1:]))
        room[: len(values)] = values
        parts = [part[:n] for part, n in zip(self._all(room), sizes, strict=True)]
        start = sum(sizes[: self.rank])
        return torch.cat(parts), slice(start, start + len(values))

    def add(self, values: Tensor) -> Tensor:
        """The sum over all processes, added up in the order of ranks."""
        return torch.stack(self._all(values.detach().contiguous())).sum(0)

    def agreed(self, value: Value) -> Value:
        """Sent by the first process to all others."""
        values = [value]
        with self.together():
            torch.distributed.broadcast_object_list(values)  # pyright: ignore[reportUnknownMemberType]
        return values[0]

    def host(self, model: nn.Module) -> nn.Module:
        """The network under `DistributedDataParallel`."""
        with self.together():
            return nn.parallel.DistributedDataParallel(model)

    @contextmanager
    def together(self) -> Generator[None]:
        """Gradients are averaged in the backward pass, which then fails like a gather."""
        try:
            yield
        except RuntimeError as error:
            if not OF_A_PEER.search(str(error)):
                raise
            raise RunError(
                f"world: process {self.rank} of {self.size} lost another one; "
                "start the job again, it resumes from its checkpoint"
            ) from error

    def _all(self, values: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(values) for _ in range(self.size)]
        with self.together():
            torch.distributed.all_gather(parts, values)  # pyright: ignore[reportUnknownMemberType]
        return parts


def joined() -> World:
    """The processes that `torchrun` started together with this one; `LOCAL` where there are none.

    They talk through gloo, so the network must be on the CPU.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return LOCAL
    try:
        torch.distributed.init_process_group("gloo")
    except (RuntimeError, ValueError) as error:  # DistNetworkError and its kin; wrong settings
        rank, size = (os.environ.get(name, "?") for name in ("RANK", "WORLD_SIZE"))
        raise RunError(
            f"world: process {rank} of {size} did not meet the others: {one_line(error)}"
        ) from None
    return Distributed()
