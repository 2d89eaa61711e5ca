"""Functions on GPUs: broadcasting, strides, streams, precision and errors, on a stand-in that interprets kernels."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import everyday
import kinetree as kt
from complete import import_torch
from fake_cuda import FakeArray, fake_cupy, install, on_gpu
from kinetree.dynamics import ALGORITHMS
from kinetree.errors import InputError
from kinetree.model import parse
from random_motions import motion
from tolerance import assert_close

EPS = float(np.finfo(float).eps)


@pytest.fixture
def driver(monkeypatch):
    """Install the stand-in for the driver."""
    return install(monkeypatch)


@pytest.fixture
def arm(driver) -> kt.System:
    """Return a mechanism of three bodies."""
    return kt.load("planar_3r")


def assert_equal(result: FakeArray, expected: np.ndarray, label: str, eps: float = EPS) -> None:
    """Compare an array, or each of several, on the device with those of the CPU."""
    if isinstance(expected, tuple):
        for one, other in zip(result, expected, strict=True):
            assert_equal(one, other, label, eps)
        return
    assert result.shape == expected.shape
    assert_close(result.host, expected, 2000 * eps * max(1.0, np.abs(expected).max(initial=0.0)), label)


def compare(arm: kt.System, names) -> None:
    """Compare functions with those of the CPU, with axes, driven joints and wrenches where they take them."""
    rng = np.random.default_rng(2)
    bar = kt.load("four_bar")
    for name in names:
        algorithm = ALGORITHMS[name]
        system = bar if "nc" in algorithm.shape or name.startswith("closing") else arm
        q = system.random_state(rng, 2)[0]
        arrays = [q if x == "q" else rng.normal(size=(2, system.nv)) for x in algorithm.inputs]
        options = {"frame": system.bodies[-1].name} if algorithm.frame else {}
        if algorithm.axes:
            options["axes"] = "world"
        if algorithm.driven:
            options["driven"] = [system.joints[1].name]
        expected, gpu = getattr(system, name)(*arrays, **options), system.on("cuda")
        assert_equal(getattr(gpu, name)(*on_gpu(*arrays), **options), expected, name)
        if algorithm.wrenches and name in ("reactions", "multipliers"):
            w = rng.normal(size=(2, len(system.bodies), 6))
            result = getattr(gpu, name)(*on_gpu(*arrays), wrenches=on_gpu(w)[0])
            assert_equal(result, getattr(system, name)(*arrays, wrenches=w), f"{name} with wrenches")


def test_each_sort_of_algorithm(arm):
    """Run a function of each sort: of a frame, with axes, of driven joints, a matrix, a number, of loops."""
    compare(arm, ("twist", "hybrid_dynamics", "reactions", "inertia_matrix", "kinetic_energy", "closure_jacobian"))


def test_derivatives(arm):
    """Run Jacobians and products of a function on the device, and compare them with those of the CPU."""
    state = motion(arm, 2)
    gpu, cpu = (x.function("forward_dynamics") for x in (arm.on("cuda"), arm))
    assert_equal(gpu.jacobian(("q", "tau"))(*on_gpu(*state)), cpu.jacobian(("q", "tau"))(*state), "jacobian")
    weights = np.array([0.3, -0.7, 1.1])
    assert_equal(gpu.vjp("q")(*on_gpu(*state, weights)), cpu.vjp("q")(*state, weights), "vjp")


@pytest.mark.slow
def test_every_algorithm(arm):
    """Run every function and compare it with that of the CPU."""
    compare(arm, ALGORITHMS)


def test_signatures(arm):
    """Give each method the arrays of the method on the CPU, and only the options that exist on a GPU."""
    for name in ALGORITHMS:
        mine, theirs = (inspect.signature(getattr(x, name)).parameters for x in (arm.on("cuda"), arm))
        cpu = [p for p in theirs if p not in ("check", "threads", "dtype", "actuated", "weights", "share", "columns")]
        assert list(mine) == cpu, name
    assert arm.on("cuda").forward_dynamics.__doc__ == arm.forward_dynamics.__doc__


@pytest.mark.parametrize(
    "shapes", [((), (), ()), ((5,), (5,), (5,)), ((5,), (), (1,)), ((2, 1), (3,), ()), ((0,), (), ())]
)
def test_broadcasting(arm, driver, shapes):
    """Broadcast leading shapes as on the CPU."""
    arrays = [motion(arm, *lead)[k] for k, lead in enumerate(shapes)]
    assert_equal(arm.on("cuda").forward_dynamics(*on_gpu(*arrays)), arm.forward_dynamics(*arrays), "broadcast")


def test_samples_are_read_in_place(arm, driver):
    """Launch with the strides of the given arrays: rows, columns, slices, one state for all samples."""
    q, qd, tau = on_gpu(*motion(arm, 5))
    gpu = arm.on("cuda")
    cpu = arm.forward_dynamics(q.host, qd.host, tau.host)
    assert_equal(gpu.forward_dynamics(q, qd, tau), cpu, "rows")
    assert (driver.launches[-1].entry, driver.launches[-1].strides) == ("rows", [(3, 1)] * 4)
    columns = FakeArray(np.asfortranarray(q.host))
    fake_cupy.allocations = 0
    assert_equal(gpu.forward_dynamics(columns, qd, tau), cpu, "columns")
    assert (driver.launches[-1].entry, driver.launches[-1].strides[0]) == ("kernel", (1, 5))
    both = FakeArray(np.concatenate([q.host, qd.host], axis=1))
    assert_equal(gpu.forward_dynamics(both[:, :3], both[:, 3:], tau), cpu, "slices")
    assert (driver.launches[-1].entry, driver.launches[-1].strides[1]) == ("rows", (6, 1))
    one = arm.forward_dynamics(q.host[0], qd.host, tau.host)
    assert_equal(gpu.forward_dynamics(q[0], qd, tau), one, "one state")
    assert driver.launches[-1].strides[0] == (0, 1)
    backwards = FakeArray(q.host[::-1])
    assert_equal(
        gpu.forward_dynamics(backwards, qd, tau), arm.forward_dynamics(q.host[::-1], qd.host, tau.host), "back"
    )
    assert driver.launches[-1].strides[0] == (-3, 1)
    assert fake_cupy.allocations == 4, "only the results are allocated"


def test_other_strides_are_copied(arm, driver):
    """Copy arrays that two strides cannot describe, by their own library."""
    q, qd, tau = motion(arm, 4, 3)
    gpu = arm.on("cuda")
    swapped = FakeArray(q.swapaxes(0, 1))
    other = [FakeArray(np.ascontiguousarray(x.swapaxes(0, 1))) for x in (qd, tau)]
    expected = arm.forward_dynamics(q, qd, tau).swapaxes(0, 1)
    assert_equal(gpu.forward_dynamics(swapped, *other), expected, "transposed lead")
    assert driver.launches[-1].strides[0] == (3, 1)
    w = np.random.default_rng(1).normal(size=(2, 6, 3))
    result = gpu.gravity_torque(FakeArray(q[0, 0]), wrenches=FakeArray(w.swapaxes(1, 2)))
    assert_equal(result, arm.gravity_torque(q[0, 0], wrenches=w.swapaxes(1, 2)), "transposed wrenches")


def test_out_allocates_nothing(arm, driver):
    """Write to `out` without allocation, return it, and leave gaps between its rows alone."""
    q, qd, tau = on_gpu(*motion(arm, 5))
    gpu, wide = arm.on("cuda"), FakeArray(np.full((5, 8), 0.5))
    fake_cupy.allocations = 0
    out = wide[:, 2:5]
    assert gpu.forward_dynamics(q, qd, tau, out=out) is out
    assert fake_cupy.allocations == 0
    assert_equal(out, arm.forward_dynamics(q.host, qd.host, tau.host), "out")
    assert (wide.host[:, [0, 1, 5, 6, 7]] == 0.5).all()


def test_repeated_calls(arm, driver):
    """Run on new arrays of the same layout as on the first ones, and check again what depends on addresses."""
    gpu, rng = arm.on("cuda"), np.random.default_rng(8)
    for kind in ("rows", "columns"):
        out = FakeArray(np.zeros((5, 3)))
        for _ in range(3):
            q, qd, tau = rng.normal(size=(3, 5, 3))
            x = [FakeArray(np.array(v, order="C" if kind == "rows" else "F")) for v in (q, qd, tau)]
            expected = arm.forward_dynamics(q, qd, tau)
            assert_equal(gpu.forward_dynamics(*x), expected, "new result")
            assert gpu.forward_dynamics(*x, out=out) is out
            assert_equal(out, expected, "out")
            assert driver.launches[-1].entry == ("rows" if kind == "rows" else "kernel")
    whole = FakeArray(rng.normal(size=(8, 3)))
    for last in (False, True):
        if last:
            with pytest.raises(InputError, match="out overlaps q; give memory of its own"):
                gpu.forward_dynamics(whole[:5], x[1], x[2], out=whole[3:])
        else:
            gpu.forward_dynamics(FakeArray(whole.host[:5].copy()), x[1], x[2], out=whole[3:])
    both = FakeArray(rng.normal(size=(5, 6)))
    for _ in range(2):
        expected = arm.gravity_torque(both.host[:, :3])
        assert_equal(gpu.gravity_torque(both[:, :3], out=both[:, 3:]), expected, "columns of one array")
    with pytest.raises(InputError, match="qd is a NumPy array"):
        gpu.forward_dynamics(x[0], x[1].host, x[2])


def test_out_that_cannot_be_written(arm):
    """Refuse `out` of a wrong shape, precision or layout, and memory that an input shares."""
    q, qd, tau = on_gpu(*motion(arm, 5))
    gpu = arm.on("cuda")
    for out, message in (
        (FakeArray(np.zeros((4, 3))), r"forward_dynamics: out has shape \(4, 3\); expected \(5, 3\)"),
        (
            FakeArray(np.zeros((5, 3), "float32")),
            "q has dtype float64 and out has float32; give all arrays of one dtype",
        ),
        (
            FakeArray(np.broadcast_to(np.zeros(3), (5, 3))),
            r"strides \(0, 1\), which a kernel cannot write; give a cont",
        ),
        (tau, "out overlaps tau; give memory of its own"),
        ((tau, tau), "out has 2 arrays; expected a tuple of one each for qdd"),
        (np.zeros((5, 3)), "out is a NumPy array in the memory of the host, and nothing is copied silently; move it"),
    ):
        with pytest.raises(InputError, match=message):
            gpu.forward_dynamics(q, qd, tau, out=out)
    with pytest.raises(InputError, match="out has shape .* which a kernel cannot write"):
        gpu.inertia_matrix(q, out=FakeArray(np.zeros((5, 3, 3)).swapaxes(1, 2)))


def test_precision_by_the_arrays(arm, driver):
    """Compute in single precision for such arrays, with code of its own, and allocate such results."""
    arrays = motion(arm, 6)
    gpu = arm.on("cuda")
    result = gpu.forward_dynamics(*on_gpu(*arrays, dtype="float32"))
    assert result.dtype == np.float32
    assert_equal(result, arm.forward_dynamics(*arrays), "float32", float(np.finfo("float32").eps))
    assert gpu.forward_dynamics(*on_gpu(*arrays)).dtype == np.float64
    assert driver.loads == 2
    gpu.forward_dynamics(*on_gpu(*arrays))
    assert driver.loads == 2, "code is loaded once"


def test_streams_and_devices(arm, driver):
    """Launch on the library's current stream of the arrays' device, and allocate there."""
    gpu = arm.on("cuda")
    for device, stream in ((0, 7001), (1, 7002)):
        result = gpu.inertia_matrix(*on_gpu(motion(arm, 2)[0], device=device))
        last = driver.launches[-1]
        assert (last.device, last.stream, result.device.id) == (device, stream, device)
    with pytest.raises(InputError, match="q is on cuda:0; this function is for cuda:1, and that of on"):
        arm.on("cuda:1").inertia_matrix(*on_gpu(motion(arm)[0]))
    q, qd = on_gpu(*motion(arm)[:2])
    with pytest.raises(InputError, match="bias_torque: q is on cuda:0 and qd on cuda:1; give all arrays on one device"):
        gpu.bias_torque(q, FakeArray(qd.host, 1))


def test_launches_cover_all_samples(arm, driver):
    """Start one thread per sample, with the threads and the shared memory of each entry."""
    q = on_gpu(motion(arm, 10)[0])[0]
    arm.on("cuda").gravity_torque(q)
    assert (driver.launches[-1].blocks, driver.launches[-1].threads, driver.launches[-1].shared) == (4, 3, 96)
    arm.on("cuda").gravity_torque(FakeArray(np.asfortranarray(q.host)))
    assert (driver.launches[-1].blocks, driver.launches[-1].threads, driver.launches[-1].shared) == (3, 4, 0)


def test_empty_batches(arm, driver):
    """Return empty arrays for empty batches, and for outputs without entries, without a launch."""
    gpu = arm.on("cuda")
    assert gpu.forward_dynamics(*on_gpu(*motion(arm, 0))).shape == (0, 3)
    assert gpu.inertia_matrix(*on_gpu(np.zeros((3, 0, 3)))).shape == (3, 0, 3, 3)
    assert gpu.closure_residual(*on_gpu(motion(arm, 4)[0])).shape == (4, 0)
    assert not driver.launches


def test_bad_arrays(arm):
    """Refuse arrays of the host, of wrong types, shapes and numbers, with the remedy."""
    q, qd, tau = on_gpu(*motion(arm, 5))
    gpu = arm.on("cuda")

    foreign = type("Foreign", (), {"__cuda_array_interface__": {}})
    for arrays, message in (
        (
            (q, qd.host, tau),
            r"forward_dynamics: qd is a NumPy array in the memory of the host, and nothing is copied s",
        ),
        ((q, [0.1, 0.2, 0.3], tau), r"qd is \[0.1, 0.2, 0.3\], in the memory of the host"),
        ((q, foreign(), tau), "qd is of the type Foreign; give cupy.asarray"),
        ((q, None, tau), "qd is of the type NoneType; expected an array of CuPy, torch or JAX on a GPU"),
        (
            (q, FakeArray(qd.host.astype("float32")), tau),
            "q has dtype float64 and qd has float32; give all arrays of on",
        ),
        ((FakeArray(np.zeros((5, 3), int)), qd, tau), "q has dtype int64; expected float64 or float32"),
        ((q[:, :2], qd, tau), r"q has shape \(5, 2\); expected \[..., 3\]"),
        ((q, qd[:4], tau), r"the leading shapes do not fit together: q \(5,\), qd \(4,\), tau \(5,\)"),
        (
            (FakeArray(np.zeros((5, 3), [("x", "f8"), ("y", "f4")])["x"]), qd, tau),
            r"strides \(36, 12\) \[bytes\], no mul",
        ),
    ):
        with pytest.raises(InputError, match=message):
            gpu.forward_dynamics(*arrays)
    with pytest.raises(InputError, match=r"forward_dynamics takes 3 arrays \(q, qd, tau\), not 2"):
        gpu.function("forward_dynamics")(q, qd)


@everyday.long
def test_mixed_libraries(arm, monkeypatch):
    """Refuse arrays of two libraries, and tensors of the host, with the remedy."""
    torch = import_torch()
    q, tau = on_gpu(*motion(arm, 5)[1:])
    with pytest.raises(InputError, match="q is an array of CuPy and qd one of torch; give all arrays of one library"):
        arm.on("cuda").forward_dynamics(q, torch.zeros(5, 3), tau)
    with pytest.raises(InputError, match="gravity_torque: q is a torch tensor on the device 'cpu'; move it: x.to"):
        arm.on("cuda").gravity_torque(torch.zeros(5, 3))


def test_parameters(driver):
    """Take free parameters as an array on the device, as numbers by name, and as arrays by name."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.0, 0.0))
    joint = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    parameters = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    arm = kt.System(kt.build_mechanism("pendulum", [bob], [joint], parameters=parameters))
    free = ["m", "l"]
    gpu, (q, qd, tau) = arm.on("cuda"), motion(arm, 4)
    device = on_gpu(q, qd, tau)
    assert_equal(gpu.forward_dynamics(*device), arm.forward_dynamics(q, qd, tau), "nominal")
    values = np.array([p.value for p in arm.mechanism.free_parameters]) * np.array([[1.1], [0.9], [1.3], [1.2]])
    cpu = arm.forward_dynamics(q, qd, tau, parameters=values)
    assert_equal(gpu.forward_dynamics(*device, parameters=on_gpu(values)[0]), cpu, "array")
    named = {free[0]: 1.7}
    cpu = arm.forward_dynamics(q, qd, tau, parameters=named)
    assert_equal(gpu.forward_dynamics(*device, parameters=named), cpu, "a number by name")
    batch = {free[0]: on_gpu(values[:, 0])[0]}
    cpu = arm.forward_dynamics(q, qd, tau, parameters={free[0]: values[:, 0]})
    assert_equal(gpu.forward_dynamics(*device, parameters=batch), cpu, "an array by name")
    with pytest.raises(kt.UnknownNameError, match="no free parameter 'mas'"):
        gpu.forward_dynamics(*device, parameters={"mas": 1.0})
    fixed = gpu.fixed(values[1])
    assert_equal(fixed.forward_dynamics(*device), arm.fixed(values[1]).forward_dynamics(q, qd, tau), "fixed")
    with pytest.raises(InputError, match="'.*' has no free parameters; declare them"):
        fixed.forward_dynamics(*device, parameters=named)


def test_devices_by_name(arm):
    """Return the system itself for the CPU, and refuse names of devices that do not exist."""
    assert arm.on("cpu") is arm
    assert repr(arm.on("cuda:1")) == "<CudaSystem 'planar_3r' on cuda:1: 3 bodies, nq = 3, nv = 3>"
    for bad in ("gpu", "cuda:x", "cuda:-1", 3, None, "CUDA"):
        with pytest.raises(InputError, match=r"the device is .*; expected 'cpu', 'cuda', or 'cuda:0' with the number"):
            arm.on(bad)
    with pytest.raises(InputError, match="there is no GPU cuda:2"):
        arm.on("cuda:2")
    assert pickle.loads(pickle.dumps(arm.on("cuda"))).nq == 3


def test_methods_of_the_cpu(arm):
    """Name the way to analyses, which run on the CPU, and refuse options and long chains."""
    gpu = arm.on("cuda")
    with pytest.raises(AttributeError, match=r"verify runs on NumPy arrays on the CPU; use \.system\.verify"):
        gpu.verify()
    with pytest.raises(AttributeError, match="'CudaSystem' object has no attribute 'nonsense'"):
        _ = gpu.nonsense
    assert gpu.system is arm and gpu.mechanism is arm.mechanism and gpu.joints == arm.joints
    with pytest.raises(TypeError, match="threads"):
        gpu.gravity_torque(on_gpu(motion(arm)[0])[0], threads=2)
    with pytest.raises(
        InputError, match=r"gravity_torque of 'chain.*' is compiled with loops over its 70 bodies, and such"
    ):
        kt.chain(70).on("cuda").function("gravity_torque")


def test_code_is_cached(arm, driver, monkeypatch):
    """Read PTX from the cache in the next session, without tracing the algorithm again."""
    q = on_gpu(motion(arm, 2)[0])[0]
    first = arm.on("cuda").gravity_torque(q)
    monkeypatch.setattr("kinetree.backends.cuda.system.program_of", lambda *_: pytest.fail("traced again"))
    assert_equal(arm.on("cuda").gravity_torque(q), first.host, "from the cache")
