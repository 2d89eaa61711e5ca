"""Closed loops: a mechanism cut at another joint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import loops
from ...errors import InputError, brief
from ...formats.recutting import recut
from ...model.mechanism import Mechanism, resolved
from ...model.parts import GROUND
from ...system import System
from ...view.page_lengths import free_lengths, with_lengths
from ..opened import open_system
from ..tabs import Studio


def cut(studio: Studio, loop: Any, joint: Any, q: Any = None, parameters: Any = None) -> dict[str, Any]:
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


def _numbers(given: Any, count: int, what: str) -> list[float]:
    """Return numbers of a page."""
    numbers: list[Any] = list(given) if isinstance(given, list | tuple) else []
    good = isinstance(given, list | tuple) and all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)
    if not good or len(numbers) != count:
        raise InputError(f"{what} are {brief(given)}; expected {count} numbers")
    return [float(x) for x in numbers]


def _guess(system: System, q: np.ndarray, loop: Any) -> dict[str, Any]:
    """Return a position by the names of joints, with that of the cut joint as it stands where its kind is simple."""
    m = system.mechanism
    out = {j.name: q[s].tolist() for j, s in zip(m.joints, m.q_slices, strict=True) if s.stop > s.start}
    for x in resolved(m.loops, m.values()):
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
    K = np.array([
        [a - e - i, b + d, c + g, h - f], [b + d, e - a - i, f + h, c - g],
        [c + g, f + h, i - a - e, d - b], [h - f, c - g, d - b, a + e + i],
    ])  # fmt: skip
    return np.linalg.eigh(K)[1][:, -1].tolist()
