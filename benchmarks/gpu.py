"""Dynamics on an NVIDIA GPU: samples per second of large batches, column- and row-major, and the first call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from measure import Figure, NotMeasured, agree
from report import Table
from robot_files import ROBOTS, TITLE

MODELS = {robot.name: robot for robot in ROBOTS} | dict.fromkeys(("four_bar", "stewart", "space_arm"))
"""The mechanisms, by the names of public robots or of the library."""
GOALS = {
    ("UR5", "inverse_dynamics"): (40.5, 20.7), ("UR5", "forward_dynamics"): (34.2, 18.4),
    ("Talos", "inverse_dynamics"): (6.1, 1.6), ("Talos", "forward_dynamics"): (3.2, 0.7),
    ("Panda", "inverse_dynamics"): (None, None), ("Panda", "forward_dynamics"): (None, None),
    ("four_bar", "forward_dynamics"): (None, None), ("stewart", "forward_dynamics"): (None, 0.3),
}  # fmt: skip
"""The billions of samples per second to reach on an H200 in float32 and in float64, if there is a target."""
PRECISIONS = ("float32", "float64")
SAMPLES = {"Talos": 1 << 20, "stewart": 1 << 20}
MOST = 1 << 22
"""The samples of the other mechanisms."""
STATES = 64
"""Different states, which a batch repeats."""
AGREE = {"float32": 5e-3, "float64": 1e-10}
"""The largest difference from float64 on the CPU, relative to a sample's largest entry: accelerations of robots are
conditioned by some 1e4."""


@dataclass(frozen=True)
class Case:
    """The times of one function in one precision."""

    model: str
    function: str
    dtype: str
    columns: Figure
    rows: Figure
    size: int
    first: float
    difference: float

    @property
    def goal(self) -> float | None:
        """The samples per second to reach [10^9]."""
        return GOALS[self.model, self.function][PRECISIONS.index(self.dtype)]


def section(quick: bool) -> Section:
    """Return the figures of all mechanisms."""
    os.environ["CUDA_CACHE_DISABLE"] = "1"  # so that first calls compile
    try:
        import cupy

        from kinetree.targets.ptx.driver import driver

        device = driver().device()
    except (ImportError, kt.KinetreeError) as error:
        raise NotMeasured(str(error)) from None
    found = [
        measure(cupy, model, function, dtype, 3 if quick else 15) for model, function in GOALS for dtype in PRECISIONS
    ]
    best = {(c.model, c.function, c.dtype): c.columns.median for c in found}
    missed = [c for c in found if c.goal and c.columns.median < c.goal]
    slow = [c for c in found if c.rows.median < 0.85 * c.columns.median]
    arm = [f"{best['UR5', f, 'float64']:.3g} billion {TITLE[f]}" for f in TITLE]
    large = [f"{best['Talos', f, 'float64']:.3g} billion {TITLE[f]}" for f in TITLE]
    table = Table(
        "Samples per second on a GPU",
        ("model", "function", "precision", "column-major [10^9/s]", "target", "row-major [10^9/s]", "row / column",
         "memory [GB/s]", "first call [s]", "difference from the CPU"),
        tuple(map(_row, found)),
        f"{device.name}, driver of CUDA {driver().version // 1000}.{driver().version % 1000 // 10}. Batches of "
        f"{MOST:,} samples ({SAMPLES['Talos']:,} of Talos and of the Stewart platform) in the GPU's memory, timed by "
        "the GPU's events. The first call writes the code, compiles it and runs it; nothing is taken from caches.",
    )  # fmt: skip
    return Section(
        "On a GPU",
        f"In float64, an {device.name} computes {' and '.join(arm)} dynamics of a UR5 per second, and "
        f"{' and '.join(large)} dynamics of Talos. Row-major arrays cost more than 15 percent in {len(slow)} of "
        f"{len(found)} cases; {len(missed)} of {sum(c.goal is not None for c in found)} targets are missed.",
        (table,),
    )


def _row(c: Case) -> tuple[str, ...]:
    ratio = c.rows.median / c.columns.median
    return (
        c.model, TITLE[c.function], c.dtype, c.columns.text(), "" if c.goal is None else f"{c.goal:g}", c.rows.text(),
        f"{ratio:.2f}", f"{c.columns.median * c.size:.0f}", f"{c.first:.2f}", f"{c.difference:.1e}",
    )  # fmt: skip


def measure(cupy: Any, model: str, name: str, dtype: str, rounds: int) -> Case:
    """Return the figures of a function, after a comparison with the CPU."""
    robot = MODELS[model]
    system = robot.rigid() if robot else kt.load(model)
    state = [x.astype(dtype) for x in states(system)]
    gpu = system.on("cuda")
    start = time.perf_counter()
    few = gpu.function(name)(*(cupy.asarray(x) for x in state))
    cupy.cuda.get_current_stream().synchronize()
    first = time.perf_counter() - start
    expected = system.function(name)(*(x.astype(float) for x in state))
    difference = agree(f"{model} {name} {dtype}", cupy.asnumpy(few), expected, AGREE[dtype])
    count = SAMPLES.get(model, MOST)
    figures = []
    for order in ("F", "C"):
        batch = [cupy.array(cupy.tile(cupy.asarray(x), (count // STATES, 1)), order=order) for x in state]
        out = cupy.empty((count, system.nv), dtype, order=order)
        function = gpu.function(name)
        function(*batch, out=out)
        times = timed(cupy, lambda f=function, x=batch, y=out: f(*x, out=y), rounds)
        figures.append(Figure.of([count / t / 1e9 for t in times]))
    size = sum(x.shape[1] * x.itemsize for x in state) + system.nv * np.dtype(dtype).itemsize
    return Case(model, name, dtype, figures[0], figures[1], size, first, difference)


def states(system: kt.System) -> list[np.ndarray]:
    """Return q, qd and forces of STATES different states, which keep loops closed."""
    rng = np.random.default_rng(3)
    if not system.closures:
        q, qd = system.random_state(rng, STATES)
    else:
        start = system.assemble()
        steps = system.closing_speed(start, rng.normal(size=(STATES, system.nv)))
        steps = 0.2 * steps / np.abs(steps).max(axis=-1, keepdims=True)
        q = np.array([system.assemble(system.integrate(start, step)) for step in steps])
        qd = system.closing_speed(q, rng.normal(size=(STATES, system.nv)))
    return [q, qd, rng.normal(size=(STATES, system.nv))]


def timed(cupy: Any, call: Callable[[], object], rounds: int, least: float = 0.01) -> list[float]:
    """Return the seconds of a call in each round, by the GPU's events, each over at least `least` seconds."""

    def run(calls: int) -> float:
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) * 1e-3

    run(1)
    calls = max(1, round(least / max(run(3) / 3, 1e-6)))
    return [run(calls) / calls for _ in range(rounds)]
