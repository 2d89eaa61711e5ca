"""Independent degrees of freedom, and velocities and accelerations that keep loops closed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation

import everyday
import kinetree as kt
import strategies
from closed_mechanisms import closed_mechanisms
from kinetree.errors import InputError
from planar_loops import pin, two_bars
from tolerance import assert_close

LEADS = {
    "four_bar": ("crank",),
    "hoeken": ("crank",),
    "slider_crank": ("crank",),
    "spatial_slider_crank": ("crank",),
    "five_bar": ("left_crank", "right_crank"),
    "three_rrr": ("joint1", "joint4", "joint6"),
    "parallelogram": ("rocker",),
    "gear_train": ("input",),
}


@pytest.mark.parametrize("name", LEADS)
def test_the_leads_determine_all_speeds(name):
    """Find the joints that engineers would drive, and a G whose columns all keep the loops closed."""
    system = kt.load(name)
    q = system.assemble()
    found = system.independent(q)
    assert found.names == LEADS[name]
    assert found.mobility == len(found.names) == system.nv - np.linalg.matrix_rank(system.closure_jacobian(q), 1e-9)
    assert set(found.dependent).isdisjoint(found.names) and len(found.dependent) + found.mobility == system.nv
    assert_close(system.closure_jacobian(q) @ found.G, np.zeros((len(system.closures), found.mobility)), 1e-13, "J G")
    assert_close(found.G[list(found.at)], np.eye(found.mobility), 0.0, "leads")


def test_ratios_of_a_gear_train():
    """Read the ratios of the gears in G: -1/3, 1/9 and 6 mm per radian."""
    found = kt.load("gear_train").independent()
    assert_close(found.G[:, 0], [1.0, -1 / 3, 1 / 9, 0.006], 1e-15, "ratios")
    assert "input leads" in str(found) and "rack'" in str(found) and "+0.006 input'" in str(found)


def test_preferred_joints_lead_unless_dead():
    """Prefer the output of a four-bar, and the slider of a slider-crank at its dead center."""
    system = kt.load("four_bar")
    assert system.independent(prefer="output").names == ("output",)
    assert kt.load("slider_crank").independent(prefer=["slider"]).names == ("crank",)


def test_nothing_leads_where_nothing_moves():
    """Find no independent joint if loops lock, and all of them in a tree."""
    locked = two_bars(pin(0.43, 0.21)).independent()
    assert locked.names == () and locked.G.shape == (2, 0)
    assert str(locked) == "mobility 0: nothing can move"
    tree = kt.load("planar_3r").independent()
    assert_close(tree.G, np.eye(3), 0.0)


def test_units_do_not_decide():
    """Choose the same leads for a mechanism a thousand times larger, where a radian is many meters."""
    from dataclasses import replace

    system = kt.load("spatial_slider_crank")
    m = system.mechanism
    scaled = {"placement": ("joints",), "placement_a": ("loops",), "placement_b": ("loops",)}
    parts = {"joints": m.joints, "loops": m.loops}
    for field, (sort,) in scaled.items():
        parts[sort] = tuple(
            replace(x, **{field: replace(getattr(x, field), translation=_large(getattr(x, field).translation))})
            for x in parts[sort]
        )
    huge = kt.System(replace(m, joints=parts["joints"], loops=parts["loops"]))
    q = system.assemble()
    large = q * [1.0, 1e3, 1.0, 1.0]
    assert huge.independent(large).names == system.independent(q).names
    assert_close(huge.independent(large).G[1] / 1e3, system.independent(q).G[1], 1e-12, "slider")


def _large(place) -> tuple:
    return tuple(1e3 * x for x in place)


@pytest.mark.parametrize("name", everyday.some(LEADS))
def test_speeds_and_accelerations_fit_the_loops(name):
    """Give velocities and accelerations of the leads and check both against the motion, by differences in time."""
    system = kt.load(name)
    q = system.assemble()
    leads = dict(zip(LEADS[name], (1.3, -0.7, 0.4), strict=False))
    qd = system.consistent_speeds(q, leads)
    assert_close(qd, system.independent(q).G @ list(leads.values()), 1e-11, "G")
    assert_close(system.closure_jacobian(q) @ qd, np.zeros(len(system.closures)), 1e-13, "J qd")
    qdd = system.consistent_accelerations(q, qd, dict.fromkeys(leads, 0.0))
    h, at = 1e-4, list(system.independent(q).at)
    ends = []
    for sign in (1, -1):  # the leads turn at constant speed; the others follow
        there = q + sign * h * qd + 0.5 * h * h * qdd
        there[at] = (q + sign * h * qd)[at]
        ends.append(system.assemble(there, LEADS[name]))
    assert_close((ends[0] - ends[1]) / (2 * h), qd, 1e-6, "qd")
    assert_close((ends[0] + ends[1] - 2 * q) / h**2, qdd, 2e-5, "qdd")


def test_what_is_not_given_has_the_least_energy():
    """Give one velocity of a five-bar and find no motion with the same velocity and less kinetic energy."""
    system = kt.load("five_bar")
    q = system.assemble()
    qd = system.consistent_speeds(q, {"left_crank": 1.7})
    assert qd[0] == 1.7
    G = system.independent(q).G
    more = G[:, 1]  # leaves the left crank alone
    assert_close(more @ system.inertia_matrix(q) @ qd, 0.0, 1e-15, "no energy to gain")
    assert_close(system.consistent_speeds(q, {}), np.zeros(4), 0.0, "nothing given")


def test_states_of_a_batch():
    """Compute several positions and velocities at once, with the results of single ones."""
    system = kt.load("four_bar")
    q = np.array([system.assemble(hold={"crank": a}) for a in (0.3, 0.9, 2.1)])
    speeds = np.array([1.0, -2.0, 0.5])
    qd = system.consistent_speeds(q, {"crank": speeds})
    assert qd.shape == (3, 3)
    assert_close(qd[1], system.consistent_speeds(q[1], {"crank": -2.0}), 1e-15)
    qdd = system.consistent_accelerations(q, qd, {"crank": 0.2})
    assert_close(qdd[2], system.consistent_accelerations(q[2], qd[2], {"crank": 0.2}), 1e-15)


def test_contradictions_name_the_nearest():
    """Give two inconsistent velocities of a four-bar and read consistent ones."""
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": 0.7})
    ratio = system.independent(q).G[1, 0]
    wrong = {"crank": 2.0, "output": 1.0}
    nearest = (2.0 + ratio) / (1 + ratio**2)
    with pytest.raises(InputError, match="the loops do not allow these velocities together; nearest: crank") as error:
        system.consistent_speeds(q, wrong)
    assert f"crank = {nearest:.6g} instead of 2, output = {ratio * nearest:.6g} instead of 1" in str(error.value)
    right = {"crank": 2.0, "output": 2.0 * ratio}
    assert_close(system.consistent_speeds(q, right)[:2], list(right.values()), 0.0, "as given")


def test_open_positions_and_speeds_are_refused():
    """Give an open position, and velocities that open the loops, and read the gaps and rates."""
    system = kt.load("four_bar")
    q = system.assemble()
    with pytest.raises(InputError, match=r"q is open at loop 'pin' by .* mm; close it first: q = arm.assemble\(q\)"):
        system.consistent_speeds(q + np.array([0.1, 0, 0]), {"crank": 1.0})
    with pytest.raises(InputError, match=r"qd opens the loops: 'pin' \(position y\) would part at 0.076 m/s; give qd"):
        system.consistent_accelerations(q, [2.0, 0.0, 0.0], {})
    with pytest.raises(InputError, match=r"q has shape \(2,\); expected \[..., 3\]"):
        system.consistent_speeds(q[:2], {})
    with pytest.raises(InputError, match=r"numbers by joint are expected, such as \{'crank': 0.5\}; given \[2.0, 0"):
        system.consistent_speeds(q, [2.0, 0.0, 0.0])


@strategies.examples(20)
@given(closed_mechanisms())
def test_random_mechanisms_follow_their_leads(drawn):
    """Give the leads of random mechanisms velocities and accelerations, and find both consistent with the loops."""
    mechanism, q = drawn
    system = kt.System(mechanism)
    found = system.independent(q)
    J = system.closure_jacobian(q)
    assert_close(
        J @ found.G, np.zeros((len(J), found.mobility)), 1e-9 * max(1.0, np.abs(found.G).max(initial=0.0)), "J G"
    )
    given_speeds = dict(zip(found.names, np.linspace(0.3, -0.7, found.mobility), strict=True))
    qd = system.consistent_speeds(q, given_speeds)
    size = max(1.0, np.abs(qd).max(initial=0.0))
    assert_close(J @ qd, np.zeros(len(J)), 1e-9 * size, "J qd")
    assert_close(qd[list(found.at)], list(given_speeds.values()), 0.0, "as given")
    qdd = system.consistent_accelerations(q, qd, given_speeds)
    bias = system.closure_bias(q, qd)
    assert_close(J @ qdd + bias, np.zeros(len(J)), 1e-8 * size**2 * max(1.0, np.abs(qdd).max(initial=0.0)), "J qdd")


def braced(**locked: float) -> kt.System:
    """Return an arm that turns, on it two bars in a triangle that cannot move, or the bars at angles, `locked`."""
    data = {"arm": 1.3, "left": 0.4, "right": 0.6}
    bodies = [kt.Body(name, mass, (0.1, 0.02, 0.03), (0.01, 0.02, 0.015, 0, 0, 0)) for name, mass in data.items()]
    axis, at, foot = (0.0, 0.6, 0.8), kt.Placement((0.3, 0.1, 0.05)), kt.Placement((1.0, 0.1, 0.05))
    joints = [
        kt.Joint("shoulder", "revolute", "ground", "arm", axis=(0.6, 0.0, 0.8)),
        kt.Joint("knee", "revolute", "arm", "left", at, axis=axis),
        kt.Joint("ankle", "revolute", "left", "right", kt.Placement((0.5, 0.0, 0.0)), axis=axis),
    ]
    if locked:
        turned = [kt.Placement(j.placement.translation, about_axis(axis, locked[j.name])) for j in joints[1:]]
        welds = [replace(j, kind="fixed", placement=p) for j, p in zip(joints[1:], turned, strict=True)]
        return kt.System(kt.build_mechanism("welded", bodies, [joints[0], *welds]))
    strut = kt.Loop("strut", "revolute", "arm", "right", foot, kt.Placement((0.4, 0.0, 0.0)), axis=axis)
    guess = {"knee": [0.4], "ankle": [-1.0]}
    return kt.System(kt.build_mechanism("braced", bodies, joints, loops=[strut], guess=guess))


def about_axis(axis: tuple[float, float, float], angle: float) -> tuple:
    """Return the matrix of a rotation."""
    return strategies.nested(Rotation.from_rotvec(angle * np.array(axis)).as_matrix())


@pytest.mark.parametrize("speed", [1.3, 30.0])
def test_loops_that_only_ride_along_have_rounding_errors_of_what_moves(speed):
    """Move an arm with a triangle of bars that cannot move: its rates are rounding errors, and it is a rigid body."""
    system = braced()
    q = system.assemble(hold={"shoulder": 0.3})
    qd = system.closing_speed(q, [speed, 0.7, -0.4])
    qdd = system.consistent_accelerations(q, qd, {"shoulder": 0.3})
    welded = braced(knee=q[1], ankle=q[2])
    expected = welded.inverse_dynamics(q[:1], qd[:1], qdd[:1])
    found = system.inverse_dynamics(q, qd, qdd, actuated="shoulder")
    assert_close(found, [expected[0], 0.0, 0.0], 1e-13 * abs(expected[0]), "torques")
    many = system.inverse_dynamics(*(np.stack([x, x]) for x in (q, qd, qdd)), actuated="shoulder")
    assert (many == found).all()
    assert system.loads(q, qd, qdd=qdd, actuated="shoulder").joints.shape == (3, 6)
    assert system.linearize(q, qd, forces=False).A.shape == (2, 2)
    with pytest.raises(InputError, match=r"qd opens the loops: 'strut' \(position [xy]\) would part at"):
        system.inverse_dynamics(q, qd + 1e-8 * speed * np.eye(3)[1], qdd, actuated="shoulder")
    with pytest.raises(InputError, match=r"qdd opens the loops: 'strut' \(position [xy]\) would part at"):
        system.inverse_dynamics(q, qd, qdd + 1e-8 * speed**2 * np.eye(3)[1], actuated="shoulder")
