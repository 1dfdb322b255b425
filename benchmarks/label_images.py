"""The audit of default runs on images with errors that follow from the image.

    python -m benchmarks label_images [--quick] [--save]

`diw train --shift KIND:0.4 --epochs 20` on the embedded images with 500 verified ones, then
`diw audit` of that run: the AUROC of wrong labels among the images that nobody verified, and
whether the interval of their share holds the truth. Runs are kept in the temporary folder, and with
`--save` it goes on where it was stopped.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import diw
from benchmarks.measuring import made_by
from diw.config import DEFAULT_METHOD
from diw.files import write_json
from diw.runs import Recipe, Run, RunSpec
from diw.runs.sources import stamp
from diw.training.recorded import train_run, with_method

RESULTS = Path(__file__).parent / "results" / "label-images.json"
RUNS = Path(tempfile.gettempdir()) / "diw-label-images"
KINDS = "instance:0.4", "annotator:0.4"
SEEDS = 5
EPOCHS = 20


def one(kind: str, seed: int) -> dict[str, Any]:
    """The figures of one run, which is trained if it is not there yet."""
    asked = RunSpec(shift=kind, seed=seed, recipe=Recipe(epochs=EPOCHS), model="lenet5")
    spec = with_method(stamp(asked), DEFAULT_METHOD)
    run = Run(RUNS / f"{kind.partition(':')[0]}-{seed}")
    if not run.finished:
        torch.set_num_threads(1)
        train_run(spec, run)
    found = diw.audit(run)
    split, quality, share = run.source.split, found.quality(), found.wrong
    assert split.flipped is not None
    assert split.trusted_given is not None
    assert quality is not None
    assert share is not None
    wrong = split.flipped.numpy().copy()
    wrong[split.trusted_index.numpy()] = (split.trusted_given != split.trusted.targets).numpy()
    truth = float(wrong.mean())
    return {
        "auroc": round(quality["auroc"], 4),
        "wrong": round(truth, 4),
        "share": [round(value, 4) for value in share.as_list()],
        "held": share.low <= truth <= share.high,
    }


def main(quick: bool = False, save: bool = False) -> None:
    """Print each run, and of all how many are as asked."""
    kept = json.loads(RESULTS.read_text()) if save and RESULTS.exists() else {}
    found: dict[str, dict[str, Any]] = kept.get("runs", {})
    for seed in range(1 if quick else SEEDS):
        for kind in KINDS:
            name = f"{kind} seed {seed}"
            if name not in found:
                found[name] = one(kind, seed)
            print(f"{name:24}", found[name], flush=True)
            if save:
                write_json(RESULTS, {**made_by("label_images"), "runs": found})
    runs = list(found.values())
    print(
        f"AUROC {min(run['auroc'] for run in runs):.3f} to {max(run['auroc'] for run in runs):.3f},"
        f" mean {np.mean([run['auroc'] for run in runs]):.3f};"
        f" the interval held the share in {sum(run['held'] for run in runs)} of {len(runs)}"
    )


if __name__ == "__main__":
    main(save=True)
