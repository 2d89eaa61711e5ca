"""Free parameters of a call, given in order or by name, for the arrays of any library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InputError, unknown_name
from ..model.mechanism import Mechanism


def parameter_argument(
    mechanism: Mechanism,
    given: Any,
    *,
    numbers: Callable[[tuple[float, ...]], Any],
    columns: Callable[[Sequence[Any]], Any],
) -> tuple[Any, ...]:
    """Return the last argument of a function, its free parameters; () if the mechanism has none.

    Values in order are returned as they are. If all values are numbers, `numbers` makes the argument; arrays by name
    become the columns of one array by `columns`.
    """
    free = mechanism.free_parameters
    if not free:
        if given is not None:
            raise InputError(
                f"{mechanism.name!r} has no free parameters; declare them with free = true in the mechanism"
            )
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
