"""Another structure of a mechanism: parts that are added, changed and removed, and loops that are cut elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from .... import joints, loops
from ....errors import AssemblyError, InputError, brief, unknown_name
from ....formats.pairs import recut
from ....model.construction import build_mechanism
from ....model.mechanism import Mechanism, resolve_parts
from ....model.parts import GROUND, Body, ForceElement, Frame, Joint, Loop, Placement, Shape
from ....page.table import free_lengths, with_lengths
from ....system import System
from ..tabs import Studio, open_system
from .model import MOST, text_system

# --- Trees and loops built part by part: bodies, joints, cuts, springs and frames are added, changed and removed ---

CHANGES: dict[str, Callable[[Mechanism, dict[str, Any]], Mechanism]]
"""The changes of `reshape` by name; filled below."""
END = "_end"
"""What the name of the frame at the far end of a body of a simple shape ends with."""


def reshape(studio: Studio, change: Any = None, model: object = None, q: object = None) -> dict[str, object]:
    """Open a mechanism with one change of its structure, at a position in which its loops are closed.

    `change` is a table with the name of one of CHANGES as "do", and its arguments; none opens the mechanism as it is.
    `model` is the text of the TOML file of the mechanism before, by default that of the tab, at `q`.
    """
    given = change if isinstance(change, dict) else {}
    do = given.get("do", "keep")
    if do not in CHANGES:
        raise unknown_name("change", do, CHANGES)
    new = do == "new"
    before = System(_template(given)) if new else studio.tab.shown() if model is None else text_system(studio, model)
    m = before.mechanism
    if m.has_flexible or m.motors or any(j.elastic or not joints.is_shipped(j.kind) for j in m.joints):
        raise InputError(
            "bodies that bend, elastic joints and motors stay as they are; change the structure in the file"
        )
    made = m if new else CHANGES[do](m, given)
    if len(made.bodies) > MOST:
        raise InputError(f"{len(made.bodies)} bodies are too many; at most {MOST} can be built here")
    system = System(made)
    at = None if new or q is None else _numbers(q, m.nq, "q")
    return open_system(studio, system, q=_closed(system, _position(before, system, at)))


def _position(before: System, after: System, q: list[float] | None) -> np.ndarray:
    """Return the position of the joints that stay, and the neutral or guessed one of the others."""
    old, new = before.mechanism, after.mechanism
    out = np.array(new.neutral, dtype=float)
    for name, numbers in new.guess:
        out[new.q_slices[_index(new.joints, name)]] = numbers
    kinds = {j.name: (j.kind, s) for j, s in zip(old.joints, old.q_slices, strict=True)}
    for joint, slot in zip(new.joints, new.q_slices, strict=True):
        kind, at = kinds.get(joint.name, ("", slice(0)))
        if q is not None and kind == joint.kind:
            out[slot] = q[at]
    return out


def _closed(system: System, q: np.ndarray) -> np.ndarray:
    """Return a position near q in which the loops are closed; joints that are in none of them stay."""
    m, ring = system.mechanism, {body for loop in system.mechanism.loops for body in (loop.body_a, loop.body_b)}
    for joint in reversed(m.joints):  # children first
        ring |= {joint.parent} if joint.child in ring else set()
    held = [j.name for j, s in zip(m.joints, m.q_slices, strict=True) if j.child not in ring and s.stop > s.start]
    try:
        return np.asarray(system.assemble(q, held)) if system.closures else q
    except AssemblyError:
        remedy = "choose points that the bodies reach, or change lengths first"
        raise InputError(f"the loops cannot be closed: {remedy}") from None


def _index(parts: Any, name: object) -> int:
    names = [part.name for part in parts]
    if name not in names:
        raise unknown_name("part", str(name), names)
    return names.index(str(name))


def _body(m: Mechanism, name: object, *, ground: bool = False) -> str:
    """Return the name of a body, or "ground" where it is allowed."""
    known = [*([GROUND] if ground else []), *(b.name for b in m.bodies)]
    if name not in known:
        raise unknown_name("body", str(name), known)
    return str(name)


def _unused(stem: str, parts: Any) -> str:
    names = {part.name for part in parts}
    return next(name for k in count(1) if (name := f"{stem}{k}") not in names)


def _placement(given: dict[str, Any], at: str = "at", angles: str = "rpy") -> Placement:
    """Return a placement of "at" [m] and "rpy", roll, pitch and yaw [rad]."""
    roll, pitch, yaw = _numbers(given.get(angles, [0.0] * 3), 3, "the angles")
    x, y, z = _numbers(given.get(at, [0.0] * 3), 3, "the place")
    return Placement.from_euler("zyx", (yaw, pitch, roll), (x, y, z))


def _joint(given: dict[str, Any]) -> dict[str, Any]:
    """Return kind and axis of a joint, the axis as a letter."""
    kind, axis = given.get("kind", "revolute"), given.get("axis", "z")
    if axis not in ("x", "y", "z"):
        raise InputError(f"the axis is {brief(axis)}; expected x, y or z")
    joints.kind(kind)
    return {"kind": kind, "axis": axis} | ({"pitch": _positive(given, "pitch", 0.01)} if kind == "helical" else {})


def _positive(given: dict[str, Any], key: str, usual: float) -> float:
    x = given.get(key, usual)
    if isinstance(x, bool) or not isinstance(x, int | float) or not 1e-9 <= x <= 1e9:
        raise InputError(f"{key} is {brief(x)}; expected a number from 1e-9 to 1e9")
    return float(x)


def _solid(name: str, given: Any) -> tuple[Body, float]:
    """Return a body of a simple shape and its length along x, from its joint to its far end.

    The shape is a "rod" (length), "box" (length, width, height), "cylinder" along x (length, radius), "sphere" (radius)
    about the joint, or "point" (length), with its mass [kg] or density [kg/m^3].
    """
    given = given if isinstance(given, dict) else {}
    kind = given.get("kind", "rod")
    if kind not in ("rod", "box", "cylinder", "sphere", "point"):
        raise unknown_name("shape", kind, ("rod", "box", "cylinder", "sphere", "point"))
    length = 0.0 if kind == "sphere" else _positive(given, "length", 0.3)
    r = _positive(given, "radius", 0.05) if kind in ("cylinder", "sphere") else length / 30
    wide, high = (_positive(given, key, 0.1) for key in ("width", "height"))
    volume = {"box": length * wide * high, "sphere": 4 / 3 * math.pi * r**3}.get(kind, math.pi * r**2 * length)
    mass = _positive(given, "mass", 1.0) if "density" not in given else volume * _positive(given, "density", 2700.0)
    along, across = mass * r**2 / 2, mass * (3 * r**2 + length**2) / 12
    moments = {
        "box": (mass * (wide**2 + high**2) / 12, mass * (length**2 + high**2) / 12, mass * (length**2 + wide**2) / 12),
        "sphere": (2 / 5 * mass * r**2,) * 3,
        "point": (0.0,) * 3,
    }.get(kind, (along, across, across))
    middle = (length if kind == "point" else length / 2, 0.0, 0.0)
    shapes = {
        "box": (Shape("box", (length, wide, high), Placement(middle)),),
        "cylinder": (Shape("cylinder", (r, length), Placement.from_euler("y", (math.pi / 2,), middle)),),
        "sphere": (Shape("sphere", (r,)),),
    }.get(kind, ())  # rods and points are drawn as links
    return Body(name, mass, middle, (*moments, 0.0, 0.0, 0.0), shapes), length


def _rebuilt(m: Mechanism, **parts: Any) -> Mechanism:
    """Return a mechanism with other parts, checked; those that name a body or joint which is gone are left out."""
    new = replace(m, **parts)
    bodies, names = {b.name for b in new.bodies} | {GROUND}, {j.name for j in new.joints}
    kinds = {(j.name, j.kind) for j in new.joints}
    stays = {j.name for j in m.joints if (j.name, j.kind) in kinds}

    def both(items: Collection[Any]) -> list[Any]:
        return [x for x in items if x.body_a in bodies and x.body_b in bodies]

    return build_mechanism(
        new.name, new.bodies, new.joints,
        frames=[f for f in new.frames if f.body in bodies], loops=both(new.loops), forces=both(new.forces),
        couplings=[c for c in new.couplings if {c.joint, *(name for name, _ in c.terms)} <= stays],
        gravity=new.gravity, parameters=new.parameters, scenery=new.scenery, description=new.description,
        guess=[(name, x) for name, x in new.guess if name in names and (name in stays or m is new)],
        contacts=[c for c in new.contacts if c.body in bodies],
        actuators=[a for a in new.actuators if a.joint in stays], lenient=True,
    )  # fmt: skip


def _added(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    parent = _body(m, given.get("parent", GROUND), ground=True)
    name = str(given.get("name") or _unused("link", m.bodies))
    body, length = _solid(name, given.get("shape"))
    joint = Joint(_unused("joint", m.joints), parent=parent, child=name, placement=_placement(given), **_joint(given))
    end = Frame(f"{name}{END}", name, Placement((length, 0.0, 0.0)))
    return _rebuilt(m, bodies=(*m.bodies, body), joints=(*m.joints, joint), frames=(*m.frames, end))


def _branch(m: Mechanism, name: str) -> set[str]:
    """Return a body and all that it carries."""
    found = {name}
    for joint in m.joints:  # parents first
        if joint.parent in found:
            found.add(joint.child)
    return found


def _removed(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    gone = _branch(m, _body(m, given.get("body")))
    if len(gone) == len(m.bodies):
        raise InputError("these are all bodies of the mechanism: one must stay")
    bodies = tuple(b for b in m.bodies if b.name not in gone)
    return _rebuilt(m, bodies=bodies, joints=tuple(j for j in m.joints if j.child not in gone))


def _other_joint(m: Mechanism, body: str, **changes: Any) -> Mechanism:
    """Return a mechanism in which the joint of a body has other numbers; limits and losses fit its old kind alone."""
    old = next(j for j in m.joints if j.child == body)
    fresh = {} if changes.get("kind", old.kind) == old.kind else {
        name: getattr(Joint("joint", "fixed", GROUND, "body"), name)
        for name in ("limits", "damping", "friction", "armature", "axis2", "ratio")
    }  # fmt: skip
    new = replace(old, **(fresh | changes))
    return _rebuilt(m, joints=tuple(new if j is old else j for j in m.joints))


def _attached(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    body, parent = _body(m, given.get("body")), _body(m, given.get("parent", GROUND), ground=True)
    if parent in _branch(m, body):
        raise InputError(f"{parent} is carried by {body}; choose a body that is not")
    return _other_joint(m, body, parent=parent, placement=_placement(given))


def _shaped(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    name = _body(m, given.get("body"))
    body, length = _solid(name, given.get("shape"))
    end = Placement((length, 0.0, 0.0))
    before = next((f.placement.translation for f in m.frames if f.name == f"{name}{END}"), None)

    def moved(part: Any) -> Any:
        """Return a part that stood at the end of the body at its new end."""
        if part.parent != name or part.placement.translation != before:
            return part
        return replace(part, placement=replace(part.placement, translation=end.translation))

    frames = tuple(replace(f, placement=end) if f.name == f"{name}{END}" else f for f in m.frames)
    bodies = tuple(body if b.name == name else b for b in m.bodies)
    return _rebuilt(m, bodies=bodies, joints=tuple(moved(j) for j in m.joints), frames=frames)


def _two_bodies(m: Mechanism, given: dict[str, Any]) -> tuple[str, str]:
    """Return the two bodies of a loop or a spring."""
    a, b = (_body(m, given.get(key, GROUND), ground=True) for key in ("a", "b"))
    if a == b:
        raise InputError(f"both ends are on {a}; choose another body for one of them")
    return a, b


def _looped(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    kind, axis = given.get("kind", "revolute"), _joint({"axis": given.get("axis", "z")})["axis"]
    if kind not in loops.KINDS:
        raise unknown_name("loop kind", kind, loops.KINDS)
    a, b = _placement(given, "at_a"), _placement(given, "at_b")
    new = Loop(_unused("loop", m.loops), kind, *_two_bodies(m, given), a, b, axis=axis)
    new = replace(new, length=_positive(given, "length", 0.3)) if kind == "rod" else new
    return _rebuilt(m, loops=(*m.loops, new))


def _sprung(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    a, b = (_placement(given, key).translation for key in ("at_a", "at_b"))
    numbers = (("stiffness", 100.0), ("damping", 1.0), ("free_length", 0.3))
    coefficients = tuple((key, _positive(given, key, usual)) for key, usual in numbers)
    new = ForceElement(_unused("spring", m.forces), "spring_damper", *_two_bodies(m, given), a, b, coefficients)
    return _rebuilt(m, forces=(*m.forces, new))


def _framed(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    name = str(given.get("name") or _unused("frame", m.frames))
    return _rebuilt(m, frames=(*m.frames, Frame(name, _body(m, given.get("body"), ground=True), _placement(given))))


def _dropped(m: Mechanism, given: dict[str, Any]) -> Mechanism:
    """Return a mechanism without a loop, a spring or a frame, named as "part"."""
    name = given.get("part")
    kept = {field: tuple(x for x in getattr(m, field) if x.name != name) for field in ("loops", "forces", "frames")}
    if all(len(kept[field]) == len(getattr(m, field)) for field in kept):
        raise unknown_name("part", str(name), [x.name for x in (*m.loops, *m.forces, *m.frames)])
    return _rebuilt(m, **kept)


CHANGES = {
    "keep": lambda m, given: m,
    "new": lambda m, given: m,
    "add": _added,
    "remove": _removed,
    "joint": lambda m, given: _other_joint(m, _body(m, given.get("body")), **_joint(given)),
    "attach": _attached,
    "shape": _shaped,
    "close": _looped,
    "spring": _sprung,
    "frame": _framed,
    "drop": _dropped,
}


def _template(given: dict[str, Any]) -> Mechanism:
    """Return a new mechanism in a vertical plane: a "link", a "tree" of a trunk with two arms, or a "ring" of bars.

    A tree has arms of `links` links. A ring has `links` bars with the ground, of which the first one turns fully.
    """
    kind, links = given.get("template", "link"), given.get("links", 2)
    if kind not in ("link", "tree", "ring"):
        raise unknown_name("template", kind, ("link", "tree", "ring"))
    if isinstance(links, bool) or not isinstance(links, int) or not 1 <= links <= 30:
        raise InputError(f"the number of links is {brief(links)}; expected a whole number from 1 to 30")
    m = build_mechanism("robot", [], [], gravity=(0.0, -9.81, 0.0))

    def add(parent: str, length: float, at: tuple[float, ...], yaw: float = 0.0) -> str:
        nonlocal m
        shape = {"kind": "rod", "length": length}
        m = _added(m, {"parent": parent, "at": list(at), "rpy": [0.0, 0.0, yaw], "shape": shape})
        return m.bodies[-1].name

    first = add(GROUND, 0.2 if kind == "ring" else 0.3, (0.0,) * 3, {"link": 0.0, "tree": math.pi / 2}.get(kind, 2.0))
    if kind == "tree":
        for side in (1, -1):
            tip, at = first, 0.3
            for k in range(links):
                tip, at = add(tip, 0.25, (at, 0.0, 0.0), side * math.pi / 4 if k == 0 else 0.0), 0.25
    if kind == "ring":
        tip, at = first, 0.2
        for _ in range(max(links, 4) - 2):
            tip, at = add(tip, 0.4, (at, 0.0, 0.0), -2 * math.pi / max(links, 4)), 0.4
        m = _looped(m, {"a": tip, "at_a": [0.4, 0.0, 0.0], "b": GROUND, "at_b": [0.5, 0.0, 0.0]})
    return m


# --- Closed loops: a mechanism cut at another joint ---


def cut(studio: Studio, loop: Any, joint: Any, q: object = None, parameters: object = None) -> dict[str, Any]:
    """Cut the mechanism of the tab at a joint instead of at a loop, and open it at the same position.

    `q` and `parameters` are those of the page, by default the assembled position and the numbers of the model. The
    result has the data of the page and the entries of the report.
    """
    before = studio.tab.shown()
    m = before.mechanism
    if parameters is not None:
        m = with_lengths(m, _numbers(parameters, len(free_lengths(m)[0].free_parameters), "parameters"))
    system = System(m)
    at = system.assemble() if q is None else np.array(_numbers(q, m.nq, "q"))
    made, report = recut(m, loop, joint, _guess(system, at, loop))
    after = System(made)
    found = open_system(studio, after, q=after.assemble())
    return {**found, "report": [{"sort": e.sort, "text": e.text} for e in report.entries]}


def _numbers(given: object, count: int, what: str) -> list[float]:
    """Return numbers of a page."""
    numbers: list[Any] = list(given) if isinstance(given, list | tuple) else []
    good = isinstance(given, list | tuple) and all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)
    if not good or len(numbers) != count:
        raise InputError(f"{what} are {brief(given)}; expected {count} numbers")
    return [float(x) for x in numbers]


def _guess(system: System, q: np.ndarray, loop: object) -> dict[str, object]:
    """Return a position by the names of joints, with that of the cut joint as it stands where its kind is simple."""
    m = system.mechanism
    out = {j.name: q[s].tolist() for j, s in zip(m.joints, m.q_slices, strict=True) if s.stop > s.start}
    for x in resolve_parts(m.loops, m.values()):
        if x.name == loop and (found := _displacement(m, np.asarray(system.poses(q)), x)):
            out[x.name] = found
    return {name: x[0] if len(x) == 1 else tuple(x) for name, x in out.items()}


def _displacement(mechanism: Mechanism, poses: np.ndarray, loop: Any) -> list[float]:
    """Return the coordinates of frame b in frame a, of revolute, prismatic and spherical cuts; none of others."""
    index = {body.name: i for i, body in enumerate(mechanism.bodies)}

    def frame(body: str, placement: Any) -> np.ndarray:
        own = np.eye(4)
        own[:3, :3], own[:3, 3] = placement.rotation, placement.translation
        return own if body == GROUND else poses[index[body]] @ own

    turn = np.array(loops.frame(loop), dtype=float)
    between = np.linalg.inv(frame(loop.body_a, loop.placement_a)) @ frame(loop.body_b, loop.placement_b)
    rotation = turn.T @ between[:3, :3] @ turn
    if loop.kind == "revolute":
        return [float(np.arctan2(rotation[1, 0], rotation[0, 0]))]
    if loop.kind == "prismatic":
        return [float((turn.T @ between[:3, 3])[2])]
    return _quaternion(between[:3, :3]) if loop.kind == "spherical" else []


def _quaternion(R: np.ndarray) -> list[float]:
    """Return the quaternion (x, y, z, w) of a rotation: the eigenvector of its symmetric matrix of products."""
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    K = np.array(
        [
            [a - e - i, b + d, c + g, h - f],
            [b + d, e - a - i, f + h, c - g],
            [c + g, f + h, i - a - e, d - b],
            [h - f, c - g, d - b, a + e + i],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1].tolist()
