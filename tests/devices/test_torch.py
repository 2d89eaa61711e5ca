"""Functions on torch tensors of the CPU: shared memory, options, gradients, and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from kinetree.model import parse

torch = pytest.importorskip("torch", reason="torch is not installed: pip install kinetree[learning]")


@pytest.fixture(scope="module")
def arm() -> kt.System:
    """Return a mechanism of three bodies."""
    return kt.load("planar_3r")


def motion(system: kt.System, *lead: int) -> list:
    """Return random q, qd and tau of a leading shape, as tensors."""
    rng = np.random.default_rng(5)
    q, qd = system.random_state(rng, lead)
    return [torch.from_numpy(x) for x in (q, qd, rng.normal(size=(*lead, system.nv)))]


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
    arm = kt.System(kt.assemble("pendulum", [bob], [joint], parameters=free))
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
    """Record a node in torch's graph, whose backward pass is refused with a remedy."""
    q, qd, tau = motion(arm, 4)
    q.requires_grad_()
    result = arm.torch.forward_dynamics(q, qd, tau)
    assert result.requires_grad
    with pytest.raises(
        InputError, match=r"forward_dynamics of 'planar_3r' has no gradient; .* torch.no_grad\(\) or x.d"
    ):
        result.sum().backward()
    with torch.no_grad():
        assert not arm.torch.forward_dynamics(q, qd, tau).requires_grad
    with pytest.raises(InputError, match="forward_dynamics: out cannot be part of torch's graph of gradients"):
        arm.torch.forward_dynamics(q, qd, tau, out=torch.empty(4, 3, dtype=torch.float64))


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
        ((q, qd.to("meta"), tau), "an argument is on the device 'meta', and the first one on the CPU"),
        ((q * torch.nan, qd, tau), r"q\[0, 0\] is nan"),
    ):
        with pytest.raises(InputError, match=message):
            arm.torch.forward_dynamics(*arrays)
    with pytest.raises(InputError, match=r"under torch.vmap, give the whole batch to the function instead"):
        torch.vmap(arm.torch.gravity_torque)(q)
    with pytest.raises(TypeError, match="dtype"):
        arm.torch.gravity_torque(q, dtype="float32")


def test_system_of_torch(arm):
    """Describe the system, pickle it, and name the way to analyses."""
    assert repr(arm.torch) == "<TorchSystem 'planar_3r' on torch: 3 bodies, nq = 3, nv = 3>"
    assert pickle.loads(pickle.dumps(arm.torch)).nv == 3
    with pytest.raises(AttributeError, match=r"ledger runs on NumPy arrays on the CPU; use \.system\.ledger"):
        arm.torch.ledger()
