"""The command from end to end: every table and figure at the smallest scale there is."""

import csv
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diw.cli import run
from reproduction.__main__ import PROGRAM, reproduce
from reproduction.catalogue import catalogue, find_experiments
from reproduction.order import read_filter

TABLES = ("label-noise", "class-prior", "weight-distance", "ablation", "trusted-size", "solver")
FIGURES = {
    "label-noise": ["label-noise-curves"],
    "weights": [f"weights-cifar-10-{noise}" for noise in ("0.3-pair", "0.4-symmetric")],
    "tsne": ["tsne-cifar-10"],
    "denoising": ["denoising"],
    "trusted-size": ["trusted-size"],
    "solver": ["solver-curves"],
    "first-fall": ["first-fall-curves"],
    "beyond-paper": ["beyond-paper-curves"],
}
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("smoke")  # which is made once then
PART = "data=cifar-10,data=fashion-mnist,noise=0.4s,noise=prior:0.2,100"


def call(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """In a place without any benchmark's data: only generated images are there."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "DIW_DATA": str(folder / "none"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "reproduction", *words],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=500,
        check=False,
    )


@pytest.fixture(scope="module")
def smoke(tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("smoke")
    done = call(folder, "all", "--trials", "1", "--jobs", "1", "--only", PART)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    return folder / "runs" / "reproduce" / "smoke", done.stdout


def test_every_table_is_there_in_every_format(smoke) -> None:
    folder, out = smoke
    for name in TABLES:
        for kind in ("md", "tex", "csv", "json"):
            assert (folder / name / f"{name}.{kind}").stat().st_size > 200
        assert r"\toprule" in (folder / name / f"{name}.tex").read_text()
        assert str(Path("runs/reproduce/smoke") / name) in out
    with (folder / "label-noise" / "label-noise.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 54
    done = [row for row in rows if row["state"] == "done"]
    assert {row["data"] for row in done} == {"Fashion-MNIST (synthetic)", "CIFAR-10 (synthetic)"}
    assert {row["setting"] for row in done} == {"0.4 symmetric"}
    assert all(0 <= float(row["ours"]) <= 100 for row in done)
    assert all(float(row["best"]) >= float(row["ours"]) for row in done)
    assert all(row["difference"] == "" for row in rows)  # nothing compares with generated images
    assert {float(row["paper"]) for row in rows} >= {88.29, 53.66}


def test_every_figure_is_there(smoke) -> None:
    folder, _ = smoke
    for name, figures in FIGURES.items():
        for figure in figures:
            assert (folder / name / f"{figure}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
            assert (folder / name / f"{figure}.pdf").read_bytes()[:5] == b"%PDF-"
            assert f"{figure}.png" in (folder / name / f"{name}.md").read_text()


def test_every_claim_has_a_computed_verdict(smoke) -> None:
    folder, out = smoke
    page = (folder / "report.html").read_text()
    for name, experiment in catalogue().items():
        assert f'<section id="{name}">' in page
        for claim in experiment.claims:
            assert f"- {claim['text']} " in out
            assert f"- {claim['text']} " in (folder / name / f"{name}.md").read_text()
    assert page.count("data:image/png;base64,") == len(list(folder.glob("*/*.png"))) == 14
    assert "synthetic" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "diw is best on average (too few trials for a test)" in out
    assert "in the paper best or comparable in 2 of 3" in out


def test_a_second_call_trains_nothing_and_writes_the_same(smoke) -> None:
    folder, _ = smoke
    runs = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/done")}
    assert 30 < len(runs) < 65
    table = (folder / "ablation" / "ablation.csv").read_bytes()
    part = PART.removesuffix(",noise=prior:0.2,100")
    again = call(folder.parents[2], "ablation", "--trials", "1", "--only", part)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/done")} == runs
    assert (folder / "ablation" / "ablation.csv").read_bytes() == table
    page = (folder / "report.html").read_text()
    assert all(f'<section id="{name}">' in page for name in catalogue())


def test_kept_results_are_not_trained_again(smoke, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "scripts.keep_results", smoke[0], tmp_path / "results" / "smoke"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    part = "data=cifar-10,data=fashion-mnist,noise=0.4s"
    words = ("label-noise", "--trials", "1", "--jobs", "1", "--only", part)
    told = call(tmp_path, *words, "--dry-run")
    assert " 0 to do" in told.stdout
    done = call(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "runs taken from results" in done.stderr
    again = tmp_path / "runs" / "reproduce" / "smoke"
    assert not list(again.rglob("model.safetensors"))
    table = Path("label-noise") / "label-noise.csv"
    assert (again / table).read_text() == (smoke[0] / table).read_text()


def test_what_is_finished_is_reported_without_training(smoke, tmp_path: Path) -> None:
    words = ("denoising", "--trials", "2", "--only", "data=cifar-10,noise=0.4s,noise=0.3p")
    folder = tmp_path / "runs" / "reproduce" / "smoke"
    shutil.copytree(smoke[0], folder)
    before = sorted(path.name for path in (folder / "runs").iterdir())
    (folder / "report.html").unlink()
    done = call(tmp_path, *words, "--finished")
    assert done.returncode == 0, done.stderr
    assert "1 runs, 1 of them finished before" in done.stderr  # that of the first seed
    assert sorted(path.name for path in (folder / "runs").iterdir()) == before
    assert (folder / "report.html").is_file()


def test_a_dry_run_measures_and_trains_nothing(smoke) -> None:
    folder, _ = smoke
    before = sorted(folder.glob("runs/*"))
    done = call(folder.parents[2], "class-prior", "weight-distance", "--trials", "1", "--dry-run")
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert "class-prior       14 runs, 0 shared with the above, 7 finished, 7 to do" in first
    assert "6 shared with the above, 0 finished, 0 to do, 0:00" in second
    assert "7 runs to do, about 0:" in last
    assert sorted(folder.glob("runs/*")) == before


def test_missing_data_are_marked_and_the_command_ends_well(tmp_path: Path) -> None:
    done = call(tmp_path, "label-noise", "--scale", "cpu")
    assert done.returncode == 0, done.stderr
    assert "no data" in done.stdout
    assert "diw data fetch fashion-mnist" in done.stdout
    assert "Not tested: no finished runs to test it on." in done.stdout
    folder = tmp_path / "runs" / "reproduce" / "cpu" / "label-noise"
    assert (folder / "label-noise-curves.png").exists()
    with (folder / "label-noise.csv").open() as file:
        assert {row["state"] for row in csv.DictReader(file)} == {"no data"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name: say which result, or all; --list shows them"),
        (("tables",), "unknown result 'tables'; choose all or label-noise, class-prior"),
        (("label-noise", "--only", "method=mentor"), "--only: no method 'mentor' here"),
        (("label-noise", "--only", "noise"), "--only: cannot read 'noise'; write AXIS=VALUE"),
        (("label-noise", "--engine", "dask"), "--engine dask and --scheduler ADDRESS go together"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(words, message, capsys, monkeypatch) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(reproduce, PROGRAM, list(words))
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("reproduction: ")
    assert message in error
    assert error.count("\n") == 1


def test_the_list_names_every_result(capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(reproduce, PROGRAM, ["--list"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert all(f"{name} " in out for name in catalogue())


def test_pages_name_every_result_and_their_commands_are_right() -> None:
    page = (ROOT / "docs" / "reproduce.md").read_text()
    assert all(f"| `{name}` |" in page for name in catalogue())
    pages = [ROOT / "README.md", ROOT / "results" / "README.md", *(ROOT / "docs").glob("*.md")]
    lines = [line.strip() for path in pages for line in path.read_text().splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith(PROGRAM)]
    assert len(commands) >= 20
    for words in commands:
        context = reproduce.make_context(PROGRAM, words[3:])
        find_experiments(context.params["names"])
        read_filter(context.params["only"])
