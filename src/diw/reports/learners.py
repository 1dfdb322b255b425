"""Other learners beside the compared methods: their accuracies, kept next to the runs.

They are fitted where data are at hand (`diw.integrations.learners`). Reports read what was kept.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from diw.errors import UsageError
from diw.outputs import create_json
from diw.pages import Column, Table, make_table
from diw.reports.comparison import Comparison, setting_key, standing_entries
from diw.reports.statistics import standings
from diw.runs import spec_hash

FILE = "learners.json"
OF = " of "
"""Between what is taken of a method and its label: `gradient boosting, weights of remember`."""

NOTE = (
    "scikit-learn's defaults, the same rows. Weights of a method: all rows, its weights as "
    "sample_weight. Without suspects: all rows but those that its audit takes for mislabelled. "
    "Judged by verified rows: diw.TrustedClassifier.",
)

Learners = Mapping[str, Mapping[int, float]]
"""Accuracy of other learners on the same rows, by name and seed."""


def keep_learners(
    comparison: Comparison, scores: Learners, folder: Path, *, force: bool = False
) -> None:
    """Add `scores` to what is kept in `folder` of the learners on the rows of `comparison`."""
    kept = _read(folder / FILE)
    own = kept.setdefault(_key(comparison), {})
    for name, by_seed in scores.items():
        own.setdefault(name, {}).update({str(seed): score for seed, score in by_seed.items()})
    create_json(folder / FILE, kept, force=force)


def kept_learners(comparison: Comparison) -> dict[str, dict[int, float]]:
    """Accuracies by learner and seed that are kept next to the runs of `comparison`.

    Those with weights of a method that is not compared here are left out, and so are other seeds.
    """
    found: dict[str, dict[int, float]] = {}
    for name, seed, score in _kept(comparison):
        _, of, label = name.partition(OF)
        if seed in comparison.seeds and (not of or label in comparison.methods):
            found.setdefault(name, {})[seed] = score
    return found


def learners_table(comparison: Comparison, others: Learners) -> Table:
    """The compared methods beside learners on the same rows, best first.

    Args:
        comparison: The methods.
        others: Accuracy by learner and seed.
    """
    places = standings({**comparison.accuracies(), **others})
    accuracy = Column("accuracy", "accuracy %")
    order = sorted(places, key=lambda label: (-places[label].mean, label))
    rows = (standing_entries(label, places, accuracy, paired=True) for label in order)
    return make_table(rows, "Beside what one would do without a network", NOTE)


def _kept(comparison: Comparison) -> Iterator[tuple[str, int, float]]:
    """Name, seed and accuracy of all that is kept for this setting."""
    for folder in sorted({trial.run.folder.parent for trial in comparison.trials}):
        for name, by_seed in _read(folder / FILE).get(_key(comparison), {}).items():
            for seed, score in by_seed.items():
                yield name, int(seed), float(score)


def _key(comparison: Comparison) -> str:
    return spec_hash({"setting": setting_key(comparison.spec)})


def _read(file: Path) -> dict[str, Any]:
    """What `file` keeps by setting; empty where there is none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict):
        raise UsageError(f"{file}: damaged; remove it, and give the command of diw compare again")
    return content
