"""What a setting is by default: the user's own data are taken as they are."""

import json
import shlex
from pathlib import Path

import pytest

from diw.runs import Run, find_runs
from tests.own_data import diw, done, write_csv, write_images


def files(folder: Path) -> list[str | Path]:
    train, trusted = (
        write_csv(folder / "train.csv", 60, 1),
        write_csv(folder / "trusted.csv", 20, 2),
    )
    return ["--data", train, "--trusted", trusted, "--label", "status", "--device", "cpu"]


def test_no_noise_is_added_to_ones_own_data(tmp_path: Path) -> None:
    call = ["compare", *files(tmp_path), "--epochs", "1", "--seeds", "1", "--jobs", "1"]
    call += ["--methods", "uniform", "--out", tmp_path / "runs", "--json", tmp_path / "r.json"]
    done(*call)
    assert json.loads((tmp_path / "r.json").read_text())["spec"]["shift"] == "none"
    done(*call, "--shift", "symmetric:0.2")
    assert json.loads((tmp_path / "r.json").read_text())["spec"]["shift"] == "symmetric:0.2"


@pytest.mark.parametrize("verb", ["train", "compare", "diagnose"])
@pytest.mark.parametrize("data", ["train.csv", "photos"])
def test_without_trusted_samples_two_commands_lead_on(verb, data, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("train.csv"), 80, 1)
    write_images(Path("photos"), 8, 1)
    label = ["--label", "status"] if data == "train.csv" else []
    quick = [] if verb == "diagnose" else ["--epochs", "1", "--device", "cpu"]
    quick += ["--jobs", "1"] if verb == "compare" else []
    code, _, error = diw(verb, "--data", data, *label, *quick)
    assert code == 2
    *_, line, first, second = error.splitlines()
    assert line.startswith(f"diw: --trusted: none are given, and no rows of {data} are marked")
    done(*shlex.split(first)[1:])
    header, *lines = Path("check/check.csv").read_text(encoding="utf-8-sig").splitlines()
    for place, line in enumerate(lines):  # somebody looks at all of them
        cells = line.split(",")
        cells[2] = Path(cells[0]).parent.name if data == "photos" else ("ok", "broken")[place % 2]
        lines[place] = ",".join(cells)
    Path("check/verified.csv").write_text("\n".join([header, *lines]) + "\n")
    done(*shlex.split(second)[1:])


def test_a_comparison_ends_with_commands_that_go_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["compare", *files(Path()), "--epochs", "2", "--seeds", "1", "--no-learners"]
    call += ["--methods", "uniform,diw", "--set", "diw.bound=10", "--jobs", "1"]
    *_, train, audit = done(*call).splitlines()
    done(*shlex.split(train)[1:])
    model = Run(Path("model"))
    (same,) = [run for run in find_runs(Path("runs")) if run.spec.method == model.spec.method]
    assert model.model.read_bytes() == same.model.read_bytes()
    done(*shlex.split(audit)[1:], "--device", "cpu")
    assert Path("check/audit.html").exists()


def test_other_learners_stand_beside_the_methods(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    call = ["compare", *files(tmp_path), "--epochs", "2", "--seeds", "2", "--jobs", "1"]
    call += ["--methods", "uniform,diw", "--out", tmp_path / "runs", "--json", tmp_path / "r.json"]
    out = done(*call)
    learners = json.loads((tmp_path / "r.json").read_text())["learners"]
    assert len(learners) == 8
    assert all(name in out for name in learners)
    assert "gradient boosting, weights of diw" in learners
    assert "gradient boosting, without suspects of diw" in learners
    page = tmp_path / "runs" / "compare" / "report.html"
    assert "Other learners" in page.read_text()
    page.unlink()
    out = done("report", tmp_path / "runs", "--out", page, "--json", tmp_path / "again.json")
    assert all(name in out and name in page.read_text() for name in learners)
    assert json.loads((tmp_path / "again.json").read_text())["learners"] == learners
    assert "gradient boosting" not in done(*call, "--no-learners")


def test_where_samples_are_is_said_and_they_can_be_left_out(tmp_path: Path) -> None:
    call = ["compare", *files(tmp_path), "--epochs", "2", "--seeds", "1", "--jobs", "1"]
    call += ["--methods", "diw", "--no-learners", "--out", tmp_path / "runs"]
    home = tmp_path / "runs" / "compare"
    pages = home / "report.html", home / "audit" / "audit.html"
    cell = next(iter((tmp_path / "train.csv").read_text().splitlines()[1:])).split(",")[0]
    for again in (call, ["report", home]):
        assert f"{pages[1]} (holds samples of your data" in done(*again)
        assert "are of your data" in pages[0].read_text()
        assert cell in pages[1].read_text()
        said = next(line for line in done(*again, "--no-samples").splitlines() if "Audit:" in line)
        assert said == f"Audit:   {pages[1]}"
        assert "are of your data" not in pages[0].read_text()
        assert cell not in pages[1].read_text()


def test_notes_are_one_line_per_file(tmp_path: Path) -> None:
    call = ["train", *files(tmp_path), "--epochs", "1"]
    code, _, error = diw(*call, "--out", tmp_path / "a")
    assert code == 0
    said = [line for line in error.splitlines() if line.startswith("note:")]
    assert [line.split(": ")[1].rpartition("/")[2] for line in said] == ["train.csv", "trusted.csv"]
    code, _, error = diw(*call, "--out", tmp_path / "b", "--verbose")
    assert code == 0
    assert sum(line.startswith("note:") for line in error.splitlines()) == 4
    assert len(json.loads((tmp_path / "a" / "facts.json").read_text())["notes"]) == 4
