"""Tests of consistent motions at positions where entries of J vanish, at every function that checks motions."""

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import library_state
from tolerance import assert_close

ECCENTRICITY, SPEED, MASS = 0.04, 20.0, 0.3


def tappet(size=1.0):
    """Return a flat tappet on an eccentric circle, enlarged by a factor: lift = radius + e sin(angle)."""
    bodies = [
        kt.Body("cam", 1.0, inertia=(*(0.01 * size**2,) * 3, 0, 0, 0)),
        kt.Body("tappet", MASS, inertia=(*(1e-4 * size**2,) * 3, 0, 0, 0)),
    ]
    joints = [
        kt.Joint("cam", "revolute", kt.GROUND, "cam"),
        kt.Joint("lift", "prismatic", kt.GROUND, "tappet", axis="y"),
    ]
    curve = kt.Curve.circle(0.11 * size, (ECCENTRICITY * size, 0))
    touch = kt.Loop("touch", "face_on_curve", "cam", "tappet", axis2="y", curve=curve)
    guess = {"lift": 0.11 * size}
    return kt.System(kt.build_mechanism("tappet", bodies, joints, loops=[touch], gravity=(0, 0, 0), guess=guess))


def dwelling():
    """Return two shafts; the follower rests, rises by a quintic's points, and rests again."""
    s = np.clip((np.linspace(0.0, 2 * np.pi, 81) - 2.0) / 2.0, 0.0, 1.0)
    points = tuple(zip(np.linspace(0.0, 2 * np.pi, 81), 0.7 * s**3 * (10 - 15 * s + 6 * s**2), strict=True))
    shafts = [kt.Body(n, 1.3, inertia=(0.02, 0.02, 0.02, 0, 0, 0)) for n in "ab"]
    joints = [kt.Joint(n, "revolute", kt.GROUND, n) for n in "ab"]
    teeth = kt.Coupling("teeth", "b", (("a", -1.0),), law=kt.Law(points=points))
    return kt.System(kt.build_mechanism("dwelling", shafts, joints, couplings=[teeth]))


def turning_points():
    """Yield mechanisms with a drive, and angles at which entries of J vanish."""
    yield tappet(), "cam", (np.pi / 2, -np.pi / 2, 2.5 * np.pi)
    yield dwelling(), "a", (0.3, 2.0, 4.0, 4.4)
    waves = kt.Law(slope=0.3, sines=(0.3,))
    shafts = dwelling().mechanism
    teeth = kt.Coupling("teeth", "b", (("a", -1.0),), law=waves)
    yield (
        kt.System(kt.build_mechanism("waves", shafts.bodies, shafts.joints, couplings=[teeth])),
        "a",
        (np.pi, 3 * np.pi),
    )
    yield kt.load("parallelogram"), "rocker", tuple(np.linspace(0.1, 2 * np.pi - 0.1, 57))


@pytest.mark.parametrize("case", range(4))
def test_consistent_motions_are_taken(case):
    """Give own consistent motions at constant speed to every function that checks them, alone and as a batch."""
    system, drive, angles = list(turning_points())[case]
    states = []
    for angle in angles:
        q = system.assemble(hold={drive: angle})
        qd = system.consistent_speeds(q, {drive: SPEED})
        qdd = system.consistent_accelerations(q, qd, {drive: 0.0})
        states.append((q, qd, qdd))
        tau = system.inverse_dynamics(q, qd, qdd, actuated=drive)
        loads = system.loads(q, qd, qdd=qdd, actuated=drive)
        assert_close(loads.tau, tau, 1e-12 * max(1.0, np.abs(tau).max()), "torques of loads")
        assert system.loads(q, qd, tau=tau).multipliers.shape == loads.multipliers.shape
        assert not [f for f in system.doctor(q, qd).findings if "velocities" in f.title]
    q, qd, qdd = (np.array(x) for x in zip(*states, strict=True))
    many = system.inverse_dynamics(q, qd, qdd, actuated=drive)
    ones = [system.inverse_dynamics(*state, actuated=drive) for state in states]
    assert_close(many, ones, 1e-9 * max(1.0, np.abs(many).max()), "batch and single")
    same = system.consistent_accelerations(q, system.consistent_speeds(q, {drive: SPEED}), {drive: 0.0})
    assert_close(same, qdd, 1e-8 * SPEED**2, "accelerations of a batch")


@everyday.long
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e5])
def test_tappet_at_its_highest_point(size):
    """Compare the force under a tappet at 90 degrees with - m e w^2, for mechanisms of any size."""
    system = tappet(size)
    q = system.assemble(hold={"cam": np.pi / 2})
    qd = system.consistent_speeds(q, {"cam": SPEED})
    qdd = system.consistent_accelerations(q, qd, {"cam": 0.0})
    expected = -MASS * ECCENTRICITY * size * SPEED**2
    found = system.loads(q, qd, qdd=qdd, actuated="cam")
    assert_close(found.multipliers, [expected], 1e-12 * abs(expected), "force under the tappet")
    system.linearize(q, qd, np.zeros(2))
    wrong = qd + np.array([0.0, 1e-4 * size * SPEED])
    for function in (
        lambda: system.inverse_dynamics(q, wrong, qdd, actuated="cam"),
        lambda: system.loads(q, wrong),
        lambda: system.consistent_accelerations(q, wrong, {"cam": 0.0}),
        lambda: system.linearize(q, wrong, np.zeros(2)),
    ):
        with pytest.raises(kt.InputError, match=r"qd opens the loops: 'touch' \(distance\) would part at .* m/s; give"):
            function()
    with pytest.raises(kt.InputError, match=r"qdd opens the loops: 'touch' \(distance\) would part at .* m/s\^2; give"):
        system.inverse_dynamics(q, qd, qdd + np.array([0.0, 1e-4 * size * SPEED**2]), actuated="cam")


def test_fast_bodies_elsewhere_do_not_widen_the_tolerance():
    """Refuse a motion that opens a loop by a thousandth, beside a wheel outside of it at a million rad/s."""
    bars, q, qd, qdd = library_state("four_bar")
    m = bars.mechanism
    wheel = kt.Body("wheel", 0.2, inertia=(1e-5, 1e-5, 2e-5, 0, 0, 0))
    spun = kt.System(
        kt.build_mechanism(
            "spun", [*m.bodies, wheel], [*m.joints, kt.Joint("spin", "revolute", m.bodies[0].name, "wheel")],
            frames=m.frames, loops=m.loops, gravity=m.gravity, parameters=m.parameters, guess=dict(m.guess),
        )
    )  # fmt: skip
    at = spun.mechanism.v_slices[[j.name for j in spun.joints].index("spin")].start
    q, qd, qdd = (np.insert(x, at, y) for x, y in ((q, 0.3), (qd, 1e6), (qdd, 0.0)))
    names = ["crank", "spin"]
    tau = spun.inverse_dynamics(q, qd, qdd, actuated=names)
    assert np.isfinite(tau).all()
    opening = np.where(np.arange(spun.nv) == at, 0.0, 1e-3)
    for states in ((q, qd + opening, qdd), tuple(np.stack([x, x]) for x in (q, qd + opening, qdd))):
        with pytest.raises(kt.InputError, match="qd opens the loops: 'pin'"):
            spun.inverse_dynamics(*states, actuated=names)
