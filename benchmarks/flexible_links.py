"""Forward dynamics of arms with flexible links, its growth with their number, and a steel rod of 100 segments."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from measure import Contender, Figure, agree, interleaved, ratio
from report import Table

BATCH = 4096
AGREE = 1e-7
"""The largest relative difference of accelerations after forward and inverse dynamics: modes are light and stiff."""
LINKS = (1, 2, 4, 8, 16)
ROD = {"length": 1.0, "E": 2.1e11, "G": 8.1e10, "rho": 7800.0, "section": ("circle", 0.005)}
SEGMENTS, STEP, SPAN = 100, 1e-3, 0.5


def section(quick: bool) -> Section:
    """Return times per sample of flexible arms, and the time of a run of a rod relative to the span of time."""
    rounds = 5 if quick else 25
    arms, growth = _arms(rounds), _growth(rounds)
    rod, factor = _rod()
    headline = (
        f"A six-joint arm with two flexible booms of four modes each takes {arms.rows[1][2].split()[0]} ns per sample; "
        f"a steel rod of {SEGMENTS} segments runs at {factor:.2g} times real time."
    )
    return Section("Flexible links", headline, (arms, growth, rod))


def chain(count: int, modes: tuple[int, ...]) -> kt.System:
    """Return a chain of beams on revolute joints whose axes alternate."""
    beam = kt.Beam(0.8, E=7e10, rho=2700, section=("rectangle", 0.02, 0.02), modes=modes)
    names = [f"b{k}" for k in range(count)]
    above = ["ground", *(f"{name}.tip" for name in names)]
    joints = [kt.Joint(f"j{k}", "revolute", above[k], name, axis="y" if k % 2 else "z") for k, name in enumerate(names)]
    return kt.System(kt.build_mechanism("chain", [kt.Body(name, flexible=beam) for name in names], joints))


def _contender(system: kt.System, count: int = BATCH) -> Contender:
    """Return forward dynamics of random states, after a comparison with inverse dynamics."""
    rng = np.random.default_rng(0)
    q, qd = system.random_state(rng, count)
    tau = system.inverse_dynamics(q, qd, rng.normal(size=qd.shape))
    qdd = system.forward_dynamics(q, qd, tau)
    agree("forward and inverse dynamics", system.inverse_dynamics(q, qd, qdd), tau, AGREE)
    return Contender(lambda: system.forward_dynamics(q, qd, tau), count)


def _arms(rounds: int) -> Table:
    booms = kt.load("space_arm")
    whole = [b for b in booms.mechanism.bodies if b.flexible is not None]
    rigid = _rigid(booms)
    times = interleaved({"rigid": _contender(rigid), "flexible": _contender(booms)}, rounds)
    beside = ratio(times["flexible"], times["rigid"]).text()
    rows = (
        ("rigid booms", str(rigid.nv), Figure.of(times["rigid"]).text(), "1"),
        (f"{len(whole)} booms of four modes", str(booms.nv), Figure.of(times["flexible"]).text(), beside),
    )
    return Table(
        "A long arm of six joints",
        ("arm", "degrees of freedom", "forward dynamics [ns]", "beside the rigid arm"),
        rows,
        f"`space_arm` of the library, ns per sample on one core, batch of {BATCH:,}. Inverse dynamics of the "
        f"accelerations gives the torques back to {AGREE:g}.",
    )


def _rigid(system: kt.System) -> kt.System:
    """Return an arm with beams without modes."""
    bodies: dict[str, Any] = {b.name: b for b in system.mechanism.bodies}
    parts = {n for n in bodies if "." in n}
    made = [
        replace(b, flexible=replace(bodies[f"{name}.elastic"].flexible, modes=(0,)))
        if f"{name}.elastic" in bodies
        else b
        for name, b in bodies.items()
        if name not in parts
    ]
    joints = [j for j in system.mechanism.joints if j.child not in parts]
    gravity = system.mechanism.gravity
    return kt.System(kt.build_mechanism("rigid", made, joints, gravity=gravity))


def _growth(rounds: int) -> Table:
    systems = {n: chain(n, (2, 2)) for n in LINKS}
    times = interleaved({str(n): _contender(s, 512) for n, s in systems.items()}, rounds)
    counts = {n: sum(s.function("forward_dynamics").cost().values()) for n, s in systems.items()}
    rows = [
        (str(n), str(systems[n].nv), f"{counts[n]:,}", Figure.of(times[str(n)]).text(),
         Figure.of(times[str(n)]).times(1 / n).text(), Figure.of(times[str(n)]).times(1 / counts[n]).text())
        for n in LINKS
    ]  # fmt: skip
    more = {(counts[b] - counts[a]) / (b - a) for a, b in pairwise(LINKS[1:])}
    each = f"{min(more):,.0f}" if len(more) == 1 else f"{min(more):,.0f} to {max(more):,.0f}"
    return Table(
        "Growth with the number of flexible links",
        ("links", "degrees of freedom", "operations", "forward dynamics [ns]", "per link [ns]", "per operation [ns]"),
        tuple(rows),
        "Chains of links with four modes each, ns per sample on one core, batches of 512. Each link after the second "
        f"adds {each} operations. The first one turns about a fixed axis, and takes few.",
    )


def _rod() -> tuple[Table, float]:
    rod = kt.rod(n=SEGMENTS, joint="universal", damping=1e-5, **ROD)
    times = np.linspace(0.0, SPAN, 11)
    own: dict[str, Any] = {"times": times, "method": "implicit_midpoint", "dt": STEP}
    kt.simulate(rod, rod.neutral(), **(own | {"times": times[:2]}))
    start = time.perf_counter()
    run = kt.simulate(rod, rod.neutral(), **own)
    took = time.perf_counter() - start
    assert run.finished
    rows = [("Kinetree, implicit midpoint", f"{STEP:g}", f"{1e6 * took * STEP / SPAN:.0f}", f"{SPAN / took:.2g}")]
    if find_spec("elastica"):
        step, each = _elastica()
        rows.append(("PyElastica, position Verlet", f"{step:g}", f"{1e6 * each:.0f}", f"{step / each:.2g}"))
    note = (
        f"A clamped rod of steel, 1 m long and 5 mm thick, with {SEGMENTS} segments that falls under its own weight, "
        "on one core. Real time is 1: more is faster than the rod. Waves along the rod bound the steps of explicit "
        "methods."
    )
    heads = ("method", "step [s]", "per step [us]", "times real time")
    return Table("A steel rod", heads, tuple(rows), note), SPAN / took


def _elastica() -> tuple[float, float]:
    """Return the step [s] that PyElastica's rod of the same size needs, and the time of a step [s]."""
    import elastica as ea

    class Simulator(ea.BaseSystemCollection, ea.Constraints, ea.Forcing):
        pass

    rod = ea.CosseratRod.straight_rod(
        SEGMENTS, np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), ROD["length"],
        ROD["section"][1] / 2, ROD["rho"], youngs_modulus=ROD["E"], shear_modulus=ROD["G"],
    )  # fmt: skip
    simulator = Simulator()
    simulator.append(rod)
    simulator.constrain(rod).using(ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,))
    simulator.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array([0.0, 0.0, -9.81]))
    simulator.finalize()
    step = 0.2 * ROD["length"] / SEGMENTS / np.sqrt(ROD["E"] / ROD["rho"])
    stepper = ea.PositionVerlet()
    now = np.float64(0.0)
    for _ in range(50):  # compiles
        now = stepper.step(simulator, now, step)
    count, start = 2000, time.perf_counter()
    for _ in range(count):
        now = stepper.step(simulator, now, step)
    took = (time.perf_counter() - start) / count
    if not np.isfinite(rod.position_collection).all():
        raise ArithmeticError(f"PyElastica's rod diverged with steps of {step:g} s")
    return step, took
