"""Kernel mean matching and other estimators of the ratio of two densities, exact and certified."""

from typing import Any

from diw.matching.blocks import Block, BlockMatch, kmm_blocks
from diw.matching.choice import Choice, choose_estimator
from diw.matching.deprecated import old_class, old_function
from diw.matching.estimators import KMM, Estimator
from diw.matching.isotonic import Isotonic
from diw.matching.kmm import MatchOptions, Options, Solver, kmm, kmm_batch
from diw.matching.label_shift import LabelShift
from diw.matching.logistic import Logistic
from diw.matching.match import Match
from diw.matching.one_class import OneClass
from diw.matching.penalised import Chi2, Entropy
from diw.matching.ulsif import ULSIF

__all__ = [
    "KMM",
    "ULSIF",
    "Block",
    "BlockMatch",
    "Chi2",
    "Choice",
    "Entropy",
    "Estimator",
    "Isotonic",
    "LabelShift",
    "Logistic",
    "Match",
    "MatchOptions",
    "OneClass",
    "Options",
    "Solver",
    "choose_estimator",
    "kmm",
    "kmm_batch",
    "kmm_blocks",
]


# Functions of version 0.2, which warn; three have the names of modules.
el, entropy, chi2 = old_function("el"), old_function("entropy"), old_function("chi2")
ulsif, kliep = old_function("ulsif"), old_function("kliep")
logistic, isotonic = old_function("logistic"), old_function("isotonic")


def __getattr__(name: str) -> Any:
    return old_class(name)
