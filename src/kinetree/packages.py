"""Imports of optional packages, by the functions that need them."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError


def optional(package: str, purpose: str, extra: str = "results") -> Any:
    """Import an optional package, or raise an InputError that names the command to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise InputError(
            f"{purpose} need the package {name}, which is not installed; pip install 'kinetree[{extra}]'"
        ) from None
