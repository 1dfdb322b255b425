"""Scores of a network as tables: accuracy by class, and what was taken for what."""

from typing import TYPE_CHECKING

import numpy as np

from diw.reports.tables import Cell, Column, Table, number_cell, text_cell

if TYPE_CHECKING:
    from diw.predicting import Scores

LARGEST_MATRIX = 20
"""Of more classes the most frequent confusions are listed instead of the matrix."""

WIDTH = 80
"""Characters of a line in which class names as headings must fit; else numbers head the columns."""


def class_table(scores: "Scores") -> Table:
    """One row a class: its rows, and the share of them that is right."""
    columns = (
        Column("class", "class", "left"),
        Column("rows", "rows"),
        Column("accuracy", "accuracy %"),
    )
    return Table(
        columns,
        tuple(
            (text_cell(name), _count(int(n)), number_cell(accuracy, scale=100))
            for name, n, accuracy in zip(
                scores.classes, scores.counts, scores.class_accuracies, strict=True
            )
        ),
    )


def confusion_table(scores: "Scores") -> Table:
    """The confusion matrix, true classes down and predicted ones across; or its largest entries."""
    if len(scores.classes) > LARGEST_MATRIX:
        return _largest(scores)
    names = scores.classes
    cells = [max(len(name), len(f"{scores.rows:,}")) + 2 for name in names]
    short = max(map(len, names)) + sum(cells) > WIDTH
    columns = [Column("class", "true class", "left")]
    columns += [Column(name, str(place) if short else name) for place, name in enumerate(names)]
    rows = [
        (
            text_cell(f"{place} {name}" if short else name),
            *(
                Cell(f"{count:,}" if count else "·", count)
                for count in scores.confusion[place].tolist()
            ),
        )
        for place, name in enumerate(names)
    ]
    return Table(tuple(columns), tuple(rows), "Confusion matrix: columns are predicted classes")


def _largest(scores: "Scores") -> Table:
    wrong = scores.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:LARGEST_MATRIX]
    places = [divmod(int(place), len(scores.classes)) for place in order]
    rows = tuple(
        (text_cell(scores.classes[i]), text_cell(scores.classes[j]), _count(int(wrong[i, j])))
        for i, j in places
        if wrong[i, j]
    )
    columns = (
        Column("true", "true class", "left"),
        Column("predicted", "predicted", "left"),
        Column("rows", "rows"),
    )
    return Table(
        columns,
        rows,
        "The most frequent confusions",
        ("--json FILE writes the whole matrix.",),
    )


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)
