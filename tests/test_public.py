"""The public list: light to import, whole, and nothing else."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import diw

ROOT = Path(__file__).parents[1]
CI = (ROOT / ".ci" / "run").read_text()
EXTRAS = re.findall(r"^([a-z]+):((?:import|from) .+)$", CI, re.MULTILINE)


def test_importing_diw_does_not_import_torch() -> None:
    program = "import sys, diw; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", diw.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(diw, name)
    assert name == "__version__" or value.__doc__
    assert name in dir(diw)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = diw.nothing  # type: ignore[attr-defined]


def test_the_version_is_the_same_wherever_it_is_given() -> None:
    assert f"version: {diw.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{diw.__version__}}}" in (ROOT / "docs/cite.md").read_text()
    minor = diw.__version__.rpartition(".")[0]
    assert (ROOT / f"docs/release-{minor}.md").exists()


def test_ci_imports_every_extra_by_the_names_that_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {extra for extra, _ in EXTRAS} == extras["optional-dependencies"].keys() - {"all"}
    for _, imports in EXTRAS:
        exec(imports, {})
