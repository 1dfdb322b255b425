"""What is remembered of each training sample from step to step."""

from collections.abc import Mapping

import torch
from torch import Tensor

from diw.errors import UsageError
from diw.step.world import LOCAL, World


class Memory:
    """Values kept for each training sample by index: static weights, last epoch's weights."""

    def __init__(self, world: World = LOCAL) -> None:
        """Begin with nothing.

        Args:
            world: The processes that remember together: the next epoch may bring a sample to
                another one, so all of them keep what any of them writes.
        """
        self._world = world
        self._values: dict[str, Tensor] = {}

    def read(self, name: str, index: Tensor | None) -> Tensor:
        """The values (n,) kept for the samples `index`, on the CPU; NaN where there is none."""
        index = self._places(index)
        values = self._values.get(name, torch.empty(0))
        known = index < len(values)
        result = torch.full(index.shape, torch.nan)
        result[known] = values[index[known]]
        return result

    def write(self, name: str, index: Tensor | None, values: Tensor) -> None:
        """Keep `values` (n,) for the samples `index` (n,)."""
        index, values = self._places(index), values.detach().to("cpu", torch.float32)
        if self._world.size > 1:
            (index, _), (values, _) = self._world.gather(index), self._world.gather(values)
        kept = self._values.get(name, torch.empty(0))
        missing = int(index.max()) + 1 - len(kept) if len(index) else 0
        if missing > 0:
            kept = torch.cat([kept, torch.full((max(missing, len(kept)),), torch.nan)])
        kept[index] = values
        self._values[name] = kept

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of everything kept, by name."""
        return {name: values.clone() for name, values in self._values.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` gave."""
        self._values = {name: values.clone() for name, values in state.items()}

    @staticmethod
    def _places(index: Tensor | None) -> Tensor:
        if index is None:
            raise UsageError(
                "batch: this method remembers each sample; yield (inputs, targets, index), "
                "index being the sample's place in the training set"
            )
        return index.detach().to("cpu", torch.int64)
