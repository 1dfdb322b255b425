"""LaTeX of a table."""

from diw.pages import Table

_LATEX = {
    **{character: rf"\{character}" for character in "{}%&#$_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "−": "$-$",
    "†": r"$\dagger$",
    "×": r"$\times$",
}


def to_latex(table: Table) -> str:
    """A `table` environment; needs the booktabs package."""
    shape = "".join("l" if column.align == "left" else "r" for column in table.columns)
    parts = [r"\begin{table}", r"\centering"]
    parts += [rf"\caption{{{_latex(table.caption)}}}"] if table.caption else []
    parts += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    parts += [" & ".join(_latex(column.title) for column in table.columns) + r" \\", r"\midrule"]
    for row in table.rows:
        texts = [rf"\textbf{{{_latex(c.text)}}}" if c.strong else _latex(c.text) for c in row]
        parts.append(" & ".join(texts) + r" \\")
    parts += [r"\bottomrule", r"\end{tabular}"]
    parts += [rf"\par\smallskip{{\footnotesize {_latex(note)}}}" for note in table.notes]
    return "\n".join([*parts, r"\end{table}"]) + "\n"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
