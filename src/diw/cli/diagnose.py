"""`diw diagnose`: which shift separates training from trusted data?"""

from pathlib import Path
from shlex import quote
from warnings import catch_warnings, simplefilter

import click

from diw.cli.options import SEED, Reading, Results, takes
from diw.cli.setting import Data
from diw.errors import DIWWarning

EXAMPLES = """
\b
Examples:
  diw diagnose --data train.csv --label status --trusted trusted.csv
  diw diagnose --data photos --trusted checked
  diw diagnose --shift symmetric:0.4
"""

MANY = 20
"""Classes up to which tables over classes are shown."""


@click.command(epilog=EXAMPLES)
@click.option("--shift", default="none", show_default=True, help="A simulated shift, to try it.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed.")
@takes
def diagnose(shift: str, seed: int, source: Data, reading: Reading, results: Results) -> None:
    """Say which shift it is, if any: wrong labels, other class shares, other inputs.

    Tests by permutation of inputs (MMD), class shares, and how well labels fit (losses of a quick,
    cross-fitted classifier). Together they call data without a shift shifted in at most 5% of all
    cases. Also estimates how many labels are wrong. Nothing is trained; it takes seconds.

    Where the trusted table has no labels, it says which class shares it has, if only these differ.
    """
    from diw.auditing import diagnose_data
    from diw.auditing.page import facts, ratios_table, tests_table, transitions_table
    from diw.pages import show
    from diw.runs import RunSpec
    from diw.runs.sources import Source

    spec = RunSpec(
        data=source.data,
        trusted=source.chosen,
        verified=source.verified,
        label=source.label,
        text_encoding=reading.text_encoding,
        shift=shift,
        seed=seed,
    )
    files = (source.data, source.trusted, source.verified)
    results.outputs(*(Path(name) for name in files if name and Path(name).exists()))
    if source.trusted and _without_labels(source, reading, results, seed):
        return
    data = Source(spec)
    data.progress = True
    reading.say(data.bundle.notes)
    with source.needing_trusted(data.bundle):
        found = diagnose_data(*data.apart, seed=seed)
    click.echo(found.sentence + "\n")
    show(tests_table(found))
    click.echo("\n" + "\n".join(facts(found)) + "\n")
    if len(found.classes) <= MANY:
        show(ratios_table(found))
        if found.share_known:
            click.echo("\nWhich labels were given for which classes, in per cent:\n")
            show(transitions_table(found))
    method, _, setting = found.method.partition(" with ")
    given = {
        "data": source.data,
        "label": source.label,
        "trusted": source.trusted,
        "verified": source.verified,
        "shift": None if shift == "none" else shift,
        "method": method,
        "set": setting,
    }
    flags = [f"--{name} {quote(value)}" for name, value in given.items() if value]
    click.echo(f"\nNext:\n  diw train {' '.join(flags)} --out model")
    results.write(found.as_json())


def _without_labels(source: Data, reading: Reading, results: Results, seed: int) -> bool:
    """Say which class shares trusted rows without labels have; False where they have labels."""
    from diw.data.values import lacks_labels, read_labels, read_values

    train, trusted = Path(source.data or ""), Path(source.trusted or "")
    if not train.is_file() or not lacks_labels(trusted, source.label, reading.text_encoding):
        return False
    from diw.auditing.class_shares import class_shares, shares_lines

    names = read_labels(train, source.label, reading.text_encoding)
    pair = read_values(train, trusted, label=source.label, text_encoding=reading.text_encoding)
    reading.say(pair.notes)
    vectors, target = (values.reshape(len(values), -1) for values in (pair.train, pair.trusted))
    with catch_warnings():
        simplefilter("ignore", DIWWarning)  # the status is said
        found, classes = class_shares(vectors, names, target, seed=seed)
    holds = found.status_ == "optimal"
    said = f"nothing speaks against that (p = {found.p_value_:.2g})" if holds else found.status_
    click.echo(f"{trusted} has no labels. If only the class shares differ, they are those below;")
    click.echo(f"{said}.\n" if holds else f"but {said}.\n")
    click.echo("\n".join(shares_lines(found, classes)[:MANY]))
    click.echo(f"\nThe labels of {found.labels_worth_:.0f} of its rows would tell as much.")
    by_class = " --by-class" if holds else ""
    flags = f" --label {quote(source.label)}" if source.label else ""
    files = f"{quote(str(train))} {quote(str(trusted))}"
    click.echo(f"\nNext:\n  diw weights {files}{flags} --out weights.csv{by_class}")
    results.write(
        {
            "status": found.status_,
            "p_value": found.p_value_,
            "classes": list(classes),
            "class_shares": found.shares_.tolist(),
            "standard_errors": found.errors_.tolist(),
            "train_shares": found.train_shares_.tolist(),
            "worth_labels_of_rows": found.labels_worth_,
        }
    )
    return True
