"""Closed loops: multipliers by the O(n) factors, and what keeps loops closed."""

from __future__ import annotations

from typing import Any, Protocol

from ..algebra.definite import Definite
from ..algebra.propagation import Propagation
from ..algebra.spatial import Twist, Wrench, power
from . import forward
from .closure import Row, of_row, rows
from .inverse import newton_euler

RELUCTANT = 1e4
"""The factor by which modes are heavier for closing steps: joints then move as much farther for the same gap."""


def forward_dynamics(tree, rate: float = 0.0):
    """I qdd = tau - h + J^T lambda with J qdd + dJ/dt qd = 0                                 [Saha2013] (50)-(54).

    With a `rate` a [1/s], Baumgarte's: J qdd + dJ/dt qd + 2 a J qd + a^2 residual = 0; gaps decay as exp(-a t).
    """
    return loaded_motion(tree, rate)[0]


def loaded_motion(tree, rate: float = 0.0) -> tuple[list, list]:
    """Return qdd of `forward_dynamics`, and the equations of the loops with their multipliers."""
    if not tree.mechanism.closures:
        return forward.forward_dynamics(tree), []
    pulls = moving(tree)
    found = pulls.balance(_decaying(pulls.rows, rate))
    return pulls.accelerate(), list(zip(pulls.rows, found, strict=True))


def multipliers(tree):
    """Return lambda of every equation, zero for those that the others imply.                    [Saha2013] (54)"""
    return forces(moving(tree))


def closing_step(tree, locked=frozenset()):
    """Return the step dq that closes the loops to first order, the smallest in the kinetic-energy norm.

    dq = -I^-1 J^T (J I^-1 J^T)^-1 residual: Newton's method. Degrees of freedom that are locked, by label, stay.
    Equations that restrict velocities alone take no part. Modes of flexible bodies count as heavier than they are, so
    that loops are closed by the joints as far as these can.
    """
    for i in tree.records:
        if i.body.flexible is not None:
            K = i.body.flexible.modal.moments.K
            i.added = tuple(RELUCTANT * K[k][k] for k in range(len(i.labels)))
    return step(at_rest(tree, locked, positions=True))


def closing_speed(tree, locked=frozenset()):
    """Return the velocities with J qd = 0 nearest to qd in kinetic energy: those after an impact of the loops."""
    return velocities(at_rest(tree, locked), tree.joints("qd"))


def response(tree, rates: list, rank: int = 0):
    """Return the accelerations at rest without gravity under the torques tau, with J qdd = -rates.

    They are linear in both: the factors of forward dynamics also solve for a change of its right-hand sides.
    They are NaN where fewer than `rank` equations are independent.
    """
    for i in tree.records:
        i.w = Wrench()
    forward.eliminate(tree)
    pulls = Pulls(tree, rows(tree))
    pulls.balance(rates, rank)
    return pulls.accelerate()


def closing_acceleration(tree, locked=frozenset()):
    """Return qdd with J qdd + dJ/dt qd = 0 nearest to the given one in the norm of I; locked entries stay as given."""
    pulls, given = at_rest(tree, locked), tree.joints("qdd")
    pulls.balance([of_acceleration(row, given) for row in pulls.rows])
    return [a + da for a, da in zip(given, pulls.accelerate(), strict=True)]


def of_acceleration(row: Row, qdd):
    """Return J qdd + dJ/dt qd of one equation."""
    return sum((x * qdd[k] for k, x in of_row(row).items()), start=row.bias)


class Loaded(Protocol):
    """A tree at one state with the multipliers of its loops, however these are found."""

    rows: list[Row]

    def balance(self, rates: list) -> Any:
        """Return the multipliers with J qdd = -rates, and let them act."""
        ...

    def accelerate(self) -> Any:
        """Return the accelerations under all that acts."""
        ...


def accelerations(pulls: Loaded, rate: float = 0.0):
    """Return qdd with J qdd + dJ/dt qd + 2 a J qd + a^2 residual = 0, with Baumgarte's rate a.   [Saha2013] (53)"""
    pulls.balance(_decaying(pulls.rows, rate))
    return pulls.accelerate()


def _decaying(equations: list[Row], rate: float) -> list:
    """Return dJ/dt qd + 2 a J qd + a^2 residual of all equations."""
    return [row.bias + 2.0 * rate * row.rate + rate * rate * row.residual for row in equations]


def forces(pulls: Loaded):
    """Return the multipliers that keep the loops closed."""
    return pulls.balance([row.bias for row in pulls.rows])


def step(pulls: Loaded):
    """Return the step dq that closes the loops to first order, of a tree at rest."""
    pulls.balance([row.residual for row in pulls.rows])
    return pulls.accelerate()


def velocities(pulls: Loaded, qd):
    """Return the velocities with J qd = 0 nearest to qd in kinetic energy, of a tree at rest."""
    pulls.balance([row.rate for row in pulls.rows])
    return [v + dv for v, dv in zip(qd, pulls.accelerate(), strict=True)]


class Pulls:
    """What unit multipliers do to the pivots of an eliminated tree: y = U^-1 J^T, one column an equation.

    J I^-1 J^T = y^T D^-1 y: the inertia matrix is neither formed nor inverted.                     [Saha2013] (54)
    Equations that hold by themselves (tree.closing) take no part.
    """

    def __init__(self, tree, equations: list[Row], more: list[Row] | None = None, *, positions: bool = False) -> None:
        """Carry the wrenches of all multipliers inward through the pivots, as `eliminate` did with w.

        Rows that are no equations of loops, such as those of contacts, follow as `more`. With `positions`, only the
        equations of positions take part.
        """
        self.tree, self.rows = tree, equations
        self.kept = [k for k in tree.closing.kept if equations[k].holonomic or not positions]
        equations = [*equations, *(more or ())]
        kept = (*self.kept, *range(len(self.rows), len(equations)))
        for i in (*tree.records, tree.ground):
            i.W = {}
        for k in kept:
            for _, tip, w in equations[k].wrenches:
                tip.W[k] = tip.W.get(k, Wrench()) - w

        @tree.inward
        def carry(i, p):
            i.pulls = []
            for label, (pk, pivot, _) in zip(reversed(i.labels), i.pivots, strict=True):
                torques = {k: equations[k].torques.get(label, 0.0) for k in kept}
                torques = {k: x for k, x in torques.items() if k in i.W or label in equations[k].torques}
                y = {k: x - power(i.W.get(k, Wrench()), pk) for k, x in torques.items()}
                i.W = {k: pivot.push(i.W.get(k, Wrench()), x, y[k]) for k, x in torques.items()}
                i.pulls.append(y)
            for k, w in i.W.items():
                p.W[k] = p.W.get(k, Wrench()) + i.A.T @ w

    def factors(self) -> Definite:
        """Return the factors of J I^-1 J^T of the equations that take part."""
        closing = self.tree.closing
        S = [[self.product(k, m) for m in self.kept[: n + 1]] for n, k in enumerate(self.kept)]
        sizes = [closing.sizes[k] for k in self.kept]
        return Definite(S, closing.tolerances(self.kept), sizes, defer=closing.redundant)

    def rank(self):
        """Return the number of independent equations that take part."""
        return self.factors().rank

    def diagonal(self) -> list:
        """Return the diagonal of J I^-1 J^T."""
        return [self.product(k, k) for k in range(len(self.rows))]

    def balance(self, rates: list, rank: int = 0) -> list:
        """Return the multipliers with J qdd = -rates, and add what they pull to the torques of the pivots.

        All are NaN where fewer than `rank` equations are independent.

        Done twice: the second time finds what rounding left of the first, which near singular positions is more than
        that of an orthogonal factorisation (Bjorck's corrected seminormal equations).
        """
        total, factors = [0.0] * len(self.rows), self.factors()
        if rank:
            factors.require(rank)
        for _ in range(2):
            wanted = self._wanted(rates)
            change = dict(zip(self.kept, factors.solve([wanted[k] for k in self.kept]), strict=True))
            self.act(change)
            total = [x + change.get(k, 0.0) for k, x in enumerate(total)]
        return total

    def accelerate(self) -> list:
        """Return the accelerations of the tree."""
        return forward.accelerate(self.tree)

    def _wanted(self, rates: list) -> list:
        """Return -(rates + J qdd) with the torques that the pivots have."""
        out = [-x for x in rates]
        for i in self.tree.records:
            for (_, pivot, tauhat), y in zip(i.pivots, i.pulls, strict=True):
                for k, x in y.items():
                    if k < len(out):
                        out[k] = out[k] - x * (tauhat * pivot.inverse)
        return out

    def act(self, multipliers: dict) -> None:
        """Add the pulls of multipliers, by number of the row, to the torques of the pivots."""
        for i in self.tree.records:
            i.pivots = [
                (pk, pivot, sum((x * multipliers[k] for k, x in y.items() if k in multipliers), start=tauhat))
                for (pk, pivot, tauhat), y in zip(i.pivots, i.pulls, strict=True)
            ]

    def product(self, k: int, m: int):
        """Return the entry (k, m) of J I^-1 J^T."""
        total = 0.0
        for i in self.tree.records:
            for (_, pivot, _), y in zip(i.pivots, i.pulls, strict=True):
                if k in y and m in y:
                    total = total + y[k] * y[m] * pivot.inverse
        return total


def pulled(w: Wrench, A: Propagation, columns: list[Twist], psi: list[Wrench]) -> tuple[list, Wrench]:
    """Return the pulls y of a unit multiplier on the pivots of a body, and the wrench that goes on to its parent.

    w is the wrench on the body, as in `Pulls`; columns and psi are those of its pivots, in their order.
    """
    y = []
    for p, x in zip(columns, psi, strict=True):
        y.append(-power(w, p))
        w = w + x * y[-1]
    return y, A.T @ w


def moving(tree) -> Pulls:
    """Return the pulls on the tree with its velocities, torques and wrenches, all joints free."""
    for i in tree.records:
        i.qdd = (0.0,) * len(i.labels)
    newton_euler(tree)
    forward.eliminate(tree)
    return Pulls(tree, rows(tree))


def at_rest(tree, locked=frozenset(), *, positions: bool = False) -> Pulls:
    """Return the pulls on the tree where nothing else acts on it, of all equations or of positions alone."""
    rested(tree, locked)
    return Pulls(tree, rows(tree), positions=positions)


def rested(tree, locked=frozenset()) -> None:
    """Eliminate the tree where nothing acts on it."""
    for i in tree.records:
        i.w, i.tau = Wrench(), (0.0,) * len(i.labels)
    forward.eliminate(tree, locked)
