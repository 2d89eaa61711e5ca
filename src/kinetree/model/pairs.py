"""The joint or loop that a pair becomes: along its direction, reversed, or cut."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from .._support.tables import count_text
from ..algebra.scalars import is_number
from ..errors import ModelError, at, below, brief, part_at, unknown_name
from .checks import JOINT_SPRING
from .parts import GROUND, Body, Coupling, ForceElement, Joint, Limits, Loop, Pair, Placement

CARRIED = ("limits", "damping", "friction", "armature", "elastic")
"""Data of a joint that a loop does not have."""


def equations(pair: Pair) -> int:
    """Return the number of equations of the loop that a pair becomes if it is cut."""
    return 6 - joint_kinds.kind(pair.kind).NV


def can_be_cut(pair: Pair) -> bool:
    """Return whether a loop of the pair's kind exists."""
    return pair.kind in loop_kinds.KINDS and loop_kinds.KINDS[pair.kind].joint


def pair_only_data(pair: Pair) -> tuple[str, ...]:
    """Return the names of a pair's data that a loop would not have."""
    return tuple(name for name in CARRIED if getattr(pair, name) not in ((), Limits(), None))


def pair_of(joint: Joint) -> Pair:
    """Return the pair of a joint of a tree, which must not be cut."""
    return Pair(
        joint.name, joint.kind, joint.parent, joint.child, joint.placement, joint.child_placement or Placement(),
        joint.axis, joint.axis2, joint.pitch, joint.sequence, joint.limits, joint.damping, joint.friction,
        joint.armature, cut=False, ratio=joint.ratio, elastic=joint.elastic,
    )  # fmt: skip


def joint_of(pair: Pair) -> Joint:
    """Return the joint that carries body_b on body_a."""
    return Joint(
        pair.name, pair.kind, pair.body_a, pair.body_b, pair.placement_a, pair.axis, pair.axis2, pair.pitch,
        pair.sequence, pair.limits, pair.damping, pair.friction, pair.armature, child_placement=pair.placement_b,
        ratio=pair.ratio, elastic=pair.elastic,
    )  # fmt: skip


def loop_of(pair: Pair) -> Loop:
    """Return the loop of a pair that is cut."""
    used = loop_kinds.KINDS[pair.kind].data
    data = {key: getattr(pair, key) for key in ("axis", "axis2", "pitch") if key in used}
    return Loop(pair.name, pair.kind, pair.body_a, pair.body_b, pair.placement_a, pair.placement_b, **data)


def reversal_of(pair: Pair) -> joint_kinds.Reversal:
    """Return the reversal of a pair, or refuse one that cannot be traversed from body_b to body_a."""
    where = part_at("pair", pair.name)
    numbers = (*pair.axis, *(pair.axis2 or ()))
    if "axis2" in joint_kinds.kind(pair.kind).DATA and pair.axis2 is None and not all(map(is_number, numbers)):
        raise ModelError("its axis depends on a parameter", where=where, remedy="give axis2 as well")
    reverse = getattr(joint_kinds.kind(pair.kind), "reverse", None)  # kinds from outside need not have it
    found = reverse(pair) if reverse else None
    if found is not None and not (found.mixed and pair_only_data(pair)):
        return found
    cause = f"its {pair_only_data(pair)[0]} would differ" if found else f"a {pair.kind} joint has no reverse"
    raise ModelError(
        f"the tree leads from {pair.body_b!r} to {pair.body_a!r}, and {cause}",
        where=below(where, "body_a"),
        remedy="exchange body_a and body_b, with their placements, or mark another pair of the ring with cut = true",
    )


def reversed_joint_of(pair: Pair) -> Joint:
    """Return the joint that carries body_a on body_b, with the same motions as the pair."""
    found, limits = reversal_of(pair), pair.limits
    bounds = limits.lower, limits.upper
    if found.sign < 0:
        bounds = _opposite(limits.upper), _opposite(limits.lower)
    turned = Limits(*map(found.order, (*bounds, limits.velocity, limits.effort)))
    return replace(
        joint_of(pair),
        parent=pair.body_b,
        child=pair.body_a,
        placement=pair.placement_b,
        child_placement=pair.placement_a,
        limits=turned,
        **{key: found.order(getattr(pair, key)) for key in ("damping", "friction", "armature")},
        **found.data,
    )


def _opposite(numbers: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(-x for x in numbers)


# --- A list of bodies and pairs turned into a tree of joints and loops: which pairs are cut, and why ---
#
# A pair stays in the tree if it is marked so, if no loop of its kind exists, or if it has data that a loop does not
# have: limits, damping, friction, armature, a coupling, a joint spring. Pairs of bodies without mass stay if
# possible, because such a body at the end of a branch has no acceleration of its own. Of the others, those are cut
# whose loops have the fewest equations, such as spherical pairs before revolute ones; of equals, those without a
# guess, then those that leave a shallow tree.

# --- Spanning tree of a graph of bodies: the heaviest one, and among equals a shallow one ---


@dataclass(frozen=True)
class Edge:
    """A connection of two nodes; the tree prefers edges of large weight, which may be any value that has an order."""

    a: str
    b: str
    weight: Any


@dataclass(frozen=True)
class Spanning:
    """A spanning tree: the edge that carries each node, the node before it, and the number of edges to the root."""

    carrier: dict[str, int]
    parent: dict[str, str]
    depth: dict[str, int]

    def ring(self, edge: Edge) -> tuple[list[str], list[int]]:
        """Return the nodes from a to b in the tree, and the edges between them: a ring with an edge that is cut."""
        left, right = [edge.a], [edge.b]
        while left[-1] != right[-1]:
            side = left if self.depth[left[-1]] >= self.depth[right[-1]] else right
            side.append(self.parent[side[-1]])
        nodes = left + right[-2::-1]
        edges = [self.carrier[n] for n in left[:-1]] + [self.carrier[n] for n in reversed(right[:-1])]
        return nodes, edges


def heaviest_tree(root: str, edges: Sequence[Edge]) -> Spanning:
    """Return the spanning tree of the greatest total weight of all nodes that the edges connect to the root.

    It grows from the root by the heaviest edge that leaves it (Prim's algorithm); of equal ones by the one that starts
    at the smallest depth, then by the first in the given order. So the result depends on nothing but the input.
    """
    around: dict[str, list[int]] = {}
    for k, edge in enumerate(edges):
        around.setdefault(edge.a, []).append(k)
        around.setdefault(edge.b, []).append(k)
    ranks = {w: r for r, w in enumerate(sorted({e.weight for e in edges}, reverse=True))}
    carrier: dict[str, int] = {}
    parent: dict[str, str] = {}
    depth = {root: 0}
    waiting = [(ranks[edges[k].weight], 0, k, root) for k in around.get(root, ())]
    heapq.heapify(waiting)
    while waiting:
        _, _, k, node = heapq.heappop(waiting)
        new = edges[k].b if edges[k].a == node else edges[k].a
        if new in depth:
            continue
        carrier[new], parent[new], depth[new] = k, node, depth[node] + 1
        for j in around[new]:
            heapq.heappush(waiting, (ranks[edges[j].weight], depth[new], j, new))
    return Spanning(carrier, parent, depth)


# --- Checks of pairs before a tree is chosen: names, bodies, kinds, springs; and whether all bodies are connected.

LISTED = 10
"""Most names in one message."""


def check_pairs(bodies: Sequence[Body], pairs: Sequence[Pair]) -> None:
    """Refuse unknown bodies and kinds, names used twice, pairs of a body with itself, and cuts without a loop kind."""
    known, seen = [*(b.name for b in bodies), GROUND], set()
    members = set(known)
    if len(members) < len(known):
        name = next(name for k, name in enumerate(known) if name in known[:k])
        raise ModelError(
            f"the body name {name!r} is used twice", remedy="rename one of them", path=("body", name, "name")
        )
    for pair in pairs:
        where = part_at("pair", pair.name)
        for key in ("body_a", "body_b"):
            if getattr(pair, key) not in members:
                raise unknown_name("body", getattr(pair, key), known, where=below(where, key))
        if pair.name in seen:
            raise ModelError(f"the pair name {pair.name!r} is used twice", where=where, remedy="rename one of them")
        seen.add(pair.name)
        if pair.body_a == pair.body_b:
            raise ModelError(
                f"both bodies are {pair.body_a!r}", where=below(where, "body_b"), remedy="name two different bodies"
            )
        if pair.cut not in (None, True, False):
            raise ModelError(
                f"cut is {brief(pair.cut)}", where=where, remedy="give True, False, or None to let it be chosen"
            )
        joint_kinds.kind(pair.kind, where=below(where, "kind"))
        if pair.cut and not can_be_cut(pair):
            raise ModelError(
                f"a {pair.kind} pair cannot be cut: there is no such loop",
                where=below(where, "cut"),
                remedy="leave cut out; a pair without constraints may be removed",
            )


def spring_pairs(pairs: Sequence[Pair], forces: Sequence[ForceElement]) -> dict[str, Pair]:
    """Return the pair of each joint spring, by the name of the spring."""
    between: dict[frozenset[str], list[Pair]] = {}
    for pair in pairs:
        between.setdefault(frozenset((pair.body_a, pair.body_b)), []).append(pair)
    out = {}
    for spring in forces:
        if spring.kind != JOINT_SPRING:
            continue
        found = between.get(frozenset((spring.body_a, spring.body_b)), [])
        found = [p for p in found if not p.cut] or found
        if len(found) != 1 or found[0].cut:
            count = "no pair that stays in the tree connects" if len(found) < 2 else f"{len(found)} pairs connect"
            raise ModelError(
                f"{count} {spring.body_a!r} and {spring.body_b!r}",
                where=part_at("force", spring.name),
                remedy="a joint spring needs one such pair; mark others between the two bodies with cut = true",
            )
        out[spring.name] = found[0]
    return out


def check_connected(bodies: Sequence[Body], pairs: Sequence[Pair], tree: Spanning) -> None:
    """Refuse bodies that the tree does not reach from the ground."""
    loose = [b.name for b in bodies if b.name not in tree.depth]
    if not loose:
        return
    lost = set(loose)
    marked = [p.name for p in pairs if p.cut and ((p.body_a in lost) != (p.body_b in lost))]
    what = f"no pairs connect {_named(loose)} to the ground"
    if marked:
        what = f"only pairs that are marked as cut, {_named(marked)}, connect {_named(loose)} to the ground"
    raise ModelError(
        what,
        remedy="remove cut = true from one of them" if marked else "add a pair; one of kind free lets the bodies float",
        path=("body", loose[0], "name"),
    )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more


@dataclass(frozen=True)
class Cut:
    """A pair that became a loop: the bodies of its ring, the number of equations, the reason, and the data lost."""

    name: str
    ring: tuple[str, ...]
    equations: int
    reason: str
    lost: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a sentence."""
        around = " - ".join(self.ring) if len(self.ring) <= LISTED else f"{len(self.ring)} bodies"
        return f"pair {self.name!r} is cut in the ring {around}: {self.reason}"


@dataclass(frozen=True)
class Opened:
    """A tree and its loops: joints, loops, forces and guess for `build_mechanism`, the cuts, and the pairs reversed."""

    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...]
    forces: tuple[ForceElement, ...]
    guess: tuple[tuple[str, Any], ...]
    cuts: tuple[Cut, ...]
    reversed: tuple[str, ...]
    unused: tuple[str, ...]


def open_rings(
    bodies: Sequence[Body],
    pairs: Sequence[Pair],
    *,
    couplings: Iterable[Coupling] = (),
    forces: Sequence[ForceElement] = (),
    guess: Sequence[tuple[str, object]] = (),
) -> Opened:
    """Return the tree and loops of pairs. Joint springs, couplings and guesses are in the coordinates of the pairs."""
    check_pairs(bodies, pairs)
    springs = spring_pairs(pairs, forces)
    held = _held(pairs, couplings, springs)
    guessed, known = {name for name, _ in guess}, [p.name for p in pairs]
    for name, _ in guess:
        if name not in known:
            raise unknown_name("pair", name, known, where=at("guess"))
    inner = [p for p in pairs if not p.cut]
    light = {b.name for b in bodies if _massless(b)}
    weights = [(p.name in held, bool(light & {p.body_a, p.body_b}), equations(p), p.name in guessed) for p in inner]
    edges = [Edge(p.body_a, p.body_b, weight) for p, weight in zip(inner, weights, strict=True)]
    tree = heaviest_tree(GROUND, edges)
    check_connected(bodies, pairs, tree)
    kept = set(tree.carrier.values())
    child = {inner[k].name: body for body, k in tree.carrier.items()}
    cuts = [_cut(p, tree, inner, held) for k, p in enumerate(inner) if k not in kept]
    cuts += [_marked(p, tree) for p in pairs if p.cut]
    names = {cut.name for cut in cuts}
    back = [p for p in pairs if child.get(p.name) == p.body_a]
    turned = {p.name for p in back}
    order = {p.name: k for k, p in enumerate(pairs)}
    return Opened(
        tuple(reversed_joint_of(p) if p.name in turned else joint_of(p) for p in pairs if p.name not in names),
        tuple(loop_of(p) for p in pairs if p.name in names),
        tuple(_spring(x, springs[x.name], turned) if x.name in springs else x for x in forces),
        _guess(guess, back, names),
        tuple(sorted(cuts, key=lambda cut: order[cut.name])),
        tuple(p.name for p in back),
        tuple(name for name, _ in guess if name in names),
    )


def _massless(body: Body) -> bool:
    return all(is_number(x) and x == 0 for x in (body.mass, *body.inertia))


def _held(pairs: Sequence[Pair], couplings: Iterable[Coupling], springs: Mapping[str, Pair]) -> dict[str, str]:
    """Return the pairs that must stay in the tree, each with the reason."""
    coupled = {name: c.name for c in couplings for name in (c.joint, *(term[0] for term in c.terms))}
    sprung = {pair.name: spring for spring, pair in springs.items()}
    held = {}
    for pair in pairs:
        if pair.name in coupled and pair.cut:
            raise ModelError(
                f"it is cut, but coupling {coupled[pair.name]!r} needs its coordinate",
                where=below(part_at("pair", pair.name), "cut"),
                remedy="cut another pair of the ring",
            )
        reasons = {
            "cut = false": pair.cut is False,
            f"no {pair.kind} loop exists": not can_be_cut(pair),
            f"coupling {coupled.get(pair.name)!r}": pair.name in coupled,
            f"joint spring {sprung.get(pair.name)!r}": pair.name in sprung,
            " and ".join(pair_only_data(pair)): bool(pair_only_data(pair)),
        }
        reason = next((reason for reason, holds in reasons.items() if holds), None)
        if reason and not pair.cut:
            held[pair.name] = reason
    return held


def _cut(pair: Pair, tree: Spanning, inner: Sequence[Pair], held: Mapping[str, str]) -> Cut:
    """Return the cut of a pair outside the tree with its reason, or refuse a ring in which none may be cut."""
    nodes, edges = tree.ring(Edge(pair.body_a, pair.body_b, None))
    ring = [inner[e] for e in edges]
    if pair.name in held:
        reasons = ", ".join(f"{p.name!r} ({held[p.name]})" for p in [*ring, pair][:LISTED])
        raise ModelError(
            f"{'all' if len(ring) < LISTED else 'these and more'} pairs of a ring must stay in the tree: {reasons}",
            where=part_at("pair", pair.name),
            remedy="mark one with cut = true; a loop has no limits, damping, friction or armature",
        )
    rivals = [p for p in ring if p.name not in held]
    count = count_text(equations(pair), "equation")
    if not rivals:
        reason = f"{count}; no other pair of it may be cut"
    elif any(equations(p) < equations(pair) for p in rivals):
        reason = f"{count}; those with fewer connect a body without mass, which must not end a branch"
    elif all(equations(p) > equations(pair) for p in rivals):
        reason = f"{count}; every other pair of it that may be cut gives more"
    else:
        depths = f"{tree.depth[pair.body_a]} and {tree.depth[pair.body_b]}"
        reason = f"{count}; no other pair of it gives fewer; its bodies have the depths {depths} in the tree"
    kept = [f"{p.name!r} ({held[p.name]})" for p in ring if p.name in held]
    if kept:
        reason += f"; must stay: {', '.join(kept[:LISTED])}"
    return Cut(pair.name, tuple(nodes), equations(pair), reason)


def _marked(pair: Pair, tree: Spanning) -> Cut:
    nodes, _ = tree.ring(Edge(pair.body_a, pair.body_b, None))
    return Cut(pair.name, tuple(nodes), equations(pair), f"marked; {equations(pair)} equations", pair_only_data(pair))


def _spring(spring: ForceElement, pair: Pair, turned: set[str]) -> ForceElement:
    """Return a joint spring from parent to child, with its coefficients in the coordinates of the joint."""
    if pair.name not in turned:
        return replace(spring, body_a=pair.body_a, body_b=pair.body_b)
    found = reversal_of(pair)
    if found.mixed:
        raise ModelError(
            f"the tree leads from {pair.body_b!r} to {pair.body_a!r}, and a {pair.kind} spring has no reverse",
            where=part_at("force", spring.name),
            remedy="exchange body_a and body_b of the pair",
        )
    count = joint_kinds.kind(pair.kind).NV
    renamed = dict(zip(found.order(range(1, count + 1)), range(1, count + 1), strict=True))
    coefficients = []
    for name, value in spring.coefficients:
        what, _, number = name.partition("_")
        known = number.isdigit() and int(number) in renamed
        sign = found.sign if what == "rest" else 1.0
        coefficients.append((f"{what}_{renamed[int(number)]}", sign * value) if known else (name, value))
    return replace(spring, body_a=pair.body_b, body_b=pair.body_a, coefficients=tuple(coefficients))


def _guess(guess: Sequence[tuple[str, Any]], back: Sequence[Pair], cut: set[str]) -> tuple[tuple[str, Any], ...]:
    """Return the guesses of the joints of the tree in their coordinates."""
    turned = {p.name: p for p in back}
    out = []
    for name, numbers in guess:
        if name in turned and len(numbers) == joint_kinds.kind(turned[name].kind).NQ:  # others are refused later
            numbers = reversal_of(turned[name]).coordinates(numbers)
        if name not in cut:
            out.append((name, tuple(numbers)))
    return tuple(out)
