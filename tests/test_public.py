"""The public list: light to import, whole, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

import diw


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
    root = Path(__file__).parents[1]
    assert f"version: {diw.__version__}\n" in (root / "CITATION.cff").read_text()
    assert f"version = {{{diw.__version__}}}" in (root / "docs/cite.md").read_text()
    minor = diw.__version__.rpartition(".")[0]
    assert (root / f"docs/release-{minor}.md").exists()
