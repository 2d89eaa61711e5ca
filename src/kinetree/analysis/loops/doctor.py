"""The constraint doctor: closure of the loops, mobility, redundant equations and singular positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.scalars import Numbers
from ...errors import AssemblyError, InputError
from ...model.axes import entries
from ...model.mechanism import Named, parameter_sets
from ...model.scales import rate_sizes
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list
from . import findings as say
from .diagnosis import LEVELS, Diagnosis, Finding
from .independence import independent, nearest_speeds
from .kinematics import LoopKinematics, gap_of
from .misfits import assemble_or_explain
from .redundancy import redundancy, surroundings
from .samples import Piece, Samples
from .tolerances import CLOSED, REST


def doctor(
    system: CompiledMechanism,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    *,
    drives: str | Iterable[str] = (),
    parameters: Named | None = None,
) -> Any:
    """Return the diagnosis of the loops at a position (default: the mechanism's guess), and of velocities if given.

    An open position is closed first, by the smallest change. `drives` names driven joints; the report then includes
    whether they hold the mechanism. With leading shapes of positions, velocities or parameters, an array of diagnoses
    is returned.
    """
    arrays = {"q": q, "qd": qd, "parameters": parameter_sets(system.mechanism, parameters)}
    if not any(x is not None and np.ndim(x) > 1 for x in arrays.values()):
        return _diagnosis(LoopKinematics(system, parameters), q, qd, drives)
    samples = Samples.of(arrays, {})
    out = np.empty(prod(samples.lead), dtype=object)
    for n in range(len(out)):
        one = Piece(samples, slice(n, n + 1))
        x, v, values = (None if (a := one.array(name)) is None else a[0] for name in arrays)
        out[n] = _diagnosis(LoopKinematics(system, values), x, v, drives)
    return out.reshape(samples.lead)


def _diagnosis(
    loops: LoopKinematics, q: ArrayLike | None, qd: ArrayLike | None, drives: str | Iterable[str]
) -> Diagnosis:
    system, parameters = loops.system, loops.parameters
    given = loops.start(q)
    at = [k for name in as_list(drives) for k in entries(loops.mechanism, name, 1)]
    try:
        closed = given if loops.gap(given) <= CLOSED else assemble_or_explain(system, given, parameters=parameters)
    except AssemblyError as error:
        return _hopeless(loops, given, error)
    around = surroundings(loops, closed)
    doubled = redundancy(loops, around.usual(closed))
    lost = {d.equation for d in redundancy(loops, closed).dependent} - {d.equation for d in doubled.dependent}
    leads = independent(system, closed, prefer=drives, parameters=parameters).names
    found = say.open_position(loops, given, closed, leads, guessed=q is None)
    if qd is not None:
        found += _speeds(loops, closed, qd, leads)
    found += say.report_immobility(loops, closed, around)
    found += say.singular(loops, around, sorted(lost))
    found += say.still(loops, around)
    found += say.report_drives(loops, around, at)
    found += say.redundant(loops, doubled, moves=bool(around.around))
    positions = loops.displacements(closed).mobility
    found += say.rolling(loops, around, positions)
    found += say.weightless(loops)
    if not loops.mechanism.closures:
        found.append(Finding("note", "there are no loops", "The mechanism is a tree: every joint moves by itself."))
    closures = loops.mechanism.closures
    said = sorted((*doubled.idle, *(d.equation for d in doubled.dependent)))
    return Diagnosis(
        mechanism=loops.mechanism.name,
        given=given,
        q=closed,
        closed=closed is given,
        gaps=loops.gaps(given),
        nv=loops.mechanism.nv,
        equations=len(closures),
        rank=around.here.rank,
        lasting=around.mobility if closures else loops.mechanism.nv,
        leads=leads,
        closeness=around.closeness,
        redundant=tuple((closures[k].name, closures[k].label) for k in said),
        unclear=tuple((closures[k].name, closures[k].label) for k in sorted({*doubled.idle, *doubled.open})),
        findings=tuple(sorted(found, key=lambda f: LEVELS.index(f.level))),
        positions=positions,
    )


def _hopeless(loops: LoopKinematics, given: Numbers, error: AssemblyError) -> Diagnosis:
    """Return the diagnosis of loops that do not close."""
    advice = error.remedy[:1].upper() + error.remedy[1:]
    return Diagnosis(
        mechanism=loops.mechanism.name,
        given=given,
        q=given,
        closed=False,
        gaps=loops.gaps(given),
        nv=loops.mechanism.nv,
        equations=len(loops.mechanism.closures),
        rank=0,
        lasting=0,
        leads=(),
        closeness=0.0,
        redundant=(),
        unclear=(),
        findings=(Finding("wrong", "the loops cannot close", f"{error.what}.", f"{advice}."),),
        closable=False,
    )


def _speeds(loops: LoopKinematics, q: Numbers, qd: ArrayLike, leads: Sequence[str]) -> list[Finding]:
    """Report the rates at which velocities open loops, and the nearest velocities that keep them closed."""
    speeds = np.asarray(qd, dtype=float)
    if speeds.shape != (loops.mechanism.nv,) or not np.isfinite(speeds).all():
        raise InputError(f"qd has shape {speeds.shape}; expected {loops.mechanism.nv} finite numbers")
    rates = loops.call("closure_jacobian", q) @ speeds
    bounds = np.maximum(CLOSED * rate_sizes(loops.mechanism, speeds), REST * loops.units)
    gaps = [gap_of(name, rates[at], loops.mechanism.closures[at]) for name, at in loops.groups]
    open_ = [(np.abs(rates[at]) > bounds[at]).any() for _, at in loops.groups]
    texts = [gap.spoken("/s") for gap, parts in zip(gaps, open_, strict=True) if parts]
    if not texts:
        return []
    near = nearest_speeds(loops, q, speeds)
    changes = [
        f"{label} {a:.6g} -> {b:.6g}"
        for label, a, b, unit in zip(loops.labels, speeds, near, loops.speeds, strict=True)
        if abs(a - b) > CLOSED * np.abs(speeds / loops.speeds).max() * unit
    ]
    return [
        Finding(
            "wrong",
            "the velocities open the loops",
            f"They open {', '.join(texts)}.",
            f"Nearest in kinetic energy: {say.some(changes, ', ')}. To keep the velocities of some joints, such as "
            f"{say.some(leads)}, use `consistent_speeds`.",
        )
    ]
