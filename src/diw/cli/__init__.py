"""The command `diw`: one file a verb; heavy imports inside the verbs, so that `--help` is quick.

What other commands on runs are made of can be imported from here.
"""

from diw.cli.main import run
from diw.cli.options import read_device, say, writable_folder
from diw.cli.progress import Tracked, clock, show_progress

__all__ = [
    "Tracked",
    "clock",
    "read_device",
    "run",
    "say",
    "show_progress",
    "writable_folder",
]
