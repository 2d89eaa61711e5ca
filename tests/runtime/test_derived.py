"""Derivatives as compiled functions: options, batches, single calls, caching and gradients of other libraries."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from kinetree.model import parse
from kinetree.runtime.derived import summed_to
from random_motions import motion
from tolerance import assert_close

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def arm() -> kt.System:
    """Return a mechanism of three bodies."""
    return kt.load("planar_3r")


def test_batches_and_single_calls_have_the_same_bits(arm):
    """Call a method for one state, for rows of a batch, with `out`, on threads and by keyword."""
    q, qd, qdd = motion(arm, 5, 4)
    whole = arm.inverse_dynamics_derivatives(q, qd, qdd)
    assert [x.shape for x in whole] == [(5, 4, 3, 3)] * 3
    for one in (
        arm.inverse_dynamics_derivatives(q[2, 1], qd[2, 1], qdd[2, 1]),
        arm.inverse_dynamics_derivatives(q[2, 1], qdd=qdd[2, 1], qd=qd[2, 1]),
        arm.inverse_dynamics_derivatives(q[2, 1], qd[2, 1], qdd[2, 1], threads=2),
    ):
        assert all(np.array_equal(x, y[2, 1]) for x, y in zip(one, whole, strict=True))
    places = tuple(np.empty((5, 4, 3, 3)) for _ in range(3))
    arm.inverse_dynamics_derivatives(q, qd, qdd, out=places)
    assert all(np.array_equal(x, y) for x, y in zip(places, whole, strict=True))
    single = arm.inverse_dynamics_derivatives(q, qd, qdd, dtype="float32")
    assert single[0].dtype == np.float32
    assert_close(single[0], whole[0], 1e-5 * np.abs(whole[0]).max(), "float32")


def test_wrenches_and_parameters():
    """Take external wrenches and parameters, in batches and by name, and differentiate both."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.1), (0.1, 0.2, 0.3, 0.0, 0.0, 0.0))
    hinge = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    system = kt.System(kt.build_mechanism("pendulum", [bob], [hinge], parameters=free))
    q, qd, qdd = motion(system, 4)
    wrenches = np.random.default_rng(1).normal(size=(4, 1, 6))
    lengths = np.linspace(0.5, 0.9, 4)
    by_q, _, inertia = system.inverse_dynamics_derivatives(q, qd, qdd, wrenches=wrenches, parameters={"l": lengths})
    h = 1e-6
    ends = [system.inverse_dynamics(q + s * h, qd, qdd, wrenches=wrenches, parameters={"l": lengths}) for s in (1, -1)]
    assert_close(by_q[..., 0], (ends[0] - ends[1]) / (2 * h), 1e-7, "dtau/dq")
    assert_close(inertia, system.inertia_matrix(q, parameters={"l": lengths}), 1e-14, "I")
    function = system.function("inverse_dynamics", wrenches=True)
    slope = function.jacobian("wrenches")(q, qd, qdd, wrenches, [1.3, 0.7])
    assert slope.shape == (4, 1, 1, 6)
    assert_close(slope[:, 0, 0], np.tile([0.0, -1.0, 0.0, 0.0, 0.0, 0.0], (4, 1)), 1e-15, "dtau/dw")
    by_parameters = function.jacobian("parameters")(q, qd, qdd, wrenches, [1.3, 0.7])
    ends = [system.inverse_dynamics(q, qd, qdd, parameters=[1.3, 0.7 + s * h]) for s in (1, -1)]
    assert_close(by_parameters[..., 1], (ends[0] - ends[1]) / (2 * h), 1e-7, "dtau/dl")


def test_forces_of_the_mechanism():
    """Differentiate with damping of joints, which the plain derivatives are without."""
    bob = kt.Body("bob", 1.3, (0.7, 0.0, 0.1))
    hinge = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0), damping=(0.4,))
    system = kt.System(kt.build_mechanism("pendulum", [bob], [hinge]))
    q, qd, qdd = motion(system)
    plain, forced = (system.inverse_dynamics_derivatives(q, qd, qdd, forces=x)[1] for x in (False, True))
    assert_close(forced - plain, [[0.4]], 1e-15, "damping")


def test_functions_are_kept_and_pickled(arm):
    """Get the same derivative again, and pickle it; its name and its arrays are those of the request."""
    function = arm.function("forward_dynamics")
    slope = function.jacobian(("q", "tau"))
    assert function.jacobian(("q", "tau")) is slope
    assert slope.name == "jacobian of forward_dynamics"
    assert [a.name for a in slope.outputs] == ["dqdd_dq", "dqdd_dtau"]
    assert [a.name for a in function.hvp("q").inputs] == ["q", "qd", "tau", "cotangent_qdd", "tangent_q"]
    again = pickle.loads(pickle.dumps(slope))
    state = motion(arm)
    assert all(np.array_equal(x, y) for x, y in zip(again(*state), slope(*state), strict=True))
    assert slope.cost()["multiplications"] > function.cost()["multiplications"]


def test_bad_arrays_are_refused(arm):
    """Refuse missing arrays, wrong shapes and numbers that are not finite, with the name of the derivative."""
    q, qd, tau = motion(arm, 4)
    with pytest.raises(TypeError, match=r"forward_dynamics_derivatives\(\) is called without tau; expected q, qd, tau"):
        arm.forward_dynamics_derivatives(q, qd)
    with pytest.raises(InputError, match=r"jacobian of forward_dynamics: qd has shape \(4, 2\); expected \[..., 3\]"):
        arm.forward_dynamics_derivatives(q, qd[:, :2], tau)
    with pytest.raises(InputError, match=r"jacobian of forward_dynamics: q\[0, 0\] is nan"):
        arm.forward_dynamics_derivatives(q * np.nan, qd, tau)
    with pytest.raises(InputError, match="'planar_3r' has no free parameters"):
        arm.forward_dynamics_derivatives(q, qd, tau, parameters=[1.0])


def test_sums_over_repeated_axes():
    """Sum over leading axes that an array does not have, and over those of length one."""
    x = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(summed_to(x, (3, 4)), x.sum(axis=0))
    assert np.array_equal(summed_to(x, (1, 4)), x.sum(axis=(0, 1))[None])
    assert summed_to(x, (2, 3, 4)) is x


def test_jacobians_take_parameters_by_name():
    """Give a Jacobian the free parameters by name, in order and in their place, alone and as a batch."""
    arm = kt.load("spatial_pendulum")
    free = [replace(p, free=True) for p in arm.mechanism.parameters]
    arm = kt.System(replace(arm.mechanism, parameters=tuple(free)))
    q, values = np.array([0.3, 1.1, -0.4]), np.array([p.value for p in free])
    slope = arm.function("gravity_torque").jacobian("q")
    changed = values * np.where([p.name == "m" for p in free], 2.5, 1.0)
    assert_close(slope(q, parameters={"m": 2.5 * arm.mechanism.values()["m"]}), slope(q, changed), 0.0, "by name")
    many = values * np.linspace(0.5, 2.0, 4)[:, None]
    assert_close(slope(q, parameters=many), slope(q, many), 0.0, "a batch")
    along = arm.function("gravity_torque").jvp("q")
    assert_close(along(q, q, parameters=values), slope(q, values) @ q, 1e-13, "product")
    with pytest.raises(TypeError, match=r"takes q; given 0 arrays"):
        slope(parameters=values)
    with pytest.raises(kt.InputError, match="'planar_2r' has no free parameters; declare them with free = true"):
        kt.load("planar_2r").function("gravity_torque").jacobian("q")([0.1, 0.2], parameters=[1.0])
