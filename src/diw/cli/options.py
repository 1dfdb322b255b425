"""Options of the command line: dataclasses, each declared once and taken by the verbs that need it.

A verb says by its parameters what it takes (`takes`); what comes of the options (a setting's data,
a run's network, files of results) is a method of the group.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import click

from diw.errors import UsageError
from diw.outputs import Outputs, create_json

if TYPE_CHECKING:
    from diw.auditing import Audit
    from diw.data import Note
    from diw.predict import Predictor
    from diw.reports.comparison import Comparison
    from diw.reports.learners import Learners
    from diw.runs import Run


class Named(click.Path):
    """A path, which is not empty: that would be the folder one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name."""
        if value == "":
            self.fail("is empty; give a name, or . for this folder", param, ctx)
        return super().convert(value, param, ctx)


FILE = Named(path_type=Path, dir_okay=False)
FOLDER = Named(path_type=Path, file_okay=False)
PATH = Named(path_type=Path)
COUNT = click.IntRange(min=1)
SEED = click.IntRange(min=0)
DEVICES = click.Choice(["auto", "cpu", "cuda", "mps"])


def option(
    default: Any, help: str, flag: str = "", *, kind: Any = None, metavar: str | None = None
) -> Any:
    """A field of a group of options: its default and what `--help` says of it.

    Args:
        default: Its value where it is not given.
        help: What it is for.
        flag: As it is written, if not as the field is called.
        kind: Its type for click, if it is not that of the field; a tuple may be given several
            times.
        metavar: What stands for its value.
    """
    said = {"help": help, "flag": flag, "type": kind, "metavar": metavar}
    return field(default=default, metadata=said)


def takes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of those of its parameters that are dataclasses.

    Their fields are made by `option`; a field that is a dataclass is a group within the group.
    """
    groups = {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}

    @wraps(command)
    def with_groups(**values: Any) -> None:
        command(**{name: _made(kind, values) for name, kind in groups.items()}, **values)

    taken: Callable[..., None] = with_groups
    for decorate in reversed([made for kind in groups.values() for made in _options(kind)]):
        taken = decorate(taken)
    return taken


def _made(group: Any, values: dict[str, Any]) -> Any:
    """The group with its values, which are taken from those of the command."""
    hints = get_type_hints(group)
    return group(
        **{
            entry.name: _made(hints[entry.name], values)
            if is_dataclass(hints[entry.name])
            else values.pop(entry.name)
            for entry in fields(group)
        }
    )


def _options(group: Any) -> Iterator[Callable[[Any], Any]]:
    """The options of a group, in the order of its fields."""
    hints = get_type_hints(group)
    for entry in fields(group):
        kind = hints[entry.name]
        if is_dataclass(kind):
            yield from _options(kind)
            continue
        said = {name: entry.metadata[name] for name in ("help", "type", "metavar")}
        switch, several = kind is bool, get_origin(kind) is tuple
        flag = _flag(entry)
        if said["type"] is None and not switch:
            said["type"] = next(one for one in (*get_args(kind), kind) if one is not NoneType)
        yield click.option(
            flag,
            entry.name,
            default=entry.default,
            is_flag=switch,
            multiple=several,
            show_default=entry.default not in (None, ()) and (not switch or "/" in flag),
            **said,
        )


def _flag(entry: "Field[Any]") -> str:
    """How the option of a field is written."""
    return entry.metadata["flag"] or f"--{entry.name.replace('_', '-')}"


@dataclass(frozen=True)
class Results:
    """What a verb writes beside what it says, and over what."""

    json_file: Path | None = option(
        None, "Also write the results to this JSON file.", "--json", kind=FILE
    )
    force: bool = option(False, "Replace files that diw did not make, or that were edited since.")

    def outputs(self, *reads: Path, runs: "Iterable[Run]" = ()) -> Outputs:
        """The outputs of a verb that reads these files and runs; the JSON file is the first."""
        outputs = Outputs(reads, force=self.force)
        for run in runs:
            outputs.reads_run(run)
        if self.json_file is not None:
            outputs.file(self.json_file, "json")
        return outputs

    def write(self, content: object) -> None:
        """Write `content` where `--json` says, if it says so."""
        if self.json_file is not None:
            create_json(self.json_file, content, force=self.force)


@dataclass(frozen=True)
class Reading:
    """How files are read, and what is said of them."""

    text_encoding: str | None = option(
        None,
        "Characters of CSV files that are not UTF-8: latin-1, cp1252, …",
        "--encoding",
        metavar="NAME",
    )
    verbose: bool = option(False, "Show every note on the data, not one line per file.")

    def say(self, notes: "Iterable[Note]") -> None:
        """Print notes on data to the standard error: one line per file, or with --verbose all."""
        from diw.data.checks import brief

        say(map(str, notes) if self.verbose else brief(notes))


@dataclass(frozen=True)
class Device:
    """Where a network runs."""

    device: str = option(
        "auto", "Where the network runs; auto takes the fastest there is.", kind=DEVICES
    )

    @property
    def name(self) -> str:
        """A device that is there."""
        return read_device(self.device)


@dataclass(frozen=True)
class Network:
    """Where a run's network comes from, and where it runs."""

    where: Device
    model: str | None = option(
        None, "The network, instead of what the run names.", metavar="MODULE:FACTORY"
    )
    trust_model: bool = option(
        False, "Import the network that the run names, MODULE:FACTORY. This runs its code."
    )

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of what takes a run's network."""
        return {"device": self.where.name, "model": self.model, "trust_model": self.trust_model}

    def predictor(self, run: "Run") -> "Predictor":
        """The run's network."""
        from diw.predict import Predictor

        return Predictor.load(run, **self.given)


@dataclass(frozen=True, kw_only=True)
class Forward:
    """How a trained network is given the rows of a file."""

    batch_size: int = option(256, "Rows per forward.", kind=COUNT)
    reading: Reading
    network: Network


@dataclass(frozen=True)
class Waiting:
    """How long other processes are waited for: at the lock of a run, on a cluster."""

    timeout: float | None = option(
        None,
        "Give up after waiting so long for another process.  [default: wait]",
        kind=click.FloatRange(min=0),
        metavar="SECONDS",
    )


@dataclass(frozen=True)
class Shown:
    """What of the user's own data is on a page."""

    samples: bool = option(
        True,
        "With your own data, put images or rows of suspicious labels into the report and its "
        "audit, or only their names.",
        "--samples/--no-samples",
    )

    def claim(self, outputs: Outputs, page: Path) -> None:
        """Refuse `page` and the audit beside it, as far as there is one, as `Outputs.file` does."""
        from diw.auditing.page import FILES
        from diw.reports.page import AUDIT

        outputs.file(page)
        if (page.parent / AUDIT).is_dir():
            outputs.folder(page.parent / AUDIT, *FILES)

    def write(
        self,
        comparisons: "Sequence[Comparison]",
        page: Path,
        learners: "Sequence[Learners]",
        audit: "Audit | None",
        *more: str,
        force: bool,
    ) -> None:
        """Write the report's page and the audit beside it; say where they are, and `more`."""
        from diw.reports.page import AUDIT, write_report

        write_report(comparisons, page, learners, audit, samples=self.samples, force=force)
        lines = [f"\nReport:  {page}", *more]
        if audit is not None:
            holds = " (holds samples of your data; --no-samples leaves them out)"
            told = holds if self.samples else ""
            lines.append(f"Audit:   {page.parent / AUDIT / 'audit.html'}{told}")
        click.echo("\n".join(lines))


@dataclass(frozen=True)
class Checked:
    """Rows of the training data of which the given and the right label are known."""

    verified: Path | None = option(
        None,
        "Rows of the training data whose labels somebody has checked: a CSV with row (counted from "
        "0; for images file) and right, or corrections.csv of the page of `diw audit`.",
        kind=FILE,
        metavar="FILE",
    )


def as_arguments(group: Any) -> list[str]:
    """The options of a group as a command line gives them, without those left at their default."""
    given: list[str] = []
    for entry in fields(group):
        value = getattr(group, entry.name)
        if is_dataclass(value):
            given += as_arguments(value)
        elif value != entry.default:
            flag = _flag(entry).partition("/")[0 if value else 2]
            for one in value if isinstance(value, tuple) else [value]:
                given += [flag] if isinstance(value, bool) else [flag, str(one)]
    return given


def say_next(*commands: Sequence[str]) -> None:
    """End with commands that can be pasted."""
    lines = [f"  {shlex.join(['diw', *command])}" for command in commands]
    click.echo("\n".join(["", "Next:", *lines]))


def say(notes: Iterable[str]) -> None:
    """Print notes for the user to the standard error."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def read_fields(settings: Iterable[str], methods: Sequence[str]) -> dict[str, dict[str, str]]:
    """`--set METHOD.FIELD=VALUE` as fields by canonical method name.

    A text of another form, a method that is not among `methods`, and a field that its method does
    not have or that cannot have this value are a `UsageError`.
    """
    from diw.methods import find, make

    found: dict[str, dict[str, str]] = {method: {} for method in methods}
    for setting in settings:
        place, equals, value = setting.partition("=")
        method, dot, field = place.partition(".")
        if not (equals and dot and method and field):
            raise UsageError(f"set: cannot read {setting!r}; write METHOD.FIELD=VALUE")
        name = find(method).name
        if name not in found:
            raise UsageError(f"set: {name} is not trained here; only {', '.join(methods)}")
        found[name][field] = value
    for name, values in found.items():
        make(name, values)
    return found


def writable_folder(folder: Path, flag: str) -> Path:
    """Make `folder` if need be, or say before any work that nothing can be written there."""
    return Outputs().folder(folder, flag=flag)


def read_device(name: str) -> str:
    """A device that is available; "auto" takes the fastest."""
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available()}
    there["mps"] = torch.backends.mps.is_available()
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    if not there[name]:
        choices = ", ".join(kind for kind, here in there.items() if here)
        raise UsageError(f"device: there is no {name} here; choose auto or {choices}")
    return name
