"""Reader of Denavit-Hartenberg tables, in the standard and in the modified convention, serial or branched.

Standard ([Saha1999] appendix A): the pose of frame i+1 in frame i is Rz(theta) Tz(b) Tx(a) Rx(alpha), and frame i+1 is
fixed to the child of joint i. Modified (Khalil and Kleinfinger): the pose of frame i in that of its parent is
Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b) Rz(theta), and frame i is the body's own. The joint moves about or along
z_i; its coordinate is added to theta (revolute) or to b (prismatic).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..algebra.rotations import Full, Planar
from ..algebra.scalars import Scalar, cos, is_number, sin, snap
from ..algebra.vectors import Matrix, add, from_moments, matmul, times, to_moments
from ..errors import ModelError, Where, at, below, unknown_name
from ..model import GROUND, Body, Frame, Joint, Loop, Mechanism, Number, Parameter, Placement, build_mechanism
from ..model.part_fields import MAX_NAME
from . import toml_parts
from .fields import PLACEMENT, inertia, known_keys, name, number, numbers, placement, require, sequence, sort, vector
from .toml_parts import LOSSES, limits, losses

CONVENTIONS = ("standard", "modified")
JOINTS = ("revolute", "prismatic", "fixed")
GEOMETRY = ("a", "alpha", "b", "theta")
BRANCH = ("gamma", "epsilon")
ROW = ("joint", *GEOMETRY, "mass", "com", "inertia", "parent", "name", "limits", *LOSSES)
ROWS = ("dh", "row")
"""The key path of the rows in a file."""

Parts = tuple[list[Body], list[Joint], list[Frame]]


def mechanism_from_dh(
    rows: Iterable[Mapping[str, Any]],
    *,
    convention: str = "standard",
    degrees: bool = False,
    gravity: Sequence[Number] = (0.0, 0.0, -9.81),
    name: str = "dh",
    parameters: Iterable[Parameter] = (),
    frames: Iterable[Frame | Mapping[str, Any]] = (),
    tool: Any = None,
    loops: Iterable[Loop | Mapping[str, Any]] = (),
    guess: Mapping[str, Any] | None = None,
    lenient: bool = False,
) -> Mechanism:
    """Return the mechanism of a table of rows, one per body.

    A row has `joint` ("revolute", "prismatic", "fixed"), `a`, `b` [m], `alpha`, `theta` [rad, or degrees], `mass` [kg],
    `com` [m] and `inertia` about it [kg m^2] in frame i+1 (standard) or i (modified), `parent` (the number of a row
    from 0, a name, or "ground"; by default the previous row), `name`, `limits`, `damping`, `friction`, `armature`;
    modified rows may add `gamma` and `epsilon`. Missing numbers are zero. Standard rows also define the frames
    "frame_2", "frame_3", ... of the paper, and "tool" at the last one. `tool` is another pose of this frame in the last
    row's frame: a translation [m], a 4 x 4 matrix, a Placement or a table of one. `frames` and `loops` are parts, or
    tables as in TOML files. `lenient` accepts inertias that no body can have.
    """
    bodies, joints, made = parts_from_dh(list(rows), convention=convention, degrees=degrees, tool=tool)
    return build_mechanism(
        name,
        bodies,
        joints,
        frames=[*made, *(_part(x, Frame, toml_parts.frame, f"frame {i}") for i, x in enumerate(frames, 1))],
        loops=[_part(x, Loop, toml_parts.loop, f"loop {i}") for i, x in enumerate(loops, 1)],
        gravity=vector(gravity, "gravity"),
        parameters=parameters,
        guess=guess or {},
        lenient=lenient,
    )


def _part(x: Any, kind: type, read: Any, where: str) -> Any:
    """Return a part unchanged, or the part of a table."""
    return x if isinstance(x, kind) else read(x, where)


def parts_from_dh(
    rows: Sequence[Any],
    *,
    convention: str = "standard",
    degrees: bool = False,
    bodies: Iterable[str] = (),
    tool: Any = None,
) -> Parts:
    """Return bodies, joints and frames of a table; parents may also be other bodies, named in `bodies`."""
    if name(convention, at("dh", "convention")) not in CONVENTIONS:
        raise unknown_name("convention", convention, CONVENTIONS, where=at("dh", "convention"))
    standard = convention == "standard"
    if not rows:
        raise ModelError("the table has no rows", where=at("dh"), remedy="give one row per moving body")
    for i, row in enumerate(rows):
        known_keys(row, ROW if standard else (*ROW, *BRANCH), _row(i))
    names = [name(row.get("name", f"link{i + 1}"), below(_row(i), "name")) for i, row in enumerate(rows)]
    index = {label: i for i, label in enumerate(names)}
    others = (*bodies, GROUND)
    out: Parts = ([], [], [])
    ends = [_end(row, degrees, _row(i)) if standard else Placement() for i, row in enumerate(rows)]
    for i, row in enumerate(rows):
        where = _row(i)
        parent = _parent(row, i, names, index, others)
        if standard:
            start = ends[index[parent]] if parent in index else Placement()
        else:
            start = _start(row, degrees, where)
        out[0].append(_body(row, names[i], ends[i], where))
        out[1].append(_joint(row, i, parent, names[i], start))
        if standard:
            out[2].append(Frame(f"frame_{i + 2}", names[i], ends[i]))
    if tool is not None or (standard and "tool" not in index and "tool" not in others):
        out[2].append(Frame("tool", names[-1], _seen_from(ends[-1], tool_placement(tool, "tool"))))
    return out


def tool_placement(x: Any, where: str) -> Placement:
    """Return the placement of a Placement, a table of one, a translation, a 4 x 4 matrix, or None."""
    if x is None or isinstance(x, Placement):
        return x or Placement()
    if isinstance(x, Mapping):
        return placement(known_keys(x, PLACEMENT, where), where)
    items = sequence(x, where)
    if len(items) != 4:
        return Placement(vector(items, where))
    rows = [numbers(row, where, 4) for row in items]
    if rows[3] != (0.0, 0.0, 0.0, 1.0):
        raise ModelError(
            f"the last row of the matrix is {rows[3]}",
            where=where,
            remedy="give a 4 x 4 pose that ends with 0, 0, 0, 1",
        )
    return Placement(*zip(*((row[3], row[:3]) for row in rows[:3]), strict=True))


def _seen_from(end: Placement, inner: Placement) -> Placement:
    return Placement(add(end.translation, times(end.rotation, inner.translation)), matmul(end.rotation, inner.rotation))


def _end(row: Mapping[str, Any], degrees: bool, where: str) -> Placement:
    """Return the pose of frame i+1 in its body's frame: Rz(theta) Tz(b) Tx(a) Rx(alpha)."""
    a, alpha, b, theta = (number(row.get(key, 0.0), below(where, key)) for key in GEOMETRY)
    turn = _turn(2, theta, degrees)
    return Placement(times(turn, (a, 0.0, b)), matmul(turn, _turn(0, alpha, degrees)))


def _start(row: Mapping[str, Any], degrees: bool, where: str) -> Placement:
    """Return the pose of frame i in its parent's: Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b) Rz(theta)."""
    a, alpha, b, theta, gamma, epsilon = (number(row.get(key, 0.0), below(where, key)) for key in (*GEOMETRY, *BRANCH))
    turn = matmul(_turn(2, gamma, degrees), _turn(0, alpha, degrees))
    return Placement(add((0.0, 0.0, epsilon), times(turn, (a, 0.0, b))), matmul(turn, _turn(2, theta, degrees)))


def _turn(k: int, angle: Scalar, degrees: bool) -> Matrix:
    """Return the rotation about axis k, exact at multiples of 90 degrees."""
    if degrees and is_number(angle):
        angle = math.remainder(angle, 360.0)
        if angle % 90 == 0:
            c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(angle // 90) % 4]
            return Planar(k, c, s).matrix()
    if degrees:
        angle = angle * (math.pi / 180)
    return Planar(k, snap(cos(angle)), snap(sin(angle))).matrix()


def _body(row: Mapping[str, Any], label: str, end: Placement, where: str) -> Body:
    """Return the body, with center of mass and inertia transformed from frame i+1 to the body's frame."""
    com = vector(row.get("com", (0.0, 0.0, 0.0)), below(where, "com"))
    moments = inertia(row.get("inertia", (0.0,) * 6), below(where, "inertia"))
    return Body(
        label,
        number(row.get("mass", 0.0), below(where, "mass")),
        add(end.translation, times(end.rotation, com)),
        to_moments(Full(end.rotation).congruence(from_moments(moments))),
    )


def _joint(row: Mapping[str, Any], i: int, parent: str, child: str, placement: Placement) -> Joint:
    where = _row(i)
    kind = name(require(row, "joint", where), below(where, "joint"))
    if kind not in JOINTS:
        raise unknown_name("joint", kind, JOINTS, where=below(where, "joint"))
    return Joint(
        row.get("name", f"joint{i + 1}"),
        kind,
        parent,
        child,
        placement,
        limits=limits(row.get("limits", {}), below(where, "limits")),
        **losses(row, where),
    )


def _row(i: int) -> Where:
    return Where(f"row {i + 1}", (*ROWS, i))


def _parent(row: Mapping[str, Any], i: int, names: list[str], index: dict[str, int], others: tuple[str, ...]) -> str:
    """Return the name of the parent of a row: a body or the ground."""
    where = below(_row(i), "parent")
    parent = row.get("parent", names[i - 1] if i else GROUND)
    if isinstance(parent, str):
        if parent not in index and parent not in others:
            raise unknown_name("row", parent[:MAX_NAME], [*names, *others], where=where)
        return parent
    if isinstance(parent, bool) or not hasattr(parent, "__index__"):
        raise ModelError(f"{sort(parent)} where a row belongs", where=where, remedy="give a number from 0, or a name")
    if not 0 <= int(parent) < len(names):
        raise ModelError("there is no such row", where=where, remedy=f"give a row from 0 to {len(names) - 1}")
    return names[int(parent)]
