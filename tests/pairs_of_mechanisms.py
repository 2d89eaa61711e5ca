"""Closed mechanisms written as bodies and pairs, in random frames of the bodies, as a CAD file might have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

import kinetree as kt
from kinetree import joints, loops
from kinetree.formulations.closed_system import End, closed_equations, end
from kinetree.formulations.denoc import denoc
from kinetree.formulations.kinematics import body_states
from kinetree.model import GROUND, Mechanism, Pair, Placement
from kinetree.model.pairs import pair_of
from kinetree.model.parts import compose, inverse, place_body
from strategies import placement

TEXT = """\
[[body]]
name = "rocker"
mass = 0.4
com = [0.05, 0.02, 0.01]
inertia = [0.001, 0.002, 0.002, 0, 0, 0]

[[body]]
name = "crank"
mass = 0.2
com = [0.02, 0.01, 0]
inertia = [0.001, 0.001, 0.001, 0, 0, 0]

[[body]]
name = "rod"
mass = 0.3
com = [0.1, 0, 0]
inertia = [0.0005, 0.002, 0.002, 0, 0, 0]

[[pair]]
name = "motor"
kind = "revolute"
body_a = "crank"
body_b = "ground"
axis = "z"
damping = 0.1
limits = { lower = -1, upper = 2 }

[[pair]]
name = "crank_pin"
kind = "revolute"
body_a = "crank"
body_b = "rod"
placement_a = { translation = [0.1, 0, 0] }

[[pair]]
name = "rocker_ball"
kind = "spherical"
body_a = "rod"
body_b = "rocker"
placement_a = { translation = [0.3, 0, 0] }
placement_b = { translation = [0.25, 0, 0], zxz_deg = [10, 20, 30] }

[[pair]]
name = "pivot"
kind = "revolute"
body_a = "ground"
body_b = "rocker"
placement_a = { translation = [0.3, 0, 0] }

[[force]]
name = "return"
kind = "joint_spring"
body_a = "crank"
body_b = "ground"
coefficients = { stiffness_1 = 5, rest_1 = 0.3 }

[guess]
motor = 0.8
pivot = 1.9
rocker_ball = [0, 0, 0, 1]
"""
"""A linkage of four pairs: one to be reversed, with a spring, and one to be cut."""


def drawings(mechanism: Mechanism, seed: int) -> dict[str, Placement]:
    """Return the placement of each body's frame in a random frame of its drawing."""
    rng = np.random.default_rng(seed)
    return {b.name: placement(rng) for b in mechanism.bodies} | {GROUND: Placement()}


def coordinates(pair: Pair, r: np.ndarray, R: np.ndarray) -> tuple[float, ...]:
    """Return the coordinates of a pair for the position and rotation of frame b in frame a."""
    axes = np.array(joints.kind(pair.kind).frame(pair))
    r, R = axes.T @ r, axes.T @ R @ axes
    about = np.arctan2(R[1, 0], R[0, 0])
    found = {
        "fixed": (),
        "revolute": (about,),
        "prismatic": (r[2],),
        "helical": (r[2] / pair.pitch if pair.pitch else 0.0,),
        "cylindrical": (about, r[2]),
        "universal": (np.arctan2(R[2, 1], R[1, 1]), np.arctan2(R[0, 2], R[0, 0])),
        "planar": (r[0], r[1], about),
        "spherical": tuple(Rotation.from_matrix(R).as_quat()),
        "euler": tuple(Rotation.from_matrix(R).as_euler(pair.sequence.upper())),
    }[pair.kind]
    return tuple(float(x) for x in found)


def as_pairs(mechanism: Mechanism, q: np.ndarray, where: Mapping[str, Placement], without=(), **options) -> kt.System:
    """Return the mechanism made again of pairs, all guessed at q; loops of other kinds than joints stay loops.

    `without` has the names of joints that constrain nothing, such as a free one, and are left out.
    """
    poses = {GROUND: (np.eye(3), np.zeros(3))} | {s.name: (s.R, s.o) for s in body_states(mechanism, q)}
    pairs, rest, guess = [], [], {}
    for joint, own in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.name in without:
            continue
        pairs.append(_moved(replace(pair_of(joint), cut=None), where))
        guess[joint.name] = tuple(map(float, q[own]))
    for loop in mechanism.loops:
        if not loops.KINDS[loop.kind].joint:
            rest.append(_moved(loop, where))
            continue
        ends = loop.body_a, loop.body_b, loop.placement_a, loop.placement_b
        pair = Pair(loop.name, loop.kind, *ends, loop.axis, loop.axis2, loop.pitch, cut=None)
        (Ra, xa), (Rb, xb) = (
            (R @ np.array(p.rotation), o + R @ np.array(p.translation))
            for (R, o), p in zip(map(poses.get, ends[:2]), ends[2:], strict=True)  # type: ignore[misc]
        )
        guess[loop.name] = coordinates(pair, Ra.T @ (xb - xa), Ra.T @ Rb)
        pairs.append(_moved(pair, where))
    return kt.from_pairs(
        mechanism.name, [place_body(where[b.name], b) for b in mechanism.bodies], pairs, loops=rest, guess=guess,
        couplings=mechanism.couplings, gravity=mechanism.gravity, parameters=mechanism.parameters, **options,
    )  # fmt: skip


def _moved(x, where: Mapping[str, Placement]):
    a, b = compose(where[x.body_a], x.placement_a), compose(where[x.body_b], x.placement_b)
    return replace(x, placement_a=a, placement_b=b)


def guessed(mechanism: Mechanism) -> np.ndarray:
    """Return the coordinates of the guess, which must have all joints."""
    given = dict(mechanism.guess)
    return np.array([x for joint in mechanism.joints for x in given[joint.name]])


class Motion:
    """Frames of bodies at a state of a closed mechanism, by explicit matrices: poses, twists and twist rates."""

    def __init__(self, mechanism: Mechanism, q: np.ndarray, frames: Mapping[str, Placement]) -> None:
        """Take the frames by body name."""
        self.mechanism, self.q, self.frames = mechanism, q, frames

    def ends(self, qd: np.ndarray | None = None) -> list[End]:
        """Return the frames in the order of their names."""
        d = denoc(self.mechanism, self.q, qd)
        return [end(d, name, self.frames[name], np.eye(3)) for name in sorted(self.frames)]

    def poses(self) -> np.ndarray:
        """Return positions and rotations of all frames as one array."""
        return np.array([np.column_stack([e.x, e.R]) for e in self.ends()])

    def twists(self, qd: np.ndarray) -> np.ndarray:
        """Return the twists of all frames."""
        return np.concatenate([e.N for e in self.ends()]) @ qd

    def speeds(self, twists: np.ndarray) -> np.ndarray:
        """Return the joint velocities for twists of all frames."""
        return np.linalg.lstsq(np.concatenate([e.N for e in self.ends()]), twists, rcond=1e-10)[0]

    def twist_rates(self, qd: np.ndarray, pushes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the twist rates of all frames under wrenches on them in the ground's axes, without joint torques."""
        names = sorted(self.frames)
        ends = self.ends(qd)
        force = sum((e.N.T @ pushes[n] for e, n in zip(ends, names, strict=True)), np.zeros(self.mechanism.nv))
        qdd = closed_equations(self.mechanism, self.q, qd).acceleration(force)
        return np.concatenate([e.N @ qdd + e.dN @ qd for e in ends])


def both(mechanism: Mechanism, q: np.ndarray, seed: int, **options) -> tuple[Motion, Motion, kt.System]:
    """Return the motions of the drawings' frames of a mechanism, given as a tree and made of pairs, and the latter."""
    where = drawings(mechanism, seed)
    system = as_pairs(mechanism, q, where, **options)
    bodies = [b.name for b in mechanism.bodies]
    frames = {f.name: f.placement for f in system.mechanism.frames}
    theirs = {name: frames.get(f"{name}_frame", Placement()) for name in bodies}
    mine = Motion(mechanism, q, {name: inverse(where[name]) for name in bodies})
    return mine, Motion(system.mechanism, guessed(system.mechanism), theirs), system
