"""Ctrl-C: a run ends soon, also within an output interval, and keeps the states computed so far."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import InputError
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.engines import native as native_engine
from kinetree.simulation.engines import pieces
from kinetree.simulation.engines.engine import run
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
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
told = []
def tell(part):
    if part > 0.0 and not told:
        told.append(print("under way", flush=True))
for k in range(100):  # one Ctrl-C ends the loop
    try:
        kt.simulate(arm, {start}, times=np.linspace(0.0, {duration}, {count}), progress=tell, {options})
    except KeyboardInterrupt as error:
        assert k == 0, k
        error.run.save(sys.argv[1])
        print(error.run.status, flush=True)
        raise
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
    """Interrupt a loop over runs of hours after a moment: it ends as by the signal, with the states in a file."""
    start, duration, count, options = CASES[case]
    code = CHILD.format(start=start, duration=duration, count=count, options=options)
    file = tmp_path / "run.npz"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "under way\n"
        child.send_signal(signal.SIGINT)
        said, wrong = child.communicate(timeout=60)
    finally:
        child.kill()
    assert said.startswith("stopped: interrupted at t = ") and said.count("\n") == 1, wrong
    assert child.returncode == -signal.SIGINT
    assert re.search(r"KeyboardInterrupt: simulate was interrupted at t = .* s; the states so far are `run` of", wrong)
    with np.load(file) as data:
        assert data["t"][-1] > 0.0
        assert np.isfinite(data["q"][..., :2, :]).all()
    assert kt.read_trajectory(file).evaluations > 0


def pressing(after, calls):
    """Return a progress function that presses Ctrl-C at a call."""

    def show(part):
        calls.append(part)
        if len(calls) == after:
            raise KeyboardInterrupt

    return show


def test_a_stiff_run_that_is_interrupted_does_not_begin_again(monkeypatch):
    """Press Ctrl-C just when the run proves stiff: no other method is started, and the states so far are kept."""
    real = native_engine.run_native

    def stiff(problem, watch, progress):
        motion = real(problem, watch, progress)
        return replace(motion, instead="rodas5p")

    monkeypatch.setattr(native_engine, "run_native", stiff)
    arm = kt.load("planar_2r")
    with pytest.raises(KeyboardInterrupt, match="simulate was interrupted at t = ") as stop:
        kt.simulate(arm, [0.3, -0.7], times=np.linspace(0.0, 5.0, 1001), progress=pressing(2, []))
    run = stop.value.run
    assert run.method == "dop853" and 1 < len(run) < 1001 and run.status.startswith("stopped: interrupted at t = ")
    monkeypatch.undo()
    whole = kt.simulate(arm, [0.3, -0.7], times=np.linspace(0.0, 5.0, 1001), method="dop853", progress=False)
    assert np.array_equal(run.q, whole.q[: len(run)])


def test_ctrl_c_while_events_are_located_keeps_the_run(monkeypatch):
    """Press Ctrl-C in a short run that locates an event: it is no state of NaN, and the samples are kept."""
    arm, event = kt.load("planar_2r"), kt.Event(lambda now: now.q[0] - 0.1, name="crossing", stop=True)
    real = native_engine.run

    def pressed(made, q, qd, t, *arguments, **options):
        if len(t) == 2:
            raise KeyboardInterrupt
        return real(made, q, qd, t, *arguments, **options)

    options = {"times": np.linspace(0.0, 5.0, 101), "events": event, "method": "dop853", "progress": False}
    found = kt.event_hits(kt.simulate(arm, [0.3, -0.7], **options))
    assert len(found) == 1
    monkeypatch.setattr(native_engine, "run", pressed)
    with pytest.raises(KeyboardInterrupt) as stop:
        kt.simulate(arm, [0.3, -0.7], **options)
    run = stop.value.run
    assert run.status.startswith("stopped: interrupted at t = ") and run.t[-1] >= found[0].t
    assert np.isfinite(run.q).all() and kt.event_hits(run) == []


def test_a_short_run_between_samples_is_not_cut_silently(monkeypatch):
    """Press Ctrl-C inside the native part of a short run: it reaches the caller instead of a state of NaN."""
    arm, event = kt.load("planar_2r"), kt.Event(lambda now: now.q[0] - 0.1, name="crossing")
    real = pieces._call

    def pressed(stepper, state, parameters, shared, *more):
        if len(shared[0]) == 2:
            raise KeyboardInterrupt
        return real(stepper, state, parameters, shared, *more)

    times = np.linspace(0.0, 5.0, 101)
    monkeypatch.setattr(pieces, "_call", pressed)
    for options in ({"method": "dop853"}, {"control": kt.Sampled(kt.PD(20.0, 2.0, kt.Hold([-0.2, 0.1])), rate=7.0)}):
        with pytest.raises(KeyboardInterrupt) as stop:
            kt.simulate(arm, [0.3, -0.7], times=times, events=event, progress=False, **options)
        assert np.isfinite(stop.value.run.q).all()


def test_derivatives_that_are_interrupted_are_kept():
    """Interrupt a differentiated run: the derivatives so far are those of the whole run."""
    arm, times = kt.load("planar_2r"), np.linspace(0.0, 3.0, 301)
    whole = kt.simulation_derivatives(arm, [0.3, -0.7], times=times, dt=1e-3, method="rk4", progress=False)
    with pytest.raises(KeyboardInterrupt, match="simulation_derivatives was interrupted at t = ") as stop:
        kt.simulation_derivatives(
            arm, [0.3, -0.7], times=times, dt=1e-3, method="rk4", intervals=False, progress=pressing(2, [])
        )
    part = stop.value.run
    count = len(part.run.t) - 1  # the last sample is the state where the run stopped
    assert 1 < count < 300
    assert np.array_equal(part.dq[:count], whole.dq[:count]) and np.array_equal(part.run.q[:count], whole.run.q[:count])


def test_a_cycle_and_a_return_map_are_interrupted(monkeypatch):
    """Press Ctrl-C in functions that simulate: it is no drive that does not turn, and no point without a return."""
    press = kt.load("press")
    with pytest.raises(KeyboardInterrupt, match="simulate was interrupted at t = "):
        press.cycle("main_bearing", speed=3.0, progress=pressing(1, []))
    walker = kt.ReturnMap(
        kt.load("planar_2r"), kt.Event(lambda now: now.q[0] - 0.1, name="section", stop=True),
        state=lambda x: (x[..., :2], x[..., 2:]), jump=lambda q, qd: (q, qd),
        section=lambda q, qd: np.concatenate([q, qd]), longest=2.0, options={"progress": pressing(1, [])},
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        walker([0.3, -0.7, 0.0, 0.0])


def test_evaluations_of_an_interrupted_interval_count(monkeypatch):
    """Interrupt fixed steps within an interval, and count the evaluations of every step until then."""
    calls = []

    def stop(*_):
        calls.append(True)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(pieces.Pace, "learn", lambda *_: None)  # 64 steps per call
    arm = kt.load("planar_2r")
    made, settings = stepper(ForcedMechanism(arm.mechanism), METHODS["rk4"].scheme), Settings(dt=1e-3)
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


def test_an_interrupt_before_the_first_step_has_no_run(monkeypatch):
    """Interrupt a run while it is prepared, and find that nothing was computed instead of a missing attribute."""

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kinetree.simulation.simulate.problem_of", pressed)
    with pytest.raises(KeyboardInterrupt) as error:
        kt.simulate(kt.load("pendulum"), duration=0.1)
    assert vars(error.value) == {"run": None}
