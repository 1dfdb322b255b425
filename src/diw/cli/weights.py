"""`diw weights`: weights for the rows of one file, matched to the rows of another."""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import (
    FILE,
    encoding_option,
    json_option,
    say,
    say_notes,
    verbose_option,
    writable_file,
    write_results,
)
from diw.errors import DIWWarning, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from diw.matching import Match

EXAMPLES = """
\b
Examples:
  diw weights train.csv trusted.csv --out weights.csv
  diw weights losses.npy trusted_losses.npy --out weights.npy --bound 10
  diw weights train.parquet trusted.parquet --drop label --gamma median --out w.parquet
  diw weights train.csv trusted.csv --out weights.csv --estimator entropy
"""

ENDINGS = (".csv", ".npy", ".npz", ".parquet")


@click.command(epilog=EXAMPLES)
@click.argument("train", type=FILE)
@click.argument("trusted", type=FILE)
@click.option(
    "--out", type=FILE, required=True, help=f"File for the weights: {', '.join(ENDINGS)}."
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Leave out a column of a table; may be given more than once.",
)
@click.option(
    "--estimator",
    "solver",
    type=click.Choice(["kmm", "stopped", "el", "entropy", "ulsif", "kliep", "pgd", "isotonic"]),
    default="kmm",
    show_default=True,
    help="What estimates the weights; docs/estimators.md says when which is right.",
)
@click.option(
    "--penalty",
    type=float,
    help="Penalty of el, entropy and ulsif.  [default: chosen by the data]",
)
@click.option("--raw", is_flag=True, help="Do not standardise the columns.")
@click.option(
    "--gamma",
    metavar="NUMBER|RULE",
    help="Width of the kernel exp(-gamma |z-z'|^2): a number, median, quantile:0.01, …  "
    "[default: quantile:0.01 for one column, median for more]",
)
@click.option("--bound", type=float, default=50.0, show_default=True, help="Largest weight.")
@click.option("--slack", type=float, help="How far the mean weight may be from one.")
@click.option("--ridge", type=float, default=1e-5, show_default=True, help="Ridge penalty.")
@click.option("--rank", type=int, help="Largest rank of the kernel; below it the match is exact.")
@click.option("--tol", type=float, default=1e-8, show_default=True, help="Relative residual.")
@encoding_option
@verbose_option
@json_option
def weights(
    train: Path,
    trusted: Path,
    out: Path,
    drop: tuple[str, ...],
    raw: bool,
    gamma: str | None,
    solver: str,
    text_encoding: str | None,
    verbose: bool,
    json_file: Path | None,
    **settings: Any,
) -> None:
    """Weigh the rows of TRAIN so that they match the rows of TRUSTED.

    Kernel mean matching, or another estimator: non-negative weights with mean about one under
    which the training rows look like the trusted ones. Files are .npy, .npz, .csv, .tsv or
    .parquet; columns of numbers are standardised by TRAIN, columns of text become one-hot.
    """
    _check_out(out)
    writable_file(out, "out")
    if out.resolve() in (train.resolve(), trusted.resolve()):
        raise UsageError(f"out: {out} is an input; choose another name")
    import numpy as np

    from diw.data.values import read_values
    from diw.matching import kmm

    pair = read_values(train, trusted, drop=drop, raw=raw, text_encoding=text_encoding)
    say_notes(pair.notes, verbose)
    settings |= {"gamma": _gamma(gamma), "solver": "diw" if solver == "kmm" else solver}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DIWWarning)
        try:
            match = kmm(pair.train, pair.trusted, **settings)
        except ValueError as error:
            raise UsageError(str(error)) from None
    say(str(warning.message) for warning in caught)
    values = np.asarray(match.weights, dtype=np.float64)
    _write(out, values)
    summary = _summary(values, match, float(settings["bound"]), len(pair.trusted))
    for name, value in summary.items():
        if value is None:
            continue
        shown = f"{value:.6g}" if isinstance(value, float) else value
        click.echo(f"{name.replace('_', ' '):22} {shown}")
    click.echo(f"{'weights':22} {out}")
    write_results(json_file, summary)


def _check_out(out: Path) -> None:
    if out.suffix.lower() not in ENDINGS:
        raise UsageError(f"out: cannot write {out.name}; choose one of {', '.join(ENDINGS)}")
    if out.suffix.lower() == ".parquet":
        from importlib.util import find_spec

        if find_spec("pyarrow") is None:
            raise UsageError(f"out: {out.name} needs pyarrow: install diw with the extra 'parquet'")


def _gamma(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _summary(weights: "NDArray[Any]", match: "Match", bound: float, trusted: int) -> dict[str, Any]:
    """What to know about the weights before using them."""
    from diw.diagnostics import effective_sample_size

    return {
        "rows": len(weights),
        "trusted_rows": trusted,
        "status": match.status,
        "effective_sample_size": effective_sample_size(weights),
        "share_at_zero": float((weights == 0).mean()),
        "share_at_bound": float((weights >= bound * (1 - 1e-6)).mean()),
        "largest": float(weights.max()),
        "mean": float(weights.mean()),
        "gamma": match.gamma,
        "penalty": match.penalty,
        "rank": match.rank,
        "iterations": match.iterations,
        "objective": match.objective,
        "error_bound": match.error_bound if match.error_bound < math.inf else None,
        "trace_error": match.trace_error,
    }


def _write(path: Path, weights: "NDArray[Any]") -> None:
    """The weights in the order of the training rows; the file appears when it is whole."""
    import numpy as np

    from diw.records import replacing

    with replacing(path) as temporary, temporary.open("wb") as file:
        match path.suffix.lower():
            case ".csv":
                np.savetxt(file, weights, fmt="%.17g", header="weight", comments="")
            case ".npy":
                np.save(file, weights)
            case ".npz":
                np.savez_compressed(file, weights=weights)
            case _:
                import pyarrow
                import pyarrow.parquet

                table: Any = pyarrow.table({"weight": weights})
                pyarrow.parquet.write_table(table, file)
