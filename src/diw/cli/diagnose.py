"""`diw diagnose`: which shift separates training from trusted data?"""

from pathlib import Path
from shlex import quote

import click

from diw.cli.options import SEED, Reading, Results, takes
from diw.cli.setting import Data

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
