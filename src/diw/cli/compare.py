"""`diw compare`: train several methods on the same shifted data and compare them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diw.cli.options import (
    COUNT,
    FOLDER,
    SEED,
    Results,
    Shown,
    Waiting,
    as_arguments,
    option,
    read_fields,
    say,
    say_next,
    takes,
)
from diw.cli.progress import show_training
from diw.cli.setting import SIMULATED, Setting
from diw.config import CONTROLS, DEFAULT_METHOD
from diw.runs import Run, RunSpec, discard

if TYPE_CHECKING:
    from diw.auditing import Audit
    from diw.reports.comparison import Comparison

PAGE = "report.html"

EXAMPLES = """
\b
Examples:
  diw compare
  diw compare --shift pair:0.3 --methods uniform,reweight,diw --seeds 3
  diw compare --methods all --epochs 20
  diw compare --methods uniform,diw --set diw.bound=10
  diw compare --data mine.npz --trusted trusted.npz
"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `diw compare` can be told."""

    methods: str = option(
        f"uniform,random,{DEFAULT_METHOD}", "Names separated by commas, or all; see `diw methods`."
    )
    seeds: int = option(2, "Number of seeds.", kind=COUNT)
    seed: int = option(0, "First seed.", kind=SEED)
    setting: Setting
    jobs: int = option(2, "Runs at the same time.", kind=COUNT)
    out: Path = option(Path("runs"), "Folder for run records.", kind=FOLDER)
    fresh: bool = option(False, "Discard earlier runs of this comparison.")
    settings: tuple[str, ...] = option(
        (),
        "Set a field of a method; may be given more than once.",
        "--set",
        metavar="METHOD.FIELD=VALUE",
    )
    learners: bool = option(
        True,
        "With a table of your own, also score scikit-learn's learners on the same rows.",
        "--learners/--no-learners",
    )
    shown: Shown
    waiting: Waiting
    results: Results


@click.command(epilog=EXAMPLES)
@takes
def compare(options: Options) -> None:
    """Train methods on the same shifted data and compare them.

    Without options: LeNet-5 on 10,000 Fashion-MNIST images of which 40% have a
    wrong label, trained once as they are and once with dynamic importance
    weighting, for two seeds. Finished runs are found again; interrupted ones
    go on where they stopped.
    """
    from diw.reports.learners import FILE as LEARNERS
    from diw.runs.sources import as_kept
    from diw.training.many import run_all
    from diw.training.recorded import with_method

    names, timeout = _methods(options.methods), options.waiting.timeout
    fields = read_fields(options.settings, names)
    base = options.setting.spec(seed=options.seed, simulated=SIMULATED)
    specs = [
        replace(with_method(base, name, fields[name]), seed=trial)
        for trial in range(options.seed, options.seed + options.seeds)
        for name in names
    ]
    outputs = options.results.outputs(*map(Path, base.files))
    folder = outputs.folder(options.out / "compare", LEARNERS)
    options.shown.claim(outputs, folder / PAGE)
    specs = as_kept(specs, folder)
    if options.fresh:
        for spec in specs:
            discard(spec.run(folder), timeout)
    runs = [spec.run(folder) for spec in specs]
    pending = [pair for pair in zip(specs, runs, strict=True) if not pair[1].finished]
    with show_training(pending, jobs=options.jobs):
        run_all(specs, folder, jobs=options.jobs, timeout=timeout)
    _report(base, runs, folder, options, fields)


def _methods(methods: str) -> list[str]:
    """Canonical names, each once."""
    from diw.methods import find
    from diw.methods import methods as all_methods

    names = list(all_methods()) if methods == "all" else [m.strip() for m in methods.split(",")]
    return list(dict.fromkeys(find(name).name for name in names))


def _report(
    base: RunSpec,
    runs: list[Run],
    folder: Path,
    options: Options,
    fields: Mapping[str, Mapping[str, str]],
) -> None:
    from functools import cache

    from diw.auditing.run import own_audit
    from diw.pages import show
    from diw.reports.comparison import compare_runs, compare_table
    from diw.reports.learners import keep_learners, learners_table
    from diw.reports.summary import remark, results_json

    results = options.results
    (comparison,) = compare_runs(runs)  # they share their setting
    show(compare_table(comparison))
    say(filter(None, map(remark, comparison.trials)))
    audit = cache(own_audit)  # of each run at most once
    others = _learners(comparison, audit) if options.learners else {}
    if others:
        click.echo()
        show(learners_table(comparison, others))
        keep_learners(comparison, others, folder, force=results.force)
    best = comparison.audited
    page, records = folder / PAGE, f"Records: {folder}"
    options.shown.write([comparison], page, [others], audit(best), records, force=results.force)
    if best is not None:
        train = _train(best.spec, options, fields[best.spec.method])
        say_next(train, ["audit", str(best.folder), "--out", "check"])
    shared = {k: v for k, v in base.as_json().items() if not k.startswith("method")}
    shared["seeds"] = sorted({run.spec.seed for run in runs})
    summaries = {trial.run.folder: trial for trial in comparison.trials}
    content = results_json(shared, [summaries[run.folder] for run in runs])
    results.write({**content, "learners": others} if others else content)


def _train(best: RunSpec, options: Options, fields: Mapping[str, str]) -> list[str]:
    """The command that trains the best method on the same setting, into a folder of its own."""
    setting = replace(options.setting, shift=None if best.shift == "none" else best.shift)
    given = [f"{best.method}.{name}={value}" for name, value in fields.items()]
    words = [word for text in given for word in ("--set", text)]
    return ["train", *as_arguments(setting), "--method", best.method, *words, "--out", "model"]


def _learners(
    comparison: "Comparison", audit: "Callable[[Run], Audit | None]"
) -> dict[str, dict[int, float]]:
    """Test accuracy by seed of what one would do without a network; empty where it is not shown."""
    from importlib.util import find_spec

    from diw.integrations.learners import is_small, learner_scores
    from diw.reports.summary import settled_weights
    from diw.runs.sources import is_own

    first = comparison.trials[0].run
    if not is_own(comparison.spec.data) or not is_small(first.source.split):
        return {}
    if find_spec("sklearn") is None:
        say(["with the extra 'sklearn', logistic regression and gradient boosting are shown too"])
        return {}
    found: dict[str, dict[int, float]] = {}
    for seed in comparison.seeds:
        runs = {
            label: trial.run
            for label, trials in comparison.methods.items()
            for trial in trials
            if trial.seed == seed
        }
        teachers = {label: run for label, run in runs.items() if run.spec.method not in CONTROLS}
        weights = {label: settled_weights(run) for label, run in teachers.items()}
        learned = {label: values for label, values in weights.items() if values is not None}
        audits = {label: audit(teachers[label]) for label in learned}
        suspects = {label: one.suspected for label, one in audits.items() if one is not None}
        split = next(iter(runs.values())).source.split
        for name, score in learner_scores(split, learned, seed, suspects).items():
            found.setdefault(name, {})[seed] = score
    return found
