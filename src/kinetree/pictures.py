"""Functions of higher layers that are called by name from the layers below: pictures, and cycles of a System.

`provide` is called once, when the package is imported. Thus a run has `plot` without an import of the view layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_provided: dict[str, Callable[..., Any]] = {}


def provide(**functions: Callable[..., Any]) -> None:
    """Make functions available by name to lower layers."""
    _provided.update(functions)


def picture(name: str) -> Callable[..., Any]:
    """Return a provided function by name."""
    return _provided[name]
