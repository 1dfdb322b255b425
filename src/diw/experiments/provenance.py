"""What made a result: command, version, commit and machine, for whoever wants to repeat it."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from diw._version import __version__


def provenance(command: Sequence[str]) -> dict[str, str]:
    """Facts by name; what cannot be found out is empty.

    Args:
        command: The words of the command line, without the program's name.
    """
    from importlib.metadata import version

    return {
        "command": " ".join(["diw", *command]),
        "diw": __version__,
        "commit": _commit(Path(__file__).parent),
        "Python": platform.python_version(),
        "torch": version("torch"),
        "NumPy": version("numpy"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or ""),
    }


def _commit(folder: Path) -> str:
    """The commit of the source tree that runs, marked if it has changed since; or nothing."""
    try:
        words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
        found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def _processor() -> str:
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text().splitlines()
        except OSError:
            lines = []
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()
