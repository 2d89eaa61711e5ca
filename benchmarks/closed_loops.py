"""Forward dynamics of closed mechanisms, compared with Pinocchio's constraint dynamics at its best settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

import kinetree as kt
from book import Section
from kinetree.analysis.verify.pinocchio import POINTS, build, rigid_constraints
from kinetree.model.mechanism import resolve_parts
from measure import Contender, Figure, agree, interleaved, ratio
from report import Table
from robots import near_empty

NAMES = ("four_bar", "three_rrr", "stewart")
BATCH, ROWS, AGREE = 4096, 500, 1e-8
PLANAR = {**POINTS, "revolute": ((0.0, 0.0, 0.0),)}
"""Constraint points for planar mechanisms: one per pin is enough, and a second would slow the peer down."""
SETTINGS = ((1e-12, 1e-8, 10), (1e-12, 1e-12, 1))
"""Candidate proximal settings (accuracy, mu, largest number of iterations); the fastest that agrees is taken."""
ALIGNED = {
    ("revolute", (1.0, 0.0, 0.0)): pin.JointModelRX, ("revolute", (0.0, 1.0, 0.0)): pin.JointModelRY,
    ("revolute", (0.0, 0.0, 1.0)): pin.JointModelRZ, ("prismatic", (1.0, 0.0, 0.0)): pin.JointModelPX,
    ("prismatic", (0.0, 1.0, 0.0)): pin.JointModelPY, ("prismatic", (0.0, 0.0, 1.0)): pin.JointModelPZ,
}  # fmt: skip
"""Joints with faster special code in Pinocchio."""


@dataclass(frozen=True)
class Constrained:
    """The peer: a model with its constraints and settings."""

    model: Any
    data: Any
    constraints: Any
    states: Any
    settings: Any

    @classmethod
    def of(cls, model: Any, constraints: list[Any], settings: tuple[float, float, int]) -> Constrained:
        """Prepare the data of a call."""
        models, states = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        models.extend(constraints)
        states.extend([c.createData() for c in models])
        data = model.createData()
        pin.initConstraintDynamics(model, data, models, states)
        return cls(model, data, models, states, pin.ProximalSettings(*settings))

    def __call__(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the accelerations."""
        return pin.constraintDynamics(
            self.model, self.data, q, v, tau, self.constraints, self.states, self.settings
        )  # fmt: skip

    def loop(self, rows: list) -> Contender:
        """Return a loop of calls on rows that are prepared beforehand."""
        call, model, data, models, states, settings = pin.constraintDynamics, *self._parts()

        def calls() -> None:
            for q, v, tau in rows:
                call(model, data, q, v, tau, models, states, settings)

        return Contender(calls, len(rows))

    def _parts(self) -> tuple[Any, ...]:
        return self.model, self.data, self.constraints, self.states, self.settings


def section(quick: bool) -> Section:
    """Return the times of every closed mechanism."""
    found = [compare(name, 5 if quick else 25) for name in NAMES]
    note = (
        "`forward_dynamics` at closed states, float64: ours in one call of the gufunc with `out=`, and as single "
        "checked calls; Pinocchio's `constraintDynamics` in a Python loop over rows prepared beforehand. It has one 3D "
        "point for each cut pin or ball, its special joints where axes allow, and the fastest of the proximal settings "
        f"{' and '.join(map(str, SETTINGS))} that agrees with ours to {AGREE:g} relative: the one in the table. `less "
        "the call` subtracts a call on a model of one joint without constraints."
    )
    columns = (
        "mechanism", "nv, equations", "batch [ns]", "one call [ns]", "Pinocchio [ns]", "ratio", "less the call",
        "one call: ratio", "settings", "agree to",
    )  # fmt: skip
    ratios = [f[1] for f in found]
    bare = [f[2] for f in found]
    return Section(
        "Closed loops",
        f"Batches are {min(ratios):.0f} to {max(ratios):.0f} times as fast as Pinocchio's constraint dynamics, "
        f"{min(bare):.0f} to {max(bare):.0f} times less its calls.",
        (Table("Forward dynamics with loops", columns, tuple(f[0] for f in found), note),),
    )


def compare(name: str, rounds: int) -> tuple[tuple[str, ...], float, float]:
    """Return a row of the table, the ratio, and the ratio less the cost of the peer's call."""
    system = kt.load(name)
    function, state = system.function("forward_dynamics"), closed_states(system, BATCH)
    mechanism = system.mechanism
    model, _, order = build(mechanism)
    rows = list(
        zip(*(np.ascontiguousarray(x[:ROWS]) for x in (state[0], *(y[:, order] for y in state[1:]))), strict=True)
    )
    found = function(*(x[:ROWS] for x in state))[:, order]
    peers, differences = {}, {}
    for settings in SETTINGS:
        peer = Constrained.of(quickest(mechanism, model), rigid_constraints(mechanism, points=PLANAR), settings)
        differences[settings] = agree(f"{name} {settings}", found, np.array([peer(*row) for row in rows]), AGREE)
        peers[settings] = peer
    out, method = np.empty((BATCH, system.nv)), system.forward_dynamics
    one = [x[0] for x in state]
    empty = Constrained.of(near_empty(1)[0], [], SETTINGS[-1])
    times = interleaved(
        {
            "ours": Contender(lambda: function.gufunc(*state, out=out), BATCH),
            "method": Contender(lambda: [method(*one) for _ in range(ROWS)], ROWS),
            "call": empty.loop([(np.full(1, 0.1),) * 3] * ROWS),
            **{str(settings): peer.loop(rows) for settings, peer in peers.items()},
        },
        rounds,
    )
    best = min(SETTINGS, key=lambda s: Figure.of(times[str(s)]).median)
    peer = times[str(best)]
    whole, bare = ratio(peer, times["ours"]), ratio(peer, times["ours"], times["call"])
    row = (
        name, f"{system.nv}, {len(system.closures)}",
        Figure.of(times["ours"]).text(), Figure.of(times["method"]).text(4),
        Figure.of(peer).text(4), whole.text(), bare.text(), ratio(peer, times["method"]).text(), str(best),
        f"{differences[best]:.0e}",
    )  # fmt: skip
    return row, whole.median, bare.median


def closed_states(system: kt.System, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return closed positions near the guess, velocities that keep the loops closed, and torques."""
    rng = np.random.default_rng(0)
    q0 = system.assemble()
    _, size, directions = np.linalg.svd(system.closure_jacobian(q0))
    free = directions[int((size > 1e-9).sum()) :]
    near = [system.assemble(system.integrate(q0, 0.1 * rng.normal(size=len(free)) @ free)) for _ in range(32)]
    q = np.array(near)[rng.integers(len(near), size=count)]
    qd = system.closing_speed(q, rng.normal(size=(count, system.nv)))
    return q, qd, rng.normal(size=(count, system.nv))


def quickest(mechanism: kt.Mechanism, model: Any) -> Any:
    """Return the peer's model with its special joints: those along an axis of the frame, and universal joints."""
    out = pin.Model()
    out.gravity = model.gravity
    moving = [j for j in resolve_parts(mechanism.joints, mechanism.values()) if j.kind != "fixed"]
    for number, joint in enumerate(moving, 1):
        made = model.joints[number]
        if (joint.kind, tuple(joint.axis)) in ALIGNED:
            made = ALIGNED[joint.kind, tuple(joint.axis)]()
        elif joint.kind == "universal":
            made = pin.JointModelUniversal(np.array(joint.axis), np.array(joint.axis2))
        out.addJoint(model.parents[number], made, model.jointPlacements[number], joint.name)
        out.appendBodyToJoint(number, model.inertias[number], pin.SE3.Identity())
    return out
