"""Verified rows: rows of the data whose labels somebody has checked, in a file or a mapping."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from diw.auditing.given import class_name, no_class
from diw.data.tables import open_csv
from diw.errors import UsageError
from diw.labels.transitions import Floats, Ints


class Located(Protocol):
    """Where a row is from."""

    @property
    def file(self) -> str:
        """Its file."""
        ...

    @property
    def row(self) -> int | None:
        """The row of that file, counted from 0; None for an image."""
        ...


def place_verified(
    verified: Mapping[Any, Any], place_of: Mapping[Any, int], classes: Sequence[str]
) -> tuple[Ints, Ints]:
    """(m,) places of the verified rows, in order, and (m,) their right classes.

    Args:
        verified: The right label of each row.
        place_of: The place of each row.
        classes: The names of the classes.
    """
    number = {text: place for place, text in enumerate(classes)}
    found: dict[int, int] = {}
    for row, label in verified.items():
        where = f"verified: row {row!r}"
        if row not in place_of:
            raise UsageError(f"{where} is not in the data, which have {len(place_of):,} rows")
        if label is None or label != label:
            raise UsageError(f"{where} has no label; leave such rows out")
        text = class_name(label)
        if text not in number:
            raise UsageError(f"{where}: {no_class(text, classes)}")
        if found.setdefault(place_of[row], number[text]) != number[text]:
            raise UsageError(f"{where} has two labels; keep the right one")
    places = np.array(sorted(found), np.int64)
    return places, np.array([found[place] for place in places.tolist()], np.int64)


def read_verified(
    path: Path, places: Sequence[Located], classes: Sequence[str], given: Ints
) -> tuple[Ints, Ints, Floats | None]:
    """Verified rows: places (m,), right classes (m,), and drawing probabilities (m,) where known.

    The file is a sheet with the columns row (counted from 0; for images file) and right, and where
    known given, and drawn: the probability with which the row was drawn. Or it is the
    `corrections.csv` of an audit's page: its rows were picked, so they train the model and say
    nothing of the share of wrong labels.

    Args:
        path: A CSV file.
        places: (n,) where each row is from.
        classes: Names by class number.
        given: (n,) the given labels.
    """
    place_of: dict[Any, int] = {}
    for place, one in enumerate(places):
        place_of.setdefault(_image(one.file) if one.row is None else one.row, place)
    right: dict[Any, str] = {}
    drawn: dict[int, float] = {}
    with open_csv(path) as file:
        names = file.names
        picked = "mark" in names
        answer = "correct" if picked else "right"
        lacking = [name for name in (answer, "row") if name not in names]
        if lacking and not (lacking == ["row"] and "file" in names):
            raise UsageError(
                f"verified: {path} has no column {lacking[0]!r}; it needs row (or file) and right"
            )
        for line, cells in file.lines:
            row = dict(zip(names, cells, strict=False))
            where = f"verified: line {line} of {path}"
            text = row[answer] or (row["label"] if picked and row["mark"] == "right" else "")
            if not text:
                continue  # nobody has looked at it yet, or it is to be dropped
            which = _number(row["row"], where) if row.get("row") else _image(row.get("file", ""))
            if which not in place_of:
                raise UsageError(f"{where}: {which!r} is not in the data")
            if text not in classes:
                raise UsageError(f"{where}: {no_class(text, classes)}")
            if right.setdefault(which, text) != text:
                raise UsageError(f"{where}: {which!r} has two right labels; keep one of them")
            place = place_of[which]
            before = row.get("label" if picked else "given")
            if before and before != classes[given[place]]:
                raise UsageError(
                    f"{where}: the given label is {before!r} there and {classes[given[place]]!r} "
                    "in the data; were rows added, removed or sorted since?"
                )
            drawn[place] = 0.0 if picked else _probability(row.get("drawn", ""), where)
    if not right:
        raise UsageError(f"verified: {path} holds no right label")
    rows, numbers = place_verified(right, place_of, classes)
    shares = np.array([drawn[place] for place in rows.tolist()])
    return rows, numbers, None if np.isnan(shares).any() else shares


def _image(name: str) -> str:
    """Folder and name of an image: the data may have been named from another folder."""
    return "/".join(name.replace("\\", "/").split("/")[-2:])


def _number(text: str, where: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = -0.5
    if not number.is_integer():
        raise UsageError(f"{where}: {text!r} is no row number, counted from 0")
    return int(number)


def _probability(text: str, where: str) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        value = -1.0
    if value <= 0 or value > 1:
        raise UsageError(f"{where}: drawn is {text!r}, which is no probability")
    return value
