"""Inverse dynamics of closed mechanisms by subsystems: sweeps over one tree after the other, with known multipliers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..algebra.scalars import Scalar, absolute, is_plain_zero, maximum, where
from .closure import of_row, rows
from .inverse import newton_euler

Block = tuple[tuple[int, ...], tuple[int, ...]]
"""Passive degrees of freedom, and as many multipliers that their equations determine together."""


@dataclass(frozen=True)
class Stage:
    """Trees on the ground that are solved together, after all stages before.

    `dofs` are their degrees of freedom, `blocks` the equations of the passive ones in the order of their solution, and
    `known` the multipliers of stages before that act on these trees.
    """

    dofs: tuple[int, ...]
    blocks: tuple[Block, ...]
    known: tuple[int, ...]


@dataclass(frozen=True)
class Solved:
    """Torques [nv] and multipliers [nc] of a recursion, and how well they are determined.

    `strength` [nc] is a pivot relative to the largest entry of its row of J: zero where the passive joints do not
    determine the multiplier. `neglected` [nv] are torques of multipliers on joints that were solved before these: zero
    where the order of the stages is right. `needed` [nv] are the torques without unknown multipliers.
    """

    tau: list[Scalar]
    multipliers: list[Scalar]
    strength: list[Scalar]
    neglected: list[Scalar]
    needed: list[Scalar]


def subsystem_torques(tree, stages: Iterable[Stage], units: list[float]) -> Solved:
    """Return tau and lambda of a motion, stage by stage.                                      [Saha2013] (54a), (54b)

    The motion has qdd of all joints and keeps the loops closed; tau, if given, acts in the joints too. For the trees of
    a stage, with lambda_k known and lambda_u not:

        S tau + J_u^T lambda_u = I qdd + h - tau_given - J_k^T lambda_k

    The right-hand side is one inward sweep, in which the known multipliers act as wrenches on the bodies at the loops.
    Rows of passive joints determine lambda_u, those of drives the torques. `units` of the degrees of freedom make rows
    comparable.
    """
    newton_euler(tree)
    equations, roots = rows(tree), _roots(tree)
    tau, total, neglected = ([0.0] * tree.nv for _ in range(3))
    multipliers, strengths = [0.0] * len(equations), [1.0] * len(equations)
    solved: set[int] = set()
    late: list[tuple[int, int, Scalar]] = []  # entries of J for joints that are solved already
    for stage in stages:
        trees = tree.part([i for i in tree.records if roots[id(i)] in stage.dofs])
        for k in stage.known:
            for _, tip, w in equations[k].wrenches:
                if roots.get(id(tip)) in stage.dofs:
                    tip.w = tip.w - w * multipliers[k]
        needed = _needed(trees)
        for k in stage.known:
            for label, ratio in equations[k].torques.items():
                if label in needed:
                    needed[label] = needed[label] - ratio * multipliers[k]
        found: dict[int, dict[int, Scalar]] = {}
        for passive, unknown in stage.blocks:
            columns = {k: of_row(equations[k]) for k in unknown}
            for k, column in columns.items():
                late += [(label, k, x) for label, x in column.items() if label in solved]
            b = [_less(needed[p], found, multipliers, p) for p in passive]
            A = [[columns[k].get(p, 0.0) for k in unknown] for p in passive]
            unit = units[passive[0]]
            if any(units[p] != unit for p in passive):
                A = [[x * units[p] for x in row] for row, p in zip(A, passive, strict=True)]
                b, unit = [x * units[p] for x, p in zip(b, passive, strict=True)], 1.0
            x, pivots = solve_block(A, b)
            for k, value, pivot in zip(unknown, x, pivots, strict=True):
                size = maximum(*(absolute(x) * units[label] for label, x in columns[k].items()))
                multipliers[k], strengths[k] = value, absolute(pivot) * unit / size
            found |= columns
            solved.update(passive)
        for label in stage.dofs:
            total[label] = needed[label]
            if label not in solved:
                tau[label] = _less(needed[label], found, multipliers, label)
        solved.update(stage.dofs)
    for label, k, x in late:
        neglected[label] = neglected[label] + x * multipliers[k]
    return Solved(tau, multipliers, strengths, neglected, total)


def solve_block(A: list[list[Scalar]], b: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    """Return x with A x = b by elimination with exchanged rows, and the pivots.

    Entries that are the number 0 cost nothing as long as no exchange may fill them.
    """
    count = len(b)
    work = [[*row, y] for row, y in zip(A, b, strict=True)]
    for k in range(count):
        for i in range(k + 1, count):
            work[k], work[i] = _exchanged(work[k], work[i], k)
        inverse = 1.0 / work[k][k]
        for i in range(k + 1, count):
            if not is_plain_zero(work[i][k]):
                factor = work[i][k] * inverse
                work[i] = [
                    *work[i][: k + 1],
                    *(_minus(work[i][j], factor, work[k][j]) for j in range(k + 1, count + 1)),
                ]
        work[k].append(inverse)
    x: list[Scalar] = [0.0] * count
    for k in reversed(range(count)):
        left = work[k][count]
        for j in range(k + 1, count):
            left = _minus(left, work[k][j], x[j])
        x[k] = left * work[k][count + 1]
    return x, [row[k] for k, row in enumerate(work)]


def _exchanged(first: list[Scalar], second: list[Scalar], k: int) -> tuple[list[Scalar], list[Scalar]]:
    """Return two rows, the one with the larger entry in column k first; columns before k are finished."""
    if is_plain_zero(second[k]):
        return first, second
    if is_plain_zero(first[k]):
        return second, first
    larger = absolute(first[k]) < absolute(second[k])
    pairs = list(zip(first[k:], second[k:], strict=True))
    up, down = ([*row[:k]] for row in (first, second))
    up += [where(larger, y, x) for x, y in pairs]
    down += [where(larger, x, y) for x, y in pairs]
    return up, down


def _needed(trees) -> dict[int, Scalar]:
    """Return I qdd + h - tau of some trees by label, from the wrenches of their bodies; one inward sweep."""
    out: dict[int, Scalar] = {}

    @trees.inward
    def forces(i, p):
        torques = zip(i.labels, i.P.T @ i.w, i.armature, i.qdd, i.tau, strict=True)
        out.update({k: pw + a * qdd - tau for k, pw, a, qdd, tau in torques})
        p.w += i.A.T @ i.w

    return out


def _roots(tree) -> dict[int, int]:
    """Return the first degree of freedom of the tree that a body belongs to, by id; those of the ground have none."""
    out: dict[int, int] = {}
    for i in tree.records:
        root = out.get(id(i.parent), -1)
        out[id(i)] = root if root >= 0 else i.labels[0] if i.labels else -1
    return out


def _less(x: Scalar, columns: dict[int, dict[int, Scalar]], multipliers: list[Scalar], label: int) -> Scalar:
    """Return a torque less those of multipliers with these columns of J^T."""
    for k, column in columns.items():
        if label in column:
            x = x - column[label] * multipliers[k]
    return x


def _minus(x: Scalar, a: Scalar, b: Scalar) -> Scalar:
    return x if is_plain_zero(a) or is_plain_zero(b) else x - a * b
