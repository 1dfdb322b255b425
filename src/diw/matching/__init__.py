"""Kernel mean matching and its rivals: exact, fast at any size, honest about their status."""

from diw.matching.estimators import (
    EL,
    KLIEP,
    PGD,
    ULSIF,
    Chi2,
    Entropy,
    Isotonic,
    Logistic,
    chi2,
    el,
    entropy,
    isotonic,
    kliep,
    logistic,
    pgd,
    ulsif,
)
from diw.matching.kmm import KMM, kmm, kmm_batch
from diw.matching.match import Match
from diw.matching.options import MatchOptions, Options, Solver

__all__ = [
    "EL",
    "KLIEP",
    "KMM",
    "PGD",
    "ULSIF",
    "Chi2",
    "Entropy",
    "Isotonic",
    "Logistic",
    "Match",
    "MatchOptions",
    "Options",
    "Solver",
    "chi2",
    "el",
    "entropy",
    "isotonic",
    "kliep",
    "kmm",
    "kmm_batch",
    "logistic",
    "pgd",
    "ulsif",
]
