"""No verb writes over what is the user's, whatever an output is called."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diw.auditing.page import PAGE, SUSPECTS
from diw.cli.audit import DOUBTFUL
from diw.cli.main import VERBS
from diw.cli.main import diw as group
from diw.cli.options import FILE, FOLDER
from diw.outputs import MADE
from diw.reports.learners import FILE as LEARNERS
from diw.runs.run import FILES
from tests.cli.calls import CALLS, OWN, READS
from tests.own_data import TRAIN, contents, diw, done, refused, write_csv


def commands() -> dict[str, object]:
    """Every verb and verb of a verb, as click has it."""
    found = {}
    for verb in VERBS:
        command = group.get_command(None, verb)
        found[verb] = command
        found |= {f"{verb} {name}": one for name, one in getattr(command, "commands", {}).items()}
    return found


def outputs() -> list[tuple[str, str]]:
    """Verb and flag of every option that names an output file."""
    return [
        (verb, flag.opts[0])
        for verb, command in commands().items()
        for flag in command.params
        if flag.opts[0] in ("--out", "--json") and flag.type is FILE
    ]


def called(verb: str, flag: str, name: str, *more: str) -> tuple[str, ...]:
    """The call of a verb with another value of one of its flags."""
    call = list(CALLS[verb])
    if flag in call:
        place = call.index(flag)
        del call[place : place + 2]
    return (*call, flag, name, *more)


def test_every_option_that_names_an_output_is_tried_here() -> None:
    for verb, command in commands().items():
        kinds = {flag: one.type for one in command.params for flag in one.opts}
        named = kinds.keys() & {"--out", "--json"}
        assert all(kinds[flag] in (FILE, FOLDER) for flag in named)
        assert not named or (verb in CALLS and "--force" in kinds)
    assert len(outputs()) >= 16


@pytest.mark.parametrize(("verb", "flag"), outputs())
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_verb_writes_over_what_it_reads_or_did_not_make(verb, flag, data, workplace) -> None:
    read = data.draw(st.sampled_from((*READS.get(verb, ()), "mine.csv")))
    way = data.draw(st.sampled_from(["plain", "around", "absolute", "link", "hard link"]))
    force = data.draw(st.booleans()) and read != "mine.csv"
    Path("mine.csv").write_text("precious\n")
    ending = Path(read).suffix if flag == "--json" else ".csv"
    link = Path(f"link{ending}")
    name = {"around": f"model/../{read}", "absolute": str(Path(read).absolute())}.get(way, read)
    if way.endswith("link"):
        name = str(link)
        link.unlink(missing_ok=True)
        link.symlink_to(read) if way == "link" else link.hardlink_to(read)
    elif flag == "--out" and not name.endswith((".csv", ".npy", ".npz")):
        return  # refused for its format
    before = contents(workplace)
    line = refused(*called(verb, flag, name, *(["--force"] if force else [])))
    assert line.startswith(f"diw: {flag}: ")
    assert contents(workplace) == before
    link.unlink(missing_ok=True)


@pytest.mark.parametrize("verb", ["predict", "evaluate", "weights", "methods", "report", "audit"])
def test_a_verb_may_write_again_what_it_wrote(verb: str, workplace: Path) -> None:
    call = (*CALLS[verb], "--json", "found.json")
    for _ in range(2):
        done(*call)
    Path("found.json").write_text('{"mine": 1}')
    line = refused(*call)
    assert line.startswith("diw: --json: found.json exists")
    assert "--force" in line
    done(*call, "--force")
    assert "mine" not in Path("found.json").read_text()


@pytest.mark.parametrize("name", [SUSPECTS, PAGE, DOUBTFUL])
def test_an_audit_here_leaves_what_is_here(name: str, workplace: Path) -> None:
    before = contents(workplace)
    done("audit", "model", "--device", "cpu", "--out", ".")
    after = contents(workplace)
    assert {path: after[path] for path in before} == before
    (workplace / name).write_text("mine\n")
    line = refused("audit", "model", "--device", "cpu", "--out", ".")
    assert line.startswith(f"diw: --out: {name} exists")
    assert (workplace / name).read_text() == "mine\n"


@pytest.mark.parametrize("verb", ["audit", "train", "compare"])
def test_no_folder_is_written_into_that_is_read(verb: str, workplace: Path) -> None:
    rows = "rows:" + ",".join(map(str, range(8)))
    before = contents(workplace)
    own = {"train": (*TRAIN, "--data", "photos", "--trusted", rows)}
    own["compare"] = ("compare", *own["train"][1:], "--seeds", "1")
    own["audit"] = ("audit", "pictures", "--device", "cpu")
    for folder in ("photos", "photos/bar", "photos/check"):
        line = refused(*own[verb], "--out", folder)
        assert line.startswith("diw: --out: photos")
        assert re.search("choose (another name|a new or empty folder)$", line)
    assert contents(workplace) == before
    assert not Path("photos/check").exists()


def test_the_data_of_a_run_are_known_from_anywhere(tmp_path: Path, monkeypatch) -> None:
    for name in ("here", "runs", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_csv(Path("train.csv"), 60, 1)
    rows = "rows:" + ",".join(map(str, range(16)))
    own = ("--data", "train.csv", "--label", "status", "--trusted", rows)
    done(*TRAIN, *own, "--out", "../runs/model")
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_csv(Path("new.csv"), 5, 2)
    before = contents(tmp_path)
    line = refused(
        *("predict", "../runs/model", "new.csv", "--out", "../here/train.csv", "--force")
    )
    assert "is read by this command" in line
    assert contents(tmp_path) == before


def test_an_empty_name_is_not_the_folder_one_is_in(workplace: Path) -> None:
    before = contents(workplace)
    for verb in CALLS:
        for flag in {"--out", "--json"} & {
            name for one in commands()[verb].params for name in one.opts
        }:
            assert "is empty" in refused(*called(verb, flag, ""))
    assert contents(workplace) == before
    assert "is empty" in refused("predict", "", "new.csv", "--out", "p.csv")


def test_what_is_not_a_run_is_not_replaced_by_fresh(workplace: Path) -> None:
    Path("project").mkdir()
    for name in ("spec.json", "weights.npy", "rows.csv"):
        (Path("project") / name).write_text('{"openapi": "3.1"}')
    before = contents(workplace)
    code, _, error = diw(*TRAIN, *OWN, "--out", "project", "--fresh")
    assert code == 2, error
    assert contents(workplace) == before


def test_no_fixed_name_of_an_output_is_that_of_an_input_in_the_documentation() -> None:
    root = Path(__file__).parents[2]
    pages = [*root.glob("docs/**/*.md"), root / "README.md", *root.glob("src/diw/cli/*.py")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    commands = re.findall(
        r"^ *diw (?:train|compare|weights|predict|evaluate|diagnose) .*$", text, re.M
    )
    given = {
        word
        for line in commands
        for word in re.sub(r"--(out|json|corrections) \S+", "", line).split()
        if re.fullmatch(r"[\w-]+\.\w+", word)
    }
    assert {"train.csv", "trusted.csv", "new.csv"} <= given
    written = {SUSPECTS, PAGE, DOUBTFUL, LEARNERS, MADE, "report.html", *FILES}
    assert not given & written


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_the_list_of_what_was_made_is_that_of_sha256sum(workplace: Path) -> None:
    done(*CALLS["predict"])
    check = subprocess.run(["sha256sum", "-c", MADE], capture_output=True, text=True)
    assert check.stdout == "p.csv: OK\n"
