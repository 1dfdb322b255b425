"""What several verbs share: options, checks of what they name, notes and result files."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from diw.errors import UsageError

if TYPE_CHECKING:
    from diw.auditing import Audit
    from diw.data import Note
    from diw.predict import Predictor
    from diw.runs import Run

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


def writable_file(path: Path | None, flag: str) -> Path | None:
    """Say before any work that a result file cannot be written."""
    if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise UsageError(f"{flag}: cannot write {path}; its folder must exist and be writable")
    return path


def _json_file(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse to replace a file that holds something else than results, such as the data."""
    if path is not None and path.is_file():
        with path.open("rb") as file:
            start = file.read(64).lstrip()
        if start and start[:1] not in b"{[":
            raise UsageError(f"json: {path} exists and holds no JSON; choose another name")
    return writable_file(path, "json")


json_option = click.option(
    "--json",
    "json_file",
    type=FILE,
    callback=_json_file,
    help="Also write the results to this JSON file.",
)
"""`--json FILE`, for `write_results`."""

encoding_option = click.option(
    "--encoding",
    "text_encoding",
    metavar="NAME",
    help="Characters of CSV files that are not UTF-8: latin-1, cp1252, …",
)
"""`--encoding`, for the readers of files."""

verbose_option = click.option(
    "--verbose", is_flag=True, help="Show every note on the data, not one line per file."
)
"""`--verbose`, for `say_notes`."""

records_option = click.option(
    "--out", type=FOLDER, default=Path("runs"), show_default=True, help="Folder for run records."
)
"""`--out FOLDER` of the verbs that train many runs."""


timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Give up after waiting so long for another process.  [default: wait]",
)
"""`--timeout SECONDS`: for the locks of runs and the workers of a cluster."""


samples_option = click.option(
    "--samples/--no-samples",
    default=True,
    show_default=True,
    help="With your own data, put images or rows of suspicious labels into the report and its "
    "audit, or only their names.",
)
"""`--no-samples`, for pages that are shared."""


def device_option(default: str = "auto") -> Callable[[Command], Command]:
    """`--device`, for `read_device`."""
    return click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        default=default,
        show_default=True,
        help="Where the network runs; auto takes the fastest there is.",
    )


def model_options(command: Command) -> Command:
    """`--model` and `--trust-model`, for networks that are not diw's own."""
    trust = click.option(
        "--trust-model",
        is_flag=True,
        help="Import the network that the run names, MODULE:FACTORY. This runs its code.",
    )
    own = click.option(
        "--model", metavar="MODULE:FACTORY", help="The network, instead of what the run names."
    )
    return own(trust(command))


@dataclass(frozen=True)
class NetworkOptions:
    """How a trained network is taken from a run and given rows of a file, as options say."""

    batch_size: int
    text_encoding: str | None
    verbose: bool
    device: str
    model: str | None
    trust_model: bool

    def predictor(self, run: "Run") -> "Predictor":
        """The run's network."""
        from diw.predict import Predictor

        where = read_device(self.device)
        return Predictor.load(run, where, model=self.model, trust_model=self.trust_model)


def network_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of verbs that give rows to a trained network; the verb gets them as `network`."""
    names = [field.name for field in fields(NetworkOptions)]

    @wraps(command)
    def with_network(**options: Any) -> None:
        command(network=NetworkOptions(**{name: options.pop(name) for name in names}), **options)

    rows = click.option(
        "--batch-size", type=COUNT, default=256, show_default=True, help="Rows per forward."
    )
    found = device_option()(model_options(with_network))
    return rows(encoding_option(verbose_option(found)))


def write_results(json_file: Path | None, content: object) -> None:
    """Write `content` where `--json` says, if it says so."""
    if json_file is not None:
        from diw.files import write_json

        write_json(json_file, content)


def say(notes: Iterable[str]) -> None:
    """Print notes for the user to the standard error."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def say_notes(notes: "Iterable[Note]", verbose: bool) -> None:
    """Print notes on data to the standard error: one line per file, or with `verbose` all."""
    from diw.data.notes import brief

    say(map(str, notes) if verbose else brief(notes))


def say_audit(found: "Audit | None", folder: Path, *, samples: bool) -> None:
    """Say where the audit of one's own data is, and that it holds samples, if it does."""
    if found is not None:
        holds = " (holds samples of your data; --no-samples leaves them out)"
        click.echo(f"Audit:   {folder / 'audit' / 'audit.html'}{holds if samples else ''}")


def read_fields(settings: Iterable[str]) -> dict[str, dict[str, str]]:
    """`--set METHOD.FIELD=VALUE` as fields by canonical method name.

    An unknown method or a value without `=` is a `UsageError`; fields are
    checked where the method is made.
    """
    from diw.methods import find

    fields: dict[str, dict[str, str]] = defaultdict(dict)
    for setting in settings:
        place, equals, value = setting.partition("=")
        method, dot, field = place.partition(".")
        if not (equals and dot and method and field):
            raise UsageError(f"set: cannot read {setting!r}; write METHOD.FIELD=VALUE")
        fields[find(method).name][field] = value
    return dict(fields)


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


def writable_folder(folder: Path, flag: str) -> Path:
    """Make `folder` if need be, or say before any work that nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{flag}: cannot make {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{flag}: cannot write to {folder}; choose another folder")
    return folder
