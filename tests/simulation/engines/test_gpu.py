"""Runs on a GPU, with a stand-in for it: agreement with the CPU, blocks of runs, faults, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import fake_cuda
import host_gpu
import kinetree as kt
from closed_mechanisms import library_state
from kinetree.errors import InputError
from kinetree.simulation.engines import gpu as engine
from kinetree.simulation.methods.table import METHODS
from tolerance import assert_close

TIMES = np.linspace(0.2, 0.5, 80)


@pytest.fixture
def device(monkeypatch) -> host_gpu.HostDevice:
    """Install the stand-in."""
    return host_gpu.install(monkeypatch)


ON_GPU = [name for name, m in METHODS.items() if m.native and m.scheme.on_gpu]


def same(found: kt.Trajectory, expected: kt.Trajectory, bound: float = 1e-11) -> None:
    """Compare two runs."""
    assert (found.shape, found.status, found.evaluations) == (expected.shape, expected.status, expected.evaluations)
    for name in ("q", "qd", "tau", "energy"):
        assert_close(found[name], expected[name], bound * max(1.0, np.nanmax(np.abs(expected[name]))), name)


@pytest.mark.parametrize("method", everyday.only(ON_GPU, ["rk4", "dopri5"]))
def test_runs_equal_those_of_the_cpu(method, device):
    """Simulate a batch with two axes and a single run, with a controller and friction, over more than one piece."""
    arm = kt.load("planar_3r")
    more = {"rtol": 1e-6, "atol": 1e-8} if METHODS[method].adaptive else {"dt": 1e-3}
    q, qd = arm.random_state(5, 6)
    options = {
        "times": TIMES, "method": method, "control": kt.PD(3.0, 0.5, kt.Hold([0.1, -0.4, 0.7])),
        "forces": kt.JointDamper(arm.joints[1].name, 0.03), **more,
    }  # fmt: skip
    for start in ((q.reshape(2, 3, -1), qd.reshape(2, 3, -1)), (q[4], qd[4])):
        same(kt.simulate(arm.on("cuda"), *start, **options), kt.simulate(arm, *start, **options))
    assert {threads for threads, _ in device.launches} == {4, 8}


@pytest.mark.parametrize("loops", everyday.some([kt.Projection(), kt.Baumgarte(15.0), kt.Minimal()]))
def test_loops_stay_closed(loops, device):
    """Simulate a four-bar by all ways to keep its loop closed."""
    arm, q, qd, _ = library_state("four_bar")
    options = {"times": [0.0, 0.05, 0.1], "dt": 1e-3, "loops": loops}
    start = np.tile(q, (3, 1)), np.array([[0.5], [1.0], [-1.3]]) * qd
    same(kt.simulate(arm.on("cuda"), *start, **options), kt.simulate(arm, *start, **options))


def test_parameters_of_each_run(device):
    """Simulate pendulums of different lengths from one start, and all with the same numbers."""
    arm = host_gpu.freed("spatial_pendulum")
    values = np.array([p.value for p in arm.mechanism.free_parameters]) * np.linspace(0.9, 1.1, 5)[:, None]
    q, qd = arm.random_state(2, 5)
    for chosen in (values, values[1]):
        options = {"times": [0.0, 0.1, 0.2], "dt": 1e-3, "parameters": chosen}
        same(kt.simulate(arm.on("cuda"), q, qd, **options), kt.simulate(arm, q, qd, **options))


@pytest.mark.parametrize("how", ["runs", "memory"])
def test_blocks_of_runs(how, device, monkeypatch):
    """Compute a batch in blocks of at most three runs, bounded by their number or by the memory of the GPU."""
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(7, 10)
    options = {"times": [0.0, 0.04, 0.1], "dt": 2e-3}
    expected = kt.simulate(arm.on("cuda"), q, qd, **options)
    shown = []
    monkeypatch.setattr("kinetree.simulation.simulate.show_progress", lambda progress: _Shown(shown))
    if how == "runs":
        monkeypatch.setattr(engine, "BLOCK", 3)
    else:
        device.free = 4 * 3 * 2 * (3 + 4) * 4 * 8 + 100  # a quarter of it for three runs
    found = kt.simulate(arm.on("cuda"), q, qd, **options)
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.qd, expected.qd)
    assert [arguments[-1] for _, arguments in device.launches[-4:]] == [3, 3, 3, 1]
    np.testing.assert_allclose(shown, [0.3, 0.6, 0.9, 1.0])


class _Shown:
    """A progress bar that notes what it shows."""

    def __init__(self, parts: list[float]) -> None:
        self.parts = parts

    def __enter__(self):
        return self.parts.append

    def __exit__(self, *_):
        return None


def test_a_run_that_fails_stops_alone(device, monkeypatch):
    """Start one run so fast that its state leaves the finite numbers."""
    monkeypatch.setattr(engine, "BLOCK", 4)
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(7, 6)
    qd[5] = 1e150
    found = kt.simulate(arm.on("cuda"), q, qd, times=[0.0, 0.04, 0.1], dt=2e-3)
    assert found.status == (
        "stopped: the state left the finite numbers; the last good state is at t = 0 s (run 5; 1 runs in all)"
    )
    assert np.isnan(found.q[5, 1:]).all() and np.isfinite(np.delete(found.q, 5, axis=0)).all()


def test_ctrl_c_keeps_finished_blocks(device, monkeypatch):
    """Interrupt the second of three blocks."""
    monkeypatch.setattr(engine, "BLOCK", 3)
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(7, 8)
    device.interrupt = 1
    with pytest.raises(KeyboardInterrupt) as stop:
        kt.simulate(arm.on("cuda"), q, qd, times=[0.0, 0.04, 0.1], dt=2e-3)
    found = stop.value.run
    assert found.status == "stopped: interrupted at t = 0 s; runs 0 to 2 are finished"
    assert np.isfinite(found.q[:3]).all() and np.isnan(found.q[3:, 1:]).all()
    np.testing.assert_array_equal(found.q[:, 0], q)


@pytest.fixture
def cupy(monkeypatch):
    """Install a stand-in for CuPy, whose arrays are those of NumPy."""
    fake_cuda.install_arrays(monkeypatch)


@pytest.mark.parametrize(("method", "more"), [("rk4", {"dt": 1e-3}), ("euler", {"dt": 1e-3}), ("dopri5", {})])
def test_samples_stay_on_the_device(method, more, device, cupy):
    """Keep the samples of a batch with two axes on the GPU, in the library of the start."""
    arm = host_gpu.freed("spatial_pendulum")
    q, qd = (x.reshape(2, 3, -1) for x in arm.random_state(5, 6))
    values = np.array([p.value for p in arm.mechanism.free_parameters]) * np.linspace(0.9, 1.1, 6).reshape(2, 3, 1)
    options = {"times": np.linspace(0.0, 0.1, 12), "method": method, "parameters": values, **more}
    expected = kt.simulate(arm, q, qd, **options)
    given = fake_cuda.on_gpu(q, qd)
    found = kt.simulate(arm.on("cuda"), *given, keep="device", **options)
    assert (found.status, found.method, list(found.failed)) == ("finished", method, [])
    assert_close(found.q.host, expected.q, 1e-7 if method == "dopri5" else 1e-11, "q")
    assert_close(found.qd.host, expected.qd, 1e-6 if method == "dopri5" else 1e-10, "qd")
    assert found.q.host.strides[-3:] == (3 * 6 * 8, 6 * 8, 8) or found.q.host.strides[1] == 8
    assert found.evaluations == expected.evaluations
    if method == "dopri5":
        return
    device.interrupt = len(device.launches) + 2
    with pytest.raises(KeyboardInterrupt) as stop:
        kt.simulate(arm.on("cuda"), *given, keep="device", **options)
    part = stop.value.run
    assert part.status == f"stopped: interrupted at t = {options['times'][3]:.9g} s"
    np.testing.assert_array_equal(part.q.host, found.q.host[:, :, :4])


@pytest.mark.parametrize("keep", ["host", "device"])
def test_interpolated_samples_are_closed_on_the_gpu(keep, device, cupy):
    """Close the loops of samples between adaptive steps, and compare with the CPU."""
    arm, q, qd, _ = library_state("four_bar")
    q, qd = np.tile(q, (3, 1)), np.array([[0.5], [1.0], [-1.3]]) * qd
    options = {"times": np.linspace(0.0, 0.1, 7), "method": "dopri5", "rtol": 1e-5}
    expected = kt.simulate(arm, q, qd, **options)
    given = fake_cuda.on_gpu(q, qd) if keep == "device" else (q, qd)
    found = kt.simulate(arm.on("cuda"), *given, keep=keep, **options)
    found_q, found_qd = (getattr(x, "host", x) for x in (found.q, found.qd))
    assert np.abs(arm.closure_residual(found_q)).max() < 1e-12
    assert_close(found_q, expected.q, 1e-10, "q")
    assert_close(found_qd, expected.qd, 1e-9, "qd")


def test_failed_runs_on_the_device_are_named(device, cupy):
    """Start one run so fast that its state leaves the finite numbers."""
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(7, 3)
    qd[1] = 1e150
    found = kt.simulate(arm.on("cuda"), *fake_cuda.on_gpu(q, qd), times=[0.0, 0.04, 0.1], dt=2e-3, keep="device")
    assert found.status == "stopped: the state left the finite numbers (run 1; 1 runs in all)"
    assert list(found.failed) == [1]


def test_what_cannot_stay_on_the_device_is_refused(device, cupy):
    """Name the option and what it takes."""
    arm, q, qd, _ = library_state("four_bar")
    given = {"q0": fake_cuda.on_gpu(q)[0], "qd0": qd, "duration": 0.1, "keep": "device"}
    for system, more, message in (
        (arm, {}, "keep is 'device': give a system on a GPU, system.on"),
        (arm.on("cuda"), {"keep": "gpu"}, "keep is 'gpu'; give 'host' or 'device'"),
        (arm.on("cuda"), {"events": kt.Event(lambda now: now.q[0])}, "events are located on the CPU only"),
        (arm.on("cuda:0"), {"q0": fake_cuda.on_gpu(q, device=1)[0]}, "q0 is on cuda:1, and the system on cuda:0"),
        (arm.on("cuda"), {"q0": q}, "simulate: q0 is a NumPy array in the memory of the host"),
    ):
        with pytest.raises(InputError, match=message):
            kt.simulate(system, **(given | more))


class OnDevice:
    """An array of another library on a GPU."""

    def __init__(self, x: np.ndarray) -> None:
        """Store an array."""
        self.x, self.dtype = x, x.dtype
        self.__cuda_array_interface__ = {"data": (x.ctypes.data, False)}

    def get(self) -> np.ndarray:
        """Return a copy in the memory of the host, as CuPy does."""
        return self.x.copy()


def test_the_start_determines_the_precision(device):
    """Start from arrays on the GPU, in float64 and float32."""
    arm = kt.load("four_bar")
    _, q, qd, _ = library_state("four_bar")
    options = {"times": [0.0, 0.05, 0.1], "dt": 1e-3}
    expected = kt.simulate(arm, q, qd, **options)
    same(kt.simulate(arm.on("cuda"), OnDevice(q), OnDevice(qd), **options), expected)
    single = kt.simulate(arm.on("cuda"), OnDevice(q.astype("f4")), qd, **options)
    error = np.abs(single.q - expected.q).max()
    assert 1e-9 < error < 1e-4
    assert np.abs(single["gap"]).max() < 1e-5


class Waiting:
    """A function of Python as a controller."""

    def __call__(self, t, q, qd):
        """Return no torques."""
        return np.zeros(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": kt.Event(lambda now: now.q[0])}, "events are located on the CPU only; leave them out, or simulate"),
        ({"control": kt.PythonControl(Waiting(), rate=100.0)}, "PythonControl is evaluated between the steps, on the"),
        ({"method": "bdf", "dt": None}, "bdf runs on the CPU only; on a GPU use rk4, euler, midpoint, gauss, dopri5, "),
        ({"method": "rodas5p", "dt": None}, "rodas5p runs on the CPU only; on a GPU use rk4, .*, dopri5, .*, or "),
        ({"threads": 2}, "threads is 2: it is for the CPU; leave it out for a GPU"),
        ({"checkpoint": "x"}, "a run on a GPU keeps no checkpoints"),
        ({"method": "dopri5", "dt": None, "q0": np.zeros(2, "f4")}, "rtol is 1e-08, too small for float32; give 1e-06"),
    ],
)
def test_what_runs_on_the_cpu_only_is_refused(options, message, device):
    """Name the option and the alternative."""
    arm = kt.load("planar_2r")
    with pytest.raises(InputError, match=message):
        kt.simulate(arm.on("cuda"), **({"duration": 0.1, "dt": 1e-3} | options))


def test_long_mechanisms_are_refused(device):
    """Name the number of bodies."""
    with pytest.raises(InputError, match="has 80 bodies, too many for the kernel of a GPU; simulate the system itself"):
        kt.simulate(kt.chain(80).on("cuda"), duration=0.1, dt=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_real_gpu_agrees(dtype):
    """Compare runs on the GPU of this machine with those of the CPU, with loops, quaternions and adaptive steps."""
    for name, more in (("four_bar", {"dt": 1e-3}), ("space_robot_3r", {"method": "dopri5", "rtol": 1e-5})):
        arm = kt.load(name)
        q, qd = arm.random_state(3, 300)
        if arm.closures:
            q = np.tile(arm.assemble(), (300, 1))
            qd = arm.closing_speed(q, qd)
        options = {"times": [0.0, 0.05, 0.1]} | more
        expected = kt.simulate(arm, q, qd, **options)
        found = kt.simulate(arm.on("cuda"), q.astype(dtype), qd.astype(dtype), **options)
        scale = max(1.0, np.abs(expected.qd).max())
        assert_close(found.qd, expected.qd, (1e-10 if dtype == "float64" else 2e-3) * scale, name)
