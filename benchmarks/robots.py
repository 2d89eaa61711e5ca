"""Arms, humanoids and a quadruped of a public collection: batches and single calls, compared with Pinocchio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

import kinetree as kt
from book import Section
from kinetree.joints import kind
from measure import Contender, Disagreement, Figure, agree, interleaved, ratio
from report import Table
from robot_files import MORE, ROBOTS, TITLE, Robot

AGREE, EPS = 1e-10, float(np.finfo(float).eps)
BATCHES = (4096, 100_000)
ROWS = 1000
AIMS = {("Talos", "inverse_dynamics", 100_000): 30.0, ("Talos", "forward_dynamics", 100_000): 38.0}
"""Target ratios of single entries, instead of that of the robot."""
SINGLE = {
    ("UR5", "inverse_dynamics"): 0.35, ("UR5", "forward_dynamics"): 0.2,
    ("Talos", "inverse_dynamics"): 0.4, ("Talos", "forward_dynamics"): 0.3,
}  # fmt: skip
"""The largest ratios of a single checked call to the peer's."""
FUNCTIONS: dict[str, Callable[..., Any]] = {"inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba}
WHOLE = {"inverse_dynamics": pin.rneaInParallel, "forward_dynamics": pin.abaInParallel}
"""The peer's own functions for whole batches."""


@dataclass(frozen=True)
class Comparison:
    """The times of one function of one robot [ns], and the difference of the results."""

    robot: Robot
    function: str
    nv: int
    difference: float
    ours: dict[int, Figure]
    peer: Figure
    ratios: dict[int, Figure]
    bare_ratios: dict[int, Figure]
    empty_call: Figure
    one_joint_call: Figure
    single: Figure
    single_ratio: Figure
    whole: Figure
    whole_ratio: Figure


def compare(robot: Robot, name: str, rounds: int) -> Comparison:
    """Check that both libraries give the same results, then time them in turn."""
    root = () if robot.base == "fixed" else (pin.JointModelFreeFlyer(),)
    # Mimic joints are couplings in Kinetree. The peer ignores them, and so does `tree`.
    system, model = robot.rigid().tree, pin.buildModelFromUrdf(str(robot.path), *root)
    data = model.createData()
    peer, function = FUNCTIONS[name], system.function(name)
    order_q, order = orders_of(system, model)
    rng = np.random.default_rng(0)
    batches = {n: random_states(system, rng, n) for n in BATCHES}
    state = batches[BATCHES[0]]
    orders = (order_q, order, order)
    rows = list(zip(*(np.ascontiguousarray(x[:ROWS, o]) for x, o in zip(state, orders, strict=True)), strict=True))
    expected = np.array([peer(model, data, *row) for row in rows[:200]])
    found = function(*(x[:200] for x in state))[:, order]
    # The condition of the inertia matrix bounds the accuracy of accelerations: that of iCub is 1e12.
    condition = np.linalg.cond(system.inertia_matrix(state[0][:200])) if name == "forward_dynamics" else 0.0
    bound = np.maximum(AGREE, 8 * EPS * condition)
    difference = agree(f"{robot.name} {name}", found, expected, bound)
    whole, whole_out = batch_call(name, model, [x[:, o] for x, o in zip(state, orders, strict=True)])
    whole.call()
    agree(f"{robot.name} {name}, whole batch", whole_out.T[:200], expected, bound)

    one, empty, gufunc = near_empty(1), near_empty(0), function.gufunc
    outs = {n: np.empty((n, system.nv)) for n in BATCHES}
    contenders: dict[str, Contender] = {}
    for n in BATCHES:
        contenders[f"ours {n}"] = Contender(lambda n=n: gufunc(*batches[n], out=outs[n]), n)
    contenders |= {
        "peer": calls(peer, model, data, rows),
        "peer, whole": whole,
        "one joint": calls(peer, *one, [(np.full(1, 0.1),) * 3] * ROWS),
        "empty": calls(peer, *empty, [(np.zeros(0),) * 3] * ROWS),
        "method": own_calls(system, name, list(zip(*(x[:ROWS] for x in state), strict=True))),
    }
    times = interleaved(contenders, rounds)
    return Comparison(
        robot,
        name,
        system.nv,
        difference,
        {n: Figure.of(times[f"ours {n}"]) for n in BATCHES},
        Figure.of(times["peer"]),
        {n: ratio(times["peer"], times[f"ours {n}"]) for n in BATCHES},
        {n: ratio(times["peer"], times[f"ours {n}"], times["one joint"]) for n in BATCHES},
        Figure.of(times["empty"]),
        Figure.of(times["one joint"]),
        Figure.of(times["method"]),
        ratio(times["method"], times["peer"]),
        Figure.of(times["peer, whole"]),
        ratio(times["peer, whole"], times[f"ours {BATCHES[0]}"]),
    )


def section(quick: bool) -> Section:
    """Return batches and single calls of all robots."""
    rounds = 5 if quick else 25
    found = [compare(robot, name, rounds) for robot in (*ROBOTS, *MORE) for name in FUNCTIONS]
    rows, singles = [], []
    for c in found:
        who = (f"{c.robot.name} (nv = {c.nv})", TITLE[c.function])
        for n in BATCHES:
            aim = _aim(c, n)
            target = "-" if aim is None else f">= {aim:g}: {'met' if c.ratios[n].median >= aim else 'missed'}"
            ours, peer = c.ours[n].text(), c.peer.text(4)
            beside = (c.whole.text(4), c.whole_ratio.text()) if n == BATCHES[0] else ("", "")
            rows.append((*who, f"{n:,}", ours, peer, c.ratios[n].text(), target, c.bare_ratios[n].text(), *beside))
        most = SINGLE.get((c.robot.name, c.function))
        target = "-" if most is None else f"<= {most:g}: {'met' if c.single_ratio.median <= most else 'missed'}"
        singles.append((*who, c.single.text(), c.peer.text(4), c.single_ratio.text(), target))
    told = ", ".join(
        f"{TITLE[c.function]} {c.empty_call.median:.0f} ns without joints, {c.one_joint_call.median:.0f} ns with one"
        for c in found[:2]
    )
    note = (
        "Ours: one call of the gufunc on plain row-major float64 arrays with `out=`, ns per sample. Pinocchio: `rnea` "
        "and `aba` in a Python loop over rows prepared beforehand, ns per call; `less the call` subtracts from each "
        f"one on a model of a single joint, which is the call from Python and little dynamics ({told}). Its own batch "
        "is `rneaInParallel` and `abaInParallel` on one thread, one call for 4,096 samples, without a call from Python "
        f"for each: the fairest of the three. Each of 200 results agrees to {AGREE:g} relative, or to 8 eps times the "
        "condition of the inertia matrix where that is more (iCub, whose results are "
        f"{max(c.difference for c in found):.1e} apart); all others to {_worst(found):.1e}."
    )
    columns = (
        "robot", "function", "batch", "ours [ns]", "Pinocchio [ns]", "ratio", "target", "ratio less the call",
        "Pinocchio's own batch [ns]", "ratio to that",
    )  # fmt: skip
    batches = Table("Batches against Pinocchio", columns, tuple(rows), note)
    one = Table(
        "One single call",
        ("robot", "function", "our method, checked [ns]", "Pinocchio [ns]", "ratio", "target"),
        tuple(singles),
        "From Python, one sample per call, in a loop over rows prepared beforehand; the result is a new array, or the "
        "array in Pinocchio's data. The method refuses input that is not finite.",
    )
    return Section("Arms and humanoids", _headline(found), (batches, one))


def calls(peer: Callable[..., Any], model: Any, data: Any, rows: list) -> Contender:
    """Return a loop over rows that contains only the calls."""

    def loop() -> None:
        for a, b, c in rows:
            peer(model, data, a, b, c)

    return Contender(loop, len(rows))


def own_calls(system: kt.System, name: str, rows: list) -> Contender:
    """Return the same loop with calls of our method, as users write them."""

    def inverse() -> None:
        for a, b, c in rows:
            system.inverse_dynamics(a, b, c)

    def forward() -> None:
        for a, b, c in rows:
            system.forward_dynamics(a, b, c)

    return Contender({"inverse_dynamics": inverse, "forward_dynamics": forward}[name], len(rows))


def batch_call(name: str, model: Any, state: list[np.ndarray], threads: int = 1) -> tuple[Contender, np.ndarray]:
    """Return the peer's own call on a batch, with samples in columns as it requires, and its output array."""
    pool, call = pin.ModelPool(model, threads), WHOLE[name]
    columns, out = [np.ascontiguousarray(x).T for x in state], np.zeros((model.nv, len(state[0])), order="F")
    return Contender(lambda: call(threads, pool, *columns, out), len(state[0])), out


def _headline(found: list[Comparison]) -> str:
    ratios = [c.ratios[n].median for c in found for n in BATCHES]
    bare = [c.bare_ratios[n].median for c in found for n in BATCHES]
    aims = [c.ratios[n].median >= aim for c in found for n in BATCHES if (aim := _aim(c, n)) is not None]
    single, whole = [1 / c.single_ratio.median for c in found], [c.whole_ratio.median for c in found]
    return (
        f"Batches are {min(ratios):.0f} to {max(ratios):.0f} times as fast as Pinocchio looped from Python "
        f"({min(bare):.0f} to {max(bare):.0f} less its calls) and {min(whole):.0f} to {max(whole):.0f} times as fast "
        f"as its own batch calls; {sum(aims)} of {len(aims)} ratios meet their targets. A single checked call is "
        f"{min(single):.2g} to {max(single):.2g} times as fast."
    )


def _aim(c: Comparison, batch: int) -> float | None:
    return AIMS.get((c.robot.name, c.function, batch), c.robot.target)


def _worst(found: list[Comparison]) -> float:
    return max(c.difference for c in found if not c.robot.name.startswith("iCub"))


def random_states(system: kt.System, rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Return coordinates, velocities and accelerations (or torques) of n samples."""
    q = rng.normal(size=(n, system.nq))
    at = 0
    for joint in system.joints:
        count = kind(joint.kind).NQ
        if joint.kind == "free":
            q[:, at + 3 : at + 7] /= np.linalg.norm(q[:, at + 3 : at + 7], axis=1, keepdims=True)
        at += count
    return [q, *rng.normal(size=(2, n, system.nv))]


def orders_of(system: kt.System, model: pin.Model) -> tuple[list[int], list[int]]:
    """Return the indices of Kinetree's coordinates and velocities in the peer's order."""
    places, at_q, at_v = {}, 0, 0
    for joint in system.joints:
        size = kind(joint.kind)
        name = "root_joint" if joint.kind == "free" else joint.name
        speeds = list(range(at_v, at_v + size.NV))
        # The peer's free joint has [v; omega], ours [omega; v].
        places[name] = (range(at_q, at_q + size.NQ), speeds[3:] + speeds[:3] if joint.kind == "free" else speeds)
        at_q, at_v = at_q + size.NQ, at_v + size.NV
    if (model.nq, model.nv) != (system.nq, system.nv) or not set(model.names[1:]) <= set(places):
        raise Disagreement(f"{model.name}: both must have the same joints")
    names = list(model.names[1:])
    return [k for n in names for k in places[n][0]], [k for n in names for k in places[n][1]]


def near_empty(joints: int) -> tuple[pin.Model, pin.Data]:
    """Return a model with no joint or one, whose calls cost little more than the call from Python itself."""
    model = pin.Model()
    if joints:
        joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
        model.appendBodyToJoint(joint, pin.Inertia(1.0, np.array([0.1, 0.0, 0.0]), np.eye(3)), pin.SE3.Identity())
    return model, model.createData()
