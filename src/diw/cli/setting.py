"""What training is given: which samples, which of them are trusted, which shift, which recipe."""

import shlex
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import COUNT, Checked, Device, Reading, option, say
from diw.errors import UsageError
from diw.runs import Recipe, RunSpec

if TYPE_CHECKING:
    from diw.data import Bundle

DEFAULT = Recipe()
CHECKED = 100
"""Rows that somebody without trusted samples is told to check."""
SIMULATED = "symmetric:0.4"
"""What `diw compare` does to data sets with a name where no shift is named."""


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
            raise _no_trusted(self.data, self.label, bundle) from None


def _no_trusted(data: str, label: str | None, bundle: "Bundle") -> UsageError:
    """There are no trusted samples: two commands that lead to some, and go on with them."""
    words = (
        f"trusted: none are given, and no rows of {data} are marked clean. Draw rows, check them "
        "on the page check/check.html, save verified.csv beside it, and go on with those:"
    )
    rows, classes = min(CHECKED, max(1, len(bundle.train) // 2)), len(bundle.train.classes)
    way = [] if 2 * classes <= rows else ["--way", "random"]
    named = [] if label is None else ["--label", label]
    number = ["-n", str(rows), *way]
    first = ["diw", "trust", "draw", data, *named, *number, "--out", "check"]
    given = click.get_current_context().meta.get("diw.given", [])
    second = ["diw", *given, "--verified", "check/verified.csv"]
    return UsageError(words, [shlex.join(first), shlex.join(second)])


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
