"""Bounds of the memory that a file can claim: a small one may describe, or compress, arrays of any size."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile, is_zipfile

from ...errors import InputError

COPIES = 3
"""Arrays of a run that are in memory at once while its digest is computed."""
PACKED = ((256 << 20, 1000), (2 << 30, 20))
"""Sizes of arrays [bytes] above which their ratio to the file is bounded, each with the largest ratio.

Columns that never change take little, but some column does change. Only runs of many columns, almost all of which rest,
have ratios above 20."""


def require_archive(path: Path, remedy: str) -> None:
    """Raise an InputError for a file that is no archive, for which NumPy's message would recommend pickle."""
    if not is_zipfile(path):
        raise InputError(f"{path}: is not an .npz file, or is incomplete; {remedy}")


def refuse_packed(archive: ZipFile, path: Path) -> None:
    """Raise an InputError for an NPZ file whose arrays are larger than the file itself: Kinetree compresses none."""
    size = sum(info.file_size for info in archive.infolist())
    if size > path.stat().st_size:
        raise InputError(
            f"{path}: its arrays have {size} bytes, more than the file; Kinetree writes them without compression"
        )


def refuse_large(size: int, path: Path, stored: int | None = None) -> None:
    """Raise an InputError for arrays of so many bytes if this machine cannot hold them.

    With `stored`, the bytes of the file itself, arrays that are packed more densely than any run are refused too.
    """
    most = memory() // COPIES
    if size > most:
        raise InputError(
            f"{path}: its arrays have {size / 1e9:.3g} GB, and this machine can read {most / 1e9:.3g} GB; "
            "the file is damaged, or needs a machine with more memory"
        )
    for least, ratio in PACKED:
        if stored is not None and size > max(least, ratio * stored):
            raise InputError(
                f"{path}: its arrays have {size / 1e9:.3g} GB, more than {ratio} times the {stored:,} bytes of the "
                "file; it is damaged, or save the run as .npz"
            )


def memory() -> int:
    """Return the memory of this machine [bytes], or 16 GiB where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return 16 << 30
