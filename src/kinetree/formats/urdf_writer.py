"""Write a mechanism as URDF: links with inertia, joints with limits, damping and friction; frames are links as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from .. import joints as joint_kinds
from ..algebra.rotations import rpy_of
from ..algebra.scalars import Scalar
from ..errors import ModelError
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import GROUND, Frame, Joint, Placement

KINDS = {"revolute": "revolute", "prismatic": "prismatic", "fixed": "fixed", "free": "floating"}
"""The joint kinds that URDF has, by the names of Kinetree."""
UNBOUNDED = 1e9
"""A limit that URDF requires where the mechanism has none [rad, m, N, N m, and per s]."""

Written = Callable[[str, Sequence[Scalar]], str]
"""A function of numbers' place in the model, such as "bodies.2.com", and of the numbers, that returns their text."""


def write_urdf(mechanism: Mechanism) -> str:
    """Return the mechanism as URDF, at the values of its parameters; shapes and contacts are left out.

    Raises ModelError for parts that URDF has no place for and that act on the motion. Gravity is not part of URDF.
    """
    rest = {
        "couplings": mechanism.couplings,
        "force elements": mechanism.forces,
        "actuators": mechanism.actuators,
        "motors": mechanism.motors,
        "armatures": [j for j in mechanism.joints if any(j.armature)],
    }
    if lost := [what for what, parts in rest.items() if parts]:
        raise _refused(mechanism, ", ".join(lost))
    return urdf_text(mechanism, {p.name: p.value for p in mechanism.parameters}, lambda _, numbers: _text(numbers))


def urdf_template(mechanism: Mechanism, values: dict[str, Any]) -> str | None:
    """Return URDF with places such as @bodies.2.com@ instead of numbers, which the page fills; None if there is none.

    The page says what it leaves out: springs, contacts, gravity.
    """
    try:
        return urdf_text(mechanism, values, lambda place, _: f"@{place}@")
    except ModelError:
        return None


def urdf_text(mechanism: Mechanism, values: dict[str, Any], written: Written) -> str:
    """Return URDF with numbers as `written` gives them; refuse loops, and joints of other kinds."""
    if mechanism.closures or mechanism.loops:
        raise _refused(mechanism, "loops")
    if others := sorted({j.kind for j in mechanism.joints} - KINDS.keys()):
        raise _refused(mechanism, f"joints of the kinds {', '.join(others)}")
    taken = [body.name for body in mechanism.bodies]
    root = next(name for k in range(len(taken) + 1) if (name := "world" + "_" * k) not in taken)
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(mechanism.name)}>", f"  <link name={quoteattr(root)}/>"]
    for i, body in enumerate(resolve_parts(mechanism.bodies, values)):
        xx, yy, zz, xy, yz, zx = (f'"{written(f"bodies.{i}.inertia.{k}", [x])}"' for k, x in enumerate(body.inertia))
        lines += [
            f"  <link name={quoteattr(body.name)}>",
            "    <inertial>",
            f'      <origin xyz="{written(f"bodies.{i}.com", body.com)}" rpy="0 0 0"/>',
            f'      <mass value="{written(f"bodies.{i}.mass", [body.mass])}"/>',
            f"      <inertia ixx={xx} iyy={yy} izz={zz} ixy={xy} iyz={yz} ixz={zx}/>",
            "    </inertial>",
            "  </link>",
        ]
    for i, joint in enumerate(resolve_parts(mechanism.joints, values)):
        lines += _joint(joint, root, _origin(joint.placement, f"joints.{i}.placement", written))
    for k, frame in enumerate(resolve_parts(mechanism.frames, values)):
        lines += _frame(frame, root, _origin(frame.placement, f"frames.{k}.pose", written))
    return "\n".join([*lines, "</robot>", ""])


def _joint(joint: Joint, root: str, origin: str) -> Iterable[str]:
    low, high = ((float(x[0]) if len(x) else math.inf) for x in (joint.limits.lower, joint.limits.upper))
    bounded = math.isfinite(low) and math.isfinite(high)
    kind = "continuous" if joint.kind == "revolute" and not bounded else KINDS[joint.kind]
    yield f'  <joint name={quoteattr(joint.name)} type="{kind}">'
    yield f"    {origin}"
    yield f"    <parent link={quoteattr(root if joint.parent == GROUND else joint.parent)}/>"
    yield f"    <child link={quoteattr(joint.child)}/>"
    if joint.kind in ("revolute", "prismatic"):
        axis = [float(row[2]) for row in joint_kinds.kind(joint.kind).frame(joint)]
        most = f'effort="{_bound(joint.limits.effort)}" velocity="{_bound(joint.limits.velocity)}"'
        ends = f'lower="{_finite(low, -UNBOUNDED)}" upper="{_finite(high, UNBOUNDED)}" '
        yield f'    <axis xyz="{_text(axis)}"/>'
        yield f"    <limit {'' if kind == 'continuous' else ends}{most}/>"
        if joint.damping or joint.friction:
            yield f'    <dynamics damping="{_text(joint.damping or [0])}" friction="{_text(joint.friction or [0])}"/>'
    yield "  </joint>"


def _frame(frame: Frame, root: str, origin: str) -> Iterable[str]:
    yield f"  <link name={quoteattr(frame.name)}/>"
    yield f'  <joint name={quoteattr(frame.name + "_fixed")} type="fixed">'
    yield f"    {origin}"
    yield f"    <parent link={quoteattr(root if frame.body == GROUND else frame.body)}/>"
    yield f"    <child link={quoteattr(frame.name)}/>"
    yield "  </joint>"


def _origin(placement: Placement, place: str, written: Written) -> str:
    angles = rpy_of(placement.rotation)
    return f'<origin xyz="{written(f"{place}.xyz", placement.translation)}" rpy="{written(f"{place}.rpy", angles)}"/>'


def _bound(limit: Sequence[Scalar]) -> str:
    return _finite(float(limit[0]) if len(limit) else math.inf, UNBOUNDED)


def _finite(x: float, other: float) -> str:
    return _text([x if math.isfinite(x) else other])


def _text(numbers: Sequence[Scalar]) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _refused(mechanism: Mechanism, what: str) -> ModelError:
    return ModelError(
        f"{mechanism.name} has {what}, for which URDF has no place",
        remedy="write it as .toml, which has a place for every part",
    )
