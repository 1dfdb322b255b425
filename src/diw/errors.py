"""The few exceptions and the one warning category that diw raises itself."""

from collections.abc import Sequence


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
