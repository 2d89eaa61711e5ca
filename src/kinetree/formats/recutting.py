"""A closed mechanism with one of its loops cut at another joint of the same ring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import InputError, unknown_name
from ..model import Loop, Mechanism, Pair
from ..model.pairs import can_be_cut, pair_of
from ..model.topology import cut_joints
from .pairs import mechanism_from_pairs
from .report import Report


def recut(mechanism: Mechanism, loop: str, joint: str, guess: dict[str, Any] | None = None) -> tuple[Mechanism, Report]:
    """Return the mechanism with a `joint` cut in place of a `loop`, which becomes a joint, and a report of the change.

    Joint and loop must be of the same ring. `guess` has positions of joints near a closed position, by default those
    of the mechanism; the cut loop counts as a joint of its kind, which displaces frame b from frame a.
    """
    m = mechanism
    rings = dict(cut_joints(m))
    if loop not in rings:
        raise unknown_name("loop", loop, rings)
    ring = [m.joints[i].name for i in rings[loop]]
    if joint not in ring:
        raise unknown_name(f"joint of the ring of {loop!r}", joint, ring)
    own = next(x for x in m.loops if x.name == loop)
    closing = _pair(own)
    if not can_be_cut(pair_of(m.joint(joint))):
        raise InputError(f"{joint!r} is a {m.joint(joint).kind} joint, which has no loop of its kind; cut another one")
    pairs = [replace(pair_of(j), cut=j.name == joint) for j in m.joints]
    known = {j.name for j in m.joints} | {loop}
    start = {name: x for name, x in (dict(m.guess) if guess is None else guess).items() if name in known - {joint}}
    return mechanism_from_pairs(
        m.name, m.bodies, [*pairs, closing], frames=m.frames, loops=[x for x in m.loops if x.name != loop],
        couplings=m.couplings, forces=m.forces, gravity=m.gravity, parameters=m.parameters, scenery=m.scenery,
        source=m.source, description=m.description, guess=start,
    )  # fmt: skip


def _pair(loop: Loop) -> Pair:
    """Return a cut joint as a pair that stays in the tree."""
    data: dict[str, Any] = {"axis": loop.axis, "axis2": loop.axis2, "pitch": loop.pitch}
    try:
        found = Pair(loop.name, loop.kind, loop.body_a, loop.body_b, loop.placement_a, loop.placement_b, **data)
        cuttable = can_be_cut(found)
    except (KeyError, InputError):
        cuttable, found = False, None
    if not cuttable or found is None:
        raise InputError(f"loop {loop.name!r} is a {loop.kind}, which is no joint; it can only close a loop")
    return replace(found, cut=False)
