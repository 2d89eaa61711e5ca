"""The joint or loop that a pair becomes: along its direction, reversed, or cut."""

from __future__ import annotations

from dataclasses import replace

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.scalars import is_number
from ..errors import ModelError, below, part_at
from .parts import Joint, Limits, Loop, Pair, Placement

CARRIED = ("limits", "damping", "friction", "armature")
"""Data of a joint that a loop does not have."""


def equations(pair: Pair) -> int:
    """Return the number of equations of the loop that a pair becomes if it is cut."""
    return 6 - joint_kinds.kind(pair.kind).NV


def can_be_cut(pair: Pair) -> bool:
    """Return whether a loop of the pair's kind exists."""
    return pair.kind in loop_kinds.KINDS and loop_kinds.KINDS[pair.kind].joint


def pair_only_data(pair: Pair) -> tuple[str, ...]:
    """Return the names of a pair's data that a loop would not have."""
    return tuple(name for name in CARRIED if getattr(pair, name) not in ((), Limits()))


def pair_of(joint: Joint) -> Pair:
    """Return the pair of a joint of a tree, which must not be cut."""
    return Pair(
        joint.name, joint.kind, joint.parent, joint.child, joint.placement, joint.child_placement or Placement(),
        joint.axis, joint.axis2, joint.pitch, joint.sequence, joint.limits, joint.damping, joint.friction,
        joint.armature, cut=False,
    )  # fmt: skip


def joint_of(pair: Pair) -> Joint:
    """Return the joint that carries body_b on body_a."""
    return Joint(
        pair.name, pair.kind, pair.body_a, pair.body_b, pair.placement_a, pair.axis, pair.axis2, pair.pitch,
        pair.sequence, pair.limits, pair.damping, pair.friction, pair.armature, child_placement=pair.placement_b,
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
