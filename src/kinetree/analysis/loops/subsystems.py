"""Inverse dynamics of closed mechanisms by recursion between subsystems, and its cost beside that of whole systems.

With its loops cut, a closed mechanism is a set of trees on the ground, the subsystems of [Saha2013] 4. Each has its own
equations (54); the unknowns are the torques of its drives and the multipliers of the loops that end on it. A subsystem
with as many unknowns as equations is determinate. It is solved first, by a sweep over its bodies, and its multipliers
then act on the others as known wrenches. Subsystems that need each other are indeterminate and are solved together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...compiler.ir.program import Program
from ...compiler.lower.build import is_long
from ...compiler.lower.loop_pattern import PlainLoops, closing_pattern
from ...dynamics.subsystems import Block, Stage
from ...errors import AssemblyError, InputError, unknown_name
from ...joints import kind
from ...model.axes import axis_labels, axis_names
from ...model.mechanism import Mechanism, Named
from ...runtime.compiled import CompiledMechanism
from ...runtime.native import native
from ..joint_entries import as_list
from .actuation import CLEAR, samples_of_states
from .constraints import ActingForces, require_closed, singular_split
from .driven_programs import subsystem_program, torques_program, with_parameters
from .independence import independent
from .tolerances import CONSISTENT, INDEPENDENT

NOISE = 1e-10
"""Entries of J below this fraction of the largest, at all closed positions that are examined, count as zeros."""
EXAMINED = 4
"""The number of closed positions at which J is examined; zeros of one may be a coincidence."""
NEGLECTED = 1e-9
"""The largest torque, relative to those of the motion, of entries of J that counted as zeros; gaps are smaller."""
SINGULAR = 1e-12
"""The strength of a pivot below which passive joints do not determine its multiplier: few correct digits are left."""
ROUTES = ("subsystem by subsystem", "whole system at once", "factors of the whole system")
"""The routes whose operations are counted."""


@dataclass(frozen=True)
class Subsystem:
    """A joint on the ground with everything that it carries: its bodies and its degrees of freedom."""

    name: str
    bodies: tuple[str, ...]
    dofs: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """Subsystems that are solved together, with the names of the unknowns found and of those known before.

    `together` is the largest number of multipliers that are solved for at once, 0 if there are torques alone.
    """

    subsystems: tuple[str, ...]
    equations: int
    found: tuple[str, ...]
    known: tuple[str, ...]
    together: int

    @property
    def determinate(self) -> bool:
        """Whether the step is a single subsystem with as many unknowns as equations."""
        return len(self.subsystems) == 1

    def __str__(self) -> str:
        """Return the step as one line of text."""
        given = f", with {', '.join(self.known)} known" if self.known else ""
        many = "1 equation" if self.equations == 1 else f"{self.equations} equations"
        return f"{' + '.join(self.subsystems)}: {many} for {', '.join(self.found)}{given}"


@dataclass(frozen=True)
class SubsystemTorques:
    """Torques of the drives, zero in passive joints, [..., nv], and multipliers [..., nc], zero for redundant ones."""

    tau: Numbers
    multipliers: Numbers


@dataclass(frozen=True, repr=False)
class Recursion(Displayed):
    """The recursion between the subsystems of a mechanism with given drives: its steps, its functions and its cost."""

    system: CompiledMechanism
    actuated: tuple[str, ...]
    subsystems: tuple[Subsystem, ...]
    steps: tuple[Step, ...]
    stages: tuple[Stage, ...] = field(repr=False)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrenches: ArrayLike | None = None,
        forces: bool = True,
        parameters: Named | None = None,
    ) -> SubsystemTorques:
        """Return the torques of the drives and the multipliers of a motion, by sweeps over one subsystem at a time.

        States may have leading shapes. Motions that open the loops are refused, and states in which the drives do not
        determine the multipliers. `wrenches` [..., nb, 6] act on the bodies, and the forces of the mechanism too unless
        `forces` is False.                                                                        [Saha2013] (54)
        """
        system = self.system
        acting = ActingForces.of(system, wrenches, forces, parameters)
        if not system.closures:
            tau = acting.torques(q, qd, qdd)
            return SubsystemTorques(tau, np.zeros((*tau.shape[:-1], 0)))
        samples = samples_of_states(acting, q=q, qd=qd, qdd=qdd)
        if samples is None:
            acting.torques(q, qd, qdd)  # raises the error of the array that is wrong
            raise InputError("q, qd, qdd, wrenches and parameters have leading shapes that do not fit together")
        sizes = (system.nv, len(system.closures), len(system.closures), 3, 1)
        tau, multipliers, strength, opens, neglected = (np.empty((prod(samples.lead), n)) for n in sizes)
        key = ("subsystems", self.stages, acting.own_forces, wrenches is not None)
        compiled = system._parts.part(
            key, lambda: native(self._program(forces=acting.own_forces, wrenches=wrenches is not None))
        )
        for piece in samples.pieces():
            arrays = [piece.array(name) for name in ("q", "qd", "qdd")]
            flat = piece.array("wrenches")
            more = () if flat is None else (flat.reshape(len(flat), len(system.bodies), 6),)
            out = tuple(x[piece.rows] for x in (tau, multipliers, strength, opens, neglected))
            with np.errstate(all="ignore"):
                compiled(*with_parameters((*arrays, *more), piece.array("parameters")), out=out)
        tau, multipliers, strength, opens, neglected = (
            x.reshape(*samples.lead, x.shape[-1]) for x in (tau, multipliers, strength, opens, neglected)
        )
        self._require_consistent(acting, (opens <= CLEAR * CONSISTENT).all(axis=-1), q, qd, qdd)
        self._require_determined(strength)
        if (neglected > NEGLECTED).any():
            raise InputError(
                f"multipliers of loops act on other joints here than at the {EXAMINED} positions from which the order "
                f"of the subsystems was found: {neglected.max():.1g} of the torques is left out; close the loops more "
                "exactly, with arm.assemble(q), or use arm.actuation"
            )
        return SubsystemTorques(tau, multipliers)

    def costs(self) -> dict[str, dict[str, int]]:
        """Return the operations of the torques and multipliers of one state by route, as `Program.cost` counts them.

        The routes are this recursion, the same sweeps with all passive joints in one system of equations, and the
        factors of forward dynamics with the drives locked, as `arm.actuation` has them.
        """
        mechanism = self.system.mechanism
        blocks = [block for stage in self.stages for block in stage.blocks]
        dofs = tuple(k for stage in self.stages for k in stage.dofs)
        passive, unknown = (tuple(sorted(k for block in blocks for k in block[side])) for side in (0, 1))
        whole = Stage(dofs, ((passive, unknown),) if passive else (), ())
        driven = frozenset(dofs) - frozenset(passive)
        programs = (
            self._program(forces=False, wrenches=False, checked=False),
            subsystem_program(mechanism, [whole], forces=False, wrenches=False, checked=False),
            torques_program(mechanism, driven, forces=False, wrenches=False, checked=False),
        )
        return {route: program.cost() for route, program in zip(ROUTES, programs, strict=True)}

    def display(self) -> Iterator[str | Table]:
        """Return the steps, one per row, and the operations of one state by route."""
        yield Table(
            ("step", "subsystems", "equations", "solves for", "known", "at once"),
            tuple(
                (
                    k,
                    " + ".join(s.subsystems),
                    s.equations,
                    ", ".join(s.found),
                    ", ".join(s.known) or "-",
                    s.together or None,
                )
                for k, s in enumerate(self.steps, 1)
            ),
        )
        if self.system.closures:
            counts = self.costs().items()
            yield Table(
                ("torques and multipliers of one state", "M", "A"),
                tuple((route, c["multiplications"] + c["divisions"], c["additions"]) for route, c in counts),
            )

    def _program(self, *, forces: bool, wrenches: bool, checked: bool = True) -> Program:
        return subsystem_program(self.system.mechanism, self.stages, forces=forces, wrenches=wrenches, checked=checked)

    def _require_consistent(self, acting: ActingForces, good: NDArray[np.bool_], *states: ArrayLike) -> None:
        """Raise an InputError if the motion opens the loops; a quick test has found the `good` states."""
        if good.all():
            return
        q, qd, qdd = (np.broadcast_to(np.asarray(x, dtype=float), (*good.shape, np.shape(x)[-1])) for x in states)
        system, own = self.system, acting.spread(good.shape).parameters
        require_closed(system, singular_split(system, q, own), q, qd, qdd, CONSISTENT, own)

    def _require_determined(self, strength: Numbers) -> None:
        """Raise an InputError if some pivot vanishes; NaN counts as vanished."""
        weak = ~(strength > SINGULAR)
        if not weak.any():
            return
        *state, k = (int(x) for x in np.argwhere(weak)[0])
        step = next(s for s, stage in zip(self.steps, self.stages, strict=True) if k in _unknowns(stage))
        raise _singular(step.subsystems, f" (state {state})" if state else "")


def subsystem_recursion(system: CompiledMechanism, actuated: str | Iterable[str] | None = None) -> Recursion:
    """Return the recursion between the subsystems of a mechanism; by default, its independent joints are driven.

    As many degrees of freedom must be driven as the mechanism has.
    """
    names = independent(system).names if actuated is None else tuple(as_list(actuated))
    return system._parts.part(("subsystem recursion", names), lambda: _made(system, names))


def subsystems(mechanism: Mechanism) -> tuple[Subsystem, ...]:
    """Return the trees that remain on the ground after all loops are cut, each with the name of its first joint.

    Bodies that are fixed to the ground belong to none.
    """
    roots: list[int] = []
    for i, parent in enumerate(mechanism.parents):
        before = roots[parent] if parent >= 0 else -1
        roots.append(before if before >= 0 else i if kind(mechanism.joints[i].kind).NV else -1)
    slices, out = mechanism.v_slices, []
    for r in sorted({r for r in roots if r >= 0}):
        mine = [i for i, root in enumerate(roots) if root == r]
        dofs = tuple(k for i in mine for k in range(slices[i].start, slices[i].stop))
        out.append(Subsystem(mechanism.joints[r].name, tuple(mechanism.bodies[i].name for i in mine), dofs))
    return tuple(out)


def _made(system: CompiledMechanism, names: tuple[str, ...]) -> Recursion:
    mechanism = system.mechanism
    if mechanism.closures and is_long(mechanism):
        raise InputError(
            f"mechanism {mechanism.name!r} has {mechanism.nv} degrees of freedom, more than straight-line code suits; "
            "use arm.actuation, or a shorter mechanism"
        )
    driven, parts = _driven(mechanism, names), subsystems(mechanism)
    passive = [k for k in range(mechanism.nv) if k not in driven]
    kept, pattern = _equations(mechanism, driven, passive, parts)
    stages, steps = [], []
    labels = axis_labels(mechanism, 1)
    closures = [f"{c.name} {c.label}" for c in mechanism.closures]
    for members, blocks in _ordered(pattern, passive, kept, parts):
        dofs = tuple(sorted(k for s in members for k in parts[s].dofs))
        own, solved = {k for block in blocks for k in block[1]}, {k for stage in stages for k in _unknowns(stage)}
        known = tuple(k for k in sorted(solved) if pattern[k, list(dofs)].any())
        stages.append(Stage(dofs, blocks, known))
        found = (*(f"tau {labels[k]}" for k in dofs if k in driven), *(closures[k] for k in sorted(own)))
        steps.append(
            Step(
                tuple(parts[s].name for s in members),
                len(dofs),
                found,
                tuple(closures[k] for k in known),
                max((len(unknown) for _, unknown in blocks), default=0),
            )
        )
    return Recursion(system, names, parts, tuple(steps), tuple(stages))


def _driven(mechanism: Mechanism, names: tuple[str, ...]) -> set[int]:
    known = dict.fromkeys(name for j, axis, _ in axis_names(mechanism, 1) for name in (j, f"{j}.{axis}" if axis else j))
    labels = axis_labels(mechanism, 1)
    for name in names:
        if name not in known and name not in labels:
            joints = dict.fromkeys(j for j, _, _ in axis_names(mechanism, 1))
            raise unknown_name("joint", name, joints, where="actuated")
    return {k for k, (j, _, _) in enumerate(axis_names(mechanism, 1)) if j in names or labels[k] in names}


def _equations(
    mechanism: Mechanism, driven: set[int], passive: list[int], parts: tuple[Subsystem, ...]
) -> tuple[list[int], NDArray[np.bool_]]:
    """Return the equations of loops whose multipliers the passive joints determine, and the pattern of J [nc, nv]."""
    count = len(mechanism.closures)
    if not count:
        if passive:
            raise _unequal(len(driven), mechanism.nv)
        return [], np.zeros((0, mechanism.nv), dtype=bool)
    loops = PlainLoops(mechanism)
    closed = [loops.jacobian(loops.closed(q)[0]) for q, _ in loops.positions(EXAMINED)]  # closed to rounding
    if not closed:
        raise AssemblyError(f"the loops of {mechanism.name!r} do not close near its guess; correct the guess")
    pattern = np.any([np.abs(J) > NOISE * np.abs(J).max() for J in closed], axis=0)
    rows = list(closing_pattern(mechanism).kept)
    mobility = mechanism.nv - max(_rank(J) for J in closed)
    if len(driven) != mobility:
        raise _unequal(len(driven), mobility)
    if not passive:
        return [], pattern
    chosen = max((_leading(J[rows][:, passive]) for J in closed), key=lambda found: found[1])
    if chosen[1] < INDEPENDENT:
        raise _singular([p.name for p in parts if set(p.dofs) & set(passive)], "")
    return [rows[k] for k in chosen[0]], pattern


def _leading(A: Numbers) -> tuple[list[int], float]:
    """Return as many rows of A as it has columns, by elimination with pivoting, and the smallest remainder of a row.

    The remainder is relative to the largest.
    """
    from scipy.linalg import qr

    if A.shape[0] < A.shape[1]:
        return [], 0.0
    _, R, order = qr(A.T, mode="economic", pivoting=True)  # type: ignore[misc] - three with pivoting
    sizes = np.abs(np.diag(R))
    return sorted(int(k) for k in order[: A.shape[1]]), float(sizes.min() / max(sizes.max(), 1e-300))


def _rank(J: Numbers) -> int:
    sizes = np.linalg.svd(J, compute_uv=False)
    return int((sizes > INDEPENDENT * sizes.max(initial=0.0)).sum())


def _ordered(
    pattern: NDArray[np.bool_], passive: list[int], kept: list[int], parts: tuple[Subsystem, ...]
) -> Iterator[tuple[list[int], tuple[Block, ...]]]:
    """Yield groups of subsystems in solving order, each with the blocks of its equations.

    Every passive equation is matched with its own multiplier. A subsystem depends on those that determine multipliers
    which act on it, a passive equation on those that determine its other multipliers. What depends on itself in a cycle
    is solved together; the groups do not depend on the matching.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    acts = pattern[kept].T  # which of the kept multipliers act on each degree of freedom
    match = (
        maximum_bipartite_matching(csr_array(acts[passive]), perm_type="column") if passive else np.zeros(0, dtype=int)
    )
    part_of = {k: s for s, part in enumerate(parts) for k in part.dofs}
    owner = {int(u): part_of[p] for p, u in zip(passive, match, strict=True)}
    needs = np.zeros((len(parts), len(parts)), dtype=bool)
    for s, part in enumerate(parts):
        for u in np.flatnonzero(acts[list(part.dofs)].any(axis=0)):
            needs[s, owner[int(u)]] = True
    for members in _in_order(needs):
        mine = [n for n, p in enumerate(passive) if part_of[p] in members]
        others = acts[[passive[n] for n in mine]][:, match[mine]]
        blocks = [[mine[n] for n in block] for block in _in_order(others)]
        yield (
            members,
            tuple((tuple(passive[n] for n in b), tuple(sorted(kept[int(match[n])] for n in b))) for b in blocks),
        )


def _in_order(needs: NDArray[np.bool_]) -> Iterator[list[int]]:
    """Yield groups of numbers that need each other, each after all that it needs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, group = connected_components(csr_array(needs), directed=True, connection="strong")
    before = [{int(g) for g in group[needs[group == g].any(axis=0)]} - {g} for g in range(count)]
    left = list(range(count))
    done: set[int] = set()
    while left:
        ready = next(g for g in left if before[g] <= done)
        left.remove(ready)
        done.add(ready)
        yield [int(k) for k in np.flatnonzero(group == ready)]


def _unknowns(stage: Stage) -> tuple[int, ...]:
    return tuple(k for _, unknown in stage.blocks for k in unknown)


def _unequal(driven: int, mobility: int) -> InputError:
    return InputError(
        f"{driven} actuated degrees of freedom for {mobility} of the mechanism; the recursion requires equal numbers; "
        "arm.actuation accepts any"
    )


def _singular(names: Iterable[str], where: str) -> InputError:
    return InputError(
        f"the actuators do not hold the mechanism in this position{where}: the equations of "
        f"{', '.join(map(repr, names))} are singular; actuate other joints, or see arm.actuation"
    )
