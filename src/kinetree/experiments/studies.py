"""Reader of study files (.toml), with the tables:

`[study]`, the mechanism, samples and seed; `[over]`, a sampling for each varied quantity; `[sensitivity]`, the method
of sensitivity indices, if any; `[parameters]`, values of the other free parameters; one of `[motion]`, `[cycle]` and
`[simulate]`, the way in which runs are evaluated; `[measures]`. Every number may be a formula in quotes: "pi/2".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._support.options import table_keys
from ..errors import InputError, ModelError, at, below
from ..formats.fields import constant, file_text, known_keys, name, refuse_unknown_tables, require, text, truth
from ..formats.toml import parsed_toml
from ..formats.toml_lines import Places
from ..studies import samplings
from ..studies.plan import CYCLE, Plan, StudyOptions, plan_of
from ..studies.samplings import sensitivity
from .experiment import inner
from .forces_and_control import plain_numbers, reference
from .reading import read_experiment, system_of_head

KEYS = {
    "study": ("mechanism", "base", "description", *table_keys(StudyOptions, "study")),
    "sensitivity": ("method", "second_order", "levels"),
    "motion": (*table_keys(StudyOptions, "motion"), "joint"),
    "cycle": (*CYCLE, *table_keys(StudyOptions, "cycle")),
    "simulate": ("experiment",),
}
TABLES = ("study", "over", "sensitivity", "parameters", "motion", "cycle", "simulate", "measures")
SAMPLINGS = {
    "grid": (samplings.grid, 3),
    "latin": (samplings.latin, 2),
    "sobol": (samplings.sobol, 2),
    "uniform": (samplings.uniform, 2),
    "normal": (samplings.normal, 2),
}
"""The samplings by key, with the number of their arguments."""


@dataclass(frozen=True)
class StudyFile:
    """A study read from a file: its name, its description and its plan."""

    name: str
    description: str
    plan: Plan


def is_study(path: str | Path) -> bool:
    """Return whether a .toml file has tables of a study, and none of an experiment."""
    source = file_text(Path(path))
    with Places(source).errors_in(str(path)):
        tables = parsed_toml(source)
    return "experiment" not in tables and any(key in tables for key in TABLES if key != "parameters")


def read_study_file(path: str | Path) -> StudyFile:
    """Read a study file; errors name its line and a remedy."""
    path = Path(path)
    source = file_text(path)
    with Places(source).errors_in(str(path)):
        try:
            return _study(parsed_toml(source), path)
        except InputError as error:
            raise ModelError(error.command_line, file=path) from None


def _study(data: dict[str, Any], path: Path) -> StudyFile:
    refuse_unknown_tables(data, TABLES)
    head = known_keys(data.get("study", {}), KEYS["study"], at("study"))
    given: dict[str, Any] = {"parameters": _parameters(data.get("parameters"))}
    for key in ("motion", "cycle", "simulate"):
        if key in data:
            table = known_keys(data[key], KEYS[key], at(key))
            given |= {"motion": _read_motion, "cycle": _read_cycle, "simulate": _read_simulation}[key](
                table, path.parent
            )
    system = given.pop("system", None) or system_of_head(head, path.parent, "study")
    given |= _options(head, "study")
    over = {key: _sampling(table, below(at("over"), key)) for key, table in _table(data, "over").items()}
    if "sensitivity" in data:
        over = _plan_scheme(known_keys(data["sensitivity"], KEYS["sensitivity"], at("sensitivity")), over, given)
    measures = {key: text(x, below(at("measures"), key)) for key, x in _table(data, "measures").items()}
    description = text(head.get("description", ""), at("study", "description"))
    return StudyFile(path.stem, description, plan_of(system, over, measures, StudyOptions(**given)))


def _table(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = data.get(key)
    if not isinstance(found, Mapping) or not found:
        raise ModelError("is missing or empty", where=at(key), remedy=f"write [{key}], with its names below")
    return found


def _sampling(table: object, where: str) -> Any:
    """Return the sampling of a table: { grid = [lo, hi, n] }, { values = [...] } or { latin = [lo, hi] }."""
    keys = [*SAMPLINGS, "values", "column", "log"]
    found = known_keys(table, keys, where)
    kinds = [key for key in found if key != "log"]
    if len(kinds) != 1:
        raise ModelError(
            f"{len(kinds)} samplings",
            where=where,
            remedy=f"give one of {', '.join(keys[:-1])}, such as grid = [0, 1, 11]",
        )
    kind = kinds[0]
    numbers = [constant(x, below(where, kind)) for x in _as_list(found[kind])]
    try:
        if kind == "values":
            return samplings.grid(numbers)
        if kind == "column":
            return samplings.table({where: numbers})[where]
        make, count = SAMPLINGS[kind]
        if len(numbers) != count:
            raise ModelError(f"{len(numbers)} numbers", where=below(where, kind), remedy=f"give {count}")
        more = {"log": truth(found["log"], below(where, "log"))} if "log" in found else {}
        return make(*numbers, **more) if kind == "grid" else make(*numbers)
    except InputError as error:
        raise ModelError(str(error), where=below(where, kind)) from None


def _plan_scheme(table: Mapping[str, object], over: Mapping[str, object], given: dict[str, Any]) -> dict[str, Any]:
    """Return the samplings of a scheme for sensitivity indices; it takes the samples and the seed of the study."""
    where = at("sensitivity")
    options: dict[str, Any] = {"method": text(require(table, "method", where), at("sensitivity", "method"))}
    if "second_order" in table:
        options["second_order"] = truth(table["second_order"], at("sensitivity", "second_order"))
    if "levels" in table:
        options["levels"] = _whole(table["levels"], at("sensitivity", "levels"))
    try:
        return sensitivity(over, samples=given.pop("samples", None), seed=given.get("seed", 0), **options)
    except InputError as error:
        raise ModelError(str(error), where=where) from None


def _read_motion(table: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Return motion and times; `joint` has a reference for each driven joint."""
    given = require(table, "joint", at("motion"))
    joints = known_keys(given, given if isinstance(given, Mapping) else (), at("motion", "joint"))
    references = {key: reference(x, below(at("motion", "joint"), key), folder) for key, x in joints.items()}
    return {"motion": references, **_options(table, "motion")}


def _read_cycle(table: Mapping[str, object], folder: Path) -> dict[str, object]:
    drive = name(require(table, "drive", at("cycle")), at("cycle", "drive"))
    numbers = {key: constant(table[key], at("cycle", key)) for key in CYCLE[1:] if key in table}
    return {"cycle": {"drive": drive, **numbers}, **_options(table, "cycle")}


def _read_simulation(table: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Return the system and the options of an experiment file in the same folder."""
    where = at("simulate", "experiment")
    made = read_experiment(inner(folder, text(require(table, "experiment", at("simulate")), where), where))
    options = {
        "q0": made.q0,
        "qd0": made.qd0,
        "times": made.times,
        "forces": made.forces,
        "passive": False,
        **made.method,
    }
    if made.control is not None:
        options["control"] = made.control
    return {"system": made.system, "simulate": options}


def _parameters(table: Any) -> dict[str, float] | None:
    if table is None:
        return None
    known_keys(table, table if isinstance(table, Mapping) else (), at("parameters"))
    return {key: constant(x, at("parameters", key)) for key, x in table.items()}


def _whole(x: object, where: str) -> int:
    if isinstance(x, bool) or not isinstance(x, int):
        raise ModelError(f"{x!r} where a whole number belongs", where=where, remedy="give a whole number such as 1000")
    return x


def _as_list(x: object) -> list[Any]:
    return x if isinstance(x, list) else [x]


READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "duration": constant,
    "times": plain_numbers,
    "steps": _whole,
    "actuated": lambda x, where: [name(part, where) for part in _as_list(x)],
    "passive": truth,
    "samples": _whole,
    "seed": _whole,
    "keep": lambda x, where: tuple(text(part, where) for part in _as_list(x)),
}
"""The readers of the options of `study` that are keys of tables."""


def _options(table: Mapping[str, object], sort: str) -> dict[str, object]:
    """Return the options of `study` that a table has."""
    return {key: READERS[key](table[key], at(sort, key)) for key in table_keys(StudyOptions, sort) if key in table}
