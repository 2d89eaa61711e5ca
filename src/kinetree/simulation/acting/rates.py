"""The rates of a state under forces and control as one Program, which every integrator runs, and their Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...algebra.scalars import Scalar, is_number
from ...compiler.derive.jacobians import ENTRIES, MODES, differentiate_recorded, weight
from ...compiler.derive.recorded import Recorded, trace_inputs
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lower.sweeps import Tree
from ...dynamics import centered, kinematics
from ...errors import InputError
from ...model.mechanism import Mechanism
from ..closing import Baumgarte, Loops, Minimal, close_from_locked, locked_by
from ..methods.protocol import Centering, Kept, Scheme
from .drives import Drives, driven_of, drives_of
from .instants import Controller, Force, Instant


@dataclass(frozen=True)
class ForcedMechanism:
    """A mechanism under forces and control, of which Programs are made: rates, steps, loads.

    `loops` is the way in which they stay closed; a projection is no part of the rates. `dtype` is the precision.
    """

    mechanism: Mechanism
    forces: Sequence[Force] = ()
    control: Controller | None = None
    loops: Loops | None = None
    dtype: str = "float64"

    @property
    def drives(self) -> Drives | None:
        """The driven joints; None without any."""
        return drives_of(self.control)

    @property
    def own(self) -> frozenset[int]:
        """The degrees of freedom that are not centered: driven ones, or all where loops determine some."""
        if isinstance(self.loops, Minimal):
            return frozenset(range(self.mechanism.nv))
        return driven_of(self.drives)

    @property
    def decay(self) -> float:
        """The rate at which gaps of loops decay [1/s], zero if they are closed in another way."""
        return self.loops.rate if isinstance(self.loops, Baumgarte) else 0.0

    @property
    def floats(self) -> bool:
        """Whether trees float, so that steps are taken in centered states."""
        given = _given(Trace(), rate_inputs(self.mechanism))
        return centered.floats(Tree(self.mechanism, given), self.own)


def rates(dynamics: ForcedMechanism) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (dq, dqd) of a mechanism under forces and control."""
    trace, inputs = Trace(), rate_inputs(dynamics.mechanism)
    now = apply_forces(dynamics, trace, inputs, follow=True)
    qdd = _accelerations(now, dynamics)
    return _program("rates", dynamics.mechanism, inputs, trace, kinematics.coordinate_rate(now.tree), qdd)


def euler_step(dynamics: ForcedMechanism, *, ends_centered: bool = False) -> Program:
    """Return the Program (t, q, qd[, parameters], h) -> (q, qd) of a semi-implicit Euler step.

    Velocities are advanced first, then the coordinates with the new velocities. Coordinates follow the motion of each
    joint, so that quaternions keep their unit length. Floating trees take the step with their centers of mass, and
    the result is the centered state if it `ends_centered`.
    """
    trace, mechanism, own = Trace(), dynamics.mechanism, dynamics.own
    inputs = [*rate_inputs(mechanism), Array("h", (1,))]
    now = apply_forces(dynamics, trace, inputs, follow=True)
    (h,), more = now.given["h"], now.inputs()
    z, u = centered.center(Tree(mechanism, more | {"q": now.q, "qd": now.qd}), own)
    u = [v + h * a for v, a in zip(u, _centered_accelerations(now, dynamics), strict=True)]
    z = centered.integrate(Tree(mechanism, more | {"q": z, "qd": [h * v for v in u]}), own)
    if dynamics.floats and not ends_centered:
        z, u = _uncentered(dynamics, more | {"t": [now.t + h], "q": z, "qd": u})
    return _program("euler", mechanism, inputs, trace, z, u)


def centered_rates(dynamics: ForcedMechanism) -> Program:
    """Return the Program (t, z, u[, parameters]) -> (dz, du) of centered states; `rates` without floating trees."""
    if not dynamics.floats:
        return rates(dynamics)
    trace, mechanism = Trace(), dynamics.mechanism
    inputs = rate_inputs(mechanism)
    given = _given(trace, inputs)
    now = apply_forces(dynamics, trace, inputs, follow=True, state=_uncentered(dynamics, given))
    moved = centered.coordinate_rate(now.tree, given["qd"], dynamics.own)
    return _program("rates", mechanism, inputs, trace, moved, _centered_accelerations(now, dynamics))


def centered_scheme(scheme: Scheme, dynamics: ForcedMechanism) -> Scheme:
    """Return a method with the Centering of a mechanism, if it takes one and the mechanism has floating trees."""
    if scheme.make_program not in (centered_rates, euler_step) or not dynamics.floats:
        return scheme
    kept, uncenter = kept_by_closing(dynamics), _conversion("uncenter", _uncentered, dynamics)
    if scheme.make_program is euler_step:
        return scheme if kept is None else scheme.centered(Centering(None, uncenter, kept))
    return scheme.centered(Centering(_conversion("center", _centered, dynamics), uncenter, kept))


def uncentering(mechanism: Mechanism) -> Centering | None:
    """Return the way back from centered states, for steps that end there because loops are closed; None for others."""
    plain = ForcedMechanism(mechanism)
    kept = kept_by_closing(plain)
    return None if kept is None else Centering(None, _conversion("uncenter", _uncentered, plain), kept)


def kept_by_closing(dynamics: ForcedMechanism) -> Kept | None:
    """Return the entries of centered states that stay while loops are closed; None if these are closed later."""
    m, loops = dynamics.mechanism, dynamics.loops
    if not m.closures or not (loops is None or loops.projects):
        return None
    return centered.kept_by_loops(Tree(m, _given(Trace(), rate_inputs(m))), dynamics.own)


def _conversion(
    name: str, convert: Callable[[ForcedMechanism, dict], centered.State], dynamics: ForcedMechanism
) -> Program:
    trace, m = Trace(), dynamics.mechanism
    inputs = rate_inputs(m)
    q, qd = convert(dynamics, _given(trace, inputs))
    return Program.of_trace(name, inputs, (Array("q", (m.nq,)), Array("qd", (m.nv,))), trace, [q, qd])


def _given(trace: Trace, inputs: Sequence[Array]) -> dict[str, list[Scalar]]:
    return {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}


def _centered(dynamics: ForcedMechanism, given: dict) -> centered.State:
    return centered.center(Tree(dynamics.mechanism, given), dynamics.own)


def _uncentered(dynamics: ForcedMechanism, given: dict) -> centered.State:
    """Return the state of a centered one; driven coordinates follow their references."""
    if (drives := dynamics.drives) is not None:
        q, qd = drives.placed(given["t"][0], given["q"], given["qd"])
        given = given | {"q": q, "qd": qd}
    return centered.uncenter(Tree(dynamics.mechanism, given), dynamics.own)


def loads(dynamics: ForcedMechanism) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (tau, qdd, wrenches) of the loads on a mechanism.

    tau are the joint torques of control and forces together. The wrenches act on the bodies, [nb, 6] in their frames.
    """
    return loads_and_drives(dynamics)[0]


def loads_and_drives(dynamics: ForcedMechanism) -> tuple[Program, Program | None]:
    """Return the Program of `loads`, and the one of the torques of control alone, None without control."""
    trace, inputs = Trace(), rate_inputs(dynamics.mechanism)
    dynamics = replace(dynamics, loops=None)  # the states are closed
    now, drives = apply_forces(dynamics, trace, inputs), dynamics.drives
    nv, nb = dynamics.mechanism.nv, len(dynamics.mechanism.bodies)
    outputs = (Array("tau", (nv,)), Array("qdd", (nv,)), Array("wrenches", (nb, 6)))
    tau, part = (now.tau, now.control) if drives is None else now.driven_torques(drives)
    qdd = _accelerations(now, dynamics)
    acting = Program.of_trace("loads", inputs, outputs, trace, [tau, qdd, now.wrenches()])
    if dynamics.control is None:
        return acting, None
    return acting, Program.of_trace("drives", inputs, (Array("control", (nv,)),), trace, [part])


def measure_program(dynamics: ForcedMechanism, function: Callable[[Instant], Scalar]) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> value of a function of `now`, under forces and control."""
    trace, inputs = Trace(), rate_inputs(dynamics.mechanism)
    now = apply_forces(dynamics, trace, inputs, follow=True)
    return Program.of_trace("measured", inputs, (Array("value", (1,)),), trace, [[function(now)]])


def acting(dynamics: ForcedMechanism) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (tau, wrenches, control[, motion of drives]), without dynamics."""
    trace, inputs = Trace(), rate_inputs(dynamics.mechanism)
    now = apply_forces(replace(dynamics, loops=None), trace, inputs)
    nv, nb = dynamics.mechanism.nv, len(dynamics.mechanism.bodies)
    outputs = [Array("tau", (nv,)), Array("wrenches", (nb, 6)), Array("control", (nv,))]
    results = [now.tau, now.wrenches(), now.control]
    if (drives := dynamics.drives) is not None:
        moved = [x for entries in drives.offsets(now.t).values() for x in entries]
        results.append([x for entries in drives.at(now.t) for x in entries] + moved)
        outputs.append(Array("motion", (len(results[-1]),)))
    return Program.of_trace("acting", inputs, outputs, trace, results)


def rate_inputs(mechanism: Mechanism) -> list[Array]:
    """Return the inputs of rates: the time, a state and, if there are any, the free parameters."""
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    return inputs


def apply_forces(
    dynamics: ForcedMechanism,
    trace: Trace,
    inputs: list[Array],
    *,
    follow: bool = False,
    state: tuple[list[Scalar], list[Scalar]] | None = None,
) -> Instant:
    """Return the mechanism with all forces and control applied; inputs of the control are appended to the others.

    With `follow`, driven coordinates are those of the time, and loops determine the coordinates that depend on them. A
    `state` (q, qd) replaces the inputs.
    """
    mechanism, control, driven = dynamics.mechanism, dynamics.control, dynamics.drives
    inputs.extend(getattr(control, "inputs", ()))
    given: dict[str, Any] = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    if state is not None:
        given["q"], given["qd"] = state
    drives, locked = driven if follow else None, locked_by(dynamics.loops)
    if drives is not None:
        given["q"], given["qd"] = drives.placed(given["t"][0], given["q"], given["qd"])
        given["offsets"] = drives.offsets(given["t"][0])
        locked = drives.locked
    if mechanism.closures and (locked or drives is not None):
        known = {name: x for name, x in given.items() if name in ("q", "qd", "parameters", "offsets")}
        given["q"], given["qd"] = close_from_locked(mechanism, known, locked, dynamics.dtype)
    now = Instant(mechanism, given["t"][0], given["q"], given["qd"], given.get("parameters"), given, dynamics.dtype)
    if driven is not None:
        now.offsets = driven.offsets(now.t)
    if control is not None:
        torque = list(control.torque(now))
        if len(torque) != mechanism.nv:
            raise InputError(f"the controller returned {len(torque)} torques; expected {mechanism.nv}")
        now.control = torque
        now.tau = [a + b for a, b in zip(now.tau, torque, strict=True)]
    for force in dynamics.forces:
        force.apply(now)
    return now


def _accelerations(now: Instant, dynamics: ForcedMechanism) -> list[Scalar]:
    """Return qdd; gaps of loops decay if they are kept closed so, unless joints are driven."""
    if (drives := dynamics.drives) is not None:
        return now.driven_accelerations(drives)
    return now.accelerations(dynamics.decay)


def _centered_accelerations(now: Instant, dynamics: ForcedMechanism) -> list[Scalar]:
    """Return the rates of the velocities of a centered state."""
    return now.centered_accelerations(dynamics.decay, dynamics.drives, dynamics.own)


def _program(name: str, mechanism: Mechanism, inputs, trace: Trace, dq, dqd) -> Program:
    outputs = (Array("dq", (mechanism.nq,)), Array("dqd", (mechanism.nv,)))
    return Program.of_trace(name, inputs, outputs, trace, [dq, dqd])


# --- The rates with their Jacobian and their derivative with respect to time ---


LONGEST = 3000
"""The most operations of rates whose Jacobian is compiled. The Jacobian of longer ones takes minutes to compile: a
Stewart platform has rates of 7,000 operations, and their Jacobian has 210,000."""


@dataclass(frozen=True)
class Slopes:
    """The Program (t, q, qd[, ...]) -> (dq, dqd, slope_t, slope) of rates f of the state y = (q, qd).

    slope_t is df/dt, and slope has the rows of the Jacobian df/dy. If dq_i is `moves[i]` qd_i plus a function of time,
    the Jacobian has the rows of dqd only. For other coordinates, such as quaternions, `moves` is None, and the Jacobian
    has all rows.
    """

    program: Program
    moves: tuple[float, ...] | None


def slopes_of(program: Program) -> Slopes:
    """Return the rates of a Program (t, q, qd[, ...]) -> (dq, dqd) with their derivatives, with few operations."""
    if len(program.ops) > LONGEST:
        raise InputError(
            f"the rates take {len(program.ops)} operations, more than the {LONGEST} whose Jacobian is compiled; use "
            'method="radau"'
        )
    return min((_in_mode(program, mode) for mode in MODES), key=lambda found: weight(found.program))


def jacobian_of(program: Program, parameters: Sequence[int] = ()) -> Slopes:
    """Return a Program (t, q, qd[, ...]) -> (x, y[, ...]) with the Jacobian of x and y, with few operations.

    The columns of the Jacobian are those of q and qd, then of some entries of the input "parameters". The other outputs
    come after y. slope_t is left out.
    """
    found = (_in_mode(program, mode, timed=False, parameters=parameters) for mode in MODES)
    return min(found, key=lambda each: weight(each.program))


def _in_mode(program: Program, mode: str, *, timed: bool = True, parameters: Sequence[int] = ()) -> Slopes:
    trace, inputs = trace_inputs(program.inputs)
    recorded = Recorded(program, inputs)
    moved, pushed = program.results[:2]
    wrt = (*(("t",) if timed else ()), "q", "qd", *(("parameters",) if parameters else ()))
    rows = differentiate_recorded(recorded, inputs, wrt, {*moved, *pushed}, mode, ENTRIES)
    nq, nv = (a.size for a in program.inputs[1:3])
    moves = _moves([rows[k] for k in moved], nv)
    chosen = pushed if moves is not None else (*moved, *pushed)
    labels = [
        (name, j)
        for name, entries in (("q", range(nq)), ("qd", range(nv)), ("parameters", parameters))
        for j in entries
    ]
    by_time = [Array("slope_t", (nq + nv,))] if timed else []
    outputs = (*program.outputs, *by_time, Array("slope", (len(chosen), len(labels))))
    results = [
        *recorded.outputs().values(),
        *([[rows[k].get(("t", 0), 0.0) for k in (*moved, *pushed)]] if timed else []),
        [rows[k].get(label, 0.0) for k in chosen for label in labels],
    ]
    return Slopes(Program.of_trace(f"slopes_of_{program.name}", program.inputs, outputs, trace, results), moves)


def _moves(rows: list[dict], nv: int) -> tuple[float, ...] | None:
    """Return the constants m_i of dq_i = m_i qd_i + a function of time; None if a rate of coordinates is another."""
    if len(rows) != nv:
        return None
    found = []
    for i, row in enumerate(rows):
        others = {label: x for label, x in row.items() if label[0] != "t" and not (is_number(x) and x == 0.0)}
        own = others.pop(("qd", i), 0.0)
        if others or not is_number(own):
            return None
        found.append(float(own))
    return tuple(found)
