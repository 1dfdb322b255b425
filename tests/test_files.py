"""Files that are whole or not there, and whose damage shows."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diw.errors import DamageError
from diw.files import append, replacing, unseal, write_json, write_sealed, write_text


@contextmanager
def disk_full_beyond(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: as on a full disk, writing fails without a name."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with disk_full_beyond(1000), pytest.raises(OSError) as caught:
        write_text(path, "x" * 5000)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with disk_full_beyond(1000), pytest.raises(OSError) as caught:
        append(tmp_path / "metrics.jsonl", b"x" * 5000)
    assert caught.value.filename == str(tmp_path / "metrics.jsonl")


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from diw.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary: os._exit(9)\n"
    )
    path = tmp_path / "a [1].json"
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    (left,) = tmp_path.iterdir()
    living = left.with_name(left.name.rpartition("-")[0] + f"-{os.getppid()}.tmp")
    living.write_text("half")
    write_text(path, "{}")
    assert sorted(tmp_path.iterdir()) == sorted([path, living])


def test_files_are_as_readable_as_their_neighbours(tmp_path: Path) -> None:
    """Some libraries make files that only their owner may read."""
    (tmp_path / "neighbour").write_text("")
    with replacing(tmp_path / "model") as temporary:
        temporary.unlink()
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_sealed_file_shows_every_changed_or_missing_byte(tmp_path: Path) -> None:
    path = tmp_path / "sealed"
    write_sealed(path, b"content\nof two lines")
    stored = path.read_bytes()
    assert unseal(path, stored) == b"content\nof two lines"
    for place in range(len(stored)):
        flipped = bytearray(stored)
        flipped[place] ^= 1
        for wrong in (bytes(flipped), stored[:place]):
            with pytest.raises(DamageError, match="sealed: is damaged"):
                unseal(path, wrong)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_and_a_link_is_followed(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as temporary:
        temporary.write_text("through")
    assert os.read(reader, 99) == b"through"
    assert pipe.is_fifo()
    os.close(reader)


def test_json_never_holds_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())
