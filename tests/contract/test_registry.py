"""The methods are all there, under the paper's names."""

from diw.config import CONTROLS
from diw.methods import find, methods

PAPER = (
    "clean uniform random truth iw siw-f siw-l diw1-f diw1-l diw2-f diw2-l diw3-f diw3-l reweight"
)


def test_the_fourteen_methods_of_the_paper_in_its_order() -> None:
    names = [find(name).name for name in PAPER.split()]
    assert list(methods())[:14] == names
    assert len(set(names)) == 14


def test_controls_are_known_to_what_imports_no_methods() -> None:
    assert tuple(name for name, cls in methods().items() if cls.is_control) == CONTROLS


def test_diw_is_the_canonical_name_of_diw2_l() -> None:
    assert find("diw") is find("diw2-l")
    assert find("diw2-l").name == "diw"
