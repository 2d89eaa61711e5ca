"""Time steps on an NVIDIA GPU: steps per second of large batches of runs, inside the kernel and as whole calls."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from gpu import MODELS, PRECISIONS
from kinetree.backends.cuda.code import LaneKernel
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
from measure import Figure, NotMeasured, agree
from report import Table

STEPS, DT = 100, 1e-4
"""The steps of a run, and their length [s]."""
WHOLE = 1000
"""The steps of a whole call, of a millisecond each."""
RUNS = {"Talos": 1 << 17, "stewart": 1 << 17, "space_arm": 1 << 20}
"""The runs of a batch: of the long arm with two flexible booms, more than a million."""
MOST = 1 << 19
"""The runs of the other mechanisms."""
STATES = 32
"""Different starts, which a batch repeats."""
AGREE = {"float32": 1e-3, "float64": 1e-11}
"""The largest difference from float64 on the CPU after all steps, relative to the largest entry of a run: 1.6e-4 was
measured for the four-bar in float32."""
CONDITIONS = {"space_arm": 4.0}
"""Factors of these differences: light modes beside a heavy payload, for which 7.8e-4 was measured in float32."""
TARGETS = {
    ("UR5", "decaying"): (10.7, 6.0), ("Panda", "decaying"): (4.2, 2.34), ("four_bar", "decaying"): (19.8, 10.5),
}  # fmt: skip
"""The billions of steps per second to reach on an H200 in float32 and float64.

They were measured without a projection: loops are open or closed by decaying gaps."""
CASES = (
    ("UR5", "rk4", "decaying"), ("Panda", "rk4", "decaying"), ("Panda", "rk4", "projected"),
    ("four_bar", "rk4", "decaying"), ("four_bar", "rk4", "projected"), ("Talos", "rk4", "projected"),
    ("stewart", "rk4", "projected"), ("UR5", "euler", "projected"), ("UR5", "gauss", "projected"),
    ("space_arm", "rk4", "projected"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """The figures of a mechanism, a method and a way to close loops in one precision [10^9 steps/s]."""

    model: str
    method: str
    loops: str
    dtype: str
    inside: Figure
    whole: float
    registers: int
    local: int
    difference: float

    @property
    def target(self) -> float | None:
        """The steps per second to reach [10^9]."""
        found = TARGETS.get((self.model, self.loops)) if self.method == "rk4" else None
        return None if found is None else found[PRECISIONS.index(self.dtype)]


def section(quick: bool) -> Section:
    """Return the figures of all cases."""
    try:
        from kinetree.targets.ptx.driver import driver

        device = driver().device()
    except kt.KinetreeError as error:
        raise NotMeasured(str(error)) from None
    found = [measure(device, *case, dtype, 3 if quick else 15) for case in CASES for dtype in PRECISIONS]
    missed = [c for c in found if c.target and c.inside.median < c.target]
    arm = {c.dtype: c for c in found if (c.model, c.method) == ("UR5", "rk4")}
    flexible = {c.dtype: RUNS["space_arm"] * WHOLE / (1e9 * c.whole) for c in found if c.model == "space_arm"}
    table = Table(
        "Time steps per second on a GPU",
        ("model", "method", "loops", "precision", "in the kernel [10^9/s]", "target", "whole call [10^9/s]",
         "registers", "local memory [B]", "difference from the CPU"),
        tuple(map(_row, found)),
        f"{device.name}. {STEPS} steps of {MOST:,} runs ({RUNS['Talos']:,} of Talos and of the Stewart platform, "
        f"{RUNS['space_arm']:,} of `space_arm`, which has two flexible booms), timed by the GPU's events; whole calls "
        f"of `simulate` with {WHOLE:,} steps, two output times and results in the memory of the host.",
    )  # fmt: skip
    return Section(
        "Simulation on a GPU",
        f"An {device.name} takes {arm['float64'].inside.median:.3g} billion Runge-Kutta steps of a UR5 per second in "
        f"float64 and {arm['float32'].inside.median:.3g} billion in float32, with one run per thread. {len(missed)} of "
        f"{sum(c.target is not None for c in found)} targets are missed. {RUNS['space_arm']:,} runs of a six-joint arm "
        f"with two flexible booms, of a second each in steps of 1 ms, take {flexible['float64']:.2g} s in float64 and "
        f"{flexible['float32']:.2g} s in float32.",
        (table,),
    )


def _row(c: Case) -> tuple[str, ...]:
    return (
        c.model, c.method, c.loops, c.dtype, c.inside.text(), "" if c.target is None else f"{c.target:g}",
        f"{c.whole:.3g}", str(c.registers), str(c.local), f"{c.difference:.1e}",
    )  # fmt: skip


def measure(device: Any, model: str, method: str, loops: str, dtype: str, rounds: int) -> Case:
    """Return the figures of a case, after a comparison with the CPU."""
    robot = MODELS[model]
    system = kt.load(robot.path if robot else model)
    way = kt.Baumgarte(10.0) if loops == "decaying" and system.closures else None
    q, qd = starts(system)
    times = np.array([0.0, STEPS * DT])
    dynamics, scheme = ForcedMechanism(system.mechanism, loops=way), METHODS[method].scheme
    expected = stepper(dynamics, scheme).gufunc(q, qd, times, DT, 0.0, np.inf)
    made = stepper(replace(dynamics, dtype=dtype), scheme, device=device)
    kernel = made.gufunc
    assert isinstance(kernel, LaneKernel)
    few = kernel(q, qd, times, DT, 0.0, np.inf)
    label, bound = f"{model} {method} {dtype}", AGREE[dtype] * CONDITIONS.get(model, 1.0)
    difference = max(agree(label, few[k].astype(float), expected[k], bound) for k in (2, 3))
    count = RUNS.get(model, MOST)
    batch = [np.asfortranarray(np.tile(x, (count // STATES, 1))) for x in (q, qd)]
    seconds = [_launched(device, kernel, batch, times) for _ in range(rounds)]
    inside = Figure.of([count * STEPS / s / 1e9 for s in seconds])
    resources = kernel.resources()
    gpu, options = system.on("cuda"), {"method": method, "dt": 1e-3, "times": [0.0, WHOLE * 1e-3], "loops": way}
    kt.simulate(gpu, *(x[:STATES].astype(dtype) for x in batch), **options)
    start = time.perf_counter()
    kt.simulate(gpu, *(x.astype(dtype) for x in batch), **options)
    whole = count * WHOLE / (time.perf_counter() - start) / 1e9
    return Case(
        model, method, loops, dtype, inside, whole, resources["registers"], resources["local"], float(difference)
    )


def _launched(device: Any, kernel: LaneKernel, batch: list[np.ndarray], times: np.ndarray) -> float:
    """Return the time of one launch [s]."""
    begin, end = device.event(timing=True), device.event(timing=True)
    kernel(*batch, times, DT, 0.0, np.inf, around=(begin, end))
    return end.since(begin)


def starts(system: kt.System) -> tuple[np.ndarray, np.ndarray]:
    """Return STATES different states; loops are closed."""
    rng = np.random.default_rng(3)
    if not system.closures:
        q, qd = system.random_state(rng, STATES)
        return q, (0.5 if system.mechanism.has_flexible else 1.0) * qd  # slow ones deflect within the valid limits
    q = np.tile(system.assemble(), (STATES, 1))
    return q, system.closing_speed(q, 0.5 * rng.normal(size=(STATES, system.nv)))
