"""Running what runs are asked.

`sources` (the data of a run) → `execute` (one run) → `grid` (many) and `estimate` (how long).
"""

from typing import TYPE_CHECKING

from diw._lazy import names_from

if TYPE_CHECKING:
    from diw.experiments.estimate import Stopwatch as Stopwatch
    from diw.experiments.grid import try_all as try_all
    from diw.experiments.sources import with_method as with_method

__getattr__ = names_from(
    __name__,
    {"estimate": "Stopwatch", "grid": "try_all", "sources": "with_method"},
)
