"""Reader of experiment files (.toml), with the tables:

`[experiment]`, the mechanism; `[start]`, its state; `[parameters]`, values of free parameters; `[run]`, times, method
and the way to keep loops closed; `[[force]]`, forces in addition to the mechanism's own; `[control]` (or several
`[[control]]`, which add up), the torques; `[output]`, the files to write. Every number may be a formula in quotes, such
as "pi/2".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import library
from ..errors import AssemblyError, InputError, ModelError, Where, at, below, unknown_name
from ..formats.fields import (
    constant,
    file_text,
    known_keys,
    name,
    refuse_unknown_tables,
    require,
    sequence,
    text,
    truth,
)
from ..formats.toml import parsed_toml as parsed
from ..formats.toml_lines import Places
from ..loading import load
from ..model.part_fields import MAX_NAME
from ..results.columns import GIVEN, columns, find
from ..results.files import FORMATS
from ..simulation.acting.driven import combine_controls
from ..simulation.acting.point_forces import forces_of
from ..simulation.options import RunOptions, choose
from ..simulation.run_states import OUTPUTS, check_times
from ..system import System
from . import experiment, forces_and_control
from .experiment import Experiment, Outputs, inner, plain

KEYS = {
    "experiment": ("mechanism", "base", "description", "passive", "own_forces"),
    "start": ("q", "qd"),
    "run": ("samples", *(key for key in RunOptions.written() if key != "passive")),
    "output": ("save", "columns", "plot", "replay"),
}
TABLES = ("experiment", "parameters", "start", "run", "force", "control", "output")
MOST_TABLES = 1000
"""Largest number of [[force]] and of [[control]]: each is straight-line code of every step."""
SAMPLES = 1_000_000
"""Largest number of output times by `samples`, to keep the result in memory."""


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment file; errors name its line and a remedy."""
    path = Path(path)
    source = file_text(path)
    with Places(source).errors_in(str(path)):
        return _experiment(parsed(source), path)


def _experiment(data: dict[str, Any], path: Path) -> Experiment:
    refuse_unknown_tables(data, TABLES)
    tables = {key: known_keys(data.get(key, {}), known, at(key)) for key, known in KEYS.items()}
    head = tables["experiment"]
    system = system_of_head(head, path.parent)
    mechanism = system.mechanism
    key = "own_forces" if "own_forces" in head else "passive"  # the former is its old name
    own = truth(head.get(key, True), at("experiment", key))
    forces = [
        forces_and_control.force(table, item_place("force", i, data), mechanism)
        for i, table in enumerate(as_tables(data, "force"))
    ]
    controls = [
        forces_and_control.control(table, item_place("control", i, data), mechanism, path.parent)
        for i, table in enumerate(as_tables(data, "control"))
    ]
    values = _parameters(data.get("parameters", {}), at("parameters"), system)
    q0, qd0 = _start(tables["start"], system, values)
    return Experiment(
        path.stem,
        system,
        q0,
        qd0,
        _times(tables["run"]),
        text(head.get("description", ""), at("experiment", "description")),
        (*(forces_of(mechanism) if own else ()), *forces),
        combine_controls(mechanism, controls),
        values,
        _method(tables["run"]) | _loops(tables["run"], system),
        _outputs(tables["output"], system),
    )


def system_of_head(head: Mapping[str, object], folder: Path, table: str = "experiment") -> System:
    """Return the mechanism that the first table of a file names: one of the library, or a file in its folder."""
    where = at(table, "mechanism")
    model = name(require(head, "mechanism", at(table)), where)
    base = text(head.get("base", "fixed"), at(table, "base"))
    is_file = any(mark in model for mark in "/\\.")
    if not is_file and model not in library.names():
        error = unknown_name("library mechanism", model, library.names(), where=where)
        raise ModelError(
            error.what, where=where, remedy=f"{error.remedy}; or give a file in the folder of the experiment"
        )
    return load(inner(folder, model, where) if is_file else library.path(model), base=base)


def as_tables(data: dict[str, Any], key: str) -> list[Any]:
    """Return the list of tables [[key]]; a single [key] is a list of one."""
    found = data.get(key, [])
    if not isinstance(found, list | Mapping):
        raise ModelError("not a table", where=at(key), remedy=f"write [{key}] or [[{key}]], with its keys below")
    if isinstance(found, list) and len(found) > MOST_TABLES:
        raise ModelError(f"{len(found):,} tables", where=at(key), remedy=f"give no more than {MOST_TABLES:,}")
    return [found] if isinstance(found, Mapping) else found


def item_place(sort: str, i: int, data: dict[str, Any]) -> Where:
    """Return the place of one of the tables of a sort; a single [table] has no number in its path."""
    return Where(f"{sort} {i + 1}", (sort, i) if isinstance(data[sort], list) else (sort,))


def _start(table: Mapping[str, object], system: System, values: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd; an error names the faulty one."""
    given = {key: _state(table, key, system) for key in ("q", "qd")}
    key = "q"
    try:
        q = experiment.position(system, given[key], values)
        key = "qd"
        return q, experiment.speed(system, q, given[key], values)
    except AssemblyError as error:
        raise ModelError(error.what, where=at("start", "q"), remedy=error.remedy) from None
    except InputError as error:
        raise ModelError(str(error), where=at("start", key)) from None


def _state(table: Mapping[str, object], key: str, system: System) -> np.ndarray | dict[str, list[float]] | None:
    """Return q or qd as given: all numbers, the numbers of some joints by name, or None."""
    given, where = table.get(key), at("start", key)
    column = columns(system.mechanism)[key]
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return np.array(_numbers(given, len(column.labels), where, list(column.labels)))
    named = {}
    for part, value in given.items():
        if part not in column.parts:
            raise unknown_name(f"part of {key}", part[:MAX_NAME], column.parts, where=where)
        entries = np.atleast_1d(np.arange(len(column.labels))[column.parts[part]])
        found = _numbers(value, len(entries), where, [column.labels[k] for k in entries])
        named[part] = found if len(entries) > 1 else found[0]
    return named


def _numbers(x: object, count: int, where: str, labels: list[str]) -> list[float]:
    items = sequence(x, where) if isinstance(x, list) or count != 1 else [x]
    if len(items) != count:
        listed = ", ".join(labels[:12]) + (", ..." if len(labels) > 12 else "")
        raise ModelError(f"{len(items)} numbers", where=where, remedy=f"give {count}: {listed}")
    return [constant(item, where) for item in items]


def _times(table: Mapping[str, object]) -> np.ndarray:
    if ("duration" in table) == ("times" in table):
        raise ModelError(
            "a run requires either duration or times", where=at("run"), remedy="give one of them, in seconds"
        )
    if "times" in table:
        if "samples" in table:
            raise ModelError(
                "samples is for runs with a duration, not with times", where=at("run", "samples"), remedy="leave it out"
            )
        where = at("run", "times")
        try:
            return check_times(np.array([constant(x, where) for x in sequence(table["times"], where)]))
        except InputError as error:
            raise ModelError(str(error), where=where) from None
    samples = _count(table, "samples", OUTPUTS)
    if not 2 <= samples <= SAMPLES:
        raise ModelError(f"samples is {samples}", where=at("run", "samples"), remedy=f"give 2 to {SAMPLES}")
    return np.linspace(0.0, _positive(table, "duration"), samples)


def _method(table: Mapping[str, object]) -> dict[str, Any]:
    method: dict[str, Any] = {key: _positive(table, key) for key in ("dt", "rtol", "atol") if key in table}
    if "max_steps" in table:
        method["max_steps"] = _count(table, "max_steps", 0)
    label = text(table.get("method", RunOptions.method), at("run", "method"))
    try:
        chosen = choose(label, method.get("dt"), method.get("rtol", RunOptions.rtol))
    except ModelError as error:
        raise ModelError(error.what, where=at("run", "method"), remedy=error.remedy) from None
    if chosen.adaptive and "dt" in method:
        raise ModelError(
            f"{chosen.name} chooses its own steps", where=at("run", "dt"), remedy="leave dt out, or use rk4"
        )
    if not chosen.adaptive and "dt" not in method:
        raise ModelError(
            f"{chosen.name} takes fixed steps", where=at("run", "method"), remedy="add dt = ... in seconds"
        )
    return method | {"method": label}


def _loops(table: Mapping[str, object], system: System) -> dict[str, object]:
    return (
        {"loops": forces_and_control.loops(table["loops"], at("run", "loops"), system.mechanism)}
        if "loops" in table
        else {}
    )


def _positive(table: Mapping[str, object], key: str) -> float:
    value = constant(table[key], at("run", key))
    if value <= 0.0:
        raise ModelError(f"{key} is {value:g}", where=at("run", key), remedy="give more than zero")
    return value


def _count(table: Mapping[str, object], key: str, default: int) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or (key in table and value < 1):
        raise ModelError(
            f"{key} is not a whole number above zero", where=at("run", key), remedy="give one such as 1000"
        )
    return value


def _parameters(table: Any, where: str, system: System) -> np.ndarray | None:
    free = system.mechanism.free_parameters
    names = [p.name for p in free]
    known_keys(table, table if isinstance(table, Mapping) else (), where)
    for key in table:
        if key not in names:
            raise unknown_name("free parameter", key[:MAX_NAME], names, where=below(where, key))
    return np.array([constant(table.get(p.name, p.value), below(where, p.name)) for p in free]) if free else None


def _outputs(table: Mapping[str, object], system: System) -> Outputs:
    known = columns(system.mechanism, given=GIVEN)
    save = _texts(table, "save")
    for file in save:
        plain(file, at("output", "save"), "the folder of the results")
        if Path(file).suffix.lower() not in FORMATS:
            endings = ", ".join(FORMATS)
            raise ModelError(
                f"{file!a} is not a format of trajectories", where=at("output", "save"), remedy=f"use one of {endings}"
            )
    for column in _texts(table, "columns"):
        if column not in known:
            raise unknown_name("column", column, known, where=at("output", "columns"))
    for column in _texts(table, "plot"):
        try:
            find(known, column)
        except ModelError as error:
            raise ModelError(error.what, where=at("output", "plot"), remedy=error.remedy) from None
    page = text(table["replay"], at("output", "replay")) if "replay" in table else None
    if page is not None and Path(plain(page, at("output", "replay"), "the folder of the results")).suffix != ".html":
        raise ModelError(
            f"{page!a} is not a web page", where=at("output", "replay"), remedy="use a name that ends with .html"
        )
    return Outputs(save, _texts(table, "columns"), _texts(table, "plot"), page)


def _texts(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return the texts of a list, or a single text as a list of one."""
    where, given = at("output", key), table.get(key, [])
    return tuple(name(x, where) for x in ([given] if isinstance(given, str) else sequence(given, where)))
