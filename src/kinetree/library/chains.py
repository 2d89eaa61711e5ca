"""Chains, ropes and rods of any number of links, as mechanisms: 100,000 links are built in a second.

Links are solid cylinders along their frame's x axis, each joint at the end of the link before. The parts are correct by
construction, so that they are not checked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import joints as joint_kinds
from .._support.checks import number, numbers, positive, vector, whole
from ..algebra.vectors import IDENTITY, Matrix, Vector, sub
from ..errors import InputError, ModelError
from ..model import (
    GROUND,
    Beam,
    Body,
    ForceElement,
    Frame,
    Joint,
    Loop,
    Mechanism,
    Number,
    Placement,
    Shape,
    build_mechanism,
)
from ..model.beams import Section
from ..model.parts import Limits

# --- Checks of the number of parts of a generated mechanism ---

MOST = 2_000_000
"""Largest number of parts of one kind. A body takes some kilobytes of memory: more would exhaust it with no error."""


def check_count(n: object, what: str, parts: str, *, least: int = 1) -> int:
    """Return a whole number of parts, such as "links"."""
    return whole(n, what, least=least, most=MOST, of=parts)


ALONG, ACROSS, UP = IDENTITY
ROPE_JOINTS = {"revolute": 1, "universal": 2, "euler": 3, "spherical": 3}
"""The joints a rope may have, with their degrees of freedom: bending in a plane, bending both ways, and twist too."""
UPRIGHT: Matrix = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0))
"""Rotation to axes whose x points down."""


@dataclass(frozen=True)
class Link:
    """A solid cylinder along x, from the joint at its origin: length [m], mass [kg] and radius [m]."""

    length: float
    mass: float
    radius: float

    @property
    def inertia(self) -> tuple[float, ...]:
        """The inertia about the center of mass [kg m^2]."""
        across = self.mass * (3 * self.radius**2 + self.length**2) / 12
        return (self.mass * self.radius**2 / 2, across, across, 0.0, 0.0, 0.0)

    @property
    def shape(self) -> Shape:
        """The cylinder to draw."""
        place = Placement((self.length / 2, 0.0, 0.0), UPRIGHT)
        return Shape("cylinder", (self.radius, self.length), place)

    def body(self, name: str, load: float = 0.0) -> Body:
        """Return the body, with a load [kg] as a point mass at its end."""
        mass = self.mass + load
        middle = (self.mass / 2 + load) * self.length / mass
        xx, yy, zz, *rest = self.inertia
        more = self.mass * (middle - self.length / 2) ** 2 + load * (self.length - middle) ** 2
        return Body(name, mass, (middle, 0.0, 0.0), (xx, yy + more, zz + more, *rest), (self.shape,))


def chain_mechanism(
    n: int,
    *,
    joint: str = "revolute",
    length: float = 0.1,
    mass: float = 0.1,
    radius: float | None = None,
    planar: bool = False,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "chain",
) -> Mechanism:
    """Return n equal links in a row along x, each a cylinder of a length [m], mass [kg] and radius [m].

    Joints with an axis rotate about y and z alternately, or all about y (`planar`). The radius is by default a tenth of
    the length. Frame "tip" is the end of the last link.
    """
    count = check_count(n, "n", "links")
    kinds = [name for name, kind in joint_kinds.KINDS.items() if "ratio" not in kind.DATA]
    if joint not in kinds:
        raise InputError(f"joint is {joint!r}; expected one of {', '.join(kinds)}")
    link = Link(
        positive(length, "the length"),
        positive(mass, "the mass"),
        positive(length / 10 if radius is None else radius, "the radius"),
    )
    body, end = link.body("link"), Placement((link.length, 0.0, 0.0))
    axes = (ACROSS, ACROSS if planar else UP)
    others = (UP, UP if planar else ACROSS) if joint == "universal" else (None, None)
    names = [f"link{k + 1}" for k in range(count)]
    bodies = tuple(Body(x, body.mass, body.com, body.inertia, body.shapes) for x in names)
    above, places, none = (GROUND, *names), (Placement(), *[end] * (count - 1)), Limits()
    joints = tuple(
        Joint(f"joint{k + 1}", joint, above[k], names[k], places[k], axes[k % 2], others[k % 2], limits=none)
        for k in range(count)
    )
    tip = Frame("tip", names[-1], end)
    return Mechanism(name, bodies, joints, (tip,), gravity=vector(gravity, "the gravity"))


def polymer_mechanism(
    n: int,
    *,
    bond: float = 0.153,
    angle: float = math.radians(109.5),
    mass: float = 14.0,
    name: str = "polymer",
) -> Mechanism:
    """Return a molecule of n atoms in a row, free in space, with fixed bonds and bond angles [rad].

    Any units that fit together do; the defaults are nm and u, with which ps and kJ/mol go. The first three atoms are
    the body "base" on a free joint. Joint "torsion4" turns atom 4 about the bond of atoms 2 and 3, and so on; 0 is the
    position in which atoms 1 and 4 are nearest (cis). Frames "atom1", ... are the atoms.
    """
    count = check_count(n, "n", "atoms", least=3)
    length, unit = positive(bond, "the bond"), positive(mass, "the mass")
    if not 0.0 < number(angle, "the angle") < math.pi:
        raise InputError(f"the angle is {angle!r}; expected one between 0 and pi")
    s, c = math.sin(angle), math.cos(angle)
    way = (length * s, 0.0, -length * c)  # to the next atom, in axes whose z is the bond before
    onward = Placement(way, ((-c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, -c)))
    points = ((0.0, 0.0, -length), (0.0, 0.0, 0.0), way)
    middle = (way[0] / 3, 0.0, (way[2] - length) / 3)
    moments = point_moments(unit, [sub(p, middle) for p in points])
    bodies, joints = [Body("base", 3 * unit, middle, moments)], [Joint("base", "free", GROUND, "base")]
    frames = [Frame(f"atom{k}", "base", Placement(p)) for k, p in enumerate(points, 1)]
    for k in range(4, count + 1):
        bodies.append(Body(f"unit{k}", unit, way))
        joints.append(Joint(f"torsion{k}", "revolute", f"unit{k - 1}" if k > 4 else "base", f"unit{k}", onward))
        frames.append(Frame(f"atom{k}", f"unit{k}", Placement(way)))
    return Mechanism(name, tuple(bodies), tuple(joints), tuple(frames), gravity=(0.0, 0.0, 0.0))


def point_moments(mass: float, points: Sequence[Vector]) -> tuple[float, ...]:
    """Return the moments of inertia about the origin of equal masses at points."""
    xx, yy, zz = (mass * sum(p[k] ** 2 for p in points) for k in range(3))
    xy, yz, zx = (-mass * sum(p[i] * p[k] for p in points) for i, k in ((0, 1), (1, 2), (2, 0)))
    return (yy + zz, zz + xx, xx + yy, xy, yz, zx)


def rope_mechanism(
    length: float,
    n: int,
    *,
    mass_per_metre: float,
    radius: float,
    bending: float = 0.0,
    torsion: float = 0.0,
    damping: float = 0.0,
    ends: tuple[str, str | float] = ("pinned", "free"),
    joint: str = "universal",
    span: float | None = None,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "rope",
) -> Mechanism:
    """Return a rope of n links that hangs from the ground's origin, or a bridge where both ends are pinned.

    Args:
        length: of the rope [m]; a link has length / n.
        n: the number of links.
        mass_per_metre: [kg/m].
        radius: of the rope [m]; it determines the links' inertia about their own axis.
        bending: the bending stiffness EI [N m^2]. A joint between two links has EI / link length [N m/rad] about each
            axis perpendicular to the rope: the beam's curvature, concentrated in the joints.
        torsion: the torsional stiffness GJ [N m^2], in the same way; only joint="euler" can twist and resist it.
        damping: the bending (and torsional) damping [N m^2 s]: a joint has damping / link length [N m s/rad].
        ends: the first is "pinned"; the second "free", a load [kg] as a point mass, or "pinned": then the loop "end",
            a spherical joint, holds it at the same height, and the rope spans along x.
        joint: "universal" bends both ways, "euler" also twists (yzx), "spherical" does both by quaternions, without
            springs, "revolute" bends in the x-z plane.
        span: the distance of pinned ends [m], by default 0.9 of the length. `guess` is an arc that sags between them.
        gravity: [m/s^2].
        name: of the mechanism.
    """
    count = check_count(n, "n", "links")
    link = rope_link(positive(length, "the length"), count, mass_per_metre, radius)
    load = _load(ends)
    bridge = ends[1] == "pinned"
    start = Placement() if bridge else Placement(rotation=UPRIGHT)
    bodies, joints, springs = rope_parts(
        link, count, joint=joint, bending=bending, torsion=torsion, damping=damping, start=start, load=load
    )
    end = Placement((link.length, 0.0, 0.0))
    loops, guess = (), ()
    if bridge:
        reach = 0.9 * length if span is None else positive(span, "the span")
        if reach > length:
            raise InputError(f"the span is {reach:g} m; expected no more than the length, {length:g} m")
        loops = (Loop("end", "spherical", bodies[-1].name, GROUND, end, Placement((reach, 0.0, 0.0))),)
        guess = _arc(link.length, reach, joint, joints)
    elif span is not None:
        raise InputError("a span is given, but only one end is pinned; use ends=('pinned', 'pinned') or give no span")
    return Mechanism(
        name,
        bodies,
        joints,
        (Frame("tip", bodies[-1].name, end),),
        loops,
        forces=springs,
        gravity=vector(gravity, "the gravity"),
        guess=guess,
    )


def rope_link(length: float, n: int, mass_per_metre: float, radius: float) -> Link:
    """Return a link of a rope of n links: lengths in m, mass per meter in kg/m."""
    mass = positive(mass_per_metre, "the mass_per_metre") * length / n
    return Link(length / n, mass, positive(radius, "the radius"))


def rope_parts(
    link: Link,
    n: int,
    *,
    joint: str = "universal",
    bending: float = 0.0,
    torsion: float = 0.0,
    damping: float = 0.0,
    parent: str = GROUND,
    start: Placement = Placement(),
    load: float = 0.0,
    prefix: str = "",
) -> tuple[tuple[Body, ...], tuple[Joint, ...], tuple[ForceElement, ...]]:
    """Return bodies, joints and springs of a rope that begins at a placement on a parent, to build trees of ropes.

    The stiffnesses and the damping are those of the rope; names begin with `prefix`. The first joint has no spring.
    """
    if joint not in ROPE_JOINTS:
        raise InputError(f"joint is {joint!r}; expected one of {', '.join(ROPE_JOINTS)}")
    stiffness = [number(bending, "the bending", least=0.0) / link.length] * min(ROPE_JOINTS[joint], 2)
    if joint == "euler":
        stiffness.append(number(torsion, "the torsion", least=0.0) / link.length)
    elif torsion:
        raise InputError(f"torsion is {torsion:g} N m^2, but {joint} joints cannot twist against it; use joint='euler'")
    if joint == "spherical" and bending:
        raise InputError(
            f"bending is {bending:g} N m^2, but spherical joints have no springs; use 'universal' or 'euler'"
        )
    losses = (number(damping, "the damping", least=0.0) / link.length,) * ROPE_JOINTS[joint] if damping else ()
    names = [f"{prefix}link{k + 1}" for k in range(n)]
    plain, last = link.body("link"), link.body(names[-1], load)
    bodies = (*(Body(x, plain.mass, plain.com, plain.inertia, plain.shapes) for x in names[:-1]), last)
    end, none = Placement((link.length, 0.0, 0.0)), Limits()
    second = UP if joint == "universal" else None
    above = (parent, *names)
    joints = tuple(
        Joint(
            f"{prefix}joint{k + 1}", joint, above[k], names[k], end if k else start, ACROSS, second,
            sequence="yzx", limits=none, damping=losses,
        )
        for k in range(n)
    )  # fmt: skip
    coefficients = tuple((f"stiffness_{d + 1}", x) for d, x in enumerate(stiffness))
    springs = tuple(
        ForceElement(f"{prefix}spring{k + 1}", "joint_spring", names[k - 1], names[k], coefficients=coefficients)
        for k in range(1, n if any(stiffness) else 1)
    )
    return bodies, joints, springs


def _arc(link: float, span: float, joint: str, joints: Sequence[Joint]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return coordinates at which the links lie on an arc that sags below the two ends."""
    n = len(joints)

    def chord(bend: float) -> float:
        return link * math.sin(n * bend / 2) / math.sin(bend / 2) if bend else link * n

    low, high = 0.0, 2 * math.pi / n  # a full circle has no chord
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if chord(middle) > span else (low, middle)
    angles = [(n - 1) * low / 2] + [-low] * (n - 1)  # a positive rotation about y turns x down

    def coordinates(angle: float) -> tuple[float, ...]:
        if joint == "spherical":
            return (0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2))
        return (angle, *(0.0,) * (ROPE_JOINTS[joint] - 1))

    return tuple((j.name, coordinates(a)) for j, a in zip(joints, angles, strict=True))


def _load(ends: object) -> float:
    if not isinstance(ends, tuple | list) or len(ends) != 2 or ends[0] != "pinned":
        raise InputError(
            f"ends is {ends!r}; expected ('pinned', 'free'), ('pinned', 'pinned') or ('pinned', load in kg)"
        )
    if isinstance(ends[1], str):
        if ends[1] not in ("free", "pinned"):
            raise InputError(f"the second end is {ends[1]!r}; expected 'free', 'pinned' or a load in kg")
        return 0.0
    return number(ends[1], "the load", least=0.0)


# --- Closed mechanisms of any size, as mechanisms: families that a single file could not describe ---

SOURCE = """\
IFToMM library of multibody benchmarks, A02 (N four-bars): bars of 1 m and 1 kg as slender rods; N = 2 and 40 have \
reference solutions"""


def n_four_bars_mechanism(
    n: int,
    *,
    length: float = 1.0,
    mass: float = 1.0,
    gravity: Sequence[Number] = (0.0, -9.81, 0.0),
    name: str = "",
) -> Mechanism:
    """Return n four-bars in a row in the x-y plane: n + 1 upright rockers on the ground, and n couplers.

    The bars are slender rods of one length [m] and mass [kg]. Rocker k is at x = k length and carries coupler k. The
    coupler is cut from rocker k + 1, where the loop "pin{k + 1}" closes. Frame "B{k}" is the top of rocker k. At q = 0
    the rockers are upright and all loops are closed. One degree of freedom; rocker 0 is the independent one. In the
    flat position the mechanism gains n more.
    """
    count = check_count(n, "n", "four-bars")
    for label, value in (("length", length), ("mass", mass)):
        if not 0 < value < math.inf:
            raise InputError(f"the {label} is {value!r}; expected more than 0")
    moment = mass * length * length / 12
    top = Placement((0.0, length, 0.0))
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k in range(count + 1):
        rocker, coupler = f"rocker{k}", f"coupler{k}"
        bodies.append(Body(rocker, mass, (0.0, length / 2, 0.0), (moment, 0.0, moment, 0.0, 0.0, 0.0)))
        joints.append(Joint(rocker, "revolute", GROUND, rocker, Placement((k * length, 0.0, 0.0))))
        if k < count:
            bodies.append(Body(coupler, mass, (length / 2, 0.0, 0.0), (0.0, moment, moment, 0.0, 0.0, 0.0)))
            joints.append(Joint(coupler, "revolute", rocker, coupler, top))
    end = Placement((length, 0.0, 0.0))
    return build_mechanism(
        name or f"{count}_four_bars",
        bodies,
        joints,
        frames=[Frame(f"B{k}", f"rocker{k}", top) for k in range(count + 1)],
        loops=[
            Loop(f"pin{k + 1}", "revolute", f"rocker{k + 1}", f"coupler{k}", placement_a=top, placement_b=end)
            for k in range(count)
        ],
        gravity=gravity,  # type: ignore[arg-type]
        source=SOURCE,
        description=(
            "The benchmark starts with the rockers upright and B0 moving at 1 m/s along x: q = 0, with velocities "
            "-1 rad/s of the rockers and 1 rad/s of the couplers."
        ),
    )


# --- Rods: elastic beams of large deflection by rigid segments, with the stiffness of each cell in one joint ---

ROD_JOINTS = {"revolute": 1, "universal": 2, "euler": 3}
"""The joints a rod may have, with their degrees of freedom: bending in the x-z plane, bending both ways, and twist."""


def rod_mechanism(
    length: float,
    n: int,
    *,
    E: float | None = None,
    G: float | None = None,
    rho: float | None = None,
    section: tuple[object, ...] | None = None,
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
    if joint not in ROD_JOINTS:
        raise InputError(f"joint is {joint!r}; expected one of {', '.join(ROD_JOINTS)}")
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
    freedoms, h = ROD_JOINTS[joint], given.length / count
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
