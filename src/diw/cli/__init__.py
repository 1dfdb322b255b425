"""The command `diw`: one file a verb; heavy imports inside the verbs, so that `--help` is quick.

What other commands on runs are made of can be imported from here.
"""

from typing import TYPE_CHECKING

from diw._lazy import names_from

if TYPE_CHECKING:
    from diw.cli.main import run as run
    from diw.cli.options import read_device as read_device
    from diw.cli.options import say as say
    from diw.cli.options import writable_folder as writable_folder
    from diw.cli.progress import Tracked as Tracked
    from diw.cli.progress import clock as clock
    from diw.cli.progress import show_progress as show_progress

__getattr__ = names_from(
    __name__,
    {
        "main": "run",
        "options": "read_device say writable_folder",
        "progress": "Tracked clock show_progress",
    },
)
