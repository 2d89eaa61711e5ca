"""Velocities that leave a frame at rest: the null space of its Jacobian and of the loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...model.scales import characteristic_length, loop_units

RANK = 1e-7
"""The ratio to the largest singular value below which a singular value of the Jacobian counts as zero."""


def scaled_jacobian(
    system: CompiledMechanism, frame: str, used: tuple[bool, ...], q: Numbers, parameters: Numbers | None
) -> Numbers:
    """Return the Jacobian of a frame and of the loops [..., n, nv], without units, for positions q [..., nq].

    Rows are in the frame's axes, which are the target's where it is reached, and only those used.
    """
    m = system.mechanism
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    length, (equations, units) = characteristic_length(m), loop_units(m)
    J = system.jacobian(q, frame, axes="body", **more)[..., np.array(used), :]
    J = J / np.repeat([1.0, length], 3)[np.array(used)][:, None] * units
    if m.closures:
        J = np.concatenate([J, system.closure_jacobian(q, **more) * units / equations[:, None]], axis=-2)
    return J


def null_motions(
    system: CompiledMechanism, frame: str, used: tuple[bool, ...], q: Numbers, parameters: Numbers | None
) -> Numbers:
    """Return a basis [nv, k] of the velocities that do not move the frame in the axes used, at one position."""
    J = scaled_jacobian(system, frame, used, q, parameters)
    _, s, V = np.linalg.svd(J)
    count = int((s > RANK * s.max(initial=0.0)).sum())
    return V[count:].T * loop_units(system.mechanism)[1][:, None]
