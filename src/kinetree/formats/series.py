"""What writers of other programs' formats share: joints in series instead of joints of several axes, and the losses.

A writer reports what its format has no place for. Parts that act on the motion get an entry of their own group, so that
`kt.save` can warn of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .. import joints as joint_kinds
from ..algebra.scalars import Scalar
from ..algebra.vectors import transpose
from ..errors import ModelError
from ..joints.protocol import ROTATION
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import plain_number
from ..model.part_fields import free_name
from ..model.parts import GROUND, Coupling, Joint, Limits, Placement
from .report import Group, Report

ACTING = "parts act on the motion and are left out"
"""The group of losses without which the written mechanism moves in another way."""
SINGLE = {ROTATION: "revolute", "translation": "prismatic"}
EARTH = (0.0, 0.0, -9.81)
"""The gravity that readers assume where a format has none [m/s^2]."""


@dataclass(frozen=True)
class Series:
    """Joints in series that replace a joint of several axes, with the couplings between them."""

    joints: tuple[Joint, ...]
    couplings: tuple[Coupling, ...] = ()


def in_series(joint: Joint, kept: Container[str], taken: set[str], report: Report, what: str) -> Series:
    """Return a joint as joints of the kinds in `kept`, with placement and parent on the first one.

    All but the last are without a child: the caller puts massless bodies between them, or none. The coordinates are the
    same in the same order, except those of quaternions. Raises ModelError for joints without a place in space.
    """
    if joint.kind in kept:
        return Series((joint,))
    kind, given = joint_kinds.kind(joint.kind), joint
    if kind.ANGLES and joint.kind not in kept:
        joint = replace(joint, kind=kind.ANGLES, damping=(), friction=(), armature=(), limits=Limits())
        report.changed(f"joint {given.name!r} ({given.kind}) becomes single joints by angles: other coordinates")
        if any(map(any, (given.damping, given.friction, given.armature))):
            report_acting(report, f"damping, friction or armature of the {given.kind} joint {given.name!r}")
        kind = joint_kinds.kind(joint.kind)
    axis = transpose(kind.frame(joint))[2]
    if "pitch" in kind.DATA:
        slide = free_name(f"{joint.name}_advance", taken)
        report.changed(f"joint {joint.name!r} ({joint.kind}) becomes a revolute and a prismatic joint, and a coupling")
        turn = replace(joint, kind="revolute", axis=axis, pitch=0.0)
        advance = Joint(slide, "prismatic", "", joint.child, axis=axis)
        return Series((turn, advance), (Coupling(slide, slide, ((joint.name, joint.pitch),)),))
    steps = kind.steps(joint)
    if not steps:
        raise ModelError(
            f"joint {joint.name!r} is of the kind {joint.kind}, for which {what} has no place",
            remedy="write it as .toml, which has a place for every part",
        )
    if joint.kind == given.kind:
        report.changed(
            f"joint {joint.name!r} ({joint.kind}) becomes {len(steps)} single joints of the same coordinates"
        )
    names = [free_name(f"{joint.name}_{x}", taken) for x in kind.NAMES[0]]
    return Series(
        tuple(
            Joint(
                name,
                SINGLE[sort],
                joint.parent if k == 0 else "",
                joint.child if k == len(steps) - 1 else "",
                joint.placement if k == 0 else Placement(),
                direction,
                limits=Limits(
                    *(_entry(getattr(joint.limits, end), k) for end in ("lower", "upper", "velocity", "effort"))
                ),
                damping=_entry(joint.damping, k),
                friction=_entry(joint.friction, k),
                armature=_entry(joint.armature, k),
            )
            for k, (name, (sort, direction)) in enumerate(zip(names, steps, strict=True))
        )
    )


def _entry(numbers: Sequence[Scalar], k: int) -> tuple:
    return tuple(numbers[k : k + 1])


def report_acting(report: Report, part: str) -> None:
    """Report a part that acts on the motion and is left out."""
    report.dropped(f"{part}, which acts on the motion", group=Group(ACTING, part))


def acting_losses(report: Report) -> list[str]:
    """Return the parts that act on the motion and are left out."""
    return [e.group.part for e in report.entries if e.group is not None and e.group.text == ACTING]


def report_losses(m: Mechanism, report: Report, held: Collection[str], *, what: str) -> None:
    """Report all parts for which a format has no place, except those of the sorts in `held`."""
    if flexible := [b.name for b in m.bodies if b.flexible is not None]:
        raise ModelError(
            f"{m.name} has flexible bodies ({', '.join(flexible[:5])}), for which {what} has no place",
            remedy="write it as .toml, which has a place for every part",
        )
    acting = {
        "force": [f"{f.kind} {f.name!r}" for f in m.forces],
        "loop": [f"{x.kind} loop {x.name!r}" for x in m.loops],
        "coupling": [f"coupling {c.name!r}" for c in m.couplings],
        "armature": [f"armature of joint {j.name!r}" for j in m.joints if any(j.armature)],
        "motor": [f"motor {motor.name!r}" for motor in m.motors],
        "actuator": [f"actuator {a.name!r}" for a in m.actuators],
        "contact": [f"contact {c.name!r}" for c in m.contacts],
    }
    for sort, parts in acting.items():
        for part in parts if sort not in held else ():
            report_acting(report, part)
    gravity = [float(x) for x in resolve_parts(m.gravity, {p.name: p.value for p in m.parameters})]
    if "gravity" not in held and tuple(gravity) != EARTH:
        report_acting(report, f"gravity {' '.join(f'{x:g}' for x in gravity)} m/s^2")
    if m.parameters:
        report.changed(f"{len(m.parameters)} parameters are written at their values")
    if m.guess and "guess" not in held:
        report.dropped("the guess of an assembled position")
    if m.keyframes and "keyframe" not in held:
        report.dropped(f"{len(m.keyframes)} keyframes")


def linear_couplings(
    couplings: Iterable[Coupling], report: Report, *, single: bool = False
) -> Iterator[tuple[Coupling, str, float]]:
    """Yield couplings of two joints with the other joint and the ratio; those of other forms are reported.

    With `single`, a joint follows by one coupling, and its further ones are reported too.
    """
    followers: set[str] = set()
    for coupling in couplings:
        if single and coupling.joint in followers:
            report_acting(report, f"coupling {coupling.name!r}, the second one of joint {coupling.joint!r}")
        elif coupling.law is None and len(coupling.terms) == 1:
            ((other, ratio),) = coupling.terms
            followers.add(coupling.joint)
            yield coupling, other, plain_number(ratio)
        else:
            report_acting(report, f"coupling {coupling.name!r}, which is not of two joints and linear")


def ends(limit: Sequence[Scalar], other: float) -> float:
    """Return the single number of a limit, or another one where there is none."""
    return float(limit[0]) if len(limit) and math.isfinite(float(limit[0])) else other


def commented(text: str, report: Report) -> str:
    """Return XML with a comment below its first line that lists what is left out or changed."""
    lost = [entry.text for sort in ("dropped", "changed") for entry in report.of(sort)]
    if not lost:
        return text
    head, body = text.split("\n", 1)
    notes = re.sub("-(?=-)", "- ", "\n".join(f"  {line}" for line in lost))
    return f"{head}\n<!-- Not in this file, or other than in Kinetree:\n{notes}\n-->\n{body}"


def ground_name(m: Mechanism) -> str:
    """Return a name for the ground that no body or frame has."""
    taken = {b.name for b in m.bodies} | {f.name for f in m.frames} - {GROUND}
    return free_name("world", taken)
