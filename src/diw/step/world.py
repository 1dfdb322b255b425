"""Several processes that train one network: what each must know of the others' samples.

Weights belong to the global mini-batch, the samples of all processes in the order of their
ranks. One number per sample travels; every process then solves the same small problem. What is
remembered of a sample is remembered by all of them.
"""

import os
import re
from collections.abc import Generator, Mapping
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


class Memory:
    """Rows kept for each sample by index: last epoch's weights, odds, averaged predictions."""

    def __init__(self, world: World = LOCAL) -> None:
        """Begin with nothing.

        Args:
            world: The processes that remember together: the next epoch may bring a sample to
                another one, so all of them keep what any of them writes.
        """
        self._world = world
        self._values: dict[str, Tensor] = {}

    def read(self, name: str, index: Tensor | None, like: Tensor | None = None) -> Tensor:
        """The rows (n, …) kept for the samples `index`, on the CPU; NaN where there is none.

        Args:
            name: Under which they were written.
            index: (n,)
            like: A row or rows of the same width; None for one number per sample.
        """
        index = _places(index)
        values = self._values.get(name)
        if values is None:
            values = torch.empty((0, *(() if like is None else like.shape[1:])))
        known = index < len(values)
        result = values.new_full((*index.shape, *values.shape[1:]), torch.nan)
        result[known] = values[index[known]]
        return result

    def write(self, name: str, index: Tensor | None, values: Tensor) -> None:
        """Keep `values` (n, …) for the samples `index` (n,), in float32."""
        index, values = _places(index), values.detach().to("cpu", torch.float32)
        if self._world.size > 1:
            (index, _), (values, _) = self._world.gather(index), self._world.gather(values)
        kept = self._values.get(name, values.new_empty((0, *values.shape[1:])))
        missing = int(index.max()) + 1 - len(kept) if len(index) else 0
        if missing > 0:
            room = values.new_full((max(missing, len(kept)), *values.shape[1:]), torch.nan)
            kept = torch.cat([kept, room])
        kept[index] = values
        self._values[name] = kept

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of everything kept, by name."""
        return {name: values.clone() for name, values in self._values.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` gave."""
        self._values = {name: values.cpu().clone() for name, values in state.items()}


def _places(index: Tensor | None) -> Tensor:
    if index is None:
        raise UsageError(
            "batch: this method remembers each sample; yield (inputs, targets, index), "
            "index being the sample's place in the training set"
        )
    return index.detach().to("cpu", torch.int64)
