"""Steps of Runge-Kutta 4 of one arm and of thousands, compared with MuJoCo (steps and rollouts) and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from mujoco.rollout import Rollout
from scipy.integrate import RK45

import kinetree as kt
from book import Section
from kinetree.analysis.verify.mujoco import mjcf
from measure import Contender, Figure, agree, all_cores, interleaved, ratio
from report import Table
from robots import ROBOTS
from whole_runs import fixed_run

ARMS, STEP, SHORT, LONG = 4096, 1e-3, 10, 1000
FEWER = 512
"""Arms of a rollout, enough to occupy its threads."""


@dataclass(frozen=True)
class Arms:
    """The UR5 in each library, with initial states at rest."""

    system: kt.System
    model: Any
    q0: np.ndarray

    @classmethod
    def make(cls) -> Arms:
        """Read the arm; MuJoCo's model has contacts and constraints off, and steps by RK4."""
        system = kt.load(ROBOTS[0].path)
        model = mujoco.MjModel.from_xml_string(mjcf(system.mechanism))
        model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
        return cls(system, model, np.random.default_rng(0).normal(size=(ARMS, system.nq)))

    def mujoco_steps(self) -> Callable[[int], np.ndarray]:
        """Return a function that steps the first arm from its start."""
        data = mujoco.MjData(self.model)

        def steps(count: int) -> np.ndarray:
            mujoco.mj_resetData(self.model, data)
            data.qpos[:] = self.q0[0]
            mujoco.mj_step(self.model, data, nstep=count)
            return data.qpos.copy()

        return steps

    def rollout(self, threads: int) -> Callable[[], np.ndarray]:
        """Return a function that steps many arms by MuJoCo's own batch call, and start the threads of that call."""
        workers, datas = Rollout(nthread=threads), [mujoco.MjData(self.model) for _ in range(max(threads, 1))]
        nq = self.system.nq
        starts = np.concatenate([np.zeros((FEWER, 1)), self.q0[:FEWER], np.zeros((FEWER, nq))], axis=1)
        room = np.empty((FEWER, SHORT, starts.shape[1]))

        def steps() -> np.ndarray:
            workers.rollout(self.model, datas, starts, nstep=SHORT, state=room)
            return room[:, -1, 1 : 1 + nq]

        return steps

    def scipy_steps(self, forward: Callable[..., np.ndarray]) -> Callable[[], np.ndarray]:
        """Return a function that takes 20 steps of equal length by SciPy's RK45 on given forward dynamics."""
        nq, still = self.system.nq, np.zeros(self.system.nv)
        start = np.concatenate([self.q0[0], still])

        def rates(t: float, y: np.ndarray) -> np.ndarray:
            return np.concatenate([y[nq:], forward(y[:nq], y[nq:], still)])

        def steps() -> np.ndarray:
            solver = RK45(rates, 0.0, start, 1.0, max_step=STEP, first_step=STEP, rtol=1e3, atol=1e3)
            for _ in range(20):
                solver.step()
            return solver.y[:nq]

        return steps


def section(quick: bool) -> Section:
    """Return the steps per second of every contender, and the ratios of Kinetree to them."""
    with all_cores() as cores:
        times, differences = _measure(cores, 3 if quick else 15)
    rows = [(name, Figure.of([1e9 / x for x in values]).text(4)) for name, values in times.items()]
    rated = [
        ("4,096 arms", "MuJoCo, one arm", 50),
        ("one arm", "MuJoCo, one arm", 5),
        ("4,096 arms", "MuJoCo rollout, 1 thread", None),
        (f"4,096 arms, {cores} threads", f"MuJoCo rollout, {cores} threads", None),
        ("4,096 arms", "SciPy RK45 on our gufunc, one arm", 50),
        ("one arm", "SciPy RK45 on our gufunc, one arm", None),
        ("one arm", "SciPy RK45 on Pinocchio's aba, one arm", None),
    ]
    ratios = []
    for ours, peer, target in rated:
        figure = ratio(times[peer], times[f"ours, {ours}"])
        verdict = "-" if target is None else f">= {target}: {'met' if figure.median >= target else 'missed'}"
        ratios.append((f"ours, {ours}", peer, figure.text(), verdict))
    note = (
        f"UR5 arms falling freely, steps of {STEP:g} s of the classical Runge-Kutta method. MuJoCo: `mj_step` with "
        f"{LONG} steps per call, and `mujoco.rollout` of {FEWER} arms, {SHORT} steps per call; RK4, contacts and "
        "constraints off. SciPy: its RK45 (six evaluations per step, ours four) with steps of the same length. After "
        f"{LONG} steps positions agree with MuJoCo's to {differences[0]:.1e} relative; rolled out, to "
        f"{differences[1]:.1e} after {SHORT}; with SciPy's on Pinocchio to {differences[2]:.1e} after 20."
    )
    batch, one = (ratio(times["MuJoCo, one arm"], times[f"ours, {k}"]).median for k in ("4,096 arms", "one arm"))
    rate = 1e3 / Figure.of(times["ours, 4,096 arms"]).median
    return Section(
        "Steps of a simulation",
        f"{rate:.1f} million Runge-Kutta steps of a UR5 per second on one core in a batch, {batch:.0f} times MuJoCo's "
        f"rate; one arm alone {one:.0f} times.",
        (
            Table("Rates", ("contender", "steps/s"), tuple(rows), note),
            Table("Ratios", ("ours", "to", "ratio", "target"), tuple(ratios), "Of steps per second, round by round."),
        ),
    )


def _measure(cores: int, rounds: int) -> tuple[dict[str, list[float]], tuple[float, float, float]]:
    """Return the ns per step of all contenders, and the differences of the results."""
    arms = Arms.make()
    step = fixed_run(arms.system.mechanism, "rk4")
    q0, rest = arms.q0, np.zeros((ARMS, arms.system.nv))
    short, long = np.array([0.0, SHORT * STEP]), np.array([0.0, LONG * STEP])
    peer, rollouts = arms.mujoco_steps(), {n: arms.rollout(n if n > 1 else 0) for n in sorted({1, cores})}
    model = pin.buildModelFromUrdf(str(ROBOTS[0].path))
    data = model.createData()
    ours_scipy = arms.scipy_steps(arms.system.function("forward_dynamics").gufunc)
    pin_scipy = arms.scipy_steps(lambda q, v, tau: pin.aba(model, data, q, v, tau))
    differences = (
        agree("1000 steps", step(q0[0], rest[0], long, STEP)[0][-1], peer(LONG), 1e-9),
        max(agree("rollout", step(q0, rest, short, STEP)[0][:FEWER, -1], r(), 1e-9) for r in rollouts.values()),
        agree("SciPy", step(q0[0], rest[0], np.array([0.0, 20 * STEP]), STEP)[0][-1], pin_scipy(), 1e-6),
    )
    halves = [slice(ARMS * k // cores, ARMS * (k + 1) // cores) for k in range(cores)]

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(cores) as pool:
        contenders = {
            "ours, 4,096 arms": Contender(lambda: step(q0, rest, short, STEP), SHORT * ARMS),
            f"ours, 4,096 arms, {cores} threads": Contender(
                lambda: list(pool.map(lambda s: step(q0[s], rest[s], short, STEP), halves)), SHORT * ARMS
            ),
            "ours, one arm": Contender(lambda: step(q0[0], rest[0], long, STEP), LONG),
            "MuJoCo, one arm": Contender(lambda: peer(LONG), LONG),
            **{f"MuJoCo rollout, {n} thread{'s' * (n > 1)}": Contender(r, SHORT * FEWER) for n, r in rollouts.items()},
            "SciPy RK45 on our gufunc, one arm": Contender(ours_scipy, 20),
            "SciPy RK45 on Pinocchio's aba, one arm": Contender(pin_scipy, 20),
        }
        return interleaved(contenders, rounds), differences
