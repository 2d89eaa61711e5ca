"""The benchmark of runs on a GPU, with a stand-in for it."""

from __future__ import annotations

import pytest

import host_gpu


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_case_is_compared_and_counted(dtype, monkeypatch):
    """Measure a four-bar by decaying gaps, with a launch that takes one second."""
    import gpu_runs

    device = host_gpu.install(monkeypatch)
    monkeypatch.setattr(gpu_runs, "MOST", 64)
    case = gpu_runs.measure(device, "four_bar", "rk4", "decaying", dtype, 1)
    assert case.inside.median == 64 * gpu_runs.STEPS / 1e9
    assert (case.registers, case.local, case.target) == (40, 8, 10.5 if dtype == "float64" else 19.8)
    assert case.difference <= gpu_runs.AGREE[dtype]
    assert gpu_runs._row(case)[:4] == ("four_bar", "rk4", "decaying", dtype)


def test_a_flexible_arm_runs_on_a_gpu(monkeypatch):
    """Compare the long arm with two flexible booms with the CPU, and count its runs."""
    import gpu_runs

    device = host_gpu.install(monkeypatch)
    monkeypatch.setitem(gpu_runs.RUNS, "space_arm", 64)
    case = gpu_runs.measure(device, "space_arm", "rk4", "projected", "float64", 1)
    assert case.inside.median == 64 * gpu_runs.STEPS / 1e9
    assert case.difference <= gpu_runs.AGREE["float64"]  # 1.8e-13
