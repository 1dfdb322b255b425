"""Several processes that train one network: what each must know of the others' samples.

Weights belong to the global mini-batch, the samples of all processes in the order of their
ranks. One number per sample travels; every process then solves the same small problem.
"""

import torch
from torch import Tensor

from diw.errors import RunError, UsageError


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

    def _all(self, values: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(values) for _ in range(self.size)]
        try:
            torch.distributed.all_gather(parts, values)  # pyright: ignore[reportUnknownMemberType]
        except RuntimeError as error:
            raise RunError(
                f"world: process {self.rank} of {self.size} lost another one; "
                "start the job again, it resumes from its checkpoint"
            ) from error
        return parts
