"""Runs: exact solutions, orders of convergence, equal bits, and reasons for the end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipj, ellipk, ellipkinc

import everyday
import kinetree as kt
from kinetree.errors import InputError
from kinetree.model import parse
from kinetree.simulation.acting.rates import ForcedMechanism, rates
from kinetree.simulation.engines.engine import run
from kinetree.simulation.engines.pieces import PIECE, Pace
from kinetree.simulation.methods.adaptive_steps import Pair
from kinetree.simulation.methods.fixed_steps import Explicit
from kinetree.simulation.methods.stepper import Stepper, stepper
from kinetree.simulation.methods.table import METHODS
from kinetree.simulation.run_states import Settings
from tolerance import assert_close

G = 9.81

PAIRS = [name for name, m in METHODS.items() if m.native and type(m.scheme) is Pair]
"""The embedded pairs of explicit methods."""


def pendulum(length: float = 0.7) -> kt.Mechanism:
    """Return a point mass on a massless rod, hanging along -y at q = 0."""
    body = kt.Body("bob", 1.3, (0.0, -length, 0.0))
    return kt.build_mechanism(
        "pendulum", [body], [kt.Joint("pivot", "revolute", "ground", "bob")], gravity=(0.0, -G, 0.0)
    )


def exact_pendulum(t, amplitude: float, length: float = 0.7):
    """Return the angle of a pendulum released at an amplitude: 2 asin(k sn(K - w t, k^2)), k = sin(amplitude/2)."""
    k = np.sin(amplitude / 2)
    w = np.sqrt(G / length)
    sn, *_ = ellipj(ellipk(k * k) - w * np.asarray(t), k * k)
    return 2 * np.arcsin(k * sn)


def settle(mechanism, method: str, q0, qd0, times, **numbers):
    """Run a method by name."""
    q0, qd0 = np.asarray(q0, dtype=float), np.asarray(qd0, dtype=float)
    return run(
        stepper(ForcedMechanism(mechanism), METHODS[method].scheme),
        q0,
        qd0,
        np.asarray(times, dtype=float),
        Settings(**numbers),
    )


@pytest.mark.parametrize("method", [m for m in METHODS if not METHODS[m].adaptive and METHODS[m].native])
def test_fixed_steps_have_their_order(method):
    """Halve the step five times and find the order of the error."""
    times = np.linspace(0.0, 2.0, 6)
    steps = 0.04 / 2.0 ** np.arange(5)
    exact = exact_pendulum(times, 1.9)
    errors = [np.abs(settle(pendulum(), method, [1.9], [0.0], times, dt=h).q[:, 0] - exact).max() for h in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - METHODS[method].order) < 0.25, f"slope {slope:.3f} of {errors}"


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_have_their_order(name):
    """Run the method of a pair with two lengths of short steps, and find the order of the error."""
    counts = {3: (160, 226), 5: (56, 80), 8: (10, 13)}[METHODS[name].order]
    arm, pair = kt.load("planar_3r").mechanism, METHODS[name].scheme
    q0, qd0, times = np.array([0.4, -0.3, 0.7]), np.array([1.1, -2.0, 3.0]), np.linspace(0.0, 0.3, 4)
    exact = settle(arm, "dop853", q0, qd0, times, rtol=1e-14, atol=1e-15).q
    made = Stepper(rates(ForcedMechanism(arm)), Explicit(pair.name, pair.a, pair.b, pair.c), ())
    steps = 0.1 / np.array(counts)
    errors = [np.abs(run(made, q0, qd0, times, Settings(dt=h)).q - exact).max() for h in steps]
    slope = np.diff(np.log(errors))[0] / np.diff(np.log(steps))[0]
    assert abs(slope - METHODS[name].order) < 0.25, f"slope {slope:.3f} of {errors}"


def test_scipy_is_a_referee():
    """Run the same motion by SciPy and natively, with the same tolerances."""
    arm = kt.load("stanford")
    numbers = {"times": np.linspace(0, 1, 11), "rtol": 1e-11, "atol": 1e-12}
    ours = kt.simulate(arm, [0.0, 1.5, 0.1, 0.2, 0.3, 0.4], method="dop853", **numbers)
    referee = kt.simulate(arm, [0.0, 1.5, 0.1, 0.2, 0.3, 0.4], method="scipy", **numbers)
    assert referee.status == "finished"
    assert referee.method == "scipy"
    assert referee.evaluations > 0
    assert_close(ours.q, referee.q, 1e-9, "q")


@pytest.mark.parametrize("method", PAIRS)
def test_pairs_keep_the_asked_accuracy(method):
    """Set tolerances and find errors of their size, also in the dense output."""
    times = np.linspace(0.0, 3.0, 301)  # many more than there are steps
    for tolerance in (1e-5, 1e-8, 1e-11):
        done = settle(pendulum(), method, [1.9], [0.0], times, rtol=tolerance, atol=tolerance, first=1e-3)
        assert done.status == "finished"
        assert done.steps < len(times) or tolerance ** (1 / METHODS[method].order) < 0.01
        error = np.abs(done.q[:, 0] - exact_pendulum(times, 1.9)).max()
        assert error < 60 * tolerance, f"{error:.2e} for {tolerance:g}"


def test_a_pendulum_swings_for_two_thousand_seconds():
    """Follow the elliptic functions over 2,000 s to 1e-6."""
    times = np.linspace(0.0, 2000.0, 2001)
    done = settle(pendulum(), "dop853", [1.9], [0.0], times, rtol=1e-13, atol=1e-13, first=1e-3)
    assert_close(done.q[:, 0], exact_pendulum(times, 1.9), 1e-6, "angle")


def test_a_top_without_torque_turns_as_euler_says():
    """Follow Jacobi's functions of a free asymmetric top over 100 s to 1e-9, on a unit quaternion."""
    inertia = np.array([1.0, 2.0, 2.7])
    body = kt.Body("top", 1.0, (0.0, 0.0, 0.0), (*inertia, 0.0, 0.0, 0.0))
    top = kt.build_mechanism("top", [body], [kt.Joint("j", "spherical", "ground", "top")], gravity=(0.0, 0.0, 0.0))
    w0 = np.array([0.3, 0.0, 1.1])  # spins about the largest axis, w2 = 0 at t = 0
    I1, I2, I3 = inertia
    energy2, momentum2 = float(inertia @ w0**2), float((inertia**2) @ w0**2)
    # Landau and Lifshitz, section 37, for momentum2 > energy2 I2.
    rate = np.sqrt((I3 - I2) * (momentum2 - energy2 * I1) / (I1 * I2 * I3))
    m = (I2 - I1) * (energy2 * I3 - momentum2) / ((I3 - I2) * (momentum2 - energy2 * I1))
    times = np.linspace(0.0, 100.0, 501)
    sn, cn, dn, _ = ellipj(rate * times, m)
    a1 = np.sqrt((energy2 * I3 - momentum2) / (I1 * (I3 - I1)))
    a2 = np.sqrt((energy2 * I3 - momentum2) / (I2 * (I3 - I2)))
    a3 = np.sqrt((momentum2 - energy2 * I1) / (I3 * (I3 - I1)))
    done = settle(top, "dop853", [0, 0, 0, 1], w0, times, rtol=1e-13, atol=1e-14, first=1e-3)
    assert_close(done.qd, np.stack([a1 * cn, a2 * sn, a3 * dn], axis=-1), 1e-9, "omega")
    system = kt.System(top)
    assert_close(system.momentum(done.q, done.qd)[:, :3], np.tile(inertia * w0, (501, 1)), 1e-9, "angular momentum")


def test_a_falling_arm_keeps_its_energy():
    """Let the Stanford arm fall for 10 s and keep its energy to 1e-10."""
    arm = kt.load("stanford")
    q0 = [0.0, np.pi / 2, 0.1, 0.2, 0.3, 0.4]
    done = settle(arm.mechanism, "dop853", q0, np.zeros(6), np.linspace(0, 10, 101), rtol=1e-12, atol=1e-13)
    energy = arm.kinetic_energy(done.q, done.qd) + arm.potential_energy(done.q)
    assert_close(energy / abs(energy[0]), energy[0] / abs(energy[0]) * np.ones(101), 1e-10, "energy")


@pytest.mark.slow
def test_a_symmetric_method_has_no_trend_of_energy():
    """Take a million steps and find that the error of the energy does not grow."""
    times = np.linspace(0.0, 1e4, 1001)
    system = kt.System(pendulum())
    done = settle(pendulum(), "gauss", [1.9], [0.0], times, dt=1e-2)
    error = system.kinetic_energy(done.q, done.qd) + system.potential_energy(done.q)
    error = np.abs(error - error[0])[1:]
    largest = np.maximum.accumulate(error)
    slope = np.polyfit(np.log(times[100:]), np.log(largest[99:]), 1)[0]
    assert slope < 0.6, f"slope {slope:.2f}, error {largest[-1]:.2e}"


@pytest.mark.parametrize("method", everyday.some([m for m in METHODS if METHODS[m].native]))
def test_a_run_does_not_see_its_neighbours(method):
    """Run a batch, single runs and threads, and find the same bits and unit quaternions."""
    robot = kt.load("space_robot_3r")
    q0, qd0 = robot.random_state(3, (19,))
    times = np.linspace(0.0, 0.3, 2 * PIECE + 6)
    made, numbers = (
        stepper(ForcedMechanism(robot.mechanism), METHODS[method].scheme),
        Settings(dt=1e-3, rtol=1e-7, atol=1e-9),
    )
    whole = run(made, q0, qd0, times, numbers)
    assert whole.status == "finished"
    alone = run(made, q0[7], qd0[7], times, numbers)
    assert np.array_equal(whole.q[7], alone.q)
    assert np.array_equal(whole.qd[7], alone.qd)
    threads = run(made, q0, qd0, times, numbers, threads=2)
    assert np.array_equal(whole.q, threads.q)
    assert_close(np.linalg.norm(whole.q[..., 3:7], axis=-1), np.ones((19, len(times))), 1e-7, "quaternion")


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_a_run_is_taken_up_again_to_the_same_bits(method, tmp_path, monkeypatch):
    """Interrupt a run, resume it from its checkpoint, and find the run that was never interrupted."""
    monkeypatch.setattr("kinetree.simulation.engines.engine.EVERY", 0.0)
    arm = kt.load("stanford")
    q0, qd0 = np.array([0.0, 1.5, 0.1, 0.2, 0.3, 0.4]), np.zeros(6)
    times = np.linspace(0.0, 2.0, 4 * PIECE + 1)
    made, numbers = stepper(ForcedMechanism(arm.mechanism), METHODS[method].scheme), Settings(dt=1e-3)
    expected = run(made, q0, qd0, times, numbers)

    def stop(part: float) -> None:
        if part > 0.4:
            raise KeyboardInterrupt

    file = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        patch.setattr(Pace, "learn", lambda self, steps, seconds: None)  # calls stay short, however fast they are
        first = run(made, q0, qd0, times, numbers, progress=stop, checkpoint=file, key="a")
    assert first.interrupted
    assert 0.8 < float(first.status.removeprefix("stopped: interrupted at t = ").removesuffix(" s")) < 1.5
    assert np.isnan(first.q[-1]).all()
    again = run(made, q0, qd0, times, numbers, checkpoint=file, key="a")
    assert np.array_equal(again.q, expected.q)
    assert np.array_equal(again.evaluations, expected.evaluations)
    with pytest.raises(InputError, match="another run; delete it or give another file"):
        run(made, q0, qd0, times, numbers, checkpoint=file, key="b")
    for damaged in (b"nonsense", b"", file.read_bytes()[:-30]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match="is not a checkpoint"):
            run(made, q0, qd0, times, numbers, checkpoint=file, key="a")


def test_a_run_that_failed_says_so_again(tmp_path):
    """Resume a run that is no longer finite, and read the same reason and the same time of the last good state."""
    made = stepper(ForcedMechanism(pendulum(), [kt.JointDamper("pivot", 900.0)]), METHODS["rk4"].scheme)
    q0, qd0, times = np.zeros((2, 1)), np.array([[0.0], [3.7]]), np.linspace(0.0, 20.0, 2 * PIECE + 7)
    first, again = (run(made, q0, qd0, times, Settings(dt=0.1), checkpoint=tmp_path / "c", key="a") for _ in range(2))
    assert first.status.startswith("stopped: the state left the finite numbers; the last good state is at t = ")
    assert again.failures == first.failures and list(first.failures) == [1]
    last = first.failures[1].last
    assert last is not None and last < times[PIECE]


def test_a_run_that_fails_says_when_and_keeps_the_rest():
    """Let one of three runs diverge, and find the other two complete."""
    q0 = np.array([[0.3], [0.4], [0.5]])
    qd0 = np.array([[0.0], [np.inf], [0.0]])
    done = settle(pendulum(), "rk4", q0, qd0, np.linspace(0, 1, 11), dt=1e-2)
    assert list(done.failures) == [1]
    assert done.status.startswith("stopped: the state left the finite numbers; the last good state is at t = 0 s")
    assert np.isfinite(done.q[[0, 2]]).all()
    short = settle(pendulum(), "dopri5", [1.9], [0.0], np.linspace(0, 100, 11), most=30)
    assert "the steps were used up; try a larger max_steps" in short.status
    assert np.isnan(short.q[-1]).all()


def test_threads_cut_what_each_run_has_its_own_of():
    """Run as many runs as output times or parameters on two threads, and find that only the runs are divided."""
    length = kt.Parameter("l", 0.6, free=True)
    body = kt.Body("bob", 1.0, (0.0, parse("-l"), 0.0))
    joint = kt.Joint("pivot", "revolute", "ground", "bob")
    others = [kt.Parameter(f"unused{k}", 1.0, free=True) for k in range(15)]
    swing = kt.build_mechanism("swing", [body], [joint], gravity=(0.0, -G, 0.0), parameters=[length, *others])
    q0, times = np.linspace(0.1, 1.0, 16)[:, None], np.linspace(0.0, 1.0, 16)
    nominal = np.array([p.value for p in swing.parameters])
    for method in ("rk4", "dopri5"):
        made, numbers = stepper(ForcedMechanism(swing), METHODS[method].scheme), Settings(dt=1e-3)
        for values in (nominal, np.tile(nominal, (16, 1))):
            alone, both = (run(made, q0, 0 * q0, times, numbers, parameters=values, threads=n) for n in (1, 2))
            assert both.status == "finished"
            assert np.array_equal(alone.q, both.q)


def test_max_steps_are_those_of_the_whole_run():
    """Allow fewer steps than a run of several pieces takes, but more than each piece takes."""
    times = np.linspace(0.0, 20.0, 4 * PIECE + 1)
    taken = int(settle(pendulum(), "dopri5", [1.9], [0.0], times).steps)
    assert settle(pendulum(), "dopri5", [1.9], [0.0], times, most=taken + 1).status == "finished"
    short = settle(pendulum(), "dopri5", [1.9], [0.0], times, most=taken - 5)
    assert "the steps were used up" in short.status
    assert np.isfinite(short.q[2 * PIECE]).all()
    assert np.isnan(short.q[-1]).all()


def test_the_exact_pendulum_is_exact():
    """Check the exact solution: its period is four quarter periods of the elliptic integral."""
    period = 4 * np.sqrt(0.7 / G) * ellipkinc(np.pi / 2, np.sin(0.95) ** 2)
    assert_close(exact_pendulum([0.0, period, period / 2], 1.9), np.array([1.9, 1.9, -1.9]), 1e-12, "period")
