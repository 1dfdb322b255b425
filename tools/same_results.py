"""Do all methods still give the same numbers? An older revision and this tree, byte by byte.

    python tools/same_results.py            # against the revision before the redesign
    python tools/same_results.py REVISION --methods remember,elr

Both trees train each method on a small table under two shifts, and the default and a few others
on images. Metrics (but for seconds), ledgers of weights and losses and the final network are
compared. The older tree's runs are kept in `.soak/same/REVISION`. Exit code 1 if anything differs.
Differences that are meant are in EXPECTED, with their reason.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "9284e90"
SHIFTS = ("symmetric:0.4", "prior:0.4,10")
TABLE = ("--epochs", "24", "--batch-size", "64", "--trusted", "60", "--selection", "0")
IMAGES = ("--data", "embedded", "--epochs", "4", "--shift", "pair:0.45")
ON_IMAGES = ("remember", "diw", "diw2-f", "reweight", "elr")
WARM = {"remember": ("--set", "warmup_steps=100"), "diw": ("--set", "warmup_steps=100")}
EXPECTED = {
    ("elr", "losses.npy"): "losses are those of the given labels, not the regularised ones",
    ("glc", "losses.npy"): "losses are those of the given labels, not the corrected ones",
}
COMPARED = ("metrics.jsonl", "weights.npy", "losses.npy", "model.safetensors")
# Another path to the same optimum: weights of a match of up to 64 values, or of full rank, agree to
# 1e-8, within the error bound of either, and a training makes more of that. Factors are the same.
REROUTED = ("iw", "siw-f", "diw1-l", "diw2-f", "diw", "diw3-l", "giw")
EXPECTED |= {
    (f"{method}-{shift.split(':')[0]}", name): "matches are solved by exchanges from another guess"
    for method in REROUTED
    for shift in SHIFTS
    for name in COMPARED
}
EXPECTED["diw2-f-images", "metrics.jsonl"] = "iterations are counted as rounds of exchanges"
TRAIN_ALL = """
import contextlib, io, json, sys
from diw.cli.main import main
for arguments in json.loads(sys.stdin.read()):
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main(arguments)
    except SystemExit as end:
        if end.code:
            print(" ".join(arguments), output.getvalue(), file=sys.stderr)
"""


def main() -> int:
    """Compare the two trees; 1 if anything differs that is not expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", nargs="?", default=BEFORE, help="the older revision")
    parser.add_argument("--methods", help="some methods only, by comma")
    parser.add_argument("--cache", type=Path, default=ROOT / ".soak" / "same")
    options = parser.parse_args()
    revision = _git("rev-parse", "--short", options.revision)
    kept = options.cache / revision
    kept.mkdir(parents=True, exist_ok=True)
    table = _write_table(kept / "table.npz")
    methods = options.methods.split(",") if options.methods else _method_names()
    cases = _cases(methods, table)
    missing = {name: case for name, case in cases.items() if not (kept / name / "done").exists()}
    if missing:
        with tempfile.TemporaryDirectory() as scratch:
            _git("worktree", "add", "--detach", scratch, revision)
            try:
                _train(Path(scratch) / "src", missing, kept)
            finally:
                _git("worktree", "remove", "--force", scratch)
    with tempfile.TemporaryDirectory() as scratch:
        _train(ROOT / "src", cases, Path(scratch))
        wrong = [line for name in cases for line in _differences(kept / name, Path(scratch) / name)]
    print(*wrong, f"{len(cases)} runs compared, {len(wrong)} differ", sep="\n")
    return int(bool(wrong))


def _cases(methods: list[str], table: Path) -> dict[str, list[str]]:
    """The arguments of `diw train` by the name of the run."""
    cases: dict[str, list[str]] = {}
    for method in methods:
        asked = ["train", "--method", method, "--device", "cpu", *WARM.get(method, ())]
        for shift in SHIFTS:
            name = f"{method}-{shift.split(':')[0]}"
            cases[name] = [*asked, "--data", str(table), "--shift", shift, *TABLE]
        if method in ON_IMAGES:
            cases[f"{method}-images"] = [*asked, *IMAGES]
    return cases


def _train(source: Path, cases: dict[str, list[str]], out: Path) -> None:
    commands = [[*case, "--out", str(out / name)] for name, case in cases.items()]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(source)}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRAIN_ALL],
        input=json.dumps(commands),
        env=environment,
        text=True,
        check=True,
    )


def _differences(old: Path, new: Path) -> list[str]:
    lines: list[str] = []
    for name in COMPARED:
        method = old.name.rsplit("-", 1)[0]
        if (method, name) in EXPECTED or (old.name, name) in EXPECTED:
            continue
        if not (new / name).exists() and not (old / name).exists():
            continue  # of a method without
        if not (new / name).exists() or not (old / name).exists():
            lines.append(f"{old.name}: {name} is missing")
        elif name == "metrics.jsonl":
            pairs = zip(_rows(old / name), _rows(new / name), strict=True)
            changed = sorted({k for a, b in pairs for k in a | b if a.get(k) != b.get(k)})
            lines += [f"{old.name}: metrics differ: {', '.join(changed)}"] if changed else []
        elif (old / name).read_bytes() != (new / name).read_bytes():
            lines.append(f"{old.name}: {name} differs{_by_how_much(old / name, new / name)}")
    return lines


def _rows(path: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in rows]


def _by_how_much(old: Path, new: Path) -> str:
    if old.suffix != ".npy":
        return ""
    a, b = (np.load(path).astype(float) for path in (old, new))
    if a.shape != b.shape:
        return f" in shape: {a.shape}, {b.shape}"
    return f" by up to {np.nanmax(np.abs(a - b)):.3g}"


def _write_table(path: Path) -> Path:
    """Four overlapping classes of 1,500 rows."""
    if not path.exists():
        rng = np.random.default_rng(0)
        classes = rng.integers(0, 4, 1500)
        inputs = rng.normal(size=(1500, 8)) + 1.5 * np.eye(8)[classes]
        np.savez(path, X=inputs.astype(np.float32), y=classes)
    return path


def _method_names() -> list[str]:
    from diw.methods import methods

    return list(methods())


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
