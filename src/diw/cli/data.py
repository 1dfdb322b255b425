"""`diw data`: known data sets, where they are, and whether their files are the published ones."""

from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import Results, takes

if TYPE_CHECKING:
    from diw.data import Benchmark

EXAMPLES = """
\b
Examples:
  diw data                     what is here, and whether it is verified
  diw data fetch cifar-10      download it unless it is here
  diw data check fashion-mnist compare every file with its published checksum
"""


@click.group(invoke_without_command=True, epilog=EXAMPLES)
@takes
@click.pass_context
def data(context: click.Context, results: Results) -> None:
    """List the data sets, fetch them, check them.

    They are looked for in $DIW_DATA, in the cache folder and in
    /usr/share/datasets. Your own data need none of this: give their path
    wherever a data set is expected.
    """
    if context.invoked_subcommand is not None:
        return
    from diw.data import BENCHMARKS
    from diw.data.benchmarks.files import roots

    results.outputs()
    listing = [_embedded(), *map(_state, BENCHMARKS.values())]
    for entry in listing:
        click.echo(f"{entry['name']:15}{entry['state']:11}{entry['title']}")
        click.echo(
            f"{'':15}{entry['folder'] or 'not here; get it with: diw data fetch ' + entry['name']}"
        )
    click.echo(f"looked in: {', '.join(map(str, roots()))}")
    results.write(listing)


@data.command()
@click.argument("name")
@takes
def fetch(name: str, results: Results) -> None:
    """Download data set NAME from its official address, unless it is already here and intact."""
    from diw.data import get_benchmark
    from diw.data.benchmarks.files import fetch as fetch_benchmark

    results.outputs()
    folder = fetch_benchmark(get_benchmark(name), progress=True)
    click.echo(f"{name}: verified in {folder}")
    results.write({"name": name, "folder": str(folder), "state": "verified"})


@data.command()
@click.argument("name")
@takes
def check(name: str, results: Results) -> None:
    """Compare every file of data set NAME with its published checksum."""
    from diw.data import find, get_benchmark
    from diw.data.benchmarks.files import check_folder
    from diw.errors import RunError

    results.outputs()
    benchmark = get_benchmark(name)
    folder = find(benchmark)
    if folder is None:
        raise RunError(f"{name}: not here; get it with: diw data fetch {name}")
    states = check_folder(benchmark, folder)
    for file, state in states.items():
        click.echo(f"{folder / file}: {state}")
    wrong = [file for file, state in states.items() if state != "verified"]
    state = "altered" if wrong else "verified"
    results.write({"name": name, "folder": str(folder), "state": state, "files": states})
    if wrong:
        raise RunError(f"{name}: {len(wrong)} of {len(states)} files are not the published ones")


def _embedded() -> dict[str, Any]:
    from diw.data import EMBEDDED
    from diw.data.benchmarks import readers

    right = readers.digest(readers.read_embedded()) == readers.EMBEDDED_SHA256
    return {
        "name": EMBEDDED,
        "title": "10,000 + 2,000 images of Fashion-MNIST, inside the package (MIT)",
        "folder": str(readers.EMBEDDED_FILE.parent),
        "state": "verified" if right else "altered",
    }


def _state(benchmark: "Benchmark") -> dict[str, Any]:
    from diw.data import find
    from diw.data.benchmarks.files import check_folder

    folder = find(benchmark)
    state = "missing"
    if folder is not None:
        right = set(check_folder(benchmark, folder).values()) == {"verified"}
        state = "verified" if right else "altered"
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "folder": None if folder is None else str(folder),
        "state": state,
    }
