"""Options of the command line: dataclasses, each declared once and taken by the verbs that need it.

A verb says by its parameters what it takes (`takes`); what comes of the options (a setting's data,
a run's network, files of results) is a method of the group.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import click

from diw.errors import UsageError
from diw.outputs import Outputs, create_json
from diw.runs import Recipe, RunSpec

if TYPE_CHECKING:
    from diw.auditing import Audit
    from diw.data import Bundle, Note
    from diw.predict import Predictor
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

DEFAULT = Recipe()
CHECKED = 100
"""Rows that somebody without trusted samples is told to check."""
MANY = 10
"""Classes that are named one by one."""
SIMULATED = "symmetric:0.4"
"""What `diw compare` does to data sets with a name where no shift is named."""


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


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which samples, and which of them are trusted."""

    data: str = option(
        "embedded",
        "A data set's name (see `diw data`), an .npz, .npy, .csv or .parquet file, or a folder of "
        "images with a subfolder for each class.",
    )
    trusted: str | None = option(
        None,
        "Trusted samples: how many to draw from clean ones, a file, or row numbers.  "
        "[default: 500]",
        metavar="N|N/class|FILE|rows:…",
    )
    checked: Checked
    label: str | None = option(None, "Column or array with the labels.", metavar="COLUMN")

    @property
    def verified(self) -> str | None:
        """The file of verified rows, which are the trusted ones then."""
        file = self.checked.verified
        if file is not None and self.trusted is not None:
            raise UsageError("verified: these rows are the trusted ones; leave --trusted out")
        return None if file is None else str(file)

    @property
    def chosen(self) -> str | None:
        """The trusted samples, as given or by default; None where rows are verified."""
        return None if self.verified is not None else self.trusted or "500"

    @contextmanager
    def needing_trusted(self, bundle: "Bundle") -> Generator[None]:
        """Say how to get trusted samples where there are none to draw and none were given."""
        try:
            yield
        except UsageError as error:
            if self.trusted is not None or not str(error).startswith("trusted: no rows"):
                raise
            raise _no_trusted(self.data, bundle) from None


def _no_trusted(data: str, bundle: "Bundle") -> UsageError:
    """There are no trusted samples: two commands that lead to some, and go on with them."""
    rows, checked = len(bundle.train), "checked.txt"
    words = f"trusted: none are given, and no rows of {data} are marked clean."
    if Path(data).is_dir():
        checked = "checked"
        classes = bundle.train.classes if len(bundle.train.classes) <= MANY else ("CLASS",)
        first = shlex.join(["mkdir", "-p", *(f"{checked}/{name}" for name in classes)])
        words += " Put images that you have looked at into folders of their right class:"
    else:
        number = min(CHECKED, max(1, rows // 4))
        draw = f"print(*sorted(random.sample(range({rows}), {number})), sep='\\n')"
        first = f'python -c "import random; {draw}" > {checked}'
        words += " Draw rows to look at, counted from 0, and correct their labels in the file:"
    given = click.get_current_context().meta.get("diw.given", [])
    return UsageError(words, [first, shlex.join(["diw", *given, "--trusted", checked])])


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


def _of_recipe(name: str, kind: Any, text: str, own: str) -> Any:
    """The option of a field of the recipe; its default depends on whose data they are."""
    shown = f"  [default: {getattr(DEFAULT, name)}; with your files {own}]"
    return option(None, text + shown, kind=kind)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What training verbs share: which data, which shift, which network, how trained."""

    source: Data
    test: str | None = option(None, "Test samples, for your own data.", metavar="FILE")
    corrections: str | None = option(
        None,
        "Labels that you have checked: corrections.csv, from the page of `diw audit`.",
        metavar="FILE",
    )
    allow_leaks: bool = option(False, "Accept test samples seen in training.")
    shift: str | None = option(
        None,
        "What is done to the training data: none, symmetric:RATE, pair:RATE, prior:MINORITY,RATIO "
        f"and others, joined by +.  [default: none; for data sets with a name compare takes "
        f"{SIMULATED}]",
    )
    model: str = option("auto", "lenet5, resnet32, mlp, or your own as module:factory.")
    epochs: int | None = _of_recipe("epochs", COUNT, "Passes over the training data.", "by steps")
    steps: int | None = option(
        None, "Steps of the optimizer instead of epochs, for your files.", kind=COUNT
    )
    batch_size: int | None = _of_recipe(
        "batch_size", COUNT, "Training samples per step.", "32 to 256, by size"
    )
    optimizer: str | None = _of_recipe(
        "optimizer",
        click.Choice(["sgd", "adam", "adamw"]),
        "SGD with momentum, Adam or AdamW.",
        "adamw",
    )
    lr: float | None = _of_recipe(
        "lr",
        click.FloatRange(min=0, min_open=True),
        "Learning rate for the sum of a batch's losses, with your files for their mean.",
        "0.001",
    )
    schedule: str | None = _of_recipe(
        "schedule", str, "constant, cosine, step:EPOCHS:FACTOR or exponential:FACTOR.", "cosine"
    )
    weight_decay: float | None = _of_recipe(
        "weight_decay",
        click.FloatRange(min=0),
        "L2 penalty of the optimizer.",
        "0.01 to 10, by size",
    )
    selection: float | None = option(
        None,
        "Share of the trusted samples that is held out to choose the epoch whose network is kept; "
        "0 keeps the last.  [default: 0; with your files 0.3 if there are enough]",
        kind=click.FloatRange(0, 1, max_open=True),
    )
    reading: Reading
    where: Device

    def spec(self, *, seed: int, simulated: str = "none") -> RunSpec:
        """The spec of the setting, its data read and checked, without a method yet.

        What cannot work (a missing file, too many trusted samples, a shift that leaves
        nothing) fails here, before any training; notes for the user are printed.
        `simulated` is done to data sets with a name where no shift is named; never to the user's.
        """
        from diw.models import default_model, make_model
        from diw.runs.sources import Source, is_own, stamp
        from diw.runs.spec import PATIENCE, fit_recipe, held_out_share

        given = {entry.name: getattr(self, entry.name, None) for entry in fields(Recipe)}
        recipe = {name: value for name, value in given.items() if value is not None}
        own = is_own(self.source.data)
        if self.steps is not None and not own:
            raise UsageError("steps: are for your own files; give --epochs")
        trusted = self.source.chosen
        spec = stamp(
            RunSpec(
                data=self.source.data,
                trusted=int(trusted) if trusted and trusted.isdecimal() else trusted,
                verified=self.source.verified,
                label=self.source.label,
                test=self.test,
                corrections=self.corrections,
                allow_leaks=self.allow_leaks,
                text_encoding=self.reading.text_encoding,
                shift=self.shift or ("none" if own or self.source.verified else simulated),
                model=self.model,
                recipe=replace(DEFAULT, **recipe, patience=PATIENCE if self.selection else None),
                device=self.where.name,
                seed=seed,
            )
        )
        source = Source.of(spec)
        source.progress = True
        bundle = source.bundle
        self.reading.say(bundle.notes)
        with self.source.needing_trusted(bundle):
            split = source.split
        if spec.corrections is not None:
            click.echo(f"corrections: {split.facts['corrections']}", err=True)
        if own:
            columns = split.train.shape[0] if bundle.kind == "table" else None
            fitted = fit_recipe(len(split.train), recipe, self.steps, columns=columns)
            spec = replace(spec, recipe=fitted)
        selection = self.selection
        if selection is None:
            selection = held_out_share(len(split.trusted)) if own else 0.0
        if selection:
            spec = replace(spec, selection=selection)
            split = Source.of(spec).split
        if self.model == "auto":
            spec = replace(spec, model=default_model(bundle, on_cpu=own and spec.device == "cpu"))
            if spec.model != default_model(bundle):
                say([f"{spec.model} is taken for a CPU; --model {default_model(bundle)} is larger"])
        shape, classes = split.train.shape, split.train.num_classes
        make_model(spec.model, shape=shape, num_classes=classes, seed=0)
        return spec


def say(notes: Iterable[str]) -> None:
    """Print notes for the user to the standard error."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


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
