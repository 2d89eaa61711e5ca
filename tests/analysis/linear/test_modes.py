"""Positions of equilibrium and modes of vibration against closed forms, for pendulums, springs and loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close

G = 9.81


def pendulum(links: int = 1, *, damping: float = 0.0) -> kt.System:
    """Return points of 1.3 kg on massless rods of 0.7 m, in a chain; the angles are from the x axis, downward."""
    bodies = [kt.Body(f"b{k}", 1.3, (0.7, 0.0, 0.0)) for k in range(links)]
    joints = [
        kt.Joint(
            f"j{k}", "revolute", f"b{k - 1}" if k else "ground", f"b{k}", axis=(0.0, 0.0, 1.0), damping=(damping,),
            placement=kt.Placement((0.7 if k else 0.0, 0.0, 0.0)),
        )
        for k in range(links)
    ]  # fmt: skip
    return kt.System(kt.build_mechanism("pendulum", bodies, joints, gravity=(G, 0.0, 0.0)))


def test_pendulum():
    """Find the hanging pendulum from everywhere, the inverted one on request, and its frequency and damping."""
    system = pendulum(damping=0.4)
    for start in (0.3, 3.0, np.pi):
        q = kt.equilibrium(system, np.array([start]))
        assert_close(np.cos(q), [1.0], 1e-12, "hanging")
    assert_close(kt.equilibrium(system, np.array([3.0]), stable=False), [np.pi], 1e-10, "inverted")
    found = system.modes()
    inertia = 1.3 * 0.7**2
    natural = np.sqrt(G / 0.7)
    assert_close(found.frequencies, [natural / (2 * np.pi)], 1e-12, "frequency")
    assert_close(found.damping, [0.4 / (2 * inertia * natural)], 1e-12, "damping ratio")
    assert found.stable
    inverted = system.modes(np.array([np.pi]))
    assert not inverted.stable and np.isrealobj(np.real_if_close(inverted.eigenvalues))


def test_two_pendulums():
    """Find the modes of a double pendulum of equal points: omega^2 = (2 -+ sqrt 2) g / l."""
    system = pendulum(2)
    found = system.modes(kt.equilibrium(system, np.array([0.9, -1.4])))
    assert_close((2 * np.pi * found.frequencies) ** 2, (2 + np.array([-1, 1]) * np.sqrt(2)) * G / 0.7, 1e-10, "omega^2")
    ratios = (found.shapes[:, 1] / found.shapes[:, 0]).real
    assert_close(ratios, np.array([1, -1]) * np.sqrt(2) - 1, 1e-9, "shapes")  # of the second angle, which is relative
    assert str(found).splitlines()[0] == "mode  frequency [Hz]  damping  shape"


@everyday.long
def test_equilibrium_of_a_long_chain_is_the_catenary_of_its_links():
    """Hang 90 links, more than derivatives are compiled for, between two points: the slopes of links rise linearly.

    The horizontal force H is the same in all links, and the vertical one grows by the weight w of a link from joint
    to joint. At the middle of link k, half its weight hangs, and the force is along it: tan(angle) = (V + k w) / H.
    """
    rope = kt.rope(2.3, 90, mass_per_metre=0.37, radius=0.004, ends=("pinned", "pinned"), span=1.7, joint="universal")
    q = kt.equilibrium(rope)
    ends = np.concatenate([rope.poses(q)[:, :3, 3], rope.pose(q, rope.mechanism.frames[-1].name)[None, :3, 3]])
    way = np.diff(ends, axis=0)[:89]
    slopes = way[:, 2] / np.hypot(way[:, 0], way[:, 1])
    rise = np.diff(slopes)
    assert rise.mean() > 1e-3  # the rope sags
    assert_close(rise, np.full(88, rise.mean()), 1e-9 * np.abs(slopes).max(), "slopes of a catenary of links")


@everyday.long
def test_equilibrium_of_a_long_chain_with_springs():
    """Balance a rope of 70 links that is clamped at an angle and bent by a torque, against its compiled torques."""
    rope = kt.rope(1.9, 70, mass_per_metre=0.31, radius=0.01, bending=0.42, gravity=(3.1, 1.3, -9.2))
    start, tau = rope.neutral(), np.zeros(rope.nv)
    start[:2], tau[40] = (0.7, -0.3), 0.11
    q = kt.equilibrium(rope, start, tau=tau, hold=rope.joints[0].name)
    left = (rope.gravity_torque(q, forces=True) - tau)[2:]
    assert_close(
        left, np.zeros(rope.nv - 2), 1e-11 * np.abs(rope.gravity_torque(q, forces=False)).max(), "torques at rest"
    )
    assert_close(q[:2], start[:2], 0.0, "the held joint")
    assert np.abs(q[2:]).max() > 0.03


def test_torques_and_held_joints():
    """Balance a constant torque, and lock a joint; refuse positions that move, and mechanisms that fall forever."""
    system = pendulum(2)
    tau = np.array([3.0, 1.2])
    q = kt.equilibrium(system, tau=tau)
    assert_close(system.gravity_torque(q), tau, 1e-10, "balance")
    held = kt.equilibrium(system, np.array([0.4, 0.2]), hold="j1")
    assert held[1] == 0.2
    assert_close(system.gravity_torque(held)[0], 0.0, 1e-10, "with the elbow locked")
    with pytest.raises(InputError, match=r"modes: q is no position of equilibrium: j\d accelerates by .*tau=arm.gravi"):
        system.modes(np.array([0.4, 0.2]))
    at = np.array([0.4, 0.2])
    assert system.modes(at, tau=system.gravity_torque(at)).eigenvalues.shape == (2,)
    with pytest.raises(
        InputError, match="'stanford' has no equilibrium near this position: after 300 steps a torque of"
    ):
        kt.equilibrium(kt.load("stanford"))
    with pytest.raises(InputError, match="equilibrium: hold is {'j1': 0.2}; give names of joints, which keep their"):
        kt.equilibrium(system, hold={"j1": 0.2})
    with pytest.raises(InputError, match=r"equilibrium: tau has shape \(3,\); expected \[..., 2\]"):
        kt.equilibrium(system, tau=np.zeros(3))


@everyday.long
def test_four_bar_with_a_spring():
    """Compare the frequency of a four-bar on a spring with that of its energy along the closed motion."""
    plain = kt.load("four_bar").mechanism
    last, anchor, k, rest = plain.bodies[-1].name, (1.3, -0.8, 0.0), 57.0, 0.4
    spring = kt.ForceElement(
        "spring", "spring_damper", last, "ground", (0.1, 0.05, 0.0), anchor, (("stiffness", k), ("free_length", rest))
    )
    system = kt.System(replace(plain, forces=(spring,)))
    q = kt.equilibrium(system)
    zero = np.zeros(3)
    assert_close(system.forward_dynamics(q, zero, zero, forces=True), zero, 1e-8, "at rest")
    (frequency,) = system.modes(q).frequencies

    def energy(angle: float) -> float:
        at = system.assemble(q, {"crank": angle})
        point = (system.pose(at, last) @ [0.1, 0.05, 0.0, 1.0])[:3]
        return float(system.potential_energy(at)) + 0.5 * k * (np.linalg.norm(point - anchor) - rest) ** 2

    h = 1e-3
    low, down, mid, up, high = (energy(q[0] + s * h) for s in (-2, -1, 0, 1, 2))
    curvature = (-low + 16 * down - 30 * mid + 16 * up - high) / (12 * h**2)
    mass = 2 * float(system.kinetic_energy(q, system.consistent_speeds(q, {"crank": 1.0})))
    assert_close((2 * np.pi * frequency) ** 2, curvature / mass, 1e-6 * curvature / mass, "omega^2")
