"""The few exceptions and the one warning category that diw raises itself."""

import math
from collections.abc import Sequence
from typing import Any


class UsageError(ValueError):
    """Wrong use: an argument, a file or a flag that cannot work.

    The message is one line that names the argument and says what to do; the
    command line prints it without a traceback and exits with code 2.

    Attributes:
        commands: What to do next, as lines that can be pasted into a terminal.
    """

    def __init__(self, message: str, commands: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.commands = commands


class DamageError(UsageError):
    """A file of a run is not what was written: changed, cut, or lost."""


class RunError(RuntimeError):
    """Something failed while working: a full disk, a loss that became NaN, a broken download."""


class MatchingError(RunError):
    """A matching problem was not solved to its tolerance; the message carries the residuals."""


class DIWWarning(UserWarning):
    """Something went on, but not as asked; the message says what happened instead."""


def one_line(error: Exception) -> str:
    """The message of another library's error on one line, cut to 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def check_fields(
    owner: Any,
    *names: str,
    of: str = "",
    least: float = 0,
    positive: bool = False,
    below: float = math.inf,
) -> None:
    """Refuse a number among the fields of an object that is out of range or NaN, by its name.

    Args:
        owner: Whose fields they are.
        names: Fields that hold a number, or None.
        of: What the fields are said to belong to, such as the name of a method.
        least: The smallest number that is allowed.
        positive: Whether zero, and what is less, is not.
        below: What all numbers are smaller than.
    """
    if below < math.inf:
        words = f"be in {'(' if positive else '['}{least:g}, {below:g})"
    elif positive:
        words = "be positive and finite"
    else:
        words = f"be at least {least:g}" if least else "not be negative"
    for name in names:
        value = getattr(owner, name)
        if value is None or ((value > 0 if positive else value >= least) and value < below):
            continue
        raise UsageError(f"{of}.{name}".lstrip(".") + f": must {words}, and is {value}")
