"""Time steps as functions of arrays on a GPU, played by this processor: the numbers of the CPU, in one launch."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import fake_cuda
import host_gpu
import kinetree as kt
from closed_mechanisms import library_state
from fake_cuda import FakeArray, fake_cupy, on_gpu
from kinetree.apps.walking.legged import quadruped
from kinetree.errors import InputError
from tolerance import assert_close

DT = 1 / 128


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """Install the stand-ins."""
    fake_cuda.install_arrays(monkeypatch)
    return host_gpu.install(monkeypatch)


def compared(system: kt.System, arrays: tuple, bound: float, dtype: str = "float64", call=None, **options) -> tuple:
    """Compare a step on the GPU with that of the CPU, from the same numbers; return both functions."""
    call = call or {}
    step, own = system.on("cuda").stepper(dt=DT, **options), system.stepper(dt=DT, **options)
    assert step.names == own.names
    found = step(*on_gpu(*arrays, dtype=dtype), **{name: on_gpu(x, dtype=dtype)[0] for name, x in call.items()})
    expected = own(*arrays, **call)
    assert len(found) == len(expected)
    for a, b in zip(found[:3], expected, strict=False):
        assert a.host.dtype == dtype and a.shape == b.shape
        assert_close(a.host, b, bound * max(1.0, np.abs(b).max()), "state")
    return step, own


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_are_those_of_the_cpu(dtype, gpu):
    """Step a tree under torques, a free base without, and a loop that is closed on the GPU, each in one launch."""
    bound = 1e-11 if dtype == "float64" else 2e-4
    arm, rng = kt.load("planar_3r"), np.random.default_rng(2)
    q, qd = arm.random_state(5, 6)
    compared(arm, (q, qd, rng.normal(size=(6, 3))), bound, dtype, substeps=3)
    free = kt.load("space_robot_3r")
    compared(free, free.random_state(3, (2, 3)), bound, dtype, control=())
    bars, q, qd, _ = library_state("four_bar")
    step, _ = compared(bars, (np.tile(q, (3, 1)), np.outer([0.4, 1.0, -0.8], qd)), bound, dtype, control=())
    assert len(gpu.launches) == 3
    if dtype == "float64":
        state = on_gpu(np.tile(q, (3, 1)), np.outer([0.4, 1.0, -0.8], qd))
        for _ in range(10):
            state = step(*state)
        assert np.abs(bars.closure_residual(state[0].host)).max() < 1e-12


def test_samples_have_parameters_times_and_strides():
    """Give parameters of each sample, by name and in order, times by name, columns, and one velocity for all."""
    arm = kt.with_free(kt.load("planar_2r"), "mass.*")
    q, qd = arm.random_state(4, 7)
    nominal = np.array([p.value for p in arm.mechanism.free_parameters])
    values = nominal * np.linspace(0.8, 1.2, 7)[:, None]
    tau = np.full((7, 2), 0.3)
    step, own = compared(arm, (q, qd, tau), 1e-12, call={"parameters": values})
    name = arm.mechanism.free_parameters[0].name
    found = step(*on_gpu(q, qd, tau), parameters={name: on_gpu(values[:, 0])[0]})
    assert_close(found[0].host, own(q, qd, tau, parameters={name: values[:, 0]})[0], 1e-12, "one by name")
    columns = [FakeArray(np.array(x, order="F")) for x in (q, qd)]
    assert_close(step(*columns, *on_gpu(tau[0]))[1].host, own(q, qd, tau[0])[1], 1e-12, "columns, and one torque")
    control = kt.PD(0.6, 0.02, kt.Cycloid([0.3, -0.7], [1.1, 0.4], 0.05))
    step, own = (s.stepper(dt=DT, control=control) for s in (arm.on("cuda"), arm))
    t = 0.01 * np.arange(7.0)
    found = step(*on_gpu(q, qd), t=on_gpu(t)[0])
    assert_close(found[1].host, own(q, qd, t)[1], 1e-11, "times by name")


@everyday.long
def test_contacts_step_on_the_gpu():
    """Let a quadruped drop on its feet, with impulses that are passed on, and left out at first."""
    robot = quadruped()
    q0, qd0 = robot.standing.copy(), np.zeros(robot.system.nv)
    q0[1] += 2e-3
    hold = kt.PD(robot.k, robot.c, kt.Constant(q0[7:].tolist()), joints=robot.drives)
    options = {"dt": 1 / 128, "control": hold, "contacts": robot.contacts, "substeps": 8}
    step, own = robot.system.stepper(device="cuda", **options), robot.system.stepper(**options)
    found, expected = on_gpu(q0[None], qd0[None]), (q0[None], qd0[None])
    for _ in range(4):
        found, expected = step(*found[:3]), own(*expected[:3])
    for a, b in zip(found[:3], expected, strict=False):
        assert_close(a.host, b, 1e-9 * max(1.0, np.abs(b).max()), "state and impulses")
    assert expected[2][..., 0].min() > 0.0 and found[3].shape == (1,)


def test_known_shapes_are_launched_again(gpu):
    """Call with `out` on the same shapes: nothing is allocated, and addresses alone are new."""
    arm = kt.load("planar_2r")
    step, own = arm.on("cuda").stepper(dt=DT), arm.stepper(dt=DT)
    q, qd = arm.random_state(1, 5)
    tau = np.zeros((5, 2))
    first, out = on_gpu(q, qd, tau), tuple(on_gpu(np.zeros((5, 2)), np.zeros((5, 2))))
    step(*first, out=out)
    made, launches = fake_cupy.allocations, len(gpu.launches)
    other = on_gpu(q + 0.1, qd, tau)
    assert step(*other, out=out)[0] is out[0]
    assert fake_cupy.allocations == made and len(gpu.launches) == launches + 1
    assert_close(out[0].host, own(q + 0.1, qd, tau)[0], 1e-12, "coordinates")
    step(*first)
    assert_close(step(*first)[1].host, own(q, qd, tau)[1], 1e-12, "velocities in new memory")
    assert step(*on_gpu(q[:0], qd[:0], tau[:0]))[0].shape == (0, 2), "no samples"
    assert repr(step) == "<step of planar_2r: (q, qd, tau), 0.0078125 s on cuda>"


def test_errors_of_calls():
    """Name what is wrong with arrays, types, results and options."""
    arm = kt.load("planar_2r")
    step, q = arm.on("cuda").stepper(dt=DT), np.zeros((4, 2))
    given = on_gpu(q, q, q)
    for arrays, options, text in (
        (given[:2], {}, r"step takes 3 arrays \(q, qd, tau\), not 2"),
        ((q, q, q), {}, "step: q is a NumPy array in the memory of the host"),
        ((*given[:2], on_gpu(q, dtype="float32")[0]), {}, "q has dtype float64 and tau has float32"),
        ((*given[:2], on_gpu(q[:, :1])[0]), {}, r"tau has shape \(4, 1\)"),
        (given, {"out": given[:2]}, "out may share memory with an input"),
        (given, {"out": on_gpu(q)}, "out has 1 arrays"),
        (given, {"parameters": {"mass": 1.0}}, "has no free parameters"),
    ):
        with pytest.raises(InputError, match=text):
            step(*arrays, **({"out": tuple(options["out"])} if "out" in options else options))
    with pytest.raises(TypeError, match="unexpected keyword argument 'threads'; on a GPU it takes q, qd, tau"):
        step(*given, threads=2)
    with pytest.raises(InputError, match="device is 'cuda:1', and the system is on cuda; leave it out"):
        arm.on("cuda").stepper(dt=DT, device="cuda:1")
