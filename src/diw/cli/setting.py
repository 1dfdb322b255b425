"""The setting that training verbs share: which data, which shift, which network, how trained."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import click

from diw.cli.options import (
    COUNT,
    Command,
    device_option,
    encoding_option,
    read_device,
    say,
    say_notes,
    verbose_option,
)
from diw.errors import UsageError
from diw.runs import Recipe, RunSpec

DEFAULT = Recipe()
POSITIVE = click.FloatRange(min=0, min_open=True)


def setting_options(*, shift: str) -> Callable[[Command], Command]:
    """The options of a setting, `--shift` with this default; `read_setting` takes them all."""
    options = [
        click.option(
            "--data",
            default="embedded",
            show_default=True,
            help="A data set's name (see `diw data`), an .npz, .npy, .csv or .parquet file, or a "
            "folder of images with a subfolder for each class.",
        ),
        click.option(
            "--trusted",
            default="500",
            show_default=True,
            metavar="N|N/class|FILE|rows:…",
            help="Trusted samples: how many to draw from clean ones, a file, or row numbers.",
        ),
        click.option("--test", metavar="FILE", help="Test samples, for your own data."),
        click.option("--label", metavar="COLUMN", help="Column or array with the labels."),
        click.option(
            "--corrections",
            metavar="FILE",
            help="Labels that you have checked: corrections.csv, from the page of `diw audit`.",
        ),
        click.option("--allow-leaks", is_flag=True, help="Accept test samples seen in training."),
        click.option(
            "--shift",
            help="What is done to the training data: none, symmetric:RATE, pair:RATE, "
            "prior:MINORITY,RATIO and others, joined by +.  [default: none"
            + (f" with files of your own, else {shift}]" if shift != "none" else "]"),
        ),
        click.option(
            "--model",
            default="auto",
            show_default=True,
            help="lenet5, resnet32, mlp, or your own as module:factory.",
        ),
        _recipe_option("epochs", COUNT, "Passes over the training data.", "by steps"),
        click.option(
            "--steps", type=COUNT, help="Steps of the optimizer instead of epochs, for your files."
        ),
        _recipe_option("batch_size", COUNT, "Training samples per step.", "32 to 256, by size"),
        _recipe_option(
            "optimizer",
            click.Choice(["sgd", "adam", "adamw"]),
            "SGD with momentum, Adam or AdamW.",
            "adamw",
        ),
        _recipe_option(
            "lr",
            POSITIVE,
            "Learning rate for the sum of a batch's losses, with your files for their mean.",
            "0.001",
        ),
        _recipe_option(
            "schedule",
            str,
            "constant, cosine, step:EPOCHS:FACTOR or exponential:FACTOR.",
            "cosine",
        ),
        _recipe_option(
            "weight_decay",
            click.FloatRange(min=0),
            "L2 penalty of the optimizer.",
            "0.01 to 10, by size",
        ),
        click.option(
            "--selection",
            type=click.FloatRange(0, 1, max_open=True),
            help="Share of the trusted samples that is held out to choose the epoch whose network "
            "is kept; 0 keeps the last.  [default: 0; with your files 0.3 if there are enough]",
        ),
        encoding_option,
        verbose_option,
        device_option(),
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def say_time(specs: Sequence[RunSpec], *, jobs: int) -> None:
    """Say about how long these runs will take, from a few steps of each method."""
    if not specs:
        return
    from diw.experiments.estimate import Stopwatch

    seconds = Stopwatch().seconds(specs) / min(jobs, len(specs))
    passes = specs[0].recipe.epochs * (specs[0].recipe.passes or 1)
    over = f"{passes:,} {'pass' if passes == 1 else 'passes'} over the data"
    each = "" if len(specs) == 1 else f" for {len(specs)} runs"
    click.echo(f"time: about {_duration(seconds)}{each}; up to {over}", err=True)


def _duration(seconds: float) -> str:
    """`40 seconds`, `12 minutes`, `3 hours`: no more digits than an estimate has."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    whole = max(1, round(seconds, -1 if seconds > 20 else None))
    return "a second" if whole == 1 else f"{whole:.0f} seconds"


def _recipe_option(name: str, kind: Any, text: str, own: str) -> Callable[[Any], Any]:
    """The option of a field of the recipe; its default depends on whose data they are."""
    shown = f"  [default: {getattr(DEFAULT, name)}; with your files {own}]"
    return click.option(f"--{name.replace('_', '-')}", type=kind, help=text + shown)


def read_setting(
    *,
    device: str,
    model: str,
    seed: int,
    trusted: str,
    shift: str | None,
    simulated: str,
    verbose: bool,
    selection: float | None,
    steps: int | None,
    **options: Any,
) -> RunSpec:
    """The spec of the options' setting, its data read and checked, without a method yet.

    What cannot work (a missing file, too many trusted samples, a shift that leaves
    nothing) fails here, before any training; notes for the user are printed.
    `simulated` is the shift that is simulated where none is named; never on the user's own data.
    """
    from diw.experiments.fitting import PATIENCE, fit_recipe, held_out_share
    from diw.experiments.places import is_own
    from diw.experiments.sources import load_bundle, load_split, stamp
    from diw.models import default_model, make_model

    named = {f.name: options.pop(f.name) for f in fields(Recipe) if f.name in options}
    recipe = {name: value for name, value in named.items() if value is not None}
    own = is_own(options["data"])
    if steps is not None and not own:
        raise UsageError("steps: are for your own files; give --epochs")
    spec = stamp(
        RunSpec(
            **options,
            shift=shift or ("none" if own else simulated),
            trusted=int(trusted) if trusted.isdecimal() else trusted,
            model=model,
            recipe=replace(DEFAULT, **recipe, patience=PATIENCE if selection else None),
            device=read_device(device),
            seed=seed,
        )
    )
    bundle = load_bundle(spec, progress=True)
    say_notes(bundle.notes, verbose)
    split = load_split(spec)
    if spec.corrections is not None:
        click.echo(f"corrections: {split.facts['corrections']}", err=True)
    if own:
        columns = split.train.shape[0] if bundle.kind == "table" else None
        fitted = fit_recipe(len(split.train), recipe, steps, columns=columns)
        spec = replace(spec, recipe=fitted)
    if selection is None:
        selection = held_out_share(len(split.trusted)) if own else 0.0
    if selection:
        spec = replace(spec, selection=selection)
        split = load_split(spec)
    if model == "auto":
        spec = replace(spec, model=default_model(bundle, on_cpu=own and spec.device == "cpu"))
        if spec.model != default_model(bundle):
            say([f"{spec.model} is taken for a CPU; --model {default_model(bundle)} is larger"])
    make_model(spec.model, shape=split.train.shape, num_classes=split.train.num_classes, seed=0)
    return spec
