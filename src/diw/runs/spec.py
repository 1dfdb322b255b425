"""What one run is asked (`RunSpec`): everything that decides its result, and nothing else.

Its `Recipe` says how the network is trained. Both are plain values, free of torch, so that
commands and reports read them without importing what trains.
"""

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from math import ceil, cos, pi
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from diw.config import DEFAULT_METHOD, LATER, check_fields, field_values
from diw.errors import UsageError

if TYPE_CHECKING:
    from diw.runs.run import Run

FORMAT = 1
"""Raised when the same spec would give another result, so that old runs are not taken for new."""

HASH_LENGTH = 16

ALWAYS = ("method", "data", "seed")
"""Keys that every spec has had: a file without them is not one of a run."""

TrustedDraw = Literal["passes", "afresh"]


@dataclass(frozen=True)
class Recipe:
    """One training protocol.

    The defaults are those of `diw compare`: short, yet long enough that plain training
    memorises wrong labels (on the embedded data at 0.4 symmetric noise, tuned on seeds
    100 and 101, which no default uses).
    """

    epochs: int = 75
    """Passes over the training data (for `clean`, over the trusted data)."""
    batch_size: int = 256
    """Training samples per step."""
    trusted_batch_size: int = 256
    """Trusted samples per step, at most."""
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    """SGD, or Adam or AdamW with their default moments."""
    lr: float = 2e-4
    """Learning rate at the start."""
    momentum: float = 0.9
    """SGD's momentum; the paper uses none and ten times the epochs."""
    weight_decay: float = 1e-4
    """L2 penalty of the optimiser."""
    schedule: str = "step:30:0.3"
    """"constant", "step:EPOCHS:FACTOR", "exponential:FACTOR" or "cosine" (to zero at the end),
    applied epoch by epoch."""
    ramp: int = 4
    """Warm-up: epochs over which the learning rate rises linearly to the scheduled one."""
    reduction: Literal["mean", "sum"] = "sum"
    """Whether weighted losses are averaged or, as in the paper's experiments, summed."""
    passes: int | None = field(default=None, metadata=LATER)
    """Passes over the training data per epoch; `clean` then takes as many steps as other methods.
    None: one pass, for `clean` over the trusted data, as in the paper's experiments."""
    patience: int | None = field(default=None, metadata=LATER)
    """Keep the network of the epoch with the lowest held-out trusted loss, and end after so many
    epochs without a better one. None: the last epoch's network, as in the paper's experiments."""
    trusted_draw: TrustedDraw = field(default="passes", metadata=LATER)
    """How trusted batches are drawn: in passes over the trusted set, or each afresh from all."""

    def __post_init__(self) -> None:
        counts = "epochs", "batch_size", "trusted_batch_size", "passes", "patience"
        check_fields(self, *counts, least=1)
        check_fields(self, "lr", positive=True)
        check_fields(self, "momentum", "weight_decay", "ramp", least=0)
        if self.optimizer not in ("sgd", "adam", "adamw"):
            raise UsageError(f"optimizer: choose sgd, adam or adamw, not {self.optimizer!r}")
        if self.reduction not in ("mean", "sum"):
            raise UsageError(f"reduction: choose mean or sum, not {self.reduction!r}")
        if self.trusted_draw not in ("passes", "afresh"):
            raise UsageError(f"trusted_draw: choose passes or afresh, not {self.trusted_draw!r}")
        self.learning_rate(1)

    def learning_rate(self, epoch: int) -> float:
        """The learning rate in epoch `epoch` (from 1): a function of the epoch, so no state."""
        return self._scheduled(epoch) * min(1.0, epoch / (self.ramp + 1))

    def _scheduled(self, epoch: int) -> float:
        kind, *numbers = self.schedule.split(":")
        try:
            if kind == "constant" and not numbers:
                return self.lr
            if kind == "cosine" and not numbers:
                return self.lr * (1 + cos(pi * (epoch - 1) / self.epochs)) / 2
            if kind == "step":
                every, factor = int(numbers[0]), float(numbers[1])
                return self.lr * factor ** ((epoch - 1) // every)
            if kind == "exponential":
                (factor,) = map(float, numbers)
                return self.lr * factor ** (epoch - 1)
        except (ValueError, IndexError, ZeroDivisionError):
            pass
        raise UsageError(
            f"schedule: cannot read {self.schedule!r}; "
            "write constant, cosine, step:EPOCHS:FACTOR or exponential:FACTOR"
        )


STEPS = 2000
"""Steps of the optimiser, at least."""
PASSES = 5
"""Passes over the training data, at least: more steps where there are many rows."""
EPOCHS = 50
"""Epochs into which a run is divided: how often it is scored, recorded and may be kept."""
PATIENCE = 25
"""Epochs without a better one, by held-out trusted loss, after which a run ends."""
SELECTION = 0.3
"""Share of the trusted rows that is held out to choose the epoch."""
FEWEST = 10
"""Rows below which a held-out loss says too little to choose by."""

FEW_ROWS = 1024
"""Rows below which a table can be small for its columns."""
ROWS_PER_COLUMN = 50
"""Rows per column below which a network learns wrong labels of a small table by heart at once."""
DECAY = 1e-2
"""AdamW's weight decay elsewhere."""
MOST_DECAY = 10.0

RATES = {"adamw": 1e-3, "adam": 1e-3, "sgd": 0.05}
"""Learning rates for the mean of the losses of a batch."""


def fit_recipe(
    rows: int, given: Mapping[str, Any], steps: int | None = None, *, columns: int | None = None
) -> Recipe:
    """AdamW on mean losses with a short warm-up and a cosine to zero, as long as the data need.

    Args:
        rows: Training rows.
        given: Fields of the recipe that the user has set.
        steps: Steps of the optimiser that the user has set.
        columns: Inputs of the network where the data are a table; None for images.
    """
    if steps is not None and "epochs" in given:
        raise UsageError("steps: give either steps or epochs, not both")
    optimizer = str(given.get("optimizer", "adamw"))
    batch_size = int(given.get("batch_size", fit_batch_size(rows)))
    per_pass = ceil(rows / batch_size)
    if "epochs" in given:
        epochs, passes = int(given["epochs"]), 1
    else:
        total = ceil((steps or max(STEPS, PASSES * per_pass)) / per_pass)
        passes = ceil(total / EPOCHS)
        epochs = ceil(total / passes)
    fitted: dict[str, Any] = {
        "epochs": epochs,
        "passes": passes,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "lr": RATES[optimizer],
        "weight_decay": fit_decay(rows, columns) if optimizer == "adamw" else 1e-4,
        "schedule": "cosine",
        "ramp": min(2, epochs // 5),
        "reduction": "mean",
        "patience": PATIENCE,
    }
    return Recipe(**(fitted | dict(given)))


def fit_batch_size(rows: int) -> int:
    """A power of two between 32 and 256, a sixteenth of the rows: small data in small batches."""
    size = 32
    while size < 256 and 32 * size <= rows:
        size *= 2
    return size


def fit_decay(rows: int, columns: int | None) -> float:
    """AdamW's weight decay: strong, 100 columns/rows, on small tables with many columns.

    Weights stay below about 1/decay then. Where there are more rows per column, this would keep
    the network from learning what is not linear.
    """
    if columns is None or rows >= min(FEW_ROWS, ROWS_PER_COLUMN * columns):
        return DECAY
    return min(MOST_DECAY, round(100 * columns / rows, 1))


def held_out_share(trusted: int) -> float:
    """The share of `trusted` rows that is held out to choose the epoch; 0 where there are few."""
    return SELECTION if round(SELECTION * trusted) >= FEWEST else 0.0


@dataclass(frozen=True)
class RunSpec:
    """One run. Its hash names the run's folder, so equal specs are one run.

    A new field needs a default that means what runs did before it existed, and `LATER` as its
    metadata: records without it are read with that default (`from_json`).
    """

    method: str = DEFAULT_METHOD
    """Canonical name of the method."""
    method_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All fields of the method, defaults included."""
    data: str = "embedded"
    """Name of a data set, or a path."""
    test: str | None = None
    """A file of test samples, instead of the data set's own."""
    label: str | None = None
    """The column or array that holds the labels, for the user's own data."""
    allow_leaks: bool = False
    """Go on although test samples are also in the training or trusted data."""
    synthetic_ok: bool = False
    """Use generated images where a benchmark's files are missing."""
    files: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """SHA-256 of the user's own files and folders by name, so that a changed file makes another
    run. Older versions wrote the number of files, their bytes and the time of the latest change."""
    shift: str = "none"
    """The simulated shift: see `diw.shifts.parse_shift`."""
    trusted: int | str | None = 500
    """How many trusted samples, "N/class", "rows:…" for row numbers, or a file."""
    trusted_in_train: bool = True
    """Whether trusted samples are trained on too (the paper: yes)."""
    train_samples: int | None = None
    """Size of a stratified part of the training data; None for all of them."""
    test_samples: int | None = None
    """Size of a part of the test data; None for all of them."""
    model: str = "auto"
    """Name of a network, or `module:factory`; "auto" chooses by the data."""
    seed: int = 0
    recipe: Recipe = field(default_factory=Recipe)
    device: str = "cpu"
    threads: int = 1
    """Threads of the run: they can change the last bits of a sum, so they are part of it."""
    observe: tuple[str, ...] = ()
    """What to collect besides metrics and weights: see `diw.training.OBSERVERS`."""
    text_encoding: str | None = field(default=None, metadata=LATER)
    """How characters are encoded in CSV files that are not UTF-8."""
    selection: float = field(default=0.0, metadata=LATER)
    """Share of the trusted samples that is held out to choose the epoch whose network is kept."""
    trusted_wrong: float = field(default=0.0, metadata=LATER)
    """Share of the trusted labels that is made wrong, to see what bad trusted samples do."""
    corrections: str | None = field(default=None, metadata=LATER)
    """A file of corrected labels, from the page of an audit."""
    verified: str | None = field(default=None, metadata=LATER)
    """A file of rows of the training data with their right labels: these are the trusted ones."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, the recipe's fields beside the others."""
        own = field_values(self)
        recipe = field_values(own.pop("recipe"))
        return {"format": FORMAT, **deepcopy(own), **recipe}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunSpec":
        """The spec that `as_json` wrote, in this version or an older one.

        A field that did not exist yet has its default. Another format and unknown keys
        (of a newer version) are refused.
        """
        if values.get("format") != FORMAT:
            raise UsageError(f"spec: format {values.get('format')!r} is not {FORMAT}; run it again")
        for name in ALWAYS:
            if name not in values:
                raise UsageError(f"spec: has no {name}, so it is not the spec of a run")
        recipe_names = {entry.name for entry in fields(Recipe)}
        own_names = {entry.name for entry in fields(cls)} - {"recipe"}
        unknown = sorted(values.keys() - recipe_names - own_names - {"format"})
        if unknown:
            raise UsageError(f"spec: unknown key {unknown[0]}; was it written by a newer diw?")
        for kind in (cls, Recipe):
            for name, hint in get_type_hints(kind).items():
                if name in values and not _fits(values[name], hint):
                    raise UsageError(f"spec: {name} cannot be {str(values[name])[:40]!r}")
        own = {name: values[name] for name in own_names & values.keys()}
        own["observe"] = tuple(own.get("observe", ()))  # JSON knows lists only
        recipe = Recipe(**{name: values[name] for name in recipe_names & values.keys()})
        return cls(**own, recipe=recipe)

    def run(self, folder: Path) -> "Run":
        """The run of this spec below `folder`, whether it exists yet or not."""
        from diw.runs.run import Run

        return Run(folder / spec_hash(self.as_json()))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON may be that of a field annotated with `hint`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(v, arguments[0]) for v in value)
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, origin or hint)


def spec_hash(spec: Mapping[str, Any]) -> str:
    """Name of the run that `spec` describes: a hash of its canonical JSON."""
    canonical = json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:HASH_LENGTH]
