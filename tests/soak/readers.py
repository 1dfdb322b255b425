"""Damage files of every kind that diw reads: each is read, or refused in one line.

    python -m tests.soak.readers [--cases 3000] [--folder .soak/readers] [--seed 0]

A few bytes are changed, cut off, repeated, or exchanged for those of a file of another kind. The
number reached is kept, so that a stopped soak goes on.
"""

import argparse
import gzip
import random
import traceback
import warnings
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import torch
from PIL import Image

from diw.data import load
from diw.data.streams import find_parts
from diw.data.values import read_values
from diw.errors import RunError, UsageError


def originals() -> dict[str, bytes]:
    """A small sound file of each kind, by its ending."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(12, 3)), np.array(["a", "b"] * 6)
    np.savez_compressed("f.npz", X=X, y=y)
    np.savez("plain.npz", X=X, y=y)
    np.save("f.npy", X)
    rows = ["x,z,label", *(f"{a:.3f},{b:.3f},{c}" for (a, b, _), c in zip(X, y, strict=True))]
    text = "\n".join(rows).encode()
    Path("f.csv").write_bytes(text)
    Path("f.tsv").write_bytes(text.replace(b",", b"\t"))
    Path("f.csv.gz").write_bytes(gzip.compress(text))
    table = pyarrow.table({"x": X[:, 0], "z": X[:, 1], "label": y})
    parquet.write_table(table, "f.parquet")
    for name in ("f.png", "f.jpg"):
        Image.fromarray(generator.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(name)
    found = {path.name: path.read_bytes() for path in sorted(Path().glob("f.*"))}
    return found | {"plain.npz": Path("plain.npz").read_bytes()}


def damaged(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """The content with something wrong."""
    changed = bytearray(content)
    kind = chance.randrange(6)
    place = chance.randrange(len(changed))
    if kind <= 2:
        for _ in range(chance.randint(1, 6)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    elif kind == 3:
        del changed[place:]
    elif kind == 4:
        changed[place:place] = changed[: chance.randrange(1, len(changed))]
    else:
        changed[place:] = other[min(place, len(other) - 1) :]
    return bytes(changed)


def read(path: Path) -> None:
    """With every reader that takes such a file."""
    if path.suffix in (".png", ".jpg"):
        path = path.parent.parent
    for reader in (_load, _values, _parts):
        try:
            reader(path)
        except (UsageError, RunError) as error:
            if "\n" in str(error) or not str(error):
                raise AssertionError(f"not one line: {error!r}") from error


def _load(path: Path) -> None:
    bundle = load(path)
    bundle.train.take(torch.arange(len(bundle.train)))


def _values(path: Path) -> None:
    if path.is_file():
        read_values(path, path)


def _parts(path: Path) -> None:
    if path.suffix in (".npy", ".parquet"):
        for part in find_parts(path):
            part.read()


def run_soak(folder: Path, cases: int, seed: int) -> None:
    """Go on from the last case."""
    import os

    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    files = originals()
    reached = Path("reached")
    for number in range(int(reached.read_text()) if reached.exists() else 0, cases):
        chance = random.Random(f"{seed} {number}")
        name = chance.choice(list(files))
        content = damaged(files[name], files[chance.choice(list(files))], chance)
        path = Path("damaged", "a" if name[-3:] in ("png", "jpg") else ".", f"case-{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        try:
            read(path)
        except Exception:
            raise SystemExit(f"case {number}, {path}: {traceback.format_exc()}") from None
        path.unlink()
        if number % 500 == 499 or number == cases - 1:
            reached.write_text(str(number + 1))
            print(f"{number + 1} files, nothing wrong", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--folder", type=Path, default=Path(".soak/readers"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    run_soak(options.folder.absolute(), options.cases, options.seed)
