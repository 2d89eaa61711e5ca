"""Files that are there as a whole or not at all, and packages that need not be there."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import InputError


def temporary(path: Path) -> Path:
    """Return a name beside a path that no file has, with the same ending."""
    return path.with_name(f".{path.stem[:100]}.{secrets.token_hex(6)}{path.suffix}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a name to write a file to, which takes the place of `path` in the end, or is removed after an error."""
    written = temporary(path)
    try:
        yield written
        with open(written, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(written, path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise


def optional(package: str, purpose: str, extra: str = "results") -> Any:
    """Import a package that Kinetree does not depend on, or raise InputError that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise InputError(
            f"{purpose} need the package {name}, which is not installed; pip install 'kinetree[{extra}]'"
        ) from None
