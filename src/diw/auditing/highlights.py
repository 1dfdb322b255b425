"""What an audit adds to a report on one's own data: the first suspects, and a page to check all."""

from pathlib import Path

from diw.auditing.audit import audit
from diw.auditing.page import finding, write_page
from diw.auditing.result import Audit
from diw.auditing.samples import Samples, shown_samples
from diw.errors import UsageError
from diw.experiments.places import is_own
from diw.files import write_text
from diw.reports.closer import Highlights, Suspect, closest_run
from diw.reports.comparison import Comparison
from diw.runs import Run

FIRST = 12
MOST_CELLS = 8
AUDIT = "audit"
"""The folder of the audit, beside the report."""


def write_audit(comparison: Comparison, folder: Path, *, samples: bool = True) -> Highlights | None:
    """Audit the best method's run on one's own data, into `folder`/audit, for the report there.

    None where there is nothing to audit: data sets with a name, data that are not here any more, a
    network that would have to be imported.

    Args:
        comparison: The methods.
        folder: That of the report.
        samples: Whether images and rows are in the audit's page and in the report, or only names.
    """
    run = closest_run(comparison)
    if run is None or not is_own(run.spec.data):
        return None
    try:
        found = audit(run)
    except UsageError:
        return None
    (folder / AUDIT).mkdir(parents=True, exist_ok=True)
    write_text(folder / AUDIT / "suspects.csv", found.to_csv())
    write_page(found, run, folder / AUDIT / "audit.html", samples=samples)
    return highlights(found, run, f"{AUDIT}/audit.html", samples=samples)


def highlights(found: Audit, run: Run, link: str | None, *, samples: bool = True) -> Highlights:
    """The first suspects of an audit, for a report."""
    places = found.order[:FIRST]
    shown = shown_samples(run, places) if samples else Samples(None, [], None)
    suspects: list[Suspect] = []
    for number, row in enumerate(found.rows(len(places))):
        name = row["file"] if row["row"] is None else f"{row['file']}, row {row['row']}"
        texts = [] if shown.cells is None else shown.cells[number]
        suspects.append(
            Suspect(
                name=str(name),
                given=row["label"],
                suggested=row["suggested"],
                probability=row["probability"],
                image=None if shown.images is None else shown.images[number],
                cells=tuple(zip(shown.columns, texts, strict=False))[:MOST_CELLS],
            )
        )
    return Highlights(
        suspects=suspects,
        finding=finding(found),
        diagnosis="" if found.diagnosis is None else found.diagnosis.sentence,
        audit=link,
        samples=samples,
        command=f"diw audit {run.folder} --out check",
    )
