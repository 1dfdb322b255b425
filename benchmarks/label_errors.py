"""Finding wrong labels: the audit beside cleanlab, on images, digits and tables.

    python -m benchmarks label_errors [--quick] [--save]

AUROC and average precision of the score; a wrong label is the positive, trusted rows do not count.
35% of the training labels are wrong. The audit is that of a run of the default method: its losses,
and its second opinion. cleanlab (Northcutt et al. 2021) gets out-of-fold probabilities: of the same
network, trained without weights on three of four parts in turn, for as many steps in all; and on
tables of scikit-learn's learners, as its documentation does it. Trusted rows are in everybody's
training data.
cleanlab is under the Apache licence; the package does not import it.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.measuring import machine
from benchmarks.pay_cells import Cell, setting, write_files
from diw.auditing import audit
from diw.config import DEFAULT_METHOD
from diw.data.split import Split
from diw.files import write_json
from diw.integrations.learners import learners
from diw.metrics import auroc, average_precision
from diw.models import make_model
from diw.runs import RunSpec
from diw.runs.sources import Source
from diw.training.recorded import execute, with_method

RESULTS = Path(__file__).parent / "results" / "label-errors.json"
SETS = {"images": "lenet5", "digits": "mlp", "medical": "mlp", "churn": "mlp"}
NOISE = "symmetric:0.35"
SEEDS = 3
FOLDS = 4

Scores = dict[str, NDArray[np.float64]]


def contenders(name: str, seed: int, folder: Path) -> tuple[Scores, NDArray[np.bool_]]:
    """Scores by contender, and which labels are wrong, of the rows that are not trusted."""
    wrong = write_files(Cell(name, NOISE), seed, folder / "data")
    spec = setting(folder / "data", seed, SETS[name])
    run = execute(with_method(spec, DEFAULT_METHOD), folder / "runs")
    split = Source.of(spec).split
    own = split.rows.numpy() < len(wrong)
    scores: Scores = {"diw audit": audit(run).score}
    steps = (
        len(run.metrics())
        * (spec.recipe.passes or 1)
        * -(-len(split.train) // spec.recipe.batch_size)
    )
    try:
        from cleanlab.rank import get_label_quality_scores  # pyright: ignore
    except ImportError:
        print("cleanlab is not installed: pip install --group bench")
    else:
        labels = split.train.targets.numpy()
        found = {"cleanlab, same network": network_probabilities(spec, split, steps)}
        if name != "images":
            found |= learner_probabilities(split, seed)
        for peer, probabilities in found.items():
            scores[peer] = 1 - np.asarray(get_label_quality_scores(labels, probabilities))
    return {peer: score[own] for peer, score in scores.items()}, wrong[split.rows.numpy()[own]]


def network_probabilities(spec: RunSpec, split: Split, steps: int) -> NDArray[np.float64]:
    """(n, k) out-of-fold probabilities of the run's network; all folds together take `steps`."""
    inputs, targets = split.train.take(torch.arange(len(split.train)))
    n, k = len(targets), split.train.num_classes
    generator = torch.Generator().manual_seed(spec.seed)
    fold = torch.randperm(n, generator=generator) % FOLDS
    result = torch.empty(n, k)
    for turn in range(FOLDS):
        rows = torch.nonzero(fold != turn).flatten()
        model = make_model(spec.model, shape=split.train.shape, num_classes=k, seed=spec.seed)
        recipe = spec.recipe
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
        )
        each = max(1, steps // FOLDS)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, each)
        model.train()
        for _ in range(each):
            some = rows[torch.randint(len(rows), (spec.recipe.batch_size,), generator=generator)]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs[some]), targets[some]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            held = torch.nonzero(fold == turn).flatten()
            for part in held.split(512):
                result[part] = model(inputs[part]).softmax(1)
    return result.double().numpy()


def learner_probabilities(split: Split, seed: int) -> dict[str, NDArray[np.float64]]:
    """(n, k) out-of-fold probabilities of scikit-learn's learners."""
    from sklearn.model_selection import cross_val_predict

    inputs, targets = split.train.take(torch.arange(len(split.train)))
    found: dict[str, NDArray[np.float64]] = {}
    for name, learner in learners(seed).items():
        predicted = cross_val_predict(
            learner, inputs.numpy(), targets.numpy(), cv=5, method="predict_proba"
        )
        found[f"cleanlab, {name}"] = np.asarray(predicted)
    return found


def main(quick: bool = False, save: bool = False) -> None:
    """Print AUROC and average precision of each contender, means over seeds."""
    results: dict[str, Any] = {}
    for name in ("digits", "medical") if quick else SETS:
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(1 if quick else SEEDS):
            with tempfile.TemporaryDirectory() as folder:
                scores, wrong = contenders(name, seed, Path(folder))
            for peer, score in scores.items():
                values = auroc(score, wrong), average_precision(score, wrong)
                found.setdefault(peer, []).append(values)
        results[name] = {
            peer: dict(
                zip(
                    ("auroc", "average_precision"),
                    np.mean(v, axis=0).round(4).tolist(),
                    strict=True,
                )
            )
            for peer, v in found.items()
        }
        for peer, values in results[name].items():
            print(
                f"{name:9}{peer:38} AUROC {values['auroc']:.3f}  "
                f"AP {values['average_precision']:.3f}",
                flush=True,
            )
    if save:
        write_json(RESULTS, {"machine": machine(), "seeds": SEEDS, "results": results})


if __name__ == "__main__":
    main(save=True)
