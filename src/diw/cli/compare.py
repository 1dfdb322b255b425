"""`diw compare`: train several methods on the same shifted data and compare them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diw.cli.options import (
    COUNT,
    FOLDER,
    SEED,
    SIMULATED,
    Results,
    Setting,
    Shown,
    Waiting,
    as_arguments,
    option,
    read_fields,
    say,
    say_audit,
    say_next,
    takes,
)
from diw.cli.progress import say_time
from diw.config import DEFAULT_METHOD
from diw.errors import UsageError
from diw.runs import Run, RunSpec, discard

if TYPE_CHECKING:
    from diw.auditing import Audit
    from diw.reports.comparison import Comparison

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
    from diw.auditing.page import FILES as AUDIT_FILES
    from diw.reports.learners import FILE as LEARNERS
    from diw.reports.page import AUDIT
    from diw.runs.sources import as_kept
    from diw.training.recorded import with_method

    names, fields = _methods(options.methods), read_fields(options.settings)
    _check_fields(names, fields)
    base = options.setting.spec(seed=options.seed, simulated=SIMULATED)
    specs = [
        replace(with_method(base, name, fields.get(name)), seed=trial)
        for trial in range(options.seed, options.seed + options.seeds)
        for name in names
    ]
    outputs = options.results.outputs(*map(Path, base.files))
    folder = outputs.folder(options.out / "compare", "report.html", LEARNERS)
    if (folder / AUDIT).is_dir():
        outputs.folder(folder / AUDIT, *AUDIT_FILES)
    specs = as_kept(specs, folder)
    if options.fresh:
        for spec in specs:
            discard(spec.run(folder), options.waiting.timeout)
    _run(specs, folder, options)
    _report(base, [spec.run(folder) for spec in specs], folder, options)


def _methods(methods: str) -> list[str]:
    """Canonical names, each once."""
    from diw.methods import find
    from diw.methods import methods as all_methods

    names = list(all_methods()) if methods == "all" else [m.strip() for m in methods.split(",")]
    return list(dict.fromkeys(find(name).name for name in names))


def _check_fields(names: list[str], fields: dict[str, dict[str, str]]) -> None:
    """Fields of methods that are not compared, or that a method does not have, fail here."""
    from diw.methods import make

    for method in fields:
        if method not in names:
            raise UsageError(f"set: {method} is not among the methods {', '.join(names)}")
        make(method, fields[method])


def _run(specs: Sequence[RunSpec], folder: Path, options: Options) -> None:
    from diw.cli.progress import Tracked, show_progress
    from diw.runs.sources import Source
    from diw.training.many import run_all

    pending = [spec for spec in specs if not spec.run(folder).finished]
    scored_on = Source.of(pending[0]).split.scored_on if pending else ""
    say_time(pending, jobs=options.jobs)
    tracked = [
        Tracked(s.run(folder), f"{s.method} seed {s.seed}", s.recipe.epochs, scored_on)
        for s in pending
    ]
    with show_progress(tracked):
        run_all(specs, folder, jobs=options.jobs, timeout=options.waiting.timeout)


def _report(base: RunSpec, runs: list[Run], folder: Path, options: Options) -> None:
    from functools import cache

    from diw.auditing.run import own_audit
    from diw.pages import show
    from diw.reports.comparison import compare_runs, compare_table
    from diw.reports.learners import keep_learners, learners_table
    from diw.reports.page import write_report
    from diw.reports.summary import remark, results_json

    samples, results = options.shown.samples, options.results
    (comparison,) = compare_runs(runs)  # they share their setting
    show(compare_table(comparison))
    say(filter(None, map(remark, comparison.trials)))
    audit = cache(own_audit)  # of each run at most once
    others = _learners(comparison, audit) if options.learners else {}
    if others:
        click.echo()
        show(learners_table(comparison, others))
        keep_learners(comparison, others, folder, force=results.force)
    found = audit(comparison.audited)
    page = folder / "report.html"
    write_report([comparison], page, [others], found, samples=samples, force=results.force)
    click.echo(f"\nReport:  {page}\nRecords: {folder}")
    say_audit(found, folder, samples=samples)
    if comparison.audited is not None:
        best = comparison.audited
        say_next(_train(best.spec, options), ["audit", str(best.folder), "--out", "check"])
    shared = {k: v for k, v in base.as_json().items() if not k.startswith("method")}
    shared["seeds"] = sorted({run.spec.seed for run in runs})
    summaries = {trial.run.folder: trial for trial in comparison.trials}
    content = results_json(shared, [summaries[run.folder] for run in runs])
    results.write({**content, "learners": others} if others else content)


def _train(best: RunSpec, options: Options) -> list[str]:
    """The command that trains the best method on the same setting, into a folder of its own."""
    setting = replace(options.setting, shift=None if best.shift == "none" else best.shift)
    own = [text for text in options.settings if best.method in read_fields([text])]
    fields = [word for text in own for word in ("--set", text)]
    return ["train", *as_arguments(setting), "--method", best.method, *fields, "--out", "model"]


def _learners(
    comparison: "Comparison", audit: "Callable[[Run], Audit | None]"
) -> dict[str, dict[int, float]]:
    """Test accuracy by seed of what one would do without a network; empty where it is not shown."""
    from importlib.util import find_spec

    from diw.config import CONTROLS
    from diw.integrations.learners import is_small, learner_scores
    from diw.reports.summary import settled_weights
    from diw.runs.sources import Source, is_own

    if not is_own(comparison.spec.data) or not is_small(Source.of(comparison.spec).split):
        return {}
    if find_spec("sklearn") is None:
        say(["with the extra 'sklearn', logistic regression and gradient boosting are shown too"])
        return {}
    found: dict[str, dict[int, float]] = {}
    for seed in comparison.seeds:
        trials = {
            label: trial
            for label, group in comparison.methods.items()
            for trial in group
            if trial.seed == seed
        }
        learned = {
            label: weights
            for label, trial in trials.items()
            if trial.method not in CONTROLS and (weights := settled_weights(trial.run)) is not None
        }
        audits = {label: audit(trials[label].run) for label in learned}
        suspects = {label: one.suspected for label, one in audits.items() if one is not None}
        split = Source.of(next(iter(trials.values())).run.spec).split
        for name, score in learner_scores(split, learned, seed, suspects).items():
            found.setdefault(name, {})[seed] = score
    return found
