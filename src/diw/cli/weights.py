"""`diw weights`: weights for the rows of one file, matched to the rows of another."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import FILE, PATH, Reading, Results, Waiting, option, say, takes
from diw.errors import DIWWarning, RunError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from diw.data.values import ValuePair
    from diw.matching import Estimator

EXAMPLES = """
\b
Examples:
  diw weights train.csv trusted.csv --out weights.csv
  diw weights train_losses.npy trusted_losses.npy --out weights.npy --bound 10
  diw weights train.parquet trusted.parquet --gamma median --out w.parquet
  diw weights train.csv trusted.csv --out weights.csv --estimator entropy
  diw weights folder-of-parquet trusted.parquet --drop label --out weights.npy
  diw weights train.csv target.csv --out weights.csv --by-class
"""

ESTIMATORS = ("kmm", "stopped", "entropy", "chi2", "ulsif", "logistic", "isotonic")
OLD_ESTIMATORS = {"el": "entropy", "kliep": "logistic"}
"""Of version 0.2, with what is closer to the ratio; they go with 1.0."""
LARGE = 1 << 30
"""Bytes of an .npy file from which on it is read in parts."""
SHOWN = 10
"""Classes whose shares are shown."""
ENDINGS = (".csv", ".npy", ".npz", ".parquet")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `diw weights` can be told."""

    label: str | None = option(
        None,
        "The column of labels, which is left out.  [default: label, y, target or class]",
        metavar="COLUMN",
    )
    keep_label: bool = option(False, "Match the labels, as any other column.")
    drop: tuple[str, ...] = option(
        (), "Leave out a column of a table; may be given more than once.", metavar="COLUMN"
    )
    estimator: str = option(
        "kmm",
        "What estimates the weights; docs/estimators.md says when which is right.",
        kind=click.Choice([*ESTIMATORS, *OLD_ESTIMATORS]),
        metavar=f"[{'|'.join(ESTIMATORS)}]",
    )
    penalty: float | None = option(
        None, "Penalty of entropy, chi2, ulsif and logistic.  [default: chosen by the data]"
    )
    by_class: bool = option(
        False, "Weigh by class, for other class shares in TRUSTED, which needs no labels."
    )
    raw: bool = option(False, "Do not standardise the columns.")
    gamma: str | None = option(
        None,
        "Width of the kernel exp(-gamma |z-z'|^2): a number, median, quantile:0.01, …  "
        "[default: quantile:0.01 for one column, median for more]",
        metavar="NUMBER|RULE",
    )
    bound: float | None = option(None, "Largest weight.  [default: 50]")
    slack: float | None = option(None, "How far the mean weight may be from one.")
    ridge: float | None = option(None, "Ridge penalty of kmm.  [default: 1e-5]")
    rank: int | None = option(None, "Largest rank of the kernel; below it the match is exact.")
    tol: float | None = option(None, "Relative residual.  [default: 1e-8]")
    in_parts: bool = option(False, "Read TRAIN in parts, also if it would fit.")
    scheduler: str | None = option(None, "Read the parts on a dask cluster.", metavar="ADDRESS")
    waiting: Waiting
    reading: Reading
    results: Results

    @property
    def settings(self) -> dict[str, Any]:
        """What the estimator is told, as far as it is given."""
        names = ("penalty", "bound", "slack", "ridge", "rank", "tol")
        given = {name: getattr(self, name) for name in names} | {"gamma": _gamma(self.gamma)}
        return {name: value for name, value in given.items() if value is not None}


@click.command(epilog=EXAMPLES)
@click.argument("train", type=PATH)
@click.argument("trusted", type=FILE)
@click.option(
    "--out", type=FILE, required=True, help=f"File for the weights: {', '.join(ENDINGS)}."
)
@takes
def weights(train: Path, trusted: Path, out: Path, options: Options) -> None:
    """Weigh the rows of TRAIN so that they match the rows of TRUSTED.

    Kernel mean matching, or another estimator: non-negative weights with mean about one under
    which the training rows look like the trusted ones. This is for inputs that come from another
    source (covariate shift). It looks at single rows, not at whether labels fit them: to find wrong
    labels, use `diw train` and `diw audit`. Files are .npy, .npz, .csv, .tsv or
    .parquet; columns of numbers are standardised by TRAIN, columns of text become one-hot.

    With --by-class only the classes' shares may differ, and TRAIN has labels: the shares of TRUSTED
    are estimated from the inputs, and the assumption is tested. Where more differs, all weights are
    one.

    TRAIN may also be a folder of .parquet or .npy files with numbers. It is then read in parts,
    as often as needed, and so is an .npy file of more than a gigabyte; the weights are
    written as .npy.
    """
    _check_out(out)
    results, name = options.results, options.estimator
    results.outputs(train, trusted).file(out)
    if name in OLD_ESTIMATORS:
        say([f"estimator: {name} goes with diw 1.0; {OLD_ESTIMATORS[name]} is taken instead"])
        name = OLD_ESTIMATORS[name]
    if options.by_class and (options.settings or name != "kmm" or options.keep_label):
        unused = next(iter(options.settings), "keep_label" if options.keep_label else "estimator")
        raise UsageError(f"{unused}: --by-class does not use it; leave it out")
    if options.in_parts or options.scheduler is not None or _is_large(train):
        if options.by_class:
            raise UsageError("by-class: needs all of TRAIN in memory")
        if name != "kmm":
            raise UsageError(f"estimator: {name} needs all of TRAIN in memory; only kmm does not")
        with warnings.catch_warnings():
            _say_summary(_in_parts(train, trusted, out, options), out, results)
        return
    from diw.data.values import read_values

    pair = read_values(
        train,
        trusted,
        drop=options.drop,
        raw=options.raw,
        text_encoding=options.reading.text_encoding,
        label=options.label,
        keep_label=options.keep_label,
    )
    options.reading.say(pair.notes)
    if options.by_class:
        values, summary = _by_class(train, pair, options)
    else:
        values, summary = _by_row(pair, _estimator(name, options.settings))
        if not values.any():
            words = f"no row of {train} is like these, so that all weights are zero"
            raise RunError(f"{trusted}: {words}")
    _write(out, values, force=results.force)
    _say_summary(summary, out, results)


@contextmanager
def _telling() -> Generator[None]:
    """Say warnings of the library as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DIWWarning)
        yield
    say(str(warning.message) for warning in caught)


def _by_row(pair: "ValuePair", estimator: "Estimator") -> tuple["NDArray[Any]", dict[str, Any]]:
    """Weights of an estimator, with what to know of them."""
    import numpy as np

    with _telling():
        try:
            estimator.fit(pair.train, pair.trusted)
        except ValueError as error:
            raise UsageError(str(error)) from None
    values = np.asarray(estimator.weights_, dtype=np.float64)
    return values, _summary(values, estimator, len(pair.trusted))


def _by_class(
    train: Path, pair: "ValuePair", options: Options
) -> tuple["NDArray[Any]", dict[str, Any]]:
    """Weights by class, with what is known of the shares of the classes."""
    from diw.auditing.class_shares import class_shares, shares_lines
    from diw.data.values import read_labels
    from diw.metrics import effective_sample_size

    names = read_labels(train, options.label, options.reading.text_encoding)
    vectors, target = (values.reshape(len(values), -1) for values in (pair.train, pair.trusted))
    with _telling():
        found, classes = class_shares(vectors, names, target)
    return found.weights_, {
        "rows": len(vectors),
        "trusted_rows": len(target),
        "status": found.status_,
        "class_shares": "; ".join(shares_lines(found, classes)[:SHOWN]),
        "p_value": found.p_value_,
        "worth_labels_of_rows": round(found.labels_worth_),
        "effective_sample_size": effective_sample_size(found.weights_),
        "largest": float(found.weights_.max()),
    }


def _estimator(name: str, settings: dict[str, Any]) -> "Estimator":
    """The estimator of that name; a setting that it does not have is refused."""
    from diw import matching

    if name == "stopped":
        settings = {**settings, "solver": "stopped"}
    classes = {"kmm": "KMM", "stopped": "KMM", "ulsif": "ULSIF"}
    estimator: Estimator = getattr(matching, classes.get(name, name.capitalize()))()
    for setting in settings:
        if setting not in estimator.get_params():
            raise UsageError(f"{setting}: {name} does not use it; leave it out")
    return estimator.set_params(**settings)


def _say_summary(summary: dict[str, Any], out: Path, results: Results) -> None:
    for name, value in summary.items():
        if value is None:
            continue
        shown = f"{value:.6g}" if isinstance(value, float) else value
        click.echo(f"{name.replace('_', ' '):22} {shown}")
    click.echo(f"{'weights':22} {out}")
    results.write(summary)


def _is_large(train: Path) -> bool:
    array = train.suffix.lower() == ".npy"
    return train.is_dir() or (array and train.is_file() and train.stat().st_size > LARGE)


def _labels(train: Path, options: Options) -> tuple[str, ...]:
    """The column of labels, if it is not matched; says so."""
    from diw.data.values import label_column

    name = None if options.keep_label else label_column(train, options.label)
    if name is None or name in options.drop:
        return ()
    say([f"{train}: column {name!r} left out: it holds the labels; --keep-label matches it"])
    return (name,)


def _in_parts(train: Path, trusted: Path, out: Path, options: Options) -> dict[str, Any]:
    """Match a training set that is read in parts, here or on a cluster; the summary."""
    from contextlib import ExitStack
    from dataclasses import asdict

    import numpy as np

    from diw.data.values import find_parts, moments_of, standardised, with_places
    from diw.matching import kmm_blocks
    from diw.outputs import creating

    if out.suffix.lower() != ".npy":
        raise UsageError(f"out: rows that are read in parts get weights as .npy, not {out.name}")
    left_out = options.drop, _labels(train, options)
    parts, theirs = find_parts(train, *left_out), find_parts(trusted, *left_out)
    if (parts[0].columns is None) != (theirs[0].columns is None):
        raise UsageError(f"{trusted}: give both as arrays, or both as tables, like {train}")
    if parts[0].columns != theirs[0].columns:
        raise UsageError(f"{trusted}: has other columns than {train}, or in another order")
    with ExitStack() as stack:
        spread = map
        if options.scheduler is not None:
            from diw.training.many import spread_on_cluster

            cluster = spread_on_cluster(options.scheduler, options.waiting.timeout)
            spread = stack.enter_context(cluster)
        temporary = stack.enter_context(creating(out, force=options.results.force))
        parts = with_places(parts, temporary)
        values = np.concatenate([part.read() for part in theirs])
        if values.ndim == 2 and not options.raw:
            parts, shift, factor = standardised(parts, list(spread(moments_of, parts)))
            if len(shift) != values.shape[1]:
                raise UsageError(
                    f"{trusted}: {values.shape[1]} columns, but {train} has {len(shift)}"
                )
            values = (values - shift) * factor
        try:
            found = kmm_blocks(parts, values, map=spread, **options.settings)
        except ValueError as error:
            raise UsageError(str(error)) from None
    return {**asdict(found), "trusted_rows": len(values)}


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


def _summary(weights: "NDArray[Any]", estimator: "Estimator", trusted: int) -> dict[str, Any]:
    """What to know about the weights before using them."""
    from diw.metrics import effective_sample_size

    bound = float(estimator.get_params()["bound"])
    match = getattr(estimator, "match_", None)
    of_match = ("rank", "iterations", "objective", "error_bound", "trace_error")
    return {
        "rows": len(weights),
        "trusted_rows": trusted,
        "status": estimator.status_,
        "effective_sample_size": effective_sample_size(weights),
        "share_at_zero": float((weights == 0).mean()),
        "share_at_bound": float((weights >= bound * (1 - 1e-6)).mean()),
        "largest": float(weights.max()),
        "mean": float(weights.mean()),
        "gamma": getattr(estimator, "gamma_", None),
        "penalty": getattr(estimator, "penalty_", None),
        **{name: getattr(match, name) for name in of_match if match is not None},
    }


def _write(path: Path, weights: "NDArray[Any]", *, force: bool) -> None:
    """The weights in the order of the training rows; the file appears when it is whole."""
    import numpy as np

    from diw.outputs import creating

    with creating(path, force=force) as temporary, temporary.open("wb") as file:
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
