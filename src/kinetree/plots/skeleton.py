"""The drawing of a mechanism: the shapes of its bodies or, without shapes, rods between its joints.

A body without shapes that no rod shows, such as a free body without joints, is a box of its inertia.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import joints as joint_kinds
from ..algebra.scalars import Numbers
from ..algebra.vectors import from_moments
from ..errors import InputError
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import plain_number
from ..model.parts import GROUND, Body, Joint, Shape
from . import links, meshes, shells
from . import links as force_elements
from .links import COLORS, GREY, ORIGIN, Cut, Rod, rgb
from .meshes import Mesh

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory
    from ..system import System


THINNEST, THICKEST, SLIM = 0.004, 0.011, 0.07
"""Least and largest radius of a rod relative to the size of the mechanism, and its ratio to the median rod length."""


FLAT = 1e-9
"""The part of a velocity perpendicular to a plane below which a motion is planar: above rounding."""
Reader = Callable[[Shape, Any], Mesh]
"""A function of a shape that is a mesh, and of a color, that returns its triangles in the frame of the body."""


@dataclass(frozen=True)
class Scene:
    """One mesh per body in its frame, the ground's mesh last; rods between points; tips (body, point) with trails.

    Rods are also the springs, dampers and actuators between points. `size` is the characteristic length of the drawing
    [m], `up` the direction opposite to gravity, `normal` perpendicular to the plane of a planar mechanism. `cuts`
    are solids of cut joints that are not part of the meshes of bodies. `shells` are rods of other solids that make
    machines of skeletons: housings of joints, frames and a base.
    """

    bodies: tuple[Mesh, ...]
    rods: tuple[Rod, ...]
    tips: tuple[tuple[int, tuple[float, float, float]], ...]
    size: float
    up: Numbers
    normal: Numbers | None = None
    cuts: tuple[Cut, ...] = ()
    shells: tuple[Rod, ...] = ()


def scene(run: Trajectory, read: Reader | None = None, *, loose_cuts: bool = False) -> Scene:
    """Return the drawing of a single run; `read` returns the mesh of a file, which are left out without it.

    With `loose_cuts`, cut joints are solids of their own, so that they can move on their bodies.
    """
    if run.shape:
        raise InputError(f"the batch has shape {run.shape}; choose one of its runs with run(i) to draw it")
    mechanism = run.system.mechanism
    given = run[:1].parameters  # a schedule changes no lengths
    values = mechanism.values(None if given is None else [float(x) for x in given])
    bodies, joints = resolve_parts(mechanism.bodies, values), resolve_parts(mechanism.joints, values)
    loops = resolve_parts(mechanism.loops, values)
    frames = [_frame_points(mechanism, body, values) for body in bodies]
    elements = force_elements.between_points(resolve_parts(mechanism.forces, values), joints)
    points = _rod_ends(mechanism, bodies, frames, loops)
    index = {GROUND: -1} | {body.name: i for i, body in enumerate(bodies)}
    held = {i: force_elements.attachments(elements, name) for name, i in index.items()}
    boxed = [
        _is_boxed(run["poses"][0], i, joint, points[i], tuple(body.com))
        for i, (body, joint) in enumerate(zip(bodies, joints, strict=True))
    ]
    size = _size(run, bodies, joints, points, held, boxed, read)
    radius = _radius(run["poses"][0], points, size)
    is_slender = bool(loops) or any(body.flexible is not None for body in bodies)
    girth = [radius] * len(bodies) if is_slender else shells.girths(mechanism.parents, run["poses"][0], points, radius)
    up, normal = up_direction(mechanism, values), plane_of(run.system, run.q[0], given)
    solids, rods, tips, cases = [], [], [], []
    for i, (body, joint) in enumerate(zip(bodies, joints, strict=True)):
        color = rgb(COLORS[i % len(COLORS)])
        shapes = [_shape_mesh(shape, color, read) for shape in _drawable(body.shapes, read)]
        if _is_whole(body.shapes, read):
            solids.append(meshes.join_meshes(shapes))
        else:
            cuts = [] if loose_cuts else links.cut_solids(loops, body.name, radius)
            solids.append(meshes.join_meshes([*shapes, _skeleton(body, boxed[i], radius, color), *cuts]))
            reached = [*points[i], *((i, point) for point in held[i] if (i, point) not in points[i])]
            ends = [end for end in reached if not (boxed[i] and _inside(body, run["poses"][0], i, *end))]
            rods += [
                shells.link_shell(Rod(i, ORIGIN, k, point, girth[i], color), joints, girth[i], girth[max(k, 0)])
                for k, point in ends
            ]
            cases += shells.joint_shell(joint, i, girth[i], color)
            cases += shells.frame_edges(i, ends, run["poses"][0], girth[i], color)
        tips += [(i, point) for point in frames[i]]
        if i not in mechanism.parents and not frames[i]:
            tips.append((i, tuple(body.com)))
    rods += links.cut_rods(loops, index, radius)
    scenery = [_shape_mesh(shape, rgb(GREY), read) for shape in _drawable(mechanism.scenery, read)]
    if not scenery:
        roots = {i: girth[i] for i, j in enumerate(joints) if j.parent == GROUND and not _floats(j)}
        foot = _footing(run, joints, loops, size, max(roots.values(), default=radius))
        rods += foot
        cases += [] if loops or normal is not None else shells.base(roots, up, raised=bool(foot))
        cases += shells.frame_edges(-1, [(r.b, r.point_b) for r in foot], run["poses"][0], radius, rgb(GREY))
    rods += force_elements.element_rods(elements, index, run["poses"][0], size)
    loose = [cut for cut in links.cuts(loops, radius) if loose_cuts and _is_bare(mechanism, bodies, cut, read)]
    fixed = [] if loose_cuts else links.cut_solids(loops, GROUND, radius)
    solids.append(meshes.join_meshes([*scenery, *fixed]))
    return Scene(tuple(solids), tuple(rods), tuple(tips), size, up, normal, tuple(loose), tuple(cases))


def _floats(joint: Joint) -> bool:
    return bool(joint_kinds.kind(joint.kind).FLOATS)


def up_direction(mechanism: Mechanism, values) -> Numbers:
    """Return the direction opposite to gravity, or z without gravity."""
    gravity = np.array(resolve_parts(tuple(mechanism.gravity), values), dtype=float)
    length = np.linalg.norm(gravity)
    return -gravity / length if length > 0 else np.array([0.0, 0.0, 1.0])


def plane_of(system: System, q: Numbers, parameters: Numbers | None = None) -> Numbers | None:
    """Return the normal of the plane in which all bodies move; None for motions in space."""
    if not system.nv:
        return None
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    qd = np.random.default_rng(1).normal(size=(4, system.nv))
    turned = np.asarray(system.poses(q, **more))[..., :3, :3]
    twists = np.asarray(system.twists(q, qd, **more))
    w, v = (np.einsum("bij,tbj->tbi", turned, part).reshape(-1, 3) for part in (twists[..., :3], twists[..., 3:]))
    found = w[np.argmax(np.linalg.norm(w, axis=1))]
    if not np.linalg.norm(found):
        return None
    normal = found / np.linalg.norm(found)
    across = np.linalg.norm(w - np.outer(w @ normal, normal)) / np.linalg.norm(w)
    along = np.linalg.norm(v @ normal) / (np.linalg.norm(v) or 1.0)
    if across > FLAT or along > FLAT:
        return None
    return normal if normal[np.argmax(np.abs(normal))] > 0 else -normal


def _drawable(shapes: tuple[Shape, ...], read: Reader | None) -> list[Shape]:
    """Return the visual shapes, without meshes if no one reads them; collision shapes often differ from the body."""
    kinds = ("box", "cylinder", "sphere", "capsule", *(("mesh",) if read else ()))
    return [s for s in shapes if s.role == "visual" and s.kind in kinds]


def _is_whole(shapes: tuple[Shape, ...], read: Reader | None) -> bool:
    """Return whether all visual shapes of a body can be drawn, so that it needs no rods."""
    visual = [s for s in shapes if s.role == "visual"]
    return bool(visual) and len(_drawable(shapes, read)) == len(visual)


def _is_bare(mechanism: Mechanism, bodies: tuple[Body, ...], cut: Cut, read: Reader | None) -> bool:
    """Return whether a cut joint is drawn: it is on the ground, or on a body that its shapes do not show whole."""
    loop = mechanism.loops[cut.loop]
    shapes = {body.name: body.shapes for body in bodies}.get((loop.body_a, loop.body_b)[cut.end])
    return shapes is None or not _is_whole(shapes, read)


def _shape_mesh(shape: Shape, color, read: Reader | None) -> Mesh:
    if shape.kind == "mesh" and read is not None:
        return read(shape, color)
    make = {"box": lambda *s: meshes.box(s)}.get(shape.kind) or getattr(meshes, shape.kind)
    mesh = make(*shape.size).painted(shape.color or color)
    return mesh.placed(shape.placement.rotation, shape.placement.translation)


def _frame_points(mechanism: Mechanism, body: Body, values) -> list:
    """Return the origins of a body's frames that differ from its own origin."""
    places = [resolve_parts(f.placement, values).translation for f in mechanism.frames if f.body == body.name]
    return [place for place in places if np.linalg.norm(place) > 1e-9]


def _rod_ends(mechanism: Mechanism, bodies: tuple[Body, ...], frames: list[list], loops) -> list[list]:
    """Return the ends of rods from each body as (child, its origin) or (itself, a frame, a loop's end, its center)."""
    parents, out = mechanism.parents, []
    for i, body in enumerate(bodies):
        ends: list = [(k, ORIGIN) for k, parent in enumerate(parents) if parent == i]
        ends = _next_nodes(mechanism, i, ends)
        ends += [(i, place) for place in dict.fromkeys([*frames[i], *links.reaches(loops, body.name)])]
        if not ends and np.linalg.norm(body.com) > 1e-9:
            ends = [(i, tuple(body.com))]
        out.append(ends)
    return out


def _next_nodes(mechanism: Mechanism, i: int, ends: list) -> list:
    """Return the ends of rods from a body: of a beam its first node, of a node also the next one along the beam."""
    flexible = mechanism.bodies[i].flexible
    along = _along(mechanism, i) if flexible is not None else []
    if along:
        return [end for end in ends if end[0] not in along[1:]]
    above = mechanism.parents[i]
    along = _along(mechanism, above) if above >= 0 and mechanism.bodies[above].flexible is not None else []
    following = along[along.index(i) + 1 :] if i in along else []
    return [*ends, *((k, ORIGIN) for k in following[:1])]


def _along(mechanism: Mechanism, i: int) -> list[int]:
    """Return the bodies at the nodes of a beam in the order of their distances; none for bodies of finite elements."""
    flexible: Any = mechanism.bodies[i].flexible
    if not hasattr(flexible, "beam") and not hasattr(flexible, "node_places"):
        return []
    places = {node.name: float(node.x[0]) for node in getattr(flexible, "beam", flexible).modal.nodes}
    children = [(k, joint_kinds.kind(mechanism.joints[k].kind)) for k, p in enumerate(mechanism.parents) if p == i]
    nodes = {k: kind.node for k, kind in children if isinstance(kind, joint_kinds.Elastic) and kind.node}
    return sorted(nodes, key=lambda k: places[nodes[k]])


def _is_boxed(poses: Numbers, i: int, joint: Joint, ends: list, com) -> bool:
    """Return whether a body is drawn as a box: without ends of rods, or floating with none away from its origin.

    The end at its center of mass, of a body without joints, does not show a floating body.
    """
    if not ends:
        return True
    away = [end for end in ends if np.linalg.norm(force_elements.at(poses, *end) - poses[i, :3, 3]) > 1e-9]
    return bool(joint_kinds.kind(joint.kind).FLOATS) and all(end == (i, com) for end in away)


def _size(run: Trajectory, bodies, joints, points, held, boxed, read: Reader | None) -> float:
    """Return the extent of the mechanism at the start of the run [m]."""
    poses = run["poses"][0]
    ends = [(k, point) for own in points for k, point in own]
    ends += [(i, point) for i, own in held.items() for point in own]
    places = [force_elements.at(poses, k, point) for k, point in ends] + [pose[:3, 3] for pose in poses]
    if not any(joint_kinds.kind(joint.kind).FLOATS for joint in joints):
        places.append(np.zeros(3))
    extent = float(np.linalg.norm(np.ptp(np.array(places), axis=0))) if places else 0.0
    shapes = [shape for body in bodies for shape in _drawable(body.shapes, read)]
    solid = [float(2.0 * np.abs(_shape_mesh(shape, (0, 0, 0), read).vertices).max()) for shape in shapes]
    boxes = [
        float(np.linalg.norm(_box_of_inertia(body)[1]))
        for body, is_box in zip(bodies, boxed, strict=True)
        if is_box and not _is_whole(body.shapes, read)
    ]
    return max([extent, *solid, *boxes]) or 1.0


def _radius(poses: Numbers, points, size: float) -> float:
    """Return the radius of rods [m], smaller for short rods."""
    ends = [(i, poses[k, :3, :3] @ point + poses[k, :3, 3]) for i, own in enumerate(points) for k, point in own]
    lengths = [float(np.linalg.norm(end - poses[i, :3, 3])) for i, end in ends]
    long = [length for length in lengths if length > 1e-3 * size]
    middle = float(np.median(long)) if long else size
    return float(np.clip(SLIM * middle, THINNEST * size, THICKEST * size))


def _skeleton(body: Body, boxed: bool, r: float, color) -> Mesh:
    """Return a box of a body's inertia if the body has no other solid, or a ball for a point mass."""
    parts = []
    if boxed or np.linalg.norm(body.com) > 1e-9:
        axes, edges = _box_of_inertia(body)
        if boxed and edges.max() > 0:
            parts.append(meshes.box(np.maximum(edges, 2.0 * r)).placed(axes, body.com).painted(color))
        elif edges.max() == 0 and body.mass:
            parts.append(meshes.sphere(3.2 * r).placed(np.eye(3), body.com).painted(color))
    return meshes.join_meshes(parts)


def _box_of_inertia(body: Body) -> tuple[Numbers, Numbers]:
    """Return axes and edges of the homogeneous box with the body's mass and inertia."""
    moments, axes = np.linalg.eigh(np.array(from_moments(body.inertia), dtype=float))
    if np.linalg.det(axes) < 0:
        axes = -axes
    if not body.mass:
        return axes, np.zeros(3)
    squares = 6.0 * (moments.sum() - 2.0 * moments) / plain_number(body.mass)
    squares[squares < 1e-9 * np.abs(squares).max()] = 0.0
    return axes, np.sqrt(squares)


def _inside(body: Body, poses: Numbers, i: int, k: int, point) -> bool:
    """Return whether a point of body k is inside the box of inertia of body i, or close to its surface."""
    axes, edges = _box_of_inertia(body)
    place = poses[k, :3, :3] @ point + poses[k, :3, 3] - poses[i, :3, 3]
    local = (poses[i, :3, :3].T @ place - np.array(body.com, dtype=float)) @ axes
    return bool((np.abs(local) <= 0.51 * edges + 1e-6 * edges.max()).all())


def _footing(run: Trajectory, joints, loops, size: float, radius: float) -> list[Rod]:
    """Return rods from the origin of the ground to its joints and loops."""
    origins = run["poses"][0, :, :3, 3] if len(joints) else []
    held = [Rod(-1, ORIGIN, -1, point, radius, rgb(GREY)) for point in links.reaches(loops, GROUND)]
    return held + [
        Rod(-1, ORIGIN, k, ORIGIN, radius, rgb(GREY))
        for k, joint in enumerate(joints)
        if joint.parent == GROUND
        and not joint_kinds.kind(joint.kind).FLOATS
        and (joint_kinds.kind(joint.kind).ADVANCES or np.linalg.norm(origins[k]) > 1e-3 * size)
    ]
