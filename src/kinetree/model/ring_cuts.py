"""A list of bodies and pairs turned into a tree of joints and loops: which pairs are cut, and why.

A pair stays in the tree if it is marked so, if no loop of its kind exists, or if it has data that a loop does not have:
limits, damping, friction, armature, a coupling, a joint spring. Pairs of bodies without mass stay if possible, because
such a body at the end of a branch has no acceleration of its own. Of the others, those are cut whose loops have the
fewest equations, such as spherical pairs before revolute ones; of equals, those without a guess, then those that leave
a shallow tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import joints as joint_kinds
from ..algebra.scalars import is_number
from ..errors import ModelError, at, below, part_at, unknown_name
from .pair_checks import LISTED, check_connected, check_pairs, spring_pairs
from .pairs import can_be_cut, carried, equations, joint_of, loop_of, reversal_of, reversed_joint_of
from .parts import GROUND, Body, Coupling, ForceElement, Joint, Loop, Pair
from .spanning import Edge, Spanning, heaviest_tree


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
    """A tree and its loops: joints, loops, forces and guess for `assemble`, the cuts, and the pairs reversed."""

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
    guess: Sequence[tuple[str, Any]] = (),
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
            " and ".join(carried(pair)): bool(carried(pair)),
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
    count = f"{equations(pair)} equation{'' if equations(pair) == 1 else 's'}"
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
    return Cut(pair.name, tuple(nodes), equations(pair), f"marked; {equations(pair)} equations", carried(pair))


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
