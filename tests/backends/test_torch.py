"""Functions on torch tensors of the CPU: shared memory, options, gradients, and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import everyday
import kinetree as kt
import random_motions
from complete import import_torch
from kinetree.errors import InputError
from kinetree.model import parse
from tolerance import assert_close


@pytest.fixture(scope="module", autouse=True)
def library():
    """Import torch, or skip; not when tests are collected, because it takes seconds."""
    global torch
    torch = import_torch()


@pytest.fixture(scope="module")
def arm() -> kt.System:
    """Return a mechanism of three bodies."""
    return kt.load("planar_3r")


def motion(system: kt.System, *lead: int) -> list:
    """Return random q, qd and tau of a leading shape, as tensors."""
    return [torch.from_numpy(x) for x in random_motions.motion(system, *lead)]


def test_bits_of_the_gufunc(arm):
    """Return tensors with the bits of NumPy's results, of the same precision, also for views and broadcasts."""
    q, qd, tau = motion(arm, 5, 4)
    expected = arm.forward_dynamics(*(x.numpy() for x in (q, qd, tau)))
    result = arm.torch.forward_dynamics(q, qd, tau)
    assert isinstance(result, torch.Tensor) and result.dtype == torch.float64
    np.testing.assert_array_equal(result, expected)
    turned = arm.torch.forward_dynamics(q.transpose(0, 1), qd.transpose(0, 1), tau.transpose(0, 1))
    np.testing.assert_array_equal(turned.transpose(0, 1), expected)
    wide = arm.torch.forward_dynamics(q[0, 0].expand(4, 3), qd[0], tau[:, :1])
    np.testing.assert_array_equal(wide, arm.forward_dynamics(q[0, 0].numpy(), qd[0].numpy(), tau[:, :1].numpy()))
    single = arm.torch.forward_dynamics(q.float(), qd.float(), tau.float())
    assert single.dtype == torch.float32
    np.testing.assert_array_equal(single, arm.forward_dynamics(*(x.numpy() for x in (q, qd, tau)), dtype="float32"))
    energy = arm.torch.kinetic_energy(q[0, 0], qd[0, 0])
    assert energy.shape == () and energy == arm.kinetic_energy(q[0, 0].numpy(), qd[0, 0].numpy())
    tool = arm.bodies[-1].name
    np.testing.assert_array_equal(arm.torch.pose(q, tool), arm.pose(q.numpy(), tool))


def test_out_is_written_in_place(arm):
    """Write to a tensor, with threads and without checks, and return it."""
    q, qd, tau = motion(arm, 6)
    out = torch.full((6, 3), 0.5, dtype=torch.float64)
    address = out.data_ptr()
    assert arm.torch.forward_dynamics(q, qd, tau, out=out, threads=2, check=False) is out
    assert out.data_ptr() == address
    np.testing.assert_array_equal(out, arm.torch.forward_dynamics(q, qd, tau))


def test_parameters_and_wrenches():
    """Take free parameters as a tensor, as numbers and tensors by name, and wrenches as a tensor."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.0))
    joint = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    arm = kt.System(kt.build_mechanism("pendulum", [bob], [joint], parameters=free))
    rng = np.random.default_rng(3)
    q, lengths, w = rng.normal(size=(6, 1)), np.linspace(0.5, 0.9, 6), rng.normal(size=(6, 1, 6))
    x, torque = torch.from_numpy(q), arm.torch.gravity_torque
    for _ in range(2):
        np.testing.assert_array_equal(torque(x), arm.gravity_torque(q))
        np.testing.assert_array_equal(torque(x.float()), arm.gravity_torque(q, dtype="float32"))
    np.testing.assert_array_equal(torque(x, parameters={"l": 0.9}), arm.gravity_torque(q, parameters={"l": 0.9}))
    named = torque(x, parameters={"l": torch.from_numpy(lengths)})
    np.testing.assert_array_equal(named, arm.gravity_torque(q, parameters={"l": lengths}))
    given = torque(x, parameters=torch.tensor([1.1, 0.9], dtype=torch.float64), wrenches=torch.from_numpy(w))
    np.testing.assert_array_equal(given, arm.gravity_torque(q, parameters=[1.1, 0.9], wrenches=w))


def test_gradients(arm):
    """Compare gradients with differences, also of inputs that are repeated along the batch, and refuse `out`."""
    q, qd, tau = motion(arm, 4)
    for x in (q, qd, tau):
        x.requires_grad_()
    assert torch.autograd.gradcheck(arm.torch.forward_dynamics, (q, qd, tau))
    assert torch.autograd.gradcheck(arm.torch.forward_dynamics, (q, qd[0].detach(), tau[:1]))
    assert torch.autograd.gradcheck(lambda x: arm.torch.pose(x, "link3"), (q,))
    with torch.no_grad():
        assert not arm.torch.forward_dynamics(q, qd, tau).requires_grad
    with pytest.raises(InputError, match="forward_dynamics: out cannot be part of torch's graph of gradients"):
        arm.torch.forward_dynamics(q, qd, tau, out=torch.empty(4, 3, dtype=torch.float64))


def test_gradients_of_parameters_and_quaternions():
    """Differentiate free parameters, and the entries of quaternions, which functions scale to unit length."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.1), (0.1, 0.2, 0.3, 0.0, 0.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    ball = kt.Joint("ball", "spherical", "ground", "bob")
    system = kt.System(kt.build_mechanism("pendulum", [bob], [ball], parameters=free))
    rng = np.random.default_rng(3)
    q, qd = (torch.from_numpy(x).requires_grad_() for x in system.random_state(rng, 3))
    values = torch.tensor([1.1, 0.9], dtype=torch.float64, requires_grad=True)
    energy = lambda q, qd, p: system.torch.kinetic_energy(q, qd, parameters=p)  # noqa: E731
    assert torch.autograd.gradcheck(energy, (q, qd, values))
    (slope,) = torch.autograd.grad(system.torch.gravity_torque(q).sum(), q)
    assert_close((slope * q).sum(axis=-1).detach(), np.zeros(3), 1e-14, "slope along the quaternion")


def test_gradients_at_singular_positions_of_loops():
    """Refuse the backward pass where there are no derivatives, and return NaN without checks."""
    system, zero = kt.load("slider_crank"), torch.zeros(3, dtype=torch.float64)
    q = torch.tensor([np.pi, -np.pi, 0.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(InputError, match="'slider_crank' is at a singular position of its loops"):
        system.torch.forward_dynamics(q, zero, zero).sum().backward()
    system.torch.forward_dynamics(q, zero, zero, check=False).sum().backward()
    assert q.grad.isnan().all()


def test_gradients_of_rolled_functions_are_refused():
    """Refuse the gradient of a long chain, which is compiled with loops over its bodies."""
    rope = kt.chain(70)
    q = torch.zeros(rope.nq, dtype=torch.float64, requires_grad=True)
    torque = rope.torch.gravity_torque(q)
    with pytest.raises(InputError, match=r"vjp of gravity_torque of .*: derivatives are straight-line code"):
        torque.sum().backward()


def test_bad_tensors(arm):
    """Refuse other arrays, wrong types, shapes and numbers that are not finite."""
    q, qd, tau = motion(arm, 5)
    arm.torch.forward_dynamics(q, qd, tau)
    for arrays, message in (
        ((q, qd.numpy(), tau), "forward_dynamics: an argument is of the type ndarray; expected a torch tensor"),
        (
            (q, qd.float(), tau),
            "the tensors have dtypes torch.float64, torch.float32, torch.float64; give all tensors of",
        ),
        ((q.int(), qd, tau), "an argument has dtype torch.int32; expected torch.float64 or torch.float32"),
        ((q[:, :2], qd, tau), r"q has shape \(5, 2\); expected \[..., 3\]"),
        (
            (q, qd.to("meta"), tau),
            "an argument is on the device 'meta'; give all tensors on the CPU, or all on one GPU",
        ),
        (
            (q.to_sparse(), qd, tau),
            r"a tensor has the layout torch.sparse_coo; expected a dense one, so give x.to_dense",
        ),
        ((q * torch.nan, qd, tau), r"q\[0, 0\] is nan"),
    ):
        with pytest.raises(InputError, match=message):
            arm.torch.forward_dynamics(*arrays)
    with pytest.raises(InputError, match=r"under torch.vmap, give the whole batch to the function instead"):
        torch.vmap(arm.torch.gravity_torque)(q)
    with pytest.raises(TypeError, match="dtype"):
        arm.torch.gravity_torque(q, dtype="float32")
    with pytest.raises(
        InputError, match=r"q is a tensor that requires gradients; give x.detach\(\), or call system.torch.g"
    ):
        arm.gravity_torque(q.clone().requires_grad_())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch itself, when forward mode is first used
def test_forward_mode(arm):
    """Return tangents by dual tensors and torch.func, and Jacobians by both modes, with leading axes or without."""
    q, qd, tau = motion(arm, 4)
    dq, _, dtau = (x.flip(0) for x in motion(arm, 4))
    given = [x.numpy() for x in (q, qd, tau, dq, torch.zeros_like(qd), dtau)]
    expected = arm.function("forward_dynamics").jvp()(*given)
    size = np.abs(expected).max()
    ahead = torch.autograd.forward_ad
    arm.torch.forward_dynamics(q, qd, tau)  # the next call is like an earlier one
    with ahead.dual_level():
        found = ahead.unpack_dual(arm.torch.forward_dynamics(ahead.make_dual(q, dq), qd, ahead.make_dual(tau, dtau)))
        assert_close(found.tangent, expected, 1e-12 * size, "dual tensors")
    _, along = torch.func.jvp(lambda x, u: arm.torch.forward_dynamics(x, qd, u), (q, tau), (dq, dtau))
    assert_close(along, expected, 1e-12 * size, "torch.func.jvp")

    forward, reverse = (
        mode(lambda x: arm.torch.forward_dynamics(x, qd[0], tau))(q[0])
        for mode in (torch.func.jacfwd, torch.func.jacrev)
    )
    assert forward.shape == (4, 3, 3)
    assert_close(forward, reverse, 1e-12 * float(reverse.abs().max()), "both modes")
    slope = torch.func.grad(lambda x: arm.torch.kinetic_energy(x, qd[0]))(q[0])
    assert_close(slope, arm.function("kinetic_energy").vjp("q")(q[0].numpy(), qd[0].numpy(), 1.0), 1e-14, "func.grad")


def test_driven_joints_of_one_call_only(arm):
    """Return accelerations without driven joints after a call with some."""
    q, qd, tau = motion(arm, 4)
    given = q, qd, tau, 0.7 * tau
    for options in ({"driven": arm.joints[0].name}, {}):
        expected = arm.hybrid_dynamics(*(x.numpy() for x in given), **options)
        for found, wanted in zip(arm.torch.hybrid_dynamics(*given, **options), expected, strict=True):
            assert np.array_equal(found.numpy(), wanted)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch itself, when forward mode is first used
def test_forward_mode_of_several_outputs(arm):
    """Return the same Jacobians of accelerations and torques by both modes."""
    q, qd, tau = motion(arm, 4)

    def f(x):
        return arm.torch.hybrid_dynamics(x, qd[0], qd, tau, driven=arm.joints[0].name)

    for a, b in zip(torch.func.jacfwd(f)(q[0]), torch.func.jacrev(f)(q[0]), strict=True):
        assert_close(a, b, 1e-12 * float(b.abs().max()), "both modes")


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch itself, when forward mode is first used
def test_dual_tensors(arm):
    """Return the tangent of an energy, and refuse the tangent of its gradient."""
    q, qd, dq = motion(arm)
    ahead = torch.autograd.forward_ad
    with ahead.dual_level():
        found = ahead.unpack_dual(arm.torch.kinetic_energy(ahead.make_dual(q, dq), qd))
        expected = arm.function("kinetic_energy").jvp("q")(*(x.numpy() for x in (q, qd, dq)))
        assert_close(found.tangent, expected, 1e-13 * abs(expected), "tangent")
        x = ahead.make_dual(q.clone().requires_grad_(), dq)
        with pytest.raises(InputError, match="torch differentiates functions of a mechanism once"):
            torch.autograd.grad(arm.torch.kinetic_energy(x, qd), x)


@everyday.long
def test_second_derivatives_are_refused(arm):
    """Refuse to differentiate a gradient again, which would otherwise count as constant; keep it as a value."""
    q, qd, _ = motion(arm)
    q.requires_grad_()
    (slope,) = torch.autograd.grad(arm.torch.kinetic_energy(q, qd), q, create_graph=True)
    assert_close(slope.detach(), arm.function("kinetic_energy").vjp("q")(*(x.detach().numpy() for x in (q, qd)), 1.0),
                 1e-14, "the gradient")  # fmt: skip
    with pytest.raises(
        InputError, match=r"torch differentiates functions of a mechanism once; second derivatives are th"
    ):
        slope.square().sum().backward()
    with pytest.raises(InputError, match="torch differentiates functions of a mechanism once"):
        torch.func.jacrev(torch.func.jacrev(lambda x: arm.torch.kinetic_energy(x, qd)))(q.detach())


def test_system_of_torch(arm):
    """Describe the system, pickle it, and name the way to analyses."""
    assert repr(arm.torch) == "<TorchSystem 'planar_3r' on torch: 3 bodies, nq = 3, nv = 3>"
    assert pickle.loads(pickle.dumps(arm.torch)).nv == 3
    with pytest.raises(AttributeError, match=r"ledger runs on NumPy arrays on the CPU; use \.system\.ledger"):
        arm.torch.ledger()
