"""Kept results: the metrics of finished runs, small enough to commit, without weights and networks.

`scripts/keep_results.py` writes them as `records.json`, one entry per run. A run is taken from
there instead of being trained again, for every result that needs metrics alone.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from diw.errors import UsageError
from diw.runs import Run, RunSpec, Writer, holding, is_held, spec_hash

RECORDS = "records.json"

CURVES = (
    "test_accuracy",
    "balanced_accuracy",
    "calibration_error",
    "intact_accuracy",
    "mislabelled_accuracy_given",
    "mislabelled_accuracy_true",
    "ess",
)
"""The metrics that are kept of each epoch, in per cent."""

NEED_ARRAYS = frozenset({"weights", "distance", "tsne"})
"""Outputs of experiments that need weights or hidden outputs, which are not kept."""


def record_of(run: Run) -> dict[str, Any]:
    """What is kept of a finished run: its spec, and its metrics by epoch in per cent.

    A metric is None in epochs without it: those before a newer version went on with the run.
    """
    epochs = run.metrics()
    curves = {
        name: [round(100 * epoch[name], 2) if name in epoch else None for epoch in epochs]
        for name in CURVES
        if any(name in epoch for epoch in epochs)
    }
    seconds = epochs[-1]["seconds"]
    return {"run": run.folder.name, "spec": run.spec_json, "seconds": seconds, **curves}


def kept_records(folder: Path) -> dict[str, dict[str, Any]]:
    """All records in the `records.json` files below `folder`, by the hash of their spec."""
    records: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob(RECORDS)):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            records |= {spec_hash(record["spec"]): record for record in content}
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(f"{path}: is not a file of kept results; remove it") from None
    return records


def restore(specs: Iterable[RunSpec], runs: Path, records: Mapping[str, dict[str, Any]]) -> int:
    """Write the kept metrics of these specs to where their runs would be; return their number.

    A run that was begun or finished here is left alone.

    Args:
        specs: What would be run.
        runs: The folder of runs.
        records: See `kept_records`.
    """
    restored = 0
    for spec in specs:
        run = spec.run(runs)
        record = records.get(run.folder.name)
        if record is None or run.finished or is_held(run.folder):
            continue
        with holding(run.folder):
            if run.finished or (run.metrics() and not run.restored):
                continue
            run.forget()  # what an interrupted call left
            Run.create(run.folder, spec.as_json())
            (run.folder / "restored").touch()
            rows = rows_of(record)
            writer = Writer(run.folder, len(rows), 1)
            for row in rows:
                writer.append(row)
            run.finish()
            restored += 1
    return restored


def forget_restored(specs: Iterable[RunSpec], runs: Path) -> None:
    """Remove the restored runs of these specs: what needs weights has to train them."""
    for spec in specs:
        run = spec.run(runs)
        if run.restored:
            with holding(run.folder):
                if run.restored:
                    run.forget()


def rows_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The metrics by epoch, as fractions; of the seconds only the sum is known."""
    curves = {name: record[name] for name in CURVES if name in record}
    return [
        {
            "epoch": epoch,
            **{
                name: value / 100
                for name, value in zip(curves, values, strict=True)
                if value is not None
            },
            "seconds": record["seconds"],
        }
        for epoch, values in enumerate(zip(*curves.values(), strict=True), start=1)
    ]
