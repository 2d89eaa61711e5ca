"""Catalogues of motors, gearboxes and screws, read from CSV.

The first line that is no comment has the columns, each with its unit in brackets: `peak_torque [N m]`. Every other
line is a part. Lines that begin with # are comments; `# source: ...` states where the figures come from. COLUMNS lists
the columns with the units that are understood, REQUIRED those that each kind of part needs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelError, quote, unknown_name
from ..formats.fields import csv_cells, filled_cells, strict_float
from ..formats.toml import file_text
from ..model.drives import Motor
from ..model.part_fields import MAX_NAME

RPM = math.pi / 30.0
"""A revolution per minute [rad/s]."""

TORQUES = {"N m": 1.0, "Nm": 1.0, "mN m": 1e-3, "mNm": 1e-3}
FORCES = {"N": 1.0, "kN": 1e3}
SPEEDS = {"rpm": RPM, "rad/s": 1.0}
COLUMNS: dict[str, dict[str, float]] = {
    "peak_torque": TORQUES,
    "continuous_torque": TORQUES,
    "peak_force": FORCES,
    "continuous_force": FORCES,
    "max_speed": SPEEDS,
    "base_speed": SPEEDS,
    "inertia": {"kg m^2": 1.0, "kg cm^2": 1e-4, "g cm^2": 1e-7},
    "ratio": {"1": 1.0},
    "lead": {"m": 1.0, "mm": 1e-3},
    "efficiency": {"1": 1.0, "%": 1e-2},
    "mass": {"kg": 1.0, "g": 1e-3},
    "torque_constant": {"N m/A": 1.0, "Nm/A": 1.0, "mN m/A": 1e-3, "mNm/A": 1e-3},
    "resistance": {"Ohm": 1.0},
    "winding_thermal_resistance": {"K/W": 1.0},
    "housing_thermal_resistance": {"K/W": 1.0},
    "winding_thermal_time": {"s": 1.0, "min": 60.0},
    "housing_thermal_time": {"s": 1.0, "min": 60.0},
    "max_temperature": {"C": 1.0},
}
"""The columns of numbers, with their units and the factors to SI units."""
THERMAL = (
    "torque_constant",
    "resistance",
    "winding_thermal_resistance",
    "housing_thermal_resistance",
    "winding_thermal_time",
    "housing_thermal_time",
    "max_temperature",
)
"""The columns from which the temperature of a motor's winding follows: all of them, or none."""
TEXTS = ("kind", "name")
REQUIRED = {
    "motor": ("peak_torque", "continuous_torque", "max_speed", "inertia"),
    "gearbox": ("ratio", "peak_torque", "continuous_torque", "max_speed", "efficiency"),
    "screw": ("lead", "peak_force", "continuous_force", "max_speed", "efficiency"),
}
"""The kinds of parts, and the numbers that each must have."""
MAY_BE_ZERO = ("inertia", "mass")
MOST_PARTS = 2000
"""The most parts of a catalogue: all pairs of motors and gearboxes are tried."""


@dataclass(frozen=True)
class Part:
    """A motor, a gearbox or a screw, in SI units.

    The torques of a motor act at its shaft, the torques of a gearbox (forces of a screw) at its output; the speed
    of a gearbox or screw is the speed of its input, at which its inertia acts. A motor has its full peak torque up to
    `base_speed`; from there to `max_speed` it falls linearly to zero. `electric` has the data of its winding.
    """

    kind: str
    name: str
    peak: float
    continuous: float
    max_speed: float
    base_speed: float
    inertia: float = 0.0
    ratio: float = 1.0
    efficiency: float = 1.0
    mass: float | None = None
    line: int = 0
    electric: Motor | None = None


@dataclass(frozen=True)
class Catalogue:
    """The parts of a catalogue, with its file and the source of its figures."""

    parts: tuple[Part, ...]
    file: str = ""
    source: str = ""

    def of(self, *kinds: str) -> tuple[Part, ...]:
        """Return the parts of some kinds."""
        return tuple(part for part in self.parts if part.kind in kinds)


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a catalogue from a CSV file, or raise a ModelError with file, line, column and remedy."""
    return read_catalogue_text(file_text(path), file=str(path))


def read_catalogue_text(text: str, *, file: str = "<text>") -> Catalogue:
    """Read a catalogue from a text; `file` is its name in messages."""
    header: dict[str, float] = {}
    parts: list[Part] = []
    source = ""
    for line, content in enumerate(text.splitlines(), 1):
        stripped = content.strip()
        if stripped.startswith("#"):
            key, colon, value = stripped[1:].partition(":")
            source = value.strip() if colon and key.strip() == "source" else source
        elif stripped:
            cells = csv_cells(content, file, line)
            if not header:
                header = _header(cells, file, line)
            else:
                parts.append(_part(header, cells, file, line))
                _require_new(parts, file)
    if not header:
        raise ModelError(
            "there is no header", remedy=f"begin with a line such as kind,name,{', '.join(_titles('motor'))}", file=file
        )
    if not any(part.kind == "motor" for part in parts):
        raise ModelError("there is no motor", remedy="add a line whose kind is motor", file=file)
    return Catalogue(tuple(parts), file, source)


def _header(cells: list[str], file: str, line: int) -> dict[str, float]:
    """Return the columns in order, with the factors of their units."""
    out: dict[str, float] = {}
    for cell in cells:
        found = re.fullmatch(r"([^\[\]]*)(?:\[([^\[\]]*)\])?", cell)
        name, unit = (found[1].strip(), found[2]) if found else (cell, None)
        if name not in COLUMNS and name not in TEXTS:
            raise unknown_name("column", name[:MAX_NAME], [*TEXTS, *COLUMNS], file=file, line=line)
        if name in out:
            raise ModelError(f"two columns have the name {name!r}", remedy="keep one of them", file=file, line=line)
        units = COLUMNS.get(name)
        if units is None:
            out[name] = 1.0
            continue
        unit = "1" if unit is None and "1" in units else (unit or "").strip()
        if unit not in units:
            given = f"has the unit {quote(unit)}" if unit else "has no unit"
            remedy = f"write {name} [{next(iter(units))}]; known units: {', '.join(units)}"
            raise ModelError(f"column {name!r} {given}", remedy=remedy, file=file, line=line)
        out[name] = units[unit]
    missing = [name for name in TEXTS if name not in out]
    if missing:
        raise ModelError(
            f"{_missing('column', missing)} missing",
            remedy="every line needs a kind (motor, gearbox or screw) and a name",
            file=file,
            line=line,
        )
    return out


def _part(header: dict[str, float], cells: list[str], file: str, line: int) -> Part:
    filled = filled_cells(header, cells, file, line)
    kind, name = filled.pop("kind", ""), filled.pop("name", "")
    if kind not in REQUIRED:
        raise unknown_name("kind of part", kind, REQUIRED, file=file, line=line)
    if not 0 < len(name) <= MAX_NAME:
        raise ModelError(
            f"the {kind} has no name" if not name else f"the name {quote(name)} is too long",
            remedy=f"give a name of 1 to {MAX_NAME} characters",
            file=file,
            line=line,
        )
    where = f"{kind} {quote(name)}"
    missing = [key for key in REQUIRED[kind] if key not in filled]
    if missing:
        absent = [key for key in missing if key not in header]
        what = _missing("column", [_title(key) for key in absent]) if absent else _missing("value", missing)
        raise ModelError(
            f"{what} missing", where=where, remedy=f"a {kind} needs {', '.join(_titles(kind))}", file=file, line=line
        )
    numbers = {
        key: header[key] * strict_float(cell, where=f"{where}, {key}", file=file, line=line)
        for key, cell in filled.items()
    }
    for key, value in numbers.items():
        _require_size(key, value, where, file, line)
    return _made(kind, name, numbers, where, file, line)


def _require_size(key: str, value: float, where: str, file: str, line: int) -> None:
    if value < 0.0 or (value == 0.0 and key not in MAY_BE_ZERO):
        least = "0 or more" if key in MAY_BE_ZERO else "more than zero"
        raise ModelError(f"{key} is {value:g}", where=where, remedy=f"give {least}", file=file, line=line)
    if key == "efficiency" and value > 1.0:
        raise ModelError(
            f"efficiency is {value:g}",
            where=where,
            remedy="give at most 1, or [%] in the header for percent",
            file=file,
            line=line,
        )


def _made(kind: str, name: str, numbers: dict[str, float], where: str, file: str, line: int) -> Part:
    linear = kind == "screw"
    peak, continuous = (numbers[f"{sort}_{'force' if linear else 'torque'}"] for sort in ("peak", "continuous"))
    top = numbers["max_speed"]
    base = numbers.get("base_speed", top)
    for lower, low, upper, high in (
        ("continuous value", continuous, "peak", peak),
        ("base_speed", base, "max_speed", top),
    ):
        if low > high:
            raise ModelError(
                f"the {lower} is larger than the {upper} ({low:g} > {high:g} in SI units)",
                where=where,
                remedy="check the numbers and their units",
                file=file,
                line=line,
            )
    return Part(
        kind, name, peak, continuous, top, base, numbers.get("inertia", 0.0),
        2.0 * math.pi / numbers["lead"] if linear else numbers.get("ratio", 1.0),
        numbers.get("efficiency", 1.0), numbers.get("mass"), line, _electric(kind, name, numbers, where, file, line),
    )  # fmt: skip


def _electric(kind: str, name: str, numbers: dict[str, float], where: str, file: str, line: int) -> Motor | None:
    """Return the data of a motor's winding; None without any."""
    given = [key for key in THERMAL if key in numbers]
    if not given:
        return None
    missing = [key for key in THERMAL if key not in numbers]
    if missing or kind != "motor":
        raise ModelError(
            f"{_missing('value', missing)} missing" if missing else f"a {kind} has no winding",
            where=where,
            remedy=f"a motor whose temperature is to be checked needs {', '.join(map(_title, THERMAL))}",
            file=file,
            line=line,
        )
    k, R, winding, housing, fast, slow, most = (numbers[key] for key in THERMAL)
    try:
        return Motor(
            name, "", k, R, thermal_resistances=(winding, housing), thermal_times=(fast, slow), max_temperature=most
        )
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy, file=file, line=line) from None


def _require_new(parts: list[Part], file: str) -> None:
    new = parts[-1]
    for old in parts[:-1]:
        if (old.kind, old.name) == (new.kind, new.name):
            raise ModelError(
                f"two parts have the name {quote(new.name)}",
                where=new.kind,
                remedy=f"rename one of them; the first is on line {old.line}",
                file=file,
                line=new.line,
            )
    if len(parts) > MOST_PARTS:
        raise ModelError(f"there are more than {MOST_PARTS} parts", remedy="split the catalogue", file=file)


def _missing(sort: str, names: list[str]) -> str:
    plural = len(names) > 1
    return f"the {sort}{'s' * plural} {', '.join(names)} {'are' if plural else 'is'}"


def _title(key: str) -> str:
    return f"{key} [{next(iter(COLUMNS[key]))}]"


def _titles(kind: str) -> list[str]:
    return [_title(key) for key in REQUIRED[kind]]
