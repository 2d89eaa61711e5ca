"""Inverse dynamics of closed mechanisms in which some joints are driven and the loops move the others."""

from __future__ import annotations

from ..algebra.spatial import Wrench
from . import closed, forward
from .closure import Row, of_row, rows
from .inverse import inverse_dynamics, newton_euler


def actuated_torques(tree, driven=frozenset()):
    """Return tau, lambda and missing torques of a motion: S tau_d + J^T lambda = I qdd + h - tau.   [Saha2013] (54)

    The motion has qdd of all joints and keeps the loops closed; tau, if given, acts in the joints too. With f the free
    degrees of freedom, J_f^T lambda = (I qdd + h - tau)_f. It is solved as in forward dynamics with the driven joints
    locked, for lambda that let the accelerations as they are. If the rank of J_f is that of f, no torque is missing.
    What is missing after the first solution is solved for once more: rounding errors of lambda grow with the ratio of
    the inertias of free joints.
    """
    given = tree.joints("tau")
    newton_euler(tree)
    forward.eliminate(tree, driven)
    equations = rows(tree)
    pulls = closed.Pulls(tree, equations)
    multipliers, rank = pulls.balance([0.0] * len(equations)), pulls.rank()
    needed = [x - tau for x, tau in zip(inverse_dynamics(tree), given, strict=True)]
    left = _left(needed, equations, multipliers)
    change = _pulled(tree, equations, [0.0 if k in driven else -x for k, x in enumerate(left)], driven)
    multipliers = [x + y for x, y in zip(multipliers, change, strict=True)]
    left = _left(needed, equations, multipliers)
    tau = [x if k in driven else 0.0 for k, x in enumerate(left)]
    missing = [0.0 if k in driven else x for k, x in enumerate(left)]
    return tau, multipliers, missing, rank


def _left(needed: list, equations: list[Row], multipliers: list) -> list:
    """Return the torques that the multipliers leave to the drives."""
    out = list(needed)
    for row, multiplier in zip(equations, multipliers, strict=True):
        for k, x in of_row(row).items():
            out[k] = out[k] - x * multiplier
    return out


def _pulled(tree, equations: list[Row], torques: list, driven) -> list:
    """Return the multipliers that hold a tree at rest under torques alone; its own torques stay."""
    own = [i.tau for i in tree.records]
    for i in tree.records:
        i.w, i.tau = Wrench(), tuple(torques[k] for k in i.labels)
    forward.eliminate(tree, driven)
    for i, tau in zip(tree.records, own, strict=True):
        i.tau = tau
    return closed.Pulls(tree, equations).balance([0.0] * len(equations))
