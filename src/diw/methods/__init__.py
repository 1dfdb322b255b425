"""Weighting methods: one small class each, in a file with its family."""

# Listings have the methods in the order of these lines.
# isort: off
from diw.methods.base import Method, Task, normalised
from diw.methods.baselines import Clean, Uniform, Random, Truth
from diw.methods.paper import Iw, SiwF, SiwL, Diw1F, Diw1L, Diw2F, Diw, Diw3F, Diw3L
from diw.methods.reweight import Reweight
from diw.methods.remember import Remember
from diw.methods.adiw import Adiw
from diw.methods.glc import Glc, IwT
from diw.methods.mwnet import MwNet
from diw.methods.elr import Elr
from diw.methods.giw import Giw
from diw.methods.registry import Field, describe, find, make, methods
# isort: on

__all__ = [
    "Adiw",
    "Clean",
    "Diw",
    "Diw1F",
    "Diw1L",
    "Diw2F",
    "Diw3F",
    "Diw3L",
    "Elr",
    "Field",
    "Giw",
    "Glc",
    "Iw",
    "IwT",
    "Method",
    "MwNet",
    "Random",
    "Remember",
    "Reweight",
    "SiwF",
    "SiwL",
    "Task",
    "Truth",
    "Uniform",
    "describe",
    "find",
    "make",
    "methods",
    "normalised",
]
