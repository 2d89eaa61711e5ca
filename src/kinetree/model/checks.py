"""Checks of a mechanism, run once on assembly; each error names the faulty part and a remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Scalar
from ..algebra.vectors import Matrix, from_moments
from ..errors import InputError, ModelError, Where, at, below, part_at, unknown_name
from . import loop_checks
from .mechanism import Mechanism, resolve_parts
from .parameters import CONSTANTS, FUNCTIONS, Expression
from .part_fields import check_name
from .parts import GROUND, Body, ForceElement, Joint, Loop, Placement

# --- Kinds of force elements: the names of their coefficients, and the checks of an element ---

JOINT_SPRING, TRANSMISSION = "joint_spring", "transmission"
COEFFICIENTS = {
    "spring_damper": ("stiffness", "damping", "free_length", "preload"),
    "linear_actuator": ("force",),
    TRANSMISSION: ("stiffness", "damping", "backlash"),
}
"""Coefficients by kind, of forces between two points and of a transmission; a joint spring has those of its joint."""
KINDS = (*COEFFICIENTS, JOINT_SPRING)


def check_kind(kind: str, where: str) -> str:
    """Return the kind of a force element if it is known, or raise UnknownNameError."""
    if kind not in KINDS:
        raise unknown_name("kind of force", kind, KINDS, where=where)
    return kind


def forces(mechanism: Mechanism) -> None:
    """Refuse force elements of an unknown kind, with an unknown coefficient, or at a missing joint."""
    carried = {j.child: j for j in mechanism.joints} if mechanism.forces else {}
    for element in mechanism.forces:
        coefficient_names(element, carried)


def coefficient_names(element: ForceElement, carried: Mapping[str, Joint]) -> tuple[str, ...]:
    """Return the names that an element's coefficients may have, or refuse an element that has others.

    `carried` has the joints by the name of their child body.
    """
    where = part_at("force", element.name)
    if element.kind == JOINT_SPRING:
        count = joint_kinds.kind(spring_joint(element, carried).kind).NV
        names = tuple(f"{what}_{k + 1}" for what in ("stiffness", "rest") for k in range(count))
    else:
        names = COEFFICIENTS[check_kind(element.kind, where)]
    if element.kind == TRANSMISSION:
        transmission_joints(element, carried)
    for name, _ in element.coefficients:
        if name not in names:
            raise unknown_name("coefficient", name, names, where=where)
    return names


def spring_joint(element: ForceElement, carried: Mapping[str, Joint]) -> Joint:
    """Return the joint of a joint spring, whose parent is body_a and whose child is body_b."""
    joint = carried.get(element.body_b)
    if joint is None or joint.parent != element.body_a:
        raise ModelError(
            f"no joint has the parent {element.body_a!r} and the child {element.body_b!r}",
            where=part_at("force", element.name),
            remedy="name a body and one of its children",
        )
    return joint


def transmission_joints(element: ForceElement, carried: Mapping[str, Joint]) -> tuple[Joint, Joint]:
    """Return the joints of a transmission, that of the motor first: each has one coordinate and one velocity."""
    found = []
    for key in ("body_a", "body_b"):
        joint, where = carried.get(getattr(element, key)), below(part_at("force", element.name), key)
        if joint is None:
            raise ModelError(
                f"no joint carries {getattr(element, key)!r}", where=where, remedy="name the child of a joint"
            )
        kind = joint_kinds.kind(joint.kind)
        if (kind.NQ, kind.NV) != (1, 1):
            raise ModelError(
                f"a transmission connects joints with one coordinate; {joint.name!r} is {joint.kind}",
                where=where,
                remedy="use revolute, prismatic or helical joints",
            )
        found.append(joint)
    return found[0], found[1]


def require_flat(
    joint: Any,
    who: str,
    remedy: str = "use joints with as many of both, such as euler or free_euler",
    *,
    key: str = "joint",
) -> None:
    """Raise an InputError for a joint whose velocities are not the rates of its coordinates."""
    kind = joint_kinds.kind(joint.kind)
    if kind.NQ != kind.NV:
        raise InputError(
            f"{who} cannot act on the joint {joint.name!r}: a {joint.kind} joint has {kind.NQ} coordinates for "
            f"{kind.NV} velocities; {remedy}",
            path=(key,),
        )


ORTHONORMAL = 1e-6
"""Largest deviation of an entry of R^T R from the identity [1]: files print rotations with about six digits."""
TRIANGLE = 1e-6
"""Largest excess of a principal moment over the sum of the others, relative to the largest entry: files round."""
RESERVED = {*CONSTANTS, *FUNCTIONS}
"""Names that formulas use themselves, which no parameter may have."""


def check(mechanism: Mechanism, *, lenient: bool = False) -> None:
    """Raise ModelError unless the mechanism is possible; `lenient` accepts impossible inertias and crossed limits."""
    unique_names(mechanism)
    for element in mechanism.forces:  # before its bodies, which depend on the kind
        check_kind(element.kind, _where(element))
    references(mechanism)
    values = mechanism.values()
    for part in _parts(mechanism):
        where = _where(part)
        plain = part
        if not is_plain(part):
            try:
                plain = resolve_parts(part, values)
            except ModelError as error:
                raise ModelError(error.what, where=where, remedy=error.remedy) from None
            _finite(plain, where)
        if isinstance(plain, Body) and not lenient:
            body(plain, where)
        if isinstance(plain, Joint):
            joint(plain, where, lenient=lenient)
        if isinstance(plain, Loop):
            loop_checks.loop(plain)
        for placement in _placements(plain):
            rotation(placement.rotation, where)
    _finite(resolve_parts(mechanism.gravity, values), at("gravity"))
    forces(mechanism)
    loop_checks.couplings(mechanism)
    loop_checks.guess(mechanism)


def unique_names(mechanism: Mechanism) -> None:
    """Refuse equal names of parts of one sort, empty names, and names that are reserved or used by bodies."""
    for sort, items in _sorts(mechanism):
        seen: set[str] = set()
        for item in items:
            check_name(item.name, sort)
            if item.name in seen:
                raise ModelError(
                    f"the {sort} name {item.name!r} is used twice",
                    remedy="rename one of them",
                    path=(sort, item.name, "name"),
                )
            seen.add(item.name)
    for parameter in mechanism.parameters:
        if parameter.name in RESERVED:
            raise ModelError(
                f"a parameter has the name {parameter.name!r}, which is reserved in formulas",
                remedy="rename the parameter",
                path=("parameter", parameter.name),
            )
    if any(b.name == GROUND for b in mechanism.bodies):
        raise ModelError(
            f"a body has the name {GROUND!r}, which is reserved for the fixed world",
            remedy="rename the body",
            path=("body", GROUND, "name"),
        )
    taken = {b.name for b in mechanism.bodies} | {GROUND}
    for frame in mechanism.frames:
        if frame.name in taken:
            raise ModelError(
                f"the frame {frame.name!r} has the name of a body",
                remedy="rename the frame: bodies are frames too",
                path=("frame", frame.name, "name"),
            )


def references(mechanism: Mechanism) -> None:
    """Refuse frames, loops, couplings, forces and guesses that refer to missing bodies, joints or parameters."""
    bodies = dict.fromkeys([*(b.name for b in mechanism.bodies), GROUND])
    joints = dict.fromkeys(j.name for j in mechanism.joints)
    named = [(part_at("frame", f.name), f.body) for f in mechanism.frames]
    for what in (*mechanism.loops, *mechanism.forces):
        named += [(_where(what), what.body_a), (_where(what), what.body_b)]
    for where, name in named:
        if name not in bodies:
            raise unknown_name("body", name, bodies, where=where)
    for coupling in mechanism.couplings:
        for name in (coupling.joint, *(term[0] for term in coupling.terms)):
            if name not in joints:
                raise unknown_name("joint", name, joints, where=_where(coupling))
    for name, _ in mechanism.guess:
        if name not in joints:
            raise unknown_name("joint", name, joints, where=at("guess"))
    parameters = dict.fromkeys(p.name for p in mechanism.parameters)
    for part in (*_parts(mechanism), mechanism.gravity):
        for name in () if is_plain(part) else sorted(_expression_names(part)):
            if name not in parameters:
                raise unknown_name("parameter", name, parameters, where=_where(part))


def body(b: Any, where: str = "") -> None:
    """Refuse a negative mass, and an inertia that no mass distribution can have."""
    where = where or part_at("body", b.name)
    if b.mass < 0:
        raise ModelError(f"the mass is {b.mass:g} kg", where=where, remedy="give a mass of zero or more")
    if len(b.inertia) != 6:
        raise ModelError(f"the inertia has {len(b.inertia)} numbers", where=where, remedy="give xx, yy, zz, xy, yz, zx")
    excess, moments = inertia_excess(tuple(b.inertia))
    if excess > TRIANGLE:
        raise ModelError(
            "no body can have this inertia: its principal moments are "
            + ", ".join(f"{m:.6g}" for m in moments)
            + " kg m^2, and none may be negative or exceed the sum of the others",
            where=where,
            remedy="check units, signs, the order xx, yy, zz, xy, yz, zx and the reference point (the center of mass), "
            "or accept it by lenient (lenient=True in Python, true in files, --lenient)",
        )


def impossible_inertias(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return (body, message) for each body that the check `body` refuses."""
    values, out = mechanism.values(), []
    for b in mechanism.bodies:
        try:
            body(resolve_parts(b, values))
        except ModelError as error:
            out.append((b.name, error.what))
    return out


def massless_inertias(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return (body, message) for each body with an inertia but no mass, which is usually a mass that was forgotten.

    A body that only rotates about a point of the ground may have its mass in its inertia.
    """
    values, out = mechanism.values(), []
    carried = {j.child: j for j in mechanism.joints}
    for b in mechanism.bodies:
        if isinstance(b.mass, Expression) or not b.mass:
            b = resolve_parts(b, values)
            if not b.mass and any(b.inertia) and not _turns_on_ground(carried.get(b.name)):
                most = max(inertia_excess(tuple(b.inertia))[1])
                out.append((b.name, f"it has an inertia, up to {most:.3g} kg m^2, but no mass"))
    return out


def _turns_on_ground(j: Joint | None) -> bool:
    if j is None or j.parent != GROUND:
        return False
    kind = joint_kinds.kind(j.kind)
    return not (kind.ADVANCES or kind.FLOATS)


def tolerated_faults(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return (part, message) for all faults accepted by `lenient`: impossible masses and inertias, crossed limits."""
    found = [(f"body {name!r}", message) for name, message in impossible_inertias(mechanism)]
    for j in resolve_parts(mechanism.joints, mechanism.values()):
        try:
            joint(j)
        except ModelError as error:
            found.append((f"joint {j.name!r}", error.what))
    return found


@lru_cache(maxsize=1024)
def inertia_excess(inertia: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
    """Return the excess of an inertia over the triangle inequality, relative to its size, and its principal moments."""
    matrix = np.array(from_moments(inertia), dtype=float)
    size = float(np.abs(matrix).max())
    if size == 0:
        return 0.0, (0.0, 0.0, 0.0)
    a, b, c = (float(x) * size for x in np.linalg.eigvalsh(matrix / size))
    return max(-a, c - a - b) / size, (a, b, c)


def joint(j: Any, where: str = "", *, lenient: bool = False) -> None:
    """Refuse an unknown kind, a zero axis, a wrong count of numbers, crossed limits and a negative armature."""
    where = where or part_at("joint", j.name)
    kind = joint_kinds.kind(j.kind, where=where)
    kind.check(j, where)
    counts = {
        "damping": (j.damping, kind.NV),
        "friction": (j.friction, kind.NV),
        "armature": (j.armature, kind.NV),
        "lower limits": (j.limits.lower, kind.NQ),
        "upper limits": (j.limits.upper, kind.NQ),
        "velocity limits": (j.limits.velocity, kind.NV),
        "effort limits": (j.limits.effort, kind.NV),
    }
    for label, (numbers, count) in counts.items():
        if numbers and len(numbers) != count:
            raise ModelError(
                f"{len(numbers)} {label} for a {j.kind} joint", where=where, remedy=f"give {count}, or none"
            )
    for lower, upper in zip(j.limits.lower, j.limits.upper, strict=False):
        if lower > upper and not lenient:
            raise ModelError(
                f"the lower limit {lower:g} is above the upper limit {upper:g}", where=where, remedy="swap them"
            )
    if any(a < 0 for a in j.armature):
        raise ModelError("the armature is negative", where=where, remedy="give zero or more")


def placement(place: Placement, values: Mapping[str, object], where: str) -> None:
    """Refuse a placement with numbers that are not finite, or whose rotation is none."""
    try:
        plain = resolve_parts(place, values)
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None
    _finite(plain, where)
    rotation(plain.rotation, where)


def rotation(matrix, where: str) -> None:
    """Refuse a matrix that is not a rotation."""
    error, reflects = _rotation_error(matrix)
    if error > ORTHONORMAL or reflects:
        fault = "is a reflection" if error <= ORTHONORMAL else f"is off by {error:.2g}"
        raise ModelError(
            f"the rotation is not orthonormal with determinant 1: it {fault}",
            where=where,
            remedy="give a right-handed set of perpendicular unit axes, or use rpy or quaternion",
        )


@lru_cache(maxsize=1024)
def _rotation_error(matrix: Matrix) -> tuple[float, bool]:
    """Return the deviation of a matrix from orthonormal, and whether it contains a reflection."""
    m = np.array(matrix, dtype=float)
    error = float(np.abs(m.T @ m - np.eye(3)).max()) if np.abs(m).max() < 10 else math.inf
    return error, bool(np.linalg.det(m) < 0)


def _sorts(m: Mechanism):
    return (
        ("body", m.bodies),
        ("joint", m.joints),
        ("frame", m.frames),
        ("loop", m.loops),
        ("coupling", m.couplings),
        ("force", m.forces),
        ("parameter", m.parameters),
    )


def _parts(m: Mechanism):
    return (*m.parameters, *m.bodies, *m.joints, *m.frames, *m.loops, *m.couplings, *m.forces, *m.scenery, *m.contacts)


def _where(x: Any) -> Where:
    sort = {"ForceElement": "force", "Shape": "scenery"}.get(type(x).__name__, type(x).__name__.lower())
    return part_at(sort, x.name) if hasattr(x, "name") else at("gravity")


def _placements(part: object):
    own = [getattr(part, n) for n in ("placement", "placement_a", "placement_b") if hasattr(part, n)]
    return own + [surface.placement for surface in [getattr(part, "surface", None)] if surface is not None]


def _expression_names(x: object) -> set[str]:
    if isinstance(x, Expression):
        return x.names()
    if isinstance(x, tuple):
        return set().union(*map(_expression_names, x)) if x else set()
    if is_dataclass(x) and not isinstance(x, type):
        return set().union(*(_expression_names(getattr(x, f.name)) for f in fields(x)))
    return set()


def is_plain(x: Scalar) -> bool:
    """Return whether all numbers of a part are plain and finite: a fast check for mechanisms of very many parts."""
    kind = type(x)
    if kind is float:
        return math.isfinite(x)
    if kind is tuple:
        return all(map(is_plain, x))
    if kind is str or x is None:
        return True
    if kind is Expression or not is_dataclass(kind):
        return False
    return all(map(is_plain, vars(x).values()))


def _finite(x: object, where: str, label: str = "") -> None:
    if isinstance(x, float | int) and not isinstance(x, bool):
        limit = label in ("lower", "upper", "velocity", "effort")
        if math.isnan(x) or (math.isinf(x) and not limit):
            raise ModelError(f"{label or 'a number'} is {x}", where=where, remedy="give a finite number")
    elif isinstance(x, tuple):
        for a in x:
            _finite(a, where, label)
    elif is_dataclass(x) and not isinstance(x, type):
        for f in fields(x):
            _finite(getattr(x, f.name), where, f.name)
