"""Mechanisms of tables that the reader changes in the page: another structure, and a diagnosis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import loops
from ....errors import InputError, brief, unknown_name
from ....formats.pairs import recut
from ....loading import from_dh, load
from ....model.mechanism import Mechanism, resolve_parts
from ....model.parts import GROUND
from ....page.lengths import free_lengths, with_lengths
from ....system import System
from ..tabs import Studio, open_system, write_folder

# --- The mechanism of a tab with the numbers that its reader changed in the page ---

LENGTHS = "lengths"
"""The key of the System whose lengths of loops are parameters, as in the page."""


def system_with_edits(studio: Studio, parameters: object = None, model: object = None) -> tuple[System, dict[str, Any]]:
    """Return the System of a tab, and the values of its free parameters as an option of its functions.

    `parameters` are values by name; those that are not free in the mechanism are lengths of loops. `model` is the text
    of a TOML file that takes the place of the mechanism.
    """
    system = studio.tab.shown() if model is None else _of_text(studio, model)
    given = {} if parameters is None else parameters
    if not isinstance(given, dict):
        raise InputError(f"the parameters are {brief(given)}; expected values by name")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise InputError(f"the parameter {brief(name)} is {brief(value)}; expected a finite number")
    own = {p.name: p.value for p in system.mechanism.free_parameters}
    if not given.keys() <= own.keys():
        lengths = {p.name: p.value for p in free_lengths(system.mechanism)[0].free_parameters}
        if unknown := sorted(given.keys() - lengths.keys()):
            raise unknown_name("parameter", unknown[0], lengths)
        if any(given.get(name, value) != value for name, value in lengths.items() if name not in own):
            system, own = _kept(studio, LENGTHS, lambda: System(free_lengths(system.mechanism)[0])), lengths
    values = [float(given.get(name, value)) for name, value in own.items()]
    return system, {"parameters": np.array(values)} if own else {}


def _of_text(studio: Studio, text: object) -> System:
    if not isinstance(text, str):
        raise InputError(f"the model is {brief(text)}; expected the text of a TOML file")

    def read() -> System:
        with write_folder({"model.toml": text.encode()}) as folder:
            return load(folder / "model.toml", lenient=True)

    return _kept(studio, text, read)


def _kept(studio: Studio, key: str, make: Any) -> System:
    """Return a System that is kept with its compiled code; the tab keeps one."""
    kept = studio.tab.changed
    if key not in kept:
        made = make()
        kept.clear()
        kept[key] = made
    return kept[key]


MOST = 64
"""The most rows of a table: pages of longer mechanisms have no functions."""


def build(
    studio: Studio,
    rows: Any,
    convention: Any = "standard",
    gravity: Any = (0.0, 0.0, -9.81),
    name: Any = "robot",
    tool: Any = None,
    frames: Any = (),
    q: object = None,
) -> dict[str, object]:
    """Open the mechanism of a DH table; the arguments are those of `from_dh`, with angles in radians.

    `q` are the coordinates at first, by default zeros.
    """
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST:
        raise InputError(f"the table is {brief(rows)}; expected a list of 1 to {MOST} rows")
    if not isinstance(frames, list | tuple) or len(frames) > MOST:
        raise InputError(f"the frames are {brief(frames)}; expected a list of at most {MOST}")
    system = from_dh(rows, convention=convention, gravity=gravity, name=name, tool=tool, frames=frames)
    return open_system(studio, system, q=_coordinates(system, q))


def doctor(studio: Studio, parameters: object = None, model: object = None) -> dict[str, Any]:
    """Return notes on the mechanism of the tab: what its file had, and what the doctor finds.

    `parameters` and `model` are those of `simulate`.
    """
    system, values = system_with_edits(studio, parameters, model)
    found = system.doctor(**values)
    entries = [{"level": e.sort, "text": e.text} for e in system.report.entries if e.sort != "read"]
    findings = [
        {"level": f.level, "text": " ".join(x for x in (f.title + ".", f.text, f.advice) if x)} for f in found.findings
    ]
    return {"notes": [*entries, *findings]}


def _coordinates(system: System, q: object) -> list[float] | None:
    """Return coordinates for a new mechanism; None if they are not its own."""
    if not isinstance(q, list) or len(q) != system.nq:
        return None
    if not all(isinstance(x, int | float) and abs(x) < 1e9 for x in q):
        raise InputError(f"the coordinates are {brief(q)}; expected {system.nq} finite numbers")
    return [float(x) for x in q]


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
