"""Programs of closed mechanisms with held or driven degrees of freedom, which run on batches as native code.

Each has an output `rank`, the number of independent equations of the loops. If it is large enough, the held degrees of
freedom determine all others at a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers, Scalar, is_number, where
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lower.build import ClosedTree, is_long, tree_maker, with_forces
from ...compiler.lower.closing_steps import closing_kernel, closing_step, displace, largest
from ...compiler.lower.loop_pattern import closing_pattern
from ...compiler.lower.sweeps import Tree
from ...dynamics import closed, closure
from ...dynamics.actuated import actuated_torques
from ...dynamics.loop_loads import Ranks, shared_loads
from ...dynamics.subsystems import Stage, subsystem_torques
from ...errors import AssemblyError
from ...joints import kind
from ...model.mechanism import Mechanism, parameter_arguments
from ...model.scales import ELSEWHERE, coordinate_units, loop_members, loop_units
from ...runtime.compiled import CompiledMechanism
from ...runtime.native import native, native_kernel
from ...runtime.singularity import weightless_joints
from .instant_kernel import instant_kernel
from .kinematics import LoopKinematics, Mask
from .misfits import assemble_or_explain

Scalars = list[Scalar]
Given = dict[str, Scalars]
Held = frozenset[int]


class _Tracing:
    """A trace with its inputs: some of q [nq], qd, qdd [nv], wrenches [nb, 6] and multipliers [nc], and parameters."""

    def __init__(self, mechanism: Mechanism, names: Sequence[str]) -> None:
        nq, nv = mechanism.nq, mechanism.nv
        shapes = {
            "q": (nq,),
            "qd": (nv,),
            "qdd": (nv,),
            "wrenches": (len(mechanism.bodies), 6),
            "multipliers": (len(mechanism.closures),),
            "part": (1,),
            "parameters": (len(mechanism.free_parameters),),
        }
        more = ("parameters",) if mechanism.free_parameters else ()
        self.mechanism, self.trace = mechanism, Trace()
        self.inputs = [Array(name, shapes[name]) for name in (*names, *more)]
        self.given: Given = {a.name: [self.trace.input(g, k) for k in range(a.size)] for g, a in enumerate(self.inputs)}

    def program(self, name: str, outputs: dict[str, Scalars]) -> Program:
        arrays = [Array(x, (len(entries),)) for x, entries in outputs.items()]
        return Program.of_trace(name, self.inputs, arrays, self.trace, list(outputs.values()))


def newton_program(mechanism: Mechanism, held: Held) -> Program:
    """Return the Program (q, part) -> (q, gap): a part of a step of Newton's method; held degrees of freedom stay."""
    made = _Tracing(mechanism, ("q", "part"))
    given = dict(made.given)
    (part,) = given.pop("part")
    there, residual = _closer(mechanism, given, held, part)
    return made.program("newton", {"q": there, "gap": [_gap(mechanism, residual)]})


def speeds_program(mechanism: Mechanism, held: Held) -> Program:
    """Return the Program (q, qd) -> (qd, gap, open, rank): velocities that keep the loops closed, held ones as given.

    `open` is the largest rate at which they open a loop, relative to the size of the motion there.
    """
    made = _Tracing(mechanism, ("q", "qd"))
    qd, rank = _speeds(mechanism, made.given, held)
    equations = closure.rows(Tree(mechanism, made.given | {"qd": qd}))
    gap = _gap(mechanism, [row.residual for row in equations])
    opens = _ratio(mechanism, [row.rate for row in equations], qd)
    return made.program("speeds", {"qd": qd, "gap": [gap], "open": [opens], "rank": [rank]})


def accelerations_program(mechanism: Mechanism, held: Held) -> Program:
    """Return the Program (q, qd, qdd) -> (qdd, gap, open, rank): accelerations that keep the loops closed.

    `open` has the rates at which the given velocities and these accelerations open the loops, relative to their sizes.
    """
    made = _Tracing(mechanism, ("q", "qd", "qdd"))
    qdd, rank = _accelerations(mechanism, made.given, held)
    equations = closure.rows(Tree(mechanism, made.given))
    rates = [closed.of_acceleration(row, qdd) for row in equations]
    first = _ratio(mechanism, [row.rate for row in equations], made.given["qd"])
    second = _ratio(mechanism, rates, made.given["qd"], qdd)
    gap = _gap(mechanism, [row.residual for row in equations])
    return made.program("accelerations", {"qdd": qdd, "gap": [gap], "open": [first, second], "rank": [rank]})


def torques_program(
    mechanism: Mechanism, driven: Held, *, forces: bool, wrenches: bool, checked: bool = True
) -> Program:
    """Return the Program (q, qd, qdd[, wrenches]) -> (tau, multipliers, missing, need, open, rank).

    `missing` [nv] are torques that no drive supplies, `need` is the largest torque of the motion. `open` has three
    numbers, relative to their sizes: the gap, its rate and its acceleration. Without `checked`, only tau and
    multipliers are computed, to count the operations of the route alone.
    """
    made = _of_motions(mechanism, wrenches)
    given = made.given
    tau, multipliers, missing, rank, need = _torques(mechanism, given, driven, forces)
    outputs = {"tau": tau, "multipliers": multipliers}
    if checked:
        outputs |= {"missing": missing, "need": [need], "open": _openings(mechanism, given), "rank": [rank]}
    return made.program("torques", outputs)


def subsystem_program(
    mechanism: Mechanism, stages: Iterable[Stage], *, forces: bool, wrenches: bool, checked: bool = True
) -> Program:
    """Return the Program (q, qd, qdd[, wrenches]) -> (tau, multipliers, strength, open, neglected) of a recursion.

    `strength` [nc] are the relative pivots of the multipliers, `neglected` is the largest torque that the order of the
    stages leaves out, relative to the largest of the motion, and `open` is as in `torques_program`. Without `checked`,
    these are left out.
    """
    made = _of_motions(mechanism, wrenches)
    tree = _acted_on(mechanism, made.given, forces)
    units = loop_units(mechanism)[1].tolist()
    found = subsystem_torques(tree, stages, units)
    outputs = {"tau": found.tau, "multipliers": found.multipliers}
    if checked:
        lost, size = (largest([x * u for x, u in zip(t, units, strict=True)]) for t in (found.neglected, found.needed))
        share = lost / where(size > 0.0, size, 1.0)
        outputs |= {"strength": found.strength, "open": _openings(mechanism, made.given), "neglected": [share]}
    return made.program("subsystems", outputs)


def _of_motions(mechanism: Mechanism, wrenches: bool) -> _Tracing:
    return _Tracing(mechanism, ("q", "qd", "qdd", *(["wrenches"] if wrenches else [])))


def _openings(mechanism: Mechanism, given: Given) -> Scalars:
    """Return the gap of a motion, its rate and its acceleration, each relative to its size."""
    equations = closure.rows(Tree(mechanism, given))
    gap = _gap(mechanism, [row.residual for row in equations])
    rates = _ratio(mechanism, [row.rate for row in equations], given["qd"])
    second = [closed.of_acceleration(row, given["qdd"]) for row in equations]
    return [gap, rates, _ratio(mechanism, second, given["qd"], given["qdd"])]


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
    return made.program(
        "motion",
        {
            "q": given["q"],
            "qd": given["qd"],
            "qdd": given["qdd"],
            **torques,
            "gap": [_gap(mechanism, residual)],
            "rank": [rank],
        },
    )


def _closer(mechanism: Mechanism, given: Given, held: Held, part: object = 1.0) -> tuple[Scalars, Scalars]:
    """Return q after a part of a step of Newton's method, no entry above one unit, and the residual before."""
    residual, step = closing_step(mechanism, given, held)
    units = loop_units(mechanism)[1].tolist()
    most = largest([x * (1.0 / u) for x, u in zip(step, units, strict=True)])
    part = part / where(most > 1.0, most, 1.0)
    return displace(mechanism, given, [x * part for x in step]), residual


def _speeds(mechanism: Mechanism, given: Given, held: Held) -> tuple[Scalars, Scalar]:
    qd = [x if k in held else 0.0 for k, x in enumerate(given["qd"])]
    tree = tree_maker(mechanism)(mechanism, given | {"qd": qd})
    pulls = closed.at_rest(tree, held)
    return _kept(qd, closed.velocities(pulls, qd), held), pulls.rank()


def _accelerations(mechanism: Mechanism, given: Given, held: Held) -> tuple[Scalars, Scalar]:
    qdd = [x if k in held else 0.0 for k, x in enumerate(given["qdd"])]
    make = tree_maker(mechanism)
    found = closed.closing_acceleration(make(mechanism, given | {"qdd": qdd}), held)
    return _kept(qdd, found, held), closed.at_rest(make(mechanism, {"q": given["q"]} | _free(given)), held).rank()


def _torques(
    mechanism: Mechanism, given: Given, driven: Held, forces: bool
) -> tuple[Scalars, Scalars, Scalars, Scalar, Scalar]:
    tree = _acted_on(mechanism, {name: x for name, x in given.items() if name != "multipliers"}, forces)
    tau, multipliers, missing, rank = actuated_torques(tree, driven)
    return tau, multipliers, missing, rank, largest(tree.joints("tau"))


def _acted_on(mechanism: Mechanism, state: Given, forces: bool) -> ClosedTree:
    """Return the tree of a motion; with `forces`, those of the mechanism act on its bodies and in its joints."""
    if forces:
        state, torques = with_forces(mechanism, state)
        state["tau"] = torques
    return tree_maker(mechanism)(mechanism, state)


def _free(given: Given) -> Given:
    return {"parameters": given["parameters"]} if "parameters" in given else {}


def _kept(given: Scalars, found: Scalars, held: Held) -> Scalars:
    return [a if k in held else b for k, (a, b) in enumerate(zip(given, found, strict=True))]


def _gap(mechanism: Mechanism, residual: Scalars) -> Scalar:
    """Return the largest residual, in units of the length."""
    units = loop_units(mechanism)[0].tolist()
    return largest([x * (1.0 / u) for x, u in zip(residual, units, strict=True)])


def _ratio(mechanism: Mechanism, rates: Scalars, qd: Scalars, qdd: Scalars | None = None) -> Scalar:
    """Return the largest rate of an equation relative to the size of the motion there: see `scales.rate_sizes`."""
    units, sizes = loop_units(mechanism)[0].tolist(), _sizes(mechanism, qd, qdd)
    return largest(
        [x * (1.0 / u) / where(size > 0.0, size, 1.0) for x, u, size in zip(rates, units, sizes, strict=True)]
    )


def _sizes(mechanism: Mechanism, qd: Scalars, qdd: Scalars | None) -> Scalars:
    """Return the size of a motion at each equation of the loops, in its unit."""
    units, members = loop_units(mechanism)[1].tolist(), loop_members(mechanism)
    sizes = [x * (1.0 / u) for x, u in zip(qd, units, strict=True)]
    if qdd is not None:
        sizes = [largest([x * (1.0 / u), v * v]) for x, u, v in zip(qdd, units, sizes, strict=True)]
    least, own = ELSEWHERE * largest(sizes), {}
    for row in members:
        if row.tobytes() not in own:
            most = largest([x for x, inside in zip(sizes, row, strict=True) if inside] or [0.0])
            own[row.tobytes()] = where(most > least, most, least)
    return [own[row.tobytes()] for row in members]


# --- Compiled programs of a closed mechanism for one choice of held joints, kept with its System ---


@dataclass(frozen=True)
class NativeLoops:
    """The programs of a mechanism on batches [n, .], with some degrees of freedom held or driven."""

    system: CompiledMechanism
    held: frozenset[int]

    @classmethod
    def of(cls, system: CompiledMechanism, held: Mask | Sequence[int]) -> NativeLoops:
        """Return the programs that the system keeps for degrees of freedom, given by a mask or by their entries."""
        if isinstance(held, np.ndarray):
            key: bytes = held.tobytes()
            return system._parts.part(("native loops", key), lambda: cls.of(system, np.flatnonzero(held).tolist()))
        places = frozenset(held)
        return system._parts.part(("native loops", places), lambda: cls(system, places))

    @cached_property
    def units(self) -> Numbers:
        """The unit of each degree of freedom in SI units: a radian, or the length of the mechanism in meters."""
        return loop_units(self.system.mechanism)[1]

    @property
    def passive(self) -> int:
        """The number of degrees of freedom that are not held."""
        return self.system.nv - len(self.held)

    @cached_property
    def flat(self) -> bool:
        """Whether every joint has as many coordinates as velocities, so that positions can be subtracted."""
        return all(kind(j.kind).NQ == kind(j.kind).NV for j in self.system.joints)

    @cached_property
    def possible(self) -> bool:
        """Whether the mechanism has programs: it has loops, is not long, and no joint is without inertia."""
        m = self.system.mechanism
        return bool(m.closures) and not is_long(m) and self.passive > 0 and not weightless_joints(m)

    @cached_property
    def determined(self) -> bool:
        """Whether the held degrees of freedom are as many as the mechanism has where its loops close."""
        return self.possible and mobility(self.system) == len(self.held)

    def close(self, *arrays: object) -> tuple[Numbers, Numbers]:
        """Return positions that Newton's method finds from q [n, nq], and their gaps [n], NaN where q is not finite."""

        def make() -> np.ufunc:
            return native_kernel(closing_kernel(newton_program(self.system.mechanism, self.held)))

        with np.errstate(all="ignore"):
            q, gap = self.system._parts.part(("native loops", self.held, "close"), make)(*arrays)
        return q, np.where(np.isfinite(q).all(axis=-1), gap[:, 0], np.nan)

    def speeds(self, *arrays: object) -> tuple[Numbers, ...]:
        """Return consistent velocities, the rate at which they open the loops, and the rank."""
        return self._call("speeds", lambda m: speeds_program(m, self.held), arrays)

    def accelerations(self, *arrays: object) -> tuple[Numbers, ...]:
        """Return consistent accelerations, the rate at which they open the loops, and the rank."""
        return self._call("accelerations", lambda m: accelerations_program(m, self.held), arrays)

    def torques(
        self, *arrays: object, forces: bool, wrenches: bool, out: tuple[Numbers, ...] = ()
    ) -> tuple[Numbers, ...]:
        """Return tau, multipliers, missing torques, the largest torque, the openings of the loops, and the rank."""

        def make(m: Mechanism) -> Program:
            return torques_program(m, self.held, forces=forces, wrenches=wrenches)

        return self._call(("torques", forces, wrenches), make, arrays, (*out, None, None, None) if out else None)

    def motion(
        self, *arrays: object, driven: frozenset[int] | None, forces: bool, out: tuple | None = None
    ) -> tuple[Numbers, ...]:
        """Return q, qd, qdd, tau (unless driven is None), gaps and rank of a motion of the held degrees of freedom."""

        def make(m: Mechanism) -> Program:
            return motion_program(m, self.held, driven, forces=forces)

        return self._call(("motion", driven, forces), make, arrays, out)

    def instant(self, driven: frozenset[int] | None, *, forces: bool) -> np.ufunc:
        """Return the compiled kernel of `instant_kernel`; the held joints have no quaternions."""

        def make() -> np.ufunc:
            m = self.system.mechanism
            units, places = coordinate_units(m), zip(m.q_slices, m.v_slices, strict=True)
            at = {q.start + k - v.start: k for q, v in places for k in range(v.start, v.stop) if k in self.held}
            step, motion = newton_program(m, self.held), motion_program(m, self.held, driven, forces=forces)
            return native_kernel(instant_kernel(step, motion, {q: float(units[q]) for q in at}))

        return self.system._parts.part(("native loops", self.held, "instant", driven, forces), make)

    def _call(
        self, key: object, make: Callable[[Mechanism], Program], arrays: tuple, out: tuple | None = None
    ) -> tuple[Numbers, ...]:
        compiled = self.system._parts.part(
            ("native loops", self.held, key), lambda: native(make(self.system.mechanism))
        )
        with np.errstate(all="ignore"):
            return compiled(*arrays) if out is None else compiled(*arrays, out=out)


def loads_of(
    system: CompiledMechanism, *arrays: object, forces: bool, wrenches: bool, ranks: Ranks, out: tuple[Numbers, Numbers]
) -> tuple[list[int], Numbers | None]:
    """Write the wrenches at joints and loops and all multipliers; return what loads that the motion leaves open change.

    These are entries of the wrenches, and the squares of their changes, None if there are no such entries.
    """
    idle = idle_equations(system)

    def make() -> tuple[Callable[..., Any], list[int]]:
        program, places = loads_program(system.mechanism, idle, ranks, forces=forces, wrenches=wrenches)
        return native(program), places

    compiled, places = system._parts.part(("native loads", forces, wrenches, ranks), make)
    with np.errstate(all="ignore"):
        found = compiled(*arrays, out=(*out, None) if places else out)
    return places, found[2] if places else None


def idle_equations(system: CompiledMechanism) -> tuple[int, ...]:
    """Return the equations of loops that hold at every position."""

    def make() -> tuple[int, ...]:
        return tuple(sorted(set(range(len(system.closures))) - set(closing_pattern(system.mechanism).kept)))

    return system._parts.part("idle equations", make)


def mobility(system: CompiledMechanism) -> int | None:
    """Return the degrees of freedom of a mechanism where its loops close; None if they close nowhere near the guess."""
    return system._parts.part("mobility", lambda: _mobility(system))


def _mobility(system: CompiledMechanism) -> int | None:
    try:
        return LoopKinematics(system).motions(assemble_or_explain(system)).mobility
    except AssemblyError:
        return None


def with_parameters(arrays: tuple, parameters: Numbers | None) -> tuple:
    """Return the arguments of a program: arrays, and the parameters if there are any."""
    return (*arrays, *parameter_arguments(parameters))
