"""The endless, seeded, resumable stream of trusted mini-batches."""

from collections.abc import Mapping

import torch

from diw.errors import UsageError
from diw.seeding import torch_generator
from diw.step.batch import Batch
from diw.step.rows import Rows
from diw.step.world import LOCAL, World


class TrustedStream:
    """Draws trusted mini-batches for ever: pass after pass, each a new order.

    A pass is cut into batches of nearly equal size, at most `batch_size`, so that
    no step matches against a small remainder. The order of a pass is decided
    by the seed and the pass alone: the state is one number. Or each batch is drawn afresh from the
    whole set, as in the authors' released example.
    """

    def __init__(
        self,
        rows: Rows,
        batch_size: int,
        seed: int,
        world: World = LOCAL,
        afresh: bool = False,
    ):
        """Open the stream.

        Args:
            rows: The trusted set.
            batch_size: The largest batch; a smaller trusted set is taken whole each time.
            seed: Decides the orders.
            world: The processes that look at a batch together, each at a part of it.
            afresh: Whether each batch is `batch_size` samples of the whole set, without regard to
                earlier ones.
        """
        if batch_size < 1:
            raise UsageError(f"trusted_batch_size: must be at least 1, and is {batch_size}")
        self._rows = rows
        self._seed = seed
        self._world = world
        self._afresh = min(batch_size, len(rows)) if afresh else None
        self.batches_per_pass = -(-len(rows) // batch_size)
        self.drawn = 0

    def draw(self) -> Batch:
        """The next batch, with the samples' places in the trusted set as its index."""
        turn, part = divmod(self.drawn, 1 if self._afresh else self.batches_per_pass)
        order = torch.randperm(
            len(self._rows), generator=torch_generator(self._seed, "trusted order", turn)
        )
        if self._afresh:
            index = self._world.share(order[: self._afresh])
        else:
            index = self._world.share(order.tensor_split(self.batches_per_pass)[part])
        inputs, targets = self._rows.take(index)
        self.drawn += 1
        return Batch(inputs, targets, index)

    def state_dict(self) -> dict[str, int]:
        """How many batches were drawn."""
        return {"drawn": self.drawn}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on after as many batches as `state_dict` says."""
        self.drawn = state["drawn"]
