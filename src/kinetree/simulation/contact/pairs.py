"""The Programs of a time step with many contacts, whose code grows with the bodies alone.

The laws are those of rates.py. There, each contact has operations of its own, and the Delassus matrix those of
every two contacts. Here they are traced once per sort of contact, and called in loops: see slots.py. A
pair is a body and a surface that it may touch. Its motion determines that of all its contacts. With the twist
[omega; v] of the body relative to the surface, and its change [a; b] by the forces of a step,

    u = n . omega + f . v,    du = n . a + f . b

along each of the three directions of a contact, where [n; f] is its unit wrench in the frame of the surface. W follows
from these wrenches, carried inward through the pivots of the tree: y = U^-1 J^T, W = y^T D^-1 y   [Saha2013] (54).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ... import contact_geometry as contact_kinds
from ...algebra.propagation import Propagation
from ...algebra.rotations import Full, Rotation
from ...algebra.scalars import Scalar, absolute, is_number, maximum, sqrt, where
from ...algebra.spatial import Twist, Wrench
from ...algebra.vectors import ZERO, add, dot, times
from ...compiler.ir.program import Array, Program
from ...compiler.ir.staging import in_stages, limb_by_limb
from ...compiler.ir.trace import Trace
from ...compiler.lower.contacts import (
    GRAVITY,
    Sort,
    batches_of,
    matrix_of,
    pairs_of,
    sort_inputs,
    touches_of,
    vector_of,
)
from ...compiler.lower.sweeps import Tree
from ...contact_geometry.surfaces import FAR
from ...dynamics import closed, contact, kinematics
from ...dynamics.closure import Row
from ...model.contacts import ContactNumbers
from ..acting.rates import ForcedMechanism, rate_inputs
from .rates import REST, allowance, step_motion
from .slots import BODY, CHANGE, PIVOT, ManyContacts, Path

if TYPE_CHECKING:
    pass


def many_contacts(dynamics: ForcedMechanism, *, measures: int) -> ManyContacts:
    """Return the Programs of a step, with a number of further entries after the impulses in its state."""
    trace, mechanism, dtype = Trace(), dynamics.mechanism, dynamics.dtype
    nv, count = mechanism.nv, sum(len(contact_kinds.labels(c)) for c in mechanism.contacts)
    inputs = rate_inputs(mechanism)
    inputs[2] = replace(inputs[2], shape=(nv + 3 * count + measures,))
    groups = pairs_of(mechanism)
    moves = any(mechanism.body_indices[mechanism.contacts[g[0]].surface.body] >= 0 for g in groups)
    each = 12 if moves else 6
    inputs += [Array("h", (1,)), Array("dt", (1,)), Array("wrenches", (each * len(groups),)), Array(CHANGE, (nv,))]
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    (h,) = given["h"]
    tree, qdd, ends = step_motion(dynamics, trace, inputs, given)
    records = tree.contacts
    pairs = [contact.Pair([records[k] for k in group]) for group in groups]
    units = [row for x in pairs for row in x.units]
    change = [h * x for x in contact.of_accelerations(tree, units, qdd)]
    answers = contact.Answers(tree, [_total(tree, pairs, given["wrenches"], each)])
    dqd = answers.moved([1.0])
    bodies, paths = _bodies(tree, pairs)
    if moves:
        kinematics.place(tree)
    sorts, batches, data = batches_of(groups, records)
    results: dict[str, list[Scalar]] = {
        "pairs": [x for s, pair in enumerate(pairs) for x in _entries(tree, pair, change[6 * s : 6 * s + 6], moves)],
        "reach": [_reach([records[k] for k in group]) for group in groups],
        "apart": [_apart(pair, records[group[0]].contact) for pair, group in zip(pairs, groups, strict=True)],
        "scales": [x for i in tree.records for _, pivot, _ in reversed(i.pivots) for x in (sqrt(pivot.inverse),)],
        "bodies": bodies,
        "data": data or [0.0],
        **_loops(tree, answers),
        "wrenches": [0.0] * len(given["wrenches"]),
    }
    early = [Array(name, (len(x),)) for name, x in results.items()]
    turned = contact.of_accelerations(tree, units, dqd)
    results |= {CHANGE: dqd, "turned": turned} | ends
    late = [Array(name, (len(results[name]),)) for name in (CHANGE, "turned", *ends)]
    whole = Program.of_trace("contact", inputs, [*early, *late], trace, [results[a.name] for a in (*early, *late)])
    names = [a.name for a in early], [CHANGE, "turned"], list(ends)
    moving, pushing, ending = map(limb_by_limb, in_stages(whole, *names))
    laws = [_laws(sort, moves, sorts) for sort in sorts]
    return ManyContacts(
        moving,
        pushing,
        ending,
        tuple(x for x, _ in laws),
        tuple(x for _, x in laws),
        {n: _carrying(n) for n in sorted({n for chains in paths for path in chains for n in path.pivots})},
        _inputs(moves),
        _record(moves, sorts),
        tuple(sorts),
        tuple(batches),
        tuple(paths),
        count,
        REST[dtype] * ContactNumbers.of(mechanism).speed,
    )


def _total(tree: Tree, pairs: list[contact.Pair], wrenches: list[Scalar], each: int) -> Row:
    """Return a row whose unit multiplier acts as all impulses together, given as wrenches on the bodies of pairs."""
    acting = []
    for s, pair in enumerate(pairs):
        mine = wrenches[each * s : each * (s + 1)]
        ends = ((pair.chain_b, pair.b.record, mine[:6]), (pair.chain_a, pair.a.record, mine[6:]))
        ends = [x for x in ends if x[2] and x[1] is not tree.ground]
        acting += [(chain, tip, Wrench(vector_of(x), vector_of(x, 3))) for chain, tip, x in ends]
    return Row(0.0, 0.0, 0.0, tuple(acting))


def _entries(tree: Tree, pair: contact.Pair, change: list[Scalar], moves: bool) -> list[Scalar]:
    """Return the numbers of a pair, as the Programs of sorts take them."""
    frame = []
    if moves:
        frame = [*(x for row in pair.a.A.E.matrix() for x in row), *pair.a.A.offset]
        frame += contact.gravity_at(tree, pair.a) if pair.a.record is not tree.ground else ZERO
    return [*pair.entries(), *change, *frame]


def _reach(records: list[Scalar]) -> Scalar:
    """Return the largest distance of a feature from the origin of its body, with its radius."""
    sizes = [
        _length(add(x.b.r, times(x.b.R, f.at))) + _length(f.half) + f.radius
        for x in records
        for f in contact_kinds.features_of(x.contact)
    ]
    return maximum(*sizes)


def _apart(pair: contact.Pair, laws: Any) -> Scalar:
    """Return the distance of the origin of a body from a ball about the solid of a pair; far below zero for others."""
    kind, size = laws.surface.kind, laws.surface.size
    if kind not in contact_kinds.SOLIDS:
        return -FAR
    return _length(pair.motion.r) - (0.5 * _length(size) if kind == "box" else sum(size))


def _length(r: Sequence[Scalar]) -> Scalar:
    square = sum((x * x for x in r), start=0.0)
    return square**0.5 if is_number(square) else sqrt(square)


def _bodies(tree: Tree, pairs: list[contact.Pair]) -> tuple[list[Scalar], list[tuple[Path, ...]]]:
    """Return the numbers of all bodies that carry the wrenches of contacts, and the paths of each pair."""
    numbers: list[Scalar] = []
    places: dict[int, int] = {}
    paths = []
    for pair in pairs:
        chains = []
        for tip in (pair.b.record, pair.a.record):
            path = list(_inward(tree, tip))
            for i in path:
                if id(i) not in places:
                    places[id(i)] = len(numbers)
                    numbers += [x for row in i.A.E.matrix() for x in row] + list(i.A.offset)
                    numbers += [x for p, pivot, _ in i.pivots for x in (*p.entries(), *pivot.psi.entries())]
            chains.append(
                Path(
                    tuple(places[id(i)] for i in path),
                    tuple(len(i.pivots) for i in path),
                    tuple(max(i.labels, default=0) for i in path),
                )
            )
        paths.append(tuple(x for x in chains if x.places))
    return numbers, paths


def _inward(tree: Tree, tip: Any) -> Iterator[Scalar]:
    """Yield a body and its ancestors."""
    while tip is not tree.ground:
        yield tip
        tip = tip.parent


def _loops(tree: Tree, answers: contact.Answers) -> dict[str, list[Scalar]]:
    """Return the pulls of the equations of loops, times D^-1/2, and the inverse of their W; nothing without loops."""
    kept, pulls = answers.pulls.kept, answers.pulls
    if not kept:
        return {}
    found = {}
    for i in tree.records:
        for label, (_, pivot, _), y in zip(reversed(i.labels), i.pivots, i.pulls, strict=True):
            found |= {(k, label): y[k] * sqrt(pivot.inverse) for k in kept if k in y}
    factors, n = pulls.factors(), len(kept)
    inverse = [factors.solve([1.0 if k == m else 0.0 for k in range(n)]) for m in range(n)]
    return {
        "loops": [found.get((k, label), 0.0) for k in kept for label in range(tree.nv)],
        "answers": [x for row in inverse for x in row],
    }


def _inputs(moves: bool) -> tuple[Array, ...]:
    """Return the inputs of the Programs of sorts; `size` is the largest velocity of a contact."""
    return *sort_inputs(moves=moves), Array("h", (1,)), Array("dt", (1,)), Array("size", (1,))


def _record(moves: bool, sorts: Sequence[Sort]) -> tuple[Array, ...]:
    """Return the numbers of the equations of a contact: its part of the cone problem, and its unit wrenches.

    The wrenches act on the body and, if surfaces move, on the body of the surface, in the working frames of both.
    """
    sizes = [("b", 3), ("bound", 1), ("friction", 1)]
    elastic, poisson = any(x.elastic for x in sorts), any(x.law == "poisson" for x in sorts)
    sizes += [("bounce", 1), ("arrival", 3)] if elastic or poisson else []
    sizes += [("expansion", 1), ("hits", 1)] if poisson else []
    sizes += [("wrenches", 36 if moves else 18)]
    return tuple(Array(name, (size,)) for name, size in sizes)


@dataclass(frozen=True)
class _Restitution:
    law: str
    restitution: Scalar


def _laws(sort: Sort, moves: bool, sorts: Sequence[Sort]) -> tuple[Program, Program]:
    """Return the two Programs of a sort."""
    trace, inputs, record = Trace(), _inputs(moves), _record(moves, sorts)
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    laws = _Restitution(sort.law, given["restitution"][0] if sort.elastic else 0.0)
    met, equations = [], []
    for x in touches_of(sort, given, moves=moves):
        velocity, change = [row.rate for row in x.rows], x.changes
        met += [x.gap, *velocity, *change]
        (h,), (dt,), (size,) = given["h"], given["dt"], given["size"]
        pull = h * absolute(dot(vector_of(given["pair"], GRAVITY), x.axes[0])) if sort.carried else 0.0
        found = allowance(laws, x.gap, velocity, change, size, h, dt, pull)
        on_b = [y for row in x.rows for y in row.wrenches[1][2].entries()]
        on_a = [y for row in x.rows for y in row.wrenches[0][2].entries()] if moves else []
        parts = {
            "b": [found.free, velocity[1] + change[1], velocity[2] + change[2]],
            "bound": [found.bound],
            "friction": given["friction"],
            "bounce": [found.leaving],
            "arrival": [found.arrival if any(y.law == "poisson" for y in sorts) else velocity[0], *velocity[1:]],
            "expansion": [found.expansion],
            "hits": [where(found.hits, 1.0, 0.0)],
            "wrenches": [*on_b, *on_a],
        }
        equations += [y for a in record for y in parts[a.name]]
    number = sorts.index(sort)
    touching = Program.of_trace(f"touching{number}", inputs, [Array("met", (len(met),))], trace, [met])
    allowing = Program.of_trace(f"allowing{number}", inputs, [Array("found", (len(equations),))], trace, [equations])
    return limb_by_limb(touching), limb_by_limb(allowing)


def _carrying(pivots: int) -> Program:
    """Return (wrenches [3, 6], body) -> (pulls [pivots, 3], wrenches on the parent [3, 6])."""
    trace, inputs = Trace(), (Array("wrenches", (18,)), Array("body", (BODY + PIVOT * pivots,)))
    given, body = ([trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs))
    A = Propagation(vector_of(body, 9), Rotation((Full(matrix_of(body)),)))
    columns, psi = [], []
    for d in range(pivots):
        p = body[BODY + PIVOT * d : BODY + PIVOT * (d + 1)]
        columns.append(Twist(vector_of(p), vector_of(p, 3)))
        psi.append(Wrench(vector_of(p, 6), vector_of(p, 9)))
    found = [
        closed.pulled(Wrench(vector_of(given, 6 * j), vector_of(given, 6 * j + 3)), A, columns, psi) for j in range(3)
    ]
    pulls = [found[j][0][d] for d in range(pivots) for j in range(3)]
    onward = [x for _, w in found for x in w.entries()]
    outputs = [Array("pulls", (len(pulls),))] if pulls else []
    results = [pulls] if pulls else []
    return Program.of_trace(f"carrying{pivots}", inputs, [*outputs, Array("onward", (18,))], trace, [*results, onward])
