"""`diw methods`: every method in a line, and the fields of those that are named."""

import inspect
from shutil import get_terminal_size
from typing import Any

import click

from diw.cli.options import Results, takes
from diw.config import DEFAULT_METHOD

EXAMPLES = """
\b
Examples:
  diw methods                        every method in a line
  diw methods remember diw           what these two do, and their fields
  diw methods --json methods.json    everything, for a program
"""

WIDTH = 96
"""Text is wrapped to the terminal, and to this where that is wider."""


@click.command(epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]…")
@takes
def methods(names: tuple[str, ...], results: Results) -> None:
    """List the methods, or the fields of those that are named.

    A field is set with --set METHOD.FIELD=VALUE, for example --set diw.bound=10.
    """
    from diw.methods import find
    from diw.methods import methods as all_methods

    results.outputs()
    chosen = [find(name) for name in names] or list(all_methods().values())
    listing = [_described(cls) for cls in chosen]
    for method in listing:
        if names:
            _show(method)
        else:
            title = method["name"] + (" *" if method["default"] else "")
            click.echo(f"{title:<12}{method['summary']}")
    if not names:
        click.echo("\n* the default; diw methods NAME shows the fields of a method")
    results.write(listing)


def _described(cls: type[Any]) -> dict[str, Any]:
    """All that is known of a method, as plain values."""
    from diw.methods import describe

    return {
        "name": cls.name,
        "default": cls.name == DEFAULT_METHOD,
        "aliases": list(cls.aliases),
        "summary": (inspect.getdoc(cls) or "").splitlines()[0],
        "fields": [vars(field) for field in describe(cls)],
    }


def _show(method: dict[str, Any]) -> None:
    """A method with its fields, wrapped to the terminal."""
    also = f" (also called {', '.join(method['aliases'])})" if method["aliases"] else ""
    default = " (the default)" if method["default"] else ""
    click.echo(f"{method['name']}{also}{default}\n    {method['summary']}")
    width = min(WIDTH, get_terminal_size().columns)
    for field in method["fields"]:
        click.echo(f"    {field['name']} = {field['default']!r}")
        text = " ".join(field["text"].split())
        click.echo(click.wrap_text(text, width, " " * 8, " " * 8))
