"""Write a mechanism as MJCF: nested bodies with inertia, joints, loops, springs, actuators, keyframes, and sites.

Every joint is at the origin of its child's body and relaxed at zero, so that coordinates are the same, except that
quaternions of MJCF have w first, and the velocity of a free body its linear part, in the world, first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.scalars import Scalar
from ..algebra.vectors import times
from ..errors import ModelError
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import plain_number
from ..model.parts import GROUND, Body, Coupling, ForceElement, Frame, Joint, Loop, Placement, Shape, compose, inverse
from .report import Report
from .series import Series, commented, in_series, linear_couplings, report_acting, report_losses

KINDS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free", "fixed": ""}
"""The joint kinds that MJCF has, by the names of Kinetree."""
LEAST = 2e-15
"""The least mass [kg] and inertia [kg m^2] of a moving body that is written: MuJoCo takes none of 1e-15 and below."""
AXIAL = ("hinge", "slide")
SHAPES = ("box", "sphere", "capsule", "cylinder")
WORLD = "world"
"""The name that MuJoCo gives to the ground."""


def write_mjcf(mechanism: Mechanism) -> tuple[str, Report]:
    """Return the mechanism as MJCF, at the values of its parameters, and a report of what is left out or changed.

    A comment on top of the text has the same list. Joints of several axes become joints in series in one body. Raises
    ModelError for flexible bodies, motors' rotors and circuits, and bodies without mass on joints.
    """
    m, report = mechanism, Report(file=mechanism.name)
    held = ("force", "loop", "coupling", "armature", "actuator", "gravity", "keyframe", "guess")
    report_losses(m, report, held, what="MJCF")
    _refuse_ends_without_mass(m)
    values = {p.name: p.value for p in m.parameters}
    bodies, joints, forces = resolve_parts((m.bodies, m.joints, m.forces), values)
    names = {b.name: _body_name(m, b.name, report) for b in m.bodies}
    springs = _springs(m, forces, report)
    tendons = [tendon for f in forces if (tendon := _tendon(f, report)) is not None]
    joint_names = {j.name for j in joints}
    chains = [in_series(j, _kept(j), joint_names, report, "MJCF") for j in joints]
    children: dict[str, list[int]] = {}
    for k, joint in enumerate(joints):
        children.setdefault(joint.parent, []).append(k)
    sites: dict[str, list[Frame]] = {}
    for frame in resolve_parts(m.frames, values):
        sites.setdefault(frame.body, []).append(frame)
    loops = [loop for loop in resolve_parts(m.loops, values) if _closes(loop, report)]
    for site in (site for loop in loops for equality in _equalities_of(loop) for site in equality[2:]):
        sites.setdefault(site.body, []).append(site)
    for tendon in tendons:
        for site in tendon.sites:
            sites.setdefault(site.body, []).append(site)
    _note_lost(m, [j for chain in chains for j in chain.joints], report)
    order: list[int] = []  # of the joints in the file
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
        before = []  # joints whose massless bodies MuJoCo takes as joints of the next body
        while (
            _is_massless(bodies[k])
            and len(children.get(bodies[k].name, ())) == 1
            and _plain(bodies[k], chains[k], sites)
        ):
            before.append(k)
            (k,) = children[bodies[k].name]
        joint, body = joints[k], bodies[k]
        order += [*before, k]
        places = [Placement()]  # of the body in the frame of each joint
        for n in reversed([*before, k][1:]):
            places.insert(0, compose(joints[n].placement, places[0]))
        pose = compose(joints[[*before, k][0]].placement, places[0])
        lines.append(f"{indent}<body name={quoteattr(names[body.name])}{_pose(pose)}>")
        inner = indent + "  "
        for at, place in zip((*before, k), places, strict=True):
            for n, single in enumerate(chains[at].joints, 1):
                lines += _joint(inner, single, inverse(place), springs.get((joints[at].child, n), ()), report)
        lines += _inertial(inner, body, joint, report)
        lines += _of_body(inner, body.shapes, sites.get(body.name, ()), body.name, report)
        stack.append(f"{indent}</body>")
        stack += [(n, inner) for n in reversed(children.get(body.name, ()))]
    couplings = [*resolve_parts(m.couplings, values), *(c for chain in chains for c in chain.couplings)]
    lines += ["  </worldbody>", *_equalities(loops, couplings, report), *_tendons(tendons), *_actuators(m, report)]
    lines += [*_keyframes(m, [joints[k] for k in order], report), "</mujoco>", ""]
    return commented("\n".join(lines), report), report


def _is_massless(body: Body) -> bool:
    return not any((body.mass, *body.inertia))


def _plain(body: Body, chain: Series, sites: dict[str, list[Frame]]) -> bool:
    """Return whether a body has nothing but joints of one axis."""
    return not body.shapes and not sites.get(body.name) and all(KINDS[j.kind] in AXIAL for j in chain.joints)


def _kept(joint: Joint) -> set[str]:
    """Return the kinds that MJCF has; free joints it has on the ground alone, at its origin."""
    inner = joint.kind == "free" and (joint.parent != GROUND or joint.placement != Placement())
    return KINDS.keys() - ({"free"} if inner else set())


def _springs(m: Mechanism, forces: Sequence[ForceElement], report: Report) -> dict[tuple[str, int], tuple[float, ...]]:
    """Return (stiffness, rest) by carried body and number of the coordinate; other forces are reported."""
    out = {}
    carried = {j.child: joint_kinds.kind(j.kind) for j in m.joints}
    for force in forces:
        if force.kind != "joint_spring":
            continue
        if carried[force.body_b].QUATERNION is not None:
            report_acting(report, f"{force.kind} {force.name!r}")
            continue
        numbers = dict(force.coefficients)
        if any((force.body_b, n) in out for n in range(1, carried[force.body_b].NV + 1)):
            report_acting(report, f"{force.kind} {force.name!r}, the second one of its joint")
            continue
        for n in range(1, carried[force.body_b].NV + 1):
            if stiffness := numbers.get(f"stiffness_{n}", 0.0):
                out[force.body_b, n] = plain_number(stiffness), plain_number(numbers.get(f"rest_{n}", 0.0))
    return out


@dataclass(frozen=True)
class _Tendon:
    """A straight spring with a damper between two sites."""

    name: str
    sites: tuple[Frame, Frame]
    stiffness: float
    damping: float
    length: float


def _tendon(force: ForceElement, report: Report) -> _Tendon | None:
    """Return the tendon of a spring and damper between two points; None for other forces, which are reported."""
    if force.kind == "joint_spring":
        return None
    numbers = {key: plain_number(x) for key, x in force.coefficients}
    stiffness, preload = numbers.get("stiffness", 0.0), numbers.get("preload", 0.0)
    length = numbers.get("free_length", 0.0) + (preload / stiffness if stiffness else 0.0)
    if force.kind != "spring_damper" or length < 0.0 or (preload and not stiffness):
        report_acting(report, f"{force.kind} {force.name!r}")
        return None
    ends = (("a", force.body_a, force.point_a), ("b", force.body_b, force.point_b))
    one, two = (Frame(f"{force.name}_{end}", body, Placement(point)) for end, body, point in ends)
    return _Tendon(force.name, (one, two), stiffness, numbers.get("damping", 0.0), length)


def _tendons(tendons: Sequence[_Tendon]) -> Iterator[str]:
    if not tendons:
        return
    yield "  <tendon>"
    for x in tendons:
        law = f'stiffness="{_text([x.stiffness])}" damping="{_text([x.damping])}" springlength="{_text([x.length])}"'
        inner = "".join(f"<site site={quoteattr(site.name)}/>" for site in x.sites)
        yield f"    <spatial name={quoteattr(x.name)} {law}>{inner}</spatial>"
    yield "  </tendon>"


def _closes(loop: Loop, report: Report) -> bool:
    closes = loop.kind == "fixed" or bool(loop_kinds.kind(loop.kind).points)
    if not closes:
        report_acting(report, f"{loop.kind} loop {loop.name!r}")
    return closes


def _equalities_of(loop: Loop) -> list[tuple[str, str, Frame, Frame]]:
    """Return (tag, name, site, site) of each equality of a loop: a weld, or connects at the points that describe it."""
    if loop.kind == "fixed":
        ends = (
            Frame(f"{loop.name}_a", loop.body_a, loop.placement_a),
            Frame(f"{loop.name}_b", loop.body_b, loop.placement_b),
        )
        return [("weld", loop.name, *ends)]
    out = []
    for k, point in enumerate(loop_kinds.kind(loop.kind).points):
        name = loop.name + (f"_{k + 1}" if k else "")
        place = Placement(times(loop_kinds.frame(loop), point))
        a, b = compose(loop.placement_a, place), compose(loop.placement_b, place)
        out.append(("connect", name, Frame(f"{name}_a", loop.body_a, a), Frame(f"{name}_b", loop.body_b, b)))
    return out


def _body_name(m: Mechanism, name: str, report: Report) -> str:
    if name != WORLD:
        return name
    taken = {b.name for b in m.bodies}
    other = next(f"{WORLD}_{k}" for k in range(1, len(taken) + 2) if f"{WORLD}_{k}" not in taken)
    report.changed(f"body {name!r} is named {other!r}: MuJoCo's own name of the ground is {WORLD!r}")
    return other


def _note_lost(m: Mechanism, joints: Sequence[Joint], report: Report) -> None:
    """Report what MuJoCo takes in another way, and limits of velocity."""
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


def _joint(indent: str, joint: Joint, place: Placement, spring: Sequence[float], report: Report) -> Iterator[str]:
    kind = KINDS[joint.kind]
    if not kind:
        return
    out = f"{indent}<joint name={quoteattr(joint.name)} type={quoteattr(kind)}"
    if joint.kind in ("revolute", "prismatic"):
        axis = [float(row[2]) for row in joint_kinds.kind(joint.kind).frame(joint)]
        out += f' axis="{_text(times(place.rotation, axis))}"'  # pyright: ignore
        if any(place.translation):
            out += f' pos="{_text(place.translation)}"'
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
            out += f' stiffness="{_text(spring[:1])}" springref="{_text(spring[1:])}"'
    elif len(joint.limits.lower) or len(joint.limits.upper):
        report.dropped(f"limits of joint {joint.name!r}, which has several axes")
    for key, numbers in (("damping", joint.damping), ("frictionloss", joint.friction), ("armature", joint.armature)):
        if len({*numbers}) > 1 and joint.kind == "spherical":
            report_acting(report, f"{key} of the ball joint {joint.name!r} about all axes but the first")
        if any(numbers):
            out += f' {key}="{_text(numbers[:1])}"'
            if joint.kind == "free":
                report.changed(f"{key} of the free joint {joint.name!r} acts along axes of the world")
    yield out + "/>"


def _inertial(indent: str, body: Body, joint: Joint, report: Report) -> Iterator[str]:
    """Return the inertia, raised to the least that MuJoCo takes for a body that moves."""
    moments = tuple(map(float, body.inertia))  # pyright: ignore
    mass = float(body.mass)  # pyright: ignore
    if _is_massless(body) and joint.kind == "fixed":
        return
    xx, yy, zz, xy, yz, zx = moments
    principal = np.linalg.eigvalsh([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
    excess = principal[2] - principal[0] - principal[1]
    if excess > 1e-9 * principal[2] + LEAST or principal[0] < -1e-9 * principal[2] - LEAST:
        text = ", ".join(f"{x:.4g}" for x in principal)
        rule = "MuJoCo takes none that is negative or above the sum of the others"
        raise ModelError(
            f"body {body.name!r} has principal moments of {text} kg m^2; {rule}",
            remedy="give an inertia that a body can have, or write the mechanism as .toml",
        )
    rounding = 8.0 * np.finfo(float).eps * principal[2]
    if mass < LEAST or principal[0] < LEAST or excess > -rounding:
        more = LEAST + max(excess, 0.0) + rounding
        report.changed(f"body {body.name!r} has {more:.1g} kg m^2 more about all axes: the least that MuJoCo takes")
        mass, xx, yy, zz = max(mass, LEAST), xx + more, yy + more, zz + more
    if any((xy, yz, zx)):
        inertia = f'fullinertia="{_text((xx, yy, zz, xy, zx, yz))}"'
    else:
        inertia = f'diaginertia="{_text((xx, yy, zz))}"'
    yield f'{indent}<inertial pos="{_text(body.com)}" mass="{_text([mass])}" {inertia}/>'


def _refuse_ends_without_mass(m: Mechanism) -> None:
    """Raise ModelError for joints that move nothing with mass: MuJoCo could not compute their accelerations."""
    heavy = [not _is_massless(b) for b in m.bodies]
    for k in range(len(m.bodies) - 1, -1, -1):
        if heavy[k] and m.parents[k] >= 0:
            heavy[m.parents[k]] = True
    for body, joint, moves in zip(m.bodies, m.joints, heavy, strict=True):
        if not moves and joint.kind != "fixed" and not any(joint.armature):
            raise ModelError(
                f"joint {joint.name!r} moves nothing with mass, and MuJoCo takes no body such as {body.name!r}",
                remedy="give it a small mass and inertia, or write the mechanism as .toml",
            )


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


def _equalities(loops: Sequence[Loop], couplings: Sequence[Coupling], report: Report) -> Iterator[str]:
    """Return loops as equalities of two sites, and couplings as polynomials of the first degree."""
    held = [(c, "", 0.0) for c in couplings if c.law is None and not c.terms]  # at a constant position
    held += linear_couplings([c for c in couplings if c.law is not None or c.terms], report)
    if not loops and not held:
        return
    report.changed("loops and couplings: MuJoCo closes them by soft forces")
    yield "  <equality>"
    for loop in loops:
        for tag, name, a, b in _equalities_of(loop):
            yield f"    <{tag} name={quoteattr(name)} site1={quoteattr(a.name)} site2={quoteattr(b.name)}/>"
    for coupling, other, ratio in held:
        follows = f" joint2={quoteattr(other)}" if other else ""
        poly = _text((coupling.offset, ratio, 0.0, 0.0, 0.0))
        yield (
            f"    <joint name={quoteattr(coupling.name)} joint1={quoteattr(coupling.joint)}{follows} "
            f'polycoef="{poly}"/>'
        )
    yield "  </equality>"


def _actuators(m: Mechanism, report: Report) -> Iterator[str]:
    kinds = {j.name: j.kind for j in m.joints}
    driving = [a for a in m.actuators if kinds[a.joint] in KINDS]
    for a in m.actuators:
        if a not in driving:
            report_acting(report, f"actuator {a.name!r} of a joint of several axes")
    if not driving:
        return
    yield "  <actuator>"
    for a in driving:
        gear = [*a.gear, *(0.0,) * (6 - len(a.gear))]
        bounds = "".join(f' {key}="{_text(x)}"' for key, x in (("ctrlrange", a.control), ("forcerange", a.force)) if x)
        yield (
            f'    <general name={quoteattr(a.name)} joint={quoteattr(a.joint)} gear="{_text(gear)}" '
            f'gainprm="{_text([a.gain])}" biastype="affine" biasprm="{_text(a.bias)}"{bounds}/>'
        )
    yield "  </actuator>"


def _keyframes(m: Mechanism, joints: Sequence[Joint], report: Report) -> Iterator[str]:
    """Return named states, with coordinates in the order of the file."""
    if not m.keyframes:
        return
    if any(joint.kind not in _kept(joint) for joint in joints):
        report.dropped(f"{len(m.keyframes)} keyframes, since joints have other coordinates")
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
