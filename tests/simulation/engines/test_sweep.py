"""A sweep of random floating mechanisms over all engines: momentum, energy, and a status that holds.

Run as a script, it prints the counts of each engine: `python tests/simulation/engines/test_sweep.py 200 rk4 moreau`.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import joints as joint_kinds
from kinetree.simulation.methods.table import METHODS
from strategies import random_mechanism

CHILDREN = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "euler", "fixed")
FIXED = {"rk4": 4, "euler": 1, "midpoint": 2, "gauss": 4, "moreau": 1, "implicit_euler": 1, "implicit_midpoint": 2}
"""Engines of fixed steps, with the orders of their errors."""

ADAPTIVE = (*(name for name, m in METHODS.items() if m.native and m.adaptive), "events", "auto")
"""Engines that choose their steps; "events" is the one from event to event, "auto" has dampers from soft to stiff."""

ENGINES = (*FIXED, *ADAPTIVE, "sampled")
END = 0.1
"""The time of a run [s]."""

STEPS = {1: 2.5e-4, 2: 2.5e-4, 4: 2e-3}
"""The length of fixed steps by the order of the method [s]."""


@dataclass(frozen=True)
class Case:
    """A mechanism in free flight, its start, and how it is simulated."""

    system: kt.System
    q: np.ndarray
    qd: np.ndarray
    options: dict = field(default_factory=dict)
    springs: tuple[kt.SpringDamper, ...] = ()

    def run(self, **options) -> kt.Trajectory:
        """Return the run with further options."""
        return kt.simulate(self.system, self.q, self.qd, progress=False, **(self.options | options))


def flying(seed: int, engine: str) -> Case:
    """Return the mechanism of a seed: a tree on a root that floats, with springs between its bodies."""
    rng = np.random.default_rng(seed)
    kinds = [str(rng.choice(["free", "free", "free_euler"]))]
    kinds += [str(rng.choice(CHILDREN)) for _ in range(int(rng.integers(0, 4)))]
    parents = [-1, *(int(rng.integers(0, k)) for k in range(1, len(kinds)))]
    tree = random_mechanism(kinds, parents, rng, geometry=str(rng.choice(["general", "mixed"])))
    forces = [
        kt.SpringDamper(
            "b0", f"b{k}", rng.normal(size=3) * 0.1, rng.normal(size=3) * 0.1, stiffness=3.0, free_length=0.3
        )
        for k in range(1, len(kinds))
        if rng.random() < 0.5
    ]
    if engine in ("moreau", "events"):
        floor = kt.Surface(placement=kt.Placement((0.0, 0.0, -1e4)))
        contact = kt.Contact("c", "b0", "sphere", (0.1,), friction=0.5, surface=floor)
        tree = replace(tree, contacts=(contact,))
    system = kt.System(tree)
    q, qd = system.random_state(rng)
    system = with_rod(system, q, np.random.default_rng([seed, 1]))
    qd = system.closing_speed(q, qd) if system.closures else qd
    options: dict = {"forces": forces}
    if engine in FIXED:
        options |= {"method": engine, "dt": STEPS[FIXED[engine]]}
    elif engine == "sampled":
        hold = kt.TorqueFunction(lambda t, q, qd: [0.0 * x for x in qd])
        options |= {"method": "rk4", "dt": STEPS[4], "control": kt.Sampled(hold, 200.0)}
    elif engine == "auto":
        flat = [j.name for j in tree.joints[1:] if joint_kinds.kind(j.kind).NV]
        options["forces"] = [*forces, *(kt.JointDamper(name, 10.0 ** rng.uniform(-2, 5)) for name in flat)]
    elif engine != "events":
        options |= {"method": engine}
    return Case(system, q, 0.5 * qd, options, tuple(forces))


def with_rod(system: kt.System, q: np.ndarray, rng: np.random.Generator) -> kt.System:
    """Return a system with a rod between two of its bodies, for half of those in which it holds joints that move."""
    tree = system.mechanism
    names = [b.name for b in tree.bodies]
    if len(names) < 2 or rng.random() < 0.5:
        return system
    a, b = rng.choice(len(names), 2, replace=False)
    points = rng.normal(size=(2, 3)) * 0.3
    poses = system.poses(q)
    ends = [poses[k, :3, :3] @ x + poses[k, :3, 3] for k, x in zip((a, b), points, strict=True)]
    length = float(np.linalg.norm(ends[1] - ends[0]))
    places = [kt.Placement(tuple(map(float, x))) for x in points]
    rod = kt.Loop("rod", "rod", names[a], names[b], *places, length=length)
    made = kt.System(replace(tree, loops=(rod,)))
    row = made.closure_jacobian(q)[0]
    holds = np.abs(row).max() > 0.05 and np.count_nonzero(np.abs(row) > 0.01) > 1  # one joint alone would be locked
    return made if holds else system


def drift(case: Case, run: kt.Trajectory) -> float:
    """Return the largest change of the momentum that gravity does not explain, beside that of single bodies."""
    mass = sum(b.mass for b in case.system.mechanism.bodies)
    momentum = case.system.momentum(run.q, run.qd)[:, 3:]
    expected = momentum[0] + np.outer(run.t, mass * np.array(case.system.mechanism.gravity))
    twists = np.abs(case.system.twists(run.q, run.qd)).max() * max(1.0, np.abs(run.q).max())
    return float(np.abs(momentum - expected).max() / (mass * (1.0 + twists)))


def gain(case: Case, run: kt.Trajectory) -> float:
    """Return the largest change of the energy of bodies, gravity and springs, beside the kinetic energy."""
    system = case.system
    kinetic, whole = system.kinetic_energy(run.q, run.qd), system.potential_energy(run.q)
    poses, names = system.poses(run.q), [b.name for b in system.mechanism.bodies]
    for spring in case.springs:
        ends = []
        for body, point in ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b)):
            T = poses[:, names.index(body)]
            ends.append(T[:, :3, :3] @ np.array(point) + T[:, :3, 3])
        stretch = np.linalg.norm(ends[1] - ends[0], axis=-1) - spring.free_length
        whole = whole + 0.5 * spring.stiffness * stretch**2
    change = kinetic + whole - (kinetic + whole)[0]
    return float(np.abs(change).max() / (np.abs(kinetic).max() + np.ptp(whole)))


def examine(case: Case, engine: str, counts: Counter) -> None:
    """Count what a run keeps, and fail where it breaks a promise."""
    times = np.linspace(0.0, END, 6)
    try:
        run = case.run(times=times)
    except kt.InputError as error:
        assert engine == "rodas5p" and 'whose Jacobian is compiled; use method="radau"' in str(error)
        counts["refused"] += 1
        return
    finite = bool(np.isfinite(run.q).all() and np.isfinite(run.qd).all())
    assert finite, "a Trajectory ends with its last finite state"
    assert run.finished == (len(run.t) == len(times)), run.status
    counts["runs"] += 1
    counts["finished" if run.finished else "stopped"] += 1
    if not run.finished:
        assert "stopped: " in run.status and "t = " in run.status, run.status
        return
    dt = case.options.get("dt")
    allowed = 1e-6 if dt is None else 4e-15 * (END / dt)
    assert drift(case, run) <= allowed, f"momentum: {drift(case, run):.2e}, allowed {allowed:.2e}"
    counts["momentum kept"] += 1
    if engine == "auto":
        fewer = case.run(times=times[[0, 2, 5]])
        assert fewer.method == run.method, (fewer.method, run.method)
        counts[run.method] += 1
        return
    if engine in FIXED:
        assert dt is not None
        error, half = gain(case, run), gain(case, case.run(times=times, dt=dt / 2))
        assert half <= max(error / 2 ** (0.5 * FIXED[engine]), 1e-11), (
            f"energy: {error:.2e}, {half:.2e} by half the step"
        )
    else:
        assert gain(case, run) <= 1e-6, f"energy: {gain(case, run):.2e}"
    counts["energy kept"] += 1


def sweep(engine: str, count: int, first: int = 0) -> tuple[Counter, dict[int, str]]:
    """Return the counts of an engine, and the failures by seed."""
    counts: Counter = Counter()
    failures: dict[int, str] = {}
    for seed in range(first, first + count):
        try:
            examine(flying(seed, engine), engine, counts)
        except AssertionError as error:
            failures[seed] = str(error).splitlines()[0]
    return counts, failures


def test_every_method_is_swept() -> None:
    """Find all native methods among the engines of the sweep."""
    assert {m.name for m in METHODS.values() if not m.adaptive} == set(FIXED)


@everyday.long
@pytest.mark.parametrize("engine", everyday.only(ENGINES, ("euler", "gauss", "moreau", "auto")))
def test_a_few_random_mechanisms(engine) -> None:
    """Let two random mechanisms fly with each engine."""
    counts, failures = sweep(engine, 2, 6)  # Rodas5P refuses the fifth one, which is large
    assert not failures, failures
    assert counts["finished"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_two_hundred_random_mechanisms(engine) -> None:
    """Let 200 random mechanisms fly with each engine."""
    counts, failures = sweep(engine, 200)
    assert not failures, failures
    assert counts["finished"] >= 198 or engine == "rodas5p", counts


if __name__ == "__main__":
    for name in sys.argv[2:] or ENGINES:
        found, failed = sweep(name, int(sys.argv[1]))
        print(name, dict(found), failed or "no failure", flush=True)
