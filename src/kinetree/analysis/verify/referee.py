"""The referee: every route to the equations of motion on the same random states, side by side with the recursion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compiler.rolled.weightless import weightless_joints
from ...errors import InputError, ModelError
from ...model.mechanism import Mechanism
from ...model.topology import depths
from .routes import Answers, NotRun, Numbers, Route, Solver, State, chosen
from .torque_scales import torque_scale

EPS = float(np.finfo(float).eps)
FACTOR = 20.0
"""Every route agrees with the recursion to FACTOR * eps * condition; the conditions are in `_limits`."""
SINGULAR = 1e13
"""A condition of I beyond which accelerations have no digits to compare."""
QUANTITIES = ("tau", "I", "gravity", "bias", "qdd")


@dataclass(frozen=True)
class Comparison:
    """A route beside the recursion in one quantity: the largest relative difference, its bound, and their ratio.

    Over several states, difference and bound are those of the state where their ratio is largest.
    """

    difference: float
    bound: float

    @property
    def ratio(self) -> float:
        """The difference in parts of its bound; not a number counts as infinite."""
        if self.difference == 0:
            return 0.0
        ratio = self.difference / self.bound if self.bound > 0 else np.inf
        return ratio if np.isfinite(ratio) else np.inf


@dataclass(frozen=True)
class Row:
    """One route: its comparisons by quantity, or why it did not run, or how it failed."""

    name: str
    what: str
    comparisons: dict[str, Comparison]
    reason: str = ""
    failure: str = ""

    @property
    def holds(self) -> bool:
        """Whether the route agrees; one that did not run does not speak against the others."""
        return not self.failure and all(c.ratio <= 1.0 for c in self.comparisons.values())

    @property
    def verdict(self) -> str:
        """One of "agrees", "DIFFERS", "FAILED" and "not run"."""
        if self.failure:
            return "FAILED"
        if self.reason:
            return "not run"
        return "agrees" if self.holds else "DIFFERS"


@dataclass(frozen=True)
class Verification:
    """What `arm.verify()` found: true where every route that ran agrees with the recursion, and at least one ran.

    `condition` is the largest condition number of the inertia matrix; infinite where no state can be solved for qdd.
    """

    mechanism: str
    states: int
    condition: float
    rows: tuple[Row, ...]
    nothing_moves: bool = False

    def __bool__(self) -> bool:
        """Tell whether all is well."""
        return self.nothing_moves or (all(row.holds for row in self.rows) and any(row.comparisons for row in self.rows))

    def row(self, name: str) -> Row:
        """Return a route's row by name."""
        return next(row for row in self.rows if row.name == name)

    @property
    def worst(self) -> Comparison | None:
        """The comparison nearest to its bound, or farthest beyond it."""
        all_of_them = [c for row in self.rows for c in row.comparisons.values()]
        return max(all_of_them, key=lambda c: c.ratio, default=None)

    def summary(self) -> str:
        """Return the verdict in a sentence."""
        if self.nothing_moves:
            return f"{self.mechanism} has no degrees of freedom: there is nothing to compare."
        ran = [row for row in self.rows if not row.reason]
        if not ran:
            return f"NO ROUTE RAN on {self.mechanism}: nothing was compared."
        bad = [row.name for row in ran if not row.holds]
        if bad:
            return f"{len(bad)} OF {len(ran)} ROUTES DO NOT AGREE with the recursion: {', '.join(bad)}."
        return f"All {len(ran)} routes that ran agree with the recursion, within {FACTOR:g} eps times the condition."

    def table(self) -> str:
        """Return the differences as text, routes down and quantities across, with reasons and the verdict."""
        lines = [f"{'route':<12}" + "".join(f"{name:>10}" for name in QUANTITIES) + "  verdict"]
        for row in self.rows:
            cells = (_cell(row.comparisons.get(name)) for name in QUANTITIES)
            note = row.reason or row.failure
            lines.append(f"{row.name:<12}" + "".join(f"{c:>10}" for c in cells) + f"  {row.verdict}" + _colon(note))
        lines.append(f"{'bound':<12}" + "".join(f"{_cell(self.bound(name)):>10}" for name in QUANTITIES))
        lines.append(f"{self.states} states; condition of I: {self.condition:.2g}. {self.summary()}")
        return "\n".join(lines)

    def bound(self, quantity: str) -> Comparison | None:
        """Return the tightest bound that a quantity was held to, as a comparison of it with itself."""
        bounds = [row.comparisons[quantity].bound for row in self.rows if quantity in row.comparisons]
        return Comparison(min(bounds), min(bounds)) if bounds else None

    def __str__(self) -> str:
        """Return the table."""
        return self.table()


def verify(
    system: Any, states: int = 5, *, tol: float | None = None, rng: Any = 0, routes: Sequence[str | Route] | None = None
) -> Verification:
    """Compare every route with the compiled recursion of a System at random states with external wrenches.

    Routes of trees are compared with loops and couplings left out; closed states are compared besides, with routes that
    know loops.

    Differences are relative: of torques to `torque_scale`, of I and qdd to their largest entries. The bound is `tol`
    (20 eps unless given) times a condition: the number of joints from the ground to the farthest body, and of qdd that
    of solving for it. `rng` seeds the states; `routes` names some of the routes, or gives others.
    """
    if states < 1:
        raise InputError(f"states is {states}; expected 1 or more")
    whole, system = system, system.tree
    mechanism, selected = system.mechanism, chosen(routes)
    if mechanism.nv == 0:
        return Verification(mechanism.name, states, 1.0, (), nothing_moves=True)
    samples, expected = _recursion(system, states, np.random.default_rng(rng))
    tol = FACTOR * EPS if tol is None else tol
    limits = [_limits(mechanism, s, e, tol) for s, e in zip(samples, expected, strict=True)]
    rows = tuple(_row(mechanism, route, samples, expected, limits) for route in selected)
    if whole.closures and routes is None:
        from .closed import closed_rows

        rows += closed_rows(whole, states, tol, np.random.default_rng(rng))
    conditions = [_condition(e.I) if s.invertible else np.inf for s, e in zip(samples, expected, strict=True)]
    return Verification(mechanism.name, states, max(conditions), rows)


def _recursion(system: Any, count: int, rng: np.random.Generator) -> tuple[list[State], list[Answers]]:
    """Return random states and what the compiled recursion says of them."""
    mechanism = system.mechanism
    q, qd = system.random_state(rng, count)
    qdd, w = rng.normal(size=(count, mechanism.nv)), rng.normal(size=(count, len(mechanism.bodies), 6))
    tau, inertia = system.inverse_dynamics(q, qd, qdd, wrenches=w), system.inertia_matrix(q)
    invertible = [not weightless_joints(mechanism) and _condition(x) < SINGULAR for x in inertia]
    back = system.forward_dynamics(q, qd, tau, wrenches=w) if any(invertible) else [None] * count
    columns = (tau, inertia, system.gravity_torque(q), system.bias_torque(q, qd, wrenches=w))
    answers = [
        Answers(*row, qdd=x if possible else None) for *row, x, possible in zip(*columns, back, invertible, strict=True)
    ]
    return [State(*row) for row in zip(q, qd, qdd, tau, w, invertible, strict=True)], answers


def _limits(mechanism: Mechanism, s: State, e: Answers, tol: float) -> dict[str, tuple[float, float]]:
    """Return scale and bound of each quantity at a state."""
    scales = {
        "tau": torque_scale(mechanism, s.q, s.qd, s.qdd, s.wrenches),
        "I": e.I,
        "gravity": torque_scale(mechanism, s.q),
        "bias": torque_scale(mechanism, s.q, s.qd, wrenches=s.wrenches),
    }
    depth = max(depths(mechanism))  # each joint on the way to a body adds its own rounding
    out = {name: (_size(scale), tol * depth) for name, scale in scales.items()}
    if e.qdd is not None:
        # of solving I qdd = tau - h: cond(I), and how much torques that cancel exceed what accelerates
        lost = np.linalg.norm(np.linalg.inv(e.I), 2) * out["tau"][0] / _size(e.qdd)
        out["qdd"] = (_size(e.qdd), tol * (_condition(e.I) + float(lost)))
    return out


def _row(mechanism: Mechanism, route: Route, samples: list[State], expected: list[Answers], limits: list[dict]) -> Row:
    """Return the row of a route; a refusal is a reason, any other error a failure."""
    worst: dict[str, Comparison] = {}
    try:
        solve: Solver = route.prepare(mechanism)
        for s, e, limit in zip(samples, expected, limits, strict=True):
            answers = solve(s)
            for name, (scale, bound) in limit.items():
                new = Comparison(float(np.abs(getattr(answers, name) - getattr(e, name)).max()) / scale, bound)
                if name not in worst or new.ratio > worst[name].ratio:
                    worst[name] = new
    except (NotRun, ModelError) as error:
        return Row(route.name, route.what, {}, reason=str(error))
    except Exception as error:  # a route may fail in any way; its row says so, and the others still run
        return Row(route.name, route.what, worst, failure=f"{type(error).__name__}: {error}")
    return Row(route.name, route.what, worst)


def _size(x: Numbers) -> float:
    return float(np.abs(x).max()) or 1.0


def _condition(I: Numbers) -> float:  # noqa: E741 - the papers' letter
    return float(np.linalg.cond(I))


def _cell(c: Comparison | None) -> str:
    return "" if c is None else f"{c.difference:.1e}"


def _colon(text: str) -> str:
    return f": {text}" if text else ""
