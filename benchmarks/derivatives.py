"""Derivatives of inverse and forward dynamics: batches and single calls, compared with Pinocchio; products."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

import kinetree as kt
from book import Section
from measure import CORES, Contender, Figure, agree, all_cores, interleaved, ratio
from report import Table
from robot_files import MORE, ROBOTS, TITLE, Robot
from robots import calls, orders_of, random_states

AGREE, EPS = 1e-11, float(np.finfo(float).eps)
BATCHES = (32, 256, 4096, 65536)
LARGEST = 2**30
"""The largest size of the results of a batch [bytes]; those of a humanoid have 35 KB per sample."""
LEAST = 256
"""The smallest batch to which the targets apply: smaller ones are mostly the call itself, but stay in the cache."""
PRODUCT_BATCH = 4096
ROWS = 300
CHOSEN = (*ROBOTS[:2], MORE[2])
"""An arm, an arm with a gripper, and a humanoid on a free base."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": pin.computeRNEADerivatives,
    "forward_dynamics": pin.computeABADerivatives,
}
AIMS = {
    "UR5": {"inverse_dynamics": 60.0, "forward_dynamics": 45.0},
    "Panda": {"inverse_dynamics": 35.0, "forward_dynamics": 30.0},
    "Talos, free base": {"inverse_dynamics": 20.0, "forward_dynamics": 20.0},
}
"""The least ratios to the peer in a batch; those of products to the function are in PRODUCTS."""
BOUND = "[why](../speed-of-derivatives.md)"
PRODUCTS = {"vjp": 3.0, "hvp": 8.0}
"""The largest ratios of the time of a product to that of its function."""


@dataclass(frozen=True)
class Comparison:
    """The times of the derivatives of one function of one robot [ns], the compile time [s], and the difference."""

    robot: Robot
    function: str
    nv: int
    difference: float
    compiled: float
    ours: dict[int, Figure]
    written: dict[int, Figure]
    peer: Figure
    ratios: dict[int, Figure]
    plain: dict[int, tuple[Figure, Figure]]
    """Times of calls with new arrays, and their ratios to the peer."""
    on_all_cores: dict[int, tuple[Figure, Figure]]
    """Times and ratios to the peer."""
    single: Figure
    single_ratio: Figure
    products: dict[str, Figure]


def compare(robot: Robot, name: str, rounds: int) -> Comparison:
    """Check that both libraries give the same results, then time them in turn."""
    root = () if robot.base == "fixed" else (pin.JointModelFreeFlyer(),)
    system, model = robot.rigid().tree, pin.buildModelFromUrdf(str(robot.path), *root)
    data, peer = model.createData(), FUNCTIONS[name]
    method = getattr(system, f"{name}_derivatives")
    order_q, order = orders_of(system, model)
    sizes = [n for n in BATCHES if n * 24 * system.nv**2 <= LARGEST]
    batches = {n: random_states(system, np.random.default_rng(0), n) for n in sizes}
    state = batches[PRODUCT_BATCH]
    rows = list(zip(*(np.ascontiguousarray(x[:ROWS, o]) for x, o in zip(state, (order_q, order, order), strict=True)),
                    strict=True))  # fmt: skip
    start = time.perf_counter()
    function = system.function(name).jacobian(("q", "qd", "qdd" if name == "inverse_dynamics" else "tau"))
    compiled = time.perf_counter() - start
    difference = _checked(f"{robot.name} {name}", system, method, peer, model, data, rows, state, order)

    contenders: dict[str, Contender] = {}
    divided: dict[str, Contender] = {}
    cores = len(CORES) or 1
    for n, x in batches.items():
        outs = tuple(np.empty((n, system.nv, system.nv)) for _ in range(3))
        divided[f"ours {n}"] = Contender(
            lambda x=x, outs=outs: function.unchecked(tuple(x), out=outs, threads=cores), n
        )
        contenders[f"ours {n}"] = Contender(lambda x=x, outs=outs: function(*x, out=outs), n)
        contenders[f"plain {n}"] = Contender(lambda x=x: method(*x), n)
        contenders[f"written {n}"] = Contender(lambda outs=outs: [out.fill(0.5) for out in outs], n)
    mine = list(zip(*(x[:ROWS] for x in state), strict=True))

    def single() -> None:
        for a, b, c in mine:
            method(a, b, c)

    contenders |= {"peer": calls(peer, model, data, rows), "method": Contender(single, len(mine))}
    contenders |= _products(system, name, state)
    times = interleaved(contenders, rounds)
    with all_cores():
        threaded = interleaved({**divided, "peer": contenders["peer"]}, rounds)
    on_all_cores = {
        n: (Figure.of(threaded[f"ours {n}"]), ratio(threaded["peer"], threaded[f"ours {n}"])) for n in sizes
    }
    return Comparison(
        robot,
        name,
        system.nv,
        difference,
        compiled,
        {n: Figure.of(times[f"ours {n}"]) for n in sizes},
        {n: Figure.of(times[f"written {n}"]) for n in sizes},
        Figure.of(times["peer"]),
        {n: ratio(times["peer"], times[f"ours {n}"]) for n in sizes},
        {n: (Figure.of(times[f"plain {n}"]), ratio(times["peer"], times[f"plain {n}"])) for n in sizes},
        on_all_cores,
        Figure.of(times["method"]),
        ratio(times["method"], times["peer"]),
        {kind: ratio(times[kind], times["function"]) for kind in PRODUCTS},
    )


def _checked(what: str, system, method, peer, model, data, rows, state, order) -> float:
    """Return the largest relative difference of the first two derivatives at twenty states."""
    found = [x[:, order][:, :, order] for x in method(*(x[:20] for x in state))[:2]]
    wanted = [[np.array(x) for x in peer(model, data, *row)[:2]] for row in rows[:20]]
    condition = np.linalg.cond(system.inertia_matrix(state[0][:20])) if "forward" in what else np.ones(20)
    bound = np.maximum(AGREE, 8 * EPS * condition)
    flat = [(a.reshape(20, -1), np.array([w[k] for w in wanted]).reshape(20, -1)) for k, a in enumerate(found)]
    return max(agree(f"derivatives of {what}", a, b, bound) for a, b in flat)


def _products(system: kt.System, name: str, state: list[np.ndarray]) -> dict[str, Contender]:
    """Return the function itself and its products with cotangents."""
    function, n = system.function(name), len(state[0])
    weights = np.random.default_rng(1).normal(size=(n, system.nv))
    tangents = [weights[::-1].copy() for _ in range(3)]
    out = np.empty((n, system.nv))
    found = {"function": Contender(lambda: function(*state, out=out), n)}
    for kind in PRODUCTS:
        derived = getattr(function, kind)()
        outs = tuple(np.empty((n, *a.shape)) for a in derived.outputs)
        more = (weights, *tangents) if kind == "hvp" else (weights,)
        found[kind] = Contender(lambda f=derived, more=more, outs=outs: f(*state, *more, out=outs), n)
    return found


def _verdict(figure: Figure, aim: float, batch: int) -> str:
    """Return the least ratio in a batch, and whether it is reached."""
    return f">= {aim:g}: {'met' if figure.median >= aim else 'missed'}" if batch >= LEAST else "-"


def section(quick: bool) -> Section:
    """Return the derivatives of all robots."""
    found = [compare(robot, name, 5 if quick else 25) for robot in CHOSEN for name in FUNCTIONS]
    rows, divided, singles, products = [], [], [], []
    for c in found:
        who = (f"{c.robot.name} (nv = {c.nv})", TITLE[c.function])
        aim = AIMS[c.robot.name][c.function]
        for n in c.ours:
            row = [*who, f"{n:,}", c.ours[n].text(), c.written[n].text(), c.peer.text(4), c.ratios[n].text()]
            row.append(_verdict(c.ratios[n], aim, n))
            rows.append((*row, *(x.text() for x in c.plain[n])))
            shared, shared_ratio = c.on_all_cores[n]
            divided.append((*who, f"{n:,}", shared.text(), shared_ratio.text(), _verdict(shared_ratio, aim, n)))
        target = f"<= 1: {'met' if c.single_ratio.median <= 1 else 'missed'}"
        singles.append((*who, c.single.text(4), c.peer.text(4), c.single_ratio.text(), target, f"{c.compiled:.2f}"))
        verdicts = (
            f"<= {most:g}: {'met' if c.products[kind].median <= most else 'missed'}" for kind, most in PRODUCTS.items()
        )
        cells = zip((c.products[kind].text() for kind in PRODUCTS), verdicts, strict=True)
        products.append((*who, *(x for pair in cells for x in pair)))
    batch = Table(
        "Derivatives in batches against Pinocchio",
        (
            "robot",
            "function",
            "batch",
            "ours [ns]",
            "only written [ns]",
            "Pinocchio [ns]",
            "ratio",
            "target",
            "plain call [ns]",
            "ratio",
        ),
        tuple(rows),
        "All three matrices (with respect to q, qd, and qdd or tau). Ours: one call with `out=`, ns per sample, on one "
        "core. Pinocchio: `computeRNEADerivatives` and `computeABADerivatives` in a "
        "Python loop, ns per call. Only written: the same arrays filled with a number by NumPy on one core, without "
        "arithmetic. Plain call: the method, with checks and new arrays in every call. Pinocchio's `data` are the same "
        "matrices in every call, and zeros of branches that do not meet are written once; ours are written in every "
        "call. The matrices of a humanoid are 35 KB per sample, so that batches are limited by memory "
        f"({BOUND}). Results agree to {max(c.difference for c in found):.1e} relative.",
    )
    cores = Table(
        f"Derivatives in batches on {len(CORES) or 1} cores",
        (
            "robot",
            "function",
            "batch",
            "ours [ns]",
            "ratio",
            "target",
        ),
        tuple(divided),
        "The same calls with `threads=`, which divide a batch only where that shortens it. Pinocchio takes one core "
        "from Python: it has no such functions for batches.",
    )
    single = Table(
        "Derivatives in single calls",
        ("robot", "function", "our method, checked [ns]", "Pinocchio [ns]", "ratio", "target", "compiled [s]"),
        tuple(singles),
        "From Python, one sample per call; compiled with an empty cache.",
    )
    product = Table(
        "Products of the Jacobian, as multiples of the time of the function",
        ("robot", "function", "vjp", "target", "hvp", "target"),
        tuple(products),
        f"With respect to all three inputs, for a batch of {PRODUCT_BATCH:,}.",
    )
    ratios = [x.median for c in found for x in c.ratios.values()]
    plain = [x.median for c in found for _, x in c.plain.values()]
    headline = (
        f"Derivatives of dynamics in batches are {min(ratios):.0f} to {max(ratios):.0f} times as fast as Pinocchio's "
        f"looped from Python, and {min(plain):.0f} to {max(plain):.0f} times in plain calls, with new arrays."
    )
    return Section("Derivatives", headline, (batch, cores, single, product))
