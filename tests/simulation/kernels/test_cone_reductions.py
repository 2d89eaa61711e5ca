"""Impacts that cannot rebound as their law requires: wedged bodies, and restitution that would add energy."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import host_gpu
import kinetree as kt
from contacted import touching
from tolerance import assert_close

AXIS = (0.48, 0.36, -0.8)
"""The direction of a slide into the ground; friction above 0.8 / 0.6 wedges its body."""


def slider(restitution: float) -> kt.System:
    """Return a ball on an inclined slide whose friction keeps it from going back."""
    body = kt.Body("slider", 1.4, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    slide = kt.Joint("slide", "prismatic", "ground", "slider", axis=AXIS)
    ball = kt.Contact("ball", "slider", "sphere", (0.05,), friction=1.6, restitution=restitution)
    return kt.System(touching(kt.build_mechanism("slide", [body], [slide]), ball))


def pendulum(restitution: float) -> tuple[kt.System, np.ndarray, np.ndarray]:
    """Return a double pendulum whose tip slips along the ground as it strikes."""
    bodies = [
        kt.Body(name, 1.1, (0.0, 0.0, -0.25), (0.023, 0.023, 0.001, 0.0, 0.0, 0.0)) for name in ("upper", "lower")
    ]
    joints = [
        kt.Joint("shoulder", "revolute", "ground", "upper", axis="y", placement=kt.Placement((0.0, 0.0, 0.8))),
        kt.Joint("elbow", "revolute", "upper", "lower", axis="y", placement=kt.Placement((0.0, 0.0, -0.5))),
    ]
    tip = kt.Contact("tip", "lower", "point", (), (0.0, 0.0, -0.5), friction=0.5, restitution=restitution)
    system = kt.System(touching(kt.build_mechanism("double pendulum", bodies, joints), tip))
    q = np.array([np.deg2rad(20.0), 0.0])
    q[1] = np.arccos((0.797 - 0.5 * np.cos(q[0])) / 0.5) - q[0]
    return system, q, np.array([0.15, -2.85])


def stepped(system: kt.System, q, qd, *, dt: float = 1e-3, times=(0.0, 0.2, 0.4)) -> kt.Trajectory:
    """Return a run by time steps."""
    return kt.simulate(system, q, qd, times=list(times), method="moreau", dt=dt)


@everyday.long
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_impact_of_a_wedged_body_is_plastic(device, monkeypatch):
    """Let bodies strike at several velocities with a restitution that no impulse can give, and find them at rest."""
    system = slider(0.6)
    if device == "gpu":
        host_gpu.install(monkeypatch)
        system = system.on("cuda")
    q, qd = np.full((3, 1), -0.2), np.array([[0.3], [0.9], [1.7]])
    run = stepped(system, q, qd)
    assert run.status == "finished"
    assert_close(run.qd[:, -1], np.zeros((3, 1)), 1e-12, "velocities after the impact")
    assert max(run.contact.residuals.values()) < 1e-10
    assert np.abs(run["contact_gaps"][:, -1]).max() < 1e-3 * 2.5  # a step of the impact, slower than 2.5 m/s


def test_wedged_lanes_leave_the_others_alone():
    """Simulate a wedged body among others in a batch, and find the bits of the runs of each alone."""
    system = slider(0.6)
    q, qd = np.array([[-0.2], [-0.9], [-0.15], [-0.11]]), np.array([[0.3], [-0.2], [1.1], [-2.1]])
    together = stepped(system, q, qd)
    for k in range(4):
        alone = stepped(system, q[k], qd[k])
        assert np.array_equal(together.q[k], alone.q)
        assert np.array_equal(together["contact_forces"][k], alone["contact_forces"])


@everyday.long
def test_restitution_adds_no_energy():
    """Strike the ground with a double pendulum whose slip reverses, and find no energy gained, as event by event."""
    system, q, qd = pendulum(0.9)
    exact = kt.simulate(system, q, qd, times=[0.0, 0.03], rtol=1e-10, atol=1e-12)
    run = stepped(system, q, qd, times=[0.0, 0.03], dt=1e-4)
    for name, found in (("event by event", exact), ("by time steps", run)):  # with all restitution: 0.18 J more
        assert_close(found["energy"][1], found["energy"][0], 5e-4, f"energy {name} [J]")  # 3e-4, of the first order
    assert_close(run.q[-1], exact.q[-1], 5e-4, "angles")  # 3e-4; with all restitution, 0.035 rad
    assert max(run.contact.residuals.values()) < 1e-10


@pytest.mark.slow
def test_reductions_beside_poissons_law():
    """Add a contact under Poisson's law that never closes to bodies with reduced impacts, and find them unchanged."""
    far = kt.Surface(placement=kt.Placement((0.0, 0.0, -9.7)))
    pendulums, q, qd = pendulum(0.9)
    wedge = slider(0.6)
    for system, start in ((pendulums, (q, qd)), (wedge, (np.array([-0.2]), np.array([0.9])))):
        other = kt.Contact("other", system.bodies[-1].name, surface=far, restitution=0.5, law="poisson")
        both = kt.System(touching(system.mechanism, *system.mechanism.contacts, other))
        expected, run = (stepped(x, *start, times=[0.0, 0.03, 0.4], dt=2e-4) for x in (system, both))
        assert_close(run.q, expected.q, 1e-8, "positions")
        assert_close(run["energy"], expected["energy"], 1e-7, "energies")
        assert max(run.contact.residuals.values()) < 1e-10
