"""Tests of src/kinetree/analysis/loops/driven_motion.py: motions of all joints from those of the driving joints."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from sprung_mechanisms import sprung
from tolerance import assert_close


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> kt.System:
    """Return a four-bar with springs and free parameters."""
    return sprung(tmp_path_factory.mktemp("sprung"))


def _crank(steps: int = 50):
    t = np.linspace(0.0, 1.0, steps)
    return {"crank": 0.2 + 3 * t**2}, {"crank": 6 * t}, {"crank": 6 + 0 * t}


def test_a_motion_is_that_of_the_single_steps(system):
    """Compare with assembly, velocities, accelerations and torques one after the other, for several designs."""
    rng = np.random.default_rng(3)
    nominal = np.array([p.value for p in system.mechanism.free_parameters])
    sets = nominal * rng.uniform(0.9, 1.1, (3, 1, len(nominal)))
    for driver, actuated in (("crank", None), ("output", "crank")):
        x, v, a = _crank()
        if driver == "output":
            t = np.linspace(0.0, 1.0, 50)
            x, v, a = ({"output": y} for y in (1.1 + 0.3 * np.sin(t), 0.3 * np.cos(t), -0.3 * np.sin(t)))
        found = system.driven_motion(x, v, a, actuated=actuated, forces=True, parameters=sets)
        assert found.closed.all() and found.q.shape == (3, 50, 3)
        q = system.assemble(hold=x, parameters=sets, follow=True)
        assert_close(found.q, q, 1e-10, "positions")
        qd = system.consistent_speeds(found.q, v, parameters=sets)
        assert_close(found.qd, qd, 1e-12 * np.abs(qd).max(), "velocities")
        qdd = system.consistent_accelerations(found.q, found.qd, a, parameters=sets)
        assert_close(found.qdd, qdd, 1e-12 * np.abs(qdd).max(), "accelerations")
        tau = system.actuation(found.q, found.qd, found.qdd, "crank", parameters=sets, forces=True, weights={}).tau
        if driver == "crank" or actuated:
            assert_close(found.tau, tau, 1e-11 * np.abs(tau).max(), "torques")


def test_small_steps_may_follow_large_ones(system):
    """Find the positions of an assembly where steps become much smaller, and larger again."""
    x = {"crank": np.cumsum([0.2, 0.9, 0.8, 0.9, 0.03, 0.02, 0.04, 0.9, 0.03, 0.03])}
    found = system.driven_motion(x, on_failure="nan")
    assert found.closed.all()
    assert_close(found.q, system.assemble(hold=x, follow=True), 1e-10, "positions")


@everyday.long
def test_the_torque_is_that_of_a_driven_simulation(system):
    """Compare with the torque of a simulated drive under the same springs, dampers and friction."""
    times = np.linspace(0.0, 0.5, 26)
    run = kt.simulate(system, times=times, control=kt.Driven("crank", kt.Hold(0.3, speed=4.0)), rtol=1e-11, atol=1e-12)
    found = system.driven_motion({"crank": 0.3 + 4.0 * times}, {"crank": 0 * times + 4.0}, forces=True)
    assert_close(found.q, run.q, 1e-9, "positions of a simulation")
    scale = np.abs(found.tau).max()
    assert_close(found.tau, run["control"], 1e-9 * scale, "torque of a drive")
    again = system.inverse_dynamics(run.q, run.qd, run["qdd"], actuated="crank", forces=True)
    assert_close(again, run["control"], 1e-9 * scale, "inverse dynamics of a simulation")
    loads = system.loads(run.q, run.qd, qdd=run["qdd"], actuated="crank", forces=True)
    in_plane = [2, 3, 4]
    assert_close(loads.joints[..., in_plane], run["reactions"][..., in_plane], 1e-8 * scale * 30, "reactions of a run")


@everyday.long
def test_light_joints_lose_no_digits():
    """Compare the torques of a torso with light linkages with those of single states by singular values."""
    torso = kt.load("charmie_torso")
    start, t = torso.assemble(), np.linspace(0.0, 1.0, 9)
    places = {j.name: own.start for j, own in zip(torso.joints, torso.mechanism.q_slices, strict=True)}
    x = {name: start[places[name]] + 0.1 * np.sin(t) for name in ("joint_4", "joint_5")}
    v, a = {name: 0.1 * np.cos(t) for name in x}, {name: -0.1 * np.sin(t) for name in x}
    found = torso.driven_motion(x, v, a, forces=True)
    for k in (0, 8):
        one = torso.actuation(found.q[k], found.qd[k], found.qdd[k], list(x), forces=True)
        assert_close(found.tau[k], one.tau, 1e-12 * np.abs(one.tau).max(), "torques of light joints")


def test_a_sample_does_not_depend_on_its_batch(system):
    """Find the same bits for one design and for many."""
    x, v, a = _crank(12)
    sets = np.array([p.value for p in system.mechanism.free_parameters]) * np.linspace(0.95, 1.05, 21)[:, None, None]
    many = system.driven_motion(x, v, a, forces=True, parameters=sets)
    one = system.driven_motion(x, v, a, forces=True, parameters=sets[5])
    assert all((getattr(many, n)[5] == getattr(one, n)).all() for n in ("q", "qd", "qdd", "tau"))


def test_other_values_compile_nothing_and_keep_what_is_asked(system, monkeypatch):
    """Check that other parameters fetch no code, and that only the arrays to keep are returned."""
    from kinetree.runtime import cache

    x, v, a = _crank(5)
    system.driven_motion(x, v, a, forces=True)
    monkeypatch.setattr(cache, "fetch", lambda *_: pytest.fail("code was compiled"))
    found = system.driven_motion(x, v, a, forces=True, parameters={"rate": [[7.0], [9.0]]}, keep=["tau"])
    assert found.tau.shape == (2, 5, 3) and found.q is None and found.qd is None


def test_designs_that_do_not_close_are_named_or_marked(system):
    """Drive a crank that is too long in one of two designs."""
    x, v, a = {"crank": np.linspace(3.0, 0.0, 30)}, None, None
    arms = {"arm": [[0.041], [0.17]]}
    with pytest.raises(kt.AssemblyError, match=r"sample \[1, \d+\]: with crank = .* held, loop 'pin' stays open by"):
        system.driven_motion(x, v, a, parameters=arms)
    found = system.driven_motion(x, v, a, parameters=arms, on_failure="nan")
    assert found.closed[0].all() and not found.closed[1].all()
    for name in ("q", "qd", "qdd", "tau"):
        assert (np.isnan(getattr(found, name)).all(axis=-1) == ~found.closed).all()


def test_unsuitable_drives_are_refused(system):
    """Check the messages of too many driving joints, unknown names, and mechanisms without loops."""
    x, v, _ = _crank(3)
    with pytest.raises(kt.InputError, match="positions of crank, output .2 degrees of freedom. do not determine"):
        system.driven_motion(x | {"output": [1.0, 1.1, 1.2]})
    with pytest.raises(kt.InputError, match="speeds of 'output', whose positions are not given"):
        system.driven_motion(x, {"output": v["crank"]})
    with pytest.raises(kt.UnknownNameError, match="no array of a motion 'torque'"):
        system.driven_motion(x, keep=["torque"])
    with pytest.raises(kt.InputError, match="2 degrees of freedom are actuated and 1 drive the motion"):
        system.driven_motion(x, actuated=["crank", "output"])
    with pytest.raises(kt.InputError, match="driven_motion needs a mechanism with loops"):
        kt.load("planar_2r").driven_motion({"joint1": [0.1, 0.2]})


def test_numbers_are_one_instant():
    """Give numbers instead of arrays, and find the motion of one instant without an axis of time."""
    arm = kt.load("four_bar")
    options = {
        "speeds": {"crank": 1.3},
        "accelerations": {"crank": -0.7},
        "q_guess": arm.assemble(hold={"crank": 0.41}),
    }
    one = arm.driven_motion({"crank": 0.43}, **options)
    whole = arm.driven_motion({"crank": [0.43]}, **options)
    assert one.q.shape == (arm.nq,) and one.tau.shape == (arm.nv,) and one.closed.shape == () and one.closed
    for name in ("q", "qd", "qdd", "tau"):
        assert (getattr(one, name) == getattr(whole, name)[0]).all()
    with pytest.raises(kt.AssemblyError, match="with slider = 5 m held"):
        kt.load("slider_crank").driven_motion({"slider": 5.0})


def test_an_instant_has_the_bits_that_it_has_in_a_batch(system):
    """Compare single instants, near and far from their guesses, with the same instants of a batch of designs."""
    nominal = np.array([p.value for p in system.mechanism.free_parameters])
    sets, start = nominal * np.array([0.96, 1.0, 1.05])[:, None], system.assemble(hold={"crank": 0.41})
    for crank in (0.41, 0.44, 1.7):
        given = {"positions": {"crank": crank}, "speeds": {"crank": 1.3}, "accelerations": {"crank": -0.7}}
        many = system.driven_motion(**given, parameters=sets[:, None], q_guess=start)
        for k, own in enumerate(sets):
            one = system.driven_motion(**given, parameters=own, q_guess=start)
            assert one.closed and one.q.shape == (3,)
            for name in ("q", "qd", "qdd", "tau"):
                assert (getattr(one, name) == getattr(many, name)[k, 0]).all()
            q = system.assemble(start, hold={"crank": crank}, parameters=own)
            assert_close(one.q, q, 1e-12, "position of an instant")
            assert one.q[0] == crank


def test_a_held_coordinate_may_leave_an_open_guess(system):
    """Find the position near a guess whose loops are open, and one from a guess without closed position nearby."""
    for guess in ([0.3, 0.9, 0.2], [3.0, -3.0, 3.0]):
        found = system.driven_motion({"crank": 0.32}, {"crank": 2.1}, q_guess=guess)
        assert_close(np.abs(system.closure_residual(found.q)).max(), 0.0, 1e-12, "gap of an instant")
        qd = system.consistent_speeds(found.q, {"crank": 2.1})
        assert_close(found.qd, qd, 1e-12 * np.abs(qd).max(), "velocities of an instant")


def test_numbers_by_joint_are_required_by_name(system):
    """Refuse a number, and speeds that are not finite."""
    with pytest.raises(kt.InputError, match="numbers by joint are expected"):
        system.driven_motion(0.3)
    with pytest.raises(kt.InputError, match="'crank' is given nan; give finite numbers"):
        system.driven_motion({"crank": 0.3}, {"crank": float("nan")})
