"""Mechanisms with something added: a payload on a body, a geared drive in a joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import joints as joint_kinds
from ..algebra.vectors import ZERO, Vector, add, dot, scale, sub
from ..errors import InputError
from ..model import checks
from ..model.mechanism import Mechanism
from ..model.parameters import Number
from ..model.parts import Body
from ..numbers import number
from .arguments import coefficients, vector


def with_payload(
    mechanism: Mechanism, body: str, mass: float, com: Any = ZERO, inertia: Sequence[float] = (0.0,) * 6
) -> Mechanism:
    """Return the mechanism with a load fixed to a body.

    Mass [kg], mass centre [m] and inertia about it (xx, yy, zz, xy, yz, zx) [kg m^2] are those of the load, in the
    body's frame.
    """
    carrier = mechanism.body(body)
    where = f"the payload of {body!r}"
    moments = coefficients(inertia, f"the inertia of {where}")
    load = Body(f"payload of {body}", number(mass, f"the mass of {where}"), vector(com, f"com of {where}"), moments)
    checks.body(load)
    bodies = tuple(_joined(b, load) if b is carrier else b for b in mechanism.bodies)
    return replace(mechanism, bodies=bodies)


def with_gear(mechanism: Mechanism, joint: str, ratio: float, rotor_inertia: Number) -> Mechanism:
    """Return the mechanism with a geared drive in a joint: its armature is ratio^2 rotor_inertia.

    The ratio is turns of the rotor for one of the joint (rad/m for a prismatic joint), the inertia that of the rotor
    about its own axis [kg m^2]. It takes the place of an armature that was there. The rotor's mass belongs to the body
    that carries it; its gyroscopic torque is left out.
    """
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


def _joined(b: Body, load: Body) -> Body:
    """Return one body of two, whose data are in one frame."""
    if load.mass == 0.0:
        share, reduced = 0.0, 0.0
    else:
        share = load.mass / (b.mass + load.mass)
        reduced = b.mass * share  # m1 m2 / (m1 + m2)
    way: Vector = sub(load.com, b.com)
    x, y, z = way
    square = dot(way, way)
    apart = (square - x * x, square - y * y, square - z * z, -x * y, -y * z, -z * x)  # of a unit mass at the end of it
    inertia = tuple(i + j + reduced * k for i, j, k in zip(b.inertia, load.inertia, apart, strict=True))
    return replace(b, mass=b.mass + load.mass, com=add(b.com, scale(share, way)), inertia=inertia)
