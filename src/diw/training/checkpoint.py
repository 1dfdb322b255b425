"""Checkpoints: everything that a training needs to go on, behind a checksum.

The newest two are kept. A damaged one is never believed: the one before is used instead, which
costs an epoch and changes no bit of the result.
"""

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from diw.errors import DamageError, DIWWarning, one_line
from diw.files import replacing, unseal, write_sealed
from diw.runs import Run

State = dict[str, Any]


def save_checkpoint(run: Run, state: State) -> None:
    """Make `state` the newest checkpoint; the newest so far becomes the one before."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    newest, before = run.checkpoint_paths
    with replacing(newest) as temporary:
        write_sealed(temporary, buffer.getbuffer())
        if newest.exists():
            newest.replace(before)


def resume(run: Run, device: torch.device, take: Callable[[State], None]) -> None:
    """Hand the newest sound checkpoint to `take`; nothing happens where there is none at all.

    Args:
        run: Where to look.
        device: Where its tensors are put.
        take: Goes on from a state; raises `DamageError` if it does not fit the run's records.
    """
    damages: list[str] = []
    for path in run.checkpoint_paths:
        if not path.exists():
            continue
        try:
            take(_read(path, device))
            if damages:
                message = f"{damages[0]}; goes on from {path.name}"
                warnings.warn(message, DIWWarning, stacklevel=2)
            return
        except DamageError as damage:
            damages.append(str(damage))
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            damages.append(f"{path}: does not belong to this run: {one_line(error)}")
    if damages:
        raise DamageError(f"{'; '.join(damages)}; remove {run.folder} to train from the beginning")


def _read(path: Path, device: torch.device) -> State:
    """The state in a checkpoint; before there were checksums it was a bare archive of torch."""
    content = path.read_bytes()
    if content.startswith(b"PK"):
        _check_archive(path, content)
    else:
        content = unseal(path, content)
    try:
        state = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    except Exception as error:  # torch and pickle raise many kinds
        raise DamageError(f"{path}: cannot be read: {one_line(error)}") from None
    if not isinstance(state, dict):
        raise DamageError(f"{path}: is not a checkpoint")
    return state


def _check_archive(path: Path, content: bytes) -> None:
    try:
        damaged = zipfile.ZipFile(io.BytesIO(content)).testzip()
    except Exception as error:  # zipfile and zlib raise many kinds for broken files
        raise DamageError(f"{path}: is damaged: {one_line(error)}") from None
    if damaged is not None:
        raise DamageError(f"{path}: is damaged: the checksum of {damaged} is wrong")
