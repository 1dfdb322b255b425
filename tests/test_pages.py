"""The code and the commands on the pages of the documentation run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from tests.own_data import diw
from tests.test_readme import BROUGHT

pytestmark = pytest.mark.filterwarnings("error::diw.errors.DIWWarning")
"""What readers copy should not warn them."""

DOCS = Path(__file__).parents[1] / "docs"
ELSEWHERE = {"own-data.md"}  # its code needs what its commands make: test_own_data_page.py
MADE = ("repository", "gallery", "_build")  # by `make docs`, from files that have their own tests
CODE = re.compile(r"^```(python|sh)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PAGES = {
    str(page): blocks
    for path in sorted(DOCS.rglob("*.md"))
    if (page := path.relative_to(DOCS)).parts[0] not in MADE
    and str(page) not in ELSEWHERE
    and (blocks := CODE.findall(path.read_text(encoding="utf-8")))
}

QUICK = {"compare": ["--epochs", "1", "--seeds", "1", "--jobs", "1", "--model", "mlp"]}
"""The same commands in less time."""

COMMANDS: dict[str, str] = {}
"""Every command and the first page that shows it, where it is run."""
for name, found in PAGES.items():
    for language, text in found:
        for command in text.splitlines() if language == "sh" else ():
            COMMANDS.setdefault(command, name)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    if page == "index.md":  # shows the loop alone
        exec(BROUGHT + "import diw; x_trusted, y_trusted = x[:64], y[:64]", names)
    for number, (language, block) in enumerate(PAGES[page]):
        if language == "python":
            exec(compile(block, f"{page}, block {number}", "exec"), names)
            continue
        for line in block.splitlines():
            first, *words = shlex.split(line)
            if first == "pip" or COMMANDS[line] != page:  # what it installs is installed
                continue
            assert first == "diw", f"{page}: {line}: a command that no test runs"
            code, _, error = diw(*words, *QUICK.get(words[0], []))
            assert code == 0, f"{line}: {error}"
