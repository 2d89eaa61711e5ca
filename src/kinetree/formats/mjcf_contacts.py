"""The contacts of a compiled MuJoCo model: geoms of moving bodies with planes and height fields fixed in the world."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.contacts import Contact, Surface, refuse_many_contacts
from ..model.part_fields import free_name
from ..model.parts import Placement
from ..model.placing import composed
from .contact_shapes import misfit
from .mjcf_pairs import GeomPair, touching_pairs
from .mjcf_parts import Import, turned, vector
from .mjcf_shapes import HFIELD, NAMES, PLANE, solid


def read_contacts(given: Import) -> list[Contact]:
    """Return the contacts that MuJoCo would make and that are known here; the report lists all others."""
    m, bits = given.model, given.mujoco.mjtDisableBit
    if m.opt.disableflags & (bits.mjDSBL_CONTACT | bits.mjDSBL_CONSTRAINT):
        given.report.changed("no contacts: the file disables them")
        return []
    surfaces = _Surfaces(given)
    out, taken, left = [], set[str](), 0
    for pair in touching_pairs(given):
        fixed, moving = sorted(pair.geoms, key=lambda g: m.geom_type[g] not in (PLANE, HFIELD))
        if m.geom_type[fixed] not in (PLANE, HFIELD) or not m.body_weldid[m.geom_bodyid[moving]]:
            left += 1
            continue
        made = _contact(given, surfaces, fixed, moving, pair, taken)
        if made is not None:
            out.append(made)
            taken.add(made.name)
            refuse_many_contacts(len(out))
    if left:
        given.report.dropped(
            f"{left} pairs of geoms that may touch: shapes touch planes and height fields only, not each other"
        )
    if out:
        given.report.read(f"{len(out)} contacts of geoms with planes and height fields")
        given.report.dropped("softness of contacts (solref, solimp), their margins and gaps: contacts are rigid")
    return out


def _contact(given: Import, surfaces: _Surfaces, fixed: int, moving: int, pair: GeomPair, taken: set[str]):
    """Return the contact of a geom with a surface, or None."""
    m = given.model
    body = given.bodies[int(m.geom_bodyid[moving])]
    name, found = label(given, moving), solid(m, moving)
    line = given.prepared.line("geom", m.geom(moving).name)
    if found is None:
        kind = NAMES[int(m.geom_type[moving])]
        given.report.dropped(f"the contact of {name!r} with {label(given, fixed)!r}: it is of the type {kind}", line)
        return None
    kind, size = found
    surface = surfaces.of(fixed)
    if surface is None:
        return None
    if reason := misfit(kind, size, surface):
        given.report.dropped(f"the contact of {name!r} with {label(given, fixed)!r}: {reason}", line)
        return None
    if pair.dimension > 3:
        given.report.dropped(f"torsional and rolling friction of {name!r} (condim {pair.dimension})", line)
    if pair.friction[0] != pair.friction[1]:
        text = (
            f"friction of {name!r} is {pair.friction[1]:g} in all directions, not {pair.friction[0]:g} in one of them"
        )
        given.report.changed(text, line)
    place = given.placement(int(m.geom_bodyid[moving]), m.geom_pos[moving], m.geom_quat[moving])
    chosen = free_name(name if name not in taken else f"{name}_on_{label(given, fixed)}", taken)
    return Contact(chosen, body, kind, size, place, surface, friction=pair.coefficient)


def label(given: Import, g: int) -> str:
    """Return the name of a geom, or one from its body and type."""
    m = given.model
    return m.geom(g).name or f"{given.bodies[int(m.geom_bodyid[g])]}_{NAMES[int(m.geom_type[g])]}"


class _Surfaces:
    """The surfaces of planes and height fields of the world, each made once."""

    def __init__(self, given: Import) -> None:
        self._given, self._made = given, dict[int, Surface | None]()
        self._data = given.mujoco.MjData(given.model)
        given.mujoco.mj_kinematics(given.model, self._data)

    def of(self, g: int) -> Surface | None:
        if g not in self._made:
            m = self._given.model
            self._made[g] = self._heights(g) if m.geom_type[g] == HFIELD else Surface("plane", placement=self._place(g))
        return self._made[g]

    def _place(self, g: int) -> Placement:
        """Return the pose of a geom in the world; that of a fixed one does not depend on the coordinates."""
        quaternion = np.empty(4)
        self._given.mujoco.mju_mat2Quat(quaternion, self._data.geom_xmat[g])
        return Placement(vector(self._data.geom_xpos[g]), turned(quaternion))

    def _heights(self, g: int) -> Surface:
        """Return a height field; MuJoCo stores rows along y, with the middle of the field at the geom's origin."""
        m, report = self._given.model, self._given.report
        h = int(m.geom_dataid[g])
        rows, columns, first = int(m.hfield_nrow[h]), int(m.hfield_ncol[h]), int(m.hfield_adr[h])
        x, y, top, _ = map(float, m.hfield_size[h])
        data = np.asarray(m.hfield_data[first : first + rows * columns], dtype=float).reshape(rows, columns)
        corner = composed(self._place(g), Placement((-x, -y, 0.0)))
        report.changed(
            f"height field {label(self._given, g)!r}: its heights are joined by cubic splines, not by triangles, and "
            "continue level beyond its border"
        )
        heights: Any = tuple(map(tuple, (top * data.T).tolist()))
        return Surface(
            "heights", placement=corner, heights=heights, spacing=(2 * x / (columns - 1), 2 * y / (rows - 1))
        )
