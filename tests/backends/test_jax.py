"""Functions under JAX on the CPU: results, transformations, options, and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import everyday
import kinetree as kt
from complete import import_jax
from kinetree.backends import xla
from kinetree.errors import InputError
from kinetree.model import parse
from random_motions import motion
from tolerance import assert_close

EPS = float(np.finfo("float32").eps)


@pytest.fixture(scope="module", autouse=True)
def library():
    """Import JAX, or skip; not when tests are collected, because it takes seconds."""
    global jax
    jax = import_jax()


@pytest.fixture(autouse=True)
def double_precision():
    """Let JAX compute in double precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def arm() -> kt.System:
    """Return a mechanism of three bodies."""
    return kt.load("planar_3r")


def test_bits_of_the_gufunc(arm):
    """Return the same bits as NumPy, for one sample, batches, broadcast and empty ones, in both precisions."""
    for shapes in (((), (), ()), ((7,), (7,), (7,)), ((2, 1), (3,), ()), ((0,), (), ())):
        arrays = [motion(arm, *lead)[k] for k, lead in enumerate(shapes)]
        result = arm.jax.forward_dynamics(*arrays)
        assert isinstance(result, jax.Array) and result.dtype == np.float64
        np.testing.assert_array_equal(result, arm.forward_dynamics(*arrays))
        single = arm.jax.forward_dynamics(*(x.astype("float32") for x in arrays))
        assert single.dtype == np.float32
        np.testing.assert_array_equal(single, arm.forward_dynamics(*arrays, dtype="float32"))


def test_transformations(arm):
    """Call functions under jit and vmap, also nested, with inputs that are not mapped, and in loops."""
    q, qd, tau = motion(arm, 5, 4)
    expected = arm.forward_dynamics(q, qd, tau)
    f = arm.jax.forward_dynamics
    np.testing.assert_array_equal(jax.jit(f)(q, qd, tau), expected)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(f))(q, qd, tau), expected)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, in_axes=(1, 1, 1), out_axes=1))(q, qd, tau), expected)
    one = jax.vmap(f, in_axes=(None, 0, None))(q[0, 0], qd[:, 0], tau[0, 0])
    np.testing.assert_array_equal(one, arm.forward_dynamics(q[0, 0], qd[:, 0], tau[0, 0]))
    partly = jax.vmap(lambda x: f(x, qd[0, 0], tau[0]))(q)
    np.testing.assert_array_equal(partly, arm.forward_dynamics(q, qd[0, 0], tau[0]))
    looped = jax.lax.fori_loop(0, 3, lambda _, v: f(q, v, tau), qd)
    v = qd
    for _ in range(3):
        v = arm.forward_dynamics(q, v, tau)
    np.testing.assert_array_equal(looped, v)


def test_other_functions(arm):
    """Return energies without axes, poses of frames, matrices, and residuals without entries."""
    q, qd, _ = motion(arm, 4)
    tool = arm.bodies[-1].name
    np.testing.assert_array_equal(arm.jax.kinetic_energy(q[0], qd[0]), arm.kinetic_energy(q[0], qd[0]))
    np.testing.assert_array_equal(arm.jax.pose(q, tool), arm.pose(q, tool))
    np.testing.assert_array_equal(arm.jax.twist(q, qd, tool, axes="world"), arm.twist(q, qd, tool, axes="world"))
    w = np.random.default_rng(2).normal(size=(4, 3, 6))
    np.testing.assert_array_equal(arm.jax.reactions(q, qd, qd, wrenches=w), arm.reactions(q, qd, qd, wrenches=w))
    assert arm.jax.closure_residual(q).shape == (4, 0)


def test_long_chains():
    """Call rolled code, and functions that are Python around it."""
    chain = kt.chain(70)
    q, qd, tau = motion(chain, 3)
    np.testing.assert_array_equal(jax.jit(chain.jax.forward_dynamics)(q, qd, tau), chain.forward_dynamics(q, qd, tau))
    matrix = jax.jit(jax.vmap(chain.jax.inertia_matrix))(q)
    np.testing.assert_array_equal(matrix, chain.inertia_matrix(q))


def test_parameters():
    """Take free parameters as an array, as numbers by name and as arrays by name, traced ones as well."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.0))
    joint = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    arm = kt.System(kt.build_mechanism("pendulum", [bob], [joint], parameters=free))
    q, lengths = np.random.default_rng(3).normal(size=(6, 1)), np.linspace(0.5, 0.9, 6)
    torque = arm.jax.gravity_torque
    for _ in range(2):
        np.testing.assert_array_equal(torque(jax.numpy.asarray(q)), arm.gravity_torque(q))
    np.testing.assert_array_equal(torque(q, parameters={"l": 0.9}), arm.gravity_torque(q, parameters={"l": 0.9}))
    np.testing.assert_array_equal(torque(q, parameters=[1.1, 0.9]), arm.gravity_torque(q, parameters=[1.1, 0.9]))
    mapped = jax.jit(jax.vmap(lambda q, x: torque(q, parameters={"l": x})))(q, lengths)
    np.testing.assert_array_equal(mapped, arm.gravity_torque(q, parameters={"l": lengths}))


def test_bad_arrays(arm):
    """Refuse wrong shapes, types and mixed precision, in jitted functions as well."""
    q, qd, tau = motion(arm, 5)
    arm.jax.forward_dynamics(q, qd, tau)
    for arrays, message in (
        ((q[:, :2], qd, tau), r"forward_dynamics: q has shape \(5, 2\); expected \[..., 3\]"),
        ((q, qd[:4], tau), r"the leading shapes do not fit together: q \(5,\), qd \(4,\), tau \(5,\)"),
        (
            (q.astype("float32"), qd, tau),
            "the arrays have dtypes float32, float64, float64; give all arrays of one dty",
        ),
        ((q.astype(int), qd, tau), "an array has dtype int64; expected float64 or float32"),
    ):
        for f in (arm.jax.forward_dynamics, jax.jit(arm.jax.forward_dynamics)):
            with pytest.raises(InputError, match=message):
                f(*arrays)
    with pytest.raises(TypeError, match="threads"):
        arm.jax.gravity_torque(q, threads=2)


def test_gradients(arm):
    """Compare gradients with differences, under jit and vmap, of several outputs and of parameters."""
    q, qd, tau = motion(arm, 4)
    check_grads = import_jax("jax.test_util").check_grads
    check = lambda f, *x: check_grads(f, x, order=1, modes=["rev"], atol=1e-6, rtol=1e-6)  # noqa: E731
    check(arm.jax.forward_dynamics, q, qd, tau)
    check(jax.jit(jax.vmap(lambda x: arm.jax.forward_dynamics(x, qd[0], tau[0]))), q)
    check(lambda x, u: arm.jax.hybrid_dynamics(x, qd, qd, u, driven=arm.joints[0].name), q, tau)
    held = jax.grad(lambda x: (x * arm.jax.forward_dynamics(jax.lax.stop_gradient(x), qd, tau)).sum())(q)
    assert_close(held, arm.forward_dynamics(q, qd, tau), 1e-14, "the factor of x")


@everyday.long
def test_forward_mode(arm):
    """Agree with native products and with reverse mode, under jit and vmap, with wrenches and several outputs."""
    q, qd, tau = motion(arm, 4)
    dq, dqd, dtau = motion(arm, 2, 4)[0][1], *motion(arm, 4)[1:]
    f = arm.jax.forward_dynamics
    along = arm.function("forward_dynamics").jvp()(q, qd, tau, dq, dqd, dtau)
    for call in (f, jax.jit(f), jax.vmap(f)):
        assert_close(jax.jvp(call, (q, qd, tau), (dq, dqd, dtau))[1], along, 1e-12 * np.abs(along).max(), "tangent")
    held = jax.jvp(lambda x: f(q[0], x, tau), (qd[0],), (dqd[0],))[1]  # repeated along the batch
    zero = np.zeros(3)
    expected = arm.function("forward_dynamics").jvp()(q[0], qd[0], tau, zero, dqd[0], zero)
    assert_close(held, expected, 1e-12 * np.abs(expected).max(), "one velocity")
    wrenches = np.random.default_rng(1).normal(size=(3, 6))
    for call, x in (
        (lambda x: arm.jax.forward_dynamics(q[0], qd[0], tau[0], wrenches=x), wrenches),
        (lambda x: arm.jax.hybrid_dynamics(x, qd[0], qd[0], tau[0], driven=arm.joints[0].name)[1], q[0]),
    ):
        forward, reverse = jax.jit(jax.jacfwd(call))(x), jax.jacrev(call)(x)
        assert_close(forward, reverse, 1e-12 * np.abs(reverse).max(), "both modes")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kinetic_energy", "forward_dynamics"])
def test_second_derivatives(arm, name):
    """Agree with differences of gradients, by forward over reverse and reverse over reverse, in batches."""
    q, qd, tau = motion(arm, 3)

    def f(x, v):
        more = () if name == "kinetic_energy" else (tau[0],)
        return (getattr(arm.jax, name)(x, v, *more) * tau[1]).sum()

    h, gradient = 1e-5, jax.jit(jax.grad(f))
    sides = [np.stack([gradient(q[0] + s * h * e, qd[0]) for e in np.eye(3)]) for s in (1, -1)]
    expected = (sides[0] - sides[1]) / (2 * h)
    size = np.abs(expected).max()
    found = jax.hessian(f)(q[0], qd[0])
    assert_close(found, expected, 1e-8 * size, "against differences")
    assert_close(found, found.T, 1e-12 * size, "symmetry")
    assert_close(jax.jacrev(jax.jacrev(f))(q[0], qd[0]), found, 1e-12 * size, "reverse over reverse")
    mixed = jax.jacrev(jax.grad(f, 0), 1)(q[0], qd[0])
    assert_close(jax.jacfwd(jax.grad(f, 1), 0)(q[0], qd[0]), mixed.T, 1e-12 * size, "mixed derivatives")
    many = jax.jit(jax.vmap(jax.hessian(f)))(q, qd)
    assert many.shape == (3, 3, 3)
    assert_close(many[0], found, 1e-12 * size, "a batch")


def test_further_derivatives_are_refused(arm):
    """Refuse third derivatives, and forward mode first, with the way to second derivatives."""
    q, qd, _ = motion(arm)

    def energy(x):
        return arm.jax.kinetic_energy(x, qd)

    forward_first = jax.jacfwd(jax.jacfwd(energy)), jax.jit(jax.jacrev(jax.jacfwd(energy)))
    for f in (*forward_first, jax.jacfwd(jax.hessian(energy)), jax.grad(lambda x: jax.hessian(energy)(x).sum())):
        with pytest.raises(
            InputError, match=r"at most twice, the first time in reverse mode, as jax.hessian does: use"
        ):
            f(q)


@everyday.long
def test_gradients_with_parameters():
    """Differentiate with parameters at their values, and with respect to one given by name."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.0), (0.1, 0.2, 0.3, 0.0, 0.0, 0.0))
    hinge = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    arm = kt.System(kt.build_mechanism("pendulum", [bob], [hinge], parameters=free))
    q = jax.numpy.asarray(np.linspace(0.3, 0.9, 4)[:, None])
    slope = jax.grad(lambda x: arm.jax.gravity_torque(x).sum())(q)
    wanted = arm.function("gravity_torque").jacobian("q")(np.asarray(q), np.array([1.3, 0.7]))
    assert_close(slope, wanted[..., 0], 1e-14, "slope at the values")
    forward = jax.jacfwd(lambda x: arm.jax.gravity_torque(x)[0])(q[:1])
    assert_close(forward[0, 0, 0], slope[0, 0], 1e-14, "forward mode at the values")
    curved = jax.hessian(lambda x: arm.jax.gravity_torque(x)[0])(q[0])
    assert_close(curved[0, 0], -arm.gravity_torque(np.asarray(q[0]))[0], 1e-13, "the second derivative of a sine")
    by_length = jax.grad(lambda x: arm.jax.gravity_torque(q, parameters={"l": x}).sum())(0.7)
    wanted = arm.function("gravity_torque").jacobian("parameters")(np.asarray(q), np.array([1.3, 0.7]))
    assert_close(by_length, wanted[:, 0, 1].sum(), 1e-13, "slope with respect to the length")


def test_other_interfaces(monkeypatch, tmp_path):
    """Refuse a JAX whose foreign function interface has another major version."""
    xla.minor_version.cache_clear()
    folder = tmp_path / "xla" / "ffi" / "api"
    folder.mkdir(parents=True)
    (folder / "c_api.h").write_text("#define XLA_FFI_API_MAJOR 1\n#define XLA_FFI_API_MINOR 4\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(InputError, match=r"interface of jax .* has version 1\.4; version 0\.x is required"):
        xla.minor_version()
    xla.minor_version.cache_clear()


def test_system_of_jax(arm):
    """Describe the system, pickle it, and name the way to analyses."""
    assert repr(arm.jax) == "<JaxSystem 'planar_3r' on JAX: 3 bodies, nq = 3, nv = 3>"
    assert arm.jax is arm.jax and pickle.loads(pickle.dumps(arm.jax)).nv == 3
    with pytest.raises(AttributeError, match=r"doctor runs on NumPy arrays on the CPU; use \.system\.doctor"):
        arm.jax.doctor()
