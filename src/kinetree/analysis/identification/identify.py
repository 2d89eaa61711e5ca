"""Identification: the parameters of a mechanism from recorded motions and torques, with validation on held-out data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ... import joints as joint_kinds
from ..._support.checks import number, positive, real_array
from ...algebra.scalars import Numbers
from ...dynamics.regressor import COUNT
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...model.mechanism import Mechanism
from ...model.scales import characteristic_length, characteristic_mass
from ...runtime.compiled import CompiledMechanism
from ..loops.actuation import dofs
from .alignment import (
    Gains,
    found_delays,
    found_gains,
    found_order,
    found_positions,
    found_signs,
    model_gains,
    notice_swapped,
)
from .base_parameters import BaseParameters, base_parameters
from .columns import column_names, dynamic_parameters
from .consistency import (
    FITS,
    POSITIVE,
    PointMasses,
    Target,
    parameters_of,
    point_masses,
    pseudo_inertia,
)
from .consistency import consistent as consistent_parameters
from .equations import Measured, Rows, stacked
from .estimates import Estimate, estimate, held
from .estimates import undetermined as unknown_parameters
from .identified import CONFIDENCE, Fit, Identification, relative_residuals
from .recordings import Data, recordings_of

if TYPE_CHECKING:
    pass

DEFAULT_COLUMNS = ("viscous", "coulomb", "offset", "armature")
OTHER_SIZE = 4.0
"""The ratio of the model's torques to measured ones, or its inverse, from which these are those of motors."""
VALIDATION = 0.25
"""The part of each piece, at its end, that is held out by default."""
LONGEST_DELAY = 0.1
CONDITION = 1e4
"""The condition of the scaled columns above which the motion is reported as a poor excitation."""


def identify(
    system: CompiledMechanism,
    data: Data,
    *,
    columns: str | Iterable[str] = DEFAULT_COLUMNS,
    actuated: str | Iterable[str] | None = None,
    method: str = "wls",
    consistent: str | None = "sdp",
    cutoff: float | None = None,
    delays: bool = True,
    longest_delay: float = LONGEST_DELAY,
    gains: ArrayLike | Mapping[str, float] | None = None,
    validation: float | Data = VALIDATION,
    signs: bool = False,
    undetermined: str = "raise",
) -> Identification:
    """Return the parameters of a mechanism that fit recorded motions and torques, checked on held-out data.

    `data` are recordings (kt.Recording), mappings with t, q and tau, or runs. Without accelerations, positions are
    filtered without phase below `cutoff` [Hz], by default where they exceed their noise, and differentiated. `columns`
    are sorts of parameters of joints, as in `regressor`. `method` is "ols", "wls" (joints weighted by their noise) or
    "irls" (outliers count less). `consistent` is "sdp" (with cvxpy), "log-cholesky", "points" (masses at points, none
    negative), or None for parameters that need not be possible. Delays of torques behind the motion, up to
    `longest_delay` [s], are estimated and removed. `gains` are torques per unit of current; without them they are
    estimated from recordings with known loads, or in proportion to the masses of the model. `validation` is the part of
    the data that is held out, or further recordings. With `signs`, torques and positions of joints that count the other
    way round than the model, and zeros a quarter turn away, are found and changed. With undetermined="model", those
    parameters that the motion does not determine keep the values of the model, instead of an error.
    """
    m = system.mechanism
    if m.free_parameters:
        raise InputError(
            f"{m.name!r} has free parameters; identify a mechanism with numbers, such as system.fixed(parameters)"
        )
    chosen = column_names(columns)
    longest = number(longest_delay, "longest_delay", least=0.0)
    if cutoff is not None:
        cutoff = positive(cutoff, "cutoff")
    if consistent is not None and consistent not in FITS:
        raise InputError(f"consistent is {consistent!r}; expected 'sdp', 'log-cholesky', 'points' or None")
    if undetermined not in ("raise", "model"):
        raise InputError(f"undetermined is {undetermined!r}; expected 'raise' or 'model'")
    recordings = recordings_of(data)
    findings: list[str] = []
    base = base_parameters(system, chosen, actuated=actuated)
    driven = list(range(m.nv)) if base.actuated is None else dofs(m, base.actuated)
    measured = Measured(system, base, driven, cutoff, longest if delays else 0.0)
    rows = measured.rows(recordings, "recording", findings)
    labels, frame = [axis_labels(m, 1)[k] for k in driven], None
    currents = [r.current is not None for r in recordings]
    if any(currents) and not all(currents):
        raise InputError("some recordings have currents and others torques; identify them one after the other")
    if signs:
        ordered = found_order(measured, recordings, rows, findings)
        if ordered is not measured:
            measured, rows = ordered, ordered.rows(recordings, "recording", [])
    scaled = any(currents) or (signs and _of_motors(rows, base, driven, labels, findings))
    if signs:
        known = _gains(gains, labels, m) if scaled else np.ones(len(driven))
        sign, zero = found_positions(measured, rows, known, _sizes(system, base), axis_labels(m, 1), findings)
        if (sign < 0.0).any() or zero.any():
            frame = sign, zero
            rows = measured.rows(recordings, "recording", [], frame)
    training, unseen_rows = _divided(measured, rows, validation, findings, frame)
    known = _gains(gains, labels, m) if scaled else np.ones(len(driven))
    if signs and known is not None:
        known = known * found_signs(training, known, base.values, driven, labels, findings)
    if gains is not None and not any(currents):
        raise InputError("gains are torques per unit of current, and the recordings have torques; leave gains out")
    found: Gains | None = None
    if known is None:
        found = _estimated_gains(training, base, driven, labels, findings)
        known = found.values
    notice_swapped(training, known, base.values, labels, findings)
    shift = np.zeros(len(driven))
    if delays and longest > 0.0:
        shift = found_delays(training, known, longest, _step(training))
        if shift.any() and found is not None:
            found = _estimated_gains(training, base, driven, labels, findings[:0], shift)
            known = found.values
    W, effort, loads, joint = stacked(training, shift)
    names = tuple(base.names[k] for k in base.kept)
    tau = known[joint] * effort - loads
    if undetermined == "model" and (unknown := unknown_parameters(W, names)):
        more = f" and {len(unknown) - 6} more" if len(unknown) > 6 else ""
        findings.append(
            f"the motion does not determine {', '.join(unknown[:6])}{more}: they keep the values of the model; move "
            "all joints, in several poses and at different accelerations, such as along kt.excitation(arm)"
        )
        W, tau, joint = held(W, tau, joint, base.values)
    solution = estimate(W, tau, joint, method, names)
    _notice(solution, names, findings)
    pi, masses = _all_parameters(system, base, solution, chosen, consistent)  # with the gains as they are
    if found is not None:
        solution = replace(solution, covariance=found.covariance)
    units = ["N m" if unit == "rad" else "N" for _, _, unit in axis_names(m, 1)]
    fitted, unseen = (tuple(_fit(r, base, pi, known, shift) for r in part) for part in (training, unseen_rows))
    _notice_unused(fitted, unseen, labels, findings)
    return Identification(
        base,
        solution.values,
        solution.deviations,
        solution.covariance,
        pi,
        with_dynamic_parameters(system, pi, chosen),
        tuple(labels),
        tuple(units[k] for k in driven),
        fitted,
        unseen,
        solution.noise,
        shift,
        solution.condition,
        method,
        consistent,
        tuple(r.cutoff for r in rows),
        known if scaled else None,
        found,
        tuple(findings),
        masses,
    )


def _divided(
    measured: Measured,
    rows: list[Rows],
    validation: object,
    findings: list[str],
    frame: tuple[Numbers, Numbers] | None = None,
) -> tuple[list[Rows], list[Rows]]:
    """Return the rows from which parameters are estimated, and those that are held out."""
    if not isinstance(validation, int | float) or isinstance(validation, bool):
        return rows, measured.rows(recordings_of(validation), "validation", findings, frame)
    part = number(validation, "validation", least=0.0)
    if part >= 1.0:
        raise InputError(f"validation is {part:g}; give the part of the data that is held out, below 1, or recordings")
    if part == 0.0:
        return rows, []
    cuts = [_cut(r, part) for r in rows]
    return [r.part(slice(0, k)) for r, k in zip(rows, cuts, strict=True)], [
        r.part(slice(k, None)) for r, k in zip(rows, cuts, strict=True) if k < len(r.t)
    ]


def _of_motors(
    rows: list[Rows], base: BaseParameters, driven: list[int], labels: list[str], findings: list[str]
) -> bool:
    """Return whether torques are those of motors before their gears, or in another unit: far from the model's size."""
    try:
        inverse, _, guessed = model_gains(rows, base, driven, labels)
    except InputError:
        return False
    ratio = float(np.median([abs(1.0 / x) for k, x in enumerate(inverse) if k not in guessed]))
    if 1.0 / OTHER_SIZE < ratio < OTHER_SIZE:
        return False
    findings.append(
        f"torques are 1 / {ratio:.3g} of the model's size: they are read like currents, as those of motors before "
        "gears, or in another unit, with gains that are to be found"
    )
    return True


def _cut(rows: Rows, part: float) -> int:
    """Return the row at which the held-out part begins: that part of what is in use comes after it."""
    moving = np.cumsum(rows.use.mean(axis=1))
    return int(np.searchsorted(moving, (1.0 - part) * moving[-1], side="right")) if len(moving) else 0


def _gains(gains: object, labels: list[str], mechanism: Mechanism) -> Numbers | None:
    """Return given gains of the measured joints [m], or None."""
    if gains is None:
        return None
    if isinstance(gains, Mapping):
        for name in gains:
            if name not in labels:
                raise InputError(f"gains has {name!r}; the measured joints are {', '.join(labels)}")
        if missing := [x for x in labels if x not in gains]:
            raise InputError(f"gains has no {', '.join(missing)}; give the gain of every measured joint")
        gains = [gains[x] for x in labels]
    out = real_array(gains, "gains")
    if out.shape != (len(labels),) or not (np.isfinite(out).all() and out.all()):
        raise InputError(
            f"gains are {out.tolist()}; give {len(labels)} numbers other than zero, one per measured joint"
        )
    return out


def _estimated_gains(
    rows: list[Rows],
    base: BaseParameters,
    driven: list[int],
    labels: list[str],
    findings: list[str],
    shift: Numbers | None = None,
) -> Gains:
    W, effort, loads, joint = stacked(rows, np.zeros(rows[0].W.shape[1]) if shift is None else shift)
    prior = None if loads.any() else model_gains(rows, base, driven, labels)
    found = found_gains(W, effort, loads, joint, prior)
    if found.guessed:
        findings.append(
            f"gains of {', '.join(labels[k] for k in found.guessed)} do not show in the motion; they are taken as "
            "those of the other joints, which has no influence on residuals; give gains= for torques in N m"
        )
    if found.anchored:
        findings.append(
            "no gains and no known load: drive gains, masses and inertias are known up to one common factor, which is "
            "taken from the masses of the model; give gains=, or record a motion with a known load"
        )
    if found.ratios is not None and (weak := found.ratios.weak()):
        findings.append(
            f"the log alone does not determine the gains of {', '.join(labels[k] for k in weak)}: they rest on the "
            "masses of the model, and so do torques of these joints in N m, but not residuals relative to them"
        )
    return found


def _step(rows: list[Rows]) -> float:
    """Return the step [s] of the search for delays: a fraction of the shortest period."""
    steps = [float(np.median(np.diff(r.t))) for r in rows]
    return min(s if r.cutoff is None else 1.0 / (20.0 * r.cutoff) for r, s in zip(rows, steps, strict=True))


def _notice_unused(fitted: Sequence[Fit], unseen: Sequence[Fit], labels: list[str], findings: list[str]) -> None:
    """Add a finding for samples at rest or at the limit of a drive, with the residuals that they would make."""
    use = np.concatenate([f.use for f in (*fitted, *unseen)])
    parts = [
        f"{label} {100.0 * (1.0 - x):.0f} %" for label, x in zip(labels, use.mean(axis=0), strict=True) if x < 0.995
    ]
    if parts:
        whole = [replace(f, use=np.ones_like(f.use)) for f in (unseen or fitted)]
        residuals = ", ".join(f"{100.0 * x:.3g} %" for x in relative_residuals(whole))
        findings.append(
            f"samples at rest, where friction may be anything, or at the limit of a drive: {', '.join(parts)}; they "
            f"are part of neither the fit nor the residuals, which would be {residuals} with them"
        )


def _notice(solution: Estimate, names: tuple[str, ...], findings: list[str]) -> None:
    if solution.condition > CONDITION:
        weak = np.abs(solution.values) < CONFIDENCE * solution.deviations
        listed = ", ".join(np.array(names)[weak][:5])
        findings.append(
            f"the motion excites the parameters poorly (condition {solution.condition:.2g}); "
            f"{int(weak.sum())} do not differ from zero ({listed}); see kt.excitation"
        )


def _all_parameters(
    system: CompiledMechanism, base: BaseParameters, solution: Estimate, columns: tuple[str, ...], method: str | None
) -> tuple[Numbers, tuple[PointMasses, ...]]:
    """Return all parameters whose groupings are the estimate, as near as possible to those of the model."""
    m = system.mechanism
    prior, sizes = dynamic_parameters(system, columns), _sizes(system, base, solution)
    if method is None:
        change = np.linalg.lstsq(base.matrix * sizes, solution.values - base.matrix @ prior, rcond=None)[0]
        return prior + sizes * change, ()
    positive_ = np.zeros(len(prior), dtype=bool)
    for k, name in enumerate(columns):
        start = COUNT * len(m.bodies) + k * m.nv
        positive_[start : start + m.nv] = name in POSITIVE
    spread = np.maximum(solution.deviations, 1e-300)
    values, vectors = np.linalg.eigh(solution.covariance / np.outer(spread, spread))
    R = (vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))).T / spread
    target = Target(R, base.matrix, solution.values, prior, sizes, len(m.bodies), positive_)
    pi = consistent_parameters(target, method)
    return pi, point_masses(target, tuple(b.name for b in m.bodies))[0] if method == "points" else ()


def _sizes(system: CompiledMechanism, base: BaseParameters, solution: Estimate | None = None) -> Numbers:
    """Return the sizes of all parameters, in which differences from the model are measured."""
    m = system.mechanism
    length, usual = characteristic_length(m), characteristic_mass(m)
    out = np.empty(len(base.names))
    for k, body in enumerate(m.bodies):
        mass = max(float(body.mass), 0.1 * usual)  # type: ignore[arg-type]
        out[COUNT * k : COUNT * (k + 1)] = mass, *(mass * length,) * 3, *(mass * length**2,) * 6
    known = np.zeros(len(base.names))
    known[list(base.kept)] = np.abs(base.values if solution is None else solution.values)
    for first in range(COUNT * len(m.bodies), len(out), m.nv):  # one sort after the other
        out[first : first + m.nv] = max(known[first : first + m.nv].max(), 1e-3 * usual * length**2)
    return out


def _fit(rows: Rows, base: BaseParameters, pi: Numbers, gains: Numbers, delays: Numbers) -> Fit:
    return Fit(rows.name, rows.t, gains * rows.torque(delays), rows.W @ (base.matrix @ pi) + rows.loads, rows.use)


def with_dynamic_parameters(system: CompiledMechanism, parameters: ArrayLike, columns: str | Iterable[str] = ()) -> Any:
    """Return a mechanism with other dynamic parameters [p], in the order of `dynamic_parameters` with the same columns.

    Offsets have no place in a mechanism, and are left out; so are rest positions of springs.
    """
    m, names = system.mechanism, column_names(columns)
    pi = np.asarray(parameters, dtype=float)
    bodies = []
    for k, body in enumerate(m.bodies):
        own = pi[COUNT * k : COUNT * (k + 1)]
        mass, first = float(own[0]), own[1:4]
        com = first / mass if mass else np.zeros(3)
        P = pseudo_inertia(own)
        P[:3, :3] -= np.outer(first, com)
        P[:3, 3] = P[3, :3] = 0.0
        _, _, _, _, xx, xy, yy, xz, yz, zz = parameters_of(P).tolist()
        bodies.append(replace(body, mass=mass, com=tuple(com.tolist()), inertia=(xx, yy, zz, xy, yz, xz)))
    fields = {"viscous": "damping", "coulomb": "friction", "armature": "armature"}
    joints = list(m.joints)
    for place, name in enumerate(names):
        if name in fields:
            start = COUNT * len(m.bodies) + place * m.nv
            for k, (joint, own) in enumerate(zip(joints, m.v_slices, strict=True)):
                numbers = pi[start + own.start : start + own.stop]
                if joint_kinds.kind(joint.kind).NV:
                    joints[k] = replace(joints[k], **{fields[name]: tuple(np.maximum(numbers, 0.0).tolist())})
    return type(system)(replace(m, bodies=tuple(bodies), joints=tuple(joints)), system.report)
