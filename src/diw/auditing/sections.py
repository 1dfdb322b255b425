"""The diagnosis as a section of a page, and as lines for a terminal."""

from html import escape

from diw.auditing.diagnosis import Diagnosis
from diw.reports.table import Cell, Column, Table, make_table, text_cell, to_html

MANY = 20
"""Classes up to which transitions are shown."""

TESTS = {
    "features": "inputs differ (MMD)",
    "labels": "class shares differ",
    "losses": "training labels fit worse",
}


def tests_table(found: Diagnosis) -> Table:
    """The three tests with their p-values."""
    return make_table(
        [
            (Column("test", "test", "left"), text_cell(TESTS[name])),
            (Column("p", "p-value"), _p(found.p_values[name])),
            (Column("adjusted", "adjusted (Holm)"), _p(found.adjusted[name])),
        ]
        for name in found.p_values
    )


def ratios_table(found: Diagnosis) -> Table:
    """Trusted over training share of each class."""

    def row(number: int) -> list[tuple[Column, Cell]]:
        ratio, low, high = (float(value) for value in found.ratios[number])
        return [
            (Column("class", "class", "left"), text_cell(found.classes[number])),
            (Column("ratio", "trusted : training"), Cell(f"{ratio:.2f}", ratio)),
            (Column("interval", "95% interval"), Cell(f"{low:.2f} to {high:.2f}", None)),
        ]

    return make_table(map(row, range(len(found.classes))))


def transitions_table(found: Diagnosis) -> Table:
    """The estimated share of each class that is labelled as each class, in per cent."""

    def row(number: int) -> list[tuple[Column, Cell]]:
        cells = [(Column("class", "class", "left"), text_cell(found.classes[number]))]
        for name, value in zip(found.classes, found.noise.transitions[number], strict=True):
            text = f"{100 * value:.0f}" if value >= 0.005 else "·"
            cells.append((Column(name, f"as {name}"), Cell(text, float(value))))
        return cells

    return make_table(map(row, range(len(found.classes))))


def facts(found: Diagnosis) -> list[str]:
    """What else was estimated, in lines."""
    noise = found.noise
    share, low, high = found.outside
    return [
        f"wrong labels: {100 * noise.share:.1f}% "
        f"(95% interval {100 * noise.low:.1f} to {100 * noise.high:.1f}%)",
        f"trusted samples outside the training samples: {100 * share:.1f}% "
        f"({100 * low:.1f} to {100 * high:.1f}%; 1% is what no shift gives)",
    ]


def diagnosis_section(found: Diagnosis) -> str:
    """The diagnosis as HTML."""
    lines = "".join(f"<li>{escape(line[0].upper() + line[1:])}</li>" for line in facts(found))
    parts = [to_html(tests_table(found))]
    if len(found.classes) <= MANY:
        parts.append(
            "<details><summary>Which labels were given for which classes, in per cent</summary>\n"
            f"{to_html(transitions_table(found))}</details>"
        )
    parts.append(
        "<details><summary>Class shares, trusted against training labels</summary>\n"
        f"{to_html(ratios_table(found))}</details>"
    )
    return (
        '<section aria-labelledby="shift">\n<h2 id="shift">Which shift is it?</h2>\n'
        f"<p>{escape(found.sentence)}</p>\n"
        "<details>\n<summary>The evidence</summary>\n"
        f"{parts[0]}\n<ul>{lines}</ul>\n</details>\n{''.join(parts[1:])}\n</section>"
    )


def _p(value: float) -> Cell:
    return Cell(f"{value:.3f}", value, strong=value <= 0.05)
