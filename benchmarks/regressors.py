"""Regressors of inverse dynamics in plain calls, compared with Pinocchio's from Python."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from book import Section
from measure import Contender, Figure, agree, interleaved, ratio
from report import Table
from robot_files import ROBOTS
from robots import calls, orders_of, random_states

AGREE = 1e-11
BATCHES = (256, 4096)
ROWS = 500
CHOSEN = ROBOTS[:2]
AIMS = {"UR5": 27.0}
"""The least ratio to the peer in a batch."""


def section(quick: bool) -> Section:
    """Return regressors of arms in plain calls with new arrays, and with `out=`."""
    rows, ratios = [], []
    for robot in CHOSEN:
        system, model = robot.rigid().tree, pin.buildModelFromUrdf(str(robot.path))
        data, (order_q, order) = model.createData(), orders_of(system, model)
        state = random_states(system, np.random.default_rng(0), BATCHES[-1])
        orders = (order_q, order, order)
        single = [np.ascontiguousarray(x[:ROWS, o]) for x, o in zip(state, orders, strict=True)]
        peers = list(zip(*single, strict=True))
        bodies = [system.mechanism.body_indices[system.joints[k].child] for k in order]
        columns = [10 * k + n for k in bodies for n in range(10)]
        found = system.regressor(*(x[:50] for x in state))[:, order][:, :, columns]
        expected = [pin.computeJointTorqueRegressor(model, data, *x).copy() for x in peers[:50]]
        agree(f"regressor of {robot.name}", found.reshape(50, -1), np.reshape(expected, (50, -1)), AGREE)
        contenders = {"peer": calls(pin.computeJointTorqueRegressor, model, data, peers)}
        for n in BATCHES:
            x, out = [a[:n] for a in state], np.empty((n, system.nv, 10 * len(system.bodies)))
            contenders[f"plain {n}"] = Contender(lambda s=system, x=x: s.regressor(*x), n)
            contenders[f"out {n}"] = Contender(lambda s=system, x=x, out=out: s.regressor(*x, out=out), n)
            contenders[f"written {n}"] = Contender(lambda out=out: out.fill(0.5), n)
        times = interleaved(contenders, 5 if quick else 25)
        for n in BATCHES:
            plain, given = (ratio(times["peer"], times[f"{how} {n}"]) for how in ("plain", "out"))
            aim = AIMS.get(robot.name)
            verdict = "-" if aim is None else f">= {aim:g}: {'met' if plain.median >= aim else 'missed'}"
            texts = (Figure.of(times[f"{how} {n}"]).text() for how in ("plain", "out", "written"))
            rows.append((robot.name, f"{n:,}", *texts, Figure.of(times["peer"]).text(4), plain.text(), verdict,
                         given.text()))  # fmt: skip
            ratios.append(plain.median)
    table = Table(
        "Regressors against Pinocchio",
        ("robot", "batch", "plain call [ns]", "with out= [ns]", "only written [ns]", "Pinocchio [ns]", "ratio",
         "target", "ratio with out="),
        tuple(rows),
        "`arm.regressor(q, qd, qdd)` with checks and a new array, on one core, ns per sample, beside "
        "`computeJointTorqueRegressor` in a Python loop, ns per call. Only written: the same array filled with a "
        f"number by NumPy. Results agree to {AGREE:g} relative.",
    )  # fmt: skip
    words = f"Regressors of arms in plain calls are {min(ratios):.0f} to {max(ratios):.0f} times as fast as Pinocchio's"
    return Section("Regressors", f"{words} looped from Python.", (table,))
