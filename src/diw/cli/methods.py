"""`diw methods`: every method, what it does and its fields."""

import inspect
from pathlib import Path
from typing import Any

import click

from diw.cli.options import json_option, write_results
from diw.records.spec import DEFAULT_METHOD

EXAMPLES = """
\b
Examples:
  diw methods
  diw methods --json methods.json    the list for a program
"""


@click.command(epilog=EXAMPLES)
@json_option
def methods(json_file: Path | None) -> None:
    """List every method with a line of explanation and its fields.

    A field is set with --set METHOD.FIELD=VALUE, for example --set diw.bound=10.
    """
    from diw.weighting import describe
    from diw.weighting import methods as all_methods

    listing: list[dict[str, Any]] = [
        {
            "name": name,
            "default": name == DEFAULT_METHOD,
            "aliases": list(cls.aliases),
            "summary": (inspect.getdoc(cls) or "").splitlines()[0],
            "fields": [vars(field) for field in describe(cls)],
        }
        for name, cls in all_methods().items()
    ]
    for method in listing:
        also = f" (also called {', '.join(method['aliases'])})" if method["aliases"] else ""
        default = " (the default)" if method["default"] else ""
        click.echo(f"{method['name']}{also}{default}")
        click.echo(f"    {method['summary']}")
        for field in method["fields"]:
            text = " ".join(field["text"].split())
            click.echo(f"    {field['name']} = {field['default']!r}  {text}")
    write_results(json_file, listing)
