"""The code and the commands on the pages of the documentation run as they stand there."""

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from diw.cli.main import diw as group
from tests.own_data import diw, write_csv
from tests.test_readme import BROUGHT

pytestmark = [
    pytest.mark.filterwarnings("error::diw.errors.DIWWarning"),  # it should not warn those who copy
    pytest.mark.filterwarnings("ignore:.*pin_memory.*"),
]

DOCS = Path(__file__).parents[1] / "docs"
ELSEWHERE = {"own-data.md"}  # its code needs what its commands make: test_own_data_page.py
MADE = ("repository", "gallery", "_build")  # by `make docs`, from files that have their own tests
CODE = re.compile(r"^```(python|sh)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^(```+|:::+).*?^\1$", flags=re.DOTALL | re.MULTILINE)
TEXTS = {
    str(page): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if (page := path.relative_to(DOCS)).parts[0] not in MADE
}
PAGES = {
    page: blocks
    for page, text in TEXTS.items()
    if page not in ELSEWHERE and (blocks := CODE.findall(text))
}
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
PAGES["README.md"] = [(kind, text) for kind, text in CODE.findall(README) if kind == "sh"]

LOOP = "import diw; x_trusted, y_trusted = x[:64], y[:64]\n"
READER = {
    "index.md": LOOP,
    "machines.md": LOOP + "network, trusted = model, (x_trusted, y_trusted)\n",
    "methods/index.md": LOOP + "x, y = x_trusted, y_trusted\n",
    "methods/remember.md": LOOP
    + "loader = DataLoader(diw.IndexedDataset(dataset), batch_size=128)\n"
    + "places, (x, y) = range(64), (x_trusted, y_trusted)\n",
}
"""What the code of a page needs and its reader has: a network, a loader, trusted samples."""

QUICK = {
    "compare": ["--epochs", "1", "--seeds", "1", "--jobs", "1", "--model", "mlp"],
    "train": ["--epochs", "2", "--model", "mlp"],
}
"""The same commands in less time."""
UNREACHABLE = {"pip", "dask"}, {"fetch", "check", "--scheduler"}
"""Programs that are not ours; and words that mean a download or a cluster: only parsed."""

COMMANDS: dict[str, str] = {}
"""Every command and the first page that shows it, where it is run."""
for name, found in PAGES.items():
    for language, text in found:
        for command in text.splitlines() if language == "sh" else ():
            COMMANDS.setdefault(command, name)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that pages speak of, and the setting of a job of one process."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, rows) in enumerate({"train": 120, "trusted": 40, "test": 40}.items()):
        write_csv(Path(f"{name}.csv"), rows, seed)
    write_csv(Path("new.csv"), 10, 3, labels=False)
    given = Path("train.csv").read_text().splitlines()[1].split(",")[-1]
    Path("corrections.csv").write_text(
        f"file,row,label,mark,correct,content\ntrain.csv,0,{given},right,,\n"
    )
    for name, rows in {"train_losses": 50, "trusted_losses": 20}.items():
        np.save(f"{name}.npy", np.random.default_rng(rows).exponential(size=rows))
    Path("folder").mkdir()
    for name, path in {"train": "folder/part.parquet", "trusted": "trusted.parquet"}.items():
        table = pyarrow.csv.read_csv(f"{name}.csv", convert_options=NUMBERS)
        pyarrow.parquet.write_table(table, path)
    job = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    for name, value in job.items():
        monkeypatch.setenv(name, value)


NUMBERS = pyarrow.csv.ConvertOptions(include_columns=["weight", "status"])


def run_command(line: str) -> None:
    first, *words = shlex.split(line, comments=True)
    if first == "torchrun":
        first, *words = words[words.index("-m") + 1 :]
    programs, elsewhere = UNREACHABLE
    if first in programs:
        return
    if [first, *words[:2]] == ["python", "-m", "reproduction"]:
        return  # its own tests read these commands
    assert first == "diw", f"{line}: a command that no test runs"
    if elsewhere & set(words):
        with group.make_context("diw", list(words)) as context:
            verb, asked, rest = group.resolve_command(context, list(words))
            assert asked is not None
            asked.make_context(verb, rest, parent=context)
        return
    code, _, error = diw(*words, *QUICK.get(words[0], []))
    assert code == 0, f"{line}: {error}"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page: str) -> None:
    names: dict[str, object] = {}
    if page in READER:
        exec(BROUGHT + READER[page], names)
    try:
        for number, (language, block) in enumerate(PAGES[page]):
            if language == "python":
                exec(compile(block, f"{page}, block {number}", "exec"), names)
                continue
            for line in block.splitlines():
                if COMMANDS[line] == page:
                    run_command(line)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


@pytest.mark.parametrize("page", TEXTS)
def test_code_stands_in_fences_so_that_it_is_run(page: str) -> None:
    plain = FENCED.sub("", TEXTS[page])
    code = r"^ {4}(diw [a-z]+ |python |torchrun |import |from \w+ import |\w+ = )"
    tables = {"own-data.md", "cite.md"}  # output that begins with a method's name; BibTeX
    assert page in tables or not re.findall(code, plain, flags=re.MULTILINE)
