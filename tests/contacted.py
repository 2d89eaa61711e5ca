"""Random contacts on mechanisms, and the numbers of their Programs by interpretation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from interpreted import STEP, compute
from kinetree.compiler.ir.operations import apply
from kinetree.contact_geometry import SHAPES
from kinetree.model import GROUND, Contact, Mechanism, Placement, Surface
from kinetree.system import System
from strategies import placement, rotation

HILLS = ((0.1, 0.23, -0.07, 0.04), (0.05, -0.13, 0.21, 0.17), (-0.08, 0.06, 0.11, -0.02))
"""Heights [m] of a small field."""
FEW = ("point", "sphere", "capsule", "disc")
"""Shapes with few candidates, whose Programs are short."""
STAIRS = Surface("steps", placement=Placement((0.1, 0.2, -0.3)), edges=(-0.31, 0.27), heights=(0.12, 0.31, 0.07))


def random_contact(name: str, mechanism: Mechanism, rng: np.random.Generator, shape: str = "") -> Contact:
    """Return a contact of a body with a plane of the ground or of another body."""
    bodies = [b.name for b in mechanism.bodies]
    body = bodies[rng.integers(len(bodies))]
    shape = shape or FEW[rng.integers(len(FEW))]
    size = tuple(rng.uniform(0.1, 0.4, size=len(SHAPES[shape].sizes)))
    others = [GROUND, *(b for b in bodies if b != body)]
    on = others[rng.integers(len(others))]
    return Contact(
        name, body, shape, size, placement(rng), Surface("plane", on, placement(rng)), friction=rng.uniform(0.1, 1.2)
    )


def near(system: System, q: np.ndarray, rng: np.random.Generator, name: str, **laws: Any) -> Contact:
    """Return a contact of a ball on a random body with a plane of the ground some millimeters away from it."""
    k = int(rng.integers(len(system.bodies)))
    at, radius, R = rng.normal(scale=0.2, size=3), 0.07, np.array(rotation(rng))
    T = system.poses(q)[k]
    center = T[:3, :3] @ at + T[:3, 3]
    origin = center - R[:, 2] * (radius + rng.uniform(-2e-3, 6e-3))
    surface = Surface("plane", placement=Placement(tuple(origin), tuple(map(tuple, R))))
    return Contact(name, system.bodies[k].name, "sphere", (radius,), tuple(at), surface, **laws)


def touching(mechanism: Mechanism, *contacts: Contact) -> Mechanism:
    """Return the mechanism with contacts."""
    return replace(mechanism, contacts=contacts)


def outputs(program, *inputs) -> dict[str, np.ndarray]:
    """Return the outputs of a Program by name, without native code."""
    found = program.replay(inputs, apply)
    return {a.name: np.array(x).reshape(a.shape) for a, x in zip(program.outputs, found, strict=True)}


def rates(program, mechanism: Mechanism, q, qd) -> dict[str, np.ndarray]:
    """Return the rates of the outputs of a Program (q, qd) along a motion with qdd = 0, by a complex step."""
    rate = compute(mechanism, "coordinate_rate", q, qd)
    moved = outputs(program, np.asarray(q, dtype=complex) + 1j * STEP * rate, np.asarray(qd, dtype=complex))
    return {name: np.imag(x) / STEP for name, x in moved.items()}
