"""What the soaks share: cases by number, none too long, counted by outcome, and gone on with."""

import argparse
import faulthandler
import json
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch

LONGEST = 300.0
"""Seconds; a case that takes longer hangs. The soak then shows where it was, and ends."""


class WrongError(Exception):
    """What a case found wrong, in words."""


def go_through(folder: Path, unit: str, last: int, case: Callable[[int], str]) -> Counter[str]:
    """Try the cases up to `last`, from where the last soak in this folder stopped.

    Args:
        folder: Where the counts are kept.
        unit: What a case is, for the messages.
        last: How many cases there are in all.
        case: Tries one case, determined by its number; returns its outcome in a word, for the
            counts. Any exception is something wrong, and ends the soak.
    """
    kept = folder / "counts.json"
    counts = Counter(json.loads(kept.read_text()) if kept.exists() else {})
    for number in range(counts.total(), last):
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        try:
            outcome = case(number)
        except WrongError as wrong:
            raise SystemExit(f"case {number}: {wrong}") from None
        except BaseException:
            raise SystemExit(f"case {number}: {traceback.format_exc()}") from None
        finally:
            faulthandler.cancel_dump_traceback_later()
        counts[outcome] += 1
        kept.write_text(json.dumps(counts))
        if number % 100 == 99 or number == last - 1:
            each = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
            print(f"{number + 1} {unit}, nothing wrong ({each})", flush=True)
    return counts


def run_from_command_line(
    run_soak: Callable[[Path, int, int], object], description: str, name: str, unit: str, most: int
) -> None:
    """Read `--UNIT`, `--folder` and `--seed`, and run a soak."""
    parser = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    parser.add_argument(f"--{unit}", type=int, default=most, dest="most")
    parser.add_argument("--folder", type=Path, default=Path(".soak") / name)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    run_soak(options.folder.absolute(), options.most, options.seed)
