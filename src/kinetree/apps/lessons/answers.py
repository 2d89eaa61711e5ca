"""Answers of lessons by the library: the functions that formulas may call, and the numbers that questions expect.

The page computes the same with its own kernel, in `page/js/lesson_values.js`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers
from ...dynamics import ALGORITHMS
from ...model.axes import axis_labels
from ...model.mechanism import resolve_parts
from ...simulation.simulate import simulate
from ...system import System
from .reading import Lesson, Question, evaluate_formula

FRAME = 1 / 60
"""The time between two samples of a motion [s], as in the page."""
STEPS = 17
"""Runge-Kutta steps per sample: like the page's, of about 1 ms."""
CALLED = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "gravity_torque": ("q",),
    "inertia_matrix": ("q",),
    "kinetic_energy": ("q", "qd"),
    "potential_energy": ("q",),
    "reactions": ("q", "qd", "qdd"),
    "center_of_mass": ("q",),
    "momentum": ("q", "qd"),
    "twists": ("q", "qd"),
}
"""Functions of the mechanism that formulas call, with their arguments; those left out are zero."""
RECURSIONS = {
    "inverse_recursion": (("q", "qd", "qdd"), ("t", "dt", "w", "wtilde", "tau")),
    "forward_recursion": (("q", "qd", "tau"), ("Mhat", "psi", "mhat", "tauhat", "mu", "qdd")),
}
"""Functions of several outputs, one of which a formula names as the last argument."""


@dataclass(frozen=True)
class FreeMotion:
    """A motion without drives: times, coordinates and velocities at the samples, and the energy at each."""

    t: Numbers
    q: Numbers
    qd: Numbers
    energy: Numbers


def answers(lesson: Lesson, system: System) -> list[float | None]:
    """Return the right number of each step, None without a question."""
    return [None if step.question is None else answer(step.question, system) for step in lesson.steps]


def answer(question: Question, system: System) -> float:
    """Return the right number of a question [its unit; radians for angles]."""
    known: dict[str, object] = functions(system)
    for name, formula in question.given.items():
        known[name] = evaluate_formula(formula, known)
    return float(evaluate_formula(question.answer, known))


def functions(system: System) -> dict[str, Any]:
    """Return the functions of formulas, and the values of free parameters, by name."""
    free = [p.value for p in system.mechanism.free_parameters]
    more: dict[str, Any] = {"parameters": free} if free else {}

    def called(name: str, inputs: tuple[str, ...]) -> Callable[..., Any]:
        def call(*given: object) -> Any:
            zeros = [np.zeros(system.nv)] * (len(inputs) - len(given))
            options = more | {"forces": False} if ALGORITHMS[name].wrenches else more  # as on the page
            return getattr(system, name)(*given, *zeros, **options)

        return call

    def recursion(name: str, outputs: tuple[str, ...]) -> Callable[..., Any]:
        return lambda *given: getattr(system, name)(*given[:-1], **more)[outputs.index(given[-1])]

    return {
        **{p.name: float(p.value) for p in system.mechanism.free_parameters},
        **{name: called(name, inputs) for name, inputs in CALLED.items()},
        **{name: recursion(name, outputs) for name, (_, outputs) in RECURSIONS.items()},
        "closure_jacobian": lambda q: system.closure_jacobian(q, **more),
        **{part: _part_of_bodies(system, part) for part in ("mass", "com", "inertia")},
        "pose": lambda q, frame: system.pose(q, frame, **more),
        "jacobian": lambda q, frame: system.jacobian(q, frame, **more),
        "closed": lambda q, joint: _close_loops(system, q, joint),
        "closed_velocities": lambda q, qd, joint: _closed_velocities(system, q, qd, joint),
        "motion": lambda q, qd, duration: _motion(system, q, qd, duration, more),
        "crossing": lambda m, label, level, count: _find_crossing(m, _index(system, label), level, int(count)),
        "at": lambda m, label, t: _state(m, _index(system, label), t)[0],
        "rate": lambda m, label, t: _state(m, _index(system, label), t)[1],
        "largest": lambda m, label: float(np.abs(m.q[:, _index(system, label)]).max()),
        "fastest": lambda m, label: float(np.abs(m.qd[:, _index(system, label)]).max()),
        "parting": lambda a, b, apart: float(a.t[np.argmax(np.linalg.norm(a.q - b.q, axis=1) > apart)]),
        "energy": lambda m, t: float(np.interp(t, m.t, m.energy)),
    }


def _part_of_bodies(system: System, part: str) -> Callable[[str], Any]:
    """Return the function of a body's name that returns its mass, center of mass or inertia."""
    values = system.mechanism.values()
    bodies = {body.name: resolve_parts(body, values) for body in system.mechanism.bodies}
    return lambda name: np.array(getattr(bodies[name], part), dtype=float)


def _index(system: System, label: str) -> int:
    return list(axis_labels(system.mechanism, 0)).index(label)


def _close_loops(system: System, q: Numbers, joint: str) -> Numbers:
    """Return q with the loops closed; a joint keeps its value."""
    return system.assemble(q, hold={joint: float(q[_index(system, joint)])})


def _closed_velocities(system: System, q: Numbers, qd: Numbers, joint: str) -> Numbers:
    return system.consistent_speeds(q, {joint: float(qd[_index(system, joint)])})


def _motion(system: System, q: Numbers, qd: Numbers, duration: float, more: dict[str, Any]) -> FreeMotion:
    times = np.arange(round(duration / FRAME) + 1) * FRAME
    run = simulate(system, q, qd, times=times, method="rk4", dt=FRAME / STEPS * (1 + 1e-9), **more)
    energy = system.kinetic_energy(run.q, run.qd, **more) + system.potential_energy(run.q, **more)
    return FreeMotion(run.t, run.q, run.qd, np.asarray(energy))


def _state(motion: FreeMotion, k: int, t: float) -> tuple[float, float]:
    """Return a coordinate of a joint with one axis and its velocity, on the cubic between two samples."""
    i = int(np.clip(np.searchsorted(motion.t, t + 1e-12) - 1, 0, len(motion.t) - 2))
    h = motion.t[i + 1] - motion.t[i]
    s = min(1.0, max(0.0, (t - motion.t[i]) / h))
    r = 1.0 - s
    (a, b), (u, v) = motion.q[i : i + 2, k], motion.qd[i : i + 2, k]
    position = r * r * (1 + 2 * s) * a + s * s * (1 + 2 * r) * b + h * s * r * (r * u - s * v)
    return float(position), float(6 * s * r * (b - a) / h + r * (r - 2 * s) * u + s * (s - 2 * r) * v)


def _find_crossing(motion: FreeMotion, k: int, level: float, count: int) -> float:
    """Return the time at which a coordinate reaches a level for the count-th time, NaN if it does not."""
    off = motion.q[:, k] - level
    found = np.nonzero(off[:-1] * off[1:] < 0)[0]
    if len(found) < count:
        return float("nan")
    i = found[count - 1]
    low, high = float(motion.t[i]), float(motion.t[i + 1])
    for _ in range(60):
        middle = (low + high) / 2
        same = (_state(motion, k, middle)[0] - level) * off[i] > 0
        low, high = (middle, high) if same else (low, middle)
    return float(low)
