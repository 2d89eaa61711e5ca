"""Small closed mechanisms for tests: planar chains of bars with loops to the ground, with awkward numbers."""

from __future__ import annotations

import kinetree as kt
from kinetree.model import GROUND
from kinetree.model.parameters import parse


def at(x: float, y: float = 0.0, z: float = 0.0) -> kt.Placement:
    """Return a translation as a placement."""
    return kt.Placement((x, y, z))


def bar(name: str, length: float, mass: float = 1.3) -> kt.Body:
    """Return a slender bar along x."""
    moment = mass * length**2 / 12
    return kt.Body(name, mass, (length / 2, 0.0, 0.0), (1e-5, moment, moment, 0.0, 0.0, 0.0))


def chain(*lengths: float, loops=(), guess=(), kind: str = "revolute") -> kt.System:
    """Return a chain of bars b0, b1, ... on joints j0, j1, ... about z, closed by loops."""
    bodies, joints = [], []
    for k, length in enumerate(lengths):
        parent = f"b{k - 1}" if k else GROUND
        bodies.append(bar(f"b{k}", length))
        joints.append(kt.Joint(f"j{k}", kind, parent, f"b{k}", at(lengths[k - 1]) if k else at(0.0)))
    return kt.System(kt.build_mechanism("chain", bodies, joints, loops=loops, guess=guess))


def two_bars(*loops: kt.Loop, guess=()) -> kt.System:
    """Return bars of 0.7 and 0.5 m, whose tip is at (0.5, 0) of b1."""
    return chain(0.7, 0.5, loops=loops, guess=guess)


def free_rod() -> kt.System:
    """Return the two bars with a rod of the free length l, 0.6 m, from a point of the ground to their tip."""
    loop = kt.Loop("rod", "rod", GROUND, "b1", at(0.31, 0.12), at(0.5), length=parse("l"))
    places = [at(0.0), kt.Placement((parse("a"), 0.0, 0.0))]
    joints = [kt.Joint(f"j{k}", "revolute", (GROUND, "b0")[k], f"b{k}", places[k]) for k in range(2)]
    sizes = [kt.Parameter("a", 0.7), kt.Parameter("l", 0.6, free=True)]
    bodies = [bar("b0", 0.7), bar("b1", 0.5)]
    return kt.System(kt.build_mechanism("m", bodies, joints, loops=[loop], parameters=sizes, gravity=(0.0, -9.81, 0.0)))


def rod(name: str, length: float, x: float = 0.31, y: float = 0.12) -> kt.Loop:
    """Return a rod from a point of the ground to the tip of b1."""
    return kt.Loop(name, "rod", GROUND, "b1", at(x, y), at(0.5), length=length)


def pin(x: float, y: float, name: str = "pin") -> kt.Loop:
    """Return a pin that holds the tip of b1 at a point of the ground."""
    return kt.Loop(name, "revolute", GROUND, "b1", at(x, y), at(0.5))


CRANK_ROCKER = [0.0, 2.5401521933525473, 2.2783528055533977]
"""Published start (crank, rocker, coupler) that leaves a loop open, the four-bar of ReDySim.

venu1807/ReDySim-Graphical-User-Interface at 001d838, ForDyn/Fourbar Mechanism/default_input/inputs.mat.
"""
THREE_RRR = [1.0467, 5.4206, -2.5357, 4.1883, -2.0939, 5.7637, -0.9869]
"""Published start (joint1 to joint7) that leaves loops open, the 3-RRR of ReDySim.

The same repository, ForDyn/3-RRR Parallel robot/default_input/inputs.mat.
"""
