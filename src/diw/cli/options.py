"""What several verbs share: options, and reading them."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from diw.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)


def json_option(command: Command) -> Command:
    """`--json FILE`, which every verb that reports takes."""
    return click.option("--json", "json_file", type=FILE, help="Write the results here too.")(
        command
    )


def device_option(command: Command) -> Command:
    """`--device`, for `read_device`."""
    return click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        default="auto",
        show_default=True,
    )(command)


def read_fields(settings: Iterable[str]) -> dict[str, dict[str, str]]:
    """`--set METHOD.FIELD=VALUE` as fields by canonical method name.

    An unknown method or a value without `=` is a `UsageError`; fields are
    checked where the method is made.
    """
    from diw.weighting import find

    fields: dict[str, dict[str, str]] = defaultdict(dict)
    for setting in settings:
        place, equals, value = setting.partition("=")
        method, dot, field = place.partition(".")
        if not (equals and dot and method and field):
            raise UsageError(f"set: cannot read {setting!r}; write METHOD.FIELD=VALUE")
        fields[find(method).name][field] = value
    return dict(fields)


def read_device(name: str) -> str:
    """A device that is really there; "auto" takes the fastest."""
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


def writable_file(path: Path | None, flag: str) -> Path | None:
    """Say before any work that a result file cannot be written."""
    if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise UsageError(f"{flag}: cannot write {path}; its folder must exist and be writable")
    return path
