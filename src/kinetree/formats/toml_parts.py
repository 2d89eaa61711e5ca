"""Parts of a mechanism from tables of a native TOML file, with one function per sort of table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..algebra.scalars import Scalar
from ..errors import ModelError, below, path_of
from ..model import (
    GROUND,
    Actuator,
    Beam,
    Body,
    Contact,
    Coupling,
    Curve,
    Elastic,
    ForceElement,
    Frame,
    Joint,
    Keyframe,
    Law,
    Limits,
    Loop,
    ModalBody,
    Motor,
    Pair,
    Parameter,
    Placement,
    Shape,
    Surface,
)
from ..model.checks import check_kind
from ..model.contacts import MOST, refuse_many
from ..model.drives import THERMAL
from ..model.finite_elements import contained
from ..model.free_beams import FreeBeam
from ..model.modal_bodies import from_numbers
from ..model.parts import ELASTIC
from .fields import (
    PLACEMENT,
    axis,
    constant,
    inertia,
    known_keys,
    name,
    number,
    numbers,
    one_or_more,
    placement,
    require,
    sequence,
    text,
    truth,
    vector,
)

# --- Curves and laws of motion from tables of a native TOML file, and back ---


def curve(table: object, where: str) -> Curve:
    """Return a curve: points, or cosines and sines."""
    return _made(Curve, table, where)


def law(table: object, where: str) -> Law:
    """Return the law of a coupling: points, a polynomial, or a slope with cosines and sines."""
    return _made(Law, table, where)


def pairs(part: Curve | Law) -> list[tuple[str, object]]:
    """Return the keys and values of a part that are not the reader's defaults."""
    return [(f.name, getattr(part, f.name)) for f in fields(part) if getattr(part, f.name) != f.default]


def _made(sort: type, table: object, where: str) -> Any:
    table = known_keys(table, tuple(f.name for f in fields(sort)), where)
    given: Mapping[str, object] = table
    flags = {key: truth(given[key], below(where, key)) for key in ("closed", "periodic") if key in given}
    try:
        return sort(**{**given, **flags})
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None


BODY = ("name", "mass", "com", "inertia", "shape", "flexible")
SHAPE = ("kind", "size", "role", "file", "color", "name", *PLACEMENT)
LIMITS = ("lower", "upper", "velocity", "effort")
LOSSES = ("damping", "friction", "armature")
MOTION = ("axis", "axis2", "pitch", "sequence", "ratio", "elastic")
JOINT = ("name", "kind", "parent", "child", *PLACEMENT, "child_placement", *MOTION, "limits", *LOSSES)
PAIR_ENDS = ("body_a", "body_b", "placement_a", "placement_b")
PAIR = ("name", "kind", *PAIR_ENDS, *MOTION, "limits", *LOSSES, "cut")
FRAME = ("name", "body", *PLACEMENT)
LOOP = ("name", "kind", *PAIR_ENDS, "axis", "axis2", "pitch", "length", "radius", "angle", "curve", "curve_b")
COUPLING = ("name", "joint", "terms", "offset", "law")
FORCE = ("name", "kind", "body_a", "body_b", "point_a", "point_b", "coefficients")
CONTACT = ("name", "body", "shape", "size", *PLACEMENT, "surface", "friction", "restitution", "law")
SURFACE = ("kind", "body", *PLACEMENT, "edges", "heights", "spacing", "size", "curve")
ACTUATOR = ("name", "joint", "gear", "gain", "bias", "control", "force")
KEYFRAME = ("name", "q", "qd", "control")
MOTOR = tuple(f.name for f in fields(Motor))
PARAMETER = ("value", "free", "unit", "note")


def parameter(label: str, table: object, where: str) -> Parameter:
    """Return a parameter: a number, or a table of value, free, unit and note."""
    if not isinstance(table, Mapping):
        return Parameter(name(label, where), constant(table, where))
    table = known_keys(table, PARAMETER, where)
    return Parameter(
        name(label, where),
        constant(require(table, "value", where), where),
        free=truth(table.get("free", False), where),
        unit=text(table.get("unit", ""), where),
        note=text(table.get("note", ""), where),
    )


def body(table: object, where: str, folder: Path | None = None) -> Body:
    """Return a body with its shapes; `folder` is that of the file, in which bodies from finite elements are."""
    table = known_keys(table, BODY, where)
    return Body(
        name(require(table, "name", where), below(where, "name")),
        number(table.get("mass", 0.0), below(where, "mass")),
        vector(table.get("com", (0.0, 0.0, 0.0)), below(where, "com")),
        inertia(table.get("inertia", (0.0,) * 6), below(where, "inertia")),
        tuple(
            shape(item, below(where, "shape", i))
            for i, item in enumerate(sequence(table.get("shape", ()), below(where, "shape")))
        ),
        flexible(table["flexible"], below(where, "flexible"), folder) if "flexible" in table else None,
    )


def flexible(table: object, where: str, folder: Path | None) -> Beam | FreeBeam | ModalBody:
    """Return a flexible body: a beam, a file of finite elements with options to read it, or numbers by name."""
    given = table if isinstance(table, Mapping) else {}
    try:
        if "file" in given:
            return _mesh(given, where, folder)
        return from_numbers(given) if "names" in given else _beam(table, where)
    except ModelError as error:
        if error.where.startswith(where):
            raise
        inner = below(where, error.where) if error.where else where
        raise ModelError(error.what, where=inner, remedy=error.remedy, file=error.file, line=error.line) from None


def _mesh(table: Mapping[str, object], where: str, folder: Path | None) -> ModalBody:
    """Return the body of a file of finite elements, which is in the folder of the mechanism's file."""
    table = known_keys(table, ("file", "modes", "damping", "mass"), where)
    if folder is None:
        raise ModelError(
            "a text has no folder in which files of finite elements are", where=below(where, "file"),
            remedy="read the mechanism from a file",
        )  # fmt: skip
    path = contained(table["file"], folder, below(where, "file"), (".npz", ".toml"))
    given: dict[str, Any] = {k: constant(table[k], below(where, k)) for k in ("damping", "mass") if k in table}
    return ModalBody.read(path, **given, **{k: table[k] for k in ("modes",) if k in table})  # type: ignore[arg-type]


def _beam(table: object, where: str) -> Beam | FreeBeam:
    """Return the beam of a flexible body; `formulas` are numbers by name that depend on parameters."""
    given: dict[str, Any] = dict(known_keys(table, (*(f.name for f in fields(Beam)), "formulas"), where))
    require(given, "length", where)
    formulas = _pairs(given.pop("formulas", {}), below(where, "formulas"))
    try:
        return FreeBeam(Beam(**given), formulas) if formulas else Beam(**given)
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None


def shape(table: object, where: str) -> Shape:
    """Return a shape to draw."""
    table = known_keys(table, SHAPE, where)
    color = numbers(table["color"], below(where, "color"), 4) if "color" in table else None
    return Shape(
        text(require(table, "kind", where), below(where, "kind")),
        numbers(table.get("size", ()), below(where, "size")),
        placement(table, where),
        role=text(table.get("role", "visual"), where),
        file=text(table.get("file", ""), where),
        color=color,
        name=text(table.get("name", ""), where),
    )


def joint(table: object, where: str) -> Joint:
    """Return a joint."""
    table = known_keys(table, JOINT, where)
    return Joint(
        **_names(table, where, "name", "kind", "parent", "child"),
        placement=placement(table, where),
        **_motion(table, where),
        child_placement=_side(table, "child_placement", where) if "child_placement" in table else None,
    )


def pair(table: object, where: str) -> Pair:
    """Return a pair."""
    table = known_keys(table, PAIR, where)
    return Pair(
        **_names(table, where, "name", "kind", "body_a", "body_b"),
        placement_a=_side(table, "placement_a", where),
        placement_b=_side(table, "placement_b", where),
        **_motion(table, where),
        cut=truth(table["cut"], below(where, "cut")) if "cut" in table else None,
    )


def limits(table: object, where: str) -> Limits:
    """Return limits; a single number is a list of one. Only limits may be infinite."""
    table = known_keys(table, LIMITS, where)
    return Limits(**{key: one_or_more(table[key], where, infinite=True) for key in table})


def losses(table: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return damping, friction and armature, if given."""
    return {key: one_or_more(table[key], below(where, key)) for key in LOSSES if key in table}


def frame(table: object, where: str) -> Frame:
    """Return a frame."""
    table = known_keys(table, FRAME, where)
    return Frame(
        name(require(table, "name", where), below(where, "name")),
        name(require(table, "body", where), below(where, "body")),
        placement(table, where),
    )


def loop(table: object, where: str) -> Loop:
    """Return a loop."""
    table = known_keys(table, LOOP, where)
    return Loop(
        **_names(table, where, "name", "kind", "body_a", "body_b"),
        placement_a=_side(table, "placement_a", where),
        placement_b=_side(table, "placement_b", where),
        **_axes(table, where),
        length=number(table.get("length", 0.0), below(where, "length")),
        **_own(table, where),
    )


def _own(table: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the data of a loop that only some kinds have."""
    readers = {"radius": number, "angle": number, "curve": curve, "curve_b": curve}
    return {key: read(table[key], below(where, key)) for key, read in readers.items() if key in table}


def _names(table: Mapping[str, object], where: str, *keys: str) -> dict[str, Any]:
    """Return the names at these keys, all required."""
    return {key: name(require(table, key, where), below(where, key)) for key in keys}


def _axes(table: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the axes and the pitch of a joint, pair or loop."""
    return {
        "axis": axis(table.get("axis", (0.0, 0.0, 1.0)), below(where, "axis")),
        "axis2": axis(table["axis2"], below(where, "axis2")) if "axis2" in table else None,
        "pitch": number(table.get("pitch", 0.0), below(where, "pitch")),
    }


def _motion(table: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the fields of a joint or pair that describe its motion: axes, limits and losses."""
    return _axes(table, where) | {
        "sequence": text(table.get("sequence", "zyx"), below(where, "sequence")),
        "limits": limits(table.get("limits", {}), below(where, "limits")),
        "ratio": number(table["ratio"], below(where, "ratio")) if "ratio" in table else None,
        "elastic": elastic(table["elastic"], below(where, "elastic")) if "elastic" in table else None,
        **losses(table, where),
    }


def elastic(table: object, where: str) -> Elastic:
    """Return the motor and spring of an elastic joint."""
    table = known_keys(table, tuple(f.name for f in fields(Elastic)), where)
    require(table, "stiffness", where)
    given: dict[str, Any] = {key: number(table[key], below(where, key)) for key in ELASTIC if key in table}
    given |= {key: text(table[key], below(where, key)) for key in ("model", "carrier") if key in table}
    if "placement" in table:
        given["placement"] = _side(table, "placement", where)
    if "axis" in table:
        given["axis"] = axis(table["axis"], below(where, "axis"))
    try:
        return Elastic(**given)
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None


def _side(table: Mapping[str, object], key: str, where: str) -> Placement:
    return placement(known_keys(table.get(key, {}), PLACEMENT, below(where, key)), below(where, key))


def coupling(table: object, where: str) -> Coupling:
    """Return a coupling; its terms are a table, or a list of pairs."""
    table = known_keys(table, COUPLING, where)
    return Coupling(
        name(require(table, "name", where), below(where, "name")),
        name(require(table, "joint", where), below(where, "joint")),
        _pairs(require(table, "terms", where), below(where, "terms")),
        number(table.get("offset", 0.0), below(where, "offset")),
        law(table["law"], below(where, "law")) if "law" in table else None,
    )


def force(table: object, where: str) -> ForceElement:
    """Return a force element; its coefficients are a table, or a list of pairs."""
    table = known_keys(table, FORCE, where)
    return ForceElement(
        name(require(table, "name", where), below(where, "name")),
        check_kind(name(require(table, "kind", where), below(where, "kind")), below(where, "kind")),
        name(require(table, "body_a", where), below(where, "body_a")),
        name(require(table, "body_b", where), below(where, "body_b")),
        vector(table.get("point_a", (0.0, 0.0, 0.0)), below(where, "point_a")),
        vector(table.get("point_b", (0.0, 0.0, 0.0)), below(where, "point_b")),
        _pairs(table.get("coefficients", {}), below(where, "coefficients")),
    )


def contact(table: object, where: str) -> Contact:
    """Return a contact; faults that its own checks find get the location in the file."""
    table = known_keys(table, CONTACT, where)
    names = _names(table, where, "name", "body")
    try:
        return Contact(
            **names,
            shape=text(table.get("shape", "point"), below(where, "shape")),
            size=one_or_more(table.get("size", ()), below(where, "size")),
            placement=placement(table, where),
            surface=surface(table.get("surface", {}), below(where, "surface")),
            friction=number(table.get("friction", 0.0), below(where, "friction")),
            restitution=number(table.get("restitution", 0.0), below(where, "restitution")),
            law=text(table.get("law", "newton"), below(where, "law")),
        )
    except ModelError as error:
        path = error.path if error.path[:2] == path_of(where)[:2] else path_of(where)
        raise type(error)(error.what, where=error.where, remedy=error.remedy, path=path) from None


def surface(table: object, where: str) -> Surface:
    """Return the surface of a contact."""
    table = known_keys(table, SURFACE, where)
    for key in MOST:
        refuse_many(table.get(key, ()), key, below(where, key))
    heights = sequence(table.get("heights", ()), below(where, "heights"))
    rows = [numbers(x, below(where, "heights")) if isinstance(x, list) else x for x in heights]
    return Surface(
        text(table.get("kind", "plane"), below(where, "kind")),
        name(table.get("body", GROUND), below(where, "body")),
        placement(table, where),
        edges=numbers(table.get("edges", ()), below(where, "edges")),
        heights=tuple(rows),
        spacing=numbers(table.get("spacing", ()), below(where, "spacing")),
        size=one_or_more(table.get("size", ()), below(where, "size")),
        curve=curve(table["curve"], below(where, "curve")) if "curve" in table else None,
    )


def actuator(table: object, where: str) -> Actuator:
    """Return an actuator."""
    table = known_keys(table, ACTUATOR, where)
    names = _names(table, where, "name", "joint")
    given: dict[str, Any] = {key: one_or_more(table[key], below(where, key)) for key in ACTUATOR[2:] if key in table}
    if "gain" in table:
        given["gain"] = constant(table["gain"], below(where, "gain"))
    return Actuator(**names, **given)


def motor(table: object, where: str) -> Motor:
    """Return a motor."""
    table = known_keys(table, MOTOR, where)
    names = _names(table, where, "name", "joint")
    given: dict[str, Any] = {}
    for key in MOTOR[2:]:
        if key in table:
            read = one_or_more if key in THERMAL else constant
            given[key] = read(table[key], below(where, key))
    for key in ("torque_constant", "resistance"):
        require(table, key, where)
    return Motor(**names, **given)


def keyframe(table: object, where: str) -> Keyframe:
    """Return a keyframe."""
    table = known_keys(table, KEYFRAME, where)
    given = {key: tuple(guess(table.get(key, {}), below(where, key)).items()) for key in KEYFRAME[1:]}
    return Keyframe(name(require(table, "name", where), below(where, "name")), **given)


def guess(table: object, where: str) -> dict[str, tuple[float, ...]]:
    """Return guessed coordinates by joint name; a single number is a list of one."""
    table = known_keys(table, table if isinstance(table, Mapping) else (), where)
    out = {}
    for key, values in table.items():
        items = values if isinstance(values, list) else [values]
        out[name(key, where)] = tuple(constant(item, below(where, key)) for item in items)
    return out


def _pairs(x: object, where: str) -> tuple[tuple[str, Scalar], ...]:
    if isinstance(x, Mapping):
        return tuple((name(key, where), number(value, where)) for key, value in x.items())
    out = []
    for item in sequence(x, where):
        pair = sequence(item, where)
        if len(pair) != 2:
            raise ModelError(f"{len(pair)} values where a pair belongs", where=where, remedy='give ["name", number]')
        out.append((name(pair[0], where), number(pair[1], where)))
    return tuple(out)
