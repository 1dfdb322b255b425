"""Our docstrings are plain text with `code` in backticks; reStructuredText reads more into it.

Pages that are named become links. Bars, stars and trailing underscores outside of backticks are
escaped, code with a colon gets two backticks (napoleon would take it for a type), and what a class
inherits from scikit-learn, torch, Lightning or transformers is left to their own documentation.
"""

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(?<!`)(`[^`]+`)(?!`)")
PAGE = re.compile(r"\bdocs/([\w/-]+)\.md")
SPECIAL = re.compile(r"([*|]|(?<=\w)_(?!\w))")


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape the lines in place, except in examples."""
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")  # napoleon would take what stands before a first colon for a type
    for place, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = CODE.split(line)
        parts[1::2] = [part if ":" not in part else f"`{part}`" for part in parts[1::2]]
        parts[::2] = [PAGE.sub(r":doc:`/\1`", SPECIAL.sub(r"\\\1", part)) for part in parts[::2]]
        lines[place] = "".join(parts)


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what another library defines."""
    home = getattr(obj, "__module__", None) or ""
    if home.partition(".")[0] in ("sklearn", "torch", "lightning", "transformers"):
        return True
    return True if name.endswith("_request") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Escape before napoleon reads the sections."""
    app.connect("autodoc-process-docstring", escape, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
