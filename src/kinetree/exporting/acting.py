"""Functions of a mechanism under forces and control: rates, loads, control torques, time steps and whole runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from .._support.tables import count_text
from ..algebra.scalars import Numbers, Scalar
from ..compiler.export.exportable import Exportable, Meaning, common, distinct, labels, sample_inputs, selftest
from ..compiler.ir.operations import Op
from ..compiler.ir.program import Array, Program
from ..compiler.lanes.form import Kernel
from ..compiler.lower.build import is_long
from ..errors import Advice, InputError
from ..model.mechanism import Mechanism
from ..simulation.acting.drives import drives_of
from ..simulation.acting.instants import Force, Instant
from ..simulation.acting.rates import ForcedMechanism, centered_rates, centered_scheme, loads, loads_and_drives, rates
from ..simulation.closing import Loops
from ..simulation.engines.held_torques import with_held_torques
from ..simulation.methods.fixed_steps import RK4
from ..simulation.methods.protocol import FixedScheme, Scheme
from ..simulation.methods.stepper import Stepper, step_kernel, stepper, stepper_of
from ..simulation.methods.table import METHODS, Method
from ..simulation.options import choose
from ..system import System

RUNS = 4
"""The number of candidates for the samples of the self-test of a step or a run, which are interpreted in Python."""

SETTINGS = {
    "dt": 2.5e-4,
    "skip": 0.0,
    "budget": 1e6,
    "rtol": 1e-4,
    "atol": 1e-6,
    "first": 1e-4,
    "most": 1000.0,
    "begin": 0.0,
}
"""The settings of the self-test of a run."""

LOOSE = {"float64": 1e-12, "float32": 1e-3}
"""The least relative tolerance of the states of adaptive runs, by precision.

In single precision, rounding changes the estimated errors, hence the steps."""

TIMES = (0.0, 4.0e-4, 1.1e-3)
"""The output times of the self-test of a run [s]."""


@dataclass(frozen=True)
class Acting:
    """A System with everything that acts on it, and the method of its time steps."""

    system: System
    forces: tuple[Force, ...]
    control: Any
    method: str
    loops: Loops | None
    dtype: str

    @property
    def dynamics(self) -> ForcedMechanism:
        """The mechanism with all that acts on it."""
        return ForcedMechanism(self.mechanism, self.forces, self.control, self.loops, self.dtype)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that moves."""
        return self.system.mechanism

    @property
    def about(self) -> str:
        """What acts, as text."""
        count = len(self.forces)
        parts = [count_text(count, "force")] if count else []
        parts += [type(self.control).__name__] if self.control is not None else []
        return f" under {' and '.join(parts)}" if parts else ""


def rates_of(acting: Acting, name: str) -> Exportable:
    """Return the rates of a state."""
    a = acting
    if a.control is None:
        program = _with_torques(rates, a)
    else:
        program = rates(a.dynamics)
    return _of_program(
        a,
        program,
        name,
        f"rates of the state{a.about}",
        {
            "dq": Meaning("rates of the coordinates", labels(a.mechanism, 0, "{}/s")),
            "dqd": Meaning("accelerations", labels(a.mechanism, 1, "{}/s^2")),
        },
    )


def loads_of(acting: Acting, name: str) -> Exportable:
    """Return the loads on the mechanism at a state."""
    a = acting
    program = loads(a.dynamics)
    bodies = tuple(b.name for b in a.mechanism.bodies)
    return _of_program(
        a,
        program,
        name,
        f"loads on the mechanism{a.about}",
        {
            "tau": Meaning("joint torques of control and forces together", labels(a.mechanism, 2)),
            "qdd": Meaning("accelerations", labels(a.mechanism, 1, "{}/s^2")),
            "wrenches": Meaning("wrench [n; f] of the forces on each body, in its frame [N m, N]; rows", bodies),
        },
    )


def control_of(acting: Acting, name: str) -> Exportable:
    """Return the torques of the controller."""
    a = acting
    if a.control is None:
        fact = "the function 'control' needs a controller"
        raise InputError(
            Advice(
                f"{fact}; give control=, such as kt.PDGravity(k, c, reference)",
                f"{fact}, which only Python can give: kt.export(..., control=kt.PDGravity(k, c, reference))",
            )
        )
    program = loads_and_drives(ForcedMechanism(a.mechanism, control=a.control))[1]
    assert program is not None
    made = Meaning(f"joint torques of {type(a.control).__name__}", labels(a.mechanism, 2))
    return _of_program(a, program, name, f"torques of the controller {type(a.control).__name__}", {"control": made})


def step_of(acting: Acting, name: str) -> Exportable:
    """Return one time step; without a controller, the joint torques are an input that is held over the step."""
    a, method = acting, _method(acting)
    if method.adaptive:
        raise InputError(
            f"a step has a fixed length, and {method.name} chooses its own; use {_fixed()}, or export 'run'"
        )
    program, scheme = _advancing(a, method)
    whole = stepper_of(a.mechanism, program, scheme, a.loops, a.dtype, drives=drives_of(a.control))
    kernel = _single_step(whole, held=a.mechanism.nv if a.control is None else 0)
    found = common(a.mechanism)
    found |= {
        "dt": Meaning("length of the step [s]"),
        "q_next": replace(found["q"], text="coordinates after the step"),
        "qd_next": replace(found["qd"], text="velocities after the step"),
        "tau": replace(found["tau"], text="joint torques, held over the step"),
    }
    return _of_kernel(a, kernel, name, f"one time step by {method.name}{a.about}", found, {})


def _single_step(whole: Stepper, *, held: int, many: bool = False) -> Kernel:
    """Return one step of a stepper's method; the time is an argument if the rates depend on it."""
    program, scheme = whole.program, whole.method
    assert isinstance(scheme, FixedScheme)
    timed = any(op[0] is Op.INPUT and op[1] == 0 for op in program.ops)
    return step_kernel(
        program, scheme, whole.quaternions, whole.closing, dtype=whole.dtype, held=held, timed=timed, many=many
    )


def run_of(acting: Acting, name: str) -> Exportable:
    """Return a whole run over given times; without a controller, the only joint torques are those of forces."""
    a, method = acting, _method(acting)
    whole = stepper(a.dynamics, method.scheme)
    found = common(a.mechanism)
    q, qd = found["q"], found["qd"]
    shared = {
        "q0": replace(q, text="coordinates at the start"),
        "qd0": replace(qd, text="velocities at the start"),
        "parameters": found["parameters"],
        "times": Meaning("output times, increasing; the first is that of the start [s]"),
        "q": replace(q, text="coordinates at the output times, NaN where they were not reached"),
        "qd": replace(qd, text="velocities at the output times, NaN where they were not reached"),
        "q_end": replace(q, text="coordinates where the call stopped"),
        "qd_end": replace(qd, text="velocities where the call stopped"),
    }
    floors = dict.fromkeys(("q", "qd", "q_end", "qd_end"), LOOSE[a.dtype]) | {"report": 1.0} if method.adaptive else {}
    every = shared | RUN_MEANINGS[method.adaptive]
    return _of_kernel(a, whole.kernel, name, f"a run by {method.name}{a.about}", every, floors)


RUN_MEANINGS = {
    False: {
        "dt": Meaning("longest step [s]; the steps between two times are equal"),
        "skip": Meaning("0, or to continue a call: report[2] of that call"),
        "budget": Meaning("most steps of the call, such as 1e9"),
        "report": Meaning(
            "steps of the call, output times reached, and the finished and all steps of the interval in which the "
            "budget ended (0 if all times were reached)"
        ),
    },
    True: {
        "rtol": Meaning("relative error of a step"),
        "atol": Meaning("absolute error of a step [rad, m, rad/s, m/s]"),
        "first": Meaning("first step to try [s]"),
        "most": Meaning("most attempts at steps of the call, such as 1e6"),
        "begin": Meaning(
            "time of q0 and qd0 [s]: the first output time, or to continue a call, report[4] of that call"
        ),
        "report": Meaning(
            "evaluations of the rates, accepted and rejected steps, status (0 finished, 1 step too short, 2 attempts "
            "used up), time of q_end and qd_end [s], next step [s]"
        ),
    },
}
"""The settings of runs, of fixed and of adaptive steps."""

EXTRA: dict[str, Callable[[Acting, str], Exportable]] = {
    "step": step_of,
    "run": run_of,
    "rates": rates_of,
    "loads": loads_of,
    "control": control_of,
}
"""The functions under forces and control, by name."""


def make_exportable(acting: Acting, function: str, name: str) -> Exportable:
    """Return a function of the table under a name."""
    if is_long(acting.mechanism):
        raise InputError(
            f"{function} of {acting.mechanism.name!r} is not exported: the mechanism is too long for straight-line code"
        )
    return EXTRA[function](acting, name)


def _method(acting: Acting) -> Method:
    method = choose(acting.method, None, 1e-8)
    if not method.native:
        native = ", ".join(m.name for m in METHODS.values() if m.native)
        raise InputError(f"{method.name} is not exported; use one of {native}")
    return method


def _fixed() -> str:
    return ", ".join(m.name for m in METHODS.values() if m.native and not m.adaptive)


def _advancing(acting: Acting, method: Method) -> tuple[Program, Scheme]:
    """Return the rates of a step with held torques or with the controller, and the method's scheme."""
    scheme = centered_scheme(method.scheme, acting.dynamics)
    if acting.control is None:
        return with_held_torques(scheme.make_program, acting.dynamics), scheme
    return scheme.make_program(acting.dynamics), scheme


def _with_torques(make: Callable[[ForcedMechanism], Program], acting: Acting) -> Program:
    """Return rates whose joint torques are an input."""
    a, nv = acting, acting.mechanism.nv
    program = with_held_torques(make, a.dynamics)
    free = len(a.mechanism.free_parameters)
    inputs = [x for x in program.inputs if x.name != "parameters"] + [Array("tau", (nv,))]
    if free:
        inputs.append(Array("parameters", (free,)))
    group = {x.name: k for k, x in enumerate(inputs)}
    old = [x.name for x in program.inputs]

    def moved(op: tuple) -> tuple:
        if op[0] is not Op.INPUT:
            return op
        if old[op[1]] != "parameters":
            return (Op.INPUT, group[old[op[1]]], op[2])
        return (Op.INPUT, group["parameters"], op[2]) if op[2] < free else (Op.INPUT, group["tau"], op[2] - free)

    return replace(program, inputs=tuple(inputs), ops=tuple(map(moved, program.ops)))


def _of_program(acting: Acting, program: Program, name: str, summary: str, more: dict[str, Meaning]) -> Exportable:
    a = acting
    unit = distinct(program, name)
    test = selftest(unit, a.dtype, sample_inputs(a.mechanism, unit.inputs, a.system.function))
    return Exportable(unit, a.dtype, a.mechanism.name, summary, common(a.mechanism) | more, test)


def _of_kernel(
    acting: Acting, kernel: Kernel, name: str, summary: str, found: dict[str, Meaning], floors: dict[str, float]
) -> Exportable:
    a, m = acting, acting.mechanism
    unit = replace(kernel, name=name)
    shapes = {"q": m.nq, "qd": m.nv, "tau": m.nv, "t": 1, "parameters": len(m.free_parameters)}
    drawn = sample_inputs(m, [Array(x, (n,)) for x, n in shapes.items()], a.system.function, RUNS)
    drawn |= {"q0": drawn["q"], "qd0": drawn["qd"], "t": drawn["t"][:, 0], "times": np.tile(TIMES, (RUNS, 1))}
    inputs: dict[str, Numbers] = {}
    for x in kernel.arguments[: kernel.arity[0]]:
        inputs[x.name] = drawn[x.name] if x.name in drawn else np.full(RUNS, SETTINGS[x.name])
    return Exportable(unit, a.dtype, m.name, summary, found, selftest(unit, a.dtype, inputs, floors))


# --- A time step whose torques, gains, set points and wrenches are inputs, for programs in which people change them

LIVE = "live"
"""The name of the input, before it is appended to the parameters."""


@dataclass(frozen=True)
class LiveInputs:
    """The inputs of a live step: their places [first, count] in its argument `tau`, by name.

    tau = torque + stiffness (target - q) - damping qd for joints with as many coordinates as velocities, and torque for
    the others. Wrenches [nb, 6] of external forces are about the origins of the bodies in their frames. `name` is that
    of the input.
    """

    mechanism: Mechanism
    name: str = LIVE

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """The first entry and the count of each input."""
        nv, out, at = self.mechanism.nv, {}, 0
        for name, count in [(n, nv) for n in ("torque", "stiffness", "damping", "target")] + [("wrenches", self._rows)]:
            out[name] = (at, count)
            at += count
        return out

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The further input of the rates, as the protocol of controllers requires it."""
        return (Array(self.name, (4 * self.mechanism.nv + self._rows,)),)

    @property
    def _rows(self) -> int:
        return 6 * len(self.mechanism.bodies)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the joint torques."""
        given = {name: now.given[self.name][a : a + n] for name, (a, n) in self.places.items()}
        tau = list(given["torque"])
        for label, k in coordinates(self.mechanism).items():
            moved = given["stiffness"][label] * (given["target"][label] - now.q[k])
            tau[label] = tau[label] + (moved - given["damping"][label] * now.qd[label])
        for i, body in enumerate(self.mechanism.bodies):
            now.load(body.name, given["wrenches"][6 * i : 6 * i + 6])
        return tau


def coordinates(mechanism: Mechanism) -> dict[int, int]:
    """Return the coordinate of each velocity, for joints with as many coordinates as velocities."""
    out: dict[int, int] = {}
    for joint, q, v in zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True):
        kind = joint_kinds.kind(joint.kind)
        if kind.QUATERNION is None and kind.NQ == kind.NV:
            out |= dict(zip(range(v.start, v.stop), range(q.start, q.stop), strict=True))
    return out


def live_step(mechanism: Mechanism, forces: Sequence[Force], name: str = "time_step") -> tuple[Kernel, LiveInputs]:
    """Return one step of the classical Runge-Kutta method with live inputs, and the places of these in `tau`.

    Loops stay closed by projection after the step.
    """
    live = LiveInputs(mechanism)
    dynamics = ForcedMechanism(mechanism, forces, live)
    scheme = centered_scheme(RK4, dynamics)
    program = _together(centered_rates(dynamics), mechanism)
    whole = stepper_of(mechanism, program, scheme)
    kernel = _single_step(whole, held=live.inputs[0].size, many=True)
    return replace(kernel, name=name), live


def _together(program: Program, mechanism: Mechanism) -> Program:
    """Return the rates with parameters [free parameters, live inputs]."""
    free = len(mechanism.free_parameters)
    size = sum(a.size for a in program.inputs if a.name == LIVE)
    together = Array("parameters", (free + size,))
    others = [a for a in program.inputs if a.name not in (LIVE, together.name)]
    return program.with_inputs((*others[:3], together, *others[3:]), {LIVE: (together.name, free)})
