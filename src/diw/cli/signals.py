"""SIGTERM ends a command with exit code 143, Ctrl-C with 130, also when they come at a bad moment.

An exception raised inside an import, a destructor or a callback can be swallowed by whatever runs
there, or turned into another one. So the signal is remembered: an import is left to finish, the
exit is raised afterwards, again and again until it is heard, and `heard` says what an error
that follows really was.
"""

import atexit
import signal
import sys
from types import FrameType

AGAIN = 0.05
"""Seconds after which a postponed signal is looked at again."""

UNHEARD = 5.0
"""Seconds after which an exit that was swallowed is repeated; unwinding takes less."""


_last: int | None = None
"""The exit code of the last signal."""


def exit_on_termination() -> None:
    """Make SIGTERM raise `SystemExit(143)` in the main thread, at the next safe moment."""
    global _last
    _last = None
    signal.signal(signal.SIGTERM, _terminated)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _terminated)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def heard() -> int | None:
    """The exit code of the last signal; None if there was none."""
    return _last


def forget_termination() -> None:
    """The command is over: do not repeat an exit that was heard, nor interrupt one that is on."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)


def _terminated(_number: int, frame: FrameType | None) -> None:
    global _last
    _last = 143
    importing = _is_importing(frame)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, AGAIN if importing else UNHEARD)
    if not importing:
        sys.exit(143)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    global _last
    _last = 130
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
