"""Starts of closed mechanisms: rounding errors of loops are corrected, open loops are refused with a remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.lower.build import Request, is_long
from ..compiler.lower.closing_steps import allowed_gaps
from ..compiler.lower.loop_pattern import RANK
from ..errors import Advice, InputError
from ..model.mechanism import Mechanism, parameter_arguments
from ..model.scales import loop_units
from ..runtime.function import Function
from ..system import System
from .arguments import check_finite, check_rotations, common_lead
from .closing import Closer, closing_program, name_open_equation
from .methods.lane_states import ASTRAY

if TYPE_CHECKING:
    from ..backends.cuda.libraries import Library
    from ..targets.ptx.driver import Device


MOVES = 1e-6
"""The least velocity, in parts of that given to every degree of freedom, that shows that the loops allow a motion: far
above rounding."""


def closed_start(
    mechanism: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    parameters: np.ndarray | None,
    *,
    function: Callable[[str], Function] | None = None,
    closer: Callable[[], Closer] | None = None,
):
    """Return a start with its loops closed to rounding; raise an InputError that names an open loop and the remedy.

    `function` and `closer` are those of a System, which keep their compiled code.
    """
    if not mechanism.closures:
        return q, qd
    more = parameter_arguments(parameters)
    if is_long(mechanism):
        made = Closer.of_functions(mechanism, function)
    else:
        made = closer() if closer else Closer.of_program(closing_program(mechanism))
    q2, qd2 = made.close(q, qd, parameters)
    make = function or (lambda name: Function(mechanism, Request(name)))
    gap = make("closure_residual")(q, *more)
    astray = ASTRAY["float64"] * allowed_gaps(mechanism)
    k = _worst(gap, astray)
    if k is not None:
        fact = f"q0 does not close {_named(mechanism, k[-1])}: off by {gap[k]:.6g} {mechanism.closures[k[-1]].unit}"
        raise InputError(
            Advice(
                f"{fact}; start from system.assemble(q0), and see system.doctor(q0)",
                f"--{fact}; set single joints by --set, and the loops determine the others",
            )
        )
    lost = np.argwhere(~np.isfinite(q2).all(axis=-1))
    if lost.size:
        raise InputError(
            f"q0 cannot be followed: {name_open_equation(mechanism, gap[tuple(lost[0])])}; see system.doctor(q0)"
        )
    J = make("closure_jacobian")(q2, *more)
    units = loop_units(mechanism)[1]
    speeds = made.close(q2, np.broadcast_to(units, qd.shape), parameters)[1] / units
    if not (np.abs(speeds) > MOVES).any():  # a motion is cheaper to find than the rank
        _refuse_locked(mechanism, J)
    rate = np.einsum("...ij,...j->...i", J, qd)
    k = _worst(rate, astray * max(1.0, float(np.abs(qd / loop_units(mechanism)[1]).max(initial=0.0))))
    if k is not None:
        raise InputError(
            f"qd0 breaks {_named(mechanism, k[-1])}: it {_verb(mechanism, k[-1])} at {rate[k]:.6g} "
            f"{mechanism.closures[k[-1]].unit}/s; start with system.closing_speed(q0, qd0), or "
            "system.consistent_speeds(q0, {joint: speed})"
        )
    return q2, qd2


def _refuse_locked(mechanism: Mechanism, J: np.ndarray) -> None:
    """Raise an InputError if the loops allow no motion in any run."""
    if not J.size or J.shape[-2] < J.shape[-1]:
        return
    rows, columns = loop_units(mechanism)
    sizes = np.linalg.svd(J * columns / rows[:, None], compute_uv=False)
    if (sizes > RANK * sizes.max(axis=-1, keepdims=True)).all():
        raise InputError(
            f"the loops of {mechanism.name!r} lock it: they leave none of its {mechanism.nv} degrees of freedom; see "
            "system.doctor(q0) for redundant loops, or system.loads(q0, qd0) for the loads of a structure"
        )


def _worst(x: np.ndarray, limits: np.ndarray) -> tuple[int, ...] | None:
    """Return the index of the entry that exceeds its limit by the largest factor; None if none does."""
    if not x.size:  # of no runs
        return None
    parts = np.abs(x) / limits
    k = np.unravel_index(int(np.argmax(parts)), x.shape)
    return tuple(map(int, k)) if not parts[k] <= 1.0 else None


def _named(mechanism: Mechanism, k: int) -> str:
    closure_ = mechanism.closures[k]
    if closure_.label == "coupling":
        return f"coupling {closure_.name!r}"
    return f"loop {closure_.name!r} ({closure_.label})"


def _verb(mechanism: Mechanism, k: int) -> str:
    return "opens" if mechanism.closures[k].holonomic else "slips"


# --- Starts that are arrays on a GPU, and stay there if the samples of their runs do ---


def stays(library: Library, system: System, device: Device | None, arrays: tuple[Any, Any]) -> bool:
    """Return whether q0 and qd0 are arrays of a library on a GPU that need nothing from the CPU.

    Starts of closed mechanisms do: their loops are closed there. So do arrays of integers, and a qd0 elsewhere.
    """
    from ..backends.cuda.libraries import DTYPES

    given, module = [x for x in arrays if x is not None], sys.modules[library.module]
    if system.closures or not all(hasattr(x, "__cuda_array_interface__") and library.owns(module, x) for x in given):
        return False
    views = [library.view(x, "simulate: the start") for x in given]
    return all(device is not None and view.device == device.index and view.dtype in DTYPES for view in views)


def device_start(
    system: System,
    library: Library,
    arrays: tuple[Any, Any],
    dtype: str,
    beside: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[Any, Any]:
    """Return q [..., nq] and qd [..., nv] with a common leading shape, as views of new arrays [entries, runs].

    Without qd0, velocities are zero. `beside` are the leading shapes of the other arrays of a run by name.
    """
    names, (q0, qd0) = ("q0", "qd0"), arrays
    if qd0 is None:
        qd0 = library.columns([0.0] * system.nv, dtype, library.view(q0, "simulate: q0").device)
    arrays = q0, qd0
    lead = common_lead(system, tuple(q0.shape), tuple(qd0.shape), beside)
    made = [library.entries_first(x, lead, dtype) for x in arrays]
    for name, x in zip(names, made, strict=True):
        check_finite(name, bool(library.finite(x).all()))
    check_rotations(system, lambda at: bool(library.nonzero(made[0][at : at + 4]).all()))
    q, qd = (runs_first(x, lead) for x in made)
    return q, qd


def runs_first(x: Any, lead: tuple[int, ...]) -> Any:
    """Return a view [..., core] of an array [core, runs] of CuPy or torch."""
    wide = x.reshape((*x.shape[:-1], *lead))
    core = len(x.shape) - 1
    axes = (*range(core, core + len(lead)), *range(core))
    return wide.permute(axes) if hasattr(wide, "permute") else wide.transpose(axes)
