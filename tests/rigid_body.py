"""Textbook formulas of one rigid body in plain NumPy."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import numpy as np

from kinetree.model import Body


def cross_matrix(v) -> np.ndarray:
    """Return the matrix of v x."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def tensor(body: Body) -> np.ndarray:
    """Return the inertia tensor about the center of mass."""
    xx, yy, zz, xy, yz, zx = body.inertia
    return np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]], dtype=float)


def mass_matrix(body: Body) -> np.ndarray:
    """Return the 6x6 mass matrix about the body's origin."""
    S, m = cross_matrix(body.com), float(body.mass)
    return np.block([[tensor(body) - m * S @ S, m * S], [-m * S, m * np.eye(3)]])


def transform(placement) -> np.ndarray:
    """Return the 4x4 matrix of a placement."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float)
    return out


def moved(body: Body, T: np.ndarray) -> Body:
    """Return the same body in a frame in which its own frame has the pose T."""
    I = T[:3, :3] @ tensor(body) @ T[:3, :3].T
    com = T[:3, :3] @ np.array(body.com) + T[:3, 3]
    return Body(body.name, body.mass, tuple(map(float, com)), moments(I))


def welded(name: str, *bodies: Body) -> Body:
    """Return several bodies, with data in a common frame, as one."""
    mass = sum(b.mass for b in bodies)
    com = sum(b.mass * np.array(b.com) for b in bodies) / mass
    I = np.zeros((3, 3))
    for b in bodies:
        S = cross_matrix(np.array(b.com) - com)
        I += tensor(b) - b.mass * S @ S
    return Body(name, float(mass), tuple(map(float, com)), moments(I))


def moments(I: np.ndarray) -> tuple[float, ...]:
    """Return (xx, yy, zz, xy, yz, zx)."""
    return tuple(float(x) for x in (*np.diag(I), I[0, 1], I[1, 2], I[2, 0]))
