"""Closed mechanisms of any size, as mechanisms: families that a single file could not describe."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import InputError
from ..model import GROUND, Body, Frame, Joint, Loop, Mechanism, Number, Placement, assemble
from .counts import counted

SOURCE = """\
IFToMM library of multibody benchmarks, A02 (N four-bars): bars of 1 m and 1 kg as slender rods; N = 2 and 40 have \
reference solutions"""


def n_four_bars_mechanism(
    n: int,
    *,
    length: float = 1.0,
    mass: float = 1.0,
    gravity: Sequence[Number] = (0.0, -9.81, 0.0),
    name: str = "",
) -> Mechanism:
    """Return n four-bars in a row in the x-y plane: n + 1 upright rockers on the ground, and n couplers.

    The bars are slender rods of one length [m] and mass [kg]. Rocker k is at x = k length and carries coupler k. The
    coupler is cut from rocker k + 1, where the loop "pin{k + 1}" closes. Frame "B{k}" is the top of rocker k. At q = 0
    the rockers are upright and all loops are closed. One degree of freedom; rocker 0 is the independent one. In the
    flat position the mechanism gains n more.
    """
    count = counted(n, "n", "four-bars")
    for label, value in (("length", length), ("mass", mass)):
        if not 0 < value < math.inf:
            raise InputError(f"the {label} is {value!r}; expected more than 0")
    moment = mass * length * length / 12
    top = Placement((0.0, length, 0.0))
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k in range(count + 1):
        rocker, coupler = f"rocker{k}", f"coupler{k}"
        bodies.append(Body(rocker, mass, (0.0, length / 2, 0.0), (moment, 0.0, moment, 0.0, 0.0, 0.0)))
        joints.append(Joint(rocker, "revolute", GROUND, rocker, Placement((k * length, 0.0, 0.0))))
        if k < count:
            bodies.append(Body(coupler, mass, (length / 2, 0.0, 0.0), (0.0, moment, moment, 0.0, 0.0, 0.0)))
            joints.append(Joint(coupler, "revolute", rocker, coupler, top))
    end = Placement((length, 0.0, 0.0))
    return assemble(
        name or f"{count}_four_bars",
        bodies,
        joints,
        frames=[Frame(f"B{k}", f"rocker{k}", top) for k in range(count + 1)],
        loops=[
            Loop(f"pin{k + 1}", "revolute", f"rocker{k + 1}", f"coupler{k}", placement_a=top, placement_b=end)
            for k in range(count)
        ],
        gravity=gravity,  # type: ignore[arg-type]
        source=SOURCE,
        description=(
            "The benchmark starts with the rockers upright and B0 moving at 1 m/s along x: q = 0, with velocities "
            "-1 rad/s of the rockers and 1 rad/s of the couplers."
        ),
    )
