"""Functions that draw runs and mechanisms: the view layer provides them, the layers below it call them by name.

`provide` is called once, when the package is imported, so that a run can have `plot` without knowing the view layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_provided: dict[str, Callable[..., Any]] = {}


def provide(**functions: Callable[..., Any]) -> None:
    """Make functions available by name to the layers below those that they come from."""
    _provided.update(functions)


def picture(name: str) -> Callable[..., Any]:
    """Return the function of a name that was provided."""
    return _provided[name]
