"""The entry point: finds the verb, and turns failures into one line and an exit code.

SIGTERM ends a command with 143, Ctrl-C with 130, also when they come at a bad moment. An exception
raised inside an import, a destructor or a callback can be swallowed by whatever runs there, or
turned into another one. So the signal is remembered: an import is left to finish, the exit is
raised afterwards, again and again until it is heard, and `heard` says what an error that follows
really was.
"""

import atexit
import io
import os
import signal
import sys
from difflib import get_close_matches
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from diw._version import __version__
from diw.errors import RunError, UsageError

VERBS = (
    *("compare", "train", "predict", "evaluate", "audit", "diagnose", "export-weights"),
    *("weights", "trust", "methods", "data", "report"),
)
"""Each is a module of this package (`-` as `_`) that holds a click command of the same name."""

RENAMED = {"verify": "report"}
"""Names of version 0.2, which the module of the verb that took over still holds."""

GIVEN = "diw.given"
"""Under this name click's contexts keep the arguments that were given."""

FILES = ("csv", "npy", "npz", "parquet", "tsv", "txt")
"""Endings that no method's field has."""

REPRODUCE = (
    "reproduce: the paper's results are reproduced in a checkout of the repository of diw, with: "
    "python -m reproduction"
)
"""What the verb of earlier versions says."""

AGAIN = 0.05
"""Seconds after which a postponed signal is looked at again."""

UNHEARD = 5.0
"""Seconds after which an exit that was swallowed is repeated; unwinding takes less."""

EXAMPLES = """
\b
Examples:
  diw compare                                   what label noise costs, what DIW regains
  diw compare --shift pair:0.3 --methods all    every method on another kind of noise
  diw train --data train.csv --trusted trusted.csv --out model
  diw predict model new.csv --out predictions.csv
  diw weights train.csv trusted.csv --out w.csv weights for a table
  diw trust draw train.csv --out check          rows to check, where nothing is trusted yet
  diw methods                                   every method and its fields
"""


class Verbs(click.Group):
    """A group that imports a verb's module when it is asked for."""

    asked: click.Command | None = None
    """The verb in use, so that an error can name its flag."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was given, for commands that go on from here."""
        ctx.meta[GIVEN] = list(args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the verb that a misspelt one may mean."""
        near = get_close_matches(args[0], VERBS, 1)
        if near and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(f"there is no verb {args[0]!r}; did you mean diw {near[0]}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The click command of one verb."""
        if cmd_name == "reproduce":
            raise UsageError(REPRODUCE)
        if cmd_name not in (*VERBS, *RENAMED):
            return None
        name = cmd_name.replace("-", "_")
        self.asked = getattr(import_module(f"diw.cli.{RENAMED.get(name, name)}"), name)
        return self.asked


@click.group(cls=Verbs, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="diw")
def diw() -> None:
    """Importance weighting of deep networks under distribution shift."""
    verb = click.get_current_context().invoked_subcommand
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and verb != "train":
        raise UsageError(f"{verb}: runs in one process; torchrun is for diw train")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line of `diw` and exit, see `run`."""
    run(diw, "diw", arguments)


def run(command: click.Command, program: str, arguments: list[str] | None = None) -> NoReturn:
    """Run a command line and exit; what fails is one line that begins with the program's last word.

    0: done; 1: failed while working; 2: wrong use; 130: Ctrl-C; 143: terminated.
    """
    exit_on_termination()
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character is no failure
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_run(command, program, arguments))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except (Exception, KeyboardInterrupt) as error:
        code, words = _told(error, command)
        click.echo(f"{program.rpartition(' ')[2]}: {' '.join(words.split())}", err=True)
        for line in getattr(error, "commands", ()):
            click.echo(f"  {line}", err=True)
        sys.exit(code)
    finally:
        forget_termination()


def _told(error: BaseException, command: click.Command) -> tuple[int, str]:
    """The exit code and the line of a command that failed; what is a defect of diw is raised."""
    match error:
        case click.ClickException():
            return 2 if isinstance(error, click.UsageError) else 1, error.format_message()
        case UsageError():
            return 2, _naming_the_flag(str(error), command)
        case RunError():
            return 1, str(error)
        case OSError():
            named = error.filename is not None and error.strerror is not None
            return 1, f"{error.filename}: {error.strerror}" if named else str(error)
        case MemoryError():
            words = "use fewer --jobs, a smaller --batch-size or a part of the data"
            return 1, f"not enough memory; {words}"
        case KeyboardInterrupt() | click.Abort():
            if isinstance(error.__cause__, EOFError):  # click takes it for an interrupt
                return 1, f"a file ended too early: {error.__cause__}"
            return 130, "interrupted; the same command goes on where it stopped"
        case _:
            raise error


def _run(command: click.Command, program: str, arguments: list[str] | None) -> int:
    """The exit code of a command that ends by itself."""
    try:
        code: Any = command.main(arguments, prog_name=program, standalone_mode=False)
    except Exception:
        # A library may have made an error of the exception that a signal raises: it is no error.
        if heard() == 130:
            raise KeyboardInterrupt from None
        if heard() is not None:
            sys.exit(heard())
        raise
    return code if isinstance(code, int) else 0


def _naming_the_flag(message: str, command: click.Command) -> str:
    """A library's "shift: …" as the command line's "--shift: …", where the verb has that flag."""
    argument, colon, rest = message.partition(":")
    asked = command.asked if isinstance(command, Verbs) else command
    if not colon or asked is None:
        return message
    verbs = [asked, *getattr(asked, "commands", {}).values()]
    options = (flag for verb in verbs for one in verb.params for flag in one.opts)
    flags = {flag.lstrip("-").replace("-", "_"): flag for flag in options}
    if "set" in flags and _is_field(argument):
        return f"--set {message}"
    flag = flags.get(argument) or flags.get(f"{argument}s")
    return f"{flag}:{rest}" if flag and flag.startswith("-") else message


def _is_field(argument: str) -> bool:
    """Whether `argument` is a METHOD.FIELD, and not the name of a file."""
    from diw.methods import methods

    method, dot, field = argument.partition(".")
    return bool(dot) and method in methods() and field.isidentifier() and field not in FILES


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
