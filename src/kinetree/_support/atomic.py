"""Atomic writing of files and folders."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import writing


def temporary(path: Path) -> Path:
    """Return an unused name in the folder of a path, with the same suffix."""
    return path.with_name(f".{path.stem[:100]}.{secrets.token_hex(6)}{path.suffix}")


@contextmanager
def replacing(path: Path, *, keep: bool = False) -> Iterator[Path]:
    """Yield a temporary name for a file or folder that replaces `path` at the end, or is removed after an error.

    With `keep`, a folder that exists at the end stays and the new one is removed, with an error. Errors of the
    operating system become a WriteError with `path`.
    """
    written, old = temporary(path), temporary(path)
    with writing(path):
        try:
            yield written
            if written.is_dir():
                if path.exists() and not keep:
                    os.replace(path, old)  # a folder cannot replace one that is not empty
            else:
                with open(written, "rb+") as file:
                    os.fsync(file.fileno())
            os.replace(written, path)
        except BaseException:
            _remove(written)
            if old.exists():
                os.replace(old, path)
            raise
    _remove(old)


def _remove(path: Path) -> None:
    """Remove a file or folder, if there is one."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # the first error counts
        path.unlink()
