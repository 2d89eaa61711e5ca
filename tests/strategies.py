"""Random mechanisms and states: hypothesis draws the structure and a seed, NumPy the awkward numbers.

Geometry is "general" (no zeros, no ones, no right angles: zeros mask bugs), "neat" (parallel, crossing and almost
parallel axes, right angles, zero offsets, which the compiler folds), or "mixed", joint by joint.
"""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import hypothesis
import numpy as np
from hypothesis import strategies as st

from kinetree import System
from kinetree.algebra.rotations import about
from kinetree.joints import KINDS, kind
from kinetree.joints.euler import SEQUENCES
from kinetree.model import GROUND, Body, Frame, Joint, Mechanism, Placement, build_mechanism

MOTORS = ("rotor", "circuit")
"""The kinds of joints of motors, which nothing outside of Kinetree has: tests of motors are their own."""
ALL = tuple(k for k in KINDS if k not in MOTORS)
SINGLE = ("revolute", "prismatic", "helical")
"""The kinds with one degree of freedom."""
FLAT = tuple(k for k in ALL if kind(k).NQ == kind(k).NV)
"""The kinds whose velocities are the rates of their coordinates."""
MOVING = tuple(k for k in ALL if kind(k).NV)


SOAK = int(os.environ.get("KINETREE_SOAK", "0"))
"""The factor on the number of examples, drawn anew in every run; 0 means the same examples in every run."""

THOROUGH = bool(os.environ.get("KINETREE_THOROUGH"))
"""Whether all examples are tried, as in every change that lands; otherwise one in EVERY, as at a developer's desk."""

EVERY = 6


def examples(count: int, **options) -> hypothesis.settings:
    """Return settings for a number of examples: the same in every run, or in a soak more of them and always new."""
    return hypothesis.settings(
        max_examples=count * SOAK if SOAK else count if THOROUGH else max(count // EVERY, 1),
        derandomize=not SOAK,
        deadline=None,  # the first example of a mechanism compiles
        database=None,
        print_blob=bool(SOAK),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        **options,
    )


def rotation(rng: np.random.Generator) -> tuple:
    """Return a uniformly distributed rotation matrix, orthonormal to its last digits.

    Formulations agree only to the deviation from orthonormal, which is up to 6 eps after the decomposition.
    """
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    q = q * np.sign(np.linalg.det(q))
    return nested(q - q @ (q.T @ q - np.eye(3)) / 2)  # 1.2 eps


def nested(array) -> tuple:
    """Return an array as nested tuples of floats."""
    return tuple(nested(x) if np.ndim(x) else float(x) for x in np.asarray(array))


def neat_rotation(rng: np.random.Generator) -> tuple:
    """Return no rotation, one by 90 degrees, one about a coordinate axis, or a very small one."""
    k = int(rng.integers(3))
    angle = rng.choice([0.0, math.pi / 2, -math.pi / 2, math.pi, rng.uniform(-3, 3), 10.0 ** rng.uniform(-16, -4)])
    return about(k, float(angle)).matrix()


def some_zeros(v: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a vector with about half of its entries zero."""
    return v * rng.integers(0, 2, v.shape)


def placement(rng: np.random.Generator, *, neat: bool = False) -> Placement:
    """Return a placement."""
    r = rng.normal(size=3) * 0.5
    return Placement(nested(some_zeros(r, rng)), neat_rotation(rng)) if neat else Placement(nested(r), rotation(rng))


def body(name: str, rng: np.random.Generator, *, neat: bool = False) -> Body:
    """Return a body with a physically possible inertia."""
    mass = float(np.exp(rng.normal()))
    second = np.exp(rng.normal(size=3)) * 0.05 * mass  # principal second moments: any positive ones are possible
    if neat:
        com = some_zeros(rng.normal(size=3) * 0.3, rng)
        return Body(name, mass, nested(com), (*nested(second.sum() - second), 0.0, 0.0, 0.0))
    R = np.array(rotation(rng))
    I = R @ np.diag(second.sum() - second) @ R.T
    return Body(name, mass, nested(rng.normal(size=3) * 0.3), nested([*np.diag(I), I[0, 1], I[1, 2], I[2, 0]]))


def joint(
    name: str,
    what: str,
    parent: str,
    child: str,
    rng: np.random.Generator,
    *,
    armature: bool = False,
    neat: bool = False,
) -> Joint:
    """Return a joint of a kind."""
    axis = rng.choice([-1.0, 1.0]) * np.eye(3)[rng.integers(3)] if neat else rng.normal(size=3)
    across = np.cross(axis, rng.normal(size=3)) if rng.random() < 0.5 else None
    return Joint(
        name,
        what,
        parent,
        child,
        placement(rng, neat=neat),
        axis=nested(axis),
        axis2=nested(across) if what == "universal" and across is not None else None,
        pitch=float(rng.normal() * 0.2),
        sequence=str(rng.choice(SEQUENCES)),
        armature=nested(rng.uniform(0.01, 0.5, kind(what).NV)) if armature else (),
        ratio=3.7 if what == "rotor" else None,
    )


def random_mechanism(
    kinds: Sequence[str],
    parents: Sequence[int],
    seed: int,
    *,
    armature: bool = False,
    geometry: str = "general",
    name: str = "random",
) -> Mechanism:
    """Return the mechanism of joint kinds and parents (-1: the ground) with the numbers of a seed.

    Body k is `b<k>` on joint `j<k>`; the frame `tool` is fixed to the last one.
    """
    rng = np.random.default_rng(seed)
    bodies, joints = [], []
    for k, (what, parent) in enumerate(zip(kinds, parents, strict=True)):
        neat = {"general": False, "neat": True, "mixed": bool(rng.random() < 0.5)}[geometry]
        bodies.append(body(f"b{k}", rng, neat=neat))
        above = GROUND if parent < 0 else f"b{parent}"
        driven = armature and bool(rng.random() < 0.5)
        joints.append(joint(f"j{k}", what, above, f"b{k}", rng, armature=driven, neat=neat))
    frames = [Frame("tool", f"b{len(bodies) - 1}" if bodies else GROUND, placement(rng))]
    gravity = nested(rng.normal(size=3) * 5)
    return build_mechanism(name, bodies, joints, frames=frames, gravity=gravity)


@st.composite
def mechanisms(
    draw,
    kinds: Sequence[str] = ALL,
    *,
    least: int = 1,
    most: int = 8,
    root: Sequence[str] = (),
    armature: bool = True,
) -> Mechanism:
    """Draw a random tree of joints of some kinds; with `root`, one body on a joint of these carries all others."""
    chosen = draw(st.lists(st.sampled_from(list(kinds)), min_size=least, max_size=most))
    if root:
        chosen[0] = draw(st.sampled_from(list(root)))
    parents = [-1] + [draw(st.integers(0 if root else -1, k - 1)) for k in range(1, len(chosen))]
    seed = draw(st.integers(0, 2**32 - 1))
    geometry = draw(st.sampled_from(["general", "neat", "mixed"]))
    return random_mechanism(chosen, parents, seed, armature=armature and draw(st.booleans()), geometry=geometry)


@st.composite
def moving_mechanisms(draw, kinds: Sequence[str] = ALL, **options) -> Mechanism:
    """Draw a random tree with at least one degree of freedom."""
    made = draw(mechanisms(kinds, **options))
    hypothesis.assume(made.nv > 0)
    return made


class State:
    """A batch of random states of a mechanism: q, qd, qdd, tau and external wrenches."""

    def __init__(self, mechanism: Mechanism, seed: int = 0, shape: int | tuple[int, ...] = 3) -> None:
        """Draw the numbers of a seed."""
        rng = np.random.default_rng(seed)
        lead = (shape,) if isinstance(shape, int) else shape
        self.q, self.qd = System(mechanism).random_state(rng, lead)
        self.qdd, self.tau = rng.normal(size=(2, *lead, mechanism.nv))
        self.wrenches = rng.normal(size=(*lead, len(mechanism.bodies), 6))


def one_of_each(seed: int = 5) -> Mechanism:
    """Return a branched mechanism with every kind of joint once."""
    parents = [-1, 0, 1, 1, 3, 4, 3, -1, 7, 8, 7]
    order = ("revolute", "fixed", "prismatic", "helical", "cylindrical", "universal", "planar", "free", "spherical")
    return random_mechanism((*order, "euler", "free_euler"), parents, seed, armature=True, name="one of each")
