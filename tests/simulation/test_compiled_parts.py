"""Compiled parts of runs: reused for equal values, and never stale."""

from __future__ import annotations

import numpy as np

import kinetree as kt
from kinetree._support.identity import value_text
from kinetree.compiler.ir.trace import Trace
from kinetree.runtime import native
from kinetree.runtime.native import CompiledParts
from kinetree.simulation.engines import pieces

START = {"duration": 0.05, "progress": False}


def test_a_repeated_run_traces_nothing(monkeypatch):
    """Run twice with equal objects, and compile nothing for the second run."""
    arm = kt.load("planar_2r")
    given = lambda: {"forces": [kt.JointDamper("joint1", 0.3)], "control": kt.PD(3.0, 0.4, kt.Hold([0.1, 0.2]))}  # noqa: E731
    first = kt.simulate(arm, **START, **given())
    monkeypatch.setattr(CompiledParts, "part", lambda self, key, make: self._kept[key])
    assert np.array_equal(kt.simulate(arm, **START, **given()).q, first.q)


def test_a_repeated_run_assembles_nothing(monkeypatch):
    """Start a closed mechanism twice without a position, and assemble and trace nothing for the second run."""
    closed = kt.load("four_bar")
    first = kt.simulate(closed, **START)
    calls = []
    monkeypatch.setattr(kt.System, "assemble", lambda self, **options: calls.append(options) or first.q[0])
    monkeypatch.setattr(Trace, "input", lambda *key: calls.append(key))
    again = kt.simulate(closed, **START)
    assert calls == [] and np.array_equal(again.q, first.q)


def test_few_native_calls_make_a_long_run(monkeypatch):
    """Count the native calls of fast runs: one per piece of an adaptive method, and fewer with fixed steps."""
    arm, calls = kt.load("planar_2r"), []
    plain, learn = pieces._quietly, pieces.Pace.learn
    monkeypatch.setattr(pieces, "_quietly", lambda *arguments: calls.append(arguments) or plain(*arguments))
    monkeypatch.setattr(pieces.Pace, "learn", lambda self, steps, seconds: learn(self, steps, 0.0))  # on any machine
    kt.simulate(arm, [0.3, 0.4], duration=0.01, progress=False)
    assert len(calls) == 16
    calls.clear()
    long = kt.simulate(arm, [0.3, 0.4], duration=10.0, dt=1e-2, method="rk4", progress=False)
    assert len(calls) == 3 and long.evaluations == 4000
    monkeypatch.setattr(pieces.Pace, "learn", lambda self, steps, seconds: None)
    assert np.array_equal(kt.simulate(arm, [0.3, 0.4], duration=10.0, dt=1e-2, method="rk4").q, long.q)


def test_what_a_function_reads_may_change():
    """Change a number that the function of a controller reads, and find the run of the new number."""
    arm, gains = kt.load("planar_2r"), [1.3]
    control = kt.TorqueFunction(lambda t, q, qd: [-gains[0] * qd[0], 0.2])
    soft = kt.simulate(arm, [0.3, 0.4], control=control, **START)
    gains[0] = 8.9
    hard = kt.simulate(arm, [0.3, 0.4], control=control, **START)
    fresh = kt.simulate(kt.load("planar_2r"), [0.3, 0.4], control=control, **START)
    assert np.array_equal(hard.q, fresh.q)
    assert not np.array_equal(hard.q, soft.q)


def test_another_mechanism_takes_nothing_over():
    """Put another mechanism into a System, and find its motion."""
    arm = kt.load("planar_2r")
    kt.simulate(arm, [0.3, 0.4], **START)
    heavier = kt.with_payload(arm.mechanism, arm.bodies[-1].name, 2.7)
    arm.mechanism = heavier
    assert arm._parts.mechanism is heavier
    assert np.array_equal(kt.simulate(arm, [0.3, 0.4], **START).q, kt.simulate(heavier, [0.3, 0.4], **START).q)


def test_keys_tell_values_apart():
    """Find equal keys only for equal values, including the sign of zero."""
    assert value_text(kt.JointSpring("a", 2.0, 0.0)) == value_text(kt.JointSpring("a", 2.0, 0.0))
    assert value_text(kt.JointSpring("a", 2.0, 0.0)) != value_text(kt.JointSpring("a", 2.0, -0.0))
    assert value_text([1, 2.0]) != value_text([1.0, 2.0])
    assert value_text(np.array([1.0, 2.0])) != value_text(np.array([1.0, 3.0]))


def test_few_parts_are_kept(monkeypatch):
    """Request more parts than are kept, and find the most recently used ones."""
    monkeypatch.setattr(native, "MOST", 2)
    store = CompiledParts(kt.load("planar_2r").mechanism)
    made = [store.part(key, lambda key=key: [key]) for key in "abac"]
    assert made[0] is made[2]
    assert store.part("a", list) is made[0] and store.part("b", list) == []
