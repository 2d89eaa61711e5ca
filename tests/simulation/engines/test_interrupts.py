"""Ctrl-C: a run ends soon, also within an output interval, and keeps the states computed so far."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import InputError
from kinetree.simulation.engines import pieces
from kinetree.simulation.engines.runs import run
from kinetree.simulation.integrators import METHODS, stepper
from kinetree.simulation.run_states import Settings

CHILD = """
import signal
import sys
import numpy as np
import kinetree as kt

signal.signal(signal.SIGINT, signal.default_int_handler)  # which processes in the background of a shell ignore

arm = kt.load("stanford")
start = np.array([0.0, 1.5, 0.1, 0.2, 0.3, 0.4])
kt.simulate(arm, {start}, duration=1e-4, progress=False, {options})  # compiles the method
print("ready", flush=True)
run = kt.simulate(arm, {start}, times=np.linspace(0.0, {duration}, {count}), progress=False, {options})
run.save(sys.argv[1])
print(run.status, flush=True)
"""

CASES = {
    "fixed steps within an interval": ("start", 1e4, 3, "dt=1e-6"),
    "fixed steps over intervals": ("start", 2e4, 100_001, "dt=1e-5"),
    "adaptive steps within an interval": ("start", 1e7, 3, "rtol=1e-10, max_steps=10**12"),
    "held torques": (
        "start", 1e3, 1001, 'dt=1e-5, control=kt.Sampled(kt.PD(20.0, 2.0, kt.Hold([0.1] * 6)), rate=1000.0)'
    ),
    "steps in Python": ("start", 1e5, 3, 'method="implicit_euler", dt=1e-5'),
    "SUNDIALS": ("start", 1e6, 100_001, 'method="bdf", rtol=1e-10, max_steps=10**9'),
    "SciPy": ("start", 1e5, 100_001, 'method="scipy", max_steps=10**9'),
    "two threads": ("np.tile(start, (20, 1))", 1e3, 1001, "dt=1e-4, threads=2"),
}  # fmt: skip


EVERYDAY = ("fixed steps within an interval", "adaptive steps within an interval")


@pytest.mark.parametrize("case", everyday.some(everyday.only(CASES, EVERYDAY)))
def test_ctrl_c_keeps_what_was_computed(case, tmp_path):
    """Interrupt a run of hours after a moment, and find its states in a file soon after."""
    start, duration, count, options = CASES[case]
    code = CHILD.format(start=start, duration=duration, count=count, options=options)
    file = tmp_path / "run.npz"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(
            0.5 if case in EVERYDAY else 3.0
        )  # the run is under way; some first take memory for a million states
        child.send_signal(signal.SIGINT)
        said, wrong = child.communicate(timeout=60)
    finally:
        child.kill()
    assert said.startswith("stopped: interrupted at t = "), wrong
    with np.load(file) as data:
        assert data["t"][-1] > 0.0
        assert np.isfinite(data["q"][..., :2, :]).all()
    assert kt.read_trajectory(file).evaluations > 0


def test_evaluations_of_an_interrupted_interval_count(monkeypatch):
    """Interrupt fixed steps within an interval, and count the evaluations of every step until then."""
    calls = []

    def stop(*_):
        calls.append(True)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(pieces.Pace, "learn", lambda *_: None)  # 64 steps per call
    arm = kt.load("planar_2r")
    made, settings = stepper(arm.mechanism, METHODS["rk4"]), Settings(dt=1e-3)
    done = run(made, np.array([0.3, -0.7]), np.zeros(2), np.array([0.0, 10.0]), settings, progress=stop)
    assert done.interrupted
    assert done.now == 3 * 64 * 1e-3
    assert (done.steps, done.evaluations) == (192, 4 * 192)


def test_calls_of_any_length_give_the_same_bits(monkeypatch):
    """Stop native calls after three steps, also within intervals, and find the states and counts of long calls."""
    arm, times = kt.load("four_bar"), np.linspace(0.0, 0.3, 7)
    q0 = np.array([arm.assemble()] * 2)
    for options in ({"method": "rk4", "dt": 1e-3}, {"method": "dop853"}, {"method": "dopri5", "rtol": 1e-6}):
        long = kt.simulate(arm, q0, times=times, progress=False, **options)
        monkeypatch.setattr(pieces.Pace, "learn", lambda self, steps, seconds: setattr(self, "budget", 3.0))
        short = kt.simulate(arm, q0, times=times, progress=False, **options)
        monkeypatch.undo()
        assert np.array_equal(short.q, long.q) and np.array_equal(short.qd, long.qd), options
        assert short.evaluations == long.evaluations and short.status == "finished"


def test_too_many_fixed_steps_are_refused_at_once():
    """Request more steps than the default or given max_steps, and read the remedy."""
    arm = kt.load("planar_2r")
    with pytest.raises(
        InputError, match="dt is 1e-25 s: the run takes 1e\\+25 steps, more than max_steps = 1000000000000"
    ):
        kt.simulate(arm, duration=1.0, dt=1e-25)
    with pytest.raises(InputError, match="the run takes 1e\\+03 steps, more than max_steps = 999; give a larger dt"):
        kt.simulate(arm, times=[0.0, 1.0], dt=1e-3, max_steps=999)
    assert kt.simulate(arm, times=[0.0, 1.0], dt=1e-3, max_steps=1000).finished
