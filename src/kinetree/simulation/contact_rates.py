"""The Programs of a time step with contacts: everything before its impulses are known, and everything after.

From q and v, with the position in the middle of the step, q_m = q + h/2 v:

    v+ = v + h qdd(q_m, v) + X p,    q+ = q_m + h/2 v+,    u = J(q_m) v+

Along a normal, u_n is at least what brings a gap g(q_m) to zero at the end of the step, -2 g / h. A gap below zero is
opened slowly. A body that arrives with u_n < 0 and restitution e leaves with -e u_n. One that arrives without
restitution, faster than forces change its velocity in a few steps, is stopped once its gap is below zero: the whole
impact is in one step, and leaves a gap of up to a step, h |u_n|, which then fades.                   [Moreau1988]

Restitution by Poisson's law is not a velocity but an impulse: see kernels/cone_expansion.py. A body that arrives under
it has u_n >= 0 at least.

The part of these velocities above zero, which bounces and opens gaps, is the `lift` of a contact. A body that is wedged
has no impulses that lift it, but always some that stop it: see kernels/cone_reductions.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..algebra.scalars import is_number, where
from ..compiler.ir.operations import Op
from ..compiler.ir.ordering import limb_by_limb
from ..compiler.ir.program import Array, Program
from ..compiler.ir.staging import in_stages
from ..compiler.ir.trace import Trace
from ..compiler.lower.contacts import candidate_names
from ..compiler.lower.sweeps import Tree
from ..dynamics import contact, states
from ..model.mechanism import Mechanism
from .instants import Controller, Force
from .kernels.cone_expansion import EXPANSION, STRIKES
from .kernels.cone_programs import GRIP, IMPULSE, abs_of, cone_inputs, largest
from .kernels.cone_reductions import ARRIVAL, BOUNCE, BOUND
from .rates import acted_on, rate_inputs

CHANGE = "dqd"
"""The name of the changes of the velocities by impulses."""

OPENING = 0.2
"""The part of a gap below zero that is opened within a step of length dt.

Bodies are opened no faster than the forces on them change their velocity in a step: a part of the velocity of an impact
would remain as a bounce, however short the steps are."""

SLOW = 2.0
"""The velocity of a body that arrives slowly, in parts of the change of its velocity by forces in a step.

A slow one is stopped at the surface. A faster one would be stopped in two steps, with a part of its velocity lost in
the first one that depends on the position of the surface between two steps: friction differs from that of one impact
where a slip stops or turns, however short the steps are."""

RESTING = 1e-6
"""The velocity of a body at rest, in parts of the change of its velocity by forces in a step: no impact under Poisson's
law, which takes three solutions instead of one."""

TOUCH = 1e-6
"""The gap over which an impact under Poisson's law is passed on, in parts of the distance that the largest velocity
covers in half a step. Bodies that touch up to rounding, as the balls of a cradle, pass it on in the same step."""

FAR = 1e6
"""The velocity with which a contact counts as open in a step, in parts of the largest velocity."""


@dataclass(frozen=True)
class ContactPrograms:
    """The Programs of a time step, one after the other; each takes all outputs of those before it.

    `moving` is (t, q, qd, ..., h, dt) -> (lowest, size, ...): the motion without impulses. The velocities qd are
    followed by the impulses of the last step and by further entries. t is the time in the middle of the step, h its
    length, and dt that of a whole one. `lowest` is the smallest velocity along a normal without impulses, less that
    which is allowed: without one below zero, there are no impulses. `size` is the largest velocity of a contact.
    `meeting` returns the cone problem, with the inputs of cone_programs.py; its impulses are those of the last step.
    `pushing` returns the changes dqd of the velocities by the impulses, and `ending` the state after the step.
    """

    moving: Program
    meeting: Program
    pushing: Program
    ending: Program


def contact_programs(
    mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None, *, measures: int,
    dtype: str = "float64",
) -> ContactPrograms:  # fmt: skip
    """Return the Programs of a step, with a number of further entries after the impulses in its state."""
    trace, nv, nc = Trace(), mechanism.nv, len(candidate_names(mechanism))
    inputs = rate_inputs(mechanism)
    inputs[2] = replace(inputs[2], shape=(nv + 3 * nc + measures,))
    inputs += [Array("h", (1,)), Array("dt", (1,)), Array(IMPULSE, (3 * nc,)), Array(CHANGE, (nv,))]
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    (h,), qd, before = given["h"], given["qd"][:nv], given["qd"][nv : nv + 3 * nc]
    middle = states.integrate(Tree(mechanism, {"q": given["q"], "qd": [h * 0.5 * v for v in qd]}))
    now = acted_on(mechanism, trace, inputs, forces, control, dtype=dtype, state=(middle, qd))
    qdd, tree = now.accelerations(), now.moving_tree()
    found = contact.touches(tree)
    answers = contact.Answers(tree, [row for x in found for row in x.rows])
    cone = _velocities(found, [h * x for x in contact.of_accelerations(tree, found, qdd)], h, given["dt"][0])
    cone |= _laws(found, answers.delassus()) | {IMPULSE: before}
    after = [v + h * a + dv for v, a, dv in zip(qd, qdd, given[CHANGE], strict=True)]
    ended = states.integrate(Tree(mechanism, {"q": middle, "qd": [h * 0.5 * v for v in after]}))
    results = cone | {CHANGE: answers.moved(given[IMPULSE]), "q_end": ended, "qd_end": after}
    problem = _problem(nc, cone)
    ends = (Array("q_end", (mechanism.nq,)), Array("qd_end", (nv,)))
    arrays = (Array("lowest", (1,)), Array("size", (1,)), *problem, inputs[-1], *ends)
    whole = Program.of_trace("contact", inputs, arrays, trace, [results[a.name] for a in arrays])
    stages = in_stages(whole, ("lowest", "size"), [a.name for a in problem], (CHANGE,), [a.name for a in ends])
    return ContactPrograms(*map(limb_by_limb, stages))


def _velocities(found: list[contact.Touch], change: list[Any], h: Any, dt: Any) -> dict[str, list[Any]]:
    """Return velocities without impulses, less those that are allowed along the normals, from changes h J qdd."""
    velocity = [row.rate for x in found for row in x.rows]
    bounds, leaving, passed = [], [0.0] * len(found), []
    expansion, strikes = [0.0] * len(found), 0.0
    poisson = any(_expands(touch) for touch in found)
    b = [v + dv for v, dv in zip(velocity, change, strict=True)]
    size = largest([abs_of(v) + abs_of(dv) for v, dv in zip(velocity, change, strict=True)])
    lowest: Any = None
    per_step, opened = -2.0 / h, -2.0 * OPENING / dt
    for c, touch in enumerate(found):
        n, e = 3 * c, touch.record.contact.restitution
        needed, pressing = touch.gap * per_step, -change[n]
        opening = touch.gap * opened
        pressing = where(pressing > 0.0, pressing, 0.0)
        opening = where(opening < pressing, opening, pressing)
        allowed = where(needed > 0.0, opening, needed)
        passes = (needed < 0.0) & (b[n] < needed) & (velocity[n] < -(SLOW * pressing))
        if _expands(touch):
            arrives = (b[n] < needed) & (velocity[n] < -(RESTING * pressing))
            arrives = arrives if is_number(e) else arrives & (e > 0.0)
            allowed = where(arrives & (allowed < 0.0), 0.0, allowed)
            passes = passes & _not(arrives)
            touches = (b[n] < needed) | (needed > -(TOUCH * size))
            expansion[c] = where(touches & _not(passes), e, 0.0)
        elif not (is_number(e) and e == 0.0):
            bounce = -(e * velocity[n])
            bounces = (b[n] < needed) & (bounce > allowed)
            bounces = bounces if is_number(e) else bounces & (e > 0.0)
            allowed = where(bounces, bounce, allowed)
            passes = passes & ~bounces
            leaving[c] = where(bounces, bounce, 0.0)
        if poisson:
            hits = (b[n] < needed) & (velocity[n] < -(RESTING * pressing)) & _not(passes)
            strikes = where(hits, 1.0, strikes)
        b[n] = where(passes, size * FAR, b[n] - allowed)
        passed.append(passes)
        bounds.append(where(passes, 0.0, allowed))
        lowest = b[n] if lowest is None else where(lowest < b[n], lowest, b[n])
    more = {} if all(is_number(x) for x in leaving) else {BOUNCE: leaving, ARRIVAL: velocity}
    if poisson:
        strikes = where(largest(expansion) > 0.0, strikes, 0.0)
        arrival = list(velocity)
        arrival[::3] = [where(x, size * FAR, v) for x, v in zip(passed, velocity[::3], strict=True)]
        more = {BOUNCE: leaving, ARRIVAL: arrival, EXPANSION: expansion, STRIKES: [strikes], GRIP: [0.0] * len(found)}
    return {"b": b, BOUND: bounds, "lowest": [lowest], "size": [size]} | more


def _not(condition: Any) -> Any:
    """Return the opposite of a condition, which is a bool where nothing moves a contact."""
    return not condition if isinstance(condition, bool) else ~condition


def _expands(touch: contact.Touch) -> bool:
    """Return whether a contact has restitution by Poisson's law."""
    laws = touch.record.contact
    return laws.law == "poisson" and not (is_number(laws.restitution) and laws.restitution == 0.0)


def _problem(count: int, cone: dict[str, list[Any]]) -> tuple[Array, ...]:
    """Return the arrays of the cone problem, with what its reductions need: see cone_reductions.py."""
    names = (BOUND, BOUNCE, ARRIVAL, EXPANSION, STRIKES, GRIP)
    more = [Array(name, (len(cone[name]),)) for name in names if name in cone]
    return (*cone_inputs(count), *more)


def _laws(found: list[contact.Touch], W: list[list[Any]]) -> dict[str, list[Any]]:
    """Return the answers to impulses, the reach of each contact, and its friction.

    A contact that nothing moves, such as that of a body on fixed joints, has no answer. It starts on or above its
    surface and stays there, without an impulse, for any answer: it gets that of a unit mass.
    """
    W = [list(row) for row in W]
    for n in range(0, len(W), 3):
        block = range(n, n + 3)
        if all(is_number(W[k][k]) and W[k][k] == 0.0 for k in block):
            for k in block:
                W[k][k] = 1.0
    return {
        "W": [x for row in W for x in row],
        "reach": [3.0 / (W[n][n] + W[n + 1][n + 1] + W[n + 2][n + 2]) for n in range(0, len(W), 3)],
        "friction": [x.record.contact.friction for x in found],
    }


def widened(program: Program, extra: int) -> Program:
    """Return a Program of (t, q, qd, ...) whose qd has further entries, which an output qd passes on unchanged.

    So the state of a run may hold more than velocities: the impulses of its last step.
    """
    wide = replace(program.inputs[2], shape=(program.inputs[2].size + extra,))
    inputs = (*program.inputs[:2], wide, *program.inputs[3:])
    ops, outputs, results = list(program.ops), list(program.outputs), list(program.results)
    for k, array in enumerate(outputs):
        if array.name == wide.name:
            ops += [(Op.INPUT, 2, array.size + i) for i in range(extra)]
            outputs[k], results[k] = wide, (*results[k], *range(len(ops) - extra, len(ops)))
    return Program(program.name, inputs, tuple(outputs), tuple(ops), tuple(results))
