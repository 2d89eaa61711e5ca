"""Kinetree: the dynamics of rigid multibody systems by the DeNOC method.

>>> import kinetree as kt
>>> arm = kt.load("stanford")
>>> tau = arm.inverse_dynamics(q, qd, qdd)
>>> run = kt.simulate(arm, q0, duration=10.0)
"""

from typing import Any as _Any

from . import errors  # noqa: F401
from ._support import interruption as _interruption  # noqa: F401 - answers Ctrl-C during later imports
from ._support import lazy_names as _lazy_names

# The table of public names is `__init__.pyi`, which type checkers read too. A name is imported when it is first used,
# so that `import kinetree` takes a fraction of a second.
__all__ = sorted(_lazy_names.PLACES)  # noqa: PLE0605 - the names of the stub


def __getattr__(name: str) -> _Any:
    """Import a public name, and keep it for the next use."""
    if name not in _lazy_names.PLACES:
        raise AttributeError(f"module 'kinetree' has no attribute {name!r}")
    value = globals()[name] = _lazy_names.load_name(name)
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
