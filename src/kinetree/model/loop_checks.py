"""Checks of loops, couplings and guesses, run together with the checks of the tree."""

from __future__ import annotations

import math
from typing import Any

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..errors import ModelError, at, below, part_at
from ..joints._common import check_axis
from .mechanism import Mechanism
from .parts import GROUND

LEFT_OUT = {"axis2": None, "pitch": 0.0, "length": 0.0, "radius": None, "angle": None, "curve": None, "curve_b": None}
"""The default values of a loop's data, the only ones allowed for kinds that do not use them."""


MOST_PAIRS = 1600
"""The most pairs of points of two curves that touch: the code compares them all, some ten operations each."""


def loop(x: Any) -> None:
    """Refuse an unknown kind, two ends on one body, axes without direction, and data of another kind."""
    where = part_at("loop", x.name)
    kind = loop_kinds.kind(x.kind, where=below(where, "kind"))
    if x.body_a == x.body_b:
        body = "the ground" if x.body_a == GROUND else f"body {x.body_a!r}"
        raise ModelError(f"both ends are on {body}", where=below(where, "body_b"), remedy="name another body")
    for key, nothing in LEFT_OUT.items():
        if key not in kind.data and getattr(x, key) != nothing:
            users = [name for name, other in loop_kinds.KINDS.items() if key in other.data]
            raise ModelError(
                f"a {x.kind} loop has no {key}",
                where=below(where, key),
                remedy=f"leave it out, or make it a {' or '.join(users)} loop",
            )
    if not kind.joint:
        _own_data(x, kind.data, where)
    elif "axis" in kind.data:
        joint_kinds.kind(x.kind).check(x, where)
    if "length" in kind.data and not x.length > 0:
        raise ModelError(
            f"the rod is {x.length:g} m long",
            where=below(where, "length"),
            remedy="give a length above 0, or make it a spherical loop",
        )
    if "pitch" in kind.data and x.pitch == 0:
        raise ModelError(
            "the pitch is 0 m/rad", where=below(where, "pitch"), remedy="give a pitch, or make it a revolute loop"
        )


def _own_data(x: Any, data: tuple[str, ...], where: str) -> None:
    """Refuse axes without direction and missing or impossible numbers of a kind that is not a cut joint."""
    if "axis" in data:
        check_axis(x.axis, where)
    if "axis2" in data and x.axis2 is None:
        raise ModelError(
            f"a {x.kind} loop has no axis2",
            where=below(where, "axis2"),
            remedy="give the axle of the wheel, the direction of the edge, or the normal of the face, in frame b",
        )
    if "axis2" in data:
        check_axis(x.axis2, where, "axis2")
    for key in ("radius", "angle", "curve", "curve_b"):
        if key in data and getattr(x, key) is None:
            raise ModelError(f"a {x.kind} loop has no {key}", where=below(where, key), remedy=f"give its {key}")
    if "radius" in data and not x.radius > 0:
        raise ModelError(f"the radius is {x.radius:g} m", where=below(where, "radius"), remedy="give a radius above 0")
    _curves(x, where)
    if "angle" in data and not abs(x.angle) < math.pi / 2:
        raise ModelError(
            f"the rollers are at {x.angle:g} rad to the axle",
            where=below(where, "angle"),
            remedy="give an angle between -pi/2 and pi/2, such as 0.785398 for 45 degrees",
        )


def _curves(x: Any, where: str) -> None:
    """Refuse two curves with so many points that comparing each with each would take too long."""
    if x.curve is not None and x.curve_b is not None:
        counts = [len(loop_kinds.starts(curve)) for curve in (x.curve, x.curve_b)]
        if math.prod(counts) > MOST_PAIRS:
            raise ModelError(
                f"the curves have {counts[0]} and {counts[1]} points, {math.prod(counts)} pairs of them",
                where=below(where, "curve_b"),
                remedy=f"give up to {MOST_PAIRS} pairs, such as 40 points each",
            )


def couplings(mechanism: Mechanism) -> None:
    """Refuse couplings of joints that do not have exactly one coordinate, and joints that follow themselves."""
    kinds = {j.name: j.kind for j in mechanism.joints}
    leaders: dict[str, dict[str, str]] = {}
    for coupling in mechanism.couplings:
        where = part_at("coupling", coupling.name)
        for name in (coupling.joint, *(term[0] for term in coupling.terms)):
            kind = joint_kinds.kind(kinds[name])
            if (kind.NQ, kind.NV) != (1, 1):
                raise ModelError(
                    f"joint {name!r} is {kinds[name]} and has {kind.NQ} coordinates, not one",
                    where=where,
                    remedy="couple revolute, prismatic or helical joints",
                )
            if name == coupling.joint and name in (term[0] for term in coupling.terms):
                raise ModelError(f"joint {name!r} follows itself", where=where, remedy="remove that term")
        leaders.setdefault(coupling.joint, {}).update((name, coupling.name) for name, _ in coupling.terms)
    _refuse_circles(leaders)


def _refuse_circles(leaders: dict[str, dict[str, str]]) -> None:
    """Refuse joints that follow each other in a circle; `leaders` has {leader: coupling} by follower."""
    done: set[str] = set()
    for start in leaders:
        trail: dict[str, None] = {}  # the followers from the start to here, in order
        stack = [(start, iter(leaders[start]))]
        trail[start] = None
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(name)
                del trail[name]
                stack.pop()
            elif following in trail:
                circle = [*trail][[*trail].index(following) :]
                raise ModelError(
                    "joints follow each other in a circle: " + " -> ".join([*circle[:20], following]),
                    where=part_at("coupling", leaders[name][following]),
                    remedy="remove one of these couplings",
                )
            elif following in leaders and following not in done:
                trail[following] = None
                stack.append((following, iter(leaders[following])))


def guess(mechanism: Mechanism) -> None:
    """Refuse guesses that have a wrong count of numbers, are given twice, or are not finite."""
    kinds = {j.name: joint_kinds.kind(j.kind) for j in mechanism.joints}
    seen: set[str] = set()
    for name, numbers in mechanism.guess:
        where = at("guess", name)
        if name in seen:
            raise ModelError(f"joint {name!r} is guessed twice", where=where, remedy="keep one of them")
        seen.add(name)
        if len(numbers) != kinds[name].NQ:
            raise ModelError(
                f"{len(numbers)} coordinates for joint {name!r}", where=where, remedy=f"give {kinds[name].NQ}"
            )
        if not all(map(math.isfinite, numbers)):
            raise ModelError(f"the guess of joint {name!r} is not finite", where=where, remedy="give finite numbers")
