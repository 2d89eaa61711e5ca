"""Designs by the million: closed mechanisms along a motion for many values of their free parameters, on one core."""

from __future__ import annotations

import time

import numpy as np

import kinetree as kt
from book import Section
from measure import Disagreement
from report import Table

ACTUATORS = ["actuator_4", "actuator_5"]
VARIED = ("k4", "L4", "P4", "k5", "L5", "P5", "S4y", "S4z")
"""Rates, free lengths, preloads and an attachment point of the springs."""
DESIGNS, INSTANTS = 1_000_000, 200
WEIGHTS, ANGLES = 1000, 361
CHUNK = 2048
"""Designs per call, so that the torques of all instants fit into memory."""
TARGETS = {"torso": 300.0, "press": 5.0}
"""The longest times of both studies [s]."""


def section(quick: bool) -> Section:
    """Return the times of a million designs of a torso, and of the bearing loads of a press."""
    torso, force = torso_study(8 * CHUNK if quick else DESIGNS)
    press, load = press_study()
    rows = (
        ("torso, actuator forces with springs", f"{DESIGNS:,} x {INSTANTS}", f"{torso:.1f}", _verdict("torso", torso)),
        ("press, loads of all bearings", f"{WEIGHTS:,} x {ANGLES}", f"{press:.2f}", _verdict("press", press)),
    )
    note = (
        "Torso of CHARMIE: 8 bodies, four loops, two linear actuators and two springs, of which eight numbers vary; "
        "for each design and instant, positions by Newton's method, velocities, accelerations and actuator forces; "
        f"the least RMS force is {force:.0f} N{'; extrapolated from fewer designs' if quick else ''}. Press: "
        "positions, velocities, accelerations, torque and the wrenches at three joints and the wrist pin; the least "
        f"peak load of the main bearing is {load:.0f} N."
    )
    headline = (
        f"A million designs along {INSTANTS} instants take {torso:.0f} s, 361,000 sets of bearing loads {press:.1f} s."
    )
    table = Table("Studies on one core", ("study", "designs x instants", "time [s]", "target"), rows, note)
    return Section("Batches of designs", headline, (table,))


def torso_motion(count: int = INSTANTS) -> tuple[dict, dict, dict]:
    """Return positions, speeds and accelerations of the driving joints: a squat of 2 s."""
    t, squat = (
        np.linspace(0.0, 2.0, count),
        {"joint_4": kt.Cycloid(0.0, 0.1, 2.0), "joint_5": kt.Cycloid(0.0, 0.6, 2.0)},
    )
    return tuple({name: np.asarray(way(t)[k][0]) for name, way in squat.items()} for k in range(3))  # type: ignore[return-value]


def torso_study(designs: int) -> tuple[float, float]:
    """Return the seconds of a million designs, and the least RMS force of both actuators [N]."""
    arm = kt.load("charmie_torso")
    rng, motion = np.random.default_rng(0), torso_motion()
    free = {p.name: p.value for p in arm.mechanism.free_parameters if p.name in VARIED}
    places = [k for k, j in enumerate(arm.joints) if j.name in ACTUATORS]
    _agree(arm, motion)
    best, begin = np.inf, time.perf_counter()
    for _ in range(0, designs, CHUNK):
        sets = {name: x * rng.uniform(0.7, 1.3, (CHUNK, 1)) for name, x in free.items()}
        found = arm.driven_motion(
            *motion, actuated=ACTUATORS, forces=True, parameters=sets, keep=["tau"], on_failure="nan"
        )
        force = np.sqrt(np.mean((found.tau[..., places] ** 2).sum(axis=-1), axis=-1))
        best = min(best, float(np.nanmin(force)))
    return (time.perf_counter() - begin) * DESIGNS / designs, best


def _agree(arm: kt.System, motion: tuple) -> None:
    """Compare a few designs with the dense route, which decomposes J at each state."""
    sets = {"k4": [[900.0], [1700.0]]}
    found = arm.driven_motion(*motion, actuated=ACTUATORS, forces=True, parameters=sets)
    states = found.q[1, ::40], found.qd[1, ::40], found.qdd[1, ::40]
    tau = arm.actuation(*states, ACTUATORS, forces=True, parameters={"k4": 1700.0}, weights={}).tau
    if np.abs(tau - found.tau[1, ::40]).max() > 1e-9 * np.abs(tau).max():
        raise Disagreement("torques of a batch of designs differ from those of the dense route")


def press_study() -> tuple[float, float]:
    """Return the seconds of all bearing loads, and the least peak load of the main bearing [N]."""
    press = kt.load("press")
    angles = np.linspace(0.0, 2 * np.pi, ANGLES)
    motion = tuple({"main_bearing": x} for x in (angles, np.full(ANGLES, 20.0), np.zeros(ANGLES)))
    warm = press.driven_motion(*motion)
    press.loads(warm.q, warm.qd, qdd=warm.qdd, actuated="main_bearing", forces=True)
    begin = time.perf_counter()
    designs = {"m_c": np.linspace(0.0, 12.0, WEIGHTS)[:, None]}
    found = press.driven_motion(*motion)  # masses do not move the loops: one motion serves all designs
    loads = press.loads(found.q, found.qd, qdd=found.qdd, actuated="main_bearing", forces=True, parameters=designs)
    peak = np.linalg.norm(loads.at("main_bearing")[..., 3:], axis=-1).max(axis=-1)
    return time.perf_counter() - begin, float(peak.min())


def _verdict(name: str, seconds: float) -> str:
    return f"< {TARGETS[name]:g} s: {'met' if seconds < TARGETS[name] else 'missed'}"
