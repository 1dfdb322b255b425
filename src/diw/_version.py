"""The version, kept apart so that builds and `diw --version` read it without importing anything."""

__version__ = "0.2.0"
