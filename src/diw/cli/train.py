"""`diw train`: one method on one data set, into one run."""

import io
import os
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import (
    FOLDER,
    SEED,
    Results,
    Waiting,
    option,
    read_fields,
    say,
    say_next,
    takes,
)
from diw.cli.progress import show_training
from diw.cli.setting import Setting
from diw.config import DEFAULT_METHOD
from diw.errors import DIWWarning, UsageError
from diw.runs import Run, RunSpec, check_claim, claim, holding

if TYPE_CHECKING:
    from diw.data.split import Split
    from diw.reports.summary import Summary
    from diw.step.world import World

EXAMPLES = """
\b
Examples:
  diw train                                          DIW on the embedded data
  diw train --data train.csv --label status --trusted trusted.csv --out model
  diw train --data photos --trusted checked --test test --out model
  diw train --data train.npz --trusted checked-rows.txt --method uniform
  diw train --set bound=10 --epochs 20
  torchrun --nproc-per-node 2 -m diw train           in two processes
"""

DEFAULT_FOLDER = Path("runs/train")
MANY = 10
"""Classes whose sizes are listed one by one; of more only the smallest and largest."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `diw train` can be told."""

    method: str = option(DEFAULT_METHOD, "See `diw methods`.")
    setting: Setting
    seed: int = option(0, "Seed.", kind=SEED)
    settings: tuple[str, ...] = option(
        (),
        "Set a field of the method; may be given more than once.",
        "--set",
        metavar="FIELD=VALUE",
    )
    out: Path | None = option(
        None, f"Folder of the run.  [default: one in {DEFAULT_FOLDER}]", kind=FOLDER
    )
    fresh: bool = option(False, "Replace the run in this folder.")
    waiting: Waiting
    results: Results


@click.command(epilog=EXAMPLES)
@takes
def train(options: Options) -> None:
    """Train one method on one data set.

    The run's folder then holds the network (model.safetensors), how it reads
    files (encoding.json), what was asked (spec.json), the metrics of each epoch
    and each sample's weights. A finished run is only reported; an interrupted
    one goes on where it stopped. Under torchrun the processes share each
    mini-batch.
    """
    from diw.methods import find
    from diw.reports.summary import summarise
    from diw.training.recorded import train_run, with_method

    name = find(options.method).name
    # As diw compare has it, METHOD.FIELD=VALUE is understood, too.
    full = [s if "." in s.partition("=")[0] else f"{name}.{s}" for s in options.settings]
    fields = read_fields(full, [name])[name]
    with _silent_unless_first():
        spec = with_method(options.setting.spec(seed=options.seed), name, fields)
    run = spec.run(DEFAULT_FOLDER) if options.out is None else Run(options.out)
    world = _joined(spec)
    if world.rank:
        train_run(spec, run, world)
        return
    check_claim(spec, run, fresh=options.fresh)
    options.results.outputs(*map(Path, spec.files)).folder(run.folder)
    # Held until it is summarised: another --fresh may be waiting.
    with holding(run.folder, options.waiting.timeout):
        claim(spec, run, fresh=options.fresh)
        _train(spec, run, world)
        summary = summarise(run)
    _report(summary, options.results)


@contextmanager
def _silent_unless_first() -> Generator[None]:
    """Notes on the data are said once, by the first process of those that torchrun started."""
    with ExitStack() as stack:
        if int(os.environ.get("RANK", "0")):
            stack.enter_context(redirect_stderr(io.StringIO()))
        yield


def _joined(spec: RunSpec) -> "World":
    """This process and those that `torchrun` started with it; all but the first are silent."""
    from diw.step.world import joined

    world = joined()
    if world.size > 1 and spec.device != "cpu":
        raise UsageError("device: several processes train on the CPU only; add --device cpu")
    if world.rank:
        warnings.simplefilter("ignore", DIWWarning)
    return world


def _train(spec: RunSpec, run: Run, world: "World") -> None:
    from diw.runs.sources import Source
    from diw.training.recorded import train_run

    if run.finished:
        click.echo(f"{run.folder}: already trained; --fresh trains it again", err=True)
        run.tidy()
        train_run(spec, run, world)  # nothing to do, which the others must hear
        return
    split = Source.of(spec).split
    click.echo(_sizes(split), err=True)
    with show_training([(spec, run)], jobs=1):
        train_run(spec, run, world)


def _sizes(split: "Split") -> str:
    """How many rows, of which classes, are trained on, trusted and scored."""
    trusted = "also trained on" if len(split.trusted_index) else "not trained on"
    chosen = 0 if split.selection is None else len(split.selection)
    return (
        f"data: {len(split.train):,} training rows ({_classes(split.train)}); "
        f"{len(split.trusted):,} trusted, {trusted} ({_classes(split.trusted)}); "
        + (f"{chosen:,} further trusted choose the epoch; " if chosen else "")
        + f"scored on {len(split.test):,} {split.scored_on} rows"
    )


def _classes(part: Any) -> str:
    counts: list[int] = part.class_counts.tolist()
    if len(counts) > MANY:
        return f"{len(counts)} classes of {min(counts):,} to {max(counts):,}"
    return ", ".join(f"{name} {n:,}" for name, n in zip(part.classes, counts, strict=True))


def _report(summary: "Summary", results: Results) -> None:
    from diw.reports.summary import remark, results_json

    run = summary.run
    say(filter(None, [remark(summary)]))
    lines = [
        (f"{summary.scored_on} accuracy", f"{100 * summary.accuracy:.2f}%"),
        ("seconds", f"{summary.seconds:.0f}"),
        ("run", str(run.folder)),
    ]
    if summary.ess is not None:
        lines.insert(1, ("effective sample size", f"{100 * summary.ess:.1f}% of the training rows"))
    if summary.kept_epoch is not None:
        kept = f"{summary.kept_epoch} of {summary.epochs}, by held-out trusted loss"
        lines.insert(1, ("epoch kept", kept))
    if not summary.balanced_classes and summary.balanced_accuracy is not None:
        balanced = f"{100 * summary.balanced_accuracy:.2f}%, the mean over classes"
        lines.insert(1, ("balanced accuracy", balanced))
    width = max(len(name) for name, _ in lines)
    click.echo("\n".join(f"{name:{width}}  {value}" for name, value in lines))
    say_next(["audit", str(run.folder), "--out", "check"], ["evaluate", str(run.folder)])
    results.write(results_json(run.spec_json, [summary]))
