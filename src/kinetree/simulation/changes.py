"""Changed mechanisms: locked joints, payloads, gears, motors, elastic or rigid joints, wheels, free parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import joints as joint_kinds
from .._support.checks import items, number, positive
from ..algebra.scalars import Numbers
from ..algebra.vectors import ZERO, Vector, add, dot, scale, sub, times
from ..errors import InputError, brief, unknown_name
from ..formats.merging import lock_joints, merge_locked
from ..formats.report import Report
from ..formats.urdf import FIXED
from ..model import build_mechanism, checks
from ..model.drives import Motor
from ..model.flexible import with_rigid_joints as rigid_mechanism
from ..model.freeing import free_numbers
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import Expression, Number, Parameter
from ..model.part_fields import AXES, free_name
from ..model.parts import GROUND, Body, Elastic, Joint, Loop, Placement
from ..system import System
from .arguments import M, coefficient, coefficients, like, mechanism_of, vector

if TYPE_CHECKING:
    from ..algebra.scalars import Scalar


def with_free(system: M, *patterns: str) -> M:
    """Return a System or Mechanism with numbers of it as free parameters, at their present values.

    `patterns` are names with wildcards, such as "mass.*" and "inertia.link3": mass.BODY [kg], com.BODY.x [m],
    inertia.BODY, the factor of the body's inertia about its center of mass, inertia.BODY.xx [kg m^2]; length.JOINT [m],
    the distance of a joint from the origin of its parent in its direction, and length.JOINT.x; damping.JOINT,
    friction.JOINT, armature.JOINT; stiffness.FORCE and other coefficients of forces; ratio.COUPLING, offset.COUPLING;
    rod.LOOP and radius.LOOP [m]; gravity.z; and fixed parameters by their own names. Numbers that are formulas of
    parameters change with these.
    """
    return like(system, free_numbers(mechanism_of(system), patterns))


def with_payload(system: M, frame: str, mass: object, com: object = ZERO, inertia: Sequence[object] = (0.0,) * 6) -> M:
    """Return a System or Mechanism with a load fixed to a frame, or to a body.

    Mass [kg], center of mass [m] and inertia about it (xx, yy, zz, xy, yz, zx) [kg m^2] are those of the load, in the
    axes of the frame. Each number may be a kt.Parameter, which is added to the mechanism, or the name of one that it
    has: kt.Parameter("load", 2.0, free=True) is a mass that can be varied, and 0 where nothing is carried.
    """
    mechanism = mechanism_of(system)
    at = mechanism.frame(frame)
    if at.body == GROUND:
        raise InputError(f"the frame {frame!r} is fixed to the ground, which carries no payload; name one of a body")
    where, added = f"the payload of {frame!r}", []
    known = {p.name for p in mechanism.parameters}

    def read(x: object, what: str) -> Scalar:
        if isinstance(x, Parameter):
            if x.name in known:
                raise InputError(f"{mechanism.name!r} has a parameter {x.name!r} already; give its name instead")
            added.append(x)
            known.add(x.name)
            return Expression("name", (x.name,))
        if isinstance(x, str):
            if x not in known:
                raise unknown_name("parameter", x, known)
            return Expression("name", (x,))
        return coefficient(x, what)

    numbers = {
        "mass": (mass,),
        "com": items(com, f"com of {where}"),
        "inertia": items(inertia, f"the inertia of {where}"),
    }
    (m,), c, moments = (tuple(read(x, f"the {name} of {where}") for x in given) for name, given in numbers.items())
    if len(c) != 3:
        raise InputError(f"com of {where} has {len(c)} numbers; give 3")
    load = Body(f"payload of {frame}", m, c, moments)
    mechanism = replace(mechanism, parameters=(*mechanism.parameters, *added))
    checks.body(resolve_parts(load, mechanism.values()))
    load = _placed(load, at.placement)
    bodies = tuple(_joined(b, load) if b.name == at.body else b for b in mechanism.bodies)
    return like(system, replace(mechanism, bodies=bodies))


def reduced(system: M, lock: Mapping[str, float | Sequence[float]], *, fixed: str = "merge") -> M:
    """Return a System or Mechanism with joints locked at given coordinates: lock={"elbow": 0.3}.

    fixed="merge" merges bodies on fixed joints, also on those that were fixed before, into the bodies that carry them;
    their names and those of the joints remain as frames. "keep" keeps all bodies. Loops remain, unless they lie within
    a body and close there. Springs, actuators and motors of locked joints are left out, couplings and the guess have
    the locked coordinates no longer.
    """
    mechanism = mechanism_of(system)
    if fixed not in FIXED:
        raise InputError(f"fixed must be one of {', '.join(FIXED)}, not {fixed!r}")
    if not isinstance(lock, Mapping):
        raise InputError(f'lock is {brief(lock)}; give coordinates by joint, such as {{"elbow": 0.3}}')
    numbers = {}
    for name, given in lock.items():
        count, what = joint_kinds.kind(mechanism.joint(name).kind).NQ, f"the coordinate of joint {name!r}"
        values = [given] if np.ndim(given) == 0 else items(given, what)
        if len(values) != count:
            raise InputError(f"{what} has {len(values)} numbers; a {mechanism.joint(name).kind} joint has {count}")
        numbers[name] = tuple(number(x, what) for x in values)
    if fixed == "merge" and mechanism.free_parameters:
        names = ", ".join(p.name for p in mechanism.free_parameters)
        raise InputError(
            f'{mechanism.name!r} has free parameters ({names}); give fixed="keep", or fix them by kt.with_parameters'
        )
    locked = lock_joints(mechanism, numbers)
    made = merge_locked(locked, Report(mechanism.name)) if fixed == "merge" else locked
    return like(system, made)


def with_gear(system: M, joint: str, ratio: float, rotor_inertia: Number) -> M:
    """Return a System or Mechanism with a geared drive in a joint: its armature is ratio^2 rotor_inertia.

    The ratio is the rotation of the rotor per rotation of the joint (rad/m for a prismatic joint). The inertia is that
    of the rotor about its own axis [kg m^2]. The new armature replaces an earlier one. The mass of the rotor belongs to
    the body that carries it. The gyroscopic torque of the rotor is neglected.
    """
    mechanism = mechanism_of(system)
    old = mechanism.joint(joint)
    count = joint_kinds.kind(old.kind).NV
    if count != 1:
        raise InputError(
            f"a gear drives one degree of freedom; the joint {joint!r} is {old.kind} and has {count}: "
            "give its armature instead"
        )
    ratio = number(ratio, f"the ratio of the gear of {joint!r}")
    (inertia,) = coefficients(rotor_inertia, f"the rotor inertia of {joint!r}", least=0.0)
    driven = replace(old, armature=(ratio * ratio * inertia,))
    return like(system, replace(mechanism, joints=tuple(driven if j is old else j for j in mechanism.joints)))


def with_motors(system: M, *motors: Motor) -> M:
    """Return a System or Mechanism with further electric motors; one with an inductance gets a circuit of its own.

    They act under the control of a MotorControl.
    """
    mechanism = mechanism_of(system)
    for motor in motors:
        if not isinstance(motor, Motor):
            raise InputError(f"with_motors takes a kt.Motor for each motor, not {brief(motor)}")
    return like(system, _rebuilt(mechanism, motors=(*mechanism.motors, *motors)))


def with_elastic_joints(system: M, elastic: Mapping[str, Elastic]) -> M:
    """Return a System or Mechanism with elastic joints, by name: each has a motor before a spring."""
    mechanism = mechanism_of(system)
    known = [j.name for j in mechanism.joints]
    for name in elastic:
        if name not in known:
            raise unknown_name("joint", str(name), known)
        if mechanism.joint(name).elastic is not None:
            raise InputError(f"the joint {name!r} is elastic already; make it rigid by with_rigid_joints first")
    joints = tuple(replace(j, elastic=elastic.get(j.name, j.elastic)) for j in mechanism.joints)
    return like(system, _rebuilt(mechanism, joints=joints))


def with_rigid_joints(system: M) -> M:
    """Return a System or Mechanism whose elastic joints are rigid, without motors: their rotors become armatures."""
    return like(system, rigid_mechanism(mechanism_of(system)))


def _rebuilt(m: Mechanism, **changed: Any) -> Mechanism:
    """Return a mechanism built again with some of its parts changed."""
    parts = {f.name: getattr(m, f.name) for f in fields(m)} | changed
    return build_mechanism(**parts, lenient=True)


def with_parameters(system: M, /, **values: float) -> M:
    """Return a System or Mechanism with further free parameters, such as gains that controllers read by name."""
    mechanism = mechanism_of(system)
    known = [p.name for p in mechanism.parameters]
    for name in values:
        if name in known:
            raise InputError(f"{mechanism.name!r} has a parameter {name!r} already; choose another name")
    more = (Parameter(name, number(x, f"parameter {name!r}"), free=True) for name, x in values.items())
    return like(system, replace(mechanism, parameters=(*mechanism.parameters, *more)))


def _joined(b: Body, load: Body) -> Body:
    """Return one body made of two that are given in the same frame."""
    massless = isinstance(b.mass, float) and b.mass == 0.0
    if massless or (isinstance(load.mass, float) and load.mass == 0.0):
        share, reduced = (1.0 if massless else 0.0), 0.0
    else:
        share = load.mass / (b.mass + load.mass)
        reduced = b.mass * share  # m1 m2 / (m1 + m2)
    way: Vector = sub(load.com, b.com)
    x, y, z = way
    square = dot(way, way)
    apart = (square - x * x, square - y * y, square - z * z, -x * y, -y * z, -z * x)  # of a unit mass at this distance
    inertia = tuple(i + j + reduced * k for i, j, k in zip(b.inertia, load.inertia, apart, strict=True))
    return replace(b, mass=b.mass + load.mass, com=add(b.com, scale(share, way)), inertia=inertia)


def _placed(load: Body, at: Placement) -> Body:
    """Return a load whose numbers are in a frame, in the frame of the body that this frame is fixed to."""
    R, (xx, yy, zz, xy, yz, zx) = at.rotation, load.inertia
    own = ((xx, xy, zx), (xy, yy, yz), (zx, yz, zz))

    def turned(i: int, j: int) -> Scalar:
        return sum((R[i][k] * own[k][n] * R[j][n] for k in range(3) for n in range(3)), 0.0)

    moments = tuple(turned(i, j) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)))
    return replace(load, com=add(at.translation, times(R, load.com)), inertia=moments)


# --- Mechanisms on wheels: four Mecanum wheels, or two wheels on an axle, under a body that stands on a floor.

MECANUM = math.pi / 4
"""The angle between the rollers and the axle of a Mecanum wheel [rad]."""


def with_mecanum_wheels(
    system: M,
    body: str,
    *,
    radius: float,
    track: float,
    wheelbase: float,
    mass: float,
    center: Sequence[float] = (0.0, 0.0, 0.0),
    forward: str = "x",
    up: str = "z",
) -> M:
    """Return a System or Mechanism with four Mecanum wheels under a body.

    They roll on the floor that they touch at the guess. `center` [m] is the middle between the centers of the wheels,
    `forward` and `up` are axes, all in the body's frame.
    `track` and `wheelbase` [m] are the distances of the wheels to the side and along. Each wheel is a solid disc of
    the mass [kg] and the radius [m], on the joints front_left, front_right, rear_left and rear_right.
    """
    spans = {"radius": radius, "track": track, "wheelbase": wheelbase, "mass": mass}
    radius, track, wheelbase, mass = (positive(x, f"the {name} of the wheels") for name, x in spans.items())
    places = {
        f"{row}_{side}": (x * wheelbase / 2, y * track / 2, MECANUM * x * y)
        for row, x in (("front", 1.0), ("rear", -1.0))
        for side, y in (("left", 1.0), ("right", -1.0))
    }
    return like(
        system, _on_wheels(mechanism_of(system), body, places, radius, mass, vector(center, "center"), forward, up)
    )


def with_driven_axle(
    system: M,
    body: str,
    *,
    radius: float,
    track: float,
    mass: float,
    center: Sequence[float] = (0.0, 0.0, 0.0),
    forward: str = "x",
    up: str = "z",
) -> M:
    """Return a System or Mechanism with two wheels on an axle under a body, on the joints left and right.

    The arguments are those of `with_mecanum_wheels`. The wheels roll without slipping. A body that can tilt also needs
    casters, such as a `point_on_plane` loop.
    """
    spans = {"radius": radius, "track": track, "mass": mass}
    radius, track, mass = (positive(x, f"the {name} of the wheels") for name, x in spans.items())
    places = {"left": (0.0, track / 2, None), "right": (0.0, -track / 2, None)}
    return like(
        system, _on_wheels(mechanism_of(system), body, places, radius, mass, vector(center, "center"), forward, up)
    )


def _on_wheels(
    m: Mechanism,
    body: str,
    places: Mapping[str, tuple[float, float, float | None]],
    radius: float,
    mass: float,
    center: object,
    forward: str,
    up: str,
) -> Mechanism:
    """Add wheels at places (along, to the left, angle of the rollers or None) in the axes of a body."""
    m.body(body)
    x, z = (_axis(name, letter) for name, letter in (("forward", forward), ("up", up)))
    if abs(float(x @ z)) > 0.5:
        raise InputError(f"forward is {forward!r} and up is {up!r}; expected two perpendicular axes")
    y = np.cross(z, x)
    pose = np.asarray(System(m).pose(np.array(m.neutral), body), dtype=float)
    normal = pose[:3, :3] @ z
    floor = Placement(_numbers(pose[:3, :3] @ np.array(center) + pose[:3, 3] - radius * normal))
    names = {b.name for b in m.bodies} | {j.name for j in m.joints} | {p.name for p in m.loops}
    across, along = mass * radius**2 / 4, mass * radius**2 / 2
    inertia = _numbers(across + (along - across) * np.abs(y))
    bodies, joints, loops = list(m.bodies), list(m.joints), list(m.loops)
    for label, (ahead, aside, angle) in places.items():
        name = free_name(label, names)
        at = Placement(_numbers(np.array(center) + ahead * x + aside * y))
        bodies.append(Body(name, mass, (0.0, 0.0, 0.0), (*inertia, 0.0, 0.0, 0.0)))
        joints.append(Joint(name, "revolute", body, name, at, axis=_numbers(y)))
        kind = "rolling_disc" if angle is None else "rolling_rollers"
        touch = Loop(f"{name}_on_floor", kind, GROUND, name, floor, axis=_numbers(normal), axis2=_numbers(y))
        loops.append(replace(touch, radius=radius, angle=angle))
    return _rebuilt(m, bodies=bodies, joints=joints, loops=loops)


def _axis(name: str, letter: str) -> Numbers:
    if not isinstance(letter, str) or letter not in AXES:
        raise InputError(f"{name} is {letter!r}; expected one of {', '.join(AXES)}")
    return np.array(AXES[letter])


def _numbers(x: Numbers) -> Any:
    return tuple(float(v) + 0.0 for v in x)
