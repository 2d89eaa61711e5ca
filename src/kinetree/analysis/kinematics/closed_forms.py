"""Closed forms of inverse kinematics: arms with a spherical wrist, three joints to a point, planar arms.

They return candidates, at zero displacement plus the joints' positions, for one target. Each is refined and checked by
forward kinematics afterwards.
"""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers
from .position_solutions import PARALLEL, position_solutions, three_rotations, two_rotations
from .screw_chains import Screw, ScrewChain, turned

POSITION, POSE = (False, False, False, True, True, True), (True,) * 6


def closed_form(chain: ScrewChain, T: Numbers, used: tuple[bool, ...]) -> tuple[str, list[Numbers]] | None:
    """Return the name of the closed form and its candidates [joints of the chain]; None if there is no closed form."""
    s, count = chain.screws, len(chain.screws)
    X = T @ np.linalg.inv(chain.home)
    if used == POSE and count == 6 and _two_first(s) and all(x.rotates for x in s[3:]):
        wrist = _common_point(s[3:], chain.length)
        return None if wrist is None else _named("spherical wrist", _wrist_solutions(chain, X, wrist))
    if used == POSE and count == 3 and _all_parallel(s):
        return _named("planar arm", _planar_solutions(chain, X))
    if used == POSITION and count == 3 and _two_first(s) and not _all_parallel(s):
        at = chain.home[:3, 3]
        return _named("three joints to a point", position_solutions(s, at, T[:3, 3], chain.length))
    if used == POSITION and count == 2 and _all_parallel(s):
        return _named("planar arm", two_rotations(s, chain.home[:3, 3], T[:3, 3]))
    return None


def _named(name: str, found: list[Numbers] | None) -> tuple[str, list[Numbers]] | None:
    return None if found is None else (name, found)


def _two_first(screws: tuple[Screw, ...]) -> bool:
    return screws[0].rotates and screws[1].rotates


def _all_parallel(screws: tuple[Screw, ...]) -> bool:
    e = screws[0].axis
    return all(x.rotates and np.linalg.norm(np.cross(e, x.axis)) < PARALLEL for x in screws)


def _common_point(screws: tuple[Screw, ...], length: float) -> Numbers | None:
    """Return the point in which axes intersect; None if they do not, or if it is not unique."""
    across = [np.eye(3) - np.outer(x.axis, x.axis) for x in screws]
    S, b = sum(across), sum(P @ x.point for P, x in zip(across, screws, strict=True))
    if np.linalg.svd(S)[1][-1] < PARALLEL:
        return None
    point = np.linalg.solve(S, b)
    off = max(np.linalg.norm(P @ (point - x.point)) for P, x in zip(across, screws, strict=True))
    return point if off < PARALLEL * length else None


def _wrist_solutions(chain: ScrewChain, X: Numbers, wrist: Numbers) -> list[Numbers] | None:
    """Return the positions of six joints: the first three bring the wrist to its place, the others rotate it."""
    arms = position_solutions(chain.screws[:3], wrist, X[:3, :3] @ wrist + X[:3, 3], chain.length)
    if arms is None:
        return None
    axes = np.array([x.axis for x in chain.screws[3:]])
    out = []
    for arm in arms:
        R = X[:3, :3]
        for screw, q in zip(chain.screws[:3], arm, strict=True):
            if screw.rotates:
                R = _rotation(screw.axis, -q) @ R
        out += [np.concatenate([arm, hand]) for hand in three_rotations(axes, R)]
    return out


def _planar_solutions(chain: ScrewChain, X: Numbers) -> list[Numbers]:
    """Return the positions of three parallel rotations: two bring the third axis to its place, which then rotates."""
    s = chain.screws
    point = s[2].point
    out = []
    for pair in two_rotations(s[:2], point, X[:3, :3] @ point + X[:3, 3]):
        R = X[:3, :3]
        e = s[0].axis
        total = float(np.arctan2(e @ [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]], np.trace(R) - 1.0))
        signs = [float(np.sign(e @ x.axis)) for x in s]
        out.append(np.array([*pair, signs[2] * (total - signs[0] * pair[0] - signs[1] * pair[1])]))
    return out


def _rotation(axis: Numbers, angle: float) -> Numbers:
    return np.stack([turned(axis, angle, column) for column in np.eye(3)], axis=-1)
