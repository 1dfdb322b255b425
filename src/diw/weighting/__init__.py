"""Weighting methods: one small class each, in a file with its family."""

from diw.weighting.base import Task, Weighting, normalised
from diw.weighting.registry import describe, find, make, methods

__all__ = ["Task", "Weighting", "describe", "find", "make", "methods", "normalised"]
