"""Kinetree: the dynamics of rigid multibody systems by the DeNOC method.

>>> import kinetree as kt
>>> arm = kt.load("stanford")
>>> tau = arm.inverse_dynamics(q, qd, qdd)
>>> run = kt.simulate(arm, q0, duration=10.0)
"""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import Any as _Any

from . import errors  # noqa: F401
from ._support import interruption as _interruption  # noqa: F401 - answers Ctrl-C during later imports

# The table of public names is `__init__.pyi`, which type checkers read too. A name is imported when it is first used,
# so that `import kinetree` takes a fraction of a second.
_STUB = _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_PLACES = {
    name.asname or name.name: ("." * line.level + (line.module or ""), name.name)
    for line in _STUB.body
    if isinstance(line, _ast.ImportFrom)
    for name in line.names
}
__all__ = sorted(_PLACES)  # noqa: PLE0605 - the names of the stub


def __getattr__(name: str) -> _Any:
    """Import a public name, and keep it for the next use."""
    if name not in _PLACES:
        raise AttributeError(f"module 'kinetree' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    value = globals()[name] = getattr(_import_module(module, __name__), attribute)
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
