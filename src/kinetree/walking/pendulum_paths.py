"""Paths of trunk and ankle for a step: the inverted pendulum of constant height, and a cosine arch."""

from __future__ import annotations

import numpy as np

from ..algebra.arrays import Numbers

Path = tuple[Numbers, Numbers, Numbers]
"""Position, velocity and acceleration of one coordinate, each [nt]."""


def pendulum_path(t: Numbers, start: float, end: float, duration: float, *, height: float, gravity: float) -> Path:
    """Return x(t) with x'' = (g / h) x between two positions [m]: a trunk of constant height above a point foot at 0.

    Its weight and its inertia have no moment about the foot: the zero-moment point of this mass is 0.
    """
    w = np.sqrt(gravity / height)
    s = np.sinh(w * duration)
    a, b = start / s, end / s
    x = a * np.sinh(w * (duration - t)) + b * np.sinh(w * t)
    v = w * (b * np.cosh(w * t) - a * np.cosh(w * (duration - t)))
    return x, v, w * w * x


def stride_path(t: Numbers, start: float, end: float, duration: float) -> Path:
    """Return a motion from rest to rest by half a cosine: an ankle that swings forward."""
    w, middle, half = np.pi / duration, 0.5 * (start + end), 0.5 * (end - start)
    return middle - half * np.cos(w * t), half * w * np.sin(w * t), half * w * w * np.cos(w * t)


def lift_path(t: Numbers, height: float, duration: float) -> Path:
    """Return a rise from rest to a height [m] and back to rest by a whole cosine."""
    w, half = 2.0 * np.pi / duration, 0.5 * height
    return half * (1.0 - np.cos(w * t)), half * w * np.sin(w * t), half * w * w * np.cos(w * t)
