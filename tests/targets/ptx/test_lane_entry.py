"""Kernels of runs as GPU code: on this processor against native runs, and their PTX assembled."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import everyday
import gpu_on_cpu
import kinetree as kt
from assembler import assembled, needs_ptxas
from closed_mechanisms import library_state
from host_gpu import freed
from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.form import Kind
from kinetree.compiler.lanes.interpret import interpret
from kinetree.runtime.native import native_kernel
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import Stepper, stepper
from kinetree.simulation.methods.table import METHODS
from kinetree.targets import target
from tolerance import assert_close

NATIVE = [name for name, m in METHODS.items() if m.native]
CASES = ("planar_3r", "space_robot_3r", "gear_train", "four_bar", "parameters", "control")
"""A tree, a free base with a quaternion, a coupling, a loop, parameters of a tree, a controller."""


@cache
def case(name: str, method: str, dtype: str = "float64") -> tuple[Stepper, tuple]:
    """Return the integrator of a case, and arguments of its kernel."""
    model = {"control": "planar_2r"}.get(name, name)
    arm = freed("spatial_pendulum") if name == "parameters" else kt.load(model)
    control = kt.PD(0.6, 0.02, kt.Cycloid([0.3, -0.7], [1.1, 0.4], 0.5)) if name == "control" else None
    forces = [kt.JointDamper(arm.joints[0].name, 0.0035)]
    made = stepper(ForcedMechanism(arm.mechanism, forces, control, dtype=dtype), METHODS[method].scheme)
    if arm.closures:
        _, q, qd, _ = library_state(model)
        q, qd = np.tile(q, (3, 1)), np.array([0.4, 1.0, -0.8])[:, None] * qd
    else:
        q, qd = arm.random_state(5, 3)
    more = ()
    if free := arm.mechanism.free_parameters:
        more = (np.array([p.value for p in free]) * (1.0 + 0.01 * np.arange(3.0))[:, None],)
    times = np.array([0.13, 0.151, 0.162])
    settings = (0.0061, 0.0, np.inf)
    if made.adaptive:
        settings = (1e-4, 1e-6) if dtype == "float32" else (1e-7, 1e-9)
        settings += (np.array([1e-3, 4e-3, 2e-3]), np.full(3, 500.0), np.full(3, times[0]))
    return made, (q, qd, *more, times, *settings)


def every(everyday: str) -> list:
    """Return all cases with all methods; every day rk4 with all cases, and all methods with one case."""
    slow = pytest.mark.slow
    return [
        pytest.param(name, method, marks=() if method == "rk4" or name == everyday else slow)
        for name in CASES
        for method in NATIVE
    ]


@pytest.mark.parametrize(("name", "method"), everyday.some(every("four_bar")))
def test_runs_equal_native_ones(name, method):
    """Run the kernel of every method with one run at a time, and compare with vectors of runs."""
    made, arguments = case(name, method)
    expected = made.gufunc(*arguments)
    found = gpu_on_cpu.run_kernel(made.register_kernel, arguments)
    if made.adaptive:  # the next step follows from an error estimate, all differences, and amplifies rounding
        assert_close(found[4][:, 5] / expected[4][:, 5], np.ones(3), 1e-4, "step")
        found[4][:, 5] = expected[4][:, 5] = 0.0
    for label, a, b in zip(("q", "qd", "q_end", "qd_end", "report"), found, expected, strict=True):
        assert_close(a, b, 1e-12 * max(1.0, np.abs(b).max()), f"{label} of {method}")


@pytest.mark.parametrize("method", everyday.some(NATIVE))
def test_single_precision(method):
    """Run a closed mechanism in float32: its loops close to the rounding of float32, and its motion agrees."""
    made, arguments = case("four_bar", method, "float32")
    expected = case("four_bar", method)[0].gufunc(*case("four_bar", method)[1])
    found = gpu_on_cpu.run_kernel(made.register_kernel, arguments, dtype="float32")
    for label, a, b in zip(("q", "qd", "q_end", "qd_end"), found, expected, strict=False):
        assert_close(a, b, 3e-4 * max(1.0, np.abs(b).max()), f"{label} of {method}")
    if not made.adaptive:
        np.testing.assert_array_equal(found[4], expected[4])


@needs_ptxas
@pytest.mark.parametrize(("name", "method"), everyday.some(every("planar_3r")))
def test_ptx_is_assembled(name, method, tmp_path):
    """Assemble the kernel of every method; the state of a run stays in registers."""
    for dtype in ("float64", "float32"):
        made, _ = case(name, method, dtype)
        code = target("ptx").build(target("ptx").emit(made.register_kernel, dtype))
        registers, spilled = assembled(code, tmp_path)["kernel"]
        assert 0 < registers <= 255
        assert spilled < 512  # bytes
        kept = b"local .align" in code
        assert kept == (method not in ("rk4", "euler")), "only methods that keep several stages have local memory"


def test_threads_of_a_block_meet():
    """Write a barrier for graphics cards, and run a kernel with one on this processor and interpreted."""
    k = Builder("meeting", {})
    x, y = k.array("x"), k.array("y", output=True)
    value = k.block("value")
    with k.each_lane():
        value.value = x[()]
    with k.loop(k.whole(k.constant(2.0, Kind.SCALAR))):
        k.meet()
        value.value = value.value * 2.0
    with k.each_lane():
        y[()] = value.value
    kernel = k.kernel()
    assert b"bar.sync" in target("ptx").build(target("ptx").emit(kernel, "float64"))
    given = np.array([1.5, -2.0, 3.0])
    for found in (gpu_on_cpu.run_kernel(kernel, [given])[0], interpret(kernel, given)[0], native_kernel(kernel)(given)):
        np.testing.assert_array_equal(found, 4.0 * given)
