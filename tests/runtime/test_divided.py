"""Division of a batch among threads: as many as the measured time is worth, with the same bits."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from divided_batches import divide_all
from kinetree import InputError, System
from kinetree.runtime import threads as crew
from kinetree.runtime import threads as divided
from kinetree.runtime.threads import BRIEF, FEWEST, GROWTH, LEAST, Pace
from strategies import random_mechanism

SMALL = System(random_mechanism(["revolute", "helical"], [-1, 0], 21))


def by_python(monkeypatch) -> None:
    """Divide all batches, among threads of Python."""
    monkeypatch.setattr(crew, "SUPPORTED", False)
    divide_all(monkeypatch, *(SMALL.function(name) for name in ("gravity_torque", "bias_torque")))


class Recorded:
    """A function of one input whose calls are recorded, with their threads, on a clock that only they move."""

    def __init__(self, monkeypatch, seconds: float) -> None:
        real = SMALL.function("gravity_torque")
        self.inputs, self.outputs, self.request = real.inputs, real.outputs, real.request
        self.pace = Pace()
        self._real, self._seconds, self._now = real, seconds, 0.0
        self.calls: list[tuple[int, bool]] = []
        monkeypatch.setattr(divided.time, "perf_counter", lambda: self._now)

    def gufunc(self, q, out):
        self.calls.append((len(q), threading.current_thread() is threading.main_thread()))
        self._now += self._seconds * len(q)
        return self._real.gufunc(q, out=out)

    def alone(self, arguments, out):
        return self.gufunc(*arguments, out=out)

    def run(self, n: int, threads: int, out=None):
        q = np.random.default_rng(n).normal(size=(n, 2))
        found = divided.divide_batch(self, (q,), out, threads)
        assert np.array_equal(found, self._real(q))
        return [size for size, _ in self.calls]


def test_a_large_batch_is_divided(monkeypatch):
    """Time a few samples first, then divide the rest among threads; later calls know the time."""
    f = Recorded(monkeypatch, 1e-5)
    first, *rest = f.run(1000, 4)
    assert first == FEWEST * GROWTH and sorted(rest) == [224, 224, 240, 248]
    assert [main for _, main in f.calls].count(True) == 2
    f.calls.clear()
    assert sorted(f.run(1000, 3)) == [320, 336, 344]


def test_no_more_threads_than_the_time_is_worth(monkeypatch):
    """Take fewer threads for less work, and one for little."""
    f = Recorded(monkeypatch, 1e-5)
    f.run(100, 4)
    f.calls.clear()
    assert len(f.run(2 * round(LEAST / 1e-5) + 1, 4)) == 2
    f.calls.clear()
    assert f.run(2 * round(LEAST / 1e-5) - 1, 4) == [199]
    assert f.calls[0][1]


def test_brief_calls_are_not_timed(monkeypatch):
    """Time more and more samples until their time is known, and compute the rest in the same way."""
    f = Recorded(monkeypatch, 1e-7)
    assert f.run(5000, 2) == [64, 512, 4424]
    assert f.pace.seconds == pytest.approx(1e-7)
    f = Recorded(monkeypatch, BRIEF / 2000)
    f.run(1000, 2)
    assert f.pace.seconds is None and f.pace.few == 512
    f.calls.clear()
    assert f.run(900, 2) == [900]
    f.calls.clear()
    assert f.run(1000, 2) == [1000] and f.pace.few == 1000


def test_the_shortest_time_counts():
    """Keep the shortest time per sample: a call may have been interrupted."""
    pace = Pace()
    pace.seconds = 1.0
    pace.timed(0, lambda: None)
    assert pace.seconds == 1.0
    assert [pace.parts(n, 3) for n in (0, 1, 2)] == [1, 3, 3]


def test_few_samples_run_at_once(monkeypatch):
    """Run a vector of samples or less without any measurement, also in a batch of one row."""
    f = Recorded(monkeypatch, 1.0)
    assert f.run(FEWEST, 2) == [FEWEST]
    assert f.pace.seconds is None


def test_results_in_the_memory_of_arguments(monkeypatch):
    """Compute all samples in one call if results overlap arguments, as with one thread."""
    by_python(monkeypatch)
    room = np.random.default_rng(3).normal(size=(400, 2))
    wanted = SMALL.gravity_torque(room[:-9].copy())
    f = SMALL.function("gravity_torque")
    f.unchecked((np.ones((4000, 2)),), threads=2)
    found = f.unchecked((room[:-9],), out=room[9:], threads=2)
    assert np.array_equal(found, wanted)


def test_broadcast_and_listed_arguments(monkeypatch):
    """Divide broadcast arguments and lists like the arrays they stand for."""
    by_python(monkeypatch)
    rng = np.random.default_rng(5)
    q, qd = rng.normal(size=(60, 1, 2)), rng.normal(size=(7, 2))
    f = SMALL.function("bias_torque")
    wanted = f(q, qd)
    for _ in range(2):
        assert np.array_equal(f.unchecked((q, qd), threads=2), wanted)
        assert np.array_equal(f.unchecked((q.tolist(), qd), threads=0), wanted)


def test_results_of_another_shape(monkeypatch):
    """Refuse an array with more rows than the batch, and fill one with more axes, as with one thread."""
    by_python(monkeypatch)
    monkeypatch.setattr(divided, "BRIEF", 0.0)  # so that the first call is timed, and the next ones are divided
    monkeypatch.setattr(SMALL.function("gravity_torque"), "pace", Pace())
    q = np.random.default_rng(6).normal(size=(400, 2))
    wanted = SMALL.gravity_torque(q)
    for _ in range(2):
        with pytest.raises(InputError, match=r"gravity_torque: out has shape \(401, 2\); expected \(400, 2\)"):
            SMALL.gravity_torque(q, out=np.empty((401, 2)), threads=2)
        found = SMALL.gravity_torque(q, out=np.empty((3, 400, 2)), threads=2)
        assert np.array_equal(found, np.broadcast_to(wanted, (3, 400, 2)))
        SMALL.gravity_torque(q, threads=2)  # from here on, its time is known
