"""The setting that training verbs share: which data, which shift, which network, how trained."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import click

from diw.cli.options import (
    COUNT,
    Command,
    device_option,
    encoding_option,
    read_device,
    say_notes,
    verbose_option,
)
from diw.records import Recipe, RunSpec

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
        _recipe_option("epochs", COUNT, "Passes over the training data."),
        _recipe_option("batch_size", COUNT, "Training samples per step."),
        _recipe_option("optimizer", click.Choice(["sgd", "adam"]), "SGD with momentum, or Adam."),
        _recipe_option("lr", POSITIVE, "Learning rate, for the sum of the losses of a batch."),
        _recipe_option("schedule", str, "constant, step:EPOCHS:FACTOR or exponential:FACTOR."),
        _recipe_option("weight_decay", click.FloatRange(min=0), "L2 penalty of the optimizer."),
        encoding_option,
        verbose_option,
        device_option(),
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _recipe_option(name: str, kind: Any, text: str) -> Callable[[Any], Any]:
    """The option of a field of the recipe, with the field's default."""
    default = getattr(DEFAULT, name)
    flag = f"--{name.replace('_', '-')}"
    return click.option(flag, type=kind, default=default, show_default=True, help=text)


def read_setting(
    *,
    device: str,
    model: str,
    seed: int,
    trusted: str,
    shift: str | None,
    simulated: str,
    verbose: bool,
    **options: Any,
) -> RunSpec:
    """The spec of the options' setting, its data read and checked, without a method yet.

    What cannot work (a missing file, too many trusted samples, a shift that leaves
    nothing) fails here, before any training; notes for the user are printed.
    `simulated` is the shift that is simulated where none is named; never on the user's own data.
    """
    from diw.experiments.sources import is_own, load_bundle, load_split, stamp
    from diw.models import default_model, make_model

    recipe = {f.name: options.pop(f.name) for f in fields(Recipe) if f.name in options}
    spec = stamp(
        RunSpec(
            **options,
            shift=shift or ("none" if is_own(options["data"]) else simulated),
            trusted=int(trusted) if trusted.isdecimal() else trusted,
            model=model,
            recipe=replace(DEFAULT, **recipe),
            device=read_device(device),
            seed=seed,
        )
    )
    bundle = load_bundle(spec, progress=True)
    say_notes(bundle.notes, verbose)
    split = load_split(spec)
    spec = replace(spec, model=default_model(bundle) if model == "auto" else model)
    make_model(spec.model, shape=split.train.shape, num_classes=split.train.num_classes, seed=0)
    return spec
