"""The geoms of a compiled MuJoCo model as shapes."""

from __future__ import annotations

from typing import Any

from ..model.parts import Placement, Shape
from ..model.placing import composed, inverse
from .mjcf_parts import Import, turned, vector

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)
"""MuJoCo's type numbers of geoms."""
NAMES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
HIDDEN_GROUP = 3
"""First group of geoms that MuJoCo's viewer hides: by convention, those for collisions."""


def read_shapes(given: Import, *, surfaces: bool = False) -> dict[int, tuple[Shape, ...]]:
    """Return the shapes of each body by its index, in the body's frame here; unsupported geoms are reported.

    With `surfaces`, planes and height fields are not among these: they are read as surfaces of contacts.
    """
    out: dict[int, tuple[Shape, ...]] = {}
    m = given.model
    for g in range(m.ngeom):
        body, name = int(m.geom_bodyid[g]), m.geom(g).name
        found = _solid(given, g)
        if found is None:
            if surfaces and m.geom_type[g] in (PLANE, HFIELD):
                continue
            label = f"geom {name!r}" if name else f"a geom of body {given.bodies[body]!r}"
            given.report.dropped(
                f"{label}: the type {NAMES[int(m.geom_type[g])]} is not supported", given.prepared.line("geom", name)
            )
            continue
        kind, size, file, within = found
        placement = composed(given.placement(body, m.geom_pos[g], m.geom_quat[g]), within)
        role = "visual" if m.geom_group[g] < HIDDEN_GROUP else "collision"
        shape = Shape(kind, size, placement, role, file, _color(m, g), name)
        out[body] = (*out.get(body, ()), shape)
    return out


def _solid(given: Import, g: int) -> tuple[str, tuple[float, ...], str, Placement] | None:
    """Return kind, size, file and placement in the geom's frame; None for unsupported types."""
    m = given.model
    if (found := solid(m, g)) is not None:
        return *found, "", Placement()
    if int(m.geom_type[g]) != MESH:
        return None
    mesh = int(m.geom_dataid[g])
    file = given.prepared.mesh_files.get(m.mesh(mesh).name, "")
    if not file:
        given.report.dropped(f"the mesh {m.mesh(mesh).name!r} has no file: it is not drawn")
        return None
    # MuJoCo moved the vertices into principal axes: the pose of the file's frame there is the inverse
    scale = tuple(map(float, m.mesh_scale[mesh]))
    return "mesh", scale, file, inverse(Placement(vector(m.mesh_pos[mesh]), turned(m.mesh_quat[mesh])))


def solid(m: Any, g: int) -> tuple[str, tuple[float, ...]] | None:
    """Return kind and sizes of a geom that is a sphere, capsule, cylinder or box; None for other types."""
    type_, (a, b, c) = int(m.geom_type[g]), map(float, m.geom_size[g])
    sizes = {SPHERE: (a,), CAPSULE: (a, 2 * b), CYLINDER: (a, 2 * b), BOX: (2 * a, 2 * b, 2 * c)}
    return (NAMES[type_], sizes[type_]) if type_ in sizes else None


def _color(m: Any, g: int) -> tuple[float, float, float, float]:
    material = int(m.geom_matid[g])
    r, g_, b, a = map(float, m.mat_rgba[material] if material >= 0 else m.geom_rgba[g])
    return (r, g_, b, a)
