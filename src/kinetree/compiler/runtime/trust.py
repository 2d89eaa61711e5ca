"""Checks that code on disk belongs to this user: owner and permissions of a folder, its files and links.

Anyone who may write such a file determines what this process runs, and a checksum in the file itself is no protection.
On Windows the folder of the user's local data is private by its access list, which is not checked here.
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path
from typing import BinaryIO

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder(path: Path) -> bool:
    """Create a folder if necessary and return whether only this user may write there; warn if others may."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "geteuid"):
        return True
    fault = _link_fault(path.lstat()) or _fault(path.stat())
    if fault:
        own = path.stat().st_uid == os.geteuid()
        remedy = f"run: chmod go-w {path}, or " if own else ""  # only the owner may change the permissions
        warnings.warn(
            f"the cache folder {path} is not used, because {fault}: compiled code there may come from another user; "
            f"{remedy}choose a folder of your own with KINETREE_CACHE_DIR",
            RuntimeWarning,
            stacklevel=2,
        )
    return not fault


def private_reader(path: Path) -> BinaryIO:
    """Open a file that only this user may write; raise PermissionError for any other, and for a link."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    fault = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    if hasattr(os, "geteuid"):
        fault = fault or _fault(status)
    if fault:
        os.close(descriptor)
        raise PermissionError(f"{path}: {fault}")
    return os.fdopen(descriptor, "rb")


def _fault(status: os.stat_result) -> str:
    """Return why somebody else may determine the content of a file or folder, or an empty text."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    if status.st_mode & OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _link_fault(status: os.stat_result) -> str:
    """Return why a link to the folder must not be followed: another user has made it."""
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (os.geteuid(), 0):
        return f"it is a link of user {status.st_uid}, not of user {os.geteuid()}"
    return ""
