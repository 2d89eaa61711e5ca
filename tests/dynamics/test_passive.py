"""Tests of src/kinetree/dynamics/force_laws.py: torques and wrenches of the forces of a mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from forces_by_numpy import energy, slope
from kinetree.simulation.acting.rates import ForcedMechanism, acting
from sprung_mechanisms import sprung
from tolerance import assert_close


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> kt.System:
    """Return the tree of a mechanism with every kind of force."""
    return sprung(tmp_path_factory.mktemp("sprung")).tree


def _state(system, shape=()):
    rng = np.random.default_rng(4)
    q, qd = system.random_state(rng, shape)
    return q, qd, rng.normal(size=qd.shape)


def test_the_torques_of_drives_are_without_those_of_the_forces(system):
    """Compare inverse dynamics with forces with wrenches and torques of the forces of a simulation."""
    q, qd, qdd = _state(system, (3,))
    values = np.array([p.value for p in system.mechanism.free_parameters]) * [[1.1], [0.9], [1.3]]
    t = np.zeros((3, 1))
    tau, w, _ = acting(ForcedMechanism(system.mechanism, kt.forces_of(system))).interpret(t, q, qd, values)
    expected = system.inverse_dynamics(q, qd, qdd, wrenches=w, forces=False, parameters=values) - tau
    found = system.inverse_dynamics(q, qd, qdd, forces=True, parameters=values)
    assert_close(found, expected, 1e-13 * np.abs(expected).max(), "torques of drives")
    more = np.random.default_rng(1).normal(size=w.shape)
    assert_close(
        system.inverse_dynamics(q, qd, qdd, forces=True, wrenches=more, parameters=values),
        system.inverse_dynamics(q, qd, qdd, wrenches=w + more, forces=False, parameters=values) - tau,
        1e-13 * np.abs(expected).max(),
        "torques of drives under external wrenches too",
    )
    assert_close(
        system.reactions(q, qd, qdd, forces=True, parameters=values),
        system.reactions(q, qd, qdd, wrenches=w, forces=False, parameters=values),
        1e-13 * np.abs(expected).max(),
        "reactions",
    )
    given = np.random.default_rng(2).normal(size=tau.shape)
    fall = system.forward_dynamics(q, qd, given + tau, wrenches=w, forces=False, parameters=values)
    assert_close(
        system.forward_dynamics(q, qd, given, forces=True, parameters=values),
        fall,
        1e-11 * np.abs(fall).max(),
        "accelerations",
    )


def test_springs_at_rest_are_the_slope_of_their_energy(system):
    """Compare the gravity torque with forces with differences of the potential energy of gravity and springs."""
    q, _, _ = _state(system)
    m = system.mechanism.fixed([p.value for p in system.mechanism.free_parameters])
    plain = kt.System(m)
    springs = [f for f in kt.forces_of(m) if hasattr(f, "energy")]
    assert len(springs) == 2
    total = slope(m, lambda x: plain.potential_energy(x) + sum(energy(m, f, x) for f in springs), q)
    pushed = kt.LinearActuator("crank", "output", (0.02, 0.01, 0), (0.03, -0.02, 0.01), force=7.7)
    length = kt.SpringDamper("crank", "output", pushed.point_a, pushed.point_b, preload=7.7)
    total = total + slope(m, lambda x: energy(m, length, x), q)
    assert_close(system.gravity_torque(q, forces=True), total, 1e-8, "torques at rest against differences of energy")


def test_hybrid_dynamics_divides_torques_between_drives_and_forces(system):
    """Check that given torques return unchanged and that the torques of drives belong to the same motion."""
    q, qd, qdd = _state(system)
    tau = np.array([0.3, -0.7, 0.2])
    made, torques = system.hybrid_dynamics(q, qd, qdd, tau, driven=["output"], forces=True)
    assert (torques[[0, 2]] == tau[[0, 2]]).all() and made[1] == qdd[1]
    expected = system.inverse_dynamics(q, qd, made, forces=True)
    assert_close(torques, expected, 1e-12 * np.abs(expected).max(), "torques")


def test_exported_functions_name_the_forces(system, tmp_path):
    """Write inverse dynamics with forces as C, whose header says so."""
    system.function("inverse_dynamics", forces=True).save(tmp_path / "drive.c")
    assert "springs, dampers and friction of the mechanism act" in (tmp_path / "drive.h").read_text()


def test_functions_that_forces_do_not_change_refuse_them(system):
    """Check the messages of functions without forces, of options that are not True, and of rolled code."""
    with pytest.raises(kt.InputError, match="pose does not depend on forces"):
        system.pose(system.neutral(), "crank", forces=True)
    with pytest.raises(kt.InputError, match="forces is 'springs'; expected True, for the forces of the mechanism"):
        system.function("inverse_dynamics", forces="springs")
    with pytest.raises(kt.InputError, match="inverse_dynamics with forces has no rolled code; use lowering='unrolled'"):
        system.function("inverse_dynamics", forces=True, lowering="rolled")
