"""Writer of native TOML files, which the reader turns into a mechanism of the same hash."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from ..algebra.vectors import IDENTITY, ZERO
from ..errors import ModelError
from ..model import GROUND, Body, Contact, Expression, Joint, Limits, Mechanism, Parameter, Placement, Shape, parse
from ..model.beams import Beam
from ..model.checks import impossible_inertias
from ..model.flexible import without_modes
from ..model.free_beams import FreeBeam
from ..model.modal_bodies import ModalBody, numbers_of
from ..model.topology import check_depth_order
from . import toml_parts

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_LOOP = {"axis": (0.0, 0.0, 1.0), "axis2": None, "pitch": 0.0, "length": 0.0, "radius": None, "angle": None}

Pairs = list[tuple[str, str]]


def write_toml(mechanism: Mechanism) -> str:
    """Return the mechanism as text of the native format.

    Raises ModelError for parts that a TOML file cannot represent: a formula that the reader refuses (too long, too
    deep, or with other names), names that are not Unicode, and parts in another order than the reader's.
    """
    check_depth_order(mechanism)
    mechanism = without_modes(mechanism)
    blocks = [_block("[mechanism]", _head(mechanism))]
    if mechanism.parameters:
        blocks.append(_block("[parameters]", [(_key(p.name), _parameter(p)) for p in mechanism.parameters]))
    for body in mechanism.bodies:
        blocks.append(_block("[[body]]", _body(body)))
        if body.flexible is not None:
            blocks.append(_block("[body.flexible]", _flexible(body)))
        blocks += [_block("[[body.shape]]", _shape(shape)) for shape in body.shapes]
    blocks += [_block("[[joint]]", _joint(joint)) for joint in mechanism.joints]
    blocks += [_block("[[scenery]]", _shape(shape)) for shape in mechanism.scenery]
    for frame in mechanism.frames:
        blocks.append(_block("[[frame]]", [*_texts(frame, "name", "body"), *_placement(frame.placement)]))
    for loop in mechanism.loops:
        sides = [(key, _table(_placement(getattr(loop, key)))) for key in ("placement_a", "placement_b")]
        pairs = [*_texts(loop, "name", "kind", "body_a", "body_b"), *(side for side in sides if side[1] != "{}")]
        blocks.append(_block("[[loop]]", [*pairs, *_unlike(loop, **_LOOP), *_data(loop, "curve", "curve_b")]))
    for coupling in mechanism.couplings:
        pairs = [*_texts(coupling, "name", "joint"), ("terms", _map(coupling.terms)), *_unlike(coupling, offset=0.0)]
        pairs += _data(coupling, "law")
        blocks.append(_block("[[coupling]]", pairs))
    for force in mechanism.forces:
        pairs = [*_texts(force, "name", "kind", "body_a", "body_b"), *_unlike(force, point_a=ZERO, point_b=ZERO)]
        if force.coefficients:
            pairs.append(("coefficients", _map(force.coefficients)))
        blocks.append(_block("[[force]]", pairs))
    blocks += [_block("[[contact]]", _contact(contact)) for contact in mechanism.contacts]
    for actuator in mechanism.actuators:
        pairs = [*_texts(actuator, "name", "joint"), ("gear", _one_or_more(actuator.gear))]
        pairs += _unlike(actuator, gain=1.0, bias=(0.0, 0.0, 0.0), control=(), force=())
        blocks.append(_block("[[actuator]]", pairs))
    for motor in mechanism.motors:
        own = {f.name: f.default for f in fields(motor) if f.name not in ("name", "joint")}
        blocks.append(_block("[[motor]]", [*_texts(motor, "name", "joint"), *_unlike(motor, **own)]))
    for keyframe in mechanism.keyframes:
        tables = [(key, _named(items)) for key in ("q", "qd", "control") if (items := getattr(keyframe, key))]
        blocks.append(_block("[[keyframe]]", [*_texts(keyframe, "name"), *tables]))
    if mechanism.guess:
        blocks.append(_block("[guess]", [(_key(name), _one_or_more(numbers)) for name, numbers in mechanism.guess]))
    return "\n".join(blocks)


def _head(mechanism: Mechanism) -> Pairs:
    pairs = [("name", _value(mechanism.name)), ("gravity", _value(mechanism.gravity))]
    lenient = [("lenient", "true")] if impossible_inertias(mechanism) else []
    return pairs + _unlike(mechanism, source="", description="") + lenient


def _parameter(p: Parameter) -> str:
    rest = _unlike(p, free=False, unit="", note="")
    return _table([("value", _value(p.value)), *rest]) if rest else _value(p.value)


def _body(body: Body) -> Pairs:
    return [("name", _value(body.name)), *_unlike(body, mass=0.0, com=ZERO, inertia=(0.0,) * 6)]


def _flexible(body: Body) -> Pairs:
    beam = body.flexible
    if isinstance(beam, FreeBeam):
        return [*_flexible(replace(body, flexible=beam.beam)), ("formulas", _map(beam.numbers))]
    if isinstance(beam, ModalBody):  # by its numbers: they do not depend on the file that it was read from
        given = numbers_of(beam)
        nodes = [_table((k, _value(x)) for k, x in node.items()) for node in given.pop("nodes")]
        moments = _table((k, _value(x)) for k, x in given.pop("moments").items())
        return [*((k, _value(x)) for k, x in given.items()), ("moments", moments), ("nodes", f"[{', '.join(nodes)}]")]
    assert isinstance(beam, Beam), "a flexible body is one of these"
    given = [(f.name, getattr(beam, f.name)) for f in fields(beam) if f.name != "nodes"]
    defaults = {f.name: f.default for f in fields(beam)}
    pairs = [(key, _value(x)) for key, x in given if x != defaults[key] and key != "modes"]
    return [*pairs, ("modes", repr(list(beam.modes))), ("nodes", _map(beam.node_places[:-1]))]


def _shape(shape: Shape) -> Pairs:
    return [
        ("kind", _value(shape.kind)),
        *_unlike(shape, size=(), role="visual", file="", color=None, name=""),
        *_placement(shape.placement),
    ]


def _joint(joint: Joint) -> Pairs:
    pairs = [*_texts(joint, "name", "kind", "parent", "child"), *_placement(joint.placement)]
    if joint.child_placement is not None:  # of parts that are not assembled yet
        pairs.append(("child_placement", _table(_placement(joint.child_placement))))
    pairs += _unlike(joint, axis=(0.0, 0.0, 1.0), axis2=None, pitch=0.0, sequence="zyx")
    bounds = [(f.name, _one_or_more(getattr(joint.limits, f.name))) for f in fields(Limits)]
    bounds = [pair for pair in bounds if pair[1] != "[]"]
    if bounds:
        pairs.append(("limits", _table(bounds)))
    for key in ("damping", "friction", "armature"):
        if getattr(joint, key):
            pairs.append((key, _one_or_more(getattr(joint, key))))
    pairs += _unlike(joint, ratio=None)
    if (elastic := joint.elastic) is not None:
        own = _unlike(elastic, **{f.name: f.default for f in fields(elastic) if f.name != "placement"})
        place = [] if elastic.placement is None else [("placement", _table(_placement(elastic.placement)))]
        pairs.append(("elastic", _table([*own, *place])))
    return pairs


def _contact(contact: Contact) -> Pairs:
    surface = contact.surface
    inner = [
        *_unlike(surface, kind="plane", body=GROUND),
        *_placement(surface.placement),
        *_unlike(surface, edges=(), heights=(), spacing=(), size=()),
        *_data(surface, "curve"),
    ]
    return [
        *_texts(contact, "name", "body"),
        *_unlike(contact, shape="point", size=()),
        *_placement(contact.placement),
        *([("surface", _table(inner))] if inner else []),
        *_unlike(contact, friction=0.0, restitution=0.0, law="newton"),
    ]


def _placement(placement: Placement) -> Pairs:
    return _unlike(placement, translation=ZERO, rotation=IDENTITY)


def _texts(part: object, *keys: str) -> Pairs:
    return [(key, _value(getattr(part, key))) for key in keys]


def _data(part: object, *keys: str) -> Pairs:
    """Return curves and laws as tables."""
    given = [(key, getattr(part, key)) for key in keys]
    return [(key, _table((k, _value(x)) for k, x in toml_parts.pairs(value))) for key, value in given if value]


def _unlike(part: object, **defaults: object) -> Pairs:
    """Return the keys and values that differ from the reader's defaults."""
    return [(key, _value(getattr(part, key))) for key, default in defaults.items() if getattr(part, key) != default]


def _block(header: str, pairs: Pairs) -> str:
    return "\n".join([header, *(f"{key} = {value}" for key, value in pairs)]) + "\n"


def _table(pairs: Iterable[tuple[str, str]]) -> str:
    inner = ", ".join(f"{key} = {value}" for key, value in pairs)
    return f"{{ {inner} }}" if inner else "{}"


def _map(items: tuple[tuple[str, object], ...]) -> str:
    """Return named numbers as a table, or as a list of pairs if a name occurs twice."""
    if len({key for key, _ in items}) < len(items):
        return _value(items)
    return _table((_key(key), _value(value)) for key, value in items)


def _named(items: tuple[tuple[str, tuple[float, ...]], ...]) -> str:
    """Return lists of numbers by name as a table."""
    return _table((_key(name), _one_or_more(numbers)) for name, numbers in items)


def _one_or_more(values: tuple) -> str:
    return _value(values[0]) if len(values) == 1 else _value(values)


def _value(x: Any) -> str:
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, str):
        return _quoted(x)
    if isinstance(x, Expression):
        return _quoted(_formula(x))
    if isinstance(x, tuple | list):
        return "[" + ", ".join(map(_value, x)) + "]"
    if isinstance(x, dict):
        return _table((key, _value(y)) for key, y in x.items())
    return repr(float(x) + 0.0)  # 0.0 for -0.0, which is the same number


def _formula(x: Expression) -> str:
    """Return a formula that the reader parses to the same expression."""
    text = str(x)
    try:
        same = str(parse(text)) == text or not x.names()
    except (ModelError, RecursionError):
        same = False
    if not same:
        raise ModelError(
            f"the expression {text[:80]!r} cannot be written as a formula",
            remedy="shorten it by parameters for its parts, and use names of letters, digits and _",
        )
    return text


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ModelError(f"{text[:80]!a} is not Unicode", remedy="rename it")
    return '"' + "".join(_ESCAPES.get(c) or (c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in text) + '"'
