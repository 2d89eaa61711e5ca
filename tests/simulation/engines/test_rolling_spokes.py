"""A rimless wheel on its spokes: hard contact from event to event against the closed form of its strikes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from kinetree.apps.walking.passive import RimlessWheel
from tolerance import assert_close

WHEEL = RimlessWheel(0.13, spokes=9, mass=1.7, inertia=0.07, length=0.8)


def wheel_on_spokes(friction: float) -> tuple[kt.System, list[kt.Contact]]:
    """Return the wheel in the plane, free to leave the ground, with a contact at the end of each spoke."""
    w = WHEEL
    bodies = [kt.Body("x"), kt.Body("y"), kt.Body("wheel", w.mass, inertia=(w.inertia, w.inertia, w.inertia, 0, 0, 0))]
    joints = [
        kt.Joint("x", "prismatic", kt.GROUND, "x", axis=(1.0, 0.0, 0.0)),
        kt.Joint("y", "prismatic", "x", "y", axis=(0.0, 1.0, 0.0)),
        kt.Joint("z", "revolute", "y", "wheel", axis=(0.0, 0.0, 1.0)),
    ]
    down = (w.gravity * math.sin(w.slope), -w.gravity * math.cos(w.slope), 0.0)
    ground = kt.Surface(placement=kt.Placement.from_euler("x", (-math.pi / 2,)))
    ends = []
    for k in range(w.spokes):
        angle = 2 * w.half * k
        at = kt.Placement((w.length * math.sin(angle), -w.length * math.cos(angle), 0.0))
        ends.append(kt.Contact(f"spoke{k}", "wheel", placement=at, surface=ground, friction=friction))
    return kt.System(kt.build_mechanism("wheel", bodies, joints, gravity=down)), ends


def speeds(first: float, count: int) -> list[float]:
    """Return the angular velocities after successive strikes, with |w+|^2 = loss^2 (|w|^2 + gain), in closed form."""
    w = WHEEL
    whole = w.inertia + w.mass * w.length**2
    gain = 4 * w.mass * w.gravity * w.length / whole * math.sin(w.half) * math.sin(w.slope)
    out = [first]
    for _ in range(count):
        out.append(w.loss * math.sqrt(out[-1] ** 2 + gain))
    return out[1:]


def durations(after: list[float]) -> list[float]:
    """Return the times from strike to strike by quadrature of the pendulum's motion about a spoke."""
    from scipy.integrate import quad

    w = WHEEL
    rate = 2 * w.mass * w.gravity * w.length / (w.inertia + w.mass * w.length**2)

    def time(first: float) -> float:
        def slowness(angle: float) -> float:  # of the spoke from the normal, downhill positive
            return 1.0 / math.sqrt(first**2 + rate * (math.cos(-w.half + w.slope) - math.cos(angle + w.slope)))

        return quad(slowness, -w.half, w.half, epsabs=1e-14, epsrel=1e-14)[0]

    return [time(x) for x in after]


@pytest.mark.slow
def test_strikes_and_speeds_are_those_of_the_closed_form() -> None:
    """Roll over six spokes, and compare times and angular velocities of all strikes with the closed form."""
    w = WHEEL
    system, spokes = wheel_on_spokes(1.4)
    first = 1.3 * w.rolling_speed
    q = [-w.length * math.sin(w.half), w.length * math.cos(w.half), w.half]
    qd = [first * w.length * math.cos(w.half), first * w.length * math.sin(w.half), -first]
    exact = speeds(first, 6)
    strikes = np.cumsum(durations([first, *exact[:-1]]))
    fine = {"rtol": 1e-12, "atol": 1e-13}
    run = kt.simulate(system, q, qd, times=[0.0, float(strikes[-1]) + 0.02], contacts=spokes, **fine)

    found = [e.t for e in run.contact.events if e.kind == "impact"]
    assert_close(found, strikes, 1e-9, "times of strikes [s]")
    again = kt.simulate(system, q, qd, times=[0.0, *found, float(strikes[-1]) + 0.02], contacts=spokes, **fine)
    assert_close(-again.qd[1:-1, 2], exact, 1e-9, "angular velocities after the strikes [rad/s]")
    assert max(run.contact.residuals.values()) < 1e-10 and max(run.contact.impact_residuals.values()) < 1e-10
    lifts = [e.contact for e in run.contact.events if e.kind == "lift-off"]
    assert len(lifts) == 6 and not any(e.kind == "slip" for e in run.contact.events)
