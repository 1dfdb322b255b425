"""Directives for the pages of the methods: `method-fields`, `method-cost`, `method-figures`."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from method_tables import cost_line, fields_table, figures_table
from repository import with_site_links
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class MethodDirective(SphinxDirective):
    """Markdown about the method that the argument names."""

    required_arguments = 1
    make: ClassVar[Callable[[str], str]]

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown where the directive stands."""
        text = type(self).make(self.arguments[0])
        source = Path(self.get_source_info()[0])
        lines = with_site_links(text, source.parent).splitlines()
        box = nodes.Element()
        self.state.nested_parse(StringList(lines, str(source)), self.content_offset, box)
        return box.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register one directive for each table."""
    makers = {"fields": fields_table, "cost": cost_line, "figures": figures_table}
    for name, make in makers.items():
        made = type(name, (MethodDirective,), {"make": staticmethod(make)})
        app.add_directive(f"method-{name}", made)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
