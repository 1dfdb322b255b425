"""The name that `diw.methods` had in version 0.2."""

from diw.deprecated import warn
from diw.methods import Method as Weighting
from diw.methods import Task, describe, find, make, methods, normalised

__all__ = ["Task", "Weighting", "describe", "find", "make", "methods", "normalised"]

warn("diw.weighting", "diw.methods (Weighting is Method)")
