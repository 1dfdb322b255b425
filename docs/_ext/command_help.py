"""The directive `command-help`: the help of every verb of `diw`, as the command prints it."""

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from diw.cli.main import diw


class CommandHelp(SphinxDirective):
    """A section per verb with its help."""

    def run(self) -> list[nodes.Node]:
        """Ask click for the help of each verb."""
        parent = click.Context(diw, info_name="diw", max_content_width=88, terminal_width=88)
        sections: list[nodes.Node] = [_literal(diw.get_help(parent))]
        for verb in diw.list_commands(parent):
            command = diw.get_command(parent, verb)
            assert command is not None
            context = click.Context(
                command, info_name=verb, parent=parent, max_content_width=88, terminal_width=88
            )
            section = nodes.section(ids=[f"diw-{verb}"], names=[f"diw {verb}"])
            section += nodes.title("", "", nodes.literal(text=f"diw {verb}"))
            section += _literal(command.get_help(context))
            for name, one in getattr(command, "commands", {}).items():
                below = click.Context(one, info_name=name, parent=context, terminal_width=88)
                section += _literal(one.get_help(below))
            sections.append(section)
        return sections


def _literal(text: str) -> nodes.literal_block:
    block = nodes.literal_block(text, text)
    block["language"] = "text"
    return block


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
