"""Bounds of the memory that a file can claim: a small one may describe, or compress, arrays of any size."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile

from ...errors import InputError

COPIES = 3
"""Arrays of a run that are in memory at once while its digest is computed."""


def refuse_packed(archive: ZipFile, path: Path) -> None:
    """Raise an InputError for an NPZ file whose arrays are larger than the file itself: Kinetree compresses none."""
    size = sum(info.file_size for info in archive.infolist())
    if size > path.stat().st_size:
        raise InputError(
            f"{path}: its arrays have {size} bytes, more than the file; Kinetree writes them without compression"
        )


def refuse_large(size: int, path: Path) -> None:
    """Raise an InputError for arrays of so many bytes if this machine cannot hold them."""
    most = memory() // COPIES
    if size > most:
        raise InputError(
            f"{path}: its arrays have {size / 1e9:.3g} GB, and this machine can read {most / 1e9:.3g} GB; "
            "the file is damaged, or needs a machine with more memory"
        )


def memory() -> int:
    """Return the memory of this machine [bytes], or 16 GiB where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return 16 << 30
