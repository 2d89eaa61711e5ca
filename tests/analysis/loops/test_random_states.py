"""Random states of closed mechanisms: closed positions within limits, and velocities that keep them closed."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import library
from tolerance import assert_close

TEXTS = {name: library.path(name).read_text(encoding="utf-8") for name in library.names()}
CLOSED = [name for name, text in TEXTS.items() if "[[loop]]" in text or "[[coupling]]" in text]


def assert_closed(system: kt.System, q, qd) -> None:
    """Compare gaps and their rates with zero, relative to the lengths and velocities."""
    scale = max([1.0, *system.mechanism.lengths])
    assert_close(system.closure_residual(q), 0.0 * system.closure_residual(q), 2e-12 * scale, "gaps")
    rates = system.closure_jacobian(q) @ qd[..., None]
    assert_close(rates / max(1.0, np.abs(qd).max()), 0.0 * rates, 1e-11 * scale, "rates of gaps")


@pytest.mark.parametrize("name", everyday.some(CLOSED))
def test_loops_and_couplings_hold(name):
    """Draw states of every closed library mechanism: they are closed, stay so, and spread over the positions."""
    system = kt.load(name)
    q, qd = system.random_state(3, (2, 5))
    assert q.shape == (2, 5, system.nq)
    assert qd.shape == (2, 5, system.nv)
    assert_closed(system, q, qd)
    assert np.ptp(q.reshape(10, -1), axis=0).max() > 0.5
    assert np.array_equal(system.random_state(3, (2, 5))[0], q)
    one, speed = system.random_state(7)
    assert one.shape == (system.nq,)
    assert_closed(system, one, speed)


def mimic(lower: float, upper: float) -> kt.System:
    """Return two joints of which the second follows the first with a ratio of -1.7, with limits of both."""
    bodies = [kt.Body(name, 0.7, inertia=(0.1, 0.2, 0.15, 0.0, 0.0, 0.0)) for name in "ab"]
    joints = [
        kt.Joint("first", "revolute", "ground", "a", limits=kt.Limits((-1.3,), (0.9,))),
        kt.Joint("second", "revolute", "a", "b", limits=kt.Limits((lower,), (upper,))),
    ]
    couplings = [kt.Coupling("mimic", "second", (("first", -1.7),), 0.2)]
    return kt.System(kt.build_mechanism("mimic", bodies, joints, couplings=couplings))


def test_positions_are_within_limits():
    """Draw positions of coupled joints, one of which leaves a part of the range of the other."""
    q, qd = mimic(-0.4, 0.6).random_state(5, 200)
    assert_close(q[:, 1], 0.2 - 1.7 * q[:, 0], 1e-11, "coupling")
    assert_close(qd[:, 1], -1.7 * qd[:, 0], 1e-11, "rate of the coupling")
    assert -0.4 - 1e-8 <= q[:, 1].min() < -0.2
    assert 0.4 < q[:, 1].max() <= 0.6 + 1e-8


def test_loops_that_never_close_are_told():
    """Draw states of a loop that is too short, and read the number of draws and what to do."""
    bodies = [kt.Body("a", 0.7, inertia=(0.1, 0.2, 0.15, 0.0, 0.0, 0.0))]
    joints = [kt.Joint("j", "revolute", "ground", "a")]
    place = kt.Placement((9.0, 0.0, 0.3))
    loop = kt.Loop("far", "spherical", "a", "ground", kt.Placement((0.5, 0.1, 0.0)), place)
    system = kt.System(kt.build_mechanism("open", bodies, joints, loops=[loop]))
    with pytest.raises(
        kt.AssemblyError, match="the loops of 'open' close from none of 20 random starts, in 3 of 3 states"
    ):
        system.random_state(1, 3)
    assert system.tree.random_state(1, 3)[0].shape == (3, 1)
