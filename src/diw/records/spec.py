"""What one run is: everything that decides its result, and nothing else."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from diw.errors import UsageError
from diw.records.recipe import Recipe
from diw.records.run import Run, spec_hash

FORMAT = 1
"""Raised when the same spec would give another result, so that old runs are not taken for new."""


@dataclass(frozen=True)
class RunSpec:
    """One run. Its hash names the run's folder, so equal specs are one run."""

    method: str = "diw"
    """Canonical name of the method."""
    method_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All fields of the method, defaults included."""
    data: str = "embedded"
    """A data set's name, or a path."""
    test: str | None = None
    """A file of test samples, instead of the data set's own."""
    label: str | None = None
    """The column or array that holds the labels of one's own data."""
    allow_leaks: bool = False
    """Go on although test samples are also in the training or trusted data."""
    synthetic_ok: bool = False
    """Use generated images where a benchmark's files are missing."""
    files: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Size and time of one's own files, so that a changed file makes another run."""
    shift: str = "none"
    trusted: int | str | None = 500
    """How many trusted samples, "N/class", "rows:…" for row numbers, or a file."""
    trusted_in_train: bool = True
    """Whether trusted samples are trained on too (the paper: yes)."""
    train_samples: int | None = None
    """A stratified part of the training data; None for all."""
    test_samples: int | None = None
    model: str = "auto"
    seed: int = 0
    recipe: Recipe = field(default_factory=Recipe)
    device: str = "cpu"
    threads: int = 1
    """Threads of the run: they can change the last bits of a sum, so they are part of it."""
    observe: tuple[str, ...] = ()
    """What to collect besides metrics and weights: see `diw.training.observers`."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, the recipe's fields beside the others."""
        values = asdict(self)
        recipe = values.pop("recipe")
        return {"format": FORMAT, **values, **recipe}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunSpec":
        """The spec that `as_json` wrote; one of another format is refused."""
        if values.get("format") != FORMAT:
            raise UsageError(f"spec: format {values.get('format')!r} is not {FORMAT}; run it anew")
        recipe = {name: values[name] for name in asdict(Recipe())}
        own = {k: v for k, v in values.items() if k not in recipe and k != "format"}
        own["observe"] = tuple(own.get("observe", ()))  # JSON has lists alone
        return cls(**own, recipe=Recipe(**recipe))

    def run(self, folder: Path) -> Run:
        """The run of this spec below `folder`, whether it exists yet or not."""
        return Run(folder / spec_hash(self.as_json()))
