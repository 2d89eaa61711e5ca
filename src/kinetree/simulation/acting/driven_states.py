"""States of mechanisms with driven joints: the start, and the reason why loops stop a drive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.scalars import Numbers
from ...analysis.loops.kinematics import LoopKinematics
from ...analysis.loops.tolerances import CLOSED
from ...compiler.lower.loop_pattern import RANK
from ...errors import AssemblyError, InputError
from ...model.axes import axis_labels, entries
from ...model.mechanism import parameter_arguments
from ...model.scales import loop_units
from ...system import System
from ..closing import Closer
from ..run_states import Run
from .drives import Drives, drives_of
from .sampled import parts_of

if TYPE_CHECKING:
    pass

SAME = 1e-6
"""The largest difference between a start and a drive [rad, m, rad/s, m/s], above the rounding of printed numbers;
it is corrected."""

SHARE = 1e-10
"""The least share of a driven joint in the motions that the loops and other drives allow, as a square: above rounding
of the rank decision at 1e-7."""

SLIGHT = 0.1
"""The share of actuated joints in the motions that the loops allow, below which they are named as why a run stopped."""


def driven_position(system: System, parameters: Numbers | None, drives: Drives, t: float) -> Numbers:
    """Return coordinates with the driven ones as at a time and loops closed, [nq], or [..., nq] of parameters."""
    values = np.array(drives.at(float(t))[0], dtype=float)
    if not system.closures:
        q = system.neutral()
        q[list(drives.q)] = values
        return q
    labels = axis_labels(system.mechanism, 0)
    hold = dict(zip([labels[k] for k in drives.q], values.tolist(), strict=True))
    sets = [None] if parameters is None else list(parameters.reshape(-1, parameters.shape[-1]))
    try:
        found = [system.assemble(hold=hold, parameters=own) for own in sets]
    except AssemblyError as error:
        raise AssemblyError(f"with the driven joints of t = {t:g} s, {error}") from None
    return found[0] if parameters is None else np.array(found).reshape(*parameters.shape[:-1], system.nq)


def driven_start(
    system: System,
    start: tuple[Numbers, Numbers],
    given: tuple[bool, bool],
    parameters: Numbers | None,
    drives: Drives,
    t: float,
    closer: Closer,
) -> tuple[Numbers, Numbers]:
    """Return a start whose driven joints move as at the time t; a given one must agree with it."""
    q, qd = (x.copy() for x in start)
    wanted, speeds, _ = (np.array(x, dtype=float) for x in drives.at(float(t)))
    for which, (whole, places, values) in enumerate(((q, list(drives.q), wanted), (qd, list(drives.v), speeds))):
        if given[which]:
            labels = [axis_labels(system.mechanism, which)[k] for k in places]
            _refuse_other_start(("q0", "qd0")[which], labels, whole[..., places], values, t)
        whole[..., places] = values
    if not system.closures:
        return q, qd
    _refuse_dependent(system, q, parameters, drives, t)
    q, qd = closer.close(q, qd, parameters, np.array([float(t)]))
    if not (np.isfinite(q).all() and np.isfinite(qd).all()):
        raise InputError(
            f"the loops do not close with the driven joints {_listed(drives)} at t = {t:g} s; start from "
            "system.assemble(hold={joint: position}), and see system.doctor(q0)"
        )
    return q, qd


def name_blocked_drives(system: System, run: Run, parameters: Numbers | None, control: Any) -> Run:
    """Return a run whose failures name the driven joints and the loop that stops them, or weak actuated joints."""
    drives = drives_of(control)
    actuated = [c for c in parts_of(control) if getattr(c, "actuated", None) is not None]
    if not (run.failures and system.closures and (drives is not None or actuated)):
        return run

    def explain(q: Numbers, last: int, own: Numbers | None) -> str:
        t, later = float(run.t[last]), float(run.t[min(last + 1, len(run.t) - 1)])
        weak = (_name_actuated_fault(system, q[last], own, c, t, later) for c in actuated)
        if found := next(filter(None, weak), ""):
            return found
        return "" if drives is None else stop_reason(system, q[last], own, drives, t, later)

    return run.open_causes(parameters, explain)


def _name_actuated_fault(
    system: System, q: Numbers, parameters: Numbers | None, control: Any, last: float, t: float
) -> str:
    """Return why actuated joints of a controller do not move the loops to a time; "" if they could."""
    loops, m, who = LoopKinematics(system, parameters), system.mechanism, type(control).__name__
    names = ", ".join(control.actuated)
    motions = loops.motions(q).motions
    places = [k for name in control.actuated for k in entries(m, name, 1)]
    if np.linalg.svd(motions[places])[1].min(initial=1.0) < SLIGHT:
        return (
            f"the actuated joints ({names}) of {who} hardly determine the motion at t = {last:.9g} s, near a dead "
            "center; actuate more joints, or others, or keep the reference away from it"
        )
    tried, held = q.copy(), np.zeros(system.nv, dtype=bool)
    try:
        wanted = np.array(control.reference(t)[0], dtype=float)
    except Exception:  # a user's function may accept traced scalars only; the first reason stays
        return ""
    tried[[k for name in control.actuated for k in entries(m, name, 0)]] = wanted
    held[places] = True
    found, gap = loops.close(tried, held)
    if gap <= CLOSED:
        return ""
    worst = max(loops.gaps(found), key=loops.size)
    return f"the loops do not close with the actuated joints ({names}) at the reference of {who}, {t:.9g} s ({worst})"


def stop_reason(system: System, q: Numbers, parameters: Numbers | None, drives: Drives, last: float, t: float) -> str:
    """Return the reason why the loops do not follow the drives to a time."""
    begun = System(drives.begun(system.mechanism, t)) if drives.couplings else system
    loops, held = LoopKinematics(begun, parameters), np.zeros(system.nv, dtype=bool)
    held[list(drives.v)] = True
    tried = q.copy()
    tried[list(drives.q)] = np.array(drives.at(float(t))[0], dtype=float)
    found, gap = loops.close(tried, held)
    if gap <= CLOSED:
        return f"the loops cannot follow the driven joints {_listed(drives)} after t = {last:.9g} s"
    worst = max(loops.gaps(found), key=loops.size)
    return f"the loops do not close with the driven joints {_listed(drives)} at t = {t:.9g} s ({worst})"


def _refuse_other_start(name: str, labels: list[str], x: Numbers, wanted: Numbers, t: float) -> None:
    """Raise an InputError if given numbers [..., n] differ from the drives' own."""
    x = x.reshape(-1, len(wanted))
    off = np.abs(x - wanted)
    if off.max(initial=0.0) > SAME:
        row, k = np.unravel_index(int(np.argmax(off)), off.shape)
        raise InputError(
            f"{name} has {labels[k]} = {x[row, k]:.9g}, but its drive has {wanted[k]:.9g} at t = {t:g} s; leave {name} "
            "out, or give a reference that starts there"
        )


def _refuse_dependent(system: System, q: Numbers, parameters: Numbers | None, drives: Drives, t: float) -> None:
    """Raise an InputError if the loops, or the loops and other drives, determine the motion of a driven joint.

    P = 1 - J^+ J projects onto the motions that the other loops allow, and D has a row per drive. The drives are
    independent if D P D^T is regular.
    """
    more = parameter_arguments(parameters)
    rows, columns = loop_units(system.mechanism)
    J = np.asarray(system.function("closure_jacobian")(q, *more)) * columns / rows[:, None]
    first, moved = J.shape[-2] - len(system.mechanism.couplings), [name for name, _ in drives.couplings]
    coupled = [first + k for k, c in enumerate(system.mechanism.couplings) if c.name in moved]
    D = np.concatenate([np.broadcast_to(np.eye(system.nv), (*J.shape[:-2], system.nv, system.nv)), J], axis=-2)
    D = D[..., [*drives.v, *(system.nv + k for k in coupled)], :]
    D = D / np.linalg.norm(D, axis=-1, keepdims=True)
    others = J[..., [k for k in range(J.shape[-2]) if k not in coupled], :]
    P = np.eye(system.nv) - np.linalg.pinv(others, rcond=RANK) @ others
    labels = [f"joint {axis_labels(system.mechanism, 1)[k]!r}" for k in drives.v]
    labels += [f"coupling {system.mechanism.closures[k].name!r}" for k in coupled]
    P = (D @ P @ np.swapaxes(D, -1, -2)).reshape(-1, len(labels), len(labels))
    for k in range(len(labels)):
        if P[:, k, k].min(initial=1.0) < SHARE:
            raise InputError(
                f"the loops do not let the driven {labels[k]} move at t = {t:g} s: they hold it, or it is at a "
                "dead center; drive another joint, or start elsewhere"
            )
        if np.linalg.eigvalsh(P[:, : k + 1, : k + 1]).min(initial=1.0) < SHARE:
            before = ", ".join(labels[:k])
            raise InputError(
                f"the loops move the driven {labels[k]} when {before} moves, at t = {t:g} s: the drives would "
                "contradict each other, and their torques would not be unique; leave one of them out"
            )


def _listed(drives: Drives) -> str:
    return ", ".join(map(repr, drives.names))
