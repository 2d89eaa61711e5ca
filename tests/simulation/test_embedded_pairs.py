"""The written coefficients of Dormand and Prince: those of SciPy, to the last bit, and without its import."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy.integrate import DOP853, RK45

from kinetree.simulation.methods import embedded_pairs


def below(rows: tuple[tuple[float, ...], ...]) -> np.ndarray:
    """Return the rows of a triangle as a matrix, with zeros elsewhere."""
    matrix = np.zeros((len(rows), len(rows)))
    for s, row in enumerate(rows):
        matrix[s, : len(row)] = row
    return matrix


def test_orders_5_and_4_are_those_of_scipy():
    """Compare every coefficient of dopri5."""
    own = embedded_pairs.DOPRI5
    assert np.array_equal(below(own.a)[:, :5], RK45.A)
    for name in ("B", "C", "E", "P"):
        assert np.array_equal(getattr(own, name.lower()), getattr(RK45, name)), name


def test_order_8_is_that_of_scipy():
    """Compare every coefficient of dop853, with the stages of its dense output."""
    own = embedded_pairs.DOP853
    assert np.array_equal(below(own.a), DOP853.A)
    for name, other in {"b": "B", "c": "C", "e": "E5", "e3": "E3", "a_extra": "A_EXTRA", "c_extra": "C_EXTRA"}.items():
        assert np.array_equal(getattr(own, name), getattr(DOP853, other)), name
    assert np.array_equal(embedded_pairs.D, DOP853.D)


def test_runs_do_not_import_scipy():
    """Simulate with step control in a new process, and find that it has not imported SciPy."""
    code = (
        "import sys; import kinetree as kt; run = kt.simulate(kt.load('pendulum'), [0.7], duration=0.1); "
        "print(run.status, run.method, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["finished", "dop853", "False"]
