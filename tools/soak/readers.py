"""Damage files of every kind that diw reads: each is read, or refused in one line.

    python -m tools.soak.readers [--files 3000] [--folder .soak/readers] [--seed 0]

A few bytes are changed, cut off, repeated, or exchanged for those of a file of another kind. The
number reached is kept, so that a stopped soak goes on.
"""

import gzip
import os
import random
import struct
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import torch
from PIL import Image
from tools.soak.cases import WrongError, go_through, run_from_command_line

from diw.data import load
from diw.data.benchmarks.readers import parse_idx
from diw.data.marks import read_corrections
from diw.data.values import find_parts, read_values
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
    Path("f.corrections").write_text("file,row,label,mark,correct\n,3,a,wrong,b\n,4,b,right,\n")
    Path("f.idx").write_bytes(struct.pack(">HBBII", 0, 8, 2, 5, 7) + bytes(range(35)))
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


def read(path: Path) -> str:
    """With every reader that takes such a file; "refused" if one of them does, else "read"."""
    if path.suffix in (".png", ".jpg"):
        path = path.parent.parent
    outcome = "read"
    for reader in READERS.get(path.suffix, (_load, _values)):
        try:
            reader(path)
        except (UsageError, RunError) as error:
            if "\n" in str(error) or not str(error):
                raise WrongError(f"{path}: not one line: {error!r}") from error
            outcome = "refused"
    return outcome


def _load(path: Path) -> None:
    bundle = load(path)
    bundle.train.take(torch.arange(len(bundle.train)))


def _values(path: Path) -> None:
    read_values(path, path)


def _parts(path: Path) -> None:
    for part in find_parts(path, drop=() if path.suffix == ".npy" else ("label",)):
        part.read()


def _idx(path: Path) -> None:
    parse_idx(path.read_bytes(), path.name)


READERS = {
    "": (_load,),  # a folder of images
    ".npy": (_load, _values, _parts),
    ".parquet": (_load, _values, _parts),
    ".corrections": (read_corrections,),
    ".idx": (_idx,),
}
"""Of tables, and of what has another ending than these: the first two of `.npy`."""


def _place(name: str) -> Path:
    path = Path("damaged", "images/a" if name[-3:] in ("png", "jpg") else ".", f"case-{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def run_soak(folder: Path, files: int, seed: int) -> None:
    """Damage so many files, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    sound = originals()
    places = {name: _place(name) for name in sound}
    np.save("damaged/case-f.labels.npy", np.array([0, 1] * 6))
    Path("damaged/images/b").mkdir(exist_ok=True)
    Path("damaged/images/b/sound.png").write_bytes(sound["f.png"])
    for name, content in sound.items():
        places[name].write_bytes(content)
        assert read(places[name]) == "read", f"{name} cannot be read before it is damaged"
        places[name].unlink()

    def case(number: int) -> str:
        chance = random.Random(f"{seed} {number}")
        name = chance.choice(list(sound))
        content = damaged(sound[name], sound[chance.choice(list(sound))], chance)
        places[name].write_bytes(content)
        outcome = read(places[name])
        places[name].unlink()
        return outcome

    go_through(folder, "files", files, case)


if __name__ == "__main__":
    run_from_command_line(run_soak, str(__doc__), "readers", "files", 3000)
