"""Beam loads: deflection, bending moment, shear, torque, tension and strain along a beam at given coordinates.

They follow from the modes: M = EI v'', V = -EI v''' and so on. With the default polynomials they are exact for loads at
the tip (two bending modes) and for the beam's own weight (three), and approximate for other loads, shear most of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import real_array, whole
from .._support.lazy_names import picture
from ..algebra.scalars import Numbers
from ..errors import InputError
from ..joints.elastic import modes_kind
from ..model.beams import SIZES, Beam, families_of, section_formulas
from ..model.free_beams import FreeBeam, numbers_of
from ..model.mechanism import resolve_parts
from ..runtime.compiled import CompiledMechanism


@dataclass(frozen=True)
class BeamLoads:
    """Deflections [m] and internal loads at places x [n, m] along a beam, for any leading shape of coordinates.

    `deflection`, `moment` [N m] and `shear` [N] are [..., n, 2]: along y and along z, where the moment is that which
    bends the beam that way. `torque` [N m] and `tension` [N] are [..., n]. `strain` [..., n] is the largest of
    the cross section in bending and extension, None without a section.
    """

    body: str
    x: Numbers
    deflection: Numbers
    moment: Numbers
    shear: Numbers
    torque: Numbers
    tension: Numbers
    strain: Numbers | None

    def plot(self, path: Any = None, **options: Any) -> Any:
        """Draw deflection, moment, shear and strain along the beam; return the figure, or write it to `path`."""
        return picture("beam_loads_plot")(self, path, **options)


def beam_loads(
    system: CompiledMechanism, q: ArrayLike, body: str, *, count: int = 51, parameters: ArrayLike | None = None
) -> BeamLoads:
    """Return the loads along the beam of a body at coordinates q [..., nq], at `count` places of equal distances."""
    m = system.mechanism
    values = real_array(q, "q")
    if values.shape[-1:] != (m.nq,):
        raise InputError(f"q has shape {values.shape}; expected [..., {m.nq}]")
    beams = {b.name.removesuffix(".elastic"): k for k, b in enumerate(m.bodies) if b.flexible is not None}
    if body not in beams:
        raise InputError(f"body {body!r} has no beam; those with one: {', '.join(beams) or 'none'}")
    k = beams[body]
    flexible: Any = resolve_parts(m.bodies[k].flexible, m.values(None if parameters is None else list(parameters)))  # type: ignore[arg-type]
    if not isinstance(flexible, Beam | FreeBeam):
        raise InputError(f"body {body!r} comes from finite elements: loads along it are those of its mesh")
    beam, now = (flexible, numbers_of(flexible)) if isinstance(flexible, Beam) else (flexible.beam, {})
    if isinstance(flexible, FreeBeam):
        now = {**numbers_of(beam), **{name: float(x) for name, x in flexible.numbers}}  # type: ignore[arg-type]
    assert modes_kind(beam.names) == m.joints[k].kind, "the joint of a deformed body has its modes"
    s = np.linspace(0.0, 1.0, whole(count, "count", least=2))
    return _loads(beam, now, body, s, values[..., m.q_slices[k]])


def _loads(beam: Beam, now: dict[str, float], body: str, s: Numbers, e: Numbers) -> BeamLoads:
    section, L = section_formulas(beam, now), now["length"]
    shape = (*e.shape[:-1], len(s))
    fields: dict[str, list[Numbers]] = {}
    at = 0
    for what, n in zip(("y", "z", "torsion", "axial"), beam.modes, strict=True):
        own, at = e[..., at : at + n], at + n
        shapes = families_of(beam)[what].shapes if n else None
        of = lambda order, own=own, shapes=shapes: (  # noqa: E731
            np.zeros(shape) if shapes is None else own @ (shapes.slope(order) if order else shapes).at(s).T / L**order
        )
        fields[what] = [of(order) for order in range(4 if what in ("y", "z") else 2)]
    y, z = fields["y"], fields["z"]
    EI = np.array(section.EI)
    curvature = np.stack([y[2], z[2]], axis=-1)
    return BeamLoads(
        body,
        s * L,
        np.stack([y[0], z[0]], axis=-1),
        EI * curvature,
        -EI * np.stack([y[3], z[3]], axis=-1),
        section.GJ * fields["torsion"][1],
        section.EA * fields["axial"][1],
        None if beam.section is None else _strain(beam, now, curvature, fields["axial"][1]),
    )


def _strain(beam: Beam, now: dict[str, float], curvature: Numbers, stretch: Numbers) -> Numbers:
    """Return the largest axial strain of the cross section."""
    kind, *sizes = beam.section or ("circle", 0.0)
    half = [now.get(name, own) / 2 for name, own in zip(SIZES[kind], sizes, strict=True)]
    if kind == "rectangle":
        return np.abs(curvature) @ np.array(half) + np.abs(stretch)
    return half[0] * np.linalg.norm(curvature, axis=-1) + np.abs(stretch)
