"""Where the training rows of a run are from, as its user knows them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from diw.data import BENCHMARKS, EMBEDDED, Bundle
from diw.data.images import ImageFiles
from diw.data.read import read_raw, shared_label
from diw.data.split import Split
from diw.runs import RunSpec


@dataclass(frozen=True)
class Place:
    """Where a training row is from.

    Attributes:
        file: The data file, the image, or the name of a data set.
        row: The row of that file, counted from 0; None for an image.
        trusted: Whether it is a trusted row.
    """

    file: str
    row: int | None
    trusted: bool

    @property
    def key(self) -> tuple[str, str]:
        """File and row as texts; the row is empty for an image."""
        return self.file, "" if self.row is None else str(self.row)


def places_of(split: Split, bundle: Bundle, spec: RunSpec, part: Tensor | None) -> list[Place]:
    """Where the training rows of a run are from, in the order of its arrays.

    Args:
        split: The run's data.
        bundle: What they were drawn from.
        spec: The run's spec.
        part: (n,) the rows of the bundle that were drawn from; None for all.
    """
    images = _image_names(spec)
    count = len(bundle.train) if part is None else len(part)
    trusted = np.zeros(len(split.train), bool)
    trusted[split.trusted_places.numpy()] = True
    places: list[Place] = []
    for row, known in zip(split.rows.tolist(), trusted.tolist(), strict=True):
        later = row - count  # rows of the trusted file follow
        own = len(bundle.train) + later if later >= 0 or part is None else int(part[row])
        if images is not None:
            places.append(Place(images[own], None, known))
        elif later >= 0:
            places.append(Place(str(spec.trusted), later, known))
        else:
            places.append(Place(spec.data, own, known))
    return places


def is_own(data: str) -> bool:
    """Whether `data` is a file or folder of the user's, not a data set with a name."""
    return data != EMBEDDED and data not in BENCHMARKS


def _image_names(spec: RunSpec) -> list[str] | None:
    """The image files of the data, then of the trusted data; None where rows are not images."""
    if not is_own(spec.data) or not Path(spec.data).is_dir():
        return None
    names: list[str] = []
    for folder in (spec.data, spec.trusted):
        if isinstance(folder, str) and Path(folder).is_dir():
            content = read_raw(Path(folder), shared_label(spec.label)).content
            if not isinstance(content, ImageFiles):
                return None
            names += [str(file) for file in content.files]
    return names
