"""Atomic writing of files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import writing


def temporary(path: Path) -> Path:
    """Return an unused name in the folder of a path, with the same suffix."""
    return path.with_name(f".{path.stem[:100]}.{secrets.token_hex(6)}{path.suffix}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file that replaces `path` at the end, or is removed after an error.

    Errors of the operating system become a WriteError with `path`.
    """
    written = temporary(path)
    with writing(path):
        try:
            yield written
            with open(written, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(written, path)
        except BaseException:
            with suppress(OSError):  # the first error counts
                written.unlink()
            raise
