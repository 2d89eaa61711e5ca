"""The effect of forces and controllers on a mechanism, by plain NumPy without native code."""

from __future__ import annotations

import numpy as np

from interpreted import compute
from kinetree import Mechanism
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.simulation.acting.instants import Instant
from kinetree.simulation.acting.rates import ForcedMechanism, rates


def rates_of(mechanism: Mechanism, q, qd, *, forces=(), control=None, t=0.0, parameters=None):
    """Return dq and qdd under forces and control; t is a number or has the leading shape of q."""
    time = np.broadcast_to(np.asarray(t, dtype=float), np.shape(q)[:-1])[..., None]
    more = () if parameters is None else (parameters,)
    return rates(ForcedMechanism(mechanism, forces, control)).interpret(time, q, qd, *more)


def torques(mechanism: Mechanism, q, qd, *, forces=(), control=None, t=0.0):
    """Return the generalized forces that cause these rates, by inverse dynamics."""
    qdd = rates_of(mechanism, q, qd, forces=forces, control=control, t=t)[1]
    return compute(mechanism, "inverse_dynamics", q, qd, qdd)


def energy(mechanism: Mechanism, force, q):
    """Return the energy that a force stores."""
    trace = Trace()
    q_in = [trace.input(0, k) for k in range(mechanism.nq)]
    now = Instant(mechanism, 0.0, q_in, [0.0] * mechanism.nv, None)
    program = Program.of_trace(
        "energy", (Array("q", (mechanism.nq,)),), (Array("V", ()),), trace, [[force.energy(now)]]
    )
    return program.interpret(q)[0]


def slope(mechanism: Mechanism, function, q, step: float = 1e-5):
    """Return the derivative of a function of q along every degree of freedom, by differences of fourth order."""

    def moved(k: int, h: float):
        return function(compute(mechanism, "integrate", q, h * np.eye(mechanism.nv)[k]))

    columns = [
        (8 * (moved(k, step) - moved(k, -step)) - (moved(k, 2 * step) - moved(k, -2 * step))) / (12 * step)
        for k in range(mechanism.nv)
    ]
    return np.stack(columns, axis=-1)
