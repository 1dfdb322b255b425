"""`diw compare` from end to end; where it is interrupted, in a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.own_data import done, write_csv

DATA = ("--data", "train.csv", "--trusted", "trusted.csv", "--label", "status")
QUICK = ("--shift", "symmetric:0.4", "--epochs", "20", "--seeds", "1", "--no-learners")
ARGUMENTS = ("compare", *DATA, *QUICK, "--device", "cpu", "--json", "r.json")
pytestmark = pytest.mark.xdist_group("compare")  # `whole` is made once then
TWO = ("--methods", "uniform,remember")


def start(folder: Path, *more: str) -> "subprocess.Popen[str]":
    program = "from diw.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *ARGUMENTS, *more],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A test run in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finish(folder: Path, *more: str) -> tuple[str, list[dict]]:
    with contextlib.chdir(folder):
        out = done(*ARGUMENTS, *more, "--jobs", "1")
    return out, json.loads((folder / "r.json").read_text())["results"]


def write_files(folder: Path) -> Path:
    write_csv(folder / "train.csv", 400, 1)
    write_csv(folder / "trusted.csv", 60, 2)
    return folder


def without_seconds(results: list[dict]) -> list[dict]:
    return [{k: v for k, v in result.items() if k != "seconds"} for result in results]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, str, list[dict]]:
    folder = write_files(tmp_path_factory.mktemp("whole"))
    return folder, *finish(folder)


def test_table_records_and_page(whole) -> None:
    folder, out, results = whole
    assert "weight AUROC" in out
    assert "runs/compare/report.html" in out
    page = (folder / "runs" / "compare" / "report.html").read_text()
    assert "<html" in page
    by_method = {result["method"]: result for result in results}
    assert by_method.keys() == {"uniform", "random", "remember"}
    for result in results:
        assert {"method", "seed", "last_accuracy", "best_accuracy"} <= result.keys()
        assert {"weight_auroc", "ess", "seconds", "run"} <= result.keys()
        assert 0 < result["last_accuracy"] <= result["best_accuracy"] <= 1
        assert (folder / result["run"] / "done").exists()
    assert by_method["uniform"]["weight_auroc"] is None
    assert 0.7 < by_method["remember"]["weight_auroc"] <= 1


def test_a_second_call_only_reports(whole) -> None:
    folder, _, results = whole
    models = sorted((folder / "runs").rglob("model.safetensors"))
    before = [path.stat().st_mtime_ns for path in models]
    assert finish(folder)[1] == results
    assert [path.stat().st_mtime_ns for path in models] == before


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_an_interrupted_call_goes_on_to_the_same_result(number, code, whole, tmp_path) -> None:
    process = start(write_files(tmp_path), *TWO)
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob("checkpoint.pt")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in error
    if number == signal.SIGINT:
        assert "the same command goes on" in error
    expected = [result for result in whole[2] if result["method"] != "random"]
    assert without_seconds(finish(tmp_path, *TWO)[1]) == without_seconds(expected)
