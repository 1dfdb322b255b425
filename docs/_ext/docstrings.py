"""Our docstrings are plain text with `code` in backticks; reStructuredText reads more into it.

Pages that are named become links. Bars, stars and trailing underscores outside of backticks are
escaped, code with a colon gets two backticks (napoleon would take it for a type), and what a class
inherits from scikit-learn, torch, Lightning or transformers is left to their own documentation.
"""

import re
from typing import Any

from docutils.nodes import Element
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

CODE = re.compile(r"(?<!`)(`[^`]+`)(?!`)")
PAGE = re.compile(r"\bdocs/([\w/-]+)\.md")
COLON = "\ue000"
ARRAY = re.compile(r"~?numpy\.ndarray\[.*?dtype\[~?(?:numpy\.)?(\w+)\]\]")
LONG = {stringify_annotation(ArrayLike, mode) for mode in ("fully-qualified", "smart")}
LONG.add(stringify_annotation(ArrayLike, "fully-qualified-except-typing"))
SPECIAL = re.compile(r"([*|]|(?<=\w)_(?!\w))")


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape the lines in place, except in examples."""
    for place, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = CODE.split(line)
        parts[1::2] = [part if ":" not in part else f"`{part}`" for part in parts[1::2]]
        parts[::2] = [PAGE.sub(r":doc:`/\1`", SPECIAL.sub(r"\\\1", part)) for part in parts[::2]]
        lines[place] = "".join(parts)
    if lines and what in ("attribute", "data", "property"):
        lines[0] = lines[0].replace(":", COLON)  # what stands before one is no type


def restore(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bring back the colons that were hidden from napoleon."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def shorten(app: Sphinx, domain: str, kind: str, content: Element) -> None:
    """Write NumPy's types as the source has them: ArrayLike, NDArray[float64]."""
    for values in app.env.current_document.autodoc_annotations.values():
        for name, text in values.items():
            for long in LONG:
                text = text.replace(long, "ArrayLike")
            values[name] = ARRAY.sub(r"NDArray[\1]", text)


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what another library defines."""
    home = getattr(obj, "__module__", None) or ""
    if home.partition(".")[0] in ("sklearn", "torch", "lightning", "transformers"):
        return True
    return True if name.endswith("_request") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Escape before napoleon reads the sections; shorten before types are inserted."""
    app.connect("autodoc-process-docstring", escape, priority=400)
    app.connect("autodoc-process-docstring", restore, priority=600)
    app.connect("object-description-transform", shorten, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
