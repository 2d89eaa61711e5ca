"""Hybrid dynamics: some joints follow given accelerations, torques act in the others."""

from __future__ import annotations

from dataclasses import replace

from . import closed, forward
from .closure import Row, of_row, rows
from .inverse import inverse_dynamics, newton_euler


def hybrid_dynamics(tree, driven=frozenset()):
    """Return qdd and tau of all joints, from qdd of the driven ones and tau of the others.    [Featherstone2008] 9.2

    With d the driven and f the free degrees of freedom, in the coordinates of the joints:

        I_ff qdd_f = tau_f - h_f - I_fd qdd_d + J_f^T lambda,    J_f qdd_f = -(dJ/dt qd + J_d qdd_d)
        tau_d = I_dd qdd_d + I_df qdd_f + h_d - J_d^T lambda

    The first row is forward dynamics by I = U D U^T with the driven joints locked, [Saha2013] (27)-(33) and (50)-(54),
    where the bias is inverse dynamics with the accelerations qdd_d. The second is inverse dynamics, [Saha2013]
    (22)-(26). With all joints driven except that of a floating base, this is the inverse dynamics of space robots.
    """
    given = tree.joints("tau")
    qdd, loads = accelerations(tree, driven)
    return qdd, torques(tree, driven, given, qdd, loads)


def accelerations(tree, driven=frozenset(), rank: int = 0):
    """Return qdd of all joints, and the equations of the loops with their multipliers.

    Those of free joints are NaN where fewer than `rank` equations are independent with the driven joints locked.
    """
    for i in tree.records:
        i.qdd = tuple(x if k in driven else 0.0 for k, x in zip(i.labels, i.qdd, strict=True))
    given, loads = tree.joints("qdd"), []
    newton_euler(tree)
    forward.eliminate(tree, driven)
    if tree.mechanism.closures:
        equations = [_accelerated(row, given) for row in rows(tree)]
        pulls = closed.Pulls(tree, equations)
        loads = list(zip(equations, pulls.balance([row.bias for row in equations], rank), strict=True))
    found = forward.accelerate(tree)
    return [a if k in driven else x for k, (a, x) in enumerate(zip(given, found, strict=True))], loads


def torques(tree, driven, given, qdd, loads):
    """Return the torques of all joints: those given of the free ones, tau_d of the driven ones."""
    for i in tree.records:
        i.qdd = tuple(qdd[k] for k in i.labels)
    needed = inverse_dynamics(tree)
    for row, multiplier in loads:
        for k, x in of_row(row).items():
            needed[k] = needed[k] - x * multiplier
    return [x if k in driven else tau for k, (x, tau) in enumerate(zip(needed, given, strict=True))]


def _accelerated(row: Row, qdd) -> Row:
    """Return an equation whose bias includes J_d qdd_d."""
    return replace(row, bias=closed.of_acceleration(row, qdd))
