"""The name that `diw.methods` had in version 0.2; it warns, and goes with version 1.0."""

import warnings

from diw.methods import Method as Weighting
from diw.methods import Task, describe, find, make, methods, normalised

__all__ = ["Task", "Weighting", "describe", "find", "make", "methods", "normalised"]

warnings.warn(
    "diw.weighting is now diw.methods (Weighting is Method)", DeprecationWarning, stacklevel=2
)
