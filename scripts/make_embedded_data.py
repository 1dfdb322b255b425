"""Make the embedded data set from the four original idx files of Fashion-MNIST.

    python scripts/make_embedded_data.py FOLDER_WITH_IDX_FILES [OUTPUT]

Draws 1,000 training and 200 test images of each class, in their original
order, with the row numbers they had. The draw is seeded: the same files give
the same arrays on every machine.
"""

import argparse
from pathlib import Path

import numpy as np

from diw.data.benchmarks.catalogue import FASHION_MNIST
from diw.data.benchmarks.files import read_content
from diw.data.benchmarks.readers import EMBEDDED_FILE, digest, parse_idx
from diw.seeding import numpy_generator

PER_CLASS = {"train": 1000, "test": 200}


def stratified_rows(labels: np.ndarray, per_class: int, part: str) -> np.ndarray:
    """`per_class` row numbers of every class, ascending."""
    rng = numpy_generator(2020, "embedded", part)
    rows = [
        rng.permutation(np.flatnonzero(labels == label))[:per_class] for label in np.unique(labels)
    ]
    return np.sort(np.concatenate(rows))


def subset(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of the embedded file, from files that are verified while they are read."""
    arrays: dict[str, np.ndarray] = {}
    for part, files in (("train", FASHION_MNIST.train), ("test", FASHION_MNIST.test)):
        images, labels = (
            parse_idx(read_content(folder / file.name, file), file.name) for file in files
        )
        rows = stratified_rows(labels, PER_CLASS[part], part)
        arrays[f"{part}_images"] = images[rows]
        arrays[f"{part}_labels"] = labels[rows]
        arrays[f"{part}_rows"] = rows.astype(np.int32)
    return arrays


def main() -> None:
    """Write the file and print what the package must know about it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path, nargs="?", default=EMBEDDED_FILE)
    options = parser.parse_args()
    arrays = subset(options.folder)
    unfinished = options.output.with_suffix(".unfinished.npz")
    np.savez_compressed(unfinished, **arrays)
    unfinished.replace(options.output)
    print(f"{options.output}: {options.output.stat().st_size:,} bytes")
    print(f"sha256 of the contents: {digest(arrays)}")


if __name__ == "__main__":
    main()
