"""Weighting methods: one small class each, in a file with its family."""

from diw.methods.base import Method, Task, normalised
from diw.methods.registry import describe, find, make, methods

__all__ = ["Method", "Task", "describe", "find", "make", "methods", "normalised"]
