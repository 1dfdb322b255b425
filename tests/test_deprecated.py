"""Names of version 0.2 still work, and say what to write instead."""

import importlib
import sys

import pytest

import diw
from diw.deprecated import NAMES, Renamed


@pytest.mark.parametrize("old", NAMES)
def test_an_old_name_warns_and_is_the_new_one(old):
    with pytest.warns(DeprecationWarning, match=f"diw.{old} is deprecated.*diw.{NAMES[old]}"):
        assert getattr(diw, old) is getattr(diw, NAMES[old])


def test_the_old_package_of_methods_still_makes_them():
    sys.modules.pop("diw.weighting", None)
    with pytest.warns(DeprecationWarning, match=r"diw\.methods"):
        old = importlib.import_module("diw.weighting")
    assert old.make("uniform").name == "uniform"


def test_an_old_attribute_warns_at_the_users_line():
    class Thing:
        new = 3
        old = Renamed("new")

    with pytest.warns(DeprecationWarning, match=r"Thing\.old.*use new") as caught:
        assert Thing().old == 3
    assert caught[0].filename == __file__
