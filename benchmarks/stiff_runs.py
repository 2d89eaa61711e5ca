"""Runs of a KUKA LWR under the stiff control of [Wolinski2015]: a batch by rodas5p, and SUNDIALS run by run."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import numpy as np

import kinetree as kt
from book import Section
from kinetree.apps.reproduce.wolinski2015 import C, K, T
from measure import Contender, Disagreement, Figure, interleaved, ratio
from report import Table

RUNS, EACH = 1000, 4
"""The runs of the batch, and those of SUNDIALS in a round."""
CASES = (("rodas5p", 1e-6), ("bdf", 1e-6), ("bdf", 1e-8))
"""Methods with their tolerances."""
SAME = 1e-3
"""The largest difference between positions for times to be comparable [rad]."""


def section(quick: bool) -> Section:
    """Return times, evaluations and errors per run."""
    arm, times = kt.load("kuka_lwr4"), np.linspace(0.0, T, 201)
    control = kt.PD(K, C, kt.Cosine([pi / 2] * 7, pi / 7))
    rng, count = np.random.default_rng(3), 64 if quick else RUNS
    q, qd = pi / 2 + 0.2 * rng.normal(size=(count, 7)), 0.3 * rng.normal(size=(count, 7))

    def runs(method: str, tolerance: float, number: int) -> kt.Trajectory:
        given = {"times": times, "control": control, "rtol": tolerance, "atol": tolerance, "progress": False}
        return kt.simulate(arm, q[:number], qd[:number], method=method, **given)

    def repeated(method: str, tolerance: float, number: int) -> Callable[[], object]:
        return lambda: runs(method, tolerance, number)

    truth = runs("rodas5p", 1e-11, EACH)
    contenders, facts = {}, {}
    for method, tolerance in CASES:
        name, number = f"{method}, {tolerance:g}", count if method == "rodas5p" else EACH
        few = runs(method, tolerance, EACH)
        off = [float(np.abs(few[x] - truth[x]).max()) for x in ("q", "qd")]
        if not off[0] < SAME:
            raise Disagreement(f"{name} is off by {off[0]:.1e} rad")
        facts[name] = f"{few.evaluations / EACH:.0f}", f"{off[0]:.0e}", f"{off[1]:.0e}"
        contenders[name] = Contender(repeated(method, tolerance, number), number)
    found = interleaved(contenders, 3 if quick else 9)
    ours = next(iter(found.values()))
    rows = tuple(
        (name, Figure.of([x * 1e-6 for x in values]).text(), *facts[name], ratio(values, ours).text())
        for name, values in found.items()
    )
    best = ratio(found["bdf, 1e-08"], ours).median
    note = (
        f"{T:g} s of motion from random states, {len(times)} output times. rodas5p: {count:,} runs in one batch on one "
        "core. bdf: CVODES, run after run, with the exact Jacobian of CasADi. Errors are against rodas5p at 1e-11. "
        "rodas5p takes eight stages per step and BDF little more than one evaluation, so that it takes more "
        "evaluations at the same tolerance; its errors are smaller, and comparable with the errors of bdf at 1e-8."
    )
    heads = ("method, tolerance", "ms per run", "evaluations per run", "error of q [rad]", "of qd [rad/s]", "to ours")
    return Section(
        "Stiff runs",
        f"A batch of {count:,} stiff runs takes 1/{best:.0f} of the time of SUNDIALS at comparable errors.",
        (Table("A KUKA LWR under stiff PD control", heads, rows, note),),
    )
