"""Tables with known right labels, drawn and checked as a person would."""

import csv
from pathlib import Path

import numpy as np

from diw.trust import Draw, draw_rows, read_items

CLASSES = ("ant", "bee", "cat")


def write_table(path: Path, n: int = 300, seed: int = 0, wrong: float = 0.3) -> np.ndarray:
    """Write a table with the columns size, word and kind; return the right labels (n,)."""
    rng = np.random.default_rng(seed)
    right = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    given = np.where(rng.random(n) < wrong, (right + 1) % 3, right)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["size", "word", "kind"])
        for row in range(n):
            table.writerow([f"{right[row] + rng.normal():.4f}", "=1+1", CLASSES[given[row]]])
    return right


def drawn_from(path: Path, n: int = 40, **options) -> Draw:
    """A draw of one round from a table."""
    items = read_items(str(path), "kind")
    counts = tuple(np.bincount(items.given).tolist())
    empty = Draw(str(path), ".", "kind", None, items.classes, counts)
    return empty.continued(items, draw_rows(items.given, 3, n, **options))


def fill(sheet: Path, right: np.ndarray, delimiter: str = ",") -> None:
    """Fill the column `right` of a sheet, as somebody who makes no mistake."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line["right"] = CLASSES[right[int(line["row"])]]
    write_lines(sheet, lines, delimiter)


def write_lines(sheet: Path, lines: list[dict[str, str]], delimiter: str = ",") -> None:
    with sheet.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(lines[0]), delimiter=delimiter)
        table.writeheader()
        table.writerows(lines)
