"""The API reference has every public name."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import diw

PAGES = Path(__file__).parents[2] / "docs" / "api"
PACKAGES = (
    *("diw", "diw.matching", "diw.methods", "diw.step", "diw.data", "diw.shifts", "diw.models"),
    *("diw.runs", "diw.training", "diw.predict", "diw.auditing", "diw.labels", "diw.trust"),
)
OTHERS = ("diw.cli", "diw.data.benchmarks", "diw.reports", "diw.weighting")
LISTED = set(
    re.findall(
        r"^\.\. (?:auto|py:)(?:class|function|data|exception):: ([\w.]+)$",
        "\n".join(page.read_text() for page in PAGES.glob("*.rst")),
        re.MULTILINE,
    )
)


def public() -> list[str]:
    names = [f"{home}.{name}" for home in PACKAGES for name in import_module(home).__all__]
    names += [f"diw.{name}" for name in dir(diw)]
    errors = import_module("diw.errors")
    own = [
        value
        for value in vars(errors).values()
        if getattr(value, "__module__", "") == errors.__name__
    ]
    names += [f"diw.errors.{value.__name__}" for value in own]
    return sorted(set(names) - {"diw.__version__", *PACKAGES})


def value_of(name: str) -> object:
    home, _, last = name.rpartition(".")
    return getattr(import_module(home), last)


def frameworks() -> list[str]:
    """Public classes of the integrations that need a framework, without importing it."""
    home = Path(diw.__file__).parent / "integrations"
    return [
        f"diw.integrations.{module}.{name}"
        for module in ("lightning", "huggingface")
        for name in re.findall(r"^class ([A-Z]\w+)", (home / f"{module}.py").read_text(), re.M)
    ]


@pytest.mark.parametrize("name", public())
def test_every_public_name_is_in_the_reference(name) -> None:
    value = value_of(name)
    same = {other for other in LISTED if other.rpartition(".")[2] == name.rpartition(".")[2]}
    assert any(value_of(other) is value for other in same), f"docs/api has no entry for {name}"


def test_the_classes_for_frameworks_are_in_the_reference() -> None:
    assert set(frameworks()) <= LISTED


def test_the_reference_lists_nothing_that_is_gone() -> None:
    for name in LISTED - set(frameworks()):
        assert value_of(name) is not None


def test_packages_with_a_public_list_are_covered() -> None:
    """Except those whose list serves the commands only, and an old name."""
    source = Path(diw.__file__).parent
    found = {
        ".".join(["diw", *path.relative_to(source).with_suffix("").parts]).removesuffix(".__init__")
        for path in source.rglob("*.py")
        if re.search("^__all__ = ", path.read_text(), re.M)
    }
    assert found - {*OTHERS} == set(PACKAGES)
