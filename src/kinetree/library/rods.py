"""Rods: elastic beams of large deflection by rigid segments, with the stiffness of each cell in one joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._support.checks import number, numbers, positive, vector
from ..errors import InputError, ModelError
from ..model import GROUND, Beam, Body, ForceElement, Frame, Joint, Mechanism, Placement, Shape
from ..model.beams import Section
from ..model.parts import Limits
from .chains import ACROSS, UP, UPRIGHT, check_count

JOINTS = {"revolute": 1, "universal": 2, "euler": 3}
"""The joints a rod may have, with their degrees of freedom: bending in the x-z plane, bending both ways, and twist."""


def rod_mechanism(
    length: float,
    n: int,
    *,
    E: float | None = None,
    G: float | None = None,
    rho: float | None = None,
    section: tuple[Any, ...] | None = None,
    EI: tuple[float, float] | float | None = None,
    GJ: float | None = None,
    mass_per_length: float | None = None,
    polar: float | None = None,
    joint: str = "universal",
    curvature: Sequence[float] = (0.0, 0.0),
    taper: float = 1.0,
    damping: float = 0.0,
    tip_mass: float = 0.0,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "rod",
) -> Mechanism:
    """Return a rod of n cells along x, clamped at the ground's origin; frame "tip" is at its end.

    The rod is cut into n cells of equal length. The stiffness of a cell is that of a joint at its middle, and links
    reach from middle to middle: deflections, small or large, have errors of the second order in 1 / n, so that
    (4 w(2 n) - w(n)) / 3 is more accurate than both. Material, section and stiffnesses are those of `kt.Beam`.

    Args:
        length: [m].
        n: the number of cells and joints.
        E: Young's modulus [Pa].
        G: the shear modulus [Pa], for twist.
        rho: the density [kg/m^3].
        section: ("rectangle", size along y, size along z), ("circle", diameter) or ("tube", outer, inner diameter) [m].
        EI: the bending stiffness along y and along z [N m^2], in place of E and a section.
        GJ: the torsional stiffness [N m^2].
        mass_per_length: [kg/m].
        polar: the moment of inertia about the axis per length [kg m].
        joint: "revolute" bends in the x-z plane, "universal" both ways, "euler" twists too (yzx).
        curvature: at rest, about y and about z [1/m].
        taper: the size of the section at the end relative to that at the origin; it varies in proportion to x.
        damping: the ratio of damping to stiffness [s].
        tip_mass: a point mass at the end [kg].
        gravity: [m/s^2].
        name: of the mechanism.
    """
    count = check_count(n, "n", "cells")
    if joint not in JOINTS:
        raise InputError(f"joint is {joint!r}; expected one of {', '.join(JOINTS)}")
    twists = int(joint == "euler")
    modes = (1 if joint != "revolute" else 0, 1, twists, 0)
    try:
        given = Beam(
            length, E=E, G=G, rho=rho, section=section, EI=EI, GJ=GJ, mass_per_length=mass_per_length, polar=polar,
            modes=modes, tip_mass=tip_mass,
        )  # fmt: skip
    except ModelError as error:
        raise InputError(str(error).replace("beam: ", "rod: ")) from None
    ratio, tau = positive(taper, "the taper"), number(damping, "the damping", least=0.0)
    bends = numbers(curvature, "the curvature")
    if len(bends) != 2:
        raise InputError(f"the curvature has {len(bends)} numbers; give two, about y and about z")
    freedoms, h = JOINTS[joint], given.length / count
    bodies, joints, springs, above = [], [], [], GROUND
    for k in range(count):
        size = 1 + (ratio - 1) * (k + 0.5) / count
        cell = given.properties
        stiffness = [x * size**4 / h for x in (cell.EI[1], cell.EI[0], cell.GJ)][:freedoms]
        rest = [bends[0] * h, bends[1] * h, 0.0][:freedoms]
        last = k == count - 1
        own = f"cell{k + 1}"
        bodies.append(_link(own, cell, size, h / 2 if last else h, given.tip_mass if last else 0.0))
        place = Placement((h if k else h / 2, 0.0, 0.0))
        joints.append(
            Joint(
                f"joint{k + 1}", joint, above, own, place, ACROSS, UP if joint == "universal" else None,
                sequence="yzx", limits=Limits(), damping=tuple(tau * x for x in stiffness) if tau else (),
            )
        )  # fmt: skip
        pairs = [(f"stiffness_{d + 1}", x) for d, x in enumerate(stiffness)]
        pairs += [(f"rest_{d + 1}", x) for d, x in enumerate(rest) if x]
        springs.append(ForceElement(f"spring{k + 1}", "joint_spring", above, own, coefficients=tuple(pairs)))
        above = own
    tip = Frame("tip", above, Placement((h / 2, 0.0, 0.0)))
    return Mechanism(
        name, tuple(bodies), tuple(joints), (tip,), forces=tuple(springs), gravity=vector(gravity, "the gravity")
    )


def _link(name: str, section: Section, size: float, length: float, load: float) -> Body:
    """Return a link along x with the section scaled by a size, and a load at its end [kg]."""
    mass = section.mass * size**2 * length
    y, z = (x * size**4 * length for x in section.spread)
    total = mass + load
    middle = (mass / 2 + load) * length / total
    more = mass * length**2 / 12 + mass * (middle - length / 2) ** 2 + load * (length - middle) ** 2
    inertia = (y + z, z + more, y + more, 0.0, 0.0, 0.0)
    thickness = max(2 * (max(y, z) / mass) ** 0.5, length / 50)
    shape = Shape("cylinder", (thickness, length), Placement((length / 2, 0.0, 0.0), UPRIGHT))
    return Body(name, total, (middle, 0.0, 0.0), inertia, (shape,))
