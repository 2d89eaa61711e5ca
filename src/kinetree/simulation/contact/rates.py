"""The Programs of a time step with contacts: everything before its impulses are known, and everything after.

From q and v, with the position in the middle of the step, q_m = q + h/2 v:

    v+ = v + h qdd(q_m, v) + X p,    q+ = q_m + h/2 v+,    u = J(q_m) v+

Floating trees take the step with their centers of mass, whose velocities p alone changes where no force acts: q and v
before and after the step, and v at q_m, are those of centered states (dynamics/centered.py).

Along a normal, u_n is at least what brings a gap g(q_m) to zero at the end of the step, -2 g / h. A gap below zero is
opened slowly. A body that arrives with u_n < 0 and restitution e leaves with -e u_n. One that arrives without
restitution, faster than forces change its velocity in a few steps, is stopped once its gap is below zero: the whole
impact is in one step, and leaves a gap of up to a step, h |u_n|, which then fades.                   [Moreau1988]

Restitution by Poisson's law is not a velocity but an impulse: see restitution.py. A body that arrives under
it has u_n >= 0 at least.

The part of these velocities above zero, which bounces and opens gaps, is the `lift` of a contact. A body that is wedged
has no impulses that lift it, but always some that stop it: see restitution.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...algebra.scalars import Scalar, absolute, is_number, maximum, where
from ...compiler.ir.operations import Op
from ...compiler.ir.program import Array, Program
from ...compiler.ir.staging import in_stages, limb_by_limb
from ...compiler.ir.trace import Trace
from ...compiler.lower.contacts import candidate_names
from ...compiler.lower.sweeps import Tree
from ...dynamics import centered, contact
from ...model.contacts import ContactNumbers
from ..acting.rates import ForcedMechanism, apply_forces, kept_by_closing, rate_inputs
from .cone_programs import GRIP, IMPULSE, cone_inputs
from .restitution import ARRIVAL, BOUNCE, BOUND, EXPANSION, STRIKES, expands, leaving_velocity
from .slots import CHANGE

if TYPE_CHECKING:
    pass

OPENING = 0.2
"""The part of a gap below zero that is opened within a step of length dt.

Bodies are opened no faster than the forces on them change their velocity in a step: a part of the velocity of an impact
would remain as a bounce, however short the steps are."""

SLOW = 2.0
"""The velocity of a body that arrives slowly, relative to the change of its velocity by forces in a step.

A slow one is stopped at the surface. A faster one would be stopped in two steps, with a part of its velocity lost in
the first one that depends on the position of the surface between two steps: friction differs from one impact
where a slip stops or turns, however short the steps are."""

RESTING = 1e-6
"""The velocity of a body at rest, relative to the change of its velocity by forces in a step: no impact under Poisson's
law, which takes three solutions instead of one."""

TOUCH = 1e-6
"""The gap over which an impact under Poisson's law is passed on, relative to the distance that the largest velocity
covers in half a step. Bodies that touch up to rounding, as the balls of a cradle, pass it on in the same step."""

REST = {"float64": 1e-3, "float32": 3e-2}
"""A velocity that is added to those that residuals are compared with, relative to the characteristic velocity: the
velocities of a body at rest are rounding, and contradict each other where its contacts are redundant."""

FAR = 1e6
"""The velocity with which a contact counts as open in a step, relative to the largest velocity."""


@dataclass(frozen=True)
class ContactPrograms:
    """The Programs of a time step, one after the other; each takes all outputs of those before it.

    `moving` is (t, q, qd, ..., h, dt) -> (lowest, size, ...): the motion without impulses. The velocities qd are
    followed by the impulses of the last step and by further entries. t is the time in the middle of the step, h its
    length, and dt that of a whole one. `lowest` is the smallest velocity along a normal without impulses, less that
    which is allowed: without one below zero, there are no impulses. `size` is the largest velocity of a
    contact, and a small one for those at rest.
    `meeting` returns the cone problem, with the inputs of cone_programs.py; its impulses are those of the last step.
    `pushing` returns the changes dqd of the velocities by the impulses, and `ending` the state after the step.
    """

    moving: Program
    meeting: Program
    pushing: Program
    ending: Program


def contact_programs(dynamics: ForcedMechanism, *, measures: int) -> ContactPrograms:
    """Return the Programs of a step, with a number of further entries after the impulses in its state."""
    trace, mechanism, dtype = Trace(), dynamics.mechanism, dynamics.dtype
    nv, nc = mechanism.nv, len(candidate_names(mechanism))
    inputs = rate_inputs(mechanism)
    inputs[2] = replace(inputs[2], shape=(nv + 3 * nc + measures,))
    inputs += [Array("h", (1,)), Array("dt", (1,)), Array(IMPULSE, (3 * nc,)), Array(CHANGE, (nv,))]
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    before = given["qd"][nv : nv + 3 * nc]
    tree, qdd, ends = step_motion(dynamics, trace, inputs, given)
    found = contact.touches(tree)
    answers = contact.Answers(tree, [row for x in found for row in x.rows])
    (h,) = given["h"]
    change = [h * x for x in contact.of_accelerations(tree, [row for x in found for row in x.rows], qdd)]
    pulls = [h * x for x in contact.weights(tree, found)]
    cone = _velocities(found, change, h, given["dt"][0], pulls)
    cone["size"] = [cone["size"][0] + REST[dtype] * ContactNumbers.of(mechanism).speed]
    cone |= _laws(found, answers.delassus()) | {IMPULSE: before}
    results = cone | {CHANGE: answers.moved(given[IMPULSE])} | ends
    problem = _problem(nc, cone)
    arrays = (Array("lowest", (1,)), Array("size", (1,)), *problem, Array(CHANGE, (nv,)))
    arrays += tuple(Array(name, (len(x),)) for name, x in ends.items())
    whole = Program.of_trace("contact", inputs, arrays, trace, [results[a.name] for a in arrays])
    stages = in_stages(whole, ("lowest", "size"), [a.name for a in problem], (CHANGE,), list(ends))
    return ContactPrograms(*map(limb_by_limb, stages))


def step_motion(
    dynamics: ForcedMechanism, trace: Trace, inputs: list[Array], given: dict[str, list[Scalar]]
) -> tuple[Tree, list[Scalar], dict[str, list[Scalar]]]:
    """Return the tree in the middle of a step, qdd without impulses, and the state at its end.

    The end takes the change of the velocities by impulses, which is among the given inputs. It is a centered state
    where loops are closed in these (`rates.uncentering`).
    """
    mechanism = dynamics.mechanism
    (h,), qd = given["h"], given["qd"][: mechanism.nv]
    more = {name: given[name] for name in ("parameters",) if name in given}

    def tree_at(**state: list[Scalar]) -> Tree:
        return Tree(mechanism, state | more)

    z, u = centered.center(tree_at(q=given["q"], qd=qd))
    z = centered.integrate(tree_at(q=z, qd=[h * 0.5 * v for v in u]))
    middle, qd = centered.uncenter(tree_at(q=z, qd=u))
    now = apply_forces(dynamics, trace, inputs, state=(middle, qd))
    du, tree = now.centered_accelerations(), now.moving_tree()
    _, qdd = centered.uncenter(tree_at(q=z, qd=du))
    after = [v + h * a + dv for v, a, dv in zip(qd, qdd, given[CHANGE], strict=True)]
    _, u = centered.center(tree_at(q=middle, qd=after))
    z = centered.integrate(tree_at(q=z, qd=[h * 0.5 * v for v in u]))
    ended, leaving = (z, u) if kept_by_closing(ForcedMechanism(mechanism)) else centered.uncenter(tree_at(q=z, qd=u))
    return tree, qdd, {"q_end": ended, "qd_end": leaving}


def _velocities(
    found: list[contact.Touch], change: list[Scalar], h: Scalar, dt: Scalar, pulls: list[Scalar]
) -> dict[str, list[Scalar]]:
    """Return velocities without impulses, less those that are allowed along the normals, from changes h J qdd."""
    velocity = [row.rate for x in found for row in x.rows]
    b = [v + dv for v, dv in zip(velocity, change, strict=True)]
    size = maximum(*(absolute(v) + absolute(dv) for v, dv in zip(velocity, change, strict=True)))
    poisson = any(expands(touch.record.contact) for touch in found)
    allowed = [
        allowance(x.record.contact, x.gap, velocity[3 * c : 3 * c + 3], change[3 * c : 3 * c + 3], size, h, dt, pull)
        for c, (x, pull) in enumerate(zip(found, pulls, strict=True))
    ]
    lowest: Scalar = None
    for c, x in enumerate(allowed):
        b[3 * c] = x.free
        lowest = x.free if lowest is None else where(lowest < x.free, lowest, x.free)
    leaving = [x.leaving for x in allowed]
    more = {} if all(is_number(x) for x in leaving) else {BOUNCE: leaving, ARRIVAL: velocity}
    if poisson:
        strikes: Scalar = 0.0
        for x in allowed:
            strikes = where(x.hits, 1.0, strikes)
        expansion = [x.expansion for x in allowed]
        strikes = where(maximum(*expansion) > 0.0, strikes, 0.0)
        arrival = list(velocity)
        arrival[::3] = [x.arrival for x in allowed]
        more = {BOUNCE: leaving, ARRIVAL: arrival, EXPANSION: expansion, STRIKES: [strikes], GRIP: [0.0] * len(found)}
    return {"b": b, BOUND: [x.bound for x in allowed], "lowest": [lowest], "size": [size]} | more


@dataclass(frozen=True)
class Allowance:
    """What the laws allow along the normal of a contact in a step.

    `free` is the velocity without impulses, less the least one that is allowed, `bound`. A body that passes, since it
    is stopped in the next step, counts as open. `leaving` is the velocity by Newton's restitution, `expansion` that by
    Poisson's law of a contact that touches, and `arrival` the velocity before the step. `hits` is true for an impact.
    """

    free: Scalar
    bound: Scalar
    leaving: Scalar
    expansion: Scalar
    arrival: Scalar
    hits: Scalar


def allowance(
    contact: Any,
    gap: Scalar,
    velocity: Sequence[Scalar],
    change: Sequence[Scalar],
    size: Scalar,
    h: Scalar,
    dt: Scalar,
    pull: Scalar,
) -> Allowance:
    """Return what the laws of a contact allow, for its velocity before the step and the change by forces.

    The change is at least `pull`, that by gravity: two bodies that lie on each other are accelerated by it alike.
    """
    e, rate, pressing = contact.restitution, velocity[0], -change[0]
    b, needed, opening = rate + change[0], gap * (-2.0 / h), gap * (-2.0 * OPENING / dt)
    pressing = where(pressing > pull, pressing, pull)
    opening = where(opening < pressing, opening, pressing)
    allowed = where(needed > 0.0, opening, needed)
    passes = (needed < 0.0) & (b < needed) & (rate < -(SLOW * pressing))
    leaving: Scalar = 0.0
    expansion: Scalar = 0.0
    if expands(contact):
        arrives = (b < needed) & (rate < -(RESTING * pressing))
        arrives = arrives if is_number(e) else arrives & (e > 0.0)
        allowed = where(arrives & (allowed < 0.0), 0.0, allowed)
        passes = passes & _not(arrives)
        touches = (b < needed) | (needed > -(TOUCH * size))
        expansion = where(touches & _not(passes), e, 0.0)
    elif not (is_number(e) and e == 0.0):
        bounce = leaving_velocity(e, rate)
        bounces = (b < needed) & (bounce > allowed)
        bounces = bounces if is_number(e) else bounces & (e > 0.0)
        allowed = where(bounces, bounce, allowed)
        passes = passes & ~bounces
        leaving = where(bounces, bounce, 0.0)
    hits = (b < needed) & (rate < -(RESTING * pressing)) & _not(passes)
    return Allowance(
        where(passes, size * FAR, b - allowed),
        where(passes, 0.0, allowed),
        leaving,
        expansion,
        where(passes, size * FAR, rate),
        hits,
    )


def _not(condition: Scalar) -> Scalar:
    """Return the opposite of a condition, which is a bool where nothing moves a contact."""
    return not condition if isinstance(condition, bool) else ~condition


def _problem(count: int, cone: dict[str, list[Scalar]]) -> tuple[Array, ...]:
    """Return the arrays of the cone problem, with what its reductions need: see restitution.py."""
    names = (BOUND, BOUNCE, ARRIVAL, EXPANSION, STRIKES, GRIP)
    more = [Array(name, (len(cone[name]),)) for name in names if name in cone]
    return (*cone_inputs(count), *more)


def _laws(found: list[contact.Touch], W: list[list[Scalar]]) -> dict[str, list[Scalar]]:
    """Return the answers to impulses, the reach of each contact, and its friction.

    A contact that nothing moves, as on a body behind fixed joints, has no answer. It starts on or above its
    surface and stays there, without an impulse, for any answer: it gets the answer of a unit mass.
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


def widen_rates(program: Program, extra: int) -> Program:
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
