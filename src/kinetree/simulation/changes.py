"""Changed mechanisms: a payload fixed to a body, a geared drive in a joint, further parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import joints as joint_kinds
from ..algebra.vectors import ZERO, Vector, add, dot, scale, sub
from ..errors import InputError
from ..model import checks
from ..model.mechanism import Mechanism
from ..model.parameters import Number, Parameter
from ..model.parts import Body
from ..numbers import number
from .arguments import coefficients, mechanism_of, vector

if TYPE_CHECKING:
    from ..system import System


def with_payload(
    mechanism: Mechanism | System, body: str, mass: float, com: Any = ZERO, inertia: Sequence[float] = (0.0,) * 6
) -> Mechanism:
    """Return the mechanism with a load fixed to a body.

    Mass [kg], center of mass [m] and inertia about it (xx, yy, zz, xy, yz, zx) [kg m^2] are those of the load, in the
    frame of the body.
    """
    mechanism = mechanism_of(mechanism)
    carrier = mechanism.body(body)
    where = f"the payload of {body!r}"
    moments = coefficients(inertia, f"the inertia of {where}")
    load = Body(f"payload of {body}", number(mass, f"the mass of {where}"), vector(com, f"com of {where}"), moments)
    checks.body(load)
    bodies = tuple(_joined(b, load) if b is carrier else b for b in mechanism.bodies)
    return replace(mechanism, bodies=bodies)


def with_gear(mechanism: Mechanism | System, joint: str, ratio: float, rotor_inertia: Number) -> Mechanism:
    """Return the mechanism with a geared drive in a joint: its armature is ratio^2 rotor_inertia.

    The ratio is the rotation of the rotor per rotation of the joint (rad/m for a prismatic joint). The inertia is that
    of the rotor about its own axis [kg m^2]. The new armature replaces an earlier one. The mass of the rotor belongs to
    the body that carries it. The gyroscopic torque of the rotor is neglected.
    """
    mechanism = mechanism_of(mechanism)
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
    return replace(mechanism, joints=tuple(driven if j is old else j for j in mechanism.joints))


def with_parameters(mechanism: Mechanism | System, **values: float) -> Mechanism:
    """Return the mechanism with further free parameters, such as gains that controllers and forces read by name."""
    mechanism = mechanism_of(mechanism)
    known = [p.name for p in mechanism.parameters]
    for name in values:
        if name in known:
            raise InputError(f"{mechanism.name!r} has a parameter {name!r} already; choose another name")
    more = (Parameter(name, number(x, f"parameter {name!r}"), free=True) for name, x in values.items())
    return replace(mechanism, parameters=(*mechanism.parameters, *more))


def _joined(b: Body, load: Body) -> Body:
    """Return one body made of two that are given in the same frame."""
    if load.mass == 0.0:
        share, reduced = 0.0, 0.0
    else:
        share = load.mass / (b.mass + load.mass)
        reduced = b.mass * share  # m1 m2 / (m1 + m2)
    way: Vector = sub(load.com, b.com)
    x, y, z = way
    square = dot(way, way)
    apart = (square - x * x, square - y * y, square - z * z, -x * y, -y * z, -z * x)  # of a unit mass at this distance
    inertia = tuple(i + j + reduced * k for i, j, k in zip(b.inertia, load.inertia, apart, strict=True))
    return replace(b, mass=b.mass + load.mass, com=add(b.com, scale(share, way)), inertia=inertia)
