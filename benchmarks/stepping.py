"""Steps of Runge-Kutta 4 against MuJoCo's, and against SciPy on our gufunc: same model, same step, same answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kinetree as kt
from measure import Contender, Figure, interleaved
from robots import ROBOTS

ARMS, STEP = 4096, 1e-3


@dataclass(frozen=True)
class Stepping:
    """Steps a second of each contender, and the ratios of ours to it."""

    rates: dict[str, Figure]
    ratios: dict[str, Figure]
    difference: float


def compare_steps(rounds: int) -> Stepping:
    """Step UR5 arms by us, by MuJoCo (contacts off) and by SciPy calling our forward dynamics."""
    import mujoco
    from scipy.integrate import RK45

    from kinetree.analysis.peers.mujoco import mjcf
    from kinetree.simulation.methods import METHODS, stepper

    arm = kt.load(ROBOTS[0].path)
    step = stepper(arm.mechanism, METHODS["rk4"]).gufunc
    q0 = np.random.default_rng(0).normal(size=(ARMS, arm.nq))
    rest = np.zeros((ARMS, arm.nv))
    model = mujoco.MjModel.from_xml_string(mjcf(arm.mechanism))
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
    data = mujoco.MjData(model)

    def peer(steps: int) -> np.ndarray:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = q0[0]
        mujoco.mj_step(model, data, nstep=steps)
        return data.qpos.copy()

    forward = arm.function("forward_dynamics").gufunc
    still = np.zeros(arm.nv)

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[arm.nq :], forward(y[: arm.nq], y[arm.nq :], still)])

    def scipy_steps() -> None:
        solver = RK45(
            rates, 0.0, np.concatenate([q0[0], still]), 1.0, max_step=STEP, first_step=STEP, rtol=1e3, atol=1e3
        )
        for _ in range(20):
            solver.step()

    many, single = np.array([0.0, 10 * STEP]), np.array([0.0, 1000 * STEP])
    difference = float(np.abs(step(q0[0], rest[0], single, STEP)[0][-1] - peer(1000)).max())
    times = interleaved(
        {
            "ours, 4,096 arms": Contender(lambda: step(q0, rest, many, STEP), 10 * ARMS),
            "ours, one arm": Contender(lambda: step(q0[0], rest[0], single, STEP), 1000),
            "MuJoCo, one arm": Contender(lambda: peer(1000), 1000),
            "SciPy RK45 on our gufunc, one arm": Contender(scipy_steps, 20),
        },
        rounds,
    )
    ours = times["ours, 4,096 arms"]
    ratios = {
        "4,096 arms to MuJoCo": _ratio(times["MuJoCo, one arm"], ours),
        "one arm to MuJoCo": _ratio(times["MuJoCo, one arm"], times["ours, one arm"]),
        "4,096 arms to SciPy": _ratio(times["SciPy RK45 on our gufunc, one arm"], ours),
    }
    rates_ = {name: Figure.of([1e9 / x for x in values]) for name, values in times.items()}
    return Stepping(rates_, ratios, difference)


def _ratio(slow: list[float], fast: list[float]) -> Figure:
    return Figure.of([a / b for a, b in zip(slow, fast, strict=True)])
