"""Runs as functions of arrays: gradients in torch and JAX against differences, batches, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from complete import import_jax, import_torch
from kinetree.errors import InputError, KinetreeError
from kinetree.model import parse
from kinetree.simulation.methods.table import METHODS
from pendulums import pendulum
from tolerance import assert_close

TIMES = np.array([0.0, 0.05, 0.12, 0.2])
FIXED = {"times": TIMES, "method": "rk4", "dt": 0.02}
ADAPTIVE = [
    pytest.param({"times": TIMES, "method": name, "rtol": 1e-9}, id=name, marks=pytest.mark.slow)
    for name, m in METHODS.items()
    if m.native and m.adaptive
]


def test_numpy_arrays():
    """Return the states of `simulate`, for leading shapes that fit together, parameters by name and torques."""
    system, f = pendulum(), kt.run_function(pendulum(), **FIXED)
    q, qd, length = np.array([[0.3], [0.9]]), np.array([0.4]), np.array([[0.4], [0.5], [0.6]])
    found = f(q, qd, parameters={"l": length})
    for k in range(3):
        run = kt.simulate(system, q, np.broadcast_to(qd, q.shape), parameters={"l": float(length[k, 0])}, **FIXED)
        assert np.array_equal(found[0][k], run.q) and np.array_equal(found[1][k], run.qd)
    assert found[0].shape == (3, 2, 4, 1)
    held = f([0.3], torques=[[0.5], [0.5], [0.5]])
    control = kt.TorqueFunction(lambda t, q, qd: [0.5])
    assert_close(held[0], kt.simulate(system, [0.3], control=control, **FIXED).q, 1e-14, "a constant torque")
    assert repr(f) == "<RunFunction of 'pendulum': 4 output times, 0.2 s>"


@pytest.mark.parametrize("options", [pytest.param(FIXED, id="rk4"), *ADAPTIVE])
def test_gradients_in_torch(options):
    """Compare gradients of all samples with differences, of arguments that are repeated along the batch as well."""
    torch = import_torch()
    f = kt.run_function(pendulum(), **options)
    rng = np.random.default_rng(3)
    q, qd, u = (torch.from_numpy(rng.normal(size=shape)).requires_grad_() for shape in ((2, 1), (1,), (3, 1)))
    length = torch.tensor([[0.4], [0.6]], dtype=torch.float64, requires_grad=True)
    call = lambda q, qd, length, u: f(q, qd, parameters=length, torques=u)  # noqa: E731
    assert torch.autograd.gradcheck(call, (q, qd, length, u))
    assert torch.autograd.gradcheck(lambda x: f(q.detach(), parameters={"l": x})[1], (length[:, 0],))
    with torch.no_grad():
        assert not f(q)[0].requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("name", ["space_robot_3r", "four_bar"])
def test_gradients_with_quaternions_and_loops(name):
    """Compare gradients of mechanisms with quaternions and with loops with differences."""
    torch = import_torch()
    system = kt.load(name)
    q, qd = system.random_state(4)
    if system.closures:
        q, qd = system.assemble(), np.zeros(system.nv)
    u = torch.from_numpy(np.random.default_rng(5).normal(size=(3, system.nv))).requires_grad_()
    for options in (FIXED, {"times": TIMES, "method": "dop853", "rtol": 1e-10}):
        f = kt.run_function(system, **options)
        q0, qd0 = torch.from_numpy(q), torch.from_numpy(0.4 * qd)
        assert torch.autograd.gradcheck(lambda x, f=f, q0=q0, qd0=qd0: f(q0, qd0, torques=x), (u,))
        if not system.closures:
            start = q0.clone().requires_grad_(), qd0.clone().requires_grad_()
            assert torch.autograd.gradcheck(f, start)


@everyday.long
@pytest.mark.parametrize("options", [pytest.param(FIXED, id="rk4"), *ADAPTIVE[1:]])
def test_gradients_in_jax(options):
    """Compare gradients with differences, and under jit and vmap with those of a batch."""
    jax = import_jax()
    check_grads = import_jax("jax.test_util").check_grads
    f = kt.run_function(pendulum(), **options)
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        q, qd, length, u = (
            jax.numpy.asarray(x) for x in (rng.normal(size=(2, 1)), [0.3], [0.6], rng.normal(size=(3, 1)))
        )
        call = lambda q, qd, length, u: f(q, qd, parameters=length, torques=u)  # noqa: E731
        check_grads(call, (q, qd, length, u), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)
        np.testing.assert_array_equal(f(q, qd)[0], f(np.asarray(q), np.asarray(qd))[0])
        end = lambda q, x: f(q, qd, parameters={"l": x})[0][..., -1, 0].sum()  # noqa: E731
        by_q, by_length = jax.grad(end, argnums=(0, 1))(q, 0.6)
        each, lengths = jax.jit(jax.vmap(jax.grad(end, argnums=(0, 1)), in_axes=(0, None)))(q, 0.6)
        assert_close(each, by_q, 1e-15, "vmap of grad")
        assert_close(lengths.sum(), by_length, 1e-15, "vmap of grad, by the length")


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch itself, when forward mode is first used
def test_bad_tensors():
    """Refuse other arrays, precisions, devices and shapes of tensors."""
    torch = import_torch()
    f, q = kt.run_function(pendulum(), **FIXED), torch.tensor([[0.3], [0.4]], dtype=torch.float64)
    with pytest.raises(
        InputError, match="run_function: torch differentiates runs in reverse mode; forward derivatives"
    ):
        torch.func.jvp(f, (q,), (q,))
    for given, message in (
        ({"q0": q.float(), "qd0": q.float(), "parameters": q[0].float()},
         "run_function: the tensors have dtype torch.float32; runs are in float64, so give x.double()"),
        ({"q0": q.float()}, "run_function: the tensors have dtypes torch.float32, torch.float64, torch.float64; give "
         "all tensors of one dtype"),
        ({"q0": q, "qd0": q.numpy()}, "run_function: an argument is of the type ndarray; expected a torch tensor"),
        ({"q0": q.int()}, "run_function: an argument has dtype torch.int32; expected torch.float64 or torch.float32"),
        ({"q0": q, "qd0": q.to("meta")}, "run_function: qd0 is on the device 'meta', and runs with gradients are "
         "computed on the CPU; give x.cpu()"),
        ({"q0": torch.zeros(2, 3, dtype=torch.float64)}, "run_function: q0 has shape (2, 3); expected [..., 1]"),
        ({"q0": q, "qd0": q[:1].repeat(3, 1)}, "run_function: the leading shapes do not fit together: q0 (2,), qd0 "
         "(3,), parameters ()"),
        ({"q0": q, "torques": q}, "run_function: torques has shape (2, 1); expected [..., 3, 1]"),
        ({"q0": q * torch.nan}, "q0 has entries that are not finite"),
        ({"q0": q, "parameters": {"m": q}}, "no free parameter 'm'; available: l"),
    ):  # fmt: skip
        with pytest.raises(KinetreeError) as caught:
            f(**given)
        assert str(caught.value) == message
    with pytest.raises(InputError, match=r"under torch.vmap, give the whole batch to the function instead"):
        torch.vmap(f)(q)


def test_bad_jax_arrays():
    """Refuse single precision and wrong shapes, also while functions are traced."""
    jax = import_jax()
    f = kt.run_function(pendulum(), **FIXED)
    with pytest.raises(InputError, match=r'begin with jax.config.update\("jax_enable_x64", True\) and give float64'):
        f(
            jax.numpy.array([0.3], dtype="float32"),
            jax.numpy.array([0.1], dtype="float32"),
            parameters=np.ones(1, "float32"),
        )
    with jax.enable_x64(True):
        q = jax.numpy.array([0.3, 0.4])
        with pytest.raises(InputError, match=r"q0 has shape \(2,\); expected \[..., 1\]"):
            jax.jit(f)(q)
        with pytest.raises(InputError, match="run_function: an array has dtype int64; expected float64 or float32"):
            f(q[:1].astype(int))
        for call in (f, jax.jit(f)):
            with pytest.raises(
                InputError, match="run_function: JAX differentiates runs in reverse mode; forward derivatives"
            ):
                jax.jvp(call, (q[:1],), (q[1:],))
        for call in (f, jax.grad(lambda x: f(x)[0].sum())):
            with pytest.raises(InputError, match="q0 has entries that are not finite"):
                call(q[:1] * np.nan)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": [0.5]}, "run_function: parameters are an argument of the function that it returns; leave them"),
        ({"method": "bdf", "dt": None}, "runs by bdf have no derivatives; use rk4, euler, midpoint or gauss with dt"),
        ({"method": "rk5"}, "no method 'rk5'; did you mean 'rk4'? available: auto, rk4"),
        ({"events": kt.Event(lambda now: now.q[0])}, "events: the time of an event depends on the run, and a run with"),
        ({"times": [0.0]}, "times must be at least two finite numbers, each larger than the one before"),
    ],
)
def test_bad_options(options, message):
    """Refuse options without gradients when the function is made."""
    with pytest.raises(KinetreeError) as caught:
        kt.run_function(pendulum(), **(FIXED | options))
    assert str(caught.value).startswith(message)


def test_other_bad_input():
    """Refuse systems of other libraries, parameters of a mechanism without any, and name runs that fail."""
    with pytest.raises(InputError, match=r"run_function takes a System, not 'arm'; load one with kt.load"):
        kt.run_function("arm", **FIXED)
    with pytest.raises(InputError, match="'planar_2r' has no free parameters; declare them with free = true"):
        kt.run_function(kt.load("planar_2r"), **FIXED)([0.3, 0.1], parameters=[1.0])
    f = kt.run_function(pendulum(), times=TIMES, method="dopri5", max_steps=15)
    with pytest.raises(
        KinetreeError, match=r"run_function: run 1 of 2 failed: .*max_steps.*; the last good state is at"
    ):
        f([[0.3], [0.7]], [[0.0], [90.0]])
    with pytest.raises(
        InputError, match=r"Runs with gradients in torch and JAX are those of kt.run_function\(system, "
    ):
        kt.simulate(pendulum().torch, [0.3], duration=1.0)


@pytest.mark.slow
def test_fitting_a_length():
    """Find the length of a pendulum from samples of its motion by an optimizer of torch."""
    torch = import_torch()
    f = kt.run_function(kt.System(kt.with_parameters(pendulum(), c=0.1)), **FIXED | {
        "forces": kt.JointDamper("hinge", parse("c"))})  # fmt: skip
    start = torch.tensor([[0.4], [1.1]], dtype=torch.float64)
    with torch.no_grad():
        seen = f(start, parameters=torch.tensor([0.43, 0.2], dtype=torch.float64))[0]
    values = torch.tensor([0.5, 0.0], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([values], max_iter=60, tolerance_grad=1e-14, tolerance_change=1e-16,
                               line_search_fn="strong_wolfe")  # fmt: skip

    def misfit():
        search.zero_grad()
        loss = (f(start, parameters=values)[0] - seen).square().sum() * 1e4
        loss.backward()
        return loss

    search.step(misfit)
    assert_close(values.detach(), [0.43, 0.2], 1e-6, "length and damping")
