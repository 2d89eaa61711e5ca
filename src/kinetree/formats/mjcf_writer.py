"""Write a mechanism as MJCF: nested bodies with inertia, joints, loops, springs, actuators, keyframes, and sites.

Every joint is at the origin of its child's body and relaxed at zero, so that coordinates are the same, except that
quaternions of MJCF have w first, and the velocity of a free body its linear part, in the world, first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Scalar
from ..errors import ModelError
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import GROUND, Body, Frame, Joint, Placement, Shape
from .report import Report

KINDS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free", "fixed": ""}
"""The joint kinds that MJCF has, by the names of Kinetree."""
LOOPS = {"spherical": "connect", "fixed": "weld"}
"""The loop kinds that MJCF has."""
SHAPES = ("box", "sphere", "capsule", "cylinder")
WORLD = "world"
"""The name that MuJoCo gives to the ground."""


def write_mjcf(mechanism: Mechanism) -> str:
    """Return the mechanism as MJCF, at the values of its parameters; what is left out stands in a comment on top.

    Raises ModelError for parts that act on the motion and for which MJCF has no place.
    """
    text, report = mjcf_of(mechanism)
    lost = [str(entry.text) for sort in ("dropped", "changed") for entry in report.of(sort)]
    if not lost:
        return text
    head, body = text.split("\n", 1)
    notes = "\n".join(f"  {line}" for line in lost).replace("--", "- -")
    return f"{head}\n<!-- Not in this file, or other than in Kinetree:\n{notes}\n-->\n{body}"


def mjcf_of(mechanism: Mechanism) -> tuple[str, Report]:
    """Return the mechanism as MJCF, and a report of what MJCF has no place for."""
    m, report = mechanism, Report(file=mechanism.name)
    _refuse(m)
    values = {p.name: p.value for p in m.parameters}
    bodies, joints, forces = resolve_parts((m.bodies, m.joints, m.forces), values)
    names = {b.name: _body_name(m, b.name, report) for b in m.bodies}
    springs = {f.body_b: dict(f.coefficients) for f in forces}
    children: dict[str, list[int]] = {}
    for k, joint in enumerate(joints):
        children.setdefault(joint.parent, []).append(k)
    sites: dict[str, list] = {}
    for frame in resolve_parts(m.frames, values):
        sites.setdefault(frame.body, []).append(frame)
    for loop in resolve_parts(m.loops, values):
        for end, body, placement in (("a", loop.body_a, loop.placement_a), ("b", loop.body_b, loop.placement_b)):
            sites.setdefault(body, []).append(Frame(f"{loop.name}_{end}", body, placement))
    _note_lost(m, joints, report)
    order: list[int] = []
    lines = [
        '<?xml version="1.0"?>',
        f"<mujoco model={quoteattr(m.name)}>",
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>',
        f'  <option gravity="{_text(resolve_parts(m.gravity, values))}"/>',
        "  <worldbody>",
    ]
    lines += _of_body("    ", m.scenery, sites.get(GROUND, ()), "ground", report)
    stack: list[Any] = [(k, "    ") for k in reversed(children.get(GROUND, ()))]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            lines.append(item)
            continue
        k, indent = item
        joint, body = joints[k], bodies[k]
        order.append(k)
        lines.append(f"{indent}<body name={quoteattr(names[body.name])}{_pose(joint.placement)}>")
        inner = indent + "  "
        lines += [*_joint(inner, joint, springs.get(body.name, {}), report), *_inertial(inner, body, joint)]
        lines += _of_body(inner, body.shapes, sites.get(body.name, ()), body.name, report)
        stack.append(f"{indent}</body>")
        stack += [(n, inner) for n in reversed(children.get(body.name, ()))]
    lines += ["  </worldbody>", *_equalities(m, values, report), *_actuators(m)]
    lines += [*_keyframes(m, [joints[k] for k in order]), "</mujoco>", ""]
    return "\n".join(lines), report


def _refuse(m: Mechanism) -> None:
    """Raise ModelError for parts that act on the motion and have no place in MJCF."""
    others = sorted({j.kind for j in m.joints} - KINDS.keys())
    loops = sorted({x.kind for x in m.loops} - LOOPS.keys())
    nonlinear = [c.name for c in m.couplings if c.law is not None or len(c.terms) > 1]
    springs = [f.name for f in m.forces if f.kind != "joint_spring" or not _single(m, f.body_b)]
    flexible = [b.name for b in m.bodies if b.flexible is not None]
    several = [
        j.name
        for j in m.joints
        if j.kind == "spherical" and any(len({*x}) > 1 for x in (j.damping, j.armature, j.friction))
    ]
    inner = [j.name for j in m.joints if j.kind == "free" and (j.parent != GROUND or j.placement != Placement())]
    found = {
        f"joints of the kinds {', '.join(others)}": others,
        f"loops of the kinds {', '.join(loops)}": loops,
        f"couplings of several joints, or by laws ({', '.join(nonlinear)})": nonlinear,
        f"forces between points, or springs of joints with several axes ({', '.join(springs)})": springs,
        f"electric motors ({', '.join(motor.name for motor in m.motors)})": m.motors,
        f"flexible bodies ({', '.join(flexible)})": flexible,
        f"numbers that differ by the axis of a ball joint ({', '.join(several)})": several,
        f"free joints elsewhere than at the origin of the ground ({', '.join(inner)})": inner,
    }
    if lost := [text for text, parts in found.items() if parts]:
        raise ModelError(
            f"{m.name} has {'; '.join(lost)}, for which MJCF has no place",
            remedy="write it as .toml, which has a place for every part",
        )


def _single(m: Mechanism, child: str) -> bool:
    return any(j.child == child and j.kind in ("revolute", "prismatic") for j in m.joints)


def _body_name(m: Mechanism, name: str, report: Report) -> str:
    if name != WORLD:
        return name
    taken = {b.name for b in m.bodies}
    other = next(f"{WORLD}_{k}" for k in range(1, len(taken) + 2) if f"{WORLD}_{k}" not in taken)
    report.changed(f"body {name!r} is named {other!r}: MuJoCo's own name of the ground is {WORLD!r}")
    return other


def _note_lost(m: Mechanism, joints: Sequence[Joint], report: Report) -> None:
    """Report parts that do not act on the motion of the mechanism, and have no place."""
    if m.contacts:
        report.dropped(f"{len(m.contacts)} contacts: MuJoCo makes contacts of geoms, by laws of its own")
    if m.parameters:
        report.changed(f"{len(m.parameters)} parameters are written at their values")
    if m.guess:
        report.dropped("the guess of an assembled position; keyframes have positions")
    for joint in joints:
        if any(map(math.isfinite, joint.limits.velocity)):
            report.dropped(f"the limit of velocity of joint {joint.name!r}")
        if any(joint.friction):
            report.changed(f"friction of joint {joint.name!r}: MuJoCo's frictionloss also holds at rest")
    renamed = [f"{j.name!r} is read as {j.child!r}" for j in joints if not KINDS[j.kind] and j.name != j.child]
    if renamed:
        report.changed(f"fixed joints have no names: {', '.join(renamed)}")
    if any(j.kind == "free" for j in joints):
        report.changed("quaternions have w first, and velocities of free bodies their linear part, in the world, first")


def _joint(indent: str, joint: Joint, spring: dict[str, Any], report: Report) -> Iterator[str]:
    kind = KINDS[joint.kind]
    if not kind:
        return
    out = f"{indent}<joint name={quoteattr(joint.name)} type={quoteattr(kind)}"
    if joint.kind in ("revolute", "prismatic"):
        axis = [float(row[2]) for row in joint_kinds.kind(joint.kind).frame(joint)]
        out += f' axis="{_text(axis)}"'
        low, high = (float(x[0]) if len(x) else math.inf for x in (joint.limits.lower, joint.limits.upper))
        if (
            len(joint.limits.lower)
            and len(joint.limits.upper)
            and math.isfinite(low)
            and math.isfinite(high)
            and low < high
        ):
            out += f' range="{_text((low, high))}"'
        elif any(map(math.isfinite, (*joint.limits.lower, *joint.limits.upper))):
            report.dropped(f"the limit of joint {joint.name!r} at one end alone")
        if len(joint.limits.effort) and math.isfinite(float(joint.limits.effort[0])):
            most = float(joint.limits.effort[0])
            out += f' actuatorfrcrange="{_text((-most, most))}"' if most > 0.0 else ""
        if spring:
            rest = spring.get("rest_1", 0.0)
            out += f' stiffness="{_text([spring.get("stiffness_1", 0.0)])}" springref="{_text([rest])}"'
    elif len(joint.limits.lower) or len(joint.limits.upper):
        report.dropped(f"limits of joint {joint.name!r}, which has several axes")
    for key, numbers in (("damping", joint.damping), ("frictionloss", joint.friction), ("armature", joint.armature)):
        if any(numbers):
            out += f' {key}="{_text(numbers[:1])}"'
            if joint.kind == "free":
                report.changed(f"{key} of the free joint {joint.name!r} acts along axes of the world")
    yield out + "/>"


def _inertial(indent: str, body: Body, joint: Joint) -> Iterator[str]:
    xx, yy, zz, xy, yz, zx = map(float, body.inertia)  # pyright: ignore
    mass = float(body.mass)  # pyright: ignore
    if not mass and not any((xx, yy, zz)):
        if joint.kind != "fixed":
            raise ModelError(
                f"body {body.name!r} has no mass, and MuJoCo takes no such bodies on joints",
                remedy="give it a small mass and inertia, or write the mechanism as .toml",
            )
        return
    if any((xy, yz, zx)):
        inertia = f'fullinertia="{_text((xx, yy, zz, xy, zx, yz))}"'
    else:
        inertia = f'diaginertia="{_text((xx, yy, zz))}"'
    yield f'{indent}<inertial pos="{_text(body.com)}" mass="{_text([mass])}" {inertia}/>'


def _of_body(indent: str, shapes: Sequence[Shape], frames: Sequence[Any], name: str, report: Report) -> Iterator[str]:
    """Return geoms for drawing, and sites."""
    for shape in shapes:
        if shape.kind not in SHAPES:
            report.dropped(f"the {shape.kind} {shape.file!r} of {name!r}")
            continue
        size = list(shape.size)
        if shape.kind == "box":
            size = [x / 2.0 for x in size]
        elif shape.kind != "sphere":
            size = [size[0], size[1] / 2.0]
        color = "" if shape.color is None else f' rgba="{_text(shape.color)}"'
        yield (
            f'{indent}<geom type="{shape.kind}" size="{_text(size)}"{_pose(shape.placement)}{color} contype="0" '
            'conaffinity="0" mass="0"/>'
        )
    for frame in frames:
        yield f"{indent}<site name={quoteattr(frame.name)}{_pose(frame.placement)}/>"


def _equalities(m: Mechanism, values: dict[str, Any], report: Report) -> Iterator[str]:
    """Return loops as equalities of two sites, and couplings as polynomials of the first degree."""
    if not m.loops and not m.couplings:
        return
    report.changed("loops and couplings: MuJoCo closes them by soft forces")
    yield "  <equality>"
    for loop in m.loops:
        ends = " ".join(f"site{k + 1}={quoteattr(f'{loop.name}_{end}')}" for k, end in enumerate("ab"))
        yield f"    <{LOOPS[loop.kind]} name={quoteattr(loop.name)} {ends}/>"
    for coupling in resolve_parts(m.couplings, values):
        other, ratio = coupling.terms[0] if coupling.terms else ("", 0.0)
        follows = f" joint2={quoteattr(other)}" if other else ""
        poly = _text((coupling.offset, ratio, 0.0, 0.0, 0.0))
        yield (
            f"    <joint name={quoteattr(coupling.name)} joint1={quoteattr(coupling.joint)}{follows} "
            f'polycoef="{poly}"/>'
        )
    yield "  </equality>"


def _actuators(m: Mechanism) -> Iterator[str]:
    if not m.actuators:
        return
    yield "  <actuator>"
    for a in m.actuators:
        gear = [*a.gear, *(0.0,) * (6 - len(a.gear))]
        bounds = "".join(f' {key}="{_text(x)}"' for key, x in (("ctrlrange", a.control), ("forcerange", a.force)) if x)
        yield (
            f'    <general name={quoteattr(a.name)} joint={quoteattr(a.joint)} gear="{_text(gear)}" '
            f'gainprm="{_text([a.gain])}" biastype="affine" biasprm="{_text(a.bias)}"{bounds}/>'
        )
    yield "  </actuator>"


def _keyframes(m: Mechanism, joints: Sequence[Joint]) -> Iterator[str]:
    """Return named states, with coordinates in the order of the file."""
    if not m.keyframes:
        return
    yield "  <keyframe>"
    for key in m.keyframes:
        q, qd, out, speeds = dict(key.q), dict(key.qd), [], []
        for joint in joints:
            kind = joint_kinds.kind(joint.kind)
            x = q.get(joint.name) or tuple(map(float, kind.neutral(joint)))
            v = list(qd.get(joint.name) or (0.0,) * kind.NV)
            if joint.kind in ("spherical", "free"):
                turn = np.array(x[-4:]) / np.linalg.norm(x[-4:])
                out += [*x[:-4], turn[3], *turn[:3]]
                if joint.kind == "free":  # [omega; v] in its own axes
                    v = [*(_rotation(turn) @ np.array(v[3:])), *v[:3]]
            else:
                out += list(x)
            speeds += v
        controls = dict(key.control)
        control = [controls.get(a.name, (0.0,))[0] for a in m.actuators]
        more = f' qvel="{_text(speeds)}"' if any(speeds) else ""
        more += f' ctrl="{_text(control)}"' if any(control) else ""
        yield f'    <key name={quoteattr(key.name)} qpos="{_text(out)}"{more}/>'
    yield "  </keyframe>"


def _pose(placement: Placement) -> str:
    """Return the position and orientation of a placement as attributes, without those that are zero."""
    place = [float(x) for x in placement.translation]  # pyright: ignore
    R = np.array([[float(x) for x in row] for row in placement.rotation])  # pyright: ignore
    text = f' pos="{_text(place)}"' if any(place) else ""
    return text if (R == np.eye(3)).all() else f'{text} quat="{_text(_quaternion(R))}"'


def _quaternion(R: Any) -> list[float]:
    """Return the unit quaternion of a rotation, w first: from the largest of the four, which is exact to rounding."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    products = np.array(
        [
            [1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, 1.0 + xx - yy - zz, yx + xy, xz + zx],
            [xz - zx, yx + xy, 1.0 - xx + yy - zz, zy + yz],
            [yx - xy, xz + zx, zy + yz, 1.0 - xx - yy + zz],
        ]
    )
    row = products[int(np.argmax(np.diagonal(products)))]
    return (row / np.linalg.norm(row)).tolist()


def _rotation(q: Any) -> Any:
    """Return the matrix of a unit quaternion, w last."""
    x, y, z, w = q
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * K + 2.0 * K @ K


def _text(numbers: Sequence[Scalar]) -> str:
    return " ".join(repr(float(x)) for x in numbers)
