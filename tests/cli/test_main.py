"""The command as a user meets it: exit codes, one-line errors, no torch for --help."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diw._version import __version__
from diw.cli.main import VERBS, Verbs, main
from diw.errors import RunError, UsageError
from tests.own_data import TRAIN, diw, done, refused, write_csv, write_images


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_shows_examples_and_imports_nothing_heavy(verb: str) -> None:
    program = (
        "import sys; from diw.cli.main import main\n"
        f"try: main({[*([verb] if verb else []), '--help']!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'scipy', 'plotly', 'sklearn', 'joblib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Usage: diw" in done.stdout
    assert "Examples:" in done.stdout
    assert f"diw {verb}" in done.stdout.partition("Examples:")[2]


def test_version() -> None:
    assert done("--version").strip() == f"diw, version {__version__}"


def test_the_reproduction_is_elsewhere_and_one_line_says_where() -> None:
    assert "python -m reproduction" in refused("reproduce", "label-noise", "--scale", "cpu")
    assert "reproduce" not in done("--help")


def test_names_and_labels_of_any_script_on_any_terminal(tmp_path: Path, monkeypatch) -> None:
    """What a terminal cannot show is written as its number, after training too."""
    monkeypatch.chdir(tmp_path)
    text = write_csv(Path("größe.csv"), 60, 1).read_text()
    Path("größe.csv").write_text(text.replace("broken", "kaputt→").replace("ok", "良い"), "utf-8")
    rows = "rows:" + ",".join(map(str, range(16)))
    train = [*TRAIN, "--data", "größe.csv", "--label", "status", "--trusted", rows]
    for encoding in ("cp1252", "ascii", "utf-8"):
        said = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in "oe"]
        monkeypatch.setattr(sys, "stdout", said[0])
        monkeypatch.setattr(sys, "stderr", said[1])
        for call in ([*train, "--out", "modèle"], ["evaluate", "modèle", "größe.csv"]):
            with pytest.raises(SystemExit) as exit:
                main(call)
            assert exit.value.code == 0
        said[0].flush()
        shown = "良い" if encoding == "utf-8" else r"\u826f\u3044"
        assert shown.encode() in said[0].buffer.getvalue()


@pytest.mark.parametrize("name", [b"photos/\xff\xfe/1.png", b"photos/pole/\xff.png", b"\xff"])
def test_a_name_that_is_no_text_is_refused_before_anything_is_written(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), 6, 1)
    place = Path(os.fsdecode(name))
    place.parent.mkdir(exist_ok=True)
    (Path("photos/bar/1.png") if place.suffix else Path("photos")).rename(place)
    data = "photos" if place.suffix else os.fsdecode(name)
    line = refused(*TRAIN, "--data", data, "--trusted", "rows:0,1,2,3,6,7,8", "--out", "m")
    assert line.endswith("this name is not UTF-8; rename it")
    assert not Path("m").exists()


SIGNALLED = """
import os, signal, sys, time
from pathlib import Path

Path("swallowing.py").write_text(
    "import os, signal\\n"
    "try:\\n    os.kill(os.getpid(), signal.SIGTERM)\\n    sum(range(1000))\\n"
    "except BaseException:\\n    print('swallowed')\\n"
)
sys.path.insert(0, ".")
from diw.cli import main
main.UNHEARD = 0.1


class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))


def verb(*_, **__):
    if sys.argv[1] == "import":
        import swallowing
    else:
        Destroyed()
    time.sleep(60)


main.diw.main = verb
main.main([])
"""


REPLACED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start jobs that ignore it
from diw.cli import main

def verb(*_, **__):  # as the extension that reads model.safetensors does
    try:
        os.kill(os.getpid(), signal.Signals[sys.argv[1]])
        sum(range(1000))
    except BaseException:
        raise ValueError("could not determine the shape of object type") from None

main.diw.main = verb
main.main([])
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_an_exit_that_a_library_turns_into_an_error_is_an_exit(name: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", REPLACED, name], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "shape" not in done.stderr


@pytest.mark.parametrize("moment", ["import", "destructor"])
def test_termination_is_heard_at_any_moment(moment: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, moment], cwd=tmp_path, capture_output=True, timeout=50
    )
    assert done.returncode == 143
    assert b"swallowed" not in done.stdout


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (EOFError("Ran out of input"), 1, ["a file ended too early: Ran out of input"]),
        (OSError(28, "No space left", "w.npy"), 1, ["w.npy: No space left"]),
        (OSError("nothing\nanswers"), 1, ["nothing answers"]),
        (RunError("no worker is left"), 1, ["no worker is left"]),
        (UsageError("no sheet", ["diw data"]), 2, ["no sheet", "  diw data"]),
        (MemoryError(), 1, ["not enough memory; use fewer --jobs, a smaller --batch-size or a"]),
        (KeyboardInterrupt(), 130, ["interrupted; the same command goes on where it stopped"]),
    ],
)
def test_what_fails_is_a_line_and_an_exit_code(error, code, said, monkeypatch) -> None:
    def fails(_self: object, _context: object) -> None:
        raise error

    monkeypatch.setattr(Verbs, "invoke", fails)
    ended, out, lines = diw("methods")
    assert (ended, out) == (code, "")
    first, *others = lines.strip("\n").splitlines()
    assert first.startswith(f"diw: {said[0]}")
    assert others == said[1:]


def test_a_defect_is_not_made_a_line(monkeypatch) -> None:
    monkeypatch.setattr(Verbs, "invoke", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        diw("methods")
