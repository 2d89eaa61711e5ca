"""Contacts from the shapes of bodies: the collision geometry of a URDF, or the geoms of a compiled MuJoCo model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from ..contact_geometry import SOLIDS
from ..errors import ModelError, unknown_name
from ..model.contacts import Contact, Surface, misfit, refuse_many_contacts
from ..model.mechanism import Mechanism
from ..model.part_fields import free_name
from ..model.parts import Placement, Shape, compose, inverse
from .mjcf_parts import Import, rotation_of_quaternion, vector
from .report import Report

KINDS = ("sphere", "capsule", "box", "cylinder")
"""The shapes that become contacts; their sizes have the same meaning."""


def contacts_from_shapes(
    mechanism: Mechanism, report: Report, *, role: str | None, bodies: Iterable[str] | None, surface: Surface, law: Any
) -> tuple[Contact, ...]:
    """Return a contact for every shape of a role that can touch the surface; the report lists all others.

    `law` are friction, restitution and the law of all contacts.
    """
    wanted = [b.name for b in mechanism.bodies] if bodies is None else list(bodies)
    for name in wanted:
        if name not in mechanism.body_indices:
            raise unknown_name("body", name, [b.name for b in mechanism.bodies])
    out, taken = [], set[str]()
    for body, name, shape in _shapes(mechanism, report, role, wanted, KINDS):
        if reason := misfit(shape.kind, shape.size, surface)[0]:
            report.dropped(f"{shape.kind} {name!r} of body {body!r}: {reason}")
            continue
        refuse_many_contacts(len(out) + 1)
        out.append(Contact(free_name(name, taken), body, shape.kind, shape.size, shape.placement, surface, **law))
    if not out:
        kind = "shapes" if role is None else f"{role} shapes"
        report.suspect(f"no {kind} of the bodies became contacts")
    report.read(f"{len(out)} contacts from shapes")
    return tuple(out)


def _shapes(
    mechanism: Mechanism, report: Report, role: str | None, bodies: Iterable[str], kinds: Iterable[str]
) -> Iterator[tuple[str, str, Shape]]:
    """Yield body, name and shape of each shape of some kinds; the report lists shapes of other kinds."""
    for body in mechanism.bodies:
        for shape in body.shapes if body.name in bodies else ():
            if role is not None and shape.role != role:
                continue
            name = shape.name or f"{body.name}_{shape.kind}"
            if shape.kind in kinds:
                yield body.name, name, shape
            else:
                report.dropped(f"{shape.kind} {name!r} of body {body.name!r}: only {', '.join(kinds)} become contacts")


def contacts_of_pairs(
    mechanism: Mechanism, report: Report, *, role: str | None, pairs: Iterable[Any] | None, law: Any
) -> tuple[Contact, ...]:
    """Return the contacts of the shapes of two bodies, for each pair of names, or all bodies without a common joint.

    `law` are friction, restitution and the law of all contacts.
    """
    names = [b.name for b in mechanism.bodies]
    joined = {frozenset((j.parent, j.child)) for j in mechanism.joints}
    wanted = [x for x in combinations(names, 2) if frozenset(x) not in joined] if pairs is None else list(pairs)
    for pair in wanted:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ModelError(f"the pair {pair!r}", remedy="give pairs of the names of two bodies")
        for name in pair:
            if name not in names:
                raise unknown_name("body", name, names)
    used = {name for pair in wanted for name in pair}
    found: dict[str, list[tuple[str, Shape]]] = {}
    for body, name, shape in _shapes(mechanism, report, role, used, SOLIDS):
        found.setdefault(body, []).append((name, shape))
    ranks = list(SOLIDS)
    out, taken = [], set[str]()
    for pair in wanted:
        for one, two in product(*([(body, *x) for x in found.get(body, ())] for body in pair)):
            (body, a, shape), (other, b, solid) = sorted((one, two), key=lambda x: ranks.index(x[2].kind))
            refuse_many_contacts(len(out) + 1)
            surface = Surface(solid.kind, other, solid.placement, size=solid.size)
            name = free_name(f"{a}_{b}", taken)
            out.append(Contact(name, body, shape.kind, shape.size, shape.placement, surface, **law))
    report.read(f"{len(out)} contacts of shapes with each other")
    return tuple(out)


# --- The contacts of a compiled MuJoCo model: geoms of moving bodies with planes and height fields fixed in the world

# --- Pairs of geoms that MuJoCo tests for contact, with their combined friction ---
#
# Two geoms may touch if contype of one and conaffinity of the other have a common bit. They may not if their bodies are
# welded together, if one body carries the other (unless it is the world), or if <exclude> names them. <pair> adds two
# geoms with coefficients of its own. Friction and condim are those of the geom of higher priority, else the larger
# ones.


@dataclass(frozen=True)
class GeomPair:
    """Two geoms by index, with condim and the friction along two tangents, the larger one first."""

    geoms: tuple[int, int]
    dimension: int
    friction: tuple[float, float]

    @property
    def coefficient(self) -> float:
        """The coefficient of friction here: the smaller one, and zero for condim 1."""
        return 0.0 if self.dimension == 1 else self.friction[1]


def touching_pairs(given: Import) -> Iterator[GeomPair]:
    """Return the pairs of a model: first the elements <pair>, then what follows from the masks of bits."""
    m = given.model
    named = set[tuple[int, int]]()
    for k in range(m.npair):
        a, b = sorted((int(m.pair_geom1[k]), int(m.pair_geom2[k])))
        named.add((a, b))
        one, two = map(float, m.pair_friction[k][:2])
        yield GeomPair((a, b), int(m.pair_dim[k]), (max(one, two), min(one, two)))
    for a, b in np.argwhere(np.triu(_masks(m) & _bodies(given, m), 1)).tolist():
        if (a, b) not in named:
            yield _combined(m, a, b)


def _masks(m: Any) -> np.ndarray:
    """Return whether bits of two geoms match [ngeom, ngeom]."""
    types, others = np.asarray(m.geom_contype), np.asarray(m.geom_conaffinity)
    one = (types[:, None] & others[None, :]) != 0
    return one | one.T


def _bodies(given: Import, m: Any) -> np.ndarray:
    """Return whether the bodies of two geoms may touch [ngeom, ngeom]."""
    count = m.nbody
    weld = np.asarray(m.body_weldid)
    carrier = weld[np.asarray(m.body_parentid)[weld]]  # of the welded group
    apart = weld[:, None] != weld[None, :]
    if not m.opt.disableflags & given.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT:
        moves = (weld[:, None] != 0) & (weld[None, :] != 0)
        carried = weld[:, None] == carrier[None, :]
        apart &= ~(moves & (carried | carried.T))
    for signature in np.asarray(m.exclude_signature).tolist():
        a, b = signature >> 16, signature & 0xFFFF
        if a < count and b < count:
            apart[a, b] = apart[b, a] = False
    own = np.asarray(m.geom_bodyid)
    return apart[own[:, None], own[None, :]]


def _combined(m: Any, a: int, b: int) -> GeomPair:
    first, second = int(m.geom_priority[a]), int(m.geom_priority[b])
    if first != second:
        chosen = a if first > second else b
        mu = float(m.geom_friction[chosen][0])
        return GeomPair((a, b), int(m.geom_condim[chosen]), (mu, mu))
    mu = max(float(m.geom_friction[a][0]), float(m.geom_friction[b][0]))
    return GeomPair((a, b), max(int(m.geom_condim[a]), int(m.geom_condim[b])), (mu, mu))


# --- The geoms of a compiled MuJoCo model as shapes ---

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
        placement = compose(given.placement(body, m.geom_pos[g], m.geom_quat[g]), within)
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
    return "mesh", scale, file, inverse(Placement(vector(m.mesh_pos[mesh]), rotation_of_quaternion(m.mesh_quat[mesh])))


def solid(m: Any, g: int) -> tuple[str, tuple[float, ...]] | None:
    """Return kind and sizes of a geom that is a sphere, capsule, cylinder or box; None for other types."""
    type_, (a, b, c) = int(m.geom_type[g]), map(float, m.geom_size[g])
    sizes = {SPHERE: (a,), CAPSULE: (a, 2 * b), CYLINDER: (a, 2 * b), BOX: (2 * a, 2 * b, 2 * c)}
    return (NAMES[type_], sizes[type_]) if type_ in sizes else None


def _color(m: Any, g: int) -> tuple[float, float, float, float]:
    material = int(m.geom_matid[g])
    r, g_, b, a = map(float, m.mat_rgba[material] if material >= 0 else m.geom_rgba[g])
    return (r, g_, b, a)


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
    if reason := misfit(kind, size, surface)[0]:
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
        """Return the pose of a geom in the world, which for a fixed one does not depend on the coordinates."""
        quaternion = np.empty(4)
        self._given.mujoco.mju_mat2Quat(quaternion, self._data.geom_xmat[g])
        return Placement(vector(self._data.geom_xpos[g]), rotation_of_quaternion(quaternion))

    def _heights(self, g: int) -> Surface:
        """Return a height field; MuJoCo stores rows along y, with the middle of the field at the geom's origin."""
        m, report = self._given.model, self._given.report
        h = int(m.geom_dataid[g])
        rows, columns, first = int(m.hfield_nrow[h]), int(m.hfield_ncol[h]), int(m.hfield_adr[h])
        x, y, top, _ = map(float, m.hfield_size[h])
        data = np.asarray(m.hfield_data[first : first + rows * columns], dtype=float).reshape(rows, columns)
        corner = compose(self._place(g), Placement((-x, -y, 0.0)))
        report.changed(
            f"height field {label(self._given, g)!r}: its heights are joined by cubic splines, not by triangles, and "
            "continue level beyond its border"
        )
        heights = tuple(map(tuple, (top * data.T).tolist()))
        return Surface(
            "heights", placement=corner, heights=heights, spacing=(2 * x / (columns - 1), 2 * y / (rows - 1))
        )
