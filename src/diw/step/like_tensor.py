"""What lets `result.weights` stand where a tensor is expected."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


class LikeTensor(ABC):
    """An object that torch, NumPy and operators take for one of its tensors."""

    @abstractmethod
    def as_tensor(self) -> Tensor:
        """The tensor that it stands for."""

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch with tensors instead."""
        named = {name: _plain(value) for name, value in (kwargs or {}).items()}
        return function(*_plain(tuple(args)), **named)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.as_tensor().cpu(), dtype=dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        """Methods and attributes of the tensor: `weights.mean()`, `weights.shape`."""
        if name.startswith("_"):  # copying and pickling ask for these before there is a tensor
            raise AttributeError(name)
        return getattr(self.as_tensor(), name)

    def __len__(self) -> int:
        return len(self.as_tensor())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.as_tensor())

    def __getitem__(self, place: Any) -> Tensor:
        return self.as_tensor()[_plain(place)]

    # Operators with a tensor on the other side reach `__torch_function__`; these are for numbers.
    def __mul__(self, other: Any) -> Tensor:
        return self.as_tensor() * _plain(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self.as_tensor() / _plain(other)

    def __gt__(self, other: Any) -> Tensor:
        return self.as_tensor() > _plain(other)

    def __ge__(self, other: Any) -> Tensor:
        return self.as_tensor() >= _plain(other)

    def __lt__(self, other: Any) -> Tensor:
        return self.as_tensor() < _plain(other)

    def __le__(self, other: Any) -> Tensor:
        return self.as_tensor() <= _plain(other)


def _plain(value: Any) -> Any:
    if isinstance(value, LikeTensor):
        return value.as_tensor()
    if isinstance(value, (tuple, list)):
        plain = [_plain(item) for item in cast(Sequence[Any], value)]
        return plain if isinstance(value, list) else tuple(plain)
    return value
