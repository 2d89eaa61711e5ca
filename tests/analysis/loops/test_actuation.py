"""Actuation: torques of actuated joints that cause a motion, come closest to it, or cause it with least effort."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, library_state
from kinetree.analysis.loops.actuation import driven_dofs, native_torques
from kinetree.analysis.loops.constraints import ActingForces
from kinetree.analysis.loops.tolerances import CONSISTENT
from kinetree.errors import InputError, UnknownNameError
from same_bits import assert_same_bits
from tolerance import assert_close


@pytest.mark.parametrize("name", everyday.some(everyday.without(DRIVES, ("stewart", "three_rrr"))))
def test_torques_make_the_motion(name):
    """Find the torques of a motion, and the same motion by forward dynamics under them, with external wrenches."""
    arm, q, qd, qdd = library_state(name)
    w = np.random.default_rng(4).normal(size=(len(arm.bodies), 6))
    found = arm.actuation(q, qd, qdd, DRIVES[name], wrenches=w)
    assert found.exact and found.achieved and not found.under and not found.over
    assert found.actuators == found.driven == found.freedoms and found.unique_tau.all()
    again = arm.forward_dynamics(q, qd, found.tau, wrenches=w)
    assert_close(again, qdd, 1e-8 * max(1.0, np.abs(qdd).max()), "motion")
    need = arm.tree.inverse_dynamics(q, qd, qdd, wrenches=w)
    left = need - found.tau - arm.closure_jacobian(q).T @ found.multipliers
    assert_close(left, np.zeros(arm.nv), 1e-10 * max(1.0, np.abs(need).max()), "balance")
    # With redundant equations the torques of one state come from a least squares problem, those alone from native code.
    bound = 1e-13 * np.abs(found.tau).max() if name == "parallelogram" else 0.0
    assert_close(arm.inverse_dynamics(q, qd, qdd, actuated=DRIVES[name], wrenches=w), found.tau, bound, "thin")
    passive = [k for k, axis in enumerate(found.axes) if axis not in DRIVES[name]]
    assert not found.tau[passive].any()


@everyday.long
def test_power_goes_into_the_energy():
    """Find the power of the crank equal to the rate of the energy: the loops do no work."""
    arm, q, qd, qdd = library_state("slider_crank", 3)
    tau, h = arm.inverse_dynamics(q, qd, qdd, actuated="crank"), 1e-6

    def energy(t):
        at = arm.integrate(q, t * qd + t**2 / 2 * qdd)
        return arm.kinetic_energy(at, qd + t * qdd) + arm.potential_energy(at)

    rate = (energy(h) - energy(-h)) / (2 * h)
    assert_close(tau @ qd, rate, 1e-7 * max(1.0, abs(rate)), "power")


def test_states_are_batched():
    """Solve several states with broadcasting, and find the results of single states."""
    arm, q, qd, qdd = library_state("five_bar")
    factors = np.array([[1.0], [0.0], [-1.0]])
    bias = arm.closure_bias(q, qd)
    part = -np.linalg.pinv(arm.closure_jacobian(q), rcond=1e-9) @ bias
    many = part * factors**2 + (qdd - part)
    found = arm.actuation(q, factors * qd, many, DRIVES["five_bar"])
    assert found.tau.shape == (3, 4) and found.multipliers.shape == (3, 5) and found.exact.tolist() == [True] * 3
    for k in range(3):
        one = arm.actuation(q, factors[k] * qd, many[k], DRIVES["five_bar"])
        assert_close(found.tau[k], one.tau, 1e-13, "tau")
        assert_close(found.multipliers[k], one.multipliers, 1e-12, "multipliers")


def test_too_few_actuators_come_near():
    """Drive a five-bar by one of its cranks and find the torque with the least residual, weighted by inertia."""
    arm, q, qd, qdd = library_state("five_bar", 1)
    found = arm.actuation(q, qd, qdd, ["left_crank"])
    assert found.under and not found.exact and not found.achieved and (found.freedoms, found.driven) == (2, 1)
    need = arm.tree.inverse_dynamics(q, qd, qdd)
    scale = 1 / np.sqrt(np.diag(arm.inertia_matrix(q)))
    A = np.column_stack([np.eye(4)[:, 0], arm.closure_jacobian(q).T])
    x = np.linalg.lstsq(scale[:, None] * A, scale * need, rcond=1e-9)[0]
    assert_close(found.tau[0], x[0], 1e-10 * abs(x[0]), "tau")
    assert_close(found.residual, need - A @ x, 1e-10 * np.abs(need).max(), "residual")
    axis, missing, unit = found.worst
    assert missing == np.abs(found.residual).max() and unit == "N m" and axis in found.axes
    text = "degrees of freedom: 2, actuated: 1, under-actuated; up to"
    assert found.summary().startswith(text) and found.summary().endswith(f"are missing at {axis}")
    with pytest.raises(
        InputError,
        match=f"the actuators drive 1 of 2 degrees of freedom and cannot make this motion: up to {missing:.3g} N m are "
        f"missing at {axis!r}; actuate more joints, or see arm.actuation for the nearest torques",
    ):
        arm.inverse_dynamics(q, qd, qdd, actuated=["left_crank"])


def test_a_motion_of_its_own_needs_no_actuator():
    """Let a five-bar fall and find that actuators with nothing to do are enough."""
    arm, q, qd, _ = library_state("five_bar", 2)
    fall = arm.forward_dynamics(q, qd, np.zeros(4))
    found = arm.actuation(q, qd, fall, ["left_crank"])
    assert found.under and found.achieved
    assert_close(arm.inverse_dynamics(q, qd, fall, actuated=[]), np.zeros(4), 0.0, "tau")


def test_least_effort_by_weights():
    """Drive a four-bar by two joints and find torques of least weighted squares, by the ratio of their velocities."""
    arm, q, qd, qdd = library_state("four_bar")
    alone = arm.actuation(q, qd, qdd, ["crank"]).tau[0]
    ratio = qd[1] / qd[0]  # one degree of freedom: alone = tau_0 + ratio tau_1
    for weights, (a, b) in (
        (None, (1.0, 1.0)),
        ({"crank": 4.0, "output": 0.3}, (4.0, 0.3)),
        ({"output": 9.0}, (1.0, 9.0)),
    ):
        found = arm.actuation(q, qd, qdd, ["crank", "output"], weights=weights)
        assert found.over and found.achieved and not found.exact and found.driven == 1
        assert found.unique_tau.tolist() == [False, False, True]
        expected = alone * np.array([1 / a, ratio / b]) / (1 / a + ratio**2 / b)
        assert_close(found.tau[:2], expected, 1e-9 * abs(alone), "shares")
        assert_close(arm.forward_dynamics(q, qd, found.tau), qdd, 1e-8 * np.abs(qdd).max(), "motion")


def test_forces_count_by_the_length():
    """Drive a slider-crank at crank and slider and find forces weighted by the mean distance of its joints."""
    arm, q, qd, qdd = library_state("slider_crank")
    found = arm.actuation(q, qd, qdd, ["crank", "slider"])
    lengths = {"crank": 1.0, "slider": _length(arm, q) ** 2}
    same = arm.actuation(q, qd, qdd, ["crank", "slider"], weights=lengths)
    assert_close(found.tau, same.tau, 1e-12, "by length")


def _length(arm, q):
    points = [*arm.poses(q)[:, :3, 3], (arm.pose(q, arm.mechanism.loops[0].body_b) @ _end(arm))[:3]]
    return np.sqrt(np.mean(np.sum((np.array(points) - np.mean(points, axis=0)) ** 2, axis=1)))


def _end(arm):
    return np.array([*map(float, arm.mechanism.loops[0].placement_b.translation), 1.0])


def test_singular_positions_gain_freedom():
    """Fold a four-bar of equal bars flat, where it is singular: one actuator then drives one freedom of two."""
    arm = kt.n_four_bars(1)
    upright, flat = np.zeros(3), np.array([-np.pi / 2, np.pi / 2, -np.pi / 2])
    q, rest = np.array([upright, flat]), np.zeros((2, 3))
    assert np.abs(arm.closure_residual(q)).max() < 1e-12
    found = arm.actuation(q, rest, rest, ["rocker0"])
    assert found.freedoms.tolist() == [1, 2] and found.under.tolist() == [False, True]
    assert found.achieved.tolist() == [True, False] and np.isfinite(found.multipliers).all()
    with pytest.raises(InputError, match="cannot make this motion in 1 of 2 states, first \\[1\\]: up to"):
        arm.inverse_dynamics(q, rest, rest, actuated=["rocker0"])
    assert str(found).startswith("degrees of freedom: 1 to 2, actuated: 1, exactly actuated and under-actuated")


def test_open_trees_are_actuated_too():
    """Find inverse dynamics if all joints of an arm are actuated, and the missing torque if one is not."""
    arm = kt.load("puma560")
    q, qd = arm.random_state(2, (2,))
    qdd = np.cos(q)
    names = [j.name for j in arm.joints]
    tau = arm.inverse_dynamics(q, qd, qdd)
    assert_close(arm.inverse_dynamics(q, qd, qdd, actuated=names), tau, 1e-10, "all")
    found = arm.actuation(q, qd, qdd, names[:-1])
    assert_close(found.residual[:, -1], tau[:, -1], 1e-10, "missing")
    assert_close(found.residual[:, :-1], np.zeros((2, 5)), 1e-10, "the others")


@everyday.long
def test_axes_of_joints_are_actuators():
    """Drive one angle of a universal joint by its axis' name, and its joint by both."""
    arm, q, qd, qdd = library_state("spatial_slider_crank")
    both, one = (arm.actuation(q, qd, qdd, names) for names in ("rod", ["rod.angle2"]))
    assert (both.actuators, one.actuators) == (2, 1) and one.exact and both.over
    assert np.flatnonzero(one.tau).tolist() == [one.axes.index("rod.angle2")]


def test_motions_that_open_the_loops_are_refused():
    """Name the loop, the equation and the size for q, qd and qdd that do not fit it, and the state in a batch."""
    arm, q, qd, qdd = library_state("four_bar")
    off = np.array([0.1, 0.0, 0.0])
    with pytest.raises(InputError, match="q leaves the loops open: 'pin' \\(position [xy]\\) has a gap of .* m; close"):
        arm.actuation(q + off, qd, qdd, ["crank"])
    with pytest.raises(InputError, match="qd opens the loops: 'pin' \\(position [xy]\\) would part at .* m/s; give qd"):
        arm.actuation(q, qd + off, qdd, ["crank"])
    many = np.array([qdd, qdd + off])
    part = np.abs(arm.closure_jacobian(q)[:, 0]).max() * 0.1
    with pytest.raises(
        InputError,
        match=f"qdd opens the loops: 'pin' \\(position [xy]\\) would part at {part:.3g} m/s\\^2 in state \\[1\\]",
    ):
        arm.actuation(q, qd, many, ["crank"])
    assert arm.actuation(q, qd, qdd + 0.01 * off, ["crank"], tol=1e-1).exact


def test_wrong_names_and_weights_are_told():
    """Refuse unknown joints, weights of passive joints and invalid weights."""
    arm, q, qd, qdd = library_state("four_bar")
    with pytest.raises(UnknownNameError, match="no joint 'cranc'; did you mean 'crank'"):
        arm.actuation(q, qd, qdd, ["cranc"])
    with pytest.raises(InputError, match="weight of 'output', which is not actuated; leave it out"):
        arm.actuation(q, qd, qdd, ["crank"], weights={"output": 1.0})
    with pytest.raises(InputError, match="weight of 'crank' is 0; expected a number above 0, or 1 of them"):
        arm.actuation(q, qd, qdd, ["crank"], weights={"crank": 0})
    with pytest.raises(InputError, match="inverse_dynamics: qdd\\[1\\] is nan"):
        arm.actuation(q, qd, [0.0, np.nan, 0.0], ["crank"])


def test_torques_that_vanish_are_not_missing():
    """Hold a crank at its dead center, where gravity acts along the links and no torque is needed but for rounding."""
    arm = kt.load("slider_crank")
    for turns in (0, 1, 3):
        q = arm.assemble([0.0, np.pi, 0.0], hold={"crank": 2 * np.pi * turns})
        assert_close(q[2], 0.0, 1e-12, "the slider at its dead center")
        rest = np.zeros(3)
        found = arm.actuation(q, rest, rest, "crank")
        assert found.achieved and found.under
        assert_close(arm.inverse_dynamics(q, rest, rest, actuated="crank"), rest, 1e-13, "torques at a dead center")
    push = np.zeros((3, 6))
    push[2, 3:] = 1e-9  # on the slider, at which the crank has no hold
    assert not arm.actuation(q, rest, rest, "crank", wrenches=push).achieved


def test_samples_have_their_bits_beside_others_of_the_general_route():
    """Put a state that loops fit only roughly into a batch: the others keep the bits that they have alone."""
    arm = kt.load("four_bar")
    q, qd = arm.random_state(5, (4,))
    qdd = arm.consistent_accelerations(q, qd, {"crank": [0.3, -0.2, 0.9, 0.4]})
    qd[2] *= 1.0 + np.array([0.5, -0.5, 0.5]) * CONSISTENT
    w = np.random.default_rng(2).normal(size=(4, len(arm.bodies), 6))
    made = native_torques(ActingForces.of(arm, w, True, None), q, qd, qdd, driven_dofs(arm, "crank"), CONSISTENT)
    assert made is not None and made.good.tolist() == [True, True, False, True]
    states = (q, qd, qdd)
    found, forces = arm.actuation(*states, "crank", wrenches=w), arm.loads(q, qd, qdd=qdd, actuated="crank", wrenches=w)
    tau = arm.inverse_dynamics(*states, actuated="crank", wrenches=w)
    for k in range(4):
        one = [x[k] for x in states]
        alone = arm.actuation(*one, "crank", wrenches=w[k])
        assert_same_bits((found.tau[k], found.multipliers[k], found.residual[k]),
                         (alone.tau, alone.multipliers, alone.residual))  # fmt: skip
        assert_same_bits(tau[k], arm.inverse_dynamics(*one, actuated="crank", wrenches=w[k]))
        carried = arm.loads(one[0], one[1], qdd=one[2], actuated="crank", wrenches=w[k])
        assert_same_bits((forces.joints[k], forces.cuts[k]), (carried.joints, carried.cuts))
