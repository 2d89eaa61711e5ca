"""What systems on other devices have in common: the parts of the mechanism, and errors for methods of the CPU alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._support.tables import count_text
from ..errors import unknown_name
from ..model.mechanism import Closure, Mechanism, without_parameters
from ..model.parts import Body, Joint
from ..runtime.compiled import CompiledMechanism


class Mirrored:
    """A system for arrays of other libraries; `system` is the one on the CPU, which has all analyses."""

    place: str
    without: tuple[str, ...]
    """The options of a System that calls do not take, which `mirror` sets."""

    def __init__(self, system: CompiledMechanism) -> None:
        """Store the system."""
        self.system = system

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.system.mechanism

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return self.system.nq

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.system.nv

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies, parents first; joint i carries body i."""
        return self.system.bodies

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints, in the order of q and qd."""
        return self.system.joints

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The equations of all loops and couplings; () for a tree."""
        return self.system.closures

    def __repr__(self) -> str:
        """Return the name, the numbers of bodies, coordinates and degrees of freedom, and the device."""
        m = self.mechanism
        counts = f"{count_text(len(m.bodies), 'body', 'bodies')}, nq = {m.nq}, nv = {m.nv}{m.closed_by}"
        return f"<{type(self).__name__} {m.name!r} on {self.place}: {counts}>"

    if TYPE_CHECKING:  # the methods of the algorithms are added by `mirror`

        def __getattr__(self, name: str) -> Any: ...

    else:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to methods that run on the CPU only."""
            if not name.startswith("_") and hasattr(type(self.system), name):
                raise AttributeError(f"{name} runs on NumPy arrays on the CPU; use .system.{name}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


# --- Free parameters of a call, given in order or by name, for the arrays of any library ---


def parameter_argument(
    mechanism: Mechanism,
    given: object,
    *,
    numbers: Callable[[tuple[float, ...]], object],
    columns: Callable[[Sequence[Any]], object],
) -> tuple[Any, ...]:
    """Return the last argument of a function, its free parameters; () if the mechanism has none.

    Values in order are returned as they are. If all values are numbers, `numbers` makes the argument; arrays by name
    become the columns of one array by `columns`.
    """
    free = mechanism.free_parameters
    if not free:
        if given is not None:
            raise without_parameters(mechanism)
        return ()
    if given is not None and not isinstance(given, Mapping):
        return (given,)
    named = given or {}
    for name in named:
        if name not in [p.name for p in free]:
            raise unknown_name("free parameter", str(name), [p.name for p in free])
    values = [named.get(p.name, p.value) for p in free]
    if all(isinstance(x, int | float) for x in values):
        return (numbers(tuple(map(float, values))),)
    return (columns(values),)
