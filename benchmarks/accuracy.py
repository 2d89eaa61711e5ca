"""Accuracy against work: the error of one motion over right-hand sides and over seconds, for several integrators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

import kinetree as kt
from book import Picture, Section
from kinetree.analysis.verify.mujoco import mjcf
from measure import Contender, Disagreement, Figure, interleaved
from pictures import Curve, Panel, draw
from report import Table
from robots import ROBOTS
from whole_runs import adaptive_run, fixed_run

SPAN = 1.0
STEPS = tuple(2e-2 / 2**k for k in range(6))
TOLERANCES = tuple(10.0**-k for k in range(3, 13, 2))
ASKED = 1e-6


@dataclass(frozen=True)
class Attempt:
    """One run: a function that returns the final position and the number of right-hand sides."""

    label: str
    setting: str
    run: Callable[[], tuple[np.ndarray, int]]


@dataclass(frozen=True)
class Outcome:
    """The cost of an attempt and its error."""

    label: str
    setting: str
    error: float
    evaluations: int
    seconds: Figure


def section(quick: bool, folder: Path) -> Section:
    """Return error over work of all methods, as a picture and a table."""
    found = outcomes(3 if quick else 9)
    labels = list(dict.fromkeys(o.label for o in found))
    groups = {label: [o for o in found if o.label == label] for label in labels}
    panels = [
        Panel("over right-hand sides", "right-hand sides", "error at the end  [rad]", _curves(groups, _evaluations)),
        Panel("over time", "seconds for one second of motion", "error at the end  [rad]", _curves(groups, _seconds)),
    ]
    draw(folder / "accuracy.svg", panels)
    rows = []
    for label, group in groups.items():
        good = [o for o in group if o.error <= ASKED]
        if good:
            best = min(good, key=lambda o: o.seconds.median)
            cells = (best.setting, f"{best.error:.1e}", _count(best), best.seconds.times(1e3).text())
        else:
            best = min(group, key=lambda o: o.error)
            cells = (f"{best.setting}: not reached", f"{best.error:.1e}", _count(best), "-")
        rows.append((label, *cells))
    quickest = {
        who: min(o.seconds.median for o in found if o.error <= ASKED and o.label.startswith(who))
        for who in ("ours", "SciPy", "MuJoCo")
        if any(o.error <= ASKED and o.label.startswith(who) for o in found)
    }
    note = (
        f"A UR5 falls from rest for {SPAN:g} s; the error is the largest of its six angles at the end, against our "
        "DOP853 at 1e-13, with which SciPy's DOP853 on Pinocchio at 1e-13 agrees. Of each method, the cheapest run "
        f"with an error below {ASKED:g} rad. SciPy calls Pinocchio's `aba`; MuJoCo steps in one call, contacts and "
        "constraints off."
    )
    told = ", ".join(f"{t * 1e3:.2g} ms ({who})" for who, t in quickest.items())
    return Section(
        "Accuracy against work",
        f"One second of a falling UR5 to {ASKED:g} rad takes {told}.",
        (
            Table(
                f"To {ASKED:g} rad", ("method", "setting", "error", "right-hand sides", "time [ms]"), tuple(rows), note
            ),
        ),
        (Picture("accuracy.svg", "Error at the end over right-hand sides and over seconds"),),
    )


def outcomes(rounds: int) -> list[Outcome]:
    """Return the cost of every method and setting, all timed in turn."""
    arm = kt.load(ROBOTS[0].path)
    q0 = np.random.default_rng(3).normal(size=arm.nq)
    attempts = [*_ours(arm, q0), *_scipy(arm, q0), *_mujoco(arm, q0)]
    truth = _adaptive(arm, q0, "dop853", 1e-13)()[0]
    other = _solve(q0, "DOP853", 1e-13)()[0]
    if not np.abs(truth - other).max() <= 1e-9:
        raise Disagreement(f"the reference and SciPy's on Pinocchio differ by {np.abs(truth - other).max():.1e} rad")
    ends = [a.run() for a in attempts]
    times = interleaved({f"{a.label} {a.setting}": Contender(a.run, 1) for a in attempts}, rounds)
    return [
        Outcome(
            a.label, a.setting, float(np.abs(q - truth).max()), count,
            Figure.of(times[f"{a.label} {a.setting}"]).times(1e-9),
        )
        for a, (q, count) in zip(attempts, ends, strict=True)
    ]  # fmt: skip


def _ours(arm: kt.System, q0: np.ndarray) -> list[Attempt]:
    out = [
        Attempt(f"ours, {name}", f"rtol {tolerance:g}", _adaptive(arm, q0, name, tolerance))
        for name in ("dopri5", "dop853")
        for tolerance in TOLERANCES
    ]
    for name, stages in (("rk4", 4), ("gauss", 2)):
        step = fixed_run(arm.mechanism, name)
        for dt in STEPS:
            # The evaluations of an implicit step depend on the convergence of its stages and are not counted.
            count = stages * round(SPAN / dt) if name == "rk4" else 0
            run = lambda step=step, dt=dt, count=count: (  # noqa: E731
                step(q0, np.zeros(arm.nv), np.array([0.0, SPAN]), dt)[0][-1],
                count,
            )
            out.append(Attempt(f"ours, {name}", f"dt {dt:g}", run))
    return out


def _adaptive(arm: kt.System, q0: np.ndarray, name: str, tolerance: float) -> Callable[[], tuple[np.ndarray, int]]:
    integrate, times = adaptive_run(arm.mechanism, name), np.array([0.0, SPAN])

    def run() -> tuple[np.ndarray, int]:
        q, *_, report = integrate(q0, np.zeros(arm.nv), times, tolerance)
        return q[-1], int(report[0])

    return run


def _scipy(arm: kt.System, q0: np.ndarray) -> list[Attempt]:
    return [
        Attempt(f"SciPy {name} on Pinocchio", f"rtol {tolerance:g}", _solve(q0, name, tolerance))
        for name in ("RK45", "DOP853", "LSODA")
        for tolerance in TOLERANCES
    ]


def _solve(q0: np.ndarray, name: Any, tolerance: float) -> Callable[[], tuple[np.ndarray, int]]:
    model = pin.buildModelFromUrdf(str(ROBOTS[0].path))
    data, n, still = model.createData(), model.nq, np.zeros(model.nv)

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], pin.aba(model, data, y[:n], y[n:], still)])

    def run() -> tuple[np.ndarray, int]:
        start = np.concatenate([q0, still])
        found = solve_ivp(rates, (0.0, SPAN), start, method=name, rtol=tolerance, atol=tolerance / 100)
        return found.y[:n, -1], found.nfev

    return run


def _mujoco(arm: kt.System, q0: np.ndarray) -> list[Attempt]:
    kinds = (("RK4", mujoco.mjtIntegrator.mjINT_RK4, 4), ("implicitfast", mujoco.mjtIntegrator.mjINT_IMPLICITFAST, 1))
    out = []
    for name, integrator, stages in kinds:
        for dt in STEPS:
            model = mujoco.MjModel.from_xml_string(mjcf(arm.mechanism))
            model.opt.integrator, model.opt.timestep = integrator, dt
            data, count = mujoco.MjData(model), round(SPAN / dt)

            def run(model=model, data=data, count=count, stages=stages) -> tuple[np.ndarray, int]:
                mujoco.mj_resetData(model, data)
                data.qpos[:] = q0
                mujoco.mj_step(model, data, nstep=count)
                return data.qpos.copy(), stages * count

            out.append(Attempt(f"MuJoCo {name}", f"dt {dt:g}", run))
    return out


def _evaluations(o: Outcome) -> float:
    return float(o.evaluations)


def _count(o: Outcome) -> str:
    return f"{o.evaluations:,}" if o.evaluations else "not counted"


def _seconds(o: Outcome) -> float:
    return o.seconds.median


def _curves(groups: dict[str, list[Outcome]], work: Callable[[Outcome], float]) -> list[Curve]:
    out = []
    for label, group in groups.items():
        points = [(work(o), o.error) for o in group if work(o) > 0 and 0 < o.error < 1 and math.isfinite(o.error)]
        if points:
            x, y = zip(*sorted(points), strict=True)
            out.append(Curve(label, x, y, dashed=not label.startswith("ours")))
    return out
