"""What a user names is written only over what diw made, whatever the name leads to."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diw.errors import UsageError
from diw.outputs import MADE, Outputs, create_json, create_text, creating, made_by_diw


def test_what_diw_made_is_replaced_and_what_was_edited_since_is_not(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    create_text(path, "first\n")
    create_text(path, "second\n")
    assert made_by_diw(path)
    path.write_text("mine\n")
    with pytest.raises(UsageError, match=r"out: .*w\.csv exists, and diw did not make it"):
        create_text(path, "third\n")
    assert path.read_text() == "mine\n"
    create_text(path, "third\n", force=True)
    assert path.read_text() == "third\n"
    lines = (tmp_path / MADE).read_text().splitlines()
    assert [line[64:] for line in lines] == ["  w.csv"] * 3


def test_a_file_that_appears_while_the_work_is_done_stays(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    with pytest.raises(UsageError, match="exists"), creating(path) as temporary:
        temporary.write_text("ours")
        path.write_text("mine")
    assert path.read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["w.csv"]


def test_a_file_made_elsewhere_or_moved_over_is_not_known(tmp_path: Path) -> None:
    create_text(tmp_path / "a.csv", "ours\n")
    (tmp_path / "a.csv").rename(tmp_path / "b.csv")
    (tmp_path / "a.csv").write_text("mine\n")
    for name in ("a.csv", "b.csv"):
        assert not made_by_diw(tmp_path / name)


def test_a_damaged_list_forgets_and_never_fails(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    create_json(path, {})
    for content in (b"", b"\xff\xfe\n\n", b"0" * 70, os.urandom(200)):
        (tmp_path / MADE).write_bytes(content)
        assert not made_by_diw(path)
    (tmp_path / MADE).unlink()
    assert not made_by_diw(path)
    (tmp_path / MADE).mkdir()
    assert not made_by_diw(path)


def test_a_pipe_or_a_device_is_written_to(tmp_path: Path) -> None:
    Outputs().file(Path("/dev/null"))
    create_text(Path("/dev/null"), "gone")


def test_names_that_lead_to_what_is_read_are_refused_even_by_force(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data/cat").mkdir(parents=True)
    Path("train.csv").write_text("mine\n")
    Path("data/cat/1.png").write_bytes(b"mine")
    Path("link.csv").symlink_to("train.csv")
    Path("hard.csv").hardlink_to("train.csv")
    Path("pictures").symlink_to("data")
    Path("dangling.csv").symlink_to("data/new.csv")
    outputs = Outputs([Path("train.csv"), Path("data")], force=True)
    for name in (
        *("train.csv", "./data/../train.csv", str(Path("train.csv").absolute())),
        *("link.csv", "hard.csv", "data/cat/1.png", "data/new.csv", "pictures/cat/2.png"),
        *("dangling.csv",),
    ):
        with pytest.raises(UsageError, match=r"is read|read by this command"):
            outputs.file(Path(name))
    for name in ("data", "data/cat", "pictures", "data/model"):
        with pytest.raises(UsageError, match="choose another name"):
            outputs.folder(Path(name))
    assert not Path("data/model").exists()


def test_two_outputs_of_one_command_are_two_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = Outputs()
    outputs.file(Path("w.csv"))
    for name in ("w.csv", "./w.csv", "W.CSV"):  # which is the same file on some systems
        with pytest.raises(UsageError, match=r"json: .* written by this command already"):
            outputs.file(Path(name), "json")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["make", "force", "edit", "remove", "link", "swap"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(steps=STEPS)
def test_no_order_of_steps_loses_what_is_the_users(steps, tmp_path_factory) -> None:
    """A model of it: what is in each file, and whether diw has put exactly that there."""
    folder = tmp_path_factory.mktemp("outputs")
    held: dict[str, str] = {}
    made: set[tuple[str, str]] = set()
    for action, name, number in steps:
        path, text = folder / name, f"content {number}"
        match action:
            case "make" | "force":
                lost = name in held and (name, held[name]) not in made
                if lost and action == "make":
                    with pytest.raises(UsageError):
                        create_text(path, text)
                else:
                    create_text(path, text, force=action == "force")
                    held[name] = text
                    made.add((name, text))
            case "edit":
                path.unlink(missing_ok=True)
                path.write_text(text)
                held[name] = text
            case "remove":
                path.unlink(missing_ok=True)
                held.pop(name, None)
            case "link":  # another name of the same file: replacing one leaves the other
                other = "b" if name == "a" else "a"
                if name in held and other not in held:
                    (folder / other).hardlink_to(path)
                    held[other] = held[name]
            case _ if {"a", "b"} <= held.keys():
                (folder / "a").rename(folder / "c")
                (folder / "b").rename(folder / "a")
                (folder / "c").rename(folder / "b")
                held["a"], held["b"] = held["b"], held["a"]
        assert {entry: (folder / entry).read_text() for entry in held} == held
