"""Programs of closed mechanisms with held or driven degrees of freedom, which run on batches as native code.

Each has an output `rank`, the number of independent equations of the loops. If it is large enough, the held degrees of
freedom determine all others at a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...algebra.scalars import is_number, where
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lower.build import tree_maker
from ...compiler.lower.closed_tree import ClosedTree
from ...compiler.lower.closing_steps import closing_step, largest, moved
from ...compiler.lower.forced import with_forces
from ...compiler.lower.sweeps import Tree
from ...dynamics import closed, closure
from ...dynamics.actuated import actuated_torques
from ...dynamics.loop_loads import Ranks, shared_loads
from ...model.mechanism import Mechanism
from ...model.scales import loop_units

Scalars = list[Any]
Given = dict[str, Scalars]
Held = frozenset[int]


class _Tracing:
    """A trace with its inputs: some of q [nq], qd, qdd [nv], wrenches [nb, 6] and multipliers [nc], and parameters."""

    def __init__(self, mechanism: Mechanism, names: Sequence[str]) -> None:
        nq, nv = mechanism.nq, mechanism.nv
        shapes = {
            "q": (nq,), "qd": (nv,), "qdd": (nv,), "wrenches": (len(mechanism.bodies), 6),
            "multipliers": (len(mechanism.closures),), "parameters": (len(mechanism.free_parameters),),
        }  # fmt: skip
        more = ("parameters",) if mechanism.free_parameters else ()
        self.mechanism, self.trace = mechanism, Trace()
        self.inputs = [Array(name, shapes[name]) for name in (*names, *more)]
        self.given: Given = {a.name: [self.trace.input(g, k) for k in range(a.size)] for g, a in enumerate(self.inputs)}

    def program(self, name: str, outputs: dict[str, Scalars]) -> Program:
        arrays = [Array(x, (len(entries),)) for x, entries in outputs.items()]
        return Program.of_trace(name, self.inputs, arrays, self.trace, list(outputs.values()))


def newton_program(mechanism: Mechanism, held: Held) -> Program:
    """Return the Program (q) -> (q, gap): one step of Newton's method that keeps the held degrees of freedom."""
    made = _Tracing(mechanism, ("q",))
    there, residual = _closer(mechanism, made.given, held)
    return made.program("newton", {"q": there, "gap": [_gap(mechanism, residual)]})


def speeds_program(mechanism: Mechanism, held: Held) -> Program:
    """Return the Program (q, qd) -> (qd, gap, open, rank): velocities that keep the loops closed, held ones as given.

    `open` is the rate at which they open the loops, in parts of the largest velocity, in units of the length.
    """
    made = _Tracing(mechanism, ("q", "qd"))
    qd, rank = _speeds(mechanism, made.given, held)
    equations = closure.rows(Tree(mechanism, made.given | {"qd": qd}))
    gap = _gap(mechanism, [row.residual for row in equations])
    opens = _ratio(mechanism, [row.rate for row in equations], qd)
    return made.program("speeds", {"qd": qd, "gap": [gap], "open": [opens], "rank": [rank]})


def accelerations_program(mechanism: Mechanism, held: Held) -> Program:
    """Return the Program (q, qd, qdd) -> (qdd, gap, open, rank): accelerations that keep the loops closed.

    `open` has the rates at which the given velocities and these accelerations open the loops, in parts of their sizes.
    """
    made = _Tracing(mechanism, ("q", "qd", "qdd"))
    qdd, rank = _accelerations(mechanism, made.given, held)
    equations = closure.rows(Tree(mechanism, made.given))
    rates = [closed.of_acceleration(row, qdd) for row in equations]
    first = _ratio(mechanism, [row.rate for row in equations], made.given["qd"])
    second = _ratio(mechanism, rates, qdd, [row.bias for row in equations])
    gap = _gap(mechanism, [row.residual for row in equations])
    return made.program("accelerations", {"qdd": qdd, "gap": [gap], "open": [first, second], "rank": [rank]})


def torques_program(mechanism: Mechanism, driven: Held, *, forces: bool, wrenches: bool) -> Program:
    """Return the Program (q, qd, qdd[, wrenches]) -> (tau, multipliers, missing, need, open, rank).

    `missing` [nv] are torques that no drive supplies, `need` is the largest torque of the motion. `open` has three
    numbers, in parts of their sizes: the gap, its rate and its acceleration.
    """
    made = _Tracing(mechanism, ("q", "qd", "qdd", *(["wrenches"] if wrenches else [])))
    given = made.given
    tau, multipliers, missing, rank, need = _torques(mechanism, given, driven, forces)
    equations = closure.rows(Tree(mechanism, given))
    gap = _gap(mechanism, [row.residual for row in equations])
    rates = _ratio(mechanism, [row.rate for row in equations], given["qd"])
    second = [closed.of_acceleration(row, given["qdd"]) for row in equations]
    later = _ratio(mechanism, second, given["qdd"], [row.bias for row in equations])
    return made.program("torques", {
        "tau": tau, "multipliers": multipliers, "missing": missing, "need": [need], "open": [gap, rates, later],
        "rank": [rank],
    })  # fmt: skip


def loads_program(
    mechanism: Mechanism, idle: tuple[int, ...], ranks: Ranks, *, forces: bool, wrenches: bool
) -> tuple[Program, list[int]]:
    """Return the Program (q, qd, qdd, multipliers[, wrenches]) -> (wrenches, multipliers, moved) of all reactions.

    `moved` has only entries of wrenches that loads which the motion leaves open can change: those that are listed.
    """
    made = _Tracing(mechanism, ("q", "qd", "qdd", "multipliers", *(["wrenches"] if wrenches else [])))
    given = dict(made.given)
    multipliers = given.pop("multipliers")
    if forces:
        given, _ = with_forces(mechanism, given)
    found = shared_loads(ClosedTree(mechanism, given), multipliers, idle, ranks)
    places = [n for n, x in enumerate(found.moved) if not (is_number(x) and x == 0)]
    outputs = {"wrenches": found.wrenches, "multipliers": found.multipliers}
    more = {"moved": [found.moved[n] for n in places]} if places else {}
    return made.program("loads", outputs | more), places


def motion_program(mechanism: Mechanism, held: Held, driven: Held | None, *, forces: bool) -> Program:
    """Return the Program (q, qd, qdd) -> (q, qd, qdd, tau, gap, rank) of a motion of held degrees of freedom.

    q is corrected by one step of Newton's method. Velocities and accelerations of all joints follow from those of the
    held ones, and the torques of the driven ones from these; None means that there is no output tau. The gap is that
    of the corrected q.
    """
    made = _Tracing(mechanism, ("q", "qd", "qdd"))
    given = dict(made.given)
    given["q"], _ = _closer(mechanism, given, held)
    given["qd"], rank = _speeds(mechanism, given, held)
    given["qdd"], _ = _accelerations(mechanism, given, held)
    residual = closure.closure_residual(Tree(mechanism, given))
    torques: dict[str, Scalars] = {}
    if driven is not None:
        torques["tau"], _, _, other, _ = _torques(mechanism, given, driven, forces)
        rank = where(other < rank, other, rank)
    return made.program("motion", {
        "q": given["q"], "qd": given["qd"], "qdd": given["qdd"], **torques,
        "gap": [_gap(mechanism, residual)], "rank": [rank],
    })  # fmt: skip


def _closer(mechanism: Mechanism, given: Given, held: Held) -> tuple[Scalars, Scalars]:
    """Return q after a step of Newton's method, no entry of which is larger than one unit, and the residual before."""
    residual, step = closing_step(mechanism, given, held)
    units = loop_units(mechanism)[1].tolist()
    most = largest([x * (1.0 / u) for x, u in zip(step, units, strict=True)])
    part = 1.0 / where(most > 1.0, most, 1.0)
    return moved(mechanism, given, [x * part for x in step]), residual


def _speeds(mechanism: Mechanism, given: Given, held: Held) -> tuple[Scalars, Any]:
    qd = [x if k in held else 0.0 for k, x in enumerate(given["qd"])]
    tree = tree_maker(mechanism)(mechanism, given | {"qd": qd})
    pulls = closed.at_rest(tree, held)
    return _kept(qd, closed.velocities(pulls, qd), held), pulls.rank()


def _accelerations(mechanism: Mechanism, given: Given, held: Held) -> tuple[Scalars, Any]:
    qdd = [x if k in held else 0.0 for k, x in enumerate(given["qdd"])]
    make = tree_maker(mechanism)
    found = closed.closing_acceleration(make(mechanism, given | {"qdd": qdd}), held)
    return _kept(qdd, found, held), closed.at_rest(make(mechanism, {"q": given["q"]} | _free(given)), held).rank()


def _torques(
    mechanism: Mechanism, given: Given, driven: Held, forces: bool
) -> tuple[Scalars, Scalars, Scalars, Any, Any]:
    state = {name: x for name, x in given.items() if name != "multipliers"}
    if forces:
        state, torques = with_forces(mechanism, state)
        state["tau"] = torques
    tree = tree_maker(mechanism)(mechanism, state)
    tau, multipliers, missing, rank = actuated_torques(tree, driven)
    return tau, multipliers, missing, rank, largest(tree.joints("tau"))


def _free(given: Given) -> Given:
    return {"parameters": given["parameters"]} if "parameters" in given else {}


def _kept(given: Scalars, found: Scalars, held: Held) -> Scalars:
    return [a if k in held else b for k, (a, b) in enumerate(zip(given, found, strict=True))]


def _gap(mechanism: Mechanism, residual: Scalars) -> Any:
    """Return the largest residual, in units of the length."""
    units = loop_units(mechanism)[0].tolist()
    return largest([x * (1.0 / u) for x, u in zip(residual, units, strict=True)])


def _ratio(mechanism: Mechanism, rates: Scalars, motion: Scalars, biases: Scalars | None = None) -> Any:
    """Return the largest rate of an equation, in parts of the largest entry of a motion and of its bias."""
    rows, columns = (x.tolist() for x in loop_units(mechanism))
    most = largest([x * (1.0 / u) for x, u in zip(motion, columns, strict=True)])
    if biases is not None:
        other = largest([x * (1.0 / u) for x, u in zip(biases, rows, strict=True)])
        most = where(other > most, other, most)
    worst = largest([x * (1.0 / u) for x, u in zip(rates, rows, strict=True)])
    return worst / where(most > 0.0, most, 1.0)
