"""Data of a run: read and drawn once, traced to their rows, found again and compared by content."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from diw.cli.main import diw
from diw.errors import UsageError
from diw.runs import Recipe, Run, RunSpec, check_claim, sources
from diw.runs.sources import Source, as_held, as_kept, source_of, stamp
from diw.training.recorded import execute, with_method
from tests.own_data import done, refused, write_csv, write_images

MLP = ("--model", "mlp", "--device", "cpu", "--epochs", "1")
OWN = ("--data", "train.csv", "--trusted", "trusted.csv", "--label", "status")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, with tables and arrays."""
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((60, 3)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", X=inputs, y=inputs.argmax(1))
    np.savez(tmp_path / "trusted.npz", X=inputs[:20] + 1e-3, y=inputs[:20].argmax(1))
    write_csv(tmp_path / "train.csv", 60, 0)
    write_csv(tmp_path / "trusted.csv", 24, 1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


MINE = RunSpec(data="mine.npz", trusted="trusted.npz")


class Calls:
    """How often data were drawn, and files looked at."""

    drawn = 0
    looked = 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Counts calls from here on, with nothing kept from other tests."""
    counts = Calls()
    draw, look = sources.make_split, sources.fingerprint

    def counted_draw(*arguments, **options):
        counts.drawn += 1
        return draw(*arguments, **options)

    def counted_look(path):
        counts.looked += 1
        return look(path)

    monkeypatch.setattr(sources, "make_split", counted_draw)
    monkeypatch.setattr(sources, "fingerprint", counted_look)
    monkeypatch.setattr(Source, "_latest", None)
    return counts


# What is drawn


def test_trusted_rows_by_number_and_from_a_file(own: Path) -> None:
    (own / "rows.txt").write_text("3\n5\n8\n11\n20\n21\n30\n31\n32\n33\n")
    numbers = "rows:3,5,8,11,20,21,30,31,32,33"
    splits = [Source.of(replace(MINE, trusted=t)).split for t in (numbers, "rows.txt")]
    assert len(splits[0].trusted) == len(splits[1].trusted) == 7  # three are held out for scoring
    assert (splits[0].trusted.targets == splits[1].trusted.targets).all()


@pytest.mark.parametrize("trusted", ["rows:1,x", "nowhere.txt"])
def test_bad_rows_name_the_argument(trusted: str, own: Path) -> None:
    with pytest.raises(UsageError, match=r"^trusted: "):
        _ = Source.of(replace(MINE, trusted=trusted)).split


def test_a_part_of_the_data_is_stratified_and_keeps_its_row_numbers() -> None:
    source = Source.of(RunSpec(train_samples=1000, trusted=50, shift="symmetric:0.2"))
    whole = Source.of(RunSpec(trusted=20, shift="symmetric:0.2")).split
    rows = [place.row for place in source.places]
    assert source.split.true_labels.bincount().tolist() == [100] * 10
    assert len(source.bundle.train) == 10_000  # as read
    ours = source.split.train.take(torch.arange(len(rows)))[0]
    assert torch.equal(ours, whole.train.take(torch.tensor(rows))[0])
    assert sum(place.trusted for place in source.places) == 50


def test_a_source_is_shared_by_runs_on_the_same_data(own: Path, calls: Calls) -> None:
    first = Source.of(MINE)
    assert Source.of(with_method(MINE, "uniform")) is first
    assert Source.of(replace(MINE, recipe=Recipe(epochs=2), model="mlp")).split is first.split
    assert calls.drawn == 1
    for changed in ({"seed": 1}, {"train_samples": 30}, {"shift": "symmetric:0.3"}):
        other = Source.of(replace(MINE, **changed))
        assert other.split is not first.split
        assert other.bundle is first.bundle
    before = Source.of(MINE).split
    np.savez("trusted.npz", X=np.ones((9, 3), np.float32), y=np.arange(9) % 3)
    assert len(Source.of(MINE).split.trusted) != len(before.trusted)  # the file has changed


@pytest.mark.parametrize(
    ("command", "drawn"),
    [
        (("compare", "--methods", "uniform,diw", "--seeds", "2", "--jobs", "1"), 2),
        (("train", "--seed", "7"), 1),
    ],
)
def test_commands_draw_once_a_seed(command, drawn, tmp_path: Path, calls: Calls) -> None:
    """Checking the options, the line about the data, and every method's run share it."""
    arguments = [*command, "--shift", "symmetric:0.4", *MLP, "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(diw, arguments)
    assert result.exit_code == 0, result.output
    assert calls.drawn == drawn


def test_commands_look_at_each_file_once(own: Path, calls: Calls) -> None:
    """Their stamp is made once, not each time that somebody asks for the data."""
    done("compare", *OWN, *MLP, "--seeds", "1", "--jobs", "1", "--no-learners", "--methods", "diw")
    assert calls.looked == 2 + 2  # as they are read, and compared by the audit
    assert calls.drawn == 1


# Where rows are from


def test_rows_of_a_table_and_of_its_trusted_file(own: Path) -> None:
    spec = RunSpec(data="train.csv", trusted="trusted.csv", test="train.csv", label="status")
    places = Source.of(replace(spec, allow_leaks=True)).places
    assert [(p.file, p.row, p.trusted) for p in places] == [
        *(("train.csv", row, False) for row in range(60)),
        *(("trusted.csv", row, True) for row in range(24)),
    ]


def test_images_are_named_by_their_files_also_from_elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), 6, 0)
    write_images(Path("checked"), 5, 1)
    write_images(Path("later"), 3, 2)
    spec = stamp(RunSpec(data="photos", trusted="checked", test="later"))
    for home in (None, tmp_path):
        places = Source.of(spec, home).places
        assert {place.key for place in places if place.trusted} == {
            (f"checked/{kind}/{number}.png", "") for kind in ("bar", "pole") for number in range(5)
        }
        assert {place.file for place in places if not place.trusted} == {
            f"photos/{kind}/{number}.png" for kind in ("bar", "pole") for number in range(6)
        }
        monkeypatch.chdir("/")


# Stamps


def test_a_stamp_is_of_the_content(own: Path) -> None:
    first = stamp(MINE)
    assert set(first.files) == {"mine.npz", "trusted.npz"}
    content = Path("trusted.npz").read_bytes()
    Path("trusted.npz").unlink()
    Path("trusted.npz").write_bytes(content)
    os.utime("trusted.npz", (1, 1))
    assert stamp(MINE) == first  # made again
    Path("trusted.npz").write_bytes(content + b"x")
    os.utime("trusted.npz", (1, 1))
    assert stamp(MINE).run(own) != first.run(own)
    assert stamp(RunSpec()).files == {}


def test_a_folder_is_stamped_by_names_and_contents(tmp_path: Path) -> None:
    write_images(tmp_path / "photos", 3, 0)
    spec = RunSpec(data=str(tmp_path / "photos"), trusted=2)
    first = stamp(spec).files
    images = sorted((tmp_path / "photos" / "bar").iterdir())
    images[0].rename(tmp_path / "swap")
    images[1].rename(images[0])
    assert stamp(spec).files != first
    (tmp_path / "swap").rename(images[1])
    assert stamp(spec).files != first  # the same contents under each other's names


def train(*more: str) -> Run:
    done("train", *OWN, *MLP, "--method", "diw", *more)
    (spec,) = Path().rglob("spec.json") if "--out" not in more else [Path(more[-1]) / "spec.json"]
    return Run(spec.parent)


def test_a_run_finds_its_data_from_anywhere(own, tmp_path_factory, monkeypatch) -> None:
    """Also a run that is kept elsewhere, and one whose data and folder were moved together."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    inside, outside = train("--out", "run"), train("--out", str(elsewhere / "run"))
    rows = inside.ledger().shape[1]
    monkeypatch.chdir("/")
    for folder in (own / inside.folder, outside.folder):
        source = source_of(Run(folder))
        assert source.places[0].file == "train.csv"
        assert len(source.split.train) == rows
        assert (own / "train.csv").samefile(source.found.data)
        done("audit", folder, "--out", elsewhere / "audit")
    moved = elsewhere / "moved"
    shutil.copytree(own, moved)
    for name in ("train.csv", "trusted.csv"):
        (own / name).unlink()
    assert len(source_of(Run(moved / "run")).places) == rows
    with pytest.raises(UsageError, match=r"run: its data are not here: there is no .*train\.csv"):
        source_of(Run(outside.folder))


def test_a_file_that_changed_is_named_and_one_that_was_made_again_is_not(own: Path) -> None:
    run = train("--out", "run")
    content = Path("trusted.csv").read_text()
    Path("trusted.csv").write_text(content)
    os.utime("trusted.csv", (1, 1))
    source_of(Run(run.folder))
    done("train", *OWN, *MLP, "--method", "diw", "--out", "run")  # already trained
    Path("trusted.csv").write_text(content.replace("0", "1", 1))
    words = r"its data have changed since: trusted\.csv is not what it was trained on"
    with pytest.raises(UsageError, match=words):
        source_of(Run(run.folder))
    said = refused("train", *OWN, *MLP, "--method", "diw", "--out", "run")
    assert "holds another run (of trusted.csv before it changed)" in said


def as_older_versions_stamped(run: Run) -> Run:
    """The run with sizes and times in its spec, under the name that it had then."""
    older = replace(
        run.spec, files={name: sources._size_and_time(Path(name)) for name in run.spec.files}
    )
    (run.folder / "done").unlink(missing_ok=True)
    sources.write_json(run.folder / "spec.json", older.as_json())
    return Run(run.folder.rename(older.run(run.folder.parent).folder))


def test_runs_of_older_versions_go_on_and_are_found_again(own: Path) -> None:
    fresh = stamp(with_method(replace(MINE, recipe=Recipe(epochs=1), model="mlp"), "uniform"))
    run = as_older_versions_stamped(execute(fresh, own / "runs"))
    older = run.spec
    assert as_kept([fresh], own / "runs") == [older]
    assert as_kept([fresh], own / "none") == [fresh]
    assert as_held(fresh, older) == older
    assert as_held(fresh, fresh) == fresh
    check_claim(fresh, run)  # the same run: it goes on
    assert source_of(run).spec == older
    os.utime("mine.npz", (1, 1))
    with pytest.raises(UsageError, match=r"its data have changed since: mine\.npz is not"):
        source_of(Run(run.folder))
    with pytest.raises(UsageError, match="holds another run"):
        check_claim(fresh, run)
