"""Beam: a straight beam of Euler and Bernoulli along the x axis of its body, by assumed modes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.nodes import Node
from ..algebra.scalars import Scalar, is_number
from ..errors import ModelError, brief, unknown_name
from .beam_shapes import (
    CLAMPS,
    Series,
    bending_roots,
    eigenmode,
    gauss,
    largest,
    modes_of,
    polynomials,
    rod_roots,
    sine,
)
from .modal_bodies import ModalBody, Points

FAMILIES = ("y", "z", "torsion", "axial")
"""Bending along y, bending along z, torsion and extension: the families of modes, in the order of `modes`."""

MOST_MODES = 20
"""Largest number of modes of a family: beyond, polynomials are so much alike that rounding errors grow."""

ENDS = ("clamped-free", "clamped-pinned", "clamped-clamped", "pinned-pinned")
"""The ends at x = 0 and x = L of which bending modes are; torsion and extension are fixed at x = 0, free at x = L."""

SLOPE, STRAIN = 0.2, 0.01
"""The largest valid slope or angle [rad], where terms beyond the second order are a percent, and axial strain [1]."""

SHAPES = ("polynomials", "eigenmodes")
TIP = "tip"
"""The node at x = L, which every beam has."""
RESERVED = (TIP, "elastic", "modes", "stiffness")
"""Names of parts of a flexible body that its nodes cannot have."""


@dataclass(frozen=True)
class Beam:
    """A straight beam along x from its body's origin, with small deflections in assumed modes.

    Args:
        length: [m].
        E: Young's modulus [Pa].
        G: the shear modulus [Pa], for torsion.
        rho: the density [kg/m^3].
        section: ("rectangle", size along y, size along z), ("circle", diameter) or ("tube", outer diameter, inner
            diameter) [m]. In its place, stiffnesses may be given:
        EI: the bending stiffness along y and along z [N m^2], one number for both.
        GJ: the torsional stiffness [N m^2].
        EA: the axial stiffness [N].
        mass_per_length: [kg/m].
        polar: the moment of inertia about the axis per length [kg m], zero for a thin beam.
        modes: the numbers of modes: bending along y, bending along z, torsion, extension; (0,) is a rigid beam.
        ends: of the bending modes: "clamped-free", "clamped-pinned", "clamped-clamped" or "pinned-pinned".
        shapes: "polynomials", which contain the static deflections under a force and a moment at the tip (two modes)
            and under the beam's own weight (three), or "eigenmodes" of the beam with its tip mass.
        tip_mass: a point mass at x = L [kg].
        damping: the damping ratio of every mode.
        nodes: where parts can be attached: their distances from the origin [m] by name. "tip" is at x = L.
        foreshortening: whether points approach the origin as the beam bends. Without it a beam that rotates fast is too
            soft, and softer the faster it rotates.
    """

    length: float
    E: float | None = None
    G: float | None = None
    rho: float | None = None
    section: tuple[Any, ...] | None = None
    EI: tuple[float, float] | float | None = None
    GJ: float | None = None
    EA: float | None = None
    mass_per_length: float | None = None
    polar: float | None = None
    modes: tuple[int, ...] = (2, 2, 0, 0)
    ends: str = "clamped-free"
    shapes: str = "polynomials"
    tip_mass: float = 0.0
    damping: float = 0.0
    nodes: Mapping[str, float] | tuple[tuple[str, float], ...] = ()
    foreshortening: bool = True

    def __post_init__(self) -> None:
        """Check the numbers, and make tuples of lists and tables."""
        _tidy(self)
        _ = self.properties

    @cached_property
    def properties(self) -> Section:
        """The stiffnesses and masses of the cross section."""
        return _section(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the modal coordinates, such as y1 and torsion1."""
        return tuple(f"{what}{k + 1}" for what, n in zip(FAMILIES, self.modes, strict=True) for k in range(n))

    @property
    def node_places(self) -> tuple[tuple[str, float], ...]:
        """The nodes with their distances from the origin [m]."""
        own: Any = self.nodes
        return (*own, (TIP, self.length))

    @cached_property
    def modal(self) -> ModalBody:
        """The moments of the beam's points, with its modes made orthogonal."""
        return _modal(self)


@dataclass(frozen=True)
class Section:
    """Stiffnesses of a cross section: EI along y and z [N m^2], GJ [N m^2], EA [N]; mass and moments per length.

    `spread` has the second moments of mass per length along y and along z [kg m].
    """

    EI: tuple[float, float]
    GJ: float
    EA: float
    mass: float
    spread: tuple[float, float]


# --- Checks and cross sections ---


def _fault(what: str, remedy: str) -> ModelError:
    return ModelError(what, where="beam", remedy=remedy)


LARGEST = 1e30
"""Largest number of a beam, and the inverse of the smallest: beyond, products of them leave the range of floats."""


def _number(value: Any, what: str, *, least: float = 0.0, above: bool = False) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
    if good and not (value == 0 or 1 / LARGEST <= abs(value) <= LARGEST):
        raise _fault(f"the {what} is {brief(value)}", f"give a number from {1 / LARGEST:g} to {LARGEST:g} in SI units")
    if not good or value < least or (above and value <= least):
        bound = f"more than {least:g}" if above else f"{least:g} or more"
        raise _fault(f"the {what} is {brief(value)}", f"give a number, {bound}")
    return float(value)


def _tidy(beam: Beam) -> None:
    def put(name: str, value: object) -> None:
        object.__setattr__(beam, name, value)

    put("length", _number(beam.length, "length", above=True))
    for name in ("E", "G", "rho", "GJ", "EA", "mass_per_length"):
        if getattr(beam, name) is not None:
            put(name, _number(getattr(beam, name), name, above=True))
    if beam.polar is not None:
        put("polar", _number(beam.polar, "polar"))
    if beam.EI is not None:
        pair = beam.EI if isinstance(beam.EI, list | tuple) else (beam.EI, beam.EI)
        if len(pair) != 2:
            raise _fault(f"EI has {len(pair)} numbers", "give one, or two: along y and along z")
        put("EI", tuple(_number(x, "EI", above=True) for x in pair))
    for name in ("tip_mass", "damping"):
        put(name, _number(getattr(beam, name), name.replace("_", " ")))
    given = beam.modes
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= 4:
        raise _fault(f"modes is {brief(given)}", f"give the numbers of modes: {', '.join(FAMILIES)}")
    counts = (*given, *(0,) * (4 - len(given)))
    for what, n in zip(FAMILIES, counts, strict=True):
        if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n <= MOST_MODES:
            raise _fault(f"the number of modes {what!r} is {brief(n)}", f"give a whole number from 0 to {MOST_MODES}")
    put("modes", counts)
    if isinstance(beam.section, list):
        put("section", tuple(beam.section))
    for name, known in (("ends", ENDS), ("shapes", SHAPES)):
        if getattr(beam, name) not in known:
            raise unknown_name(name, str(getattr(beam, name)), known, where="beam")
    if not isinstance(beam.foreshortening, bool):
        raise _fault(f"foreshortening is {brief(beam.foreshortening)}", "give true or false")
    nodes = beam.nodes.items() if isinstance(beam.nodes, Mapping) else beam.nodes
    pairs = isinstance(nodes, Iterable) and [x for x in nodes if isinstance(x, list | tuple) and len(x) == 2]
    if not isinstance(pairs, list) or len(pairs) < len(tuple(nodes)):
        raise _fault(f"nodes is {brief(beam.nodes)}", "give distances [m] by name, such as {'middle': 1.0}")
    put("nodes", tuple(_node(beam, pair) for pair in nodes))
    if len({name for name, _ in beam.node_places}) <= len(beam.nodes):
        raise _fault("two nodes have the same name", "rename one of them")


def _node(beam: Beam, pair: Any) -> tuple[str, float]:
    name, x = pair
    if not isinstance(name, str) or not name.isidentifier() or name in RESERVED:
        raise _fault(
            f"a node has the name {brief(name)}", f"use letters, digits and _, and none of {', '.join(RESERVED)}"
        )
    at = _number(x, f"place of node {name!r}")
    if at > beam.length:
        raise _fault(f"node {name!r} is at {at:g} m of a beam of {beam.length:g} m", "give a distance on the beam")
    return name, at


def _section(beam: Beam) -> Section:
    _check_sizes(beam.section)
    kinds = {
        "EI": (beam.EI, "E", beam.modes[0] + beam.modes[1]),
        "GJ": (beam.GJ, "G", beam.modes[2]),
        "EA": (beam.EA, "E", beam.modes[3]),
        "mass_per_length": (beam.mass_per_length, "rho", 1),
    }
    for name, (given, modulus, needed) in kinds.items():
        if given is not None and beam.section is not None:
            raise _fault(f"{name} and a section are given", "give one of them")
        if needed and given is None and (beam.section is None or getattr(beam, modulus) is None):
            raise _fault(f"the beam has no {name}", f"give it, or {modulus} and a section")
    if beam.section is not None:
        if beam.polar is not None:
            raise _fault("polar and a section are given", "give one of them")
    elif beam.modes[2] and not beam.polar:
        raise _fault("the beam has torsion modes and no polar", "give polar, the moment of inertia per length [kg m]")
    given = {name: getattr(beam, name) for name in ("E", "G", "rho", "GJ", "EA", "mass_per_length", "polar")}
    sizes = {} if beam.section is None else dict(zip(SIZES[beam.section[0]], map(float, beam.section[1:]), strict=True))
    EI: Any = beam.EI or (0.0, 0.0)
    return section_formulas(beam, {k: x or 0.0 for k, x in given.items()} | sizes | {"EI_y": EI[0], "EI_z": EI[1]})


SIZES = {"rectangle": ("size_y", "size_z"), "circle": ("diameter",), "tube": ("outer", "inner")}
"""The cross sections with the names of their sizes."""


def section_formulas(beam: Beam, x: Mapping[str, Scalar]) -> Section:
    """Return the properties of a beam's cross section from its numbers by name, which may be formulas."""
    if beam.section is None:
        half = x.get("polar", 0.0) * 0.5
        stiffnesses = ((x.get("EI_y", 0.0), x.get("EI_z", 0.0)), x.get("GJ", 0.0), x.get("EA", 0.0))
        return Section(*stiffnesses, x.get("mass_per_length", 0.0), (half, half))
    if beam.section[0] == "rectangle":
        a, b = (x.get(name, own) for name, own in zip(SIZES["rectangle"], beam.section[1:], strict=True))
        area, second = a * b, (b * a * a * a / 12, a * b * b * b / 12)
        torsion = _rectangle_torsion(max(a, b), min(a, b)) if is_number(a) and is_number(b) else 0.0  # without modes
    else:
        outer, inner = x["diameter" if beam.section[0] == "circle" else "outer"], x.get("inner", 0.0)
        area = math.pi / 4 * (outer * outer - inner * inner)
        second = ((outer * outer * outer * outer - inner * inner * inner * inner) * (math.pi / 64),) * 2
        torsion = 2 * second[0]
    E, G, rho = (x.get(name, 0.0) for name in ("E", "G", "rho"))
    return Section(
        (E * second[0], E * second[1]), G * torsion, E * area, rho * area, (rho * second[0], rho * second[1])
    )


def _check_sizes(section: Any) -> None:
    """Refuse cross sections that are unknown or impossible."""
    if section is None:
        return
    kind, *given = section if isinstance(section, list | tuple) and section else (section,)
    if kind not in SIZES:
        raise unknown_name("section", str(kind), SIZES, where="beam")
    if len(given) != len(SIZES[kind]):
        raise _fault(f"a {kind} has {len(given)} sizes", f"give {len(SIZES[kind])}")
    size = [_number(x, f"size of the {kind}", above=kind != "tube" or k == 0) for k, x in enumerate(given)]
    if kind == "tube" and size[1] >= size[0]:
        raise _fault(f"the tube's inner diameter is {size[1]:g} m of {size[0]:g} m", "give the outer diameter first")


def _rectangle_torsion(a: float, b: float) -> float:
    """Return the torsion constant of a rectangle with sides a >= b, by Saint-Venant's series."""
    series = sum(math.tanh(n * math.pi * a / (2 * b)) / n**5 for n in range(1, 60, 2))
    return a * b**3 * (1 / 3 - 64 / math.pi**5 * b / a * series)


# --- Families of modes ---


@dataclass(frozen=True)
class Family:
    """Modes of one family: their shapes, made orthogonal with the largest value 1, and stiffnesses."""

    shapes: Series
    stiffness: np.ndarray


def _family(beam: Beam, what: str, n: int) -> Family:
    """Return the modes of a family by the least energy of its shapes (Rayleigh and Ritz), or as they are exactly."""
    given, bending = beam.properties, what in ("y", "z")
    if bending:
        inertia, rigidity, order = given.mass, given.EI["yz".index(what)], 2
    elif what == "torsion":
        inertia, rigidity, order = sum(given.spread), given.GJ, 1
    else:
        inertia, rigidity, order = given.mass, given.EA, 1
    roots: list[float] = []
    tip, L = 0.0 if what == "torsion" else beam.tip_mass, beam.length
    if beam.shapes == "polynomials":
        clamps = CLAMPS[beam.ends] if bending else (1, 0)
        found = Series.of(polynomials(n, clamps), n - 1 + sum(clamps))
    else:
        roots = bending_roots(n, beam.ends, tip / (inertia * L)) if bending else rod_roots(n, tip / (inertia * L))
        modes = [eigenmode(b, beam.ends) if bending else sine(b) for b in roots]
        found = Series.of(modes, 24 + 8 * n)
    s, weights = gauss(found.c.shape[-1] + 2)
    values, ends = found.at(s), found.at(1.0)
    mass = inertia * L * (values.T * weights) @ values + tip * np.outer(ends, ends)
    if beam.shapes == "polynomials":
        bent = found.slope(order).at(s)
        stiffness = rigidity / L ** (2 * order - 1) * (bent.T * weights) @ bent
        squares, mixes = modes_of(stiffness, mass)
        found = found.mixed(mixes)
        mass = np.ones(n)
    else:
        squares = np.array(roots) ** (2 * order) * rigidity / (inertia * L ** (2 * order))
        mass = np.diag(mass)
    sizes = largest(found)
    return Family(Series(found.c / sizes[:, None]), squares * mass / sizes**2)


# --- The points of a beam ---


def points_of(beam: Beam) -> Points:
    """Return four points per cross section at Gauss points along the axis, and the tip mass."""
    return _points(beam, _Displacements(beam))


def families_of(beam: Beam) -> dict[str, Family]:
    """Return the modes of a beam by family: functions of x / L and their stiffnesses."""
    return {what: _family(beam, what, n) for what, n in zip(FAMILIES, beam.modes, strict=True) if n}


def line_points(beam: Beam, lines: Iterable[tuple[float, float, float]], tip: float = 0.0) -> Points:
    """Return points along lines (mass per length, y, z) that are parallel to the axis, and a mass at the tip."""
    return _points_on(_Displacements(beam), lines, tip)


def _modal(beam: Beam) -> ModalBody:
    shape = _Displacements(beam)
    moments = _points(beam, shape).moments()
    stiffness = np.concatenate([np.zeros(0), *(f.stiffness for f in shape.families.values())])
    damping = 2 * beam.damping * np.sqrt(stiffness * np.diag(np.array(moments.K)))
    nodes = tuple(shape.node(name, x) for name, x in beam.node_places)
    valid = tuple(x for what in shape.families for x in _valid(shape, what))
    return ModalBody(beam.names, moments, tuple(map(float, stiffness)), tuple(map(float, damping)), nodes, valid)


def _valid(shape: _Displacements, what: str) -> list[float]:
    """Return the largest modal coordinates of a family for which deflections are small."""
    shapes, L = shape.families[what].shapes, shape.beam.length
    slopes = np.abs(shapes.slope().at(np.linspace(0.0, 1.0, 201))).max(axis=0)
    if what == "torsion":
        return [SLOPE] * len(slopes)
    return ((SLOPE if what in ("y", "z") else STRAIN) * L / slopes).tolist()


def _points(beam: Beam, shape: _Displacements) -> Points:
    given = beam.properties
    far_y, far_z = (math.sqrt(2 * x / given.mass) for x in given.spread)
    places = ((far_y, 0.0), (-far_y, 0.0), (0.0, far_z), (0.0, -far_z))
    return _points_on(shape, [(given.mass / 4, y, z) for y, z in places], beam.tip_mass)


def _points_on(shape: _Displacements, lines: Iterable[tuple[float, float, float]], tip: float) -> Points:
    L = shape.beam.length
    s, weights = gauss(2 * shape.degree + 4)
    parts = [(mass * L * weights, s, y, z) for mass, y, z in lines]
    if tip:
        parts.append((np.array([tip]), np.ones(1), 0.0, 0.0))
    places = [np.stack([at * L, np.full_like(at, y), np.full_like(at, z)], axis=-1) for _, at, y, z in parts]
    return Points(
        np.concatenate([mass for mass, *_ in parts]),
        np.concatenate(places),
        np.concatenate([shape.first(at, y, z) for _, at, y, z in parts]),
        np.concatenate([shape.second(at, y, z) for _, at, y, z in parts]),
    )


class _Displacements:
    """The displacements of a beam's points, to the second order in the modal coordinates."""

    def __init__(self, beam: Beam) -> None:
        """Find the shapes of each family; products of slopes are integrated as series."""
        families = families_of(beam)
        self.beam, self.families = beam, families
        self.degree = max((f.shapes.c.shape[-1] for f in families.values()), default=1)
        self.places, self.m = {}, 0
        for what, f in families.items():
            self.places[what] = slice(self.m, self.m + len(f.stiffness))
            self.m += len(f.stiffness)
        s, weights = gauss(2 * self.degree + 2)
        self.shortening = {}
        for what in self._bending():
            slopes = families[what].shapes.slope().at(s)
            products = np.einsum("nj,nk->jkn", slopes, slopes).reshape(-1, len(s))
            self.shortening[what] = Series.through(products, s, weights, 2 * self.degree).integral()

    def _bending(self) -> Iterable[str]:
        return [what for what in ("y", "z") if what in self.families]

    def first(self, s: np.ndarray, y: float, z: float) -> np.ndarray:
        """Return Phi [n, m, 3] at the points (s L, y, z)."""
        out = np.zeros((len(s), self.m, 3))
        for what, own in self.places.items():
            values = self.families[what].shapes.at(s)
            if what == "torsion":
                out[:, own, 1], out[:, own, 2] = -z * values, y * values
            else:
                out[:, own, {"y": 1, "z": 2, "axial": 0}[what]] = values
        return out

    def second(self, s: np.ndarray, y: float, z: float) -> np.ndarray:
        """Return G [n, m, m, 3]: foreshortening by bending, and the second order of the rotation by torsion."""
        out = np.zeros((len(s), self.m, self.m, 3))
        for what in self._bending() if self.beam.foreshortening else ():
            own, n = self.places[what], len(self.families[what].stiffness)
            out[:, own, own, 0] = -self.shortening[what].at(s).reshape(len(s), n, n) / self.beam.length
        if "torsion" in self.places:
            own, values = self.places["torsion"], self.families["torsion"].shapes.at(s)
            squares = np.einsum("nj,nk->njk", values, values)
            out[:, own, own, 1], out[:, own, own, 2] = -y * squares, -z * squares
        return out

    def node(self, name: str, x: float) -> Node:
        """Return the node on the axis at x."""
        s = np.array([x / self.beam.length])
        angles = np.zeros((self.m, 3))
        for what, own in self.places.items():
            shapes = self.families[what].shapes
            if what == "torsion":
                angles[own, 0] = shapes.at(s)[0]
            elif what != "axial":
                axis, sign = (2, 1.0) if what == "y" else (1, -1.0)
                angles[own, axis] = sign * shapes.slope().at(s)[0] / self.beam.length
        Phi, G = self.first(s, 0.0, 0.0)[0], self.second(s, 0.0, 0.0)[0]
        rows = [tuple(map(tuple, cleared(a).tolist())) for a in (Phi, angles)]
        bends = tuple(tuple(map(tuple, row)) for row in cleared(G).tolist())
        return Node(name, (x, 0.0, 0.0), rows[0], bends, rows[1])


def cleared(a: np.ndarray) -> np.ndarray:
    """Return an array without the rounding errors of zeros."""
    size = float(np.abs(a).max(initial=0.0))
    return np.where(np.abs(a) <= 1e-14 * size, 0.0, a)
