"""Film the way from a pile of data to a trusted set: docs/images/trust.webp, and what it gains.

    python scripts/film_trust.py FOLDER [--rows 10000] [--samples 100]

Embedded images, 40% of them labelled wrongly as an annotator errs, are drawn from, checked in a
real browser by keys, read, trained on and audited, each with the command of the documentation. A
script plays the person; 5% of its answers are wrong. Beside it stand plain training, and a trusted
set of as many samples that was there from the start. FOLDER gets all files, `film.json` and
`trust.webp`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diw.data import load
from diw.data.split import make_split
from diw.files import write_json

SHIFT, MISTAKES = "annotator:0.4", 0.05
WIDTH, HEIGHT, FRAMES = 900, 620, 24
"""Pixels of the film, and the pictures of it."""


def write_data(folder: Path, rows: int, samples: int) -> tuple[Any, Any]:
    """Write data.npz, trusted.npz and test.npz; the names (n,) of right labels, and of classes."""
    bundle = load()
    split = make_split(bundle, shift=SHIFT, trusted=samples, seed=0, trusted_in_train=False)
    classes = np.array(bundle.train.classes)
    chosen = torch.from_numpy(np.random.default_rng(0).permutation(len(split.train))[:rows])
    parts = {
        "data": split.train.subset(chosen),
        "trusted": split.trusted,
        "test": bundle.test,
    }
    for name, part in parts.items():
        assert part is not None
        images, labels = part.take(torch.arange(len(part)))
        pixels = (255 * images[:, 0].numpy()).round().astype(np.uint8)
        np.savez(folder / f"{name}.npz", X=pixels, y=classes[labels.numpy()])
    assert split.true_labels is not None
    return classes[split.true_labels[chosen].numpy()], sorted(classes.tolist())


def check(folder: Path, right: list[str], classes: list[str]) -> int:
    """Check all rows on the page by keys, filming; how many answers were given."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    rng, pictures = np.random.default_rng(1), []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((folder / "check" / "check.html").absolute().as_uri())
        for place, name in enumerate(right):
            number = classes.index(name)
            wrong = rng.random() < MISTAKES
            page.keyboard.press(str((number + wrong * rng.integers(1, 10)) % 10))
            if place < FRAMES:
                picture = folder / f"frame-{place}.png"
                page.screenshot(path=picture)
                pictures.append(Image.open(picture).convert("RGB"))
        with page.expect_download() as waiting:
            page.click("#save")
        waiting.value.save_as(folder / "check" / "verified.csv")
        browser.close()
    pictures[0].save(
        folder / "trust.webp",
        save_all=True,
        append_images=pictures[1:],
        duration=700,
        loop=0,
        quality=60,
    )
    return len(right)


def film(folder: Path, *, rows: int = 10_000, samples: int = 100, steps: int | None = None) -> Any:
    """All steps, with the seconds of each and the accuracies at the end.

    Args:
        folder: An empty folder.
        rows: Images to draw from.
        samples: How many are checked.
        steps: Of each training; by default those of `diw train`.
    """
    right, classes = write_data(folder, rows, samples)
    found: dict[str, Any] = {"rows": rows, "samples": samples, "seconds": {}, "accuracy": {}}

    def run(step: str, *words: str) -> None:
        start = time.perf_counter()
        command = [sys.executable, "-m", "diw", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        found["seconds"][step] = round(time.perf_counter() - start, 1)
        (folder / f"{step}.txt").write_text(done.stdout)

    run("draw", "trust", "draw", "data.npz", "-n", str(samples), "--out", "check")
    state = json.loads((folder / "check" / "draw.json").read_text())
    drawn = [row for one in state["rounds"] for row in one["rows"]]
    start = time.perf_counter()
    check(folder, [str(right[row]) for row in drawn], classes)
    found["seconds"]["check"] = round(time.perf_counter() - start, 1)
    run("read", "trust", "read", "check/verified.csv", "--json", "read.json")
    found["wrong"] = json.loads((folder / "read.json").read_text())["wrong"]
    quick = [] if steps is None else ["--steps", str(steps)]
    common = ["--data", "data.npz", "--test", "test.npz", "--device", "cpu", *quick]
    verified = ["--verified", "check/verified.csv"]
    for name, words in {
        "verified": verified,
        "uniform": ["--method", "uniform", *verified],
        "trusted": ["--trusted", "trusted.npz"],
    }.items():
        run(name, "train", *common, *words, "--out", name, "--json", f"{name}.json")
        row = json.loads((folder / f"{name}.json").read_text())["results"][0]
        kept = row["kept_accuracy"]
        found["accuracy"][name] = row["last_accuracy"] if kept is None else kept
    run("audit", "audit", "verified", "--device", "cpu", "--out", "audit")
    write_json(folder / "film.json", found)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Film diw trust.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    made = film(options.folder, rows=options.rows, samples=options.samples, steps=options.steps)
    print(json.dumps(made, indent=2))
