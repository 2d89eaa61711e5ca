"""The choice of an engine for a problem."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.simulation.engines.engine import engine_of
from kinetree.simulation.engines.held_torques import run_held_torques
from kinetree.simulation.engines.marching import run_marching
from kinetree.simulation.engines.native import run_native
from kinetree.simulation.engines.solvers import run_python_stages, run_scipy, run_sundials
from kinetree.simulation.methods.table import METHODS
from kinetree.simulation.problem import Problem
from kinetree.simulation.run_states import Settings


def asked(system: kt.System, method: str, control=None) -> Problem:
    """Return a problem with a duration of 0.1 s."""
    start = system.neutral(), np.zeros(system.nv)
    return Problem(system, start, np.array([0.0, 0.1]), METHODS[method], Settings(dt=1e-3), control=control)


def push(t, q, qd):
    """Return zero torques."""
    return 0.0 * qd


@pytest.mark.parametrize(
    ("method", "control", "engine"),
    [
        *((name, None, run_native) for name, m in METHODS.items() if m.native),
        ("implicit_euler", None, run_marching),
        ("implicit_midpoint", kt.PythonControl(push), run_marching),
        ("bdf", None, run_sundials),
        ("scipy", None, run_scipy),
        ("radau", None, run_scipy),
        ("dop853", kt.PythonControl(push), run_python_stages),
        ("rk4", kt.PythonControl(push, rate=50.0), run_held_torques),
        ("dop853", kt.Sampled(kt.PD(3.0, 1.0, kt.Hold([0.1, 0.2])), rate=50.0), run_held_torques),
    ],
)
def test_each_problem_has_its_engine(method, control, engine):
    """Choose the engine of a short mechanism by its method and control."""
    assert engine_of(asked(kt.load("planar_2r"), method, control)) is engine


@pytest.mark.parametrize("method", ["rk4", "bdf", "implicit_euler"])
def test_long_mechanisms_march(method):
    """Choose steps in Python for a chain of 90 bodies and any method."""
    assert engine_of(asked(kt.chain(90), method)) is run_marching
