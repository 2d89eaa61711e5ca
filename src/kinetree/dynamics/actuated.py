"""Inverse dynamics of closed mechanisms in which some joints are driven and the loops move the others."""

from __future__ import annotations

from collections.abc import Mapping

from ..algebra.definite import Definite
from ..algebra.scalars import Scalar
from ..algebra.spatial import Wrench
from . import closed, forward, hybrid
from .closure import Row, of_row, rows
from .inverse import inverse_dynamics, newton_euler

ROUNDING = 1e-14
"""The ratio of a pivot to its diagonal entry below which it would be rounding; weights keep pivots far above."""


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


def computed_torques(
    tree, leaders: frozenset[int], wanted: Mapping[int, Scalar], weights: Mapping[int, float]
) -> list[Scalar]:
    """Return the torques, in the actuated joints alone, that give these joints accelerations.

    `wanted` and `weights` are by label of the actuated degrees of freedom a, and `leaders` are those of them, l, that
    determine the motion: qd = G qd_l. With the others r, R = G_r, and b the torques of hybrid dynamics that drive the
    leaders alone, passive torques tau included (docs/theory/closed-loops.md):

        G^T (I qdd + h - tau) = b,    tau_l + R^T tau_r = b,    (W_r + R W_l R^T) tau_r = R W_l b

    for the least tau_a^T W tau_a. If accelerations of r contradict those of l by e, those of l change by d,
    (W_r + R W_l R^T) y = e, d = W_l R^T y: the nearest ones that the loops allow, in the norm of W^-1. All are NaN
    where the actuated joints do not determine the motion. Modes of flexible bodies are none of r: they move freely.
    """
    bent = sum(len(i.labels) for i in tree.records if i.body.flexible is not None)
    given, rank = tree.joints("tau"), tree.nv - bent - len(leaders)
    first, others = sorted(leaders), sorted(set(wanted) - leaders)
    qdd, loads = _led(tree, leaders, wanted, rank)
    R: list[dict[int, Scalar]] = []
    factors = None
    if others:
        R = _ratios(tree, leaders, others)
        S = [
            [sum((weights[k] * R[n][k] * R[m][k] for k in first), start=0.0) for m in range(len(R))]
            for n in range(len(R))
        ]
        for n, k in enumerate(others):
            S[n][n] = S[n][n] + weights[k]
        factors = Definite(S, [ROUNDING] * len(S), [0.0] * len(S))
        y = factors.solve([wanted[k] - qdd[k] for k in others])
        nearest = {k: wanted[k] + weights[k] * _along(R, y, k) for k in first}
        qdd, loads = _led(tree, leaders, nearest, rank)
    b = hybrid.torques(tree, leaders, given, qdd, loads)
    b = [x - tau for x, tau in zip(b, given, strict=True)]
    out = [b[k] if k in leaders else 0.0 for k in range(tree.nv)]
    if factors is not None:
        shares = factors.solve([sum((r[k] * weights[k] * b[k] for k in first), start=0.0) for r in R])
        for k in first:
            out[k] = b[k] - _along(R, shares, k)
        for k, share in zip(others, shares, strict=True):
            out[k] = share
    return out


def _led(tree, leaders: frozenset[int], wanted: Mapping[int, Scalar], rank: int) -> tuple[list, list]:
    """Return qdd of all joints with the wanted ones of the leaders, and the equations with their multipliers."""
    for i in tree.records:
        i.qdd = tuple(wanted[k] if k in leaders else 0.0 for k in i.labels)
    return hybrid.accelerations(tree, leaders, rank)


def _ratios(tree, leaders: frozenset[int], others: list[int]) -> list[dict[int, Scalar]]:
    """Return R = G_r by rows: a unit torque in r loads the leaders by G^T e_r = (J^T lambda)_l, where all are held."""
    equations, out = rows(tree), []
    for other in others:
        unit = [1.0 if k == other else 0.0 for k in range(tree.nv)]
        row = dict.fromkeys(sorted(leaders), 0.0)
        for equation, multiplier in zip(equations, _pulled(tree, equations, unit, leaders), strict=True):
            for k, x in of_row(equation).items():
                if k in leaders:
                    row[k] = row[k] + x * multiplier
        out.append(row)
    return out


def _along(R: list[dict[int, Scalar]], x: list, k: int) -> Scalar:
    """Return an entry of R^T x."""
    return sum((row[k] * value for row, value in zip(R, x, strict=True)), start=0.0)


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
