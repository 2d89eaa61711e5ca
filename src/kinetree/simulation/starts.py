"""The start of a run: states from arrays or by default, closed to rounding; open loops are refused with a remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import leading_shape, real_array
from .._support.identity import value_text
from ..algebra.scalars import Numbers
from ..compiler.lower.closing_steps import ASTRAY, allowed_gaps
from ..compiler.lower.loop_pattern import RANK
from ..errors import Advice, InputError
from ..model.axes import quaternion_places
from ..model.mechanism import Mechanism, parameter_arguments
from ..model.scales import loop_units
from ..system import System
from .closing import closer_of, name_open_equation

if TYPE_CHECKING:
    from ..backends.cuda.libraries import Library
    from ..targets.ptx.driver import Device


AnyArray = Any
"""An array of NumPy, or of CuPy or torch on a GPU; None for a default."""


def start_of(
    system: System,
    given: tuple[AnyArray, AnyArray],
    default: Callable[[], np.ndarray],
    beside: Mapping[str, tuple[int, ...]],
    device: Device | None,
    library: Library | None,
) -> tuple[AnyArray, AnyArray, str]:
    """Return q and qd with a common leading shape, and the precision of the run; arrays of a `library` may stay."""
    if device is None:
        return *start_state(system, *given, default, beside), "float64"
    dtype = precision(given)
    if library and is_on_gpu(library, system, device, given):
        return *device_start(system, library, given, dtype, beside), dtype
    return *start_state(system, *on_host(given), default, beside), dtype


def default_position(system: System, parameters: np.ndarray | None) -> np.ndarray:
    """Return zero displacements; for a closed mechanism, the closed position nearest to its guess, found only once."""
    if not system.closures:
        return system.neutral()
    key = "start", value_text(parameters)
    return system._parts.part(key, lambda: system.assemble(parameters=parameters)).copy()


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


def _by_name(system: System, name: str, value: object) -> str:
    """Return the remedy for numbers by joint, if the mechanism is closed; else an empty text."""
    if not (isinstance(value, Mapping) and system.closures):
        return ""
    by = "assemble(hold={joint: position})" if name == "q0" else "consistent_speeds(q0, {joint: speed})"
    return f"; numbers by joint make one with system.{by}"


def parameter_values(system: System, values: np.ndarray | None, lead: tuple[int, ...]) -> np.ndarray | None:
    """Return the values of all free parameters for runs of a leading shape, [np] or [..., np]; None if there are none.

    One set [np] for all runs stays one; other leading shapes are broadcast to the runs.
    """
    free = system.mechanism.free_parameters
    if values is None:
        return np.array([p.value for p in free]) if free else None
    return values if values.ndim == 1 else np.ascontiguousarray(np.broadcast_to(values, (*lead, len(free))))


# --- Closed mechanisms: rounding errors of loops are corrected, open loops are refused ---

MOVES = 1e-6
"""The least velocity, relative to the one given to every degree of freedom, which shows that the loops move: far
above rounding."""


@dataclass(frozen=True)
class LoopChecks:
    """What the check of a closed start needs besides the state: compiled residual and J, and sizes.

    `astray` are the gaps beyond which a loop is open [rad or m], `rows` and `columns` the units of equations and
    degrees of freedom.
    """

    residual: Callable[..., Numbers]
    jacobian: Callable[..., Numbers]
    astray: Numbers
    rows: Numbers
    columns: Numbers

    @classmethod
    def of(cls, system: System) -> LoopChecks:
        """Return the checks of a System."""
        residual, jacobian = (system.function(name).gufunc for name in ("closure_residual", "closure_jacobian"))
        mechanism = system.mechanism
        return cls(residual, jacobian, ASTRAY["float64"] * allowed_gaps(mechanism), *loop_units(mechanism))


def closed_start(
    system: System, q: np.ndarray, qd: np.ndarray, parameters: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a start with its loops closed to rounding; raise an InputError that names an open loop and the remedy."""
    mechanism, closer = system.mechanism, closer_of(system)
    checks, more = system._parts.part("loop checks", lambda: LoopChecks.of(system)), parameter_arguments(parameters)
    q2, qd2 = closer.close(q, qd, parameters)
    gap = checks.residual(q, *more)
    k = _worst(gap, checks.astray)
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
    J = checks.jacobian(q2, *more)
    speeds = closer.close(q2, np.broadcast_to(checks.columns, qd.shape), parameters)[1] / checks.columns
    if not (np.abs(speeds) > MOVES).any():  # a motion is cheaper to find than the rank
        _refuse_locked(mechanism, J * checks.columns / checks.rows[:, None])
    rate = np.einsum("...ij,...j->...i", J, qd)
    k = _worst(rate, checks.astray * max(1.0, float(np.abs(qd / checks.columns).max(initial=0.0))))
    if k is not None:
        raise InputError(
            f"qd0 breaks {_named(mechanism, k[-1])}: it {_verb(mechanism, k[-1])} at {rate[k]:.6g} "
            f"{mechanism.closures[k[-1]].unit}/s; start with system.closing_speed(q0, qd0), or "
            "system.consistent_speeds(q0, {joint: speed})"
        )
    return q2, qd2


def _refuse_locked(mechanism: Mechanism, J: np.ndarray) -> None:
    """Raise an InputError if the loops, with a J free of units, allow no motion in any run."""
    if not J.size or J.shape[-2] < J.shape[-1]:
        return
    sizes = np.linalg.svd(J, compute_uv=False)
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


def precision(arrays: tuple[AnyArray, AnyArray]) -> str:
    """Return the precision of a run on a GPU: float32 if an array of its start is, otherwise float64."""
    single = any(str(getattr(x, "dtype", "")).removeprefix("torch.") == "float32" for x in arrays)
    return "float32" if single else "float64"


def on_host(arrays: tuple[AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray]:
    """Return the start of a run on a GPU in the memory of the host."""
    q, qd = (_copied(x) if hasattr(x, "__cuda_array_interface__") else x for x in arrays)
    return q, qd


def _copied(x: AnyArray) -> np.ndarray:
    """Return an array of CuPy or torch on a GPU in the memory of the host."""
    return x.get() if hasattr(x, "get") else x.detach().cpu().numpy()


def is_on_gpu(library: Library, system: System, device: Device | None, arrays: tuple[AnyArray, AnyArray]) -> bool:
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
    arrays: tuple[AnyArray, AnyArray],
    dtype: str,
    beside: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[AnyArray, AnyArray]:
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


def runs_first(x: AnyArray, lead: tuple[int, ...]) -> AnyArray:
    """Return a view [..., core] of an array [core, runs] of CuPy or torch."""
    wide = x.reshape((*x.shape[:-1], *lead))
    core = len(x.shape) - 1
    axes = (*range(core, core + len(lead)), *range(core))
    return wide.permute(axes) if hasattr(wide, "permute") else wide.transpose(axes)
