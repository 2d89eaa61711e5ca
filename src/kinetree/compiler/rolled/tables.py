"""The tables that rolled code reads: numbers of each body, and segments of consecutive bodies.

A segment is a sequence of bodies of one class, each the parent of the next. A body with a child in another segment is
the last of its segment. The numbers are computed by the records of unrolled code, on arrays over the bodies of a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ...algebra.columns import Column, column_matrix, columns
from ...algebra.rotations import constant, snap_to_axes
from ...algebra.scalars import NOISE as SNAP
from ...algebra.scalars import Scalar, is_number
from ...algebra.vectors import to_vector, transpose
from ...model.mechanism import Mechanism, resolve_parts
from ...model.parts import GROUND, Placement
from ...model.topology import path
from ..lower.tree_records import FrameRecord, Ground, Record
from ..lower.working_frames import CROSSING, NOISE, WorkingFrame, foot, main_children, normal
from .program import BODY, CLASS, COUNT, FIRST_Q, FIRST_V, PARENT, BodyClass
from .records import MATRIX, body_numbers

# --- Working frames of all bodies at once, by arrays, for code with loops over the bodies of a class ---
#
# The rule is the same as for unrolled code (lower/working_frames.py): z along the joint's axis, x along the common
# normal to the axis of the main child, the origin at the foot of the normal from the parent's axis. It is used only
# where both joints have one axis, and a body on parallel axes keeps its joint's origin. Each frame therefore depends
# only on its neighbors, and all are computed at once. x is perpendicular to both axes up to rounding, because the code
# of a lean class omits the products with the difference.

LEAN = 16 * float(np.finfo(float).eps)
"""The largest relative difference between a placement and a lean one: the rounding error of three rotations."""


@dataclass(frozen=True)
class Stands:
    """Joints as arrays: kinds, parents (-1: the ground), placements in the parents and canonical axes."""

    kinds: list[str]
    parents: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray
    axes: np.ndarray


def lean_frames(s: Stands) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return axes [n, 3, 3] and origins [n, 3] of the working frames, and which bodies have lean placements."""
    axes, origins = s.axes.copy(), np.zeros((len(s.kinds), 3))
    lean = np.zeros(len(s.kinds), dtype=bool)
    i = _followers(s)
    if not len(i):
        return axes, origins, lean
    p = s.parents[i]
    z, R, arm = s.axes[:, :, 2], s.rotations[i], s.translations[i]
    d = np.einsum("nij,nj->ni", R, z[i])  # the axis in the parent's frame
    along, near = foot(z[p], d, arm)
    origins[i] = along[:, None] * z[i]
    x, there, crossing = normal(z[p], d, arm)
    usable = there & (near | ~crossing)
    axes[p[usable]] = _facing(x[usable], z[p[usable]], d[usable], crossing[usable])
    lean[i] = _are_lean(axes, origins, s, i)
    return axes, origins, lean


def _followers(s: Stands) -> np.ndarray:
    """Return the bodies on joints of one axis that are the main child of a body on such a joint."""
    single = [joint_kinds.kind(name).AXIAL is not None for name in s.kinds]
    main = main_children(s.parents.tolist(), single)
    followers = sorted(k for parent, k in enumerate(main) if k is not None and single[parent])
    return np.array(followers, dtype=np.int64)


def _facing(x: np.ndarray, z: np.ndarray, d: np.ndarray, crossing: np.ndarray) -> np.ndarray:
    """Return axes with this z, and x along a normal; x is perpendicular to z and, where the axes cross, to d."""
    x = x / np.linalg.norm(x, axis=1)[:, None]
    for _ in range(2):
        x = x - _dot(x, z)[:, None] * z
        part = d - _dot(d, z)[:, None] * z  # perpendicular to z
        share = np.where(crossing, _dot(x, d) / np.maximum(_dot(part, part), CROSSING**2 / 4), 0.0)
        x = x - share[:, None] * part
        x = x / np.linalg.norm(x, axis=1)[:, None]
    return np.stack([x, np.cross(z, x), z], axis=2)


def _are_lean(axes: np.ndarray, origins: np.ndarray, s: Stands, i: np.ndarray) -> np.ndarray:
    """Return which placements of bodies in their parents are Rx(alpha) Rz(theta) and (a, 0, b), up to rounding."""
    p = s.parents[i]
    E = np.einsum("nji,njk,nkl->nil", axes[p], s.rotations[i], axes[i])
    place = s.translations[i] + np.einsum("nij,nj->ni", s.rotations[i], origins[i]) - origins[p]
    r = np.einsum("nji,nj->ni", axes[p], place)
    ca, sa, ct, st = E[:, 2, 2], -E[:, 1, 2], E[:, 0, 0], -E[:, 0, 1]
    zero = np.zeros_like(ca)
    rows = [[ct, -st, zero], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    expected = np.moveaxis(np.array(rows), 2, 0)
    size = np.abs(s.translations[i]).max(axis=1) + np.abs(origins[i]).max(axis=1) + np.abs(origins[p]).max(axis=1)
    return (np.abs(E - expected).max(axis=(1, 2)) <= LEAN) & (np.abs(r[:, 1]) <= LEAN * size)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ni,ni->n", a, b)


@dataclass(frozen=True)
class Bodies:
    """The bodies over which loops run: `index` in the mechanism, `parents` among themselves, and their classes."""

    mechanism: Mechanism
    index: np.ndarray
    parents: np.ndarray
    classes: tuple[BodyClass, ...]
    of_class: np.ndarray
    axes: np.ndarray
    origins: np.ndarray
    joints: list[Any]
    bodies: list[Any]

    @cached_property
    def starts(self) -> np.ndarray:
        """Whether each body begins a segment."""
        n = len(self.index)
        follows = self.parents == np.arange(n) - 1
        follows[1:] &= np.diff(self.index) == 1  # along the path to a frame, branches are left out
        branching = np.zeros(n + 1, dtype=bool)
        branching[self.parents[~follows]] = True  # the ground is the last entry
        out = ~follows
        out[:1] = True
        out[1:] |= (self.of_class[1:] != self.of_class[:-1]) | branching[: max(n - 1, 0)]
        return out

    @cached_property
    def segments(self) -> np.ndarray:
        """The segments [n, 8], without their positions in the table and the workspace."""
        first = np.flatnonzero(self.starts)
        out = np.zeros((len(first), 8), dtype=np.int64)
        own = np.cumsum(self.starts)  # the row of each body's segment: the ground's is 0
        m = self.mechanism
        at_q, at_v = (np.array([at.start for at in slices]) for slices in (m.q_slices, m.v_slices))
        out[:, CLASS], out[:, BODY] = self.of_class[first], self.index[first]
        out[:, COUNT] = np.diff(np.append(first, len(self.index)))
        out[:, PARENT] = np.where(self.parents[first] < 0, 0, own[self.parents[first]])
        out[:, FIRST_Q], out[:, FIRST_V] = at_q[self.index[first]], at_v[self.index[first]]
        return out

    def members(self, c: int) -> np.ndarray:
        """Return the bodies of a class."""
        return np.flatnonzero(self.of_class == c)


def bodies_of(mechanism: Mechanism, *, frame: str | None = None, wrenches: bool = False) -> Bodies:
    """Return the bodies of a mechanism, or those between the ground and a frame."""
    values, parents = mechanism.values(), np.array(mechanism.parents, dtype=np.int64)
    index = np.arange(len(mechanism.bodies))
    if frame is not None:
        index = np.array(path(mechanism, _body_index(mechanism, frame)), dtype=np.int64)
        parents = np.arange(len(index)) - 1
    joints, bodies = [mechanism.joints[k] for k in index], [mechanism.bodies[k] for k in index]
    if mechanism.parameters:
        joints, bodies = [resolve_parts(j, values) for j in joints], [resolve_parts(b, values) for b in bodies]
    kinds = [j.kind for j in joints]
    axes = _canonical_axes(kinds, joints)
    if mechanism.free_parameters:
        origins, lean = np.zeros((len(index), 3)), np.zeros(len(index), dtype=bool)
    else:
        places = [j.placement for j in joints]
        rotations = np.array([p.rotation for p in places], dtype=float).reshape(-1, 3, 3)
        translations = np.array([p.translation for p in places], dtype=float).reshape(-1, 3)
        axes, origins, lean = lean_frames(Stands(kinds, parents, rotations, translations, axes))
    given = [mechanism.joints[k].armature for k in index]  # an expression may be zero now and not later
    keys = [
        BodyClass(
            j.kind,
            bool(flat),
            any(x != 0 for x in a),
            wrenches,
            j.sequence if "sequence" in joint_kinds.kind(j.kind).DATA else "",
        )
        for j, flat, a in zip(joints, lean.tolist(), given, strict=True)
    ]
    classes = tuple(sorted(set(keys), key=repr))
    place = {key: c for c, key in enumerate(classes)}
    of_class = np.array([place[key] for key in keys], dtype=np.int64)
    return Bodies(mechanism, index, parents, classes, of_class, axes, origins, joints, bodies)


def _body_index(mechanism: Mechanism, frame: str) -> int:
    body = mechanism.frame(frame).body
    return -1 if body == GROUND else next(k for k, b in enumerate(mechanism.bodies) if b.name == body)


def _canonical_axes(kinds: list[str], joints: list[Any]) -> np.ndarray:
    """Return the canonical axes of the joints, [n, 3, 3]."""
    out = np.tile(np.eye(3), (len(kinds), 1, 1))
    groups: dict[tuple, list[int]] = {}
    for k, joint in enumerate(joints):
        groups.setdefault((kinds[k], joint.axis2 is None), []).append(k)
    for (kind, plain), members in groups.items():
        joint = SimpleNamespace(axis=columns(joints[k].axis for k in members), axis2=None)
        if not plain and "axis2" in joint_kinds.kind(kind).DATA:
            joint.axis2 = columns(joints[k].axis2 for k in members)
        m = joint_kinds.kind(kind).frame(joint)
        for a, b in MATRIX:
            out[members, a, b] = m[a][b].x if isinstance(m[a][b], Column) else m[a][b]
    return out


def class_numbers(b: Bodies, c: int) -> dict[str, np.ndarray]:
    """Return the numbers of all bodies of a class, by name."""
    members = b.members(c)
    joints, bodies = [b.joints[k] for k in members], [b.bodies[k] for k in members]
    kind = b.classes[c].kind
    joint = SimpleNamespace(
        kind=kind,
        placement=Placement(
            columns(j.placement.translation for j in joints), column_matrix(j.placement.rotation for j in joints)
        ),
        pitch=Column(np.array([j.pitch for j in joints], dtype=float)),
        armature=columns(j.armature or (0.0,) * joint_kinds.kind(kind).NV for j in joints),
    )
    body = SimpleNamespace(
        mass=Column(np.array([x.mass for x in bodies], dtype=float)),
        com=columns(x.com for x in bodies),
        inertia=columns(x.inertia for x in bodies),
        flexible=None,
    )
    parents = b.parents[members]
    ground = parents < 0
    axes, origins = b.axes[parents], b.origins[parents]
    axes[ground], origins[ground] = np.eye(3), 0.0
    frame = WorkingFrame(column_matrix(axes), columns(origins))
    parent: Any = SimpleNamespace(frame=frame, to_work=constant(transpose(frame.axes)))
    own = WorkingFrame(column_matrix(b.axes[members]), columns(b.origins[members]))
    out = body_numbers(Record(body, joint, own, parent), b.classes[c])
    return _cleared({name: x.x if isinstance(x, Column) else np.full(len(members), x) for name, x in out.items()})


def _cleared(numbers_: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return numbers with zeros and ones cleared of rounding errors, for `known_numbers` to find them."""
    out = dict(numbers_)
    for name, x in out.items():
        if name[0] in "EW" or name in ("ca", "sa", "ct", "st"):
            for exact in (0.0, 1.0, -1.0):
                x = np.where(np.abs(x - exact) <= SNAP, exact, x)
            out[name] = x
    for letter in "rchJ":
        group = [name for name in out if name[0] == letter and name[1:].isdigit()]
        size = np.max([np.abs(out[name]) for name in group], axis=0)
        for name in group:
            out[name] = np.where(np.abs(out[name]) <= NOISE * size, 0.0, out[name])
    return out


def known_numbers(numbers_: Mapping[str, Sequence[Scalar] | np.ndarray]) -> dict[str, float]:
    """Return the numbers that are 0, 1 or -1 for all bodies of a class; as constants they make code shorter."""
    out = {}
    for name, x in numbers_.items():
        first = x[0]
        if not is_number(first) or first not in (0.0, 1.0, -1.0):
            continue
        if (x == first).all() if isinstance(x, np.ndarray) else all(is_number(a) and a == first for a in x):
            out[name] = float(first)
    return out


def shared_numbers(b: Bodies, frame: str | None) -> dict[str, Any]:
    """Return the numbers that all bodies share: gravity, and the placement of a frame on its body."""
    values = b.mechanism.values()
    out = {f"g{k}": g for k, g in enumerate(resolve_parts(b.mechanism.gravity, values))}
    if frame is None:
        return out
    record: Any = Ground()
    if len(b.index):
        own = WorkingFrame(_tuples(b.axes[-1]), to_vector(map(float, b.origins[-1])))
        record = SimpleNamespace(frame=own, to_work=constant(snap_to_axes(transpose(own.axes))))
    return out | frame_numbers(FrameRecord(resolve_parts(b.mechanism.frame(frame), values), record))


def frame_numbers(f: FrameRecord) -> dict[str, Any]:
    """Return the position and rotation of a frame, entry by entry."""
    return {f"r{k}": f.r[k] for k in range(3)} | {f"R{a}{c}": f.R[a][c] for a, c in MATRIX}


def _tuples(m: np.ndarray) -> Any:
    return tuple(tuple(map(float, row)) for row in m)
