"""Atomic writing of files, and imports of optional packages."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import InputError, writing


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


def optional(package: str, purpose: str, extra: str = "results") -> Any:
    """Import an optional package, or raise an InputError that names the command to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise InputError(
            f"{purpose} need the package {name}, which is not installed; pip install 'kinetree[{extra}]'"
        ) from None
