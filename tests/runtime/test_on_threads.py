"""Calls on a number of threads: which numbers are accepted, and functions that native code cannot share."""

from __future__ import annotations

import numpy as np
import pytest

from divided_batches import divide_all
from kinetree import InputError, System
from kinetree.runtime import threads as crew
from kinetree.runtime import threads as on_threads
from strategies import random_mechanism

SMALL = System(random_mechanism(["revolute", "helical"], [-1, 0], 21))


@pytest.mark.parametrize("threads", [-2, 2.0, 2.5, "2", [2]])
def test_wrong_numbers_of_threads(threads):
    """Refuse what is no number of threads, with the possible ones."""
    SMALL.gravity_torque(np.ones((9, 2)), threads=2)
    with pytest.raises(InputError) as error:
        SMALL.gravity_torque(np.ones((9, 2)), threads=threads)
    assert str(error.value) == f"threads is {threads!r}; expected 1 or more, or 0 for all cores"


@pytest.mark.parametrize("threads", [0, 1, np.int64(3)])
def test_numbers_of_threads(threads):
    """Take all cores, and integers of NumPy."""
    q = np.random.default_rng(2).normal(size=(40, 2))
    assert np.array_equal(SMALL.gravity_torque(q, threads=threads), SMALL.gravity_torque(q))


def test_threads_of_python(monkeypatch):
    """Divide batches among threads of Python where threads cannot wait in native code."""
    monkeypatch.setattr(crew, "SUPPORTED", False)
    called = []
    real = on_threads.divide_batch
    monkeypatch.setattr(on_threads, "divide_batch", lambda *a: called.append(a[-1]) or real(*a))
    f = SMALL.function("gravity_torque")
    divide_all(monkeypatch, f)
    q = np.random.default_rng(3).normal(size=(400, 2))
    assert np.array_equal(SMALL.gravity_torque(q, threads=3), SMALL.gravity_torque(q))
    assert called == [3] and not f.shares
