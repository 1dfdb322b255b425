"""From a pile of data to labels that one can trust: draw rows, check them, say what they know.

Rows are drawn with known probabilities, so what a person finds in them estimates the whole without
a bias. Names are resolved on first use: a command's help needs none of this.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diw.trust.draw import Draw, draw_rows
    from diw.trust.estimate import Known, known
    from diw.trust.items import Items, read_items
    from diw.trust.sheet import read_sheets

_HOME = {
    "Draw": "draw",
    "Items": "items",
    "Known": "estimate",
    "draw_rows": "draw",
    "known": "estimate",
    "read_items": "items",
    "read_sheets": "sheet",
}

__all__ = ["Draw", "Items", "Known", "draw_rows", "known", "read_items", "read_sheets"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
