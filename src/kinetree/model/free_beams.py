"""FreeBeam: a beam some of whose numbers are formulas of parameters, such as its length or its thickness.

Its shapes, as functions of x / L, stay those of the beam with its own numbers: they are assumed modes all the same. All
moments of its points are then sums of products of four masses and powers of the length (`_exponents`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..algebra.flexible import Bend, Moments
from ..algebra.nodes import Node
from ..algebra.scalars import Scalar, sqrt
from ..errors import unknown_name
from .beams import FAMILIES, SIZES, Beam, line_points, section_formulas
from .modal_bodies import ModalBody
from .parameters import Number

UNITS = {
    "length": "m", "E": "Pa", "G": "Pa", "rho": "kg/m^3", "EI_y": "N m^2", "EI_z": "N m^2", "GJ": "N m^2", "EA": "N",
    "mass_per_length": "kg/m", "polar": "kg m", "tip_mass": "kg", "damping": "",
}  # fmt: skip
"""The numbers of a beam that can be formulas, with their units; sizes of its section, in meters, are further ones."""


def numbers_of(beam: Beam) -> dict[str, float]:
    """Return the numbers of a beam that can be formulas, by name."""
    given = {name: getattr(beam, name, None) for name in UNITS}
    if beam.EI is not None:
        given["EI_y"], given["EI_z"] = beam.EI  # type: ignore[misc]
    out = {name: float(x) for name, x in given.items() if x is not None}
    if beam.section is not None and (beam.section[0] != "rectangle" or not beam.modes[2]):  # its GJ is a series
        out |= zip(SIZES[beam.section[0]], map(float, beam.section[1:]), strict=True)
    return out


@dataclass(frozen=True)
class FreeBeam:
    """A beam with formulas in the place of some of its numbers, by name."""

    beam: Beam
    numbers: tuple[tuple[str, Number], ...]

    def __post_init__(self) -> None:
        """Refuse names of numbers that the beam does not have."""
        known = numbers_of(self.beam)
        for name, _ in self.numbers:
            if name not in known:
                raise unknown_name("number of the beam", name, known, where="formulas")

    @cached_property
    def modal(self) -> ModalBody:
        """The moments, stiffnesses, dampings and nodes, as formulas of the same parameters."""
        return _modal(self.beam, dict(self.numbers))


@dataclass(frozen=True)
class _Parts:
    """Moments of a beam of its own length: of one kilogram per meter, of unit spreads, and of a unit tip mass."""

    line: Moments
    along_y: Moments
    along_z: Moments
    tip: Moments


@lru_cache(maxsize=64)
def _parts(beam: Beam) -> _Parts:
    line = line_points(beam, ((1.0, 0.0, 0.0),)).moments()
    pairs = (line_points(beam, ((0.5, y, z), (0.5, -y, -z))).moments() for y, z in ((1.0, 0.0), (0.0, 1.0)))
    along_y, along_z = (_beyond_axis(pair, line) for pair in pairs)
    return _Parts(line, along_y, along_z, line_points(beam, (), tip=1.0).moments())


def _beyond_axis(pair: Moments, line: Moments) -> Moments:
    """Return the moments of a pair of lines without those of the axis; its bends are those of torsion alone."""
    own = tuple(b for b in pair.bends if not any(h[0] for row in b.H for h in row))
    return replace(_combined(((1.0, pair), (-1.0, line))), bends=own)


def _stretched_bends(weighted: tuple[tuple[Scalar, Moments], ...], ratio: Scalar) -> tuple[Bend, ...]:
    """Return the bends of all parts with their masses; foreshortening is inversely proportional to the length."""
    return tuple(
        Bend(
            weight * bend.mass,
            bend.T,
            tuple(tuple((h[0] / ratio if h[0] else 0.0, h[1], h[2]) for h in row) for row in bend.H),
        )
        for weight, part in weighted
        for bend in part.bends
    )


def _combined(weighted: tuple[tuple[Scalar, Moments], ...], ratio: Scalar = 1.0) -> Moments:
    """Return the weighted sum of moments without bends, for a length that is `ratio` times that of the beam."""
    out = {}
    for f in fields(Moments):
        if f.name == "bends":
            continue
        arrays = [(weight, np.array(getattr(part, f.name), dtype=float)) for weight, part in weighted]
        exponents = _exponents(f.name, arrays[0][1].shape)
        made = np.zeros(exponents.shape, dtype=object)
        for at in np.ndindex(exponents.shape):
            size = sum(abs(a[at]) for _, a in arrays)
            terms = [w * float(a[at]) for w, a in arrays if abs(a[at]) > 1e-13 * size]
            value = sum(terms[1:], start=terms[0]) if terms else 0.0
            made[at] = value * _power(ratio, int(exponents[at])) if terms else 0.0
        out[f.name] = _tuples(made)
    return Moments(**out)


def _exponents(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the power of the length in each moment: x of a point is proportional to it, and G inversely.

    Spreads across the axis, displacements at given modal coordinates and rotations by torsion do not depend on it.
    """
    out = np.zeros(shape, dtype=int)
    if name in ("mc", "N"):
        out[..., 0] = 1  # N is [mode, x, Phi]: the next line
    if name == "N":
        out[:] = 0
        out[:, 0, :] = 1
    if name == "J":
        out[0, :] += 1
        out[:, 0] += 1
    if name == "g":
        out[..., 0] = -1
    return out


def _power(x: Scalar, n: int) -> Scalar:
    if n < 0:
        return 1.0 / _power(x, -n)
    out: Scalar = 1.0
    for _ in range(n):
        out = out * x
    return out


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if np.ndim(x) else (x.item() if isinstance(x, np.ndarray) else x)


def _modal(beam: Beam, given: Mapping[str, Number]) -> ModalBody:
    now: dict[str, Scalar] = {**numbers_of(beam), **given}
    own, section = beam.properties, section_formulas(beam, now)
    ratio = now["length"] / beam.length if "length" in given else 1.0
    parts = _parts(beam)
    weights = (
        (section.mass * ratio, parts.line),
        (section.spread[0] * ratio, parts.along_y),
        (section.spread[1] * ratio, parts.along_z),
        (now["tip_mass"], parts.tip),
    )
    moments = replace(_combined(weights, ratio), bends=_stretched_bends(weights, ratio))
    before: dict[str, Scalar] = dict(zip(FAMILIES, (*own.EI, own.GJ, own.EA), strict=True))
    after: dict[str, Scalar] = dict(zip(FAMILIES, (*section.EI, section.GJ, section.EA), strict=True))
    families: list[str] = [what for what, n in zip(FAMILIES, beam.modes, strict=True) for _ in range(n)]
    stiffness = tuple(
        k * (after[what] / before[what]) / _power(ratio, 3 if what in ("y", "z") else 1)
        for k, what in zip(beam.modal.stiffness, families, strict=True)
    )
    damping = tuple(
        2.0 * now["damping"] * sqrt(k * moments.K[j][j]) if "damping" in given or beam.damping else 0.0
        for j, k in enumerate(stiffness)
    )
    nodes = tuple(_stretched(node, ratio, families) for node in beam.modal.nodes)
    return ModalBody(beam.names, moments, stiffness, damping, nodes, beam.modal.valid)


def _stretched(node: Node, ratio: Scalar, families: list[str]) -> Node:
    """Return a node of a longer beam: slopes and foreshortening are inversely proportional to the length."""
    x = (node.x[0] * ratio, node.x[1], node.x[2])
    G = tuple(tuple((g[0] / ratio if g[0] else 0.0, g[1], g[2]) for g in row) for row in node.G)
    Psi = tuple(
        psi if what == "torsion" else tuple(a / ratio if a else 0.0 for a in psi)
        for psi, what in zip(node.Psi, families, strict=True)
    )
    return Node(node.name, x, node.Phi, G, Psi)  # type: ignore[arg-type]
