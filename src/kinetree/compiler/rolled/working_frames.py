"""Working frames of many bodies at once, where joints of one axis follow each other as in Denavit and Hartenberg's.

As in frames.py, but by arrays over all bodies. A body whose joint has one axis turns its x axis along the common normal
to the axis of its main child, and has its origin at the foot of the normal from its parent's axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..lower.working_frames import ALONG_AXIS, FAR

EPS = float(np.finfo(float).eps)
CROSSING = 1e-3
"""Axes that enclose less than this (as a sine), but are not parallel, would cost digits."""


@dataclass(frozen=True)
class Stands:
    """Bodies by arrays: kinds, parents (-1: the ground), and the joints' placements and canonical axes."""

    kinds: list[str]
    parents: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray
    axes: np.ndarray


def lean_frames(s: Stands) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return axes [n, 3, 3] and origins [n, 3] of the working frames, and which bodies stand lean in their parents."""
    axes, origins = s.axes.copy(), np.zeros((len(s.kinds), 3))
    lean = np.zeros(len(s.kinds), dtype=bool)
    i = _followers(s)
    if not len(i):
        return axes, origins, lean
    p = s.parents[i]
    z, R, t = s.axes[:, :, 2], s.rotations[i], s.translations[i]
    d = np.einsum("nij,nj->ni", R, z[i])  # the axis in the parent's frame
    normal = np.cross(z[p], d)
    sine, cosine = np.linalg.norm(normal, axis=1), _dot(z[p], d)
    crossing = sine > CROSSING
    with np.errstate(all="ignore"):
        foot = np.where(crossing, _dot(cosine[:, None] * z[p] - d, t) / sine**2, 0.0)
    far = np.abs(foot) > FAR * np.linalg.norm(t, axis=1)
    foot[far] = 0.0
    origins[i] = foot[:, None] * z[i]
    flat = t - _dot(t, z[p])[:, None] * z[p]
    flat_size = np.linalg.norm(flat, axis=1)
    along = flat_size > 1e-9 * np.linalg.norm(t, axis=1)
    usable = np.where(crossing, ~far, along)
    x = np.where(crossing[:, None], normal, flat)[usable]
    axes[p[usable]] = _facing(x, z[p[usable]], d[usable], crossing[usable])
    lean[i] = _stands_lean(axes, origins, s, i)
    return axes, origins, lean


def _followers(s: Stands) -> np.ndarray:
    """Return the bodies on joints of one axis that are the main child of a body on such a joint."""
    single = np.array([kind in ALONG_AXIS for kind in s.kinds], dtype=bool)
    parents, weight = s.parents.tolist(), [1] * len(s.kinds)
    for k in range(len(parents) - 1, -1, -1):
        if parents[k] >= 0:
            weight[parents[k]] += weight[k]
    main: dict[int, int] = {}
    for k, parent in enumerate(parents):
        if parent >= 0 and single[k] and single[parent]:
            best = main.setdefault(parent, k)
            if weight[k] > weight[best]:
                main[parent] = k
    return np.array(sorted(main.values()), dtype=np.int64)


def _facing(x: np.ndarray, z: np.ndarray, d: np.ndarray, crossing: np.ndarray) -> np.ndarray:
    """Return axes with z, and x along a normal, which is made exact across both z and, where these cross, d."""
    x = x / np.linalg.norm(x, axis=1)[:, None]
    for _ in range(2):
        x = x - _dot(x, z)[:, None] * z
        across = d - _dot(d, z)[:, None] * z
        share = np.where(crossing, _dot(x, d) / np.maximum(_dot(across, across), CROSSING**2 / 4), 0.0)
        x = x - share[:, None] * across
        x = x / np.linalg.norm(x, axis=1)[:, None]
    return np.stack([x, np.cross(z, x), z], axis=2)


def _stands_lean(axes: np.ndarray, origins: np.ndarray, s: Stands, i: np.ndarray) -> np.ndarray:
    """Tell which bodies stand in their parents at Rx(alpha) Rz(theta) and (a, 0, b), to rounding."""
    p = s.parents[i]
    E = np.einsum("nji,njk,nkl->nil", axes[p], s.rotations[i], axes[i])
    place = s.translations[i] + np.einsum("nij,nj->ni", s.rotations[i], origins[i]) - origins[p]
    r = np.einsum("nji,nj->ni", axes[p], place)
    ca, sa, ct, st = E[:, 2, 2], -E[:, 1, 2], E[:, 0, 0], -E[:, 0, 1]
    zero = np.zeros_like(ca)
    rows = [[ct, -st, zero], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    turn = np.moveaxis(np.array(rows), 2, 0)
    size = np.abs(s.translations[i]).max(axis=1) + np.abs(origins[i]).max(axis=1) + np.abs(origins[p]).max(axis=1)
    return (np.abs(E - turn).max(axis=(1, 2)) <= 16 * EPS) & (np.abs(r[:, 1]) <= 16 * EPS * size)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ni,ni->n", a, b)
