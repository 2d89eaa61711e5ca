"""Inverse dynamics of closed mechanisms in which some joints are driven and the loops move the others."""

from __future__ import annotations

from . import closed, forward
from .closure import of_row, rows
from .inverse import inverse_dynamics, newton_euler


def actuated_torques(tree, driven=frozenset()):
    """Return tau, lambda and missing torques of a motion: S tau_d + J^T lambda = I qdd + h - tau.   [Saha2013] (54)

    The motion has qdd of all joints and keeps the loops closed; tau, if given, acts in the joints too. With f the free
    degrees of freedom, J_f^T lambda = (I qdd + h - tau)_f. It is solved as in forward dynamics with the driven joints
    locked, for lambda that let the accelerations as they are. If the rank of J_f is that of f, no torque is missing.
    """
    given = tree.joints("tau")
    newton_euler(tree)
    forward.eliminate(tree, driven)
    equations = rows(tree)
    pulls = closed.Pulls(tree, equations)
    multipliers, rank = pulls.balance([0.0] * len(equations)), pulls.rank()
    needed = [x - tau for x, tau in zip(inverse_dynamics(tree), given, strict=True)]
    for row, multiplier in zip(equations, multipliers, strict=True):
        for k, x in of_row(row).items():
            needed[k] = needed[k] - x * multiplier
    tau = [x if k in driven else 0.0 for k, x in enumerate(needed)]
    missing = [0.0 if k in driven else x for k, x in enumerate(needed)]
    return tau, multipliers, missing, rank
