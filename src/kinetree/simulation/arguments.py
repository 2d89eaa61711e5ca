"""Arguments of forces and references: mechanisms, and one number or one per degree of freedom."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import items, leading_shape, number, plain, real_array
from ..errors import InputError, ModelError, argument, brief, path_of
from ..model.axes import quaternion_places
from ..model.mechanism import Mechanism
from ..model.parameters import Expression
from ..model.part_fields import formula
from ..system import System
from .run_states import check_times

M = TypeVar("M", bound="Mechanism | System")
"""A Mechanism or a System, whichever was given."""


def coefficient(x: Any, what: str, *, least: float = -math.inf) -> Any:
    """Return a checked number, or an expression of the parameters of a mechanism, which may be a formula in text."""
    try:
        x = formula(x, what)
    except ModelError as error:
        raise InputError(str(error), path=path_of(what)) from None
    return x if isinstance(x, Expression) else number(x, what, least=least)


def coefficients(x: Any, what: str, *, least: float = -math.inf) -> tuple[Any, ...]:
    """Return one number or expression, or several, as a tuple."""
    return tuple(coefficient(item, what, least=least) for item in items(x, what))


def vector(x: Any, what: str) -> tuple[Any, Any, Any]:
    """Return three numbers or expressions."""
    found = coefficients(x, what)
    if len(found) != 3:
        raise InputError(f"{what} has {len(found)} numbers; give 3", path=path_of(what))
    return found  # type: ignore[return-value]


def spread(values: Sequence[Any], count: int, what: str) -> tuple[Any, ...]:
    """Return `count` numbers: those given, or one repeated."""
    if len(values) not in (1, count):
        choice = "one" if count == 1 else f"one, or {count}"
        raise InputError(f"{what} has {len(values)} numbers; give {choice}", path=path_of(what))
    return tuple(values) * (count if len(values) == 1 else 1)


def together(named: dict[str, tuple[float, ...]], owner: str) -> dict[str, tuple[float, ...]]:
    """Return tuples of one common length; a single number is repeated."""
    count = max(map(len, named.values()))
    return {name: spread(values, count, argument(name, owner, "")) for name, values in named.items()}


def mechanism_of(x: Any) -> Mechanism:
    """Return a Mechanism, or that of a System; refuse other objects."""
    found = getattr(x, "mechanism", x)
    if not isinstance(found, Mechanism):
        raise InputError(f"mechanism is {brief(x)}; give a System or a Mechanism, such as kt.load(name or file)")
    return found


def like(given: M, mechanism: Mechanism) -> M:
    """Return a mechanism in the form in which another one was given, as a System or a Mechanism."""
    if isinstance(given, Mechanism):
        return mechanism  # type: ignore[return-value]
    return type(given)(mechanism, given.report)  # type: ignore[return-value]


# --- Array arguments of `simulate`: output times, the start, values of free parameters ---

OUTPUTS = 1001
"""The default number of output times: one sample per pixel in a picture that is a thousand pixels wide."""


def output_times(duration: float | None, times: ArrayLike | None) -> np.ndarray:
    """Return the output times: those given, or evenly spaced ones over a duration [s]."""
    if (duration is None) == (times is None):
        raise InputError("duration and times: give one of them, either a duration or output times")
    if times is not None:
        return check_times(real_array(times, "times"))
    end = plain(duration)
    if end is None or not 0.0 < end < np.inf:
        raise InputError(f"duration is {duration!r}; expected a positive number of seconds")
    return np.linspace(0.0, end, OUTPUTS)


def precision(arrays: tuple[Any, Any]) -> str:
    """Return the precision of a run on a GPU: float32 if an array of its start is, otherwise float64."""
    single = any(str(getattr(x, "dtype", "")).removeprefix("torch.") == "float32" for x in arrays)
    return "float32" if single else "float64"


def on_host(arrays: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the start of a run on a GPU in the memory of the host."""
    q, qd = (_copied(x) if hasattr(x, "__cuda_array_interface__") else x for x in arrays)
    return q, qd


def _copied(x: Any) -> np.ndarray:
    """Return an array of CuPy or torch on a GPU in the memory of the host."""
    return x.get() if hasattr(x, "get") else x.detach().cpu().numpy()


def start_state(
    system: System,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    default: Callable[[], np.ndarray],
    beside: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return q [..., nq] and qd [..., nv] with a common leading shape; `default` returns q where none is given.

    `beside` are the leading shapes of the other arrays of a run by name, such as its parameters.
    """
    given = (
        ("q0", default() if q0 is None else q0),
        ("qd0", np.zeros(system.nv) if qd0 is None else qd0),
    )
    arrays = []
    for name, value in given:
        array = real_array(value, name, _by_name(system, name, value))
        check_finite(name, bool(np.isfinite(array).all()))
        arrays.append(array)
    lead = common_lead(system, arrays[0].shape, arrays[1].shape, beside)
    q, qd = (np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays)
    check_rotations(system, lambda at: bool(np.abs(q[..., at : at + 4]).max(axis=-1, initial=0.0).all()))
    return q, qd


def check_finite(name: str, finite: bool) -> None:
    """Raise InputError for a start that is not finite."""
    if not finite:
        raise InputError(f"{name} has entries that are not finite")


def common_lead(
    system: System, q: tuple[int, ...], qd: tuple[int, ...], beside: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[int, ...]:
    """Return the leading shape of a run, given the shapes of q0 and qd0, and the leading shapes of other arrays."""
    others = [(name, lead, ()) for name, lead in (beside or {}).items()]
    lead = leading_shape([("q0", q, (system.nq,)), ("qd0", qd, (system.nv,)), *others])
    if system.nv == 0:
        raise InputError(
            f"{system.mechanism.name!r} cannot move: it has no degrees of freedom; add a joint, or let the root link "
            'of a URDF float: base="free" (command line: --base free)'
        )
    return lead


def check_rotations(system: System, nonzero: Callable[[int], bool]) -> None:
    """Raise InputError if a quaternion is zero; `nonzero` has the index in q at which one starts."""
    for at in quaternion_places(system.mechanism):
        if not nonzero(at):
            raise InputError(f"q0 has a quaternion of zeros in its entries {at} to {at + 3}; no rotation is 0, 0, 0, 1")


def fitting(system: System, values: np.ndarray | None, lead: tuple[int, ...]) -> np.ndarray | None:
    """Return the values of all free parameters for runs of a leading shape, [np] or [..., np]; None if there are none.

    One set [np] for all runs stays one; other leading shapes are broadcast to that of the runs.
    """
    free = system.mechanism.free_parameters
    if values is None:
        return np.array([p.value for p in free]) if free else None
    return values if values.ndim == 1 else np.ascontiguousarray(np.broadcast_to(values, (*lead, len(free))))


def _by_name(system: System, name: str, value: Any) -> str:
    """Return the remedy for numbers by joint, if the mechanism is closed; else an empty text."""
    if not (isinstance(value, Mapping) and system.closures):
        return ""
    by = "assemble(hold={joint: position})" if name == "q0" else "consistent_speeds(q0, {joint: speed})"
    return f"; numbers by joint make one with system.{by}"
