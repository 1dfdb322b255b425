"""Files as a practitioner has them, and the command that reads them."""

import contextlib
import io
from pathlib import Path

import numpy as np
from PIL import Image

from diw.cli.main import main

TRAIN = ("train", "--epochs", "2", "--device", "cpu")


def diw(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, in this process."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
    return int(code or 0), out.getvalue(), error.getvalue()


def done(*arguments: str | Path) -> str:
    """The output of a command that must succeed."""
    code, out, error = diw(*arguments)
    assert code == 0, error
    assert "\x1b" not in out + error  # no control codes in a pipe
    return out


def refused(*arguments: str | Path) -> str:
    """The one line of a command that must be refused."""
    code, out, error = diw(*arguments)
    assert code == 2, (code, error)
    assert out == ""
    *notes, last = error.strip().splitlines()
    assert all(note.startswith("note: ") for note in notes)
    return last


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder and what they hold."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_csv(path: Path, rows: int, seed: int, *, labels: bool = True) -> Path:
    """A table of numbers and words with missing cells; the label is `status`, ok or broken."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    right = x[:, 0] + x[:, 1] > 0
    lines = ["size,weight,colour" + (",status" if labels else "")]
    for place, (size, weight) in enumerate(x):
        colour = "" if place % 7 == 3 else ("red" if right[place] else "blue")
        cells = ["NA" if place % 5 == 2 else f"{size:.4f}", f"{weight:.4f}", colour]
        lines.append(",".join([*cells, *(["ok" if right[place] else "broken"] * labels)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_images(folder: Path, per_class: int, seed: int) -> Path:
    """Grey images of 14 x 14 pixels: bars lie, poles stand."""
    rng = np.random.default_rng(seed)
    for name in ("bar", "pole"):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            pixels = rng.integers(0, 60, (14, 14), dtype=np.uint8)
            pixels[4:7, 2:12] = 220
            image = Image.fromarray(pixels if name == "bar" else pixels.T)
            image.save(folder / name / f"{number}.png")
    return folder


def write_npz(path: Path, rows: int, seed: int) -> Path:
    """Rows of five numbers, three classes named by words."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, rows)
    inputs = rng.normal(size=(rows, 5)) + 3 * np.eye(5)[classes]
    np.savez(path, X=inputs, y=np.array(["ant", "bee", "cat"])[classes])
    return path


def three_classes(
    name: str, labels: str, seed: int, *, move: float = 0.0, named: bool = True
) -> str:
    """Write rows of three normal classes in the plane, with their labels or without; the name."""
    generator = np.random.default_rng(seed)
    centres = {"a": (0, 0), "b": (2, 0), "c": (0, 2)}
    lines = ["u,v,label" if named else "u,v"]
    for label in labels:
        u, v = generator.normal(size=2) + centres[label] + move
        lines.append(f"{u},{v},{label}" if named else f"{u},{v}")
    Path(name).write_text("\n".join(lines))
    return name
