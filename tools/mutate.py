"""Do the tests notice small errors? Mutants of the source, each under the tests of its package.

    OMP_NUM_THREADS=1 python tools/mutate.py --count 60 --seed 0 --json mutants.json
    python tools/mutate.py --tree ../older --packages weighting,matching

A mutant is one changed operator, comparison, number or condition in `src/diw/PACKAGE`. It is killed
if a test of `tests/PACKAGE`, the contract suite or the objective fails, or if they compute for ten
minutes.
Survivors are listed with their line: some change nothing that matters, each is worth a look.
"""

import argparse
import ast
import json
import os
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis  # noqa: F401
import pytest
import sklearn.linear_model  # noqa: F401
import torch  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
ALSO = ("contract", "test_objective.py")
SECONDS = 600
"""Of computing, not of waiting: a busy machine kills no mutant."""


def main() -> None:
    """Make mutants, run their tests, say how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--packages", default="methods,labels,matching")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where the results are kept; resumes from there")
    options = parser.parse_args()
    sources = [
        path
        for package in options.packages.split(",")
        for path in sorted((options.tree / "src" / "diw" / package).rglob("*.py"))
    ]
    sites = [(path, number) for path in sources for number in range(_count(path))]
    chosen = random.Random(options.seed).sample(sites, min(options.count, len(sites)))
    kept = {}
    if options.json and options.json.exists():
        kept = json.loads(options.json.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "tree"
        ignored = shutil.ignore_patterns(".git", ".venv*", "*cache*", "_build", "results")
        shutil.copytree(options.tree, copy, ignore=ignored)
        for path, number in chosen:
            name = f"{path.relative_to(options.tree)}#{number}"
            if name not in kept:
                kept[name] = _try(copy, path.relative_to(options.tree), number)
                print(name, kept[name], flush=True)
                if options.json:
                    options.json.write_text(json.dumps(kept, indent=1))
    survived = {name: what for name, what in kept.items() if not what["killed"]}
    print(f"{len(kept) - len(survived)} of {len(kept)} mutants killed")
    for name, what in survived.items():
        print(f"survived: {name} line {what['line']}: {what['change']}")


def _try(copy: Path, relative: Path, number: int) -> dict[str, object]:
    """Write mutant `number` of one file into the copy, run the tests, put the file back."""
    path = copy / relative
    original = path.read_text(encoding="utf-8")
    tree = ast.parse(original)
    line, change = _mutate(tree, number)
    path.write_text(ast.unparse(tree), encoding="utf-8")
    package = relative.parts[2]
    wanted = [f"{package}/test_{relative.stem}.py", package, *ALSO]  # its own tests find it first
    tests = [str(copy / "tests" / name) for name in wanted if (copy / "tests" / name).exists()]
    killed = _fails(copy, tests)
    path.write_text(original, encoding="utf-8")
    return {"killed": killed, "line": line, "change": change}


def _fails(copy: Path, tests: list[str]) -> bool:
    """Whether a test fails, in a fork of this process, which has imported what takes long."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return status != 0
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    sys.path[:0] = [str(copy / "src"), str(copy)]
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    os._exit(int(pytest.main([*options, *tests])))


def _mutate(tree: ast.Module, wanted: int) -> tuple[int, str]:
    """Change the `wanted`-th site of a module; its line, and what was changed into what."""
    node, field, place = list(_sites(tree))[wanted]
    before = ast.unparse(node)
    value = getattr(node, field)
    if isinstance(value, list):
        value[place] = SWAPS[type(value[place])]()
    elif isinstance(node, ast.Constant):
        node.value = value + 1 if isinstance(value, int) else 2 * value + 0.1
    else:
        setattr(node, field, SWAPS[type(value)]())
    return getattr(node, "lineno", 0), f"{before} -> {ast.unparse(node)}"


def _sites(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int]]:
    """Places to change: not in annotations, and not in what is raised or warned."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.arg)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.AnnAssign):
            yield from _sites(ast.Module([ast.Expr(node.value)] if node.value else [], []))
            continue
        if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPS:
            yield node, "op", 0
        if isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                if type(operator) in SWAPS:
                    yield node, "ops", place
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "value", 0
        yield from _sites(node)


def _count(path: Path) -> int:
    return len(list(_sites(ast.parse(path.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()
