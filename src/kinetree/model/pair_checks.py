"""Checks of pairs before a tree is chosen: names, bodies, kinds, springs; and whether all bodies are connected."""

from __future__ import annotations

from collections.abc import Sequence

from .. import joints as joint_kinds
from ..errors import ModelError, below, brief, part_at, unknown_name
from .force_checks import JOINT_SPRING
from .pairs import can_be_cut
from .parts import GROUND, Body, ForceElement, Pair
from .spanning import Spanning

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
