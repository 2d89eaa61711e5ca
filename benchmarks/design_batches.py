"""Designs by the million: closed mechanisms along a motion for many values of their free parameters, on one core."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import kinetree as kt
from book import Section
from measure import Disagreement
from report import Table

HERE = Path(__file__).parent
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
        "Torso: 12 bodies, three loops, two linear actuators and two springs; for each design and instant, positions "
        "by Newton's method, velocities, accelerations and actuator forces; the least RMS force is "
        f"{force:.0f} N{'; extrapolated from fewer designs' if quick else ''}. Press: positions, velocities, "
        "accelerations, torque and the wrenches at three joints and the guide; the least peak load of the crank's "
        f"bearing is {load:.0f} N."
    )
    headline = (
        f"A million designs along {INSTANTS} instants take {torso:.0f} s, 361,000 sets of bearing loads {press:.1f} s."
    )
    table = Table("Studies on one core", ("study", "designs x instants", "time [s]", "target"), rows, note)
    return Section("Batches of designs", headline, (table,))


def torso_motion(count: int = INSTANTS) -> tuple[dict, dict, dict]:
    """Return positions, speeds and accelerations of the driving joints: a squat, with the arms swinging."""
    t = np.linspace(0.0, 2.0, count)
    s, v, a = np.sin(np.pi * t / 2), np.pi / 2 * np.cos(np.pi * t / 2), -((np.pi / 2) ** 2) * np.sin(np.pi * t / 2)
    sizes = {"actuator1": (0.45, 0.08), "actuator2": (0.5, -0.07)}
    sizes |= {f"{x}_{side}": (0.0, 0.4) for x in ("shoulder", "elbow") for side in ("left", "right")}
    return tuple({n: c * (k == 0) + b * x for n, (c, b) in sizes.items()} for k, x in enumerate((s, v, a)))  # type: ignore[return-value]


def torso_study(designs: int) -> tuple[float, float]:
    """Return the seconds of a million designs, and the least RMS force of the first actuator."""
    arm = kt.load(HERE / "torso.toml")
    rng = np.random.default_rng(0)
    nominal = np.array([p.value for p in arm.mechanism.free_parameters])
    motion = torso_motion()
    places = [k for k, j in enumerate(arm.joints) if j.name in ("actuator1", "actuator2")]
    _agree(arm, motion, nominal)
    best, begin = np.inf, time.perf_counter()
    for _ in range(0, designs, CHUNK):
        sets = nominal * rng.uniform(0.7, 1.3, (CHUNK, 1, len(nominal)))
        tau = arm.driven_motion(*motion, forces=True, parameters=sets, keep=["tau"], on_failure="nan").tau
        force = np.sqrt(np.mean(tau[..., places] ** 2, axis=-2)).max(axis=-1)
        best = min(best, float(np.nanmin(force)))
    return (time.perf_counter() - begin) * DESIGNS / designs, best


def _agree(arm: kt.System, motion: tuple, nominal: np.ndarray) -> None:
    """Compare a few designs with the dense route, which decomposes J at each state."""
    found = arm.driven_motion(*motion, forces=True, parameters=nominal * np.array([[[0.9]], [[1.1]]]))
    states = found.q[1, ::40], found.qd[1, ::40], found.qdd[1, ::40]
    tau = arm.actuation(*states, list(motion[0]), forces=True, parameters=1.1 * nominal, weights={}).tau
    if np.abs(tau - found.tau[1, ::40]).max() > 1e-9 * np.abs(tau).max():
        raise Disagreement("torques of a batch of designs differ from those of the dense route")


def press_study() -> tuple[float, float]:
    """Return the seconds of all bearing loads, and the least peak load of the crank's bearing [N]."""
    press = kt.load(HERE / "press.toml")
    angles = np.linspace(0.0, 2 * np.pi, ANGLES)
    motion = {"crank": angles}, {"crank": np.full(ANGLES, 10.0)}, {"crank": np.zeros(ANGLES)}
    warm = press.driven_motion(*motion)
    press.loads(warm.q, warm.qd, qdd=warm.qdd, actuated="crank")
    begin = time.perf_counter()
    designs = {"weight": np.linspace(0.0, 60.0, WEIGHTS)[:, None]}
    found = press.driven_motion(*motion)  # masses do not move the loops: one motion serves all designs
    loads = press.loads(found.q, found.qd, qdd=found.qdd, actuated="crank", parameters=designs)
    peak = np.linalg.norm(loads.at("crank")[..., 3:], axis=-1).max(axis=-1)
    return time.perf_counter() - begin, float(peak.min())


def _verdict(name: str, seconds: float) -> str:
    return f"< {TARGETS[name]:g} s: {'met' if seconds < TARGETS[name] else 'missed'}"
