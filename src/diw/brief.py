"""Objects in one line: what Python shows of a result whose arrays would fill the screen."""

import reprlib
from typing import Any


def in_a_line(self: object) -> str:
    """The name of a class with its public attributes: `Match(weights=array (200,), …)`.

    For `__repr__ = in_a_line` in the body of a class. Arrays and tensors are told by their
    shapes, data sets by their lengths; long texts and collections are cut.
    """
    shown = ", ".join(
        f"{name}={_BRIEF.repr(part)}" for name, part in vars(self).items() if name[:1] != "_"
    )
    return f"{type(self).__name__}({shown})"


class _Brief(reprlib.Repr):
    """Values as attributes show them."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxtuple, self.maxlist, self.maxdict = 2, 4, 4, 4
        self.maxstring, self.maxother = 60, 110

    def repr_float(self, x: float, level: int) -> str:
        """As many digits as one reads."""
        return f"{x:.6g}"

    def repr_instance(self, x: Any, level: int) -> str:
        """Arrays by their shape, what has a long line by its class and length."""
        kind = type(x).__name__.replace("ndarray", "array")
        if hasattr(x, "dtype") and x.ndim:
            return f"{kind} {tuple(x.shape)}"
        line = " ".join(repr(x).split())
        if len(line) <= self.maxother:
            return line
        return f"{kind} of {len(x)}" if hasattr(x, "__len__") else f"{kind}(…)"


_BRIEF = _Brief()
