"""Motions of closed mechanisms that are nearest to given ones, whose loops are slightly open."""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism

STEPS = 3
"""The number of Newton steps that close gaps of up to 1e-4 m or rad to rounding: each step squares the gap."""
SINGULAR = 1e-9
"""Singular values of loop equations below this part of the largest one count as zero: well above rounding."""


def nearest_motion(
    system: CompiledMechanism, q: Numbers, qd: Numbers, qdd: Numbers, *, parameters: Numbers | None = None
) -> tuple[Numbers, Numbers, Numbers]:
    """Return q, qd and qdd that keep the loops closed, nearest to given ones; wider gaps than slight ones remain.

    Splines and rounded tables open loops slightly. Positions and velocities are nearest in the kinetic-energy norm.
    Accelerations are nearest by their numbers: those of splines are wrong by about as much at light and heavy bodies,
    and the other norm would leave the corrections to the light ones.
    """
    for _ in range(STEPS):
        q = system.integrate(q, system.closing_step(q, parameters=parameters))
    qd = system.closing_speed(q, qd, parameters=parameters)
    J = system.closure_jacobian(q, parameters=parameters)
    parting = (J @ qdd[..., None])[..., 0] + system.closure_bias(q, qd, parameters=parameters)
    return q, qd, qdd - (np.linalg.pinv(J, rcond=SINGULAR) @ parting[..., None])[..., 0]
