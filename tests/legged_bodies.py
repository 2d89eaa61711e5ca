"""Floating trunks on legs with point feet, at rest or in motion on a plane through their feet."""

from __future__ import annotations

from typing import Any

import numpy as np

import kinetree as kt


def trunk_on_legs(legs: int = 3) -> kt.System:
    """Return a trunk on a free joint, with legs of two joints each."""
    bodies = [kt.Body("trunk", 6.1, (0.02, -0.01, 0.03), (0.11, 0.13, 0.17, 0.01, 0.02, -0.01))]
    joints = [kt.Joint("base", "free", kt.GROUND, "trunk")]
    for k in range(legs):
        angle = 2 * np.pi * (k + 0.13 * k * k) / legs
        at = kt.Placement((0.31 * np.cos(angle), 0.27 * np.sin(angle), -0.02 * k))
        bodies += [
            kt.Body(f"thigh{k}", 0.8, (0.01, 0.02, -0.11), (0.004, 0.005, 0.001, 0.0, 0.0, 0.0)),
            kt.Body(f"shank{k}", 0.5, (0.0, 0.01, -0.1), (0.003, 0.003, 0.001, 0.0, 0.0, 0.0)),
        ]
        joints += [
            kt.Joint(f"hip{k}", "universal", "trunk", f"thigh{k}", at, axis="x", axis2="y"),
            kt.Joint(f"knee{k}", "revolute", f"thigh{k}", f"shank{k}", kt.Placement((0.0, 0.0, -0.25)), axis="y"),
        ]
    return kt.System(kt.build_mechanism("trunk_on_legs", bodies, joints))


def feet(legs: int, surface: kt.Surface, friction) -> list[kt.Contact]:
    """Return point contacts at the ends of the shanks."""
    mu = np.broadcast_to(friction, (legs,))
    return [
        kt.Contact(f"foot{k}", f"shank{k}", placement=(0.0, 0.0, -0.24), surface=surface, friction=float(mu[k]))
        for k in range(legs)
    ]


def standing(
    rng: np.random.Generator, legs: int = 3, friction: Any = 0.8
) -> tuple[kt.System, np.ndarray, list[kt.Contact]]:
    """Return a trunk with random joint angles, and contacts of its first three feet with the plane through them.

    Further feet stand on the same plane: their knees are bent until they touch it.
    """
    system = trunk_on_legs(legs)
    q = np.concatenate([system.neutral()[:7], rng.uniform(-0.4, 0.4, system.nq - 7)])
    q[:3] = rng.normal(size=3)
    foot = np.array([_foot(system, q, k) for k in range(legs)])
    normal = np.cross(foot[1] - foot[0], foot[2] - foot[0])
    normal *= np.sign(normal[2]) / np.linalg.norm(normal)
    for k in range(3, legs):
        low, high = -1.2, 1.2  # the knee of a leg that reaches through the plane, or not
        for _ in range(60):
            q[6 + 3 * k + 3] = 0.5 * (low + high)
            above = normal @ (_foot(system, q, k) - foot[0])
            low, high = (q[9 + 3 * k], high) if above < 0 else (low, q[9 + 3 * k])
    x = np.cross(normal, [0.31, 0.7, 0.11])
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(normal, x), normal])
    plane = kt.Surface(placement=kt.Placement(tuple(foot[0]), tuple(map(tuple, R))))
    return system, q, feet(legs, plane, friction)


def _foot(system: kt.System, q: np.ndarray, k: int) -> np.ndarray:
    return (system.pose(q, f"shank{k}") @ [0.0, 0.0, -0.24, 1.0])[:3]
