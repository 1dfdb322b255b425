"""A power cut after any file operation: what was not synced is lost, and the run still goes on.

A shim records every sync, rename and removal of a training. After each of them the folder is made
as a disk could hold it: names as of the last sync of the folder or as they are, and of each file
what was synced, nothing more. From each such state the run must end bit for bit as the whole one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.problems import assert_same, results, tiny_training

State = dict[str, bytes]
"""Files by name, as a disk could hold them."""


class Disk:
    """What of a folder has reached the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.contents: dict[int, bytes] = {}
        self.names: dict[str, int] = {}
        self.states: list[State] = []

    def synced(self, descriptor: int) -> None:
        about = os.fstat(descriptor)
        if about.st_ino == self.folder.stat().st_ino:
            self.names = self.present()
        elif about.st_ino in self.present().values():
            path = next(
                self.folder / n for n, inode in self.present().items() if inode == about.st_ino
            )
            self.contents[about.st_ino] = path.read_bytes()

    def present(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self.folder.iterdir()}

    def look(self) -> None:
        """Note both states that a power cut could leave now, once each."""
        for names in (self.names, self.present()):
            state = {name: self.contents.get(inode, b"") for name, inode in names.items()}
            if state not in self.states:
                self.states.append(state)


@contextmanager
def recording(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(folder)
    with monkeypatch.context() as patch:
        fsync = os.fsync

        def record_sync(descriptor: int) -> None:
            disk.look()
            fsync(descriptor)
            disk.synced(descriptor)
            disk.look()

        patch.setattr(os, "fsync", record_sync)
        for name in ("replace", "unlink"):
            patch.setattr(os, name, _then(getattr(os, name), disk.look))
        yield disk


def _then(operation, look):
    def recorded(*arguments, **options):
        look()
        result = operation(*arguments, **options)
        look()
        return result

    return recorded


def test_after_a_power_cut_at_any_moment_the_run_ends_the_same(tmp_path, monkeypatch) -> None:
    settings = {"epochs": 2, "momentum": 0.9}
    (tmp_path / "whole").mkdir()
    with recording(tmp_path / "whole", monkeypatch) as disk:
        whole = tiny_training(tmp_path / "whole", **settings)
        whole.finish()
    expected = results(whole)
    assert len(disk.states) > 20
    finished = [state for state in disk.states if "done" in state]
    assert finished
    for number, state in enumerate(disk.states):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in state.items():
            (folder / name).write_bytes(content)
        again = tiny_training(folder, **settings)
        again.finish()
        assert_same(results(again), expected)
        assert again.run.verify()
