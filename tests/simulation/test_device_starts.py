"""Starts on a GPU, with stand-ins for it and for CuPy: they stay there, are checked there, and are not changed."""

from __future__ import annotations

import numpy as np
import pytest

import fake_cuda
import host_gpu
import kinetree as kt
from closed_mechanisms import library_state
from fake_cuda import FakeArray, on_gpu
from kinetree.errors import InputError
from tolerance import assert_close

OPTIONS = {"times": [0.0, 0.02, 0.05], "dt": 1e-3, "keep": "device"}


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """Install the stand-ins."""
    fake_cuda.install_arrays(monkeypatch)
    return host_gpu.install(monkeypatch)


@pytest.fixture
def no_copies(monkeypatch):
    """Fail if a start is copied to the host."""

    def refused(arrays):
        raise AssertionError("the start was copied to the host")

    monkeypatch.setattr("kinetree.simulation.starts.on_host", refused)


def compared(system: kt.System, given: tuple, start: tuple, bound: float, **more) -> None:
    """Compare runs from arrays on the GPU with those of the CPU from the same numbers."""
    found = kt.simulate(system.on("cuda"), *given, **(OPTIONS | more))
    expected = kt.simulate(system, *start, **{name: x for name, x in (OPTIONS | more).items() if name != "keep"})
    assert found.status == "finished" and found.q.shape == expected.q.shape
    assert_close(found.q.host, expected.q, bound * max(1.0, np.abs(expected.q).max()), "q")
    assert_close(found.qd.host, expected.qd, 10 * bound * max(1.0, np.abs(expected.qd).max()), "qd")


@pytest.mark.parametrize("order", ["C", "F"])
def test_starts_stay_on_the_gpu(order, no_copies):
    """Start from row-major and column-major arrays over several launches, and leave them as they are."""
    arm = kt.load("planar_3r")
    q, qd = arm.random_state(5, 6)
    given = [FakeArray(np.array(x, order=order)) for x in (q, qd)]
    compared(arm, tuple(given), (q, qd), 1e-11)
    np.testing.assert_array_equal(given[0].host, q)
    np.testing.assert_array_equal(given[1].host, qd)


def test_starts_are_broadcast(no_copies):
    """Start all runs with one velocity, with none, and with quaternions in a batch with two axes."""
    arm, free = kt.load("planar_2r"), kt.load("space_robot_3r")
    q, qd = arm.random_state(5, 6)
    compared(arm, tuple(on_gpu(q, qd[2])), (q, qd[2]), 1e-11)
    compared(arm, (on_gpu(q)[0], None), (q, None), 1e-11)
    start = tuple(x.reshape(2, 3, -1) for x in free.random_state(5, 6))
    compared(free, tuple(on_gpu(*start)), start, 1e-11)


def test_one_array_in_single_precision(no_copies):
    """Run in float32 if one array has this precision."""
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(5, 3)
    found = kt.simulate(arm.on("cuda"), on_gpu(q)[0], on_gpu(qd, dtype="float32")[0], **OPTIONS)
    assert found.q.host.dtype == np.float32
    expected = kt.simulate(arm, q, qd, times=OPTIONS["times"], dt=OPTIONS["dt"])
    assert_close(found.q.host.astype(float), expected.q, 1e-4, "q")


@pytest.mark.parametrize("case", ["closed", "integers", "host"])
def test_other_starts_pass_through_the_host(case):
    """Close loops, convert integers, and take velocities of the host."""
    if case == "closed":
        arm, q, qd, _ = library_state("four_bar")
        given = on_gpu(q, qd)
    else:
        arm = kt.load("planar_2r")
        q, qd = np.array([[1.0, 2.0], [3.0, -1.0]]), arm.random_state(5, 2)[1]
        given = (on_gpu(q, dtype="int64")[0], on_gpu(qd)[0]) if case == "integers" else (on_gpu(q)[0], qd)
    compared(arm, tuple(given), (q, qd), 1e-11)


def test_bad_starts_are_refused():
    """Name the array and what is wrong, as for arrays of the host."""
    arm, free = kt.load("planar_2r"), kt.load("space_robot_3r")
    q, qd = arm.random_state(5, 4)
    lost, away = q.copy(), qd.copy()
    lost[2, 1], away[3, 0] = np.nan, -np.inf
    turned, still = free.random_state(5, 4)
    at = next(k for k in range(free.nq) if np.isclose(np.linalg.norm(turned[:, k : k + 4], axis=1), 1).all())
    turned[1, at : at + 4] = 0
    for system, start, message in (
        (arm, (lost, qd), "q0 has entries that are not finite"),
        (arm, (q, away), "qd0 has entries that are not finite"),
        (arm, (q[:, :1], qd), r"q0 has shape \(4, 1\); expected \[..., 2\]"),
        (arm, (q, qd[:3]), r"the leading shapes do not fit together: q0 \(4,\), qd0 \(3,\)"),
        (free, (turned, still), f"q0 has a quaternion of zeros in its entries {at} to {at + 3}"),
    ):
        for given in (start, on_gpu(*start)):
            more = OPTIONS if given is not start else {"times": OPTIONS["times"], "dt": 1e-3}
            with pytest.raises(InputError, match=message):
                kt.simulate(system.on("cuda"), *given, **more)
