"""Reader of native TOML files.

A file has `[mechanism]` (name, gravity, source, description, and lenient = true to accept impossible inertias),
`[parameters]`, and lists of `[[body]]`, `[[joint]]`, `[[pair]]`, `[[frame]]`, `[[loop]]`, `[[coupling]]`, `[[force]]`,
`[[contact]]`, `[[actuator]]`, `[[motor]]`, `[[keyframe]]` and `[[scenery]]`. Bodies and joints may also be a table of
Denavit-Hartenberg rows, `[dh]`. `[guess]` has coordinates by joint name at or near which the loops are closed. Any
other number may be a formula of parameters, in quotes.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ..errors import ModelError, Where, at, below, part_at
from ..model import Mechanism, build_mechanism
from ..model.checks import impossible_inertias, massless_inertias
from ..model.contacts import refuse_many_contacts
from ..model.pairs import open_rings, pair_of
from . import toml_parts
from .dh import CONVENTIONS, ROWS, parts_from_dh, tool_placement
from .fields import MAX_BYTES, file_text, known_keys, refuse_unknown_tables, require, sequence, text, truth, vector
from .pairs import report_cuts
from .report import Report, report_moved, size_text
from .toml_lines import WORD, Places, read_tables

MAX_DOTS = 100
"""Largest number of dots in a key: the time of Python's TOML reader is proportional to its square."""
SECTIONS = {
    "body": toml_parts.body,
    "joint": toml_parts.joint,
    "pair": toml_parts.pair,
    "frame": toml_parts.frame,
    "loop": toml_parts.loop,
    "coupling": toml_parts.coupling,
    "force": toml_parts.force,
    "contact": toml_parts.contact,
    "actuator": toml_parts.actuator,
    "motor": toml_parts.motor,
    "keyframe": toml_parts.keyframe,
    "scenery": toml_parts.shape,
}
TABLES = ("mechanism", "parameters", *SECTIONS, "dh", "guess")
MANY, FEW = 100_000, 20_000
"""Largest numbers of parts: of those that a long rope has one of per link, and of all others. A part takes 0.1 ms."""
LINKS = ("body", "joint", "pair", "frame")
MECHANISM = ("name", "gravity", "source", "description", "lenient")

_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){WORD}(?:[ \t]*\.[ \t]*{WORD}){{{MAX_DOTS}}}")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_toml(path: str | Path, *, lenient: bool | None = None) -> tuple[Mechanism, Report]:
    """Read a native TOML file; `lenient` overrides the setting in the file."""
    return read_toml_text(file_text(path), file=str(path), lenient=lenient, folder=Path(path).parent)


def read_toml_text(
    source: str, *, file: str = "<text>", lenient: bool | None = None, folder: Path | None = None
) -> tuple[Mechanism, Report]:
    """Read a native TOML text; `file` is its name in messages. Files that it names must be in the `folder`."""
    places, report = Places(source), Report(file)
    with places.errors_in(file):
        stem = "" if file == "<text>" else Path(file).stem
        mechanism = _mechanism(parsed_toml(source), places, report, stem, lenient, folder)
        report.read(size_text(mechanism) + mechanism.closed_by)
        for body, message in (*impossible_inertias(mechanism), *massless_inertias(mechanism)):
            place = places.locate(ModelError(message, where=part_at("body", body)), file)
            report.suspect(f"{place.where}: {message}", place.line)
    return mechanism, report


def parsed_toml(source: str) -> dict[str, object]:
    """Return the tables of a TOML text, or raise ModelError with the line."""
    if len(source) > MAX_BYTES:
        raise ModelError(f"the text has {len(source)} characters", remedy=f"use at most {MAX_BYTES}")
    long_key = _LONG_KEY.search(source)
    if long_key:
        raise ModelError(
            f"a key has more than {MAX_DOTS} dots",
            remedy="write flat tables",
            line=source.count("\n", 0, long_key.start()) + 1,
        )
    try:
        return read_tables(source)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = _AT.search(message)
        line = int(at[1]) if at and at[1] else source.count("\n") + 1
        raise ModelError(
            f"not TOML: {_AT.sub('', message)}",
            remedy="write key = value lines under [table] headers, with texts in quotes",
            line=line,
        ) from None
    except RecursionError:
        raise ModelError("the nesting is too deep", remedy="write flat tables") from None
    except ValueError:  # an integer with thousands of digits
        raise ModelError("not TOML: a number has too many digits", remedy="write it as a decimal") from None


def _refuse_unknown(data: dict[str, Any]) -> None:
    """Raise ModelError for a file without tables, and for tables and keys that are unknown there."""
    if not data:
        raise ModelError("the file is empty", remedy="describe parts under [[body]] and [[joint]], or a [dh]")
    for key in data:
        if key in MECHANISM and key not in TABLES:
            raise ModelError(
                f"the key {key!r} belongs to no table", remedy="put it below a line [mechanism]", path=(key,)
            )
    refuse_unknown_tables(data, TABLES)


def _mechanism(
    data: dict[str, Any], places: Places, report: Report, stem: str, lenient: bool | None, folder: Path | None
) -> Mechanism:
    _refuse_unknown(data)
    places.note(("gravity",), ("mechanism", "gravity"))
    where = at("mechanism")
    head = known_keys(data.get("mechanism", {}), MECHANISM, where)
    parameters = data.get("parameters", {})
    known_keys(parameters, parameters, at("parameters"))
    guess = toml_parts.guess(data.get("guess", {}), at("guess"))
    _refuse_many(at("parameters"), len(parameters), FEW)
    for key in parameters:
        places.note(("parameter", key), ("parameters", key))
    found = {sort: _section(data, sort, places, folder) for sort in SECTIONS}
    if "dh" in data:
        dh = _dh(data["dh"], places, [b.name for b in found["body"]])
        for sort, parts in zip(("body", "joint", "frame"), dh, strict=True):
            found[sort] += parts
    if found["pair"]:
        found, guess = _without_rings(found, guess, places, report)
    mechanism = build_mechanism(
        text(head.get("name", stem or "mechanism"), below(where, "name")),
        found["body"],
        found["joint"],
        frames=found["frame"],
        loops=found["loop"],
        couplings=found["coupling"],
        forces=found["force"],
        scenery=found["scenery"],
        contacts=found["contact"],
        actuators=found["actuator"],
        keyframes=found["keyframe"],
        motors=found["motor"],
        gravity=vector(head.get("gravity", (0.0, 0.0, -9.81)), below(where, "gravity")),
        parameters=[
            toml_parts.parameter(key, table, Where(f"parameter {key[:80]!r}", ("parameters", key)))
            for key, table in parameters.items()
        ],
        source=text(head.get("source", ""), below(where, "source")),
        description=text(head.get("description", ""), below(where, "description")),
        guess=guess,
        lenient=truth(head.get("lenient", False), below(where, "lenient")) if lenient is None else lenient,
    )
    report_moved(mechanism, found["frame"], report, lambda body: places.line(("body", body)))
    return mechanism


def _without_rings(found: dict[str, list[Any]], guess: dict[str, Any], places: Places, report: Report):
    """Return the parts with a tree of joints and loops in place of the pairs, and the guess of the joints."""
    for joint in found["joint"]:
        places.note(("pair", joint.name), places.others.get(("joint", joint.name), ()))
    for pair in found["pair"]:
        for sort in ("joint", "loop"):
            places.note((sort, pair.name), places.others[("pair", pair.name)])
    opened = open_rings(
        found["body"],
        [*map(pair_of, found["joint"]), *found["pair"]],
        couplings=found["coupling"],
        forces=found["force"],
        guess=tuple(guess.items()),
    )
    report_cuts(opened, report, lambda name: places.line(("pair", name)))
    loops = [*found["loop"], *opened.loops]
    return found | {"joint": opened.joints, "loop": loops, "force": opened.forces}, opened.guess


def _section(data: dict[str, Any], sort: str, places: Places, folder: Path | None) -> list[Any]:
    tables, out = data.get(sort, []), []
    if not isinstance(tables, list):
        raise ModelError("not a list of tables", where=at(sort), remedy=f"write [[{sort}]], with its keys below")
    if sort == "contact":
        refuse_many_contacts(len(tables))
    _refuse_many(at(sort), len(tables), MANY if sort in LINKS else FEW)
    _refuse_many(at(sort, "shape"), sum(len(t["shape"]) for t in tables if _has_shapes(t)), MANY)
    more = (folder,) if sort == "body" else ()
    for i, table in enumerate(tables):
        out.append(SECTIONS[sort](table, _where(sort, i, table), *more))
        places.note((sort, out[-1].name), (sort, i))
    return out


def _has_shapes(table: object) -> bool:
    return isinstance(table, dict) and isinstance(table.get("shape"), list)


def _refuse_many(where: str, count: int, most: int) -> None:
    if count > most:
        raise ModelError(
            f"{count:,} tables or keys", where=where, remedy=f"give no more than {most:,}, or build parts in Python"
        )


def _where(sort: str, i: int, table: object) -> Where:
    """Return the location of a part in messages: by its name, or else by its number."""
    name = table.get("name") if isinstance(table, dict) else None
    label = repr(name) if isinstance(name, str) and 0 < len(name) <= 80 else str(i + 1)
    return Where(f"{sort} {label}", (sort, i))


def _dh(table: Any, places: Places, bodies: list[str]):
    where = at("dh")
    known_keys(table, ("convention", "degrees", "tool", "row"), where)
    rows = sequence(require(table, "row", where), below(where, "row"))
    _refuse_many(below(where, "row"), len(rows), MANY)
    parts = parts_from_dh(
        rows,
        convention=text(table.get("convention", CONVENTIONS[0]), below(where, "convention")),
        degrees=truth(table.get("degrees", False), below(where, "degrees")),
        bodies=bodies,
        tool=tool_placement(table["tool"], below(where, "tool")) if "tool" in table else None,
    )
    for i, made in enumerate(zip(*parts[:2], strict=True)):
        for sort, x in zip(("body", "joint"), made, strict=True):
            places.note((sort, x.name), (*ROWS, i))
    return parts
