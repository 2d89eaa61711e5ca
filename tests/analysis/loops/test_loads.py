"""Loads: reactions at every joint, independent of the cut, and shared where motion does not determine them."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, library_state
from cut_rings import planar, spatial
from kinetree.errors import InputError, UnknownNameError
from kinetree.model import GROUND, Body, Joint, Loop, Placement, build_mechanism
from kinetree.model.mechanism import resolve_parts
from planar_loops import free_rod
from tolerance import assert_close

RINGS = {
    "four-bar": planar([(0.0, 0.0), (0.13, 0.31), (0.77, 0.52), (0.91, -0.08)]),
    "slider-crank": planar([(0.0, 0.0), (0.2, 0.17), (0.83, 0.05), (0.83, 0.05)], slides=3),
    "spatial": spatial(),
}


def door(**options) -> kt.System:
    """Return a door on two hinges, 0.4 m below and above its center of mass, the upper one cut."""
    body = Body("door", 12.0, (0.35, 0.0, 0.4), (0.9, 1.3, 0.6, 0.0, 0.0, 0.0))
    lower = Joint("lower", "revolute", GROUND, "door", Placement((0.0, 0.0, 0.1)))
    upper = Loop("upper", "revolute", GROUND, "door", Placement((0.0, 0.0, 0.9)), Placement((0.0, 0.0, 0.8)))
    return kt.System(build_mechanism("door", [body], [lower], loops=[upper], **options))


@everyday.long
@pytest.mark.parametrize("name", everyday.only(RINGS, ["four-bar"]))
def test_reactions_do_not_depend_on_the_cut(name):
    """Cut a ring at each of its joints in turn and find the same reactions at all of them, shared ones too."""
    ring = RINGS[name]
    rates, pushes = ring.rates(), np.random.default_rng(3).normal(size=(len(ring.masses), 6))
    share = {"k1": 2.5, "k2": (0.3, 1.0, 0.7, 2.0, 1.4, 0.1)}
    seen = []
    for at in range(len(ring.kinds)):
        arm = ring.cut(at)
        q, w = np.zeros(arm.nq), ring.pushed(arm, pushes)
        found = arm.loads(q, ring.speeds(arm, at, rates), wrenches=w, share=share)
        signs = [1.0 if k <= at else -1.0 for k in range(len(ring.kinds))]
        seen.append([s * found.at(f"k{k}", axes="world") for k, s in enumerate(signs)])
        assert found.unique(f"k{at}") == (name == "spatial")
    for other in seen[1:]:
        assert_close(other, seen[0], 1e-9 * np.abs(seen[0]).max(), "reactions")
    assert np.abs(seen[0]).max() > 1.0


@pytest.mark.parametrize("name", everyday.some(["four_bar", "spatial_slider_crank", "stewart", "five_bar"]))
def test_bodies_are_in_balance(name):
    """Apply the loops' wrenches to the open tree and find the reactions of its own recursion, and the torques."""
    arm, q, qd, qdd = library_state(name)
    drives = DRIVES[name]
    found = arm.loads(q, qd, qdd=qdd, actuated=drives)
    w, poses = np.zeros((len(arm.bodies), 6)), arm.poses(q)
    index = {b.name: k for k, b in enumerate(arm.bodies)}
    for loop in resolve_parts(arm.mechanism.loops, arm.mechanism.values()):
        n, f = np.split(found.at(loop.name, axes="world"), 2)
        point = poses[index[loop.body_b]] @ [*loop.placement_b.translation, 1.0]
        for body, sign in ((loop.body_b, 1.0), (loop.body_a, -1.0)):
            pose = poses[index[body]]
            moment = n + np.cross(point[:3] - pose[:3, 3], f)
            w[index[body]] += sign * np.concatenate([pose[:3, :3].T @ moment, pose[:3, :3].T @ f])
    scale = np.abs(found.joints).max()
    assert_close(arm.tree.reactions(q, qd, qdd, wrenches=w), found.joints, 1e-12 * scale, "reactions")
    assert_close(arm.tree.inverse_dynamics(q, qd, qdd, wrenches=w), found.tau, 1e-12 * scale, "torques")


@everyday.long
def test_torques_and_motion_give_the_same_loads():
    """Find the same reactions for a motion and for the torques that cause it, in a batch and one by one."""
    arm, q, qd, qdd = library_state("parallelogram")
    by_motion = arm.loads(q, qd, qdd=qdd, actuated="rocker")
    taus = by_motion.tau * np.array([[1.0], [-2.0], [0.0]])
    batch = arm.loads(q, qd, tau=taus)
    assert batch.joints.shape == (3, 4, 6) and batch.cuts.shape == (3, 2, 6) and batch.qdd.shape == (3, 4)
    assert_close(batch.joints[0], by_motion.joints, 1e-10, "joints")
    assert_close(batch.cuts[0], by_motion.cuts, 1e-10, "cuts")
    assert_close(arm.loads(q, qd).joints, batch.joints[2], 1e-12, "no torque")
    assert_close(
        arm.loads(q, qd, tau=taus[1]).at("third_pin", axes="parent"), batch.at("third_pin", axes="parent")[1], 1e-12
    )


def test_equal_hinges_halve_the_weight():
    """Hang a door on two hinges: half of its weight is on each, all of it on one that does not give.

    Hinges that hardly take moments pull it by 0.35 / 0.8 of its weight, one in and one out.
    """
    weight, arm = 12.0 * 9.81, door()
    equal = arm.loads([0.3], [0.0])
    assert_close([equal.at(k)[5] for k in ("lower", "upper")], [weight / 2, weight / 2], 1e-10, "half each")
    stiff = arm.loads([0.3], [0.0], share={"upper": (1, 1, 1, 1, 1, 0)})
    assert_close([stiff.at(k)[5] for k in ("lower", "upper")], [0.0, weight], 1e-10, "all on one")
    third = arm.loads([0.3], [0.0], share={"upper": 2.0})
    assert_close([third.at(k)[5] for k in ("lower", "upper")], [2 * weight / 3, weight / 3], 1e-10, "by compliance")
    loose = dict.fromkeys(("lower", "upper"), (1e9, 1e9, 1e9, 1, 1, 1))
    pulls = [arm.loads([0.3], [0.0], share=loose).at(k)[3] for k in ("lower", "upper")]
    assert_close(pulls, [0.35 / 0.8 * weight, -0.35 / 0.8 * weight], 1e-6 * weight, "couple")
    both = ("lower", "upper")
    exact = arm.loads([0.3], [0.0], share=[dict.fromkeys(both, (1, 1, 1, 0, 0, 0)), {}])
    assert_close([exact.at(k)[3] for k in both], pulls, 1e-6 * weight, "the same couple")
    assert_close(exact.at("lower")[3], 0.35 / 0.8 * weight, 1e-12 * weight, "exactly, no moment where none is needed")
    assert_close([exact.at(k)[5] for k in both], [weight / 2, weight / 2], 1e-10, "half of the rest each")
    first = arm.loads([0.3], [0.0], share=[dict.fromkeys(both, 2.5), {"upper": (3, 1, 4, 1, 5, 9)}])
    assert_close(first.joints, equal.joints, 1e-12 * weight, "nothing is left for the second")
    one = arm.loads([0.3], [0.0], share=[{"lower": 1}, {}])
    assert_close(one.at("lower"), np.zeros(6), 1e-12 * weight, "nothing that the other hinge can take")
    assert_close(arm.loads([0.3], [0.0], share=[]).joints, equal.joints, 0, "no rank: as without share")
    assert not equal.unique("lower") and not equal.unique("upper")
    assert equal.unique_joints[0].tolist() == [False, False, True, False, False, False]


def test_axes_turn_wrenches():
    """Rotate a door by 90 degrees and read the force of its hinge in the axes of door and world."""
    arm = door(gravity=(0.0, -2.0, 0.0))
    found = arm.loads([np.pi / 2], [0.0], tau=[12.0 * 2.0 * 0.0])
    total = sum(found.at(name, axes="world") for name in ("lower", "upper"))
    assert_close(total[3:], [0.0, 24.0, 0.0], 1e-12, "weight")
    body = sum(found.at(name) for name in ("lower", "upper"))
    assert_close(body[3:], [24.0, 0.0, 0.0], 1e-12, "along the door")
    assert_close(found.at("upper", axes="parent"), found.at("upper", axes="world"), 1e-14, "the parent is the ground")


def test_cuts_carry_the_multipliers():
    """Read the multipliers of a pin in the axes of frame a, and a wrench in those of a parent that moves."""
    arm, q, qd, _ = library_state("four_bar")
    found, turn = arm.loads(q, qd), arm.pose(q, "output")[:3, :3]
    fx, fy, fz, nx, ny = found.multipliers
    assert_close(found.at("pin", axes="parent"), [nx, ny, 0.0, fx, fy, fz], 1e-12 * abs(fx), "multipliers")
    n, f = np.split(found.at("coupler", axes="world"), 2)
    wanted = np.concatenate([turn.T @ n, turn.T @ f])
    assert_close(found.at("coupler", axes="parent"), wanted, 1e-12 * np.abs(f).max(), "in the parent")
    assert np.abs(wanted - found.at("coupler")).max() > 0.1


def test_a_tree_has_loads_too():
    """Find the reactions of an open arm, with given or required torques."""
    arm = kt.load("stanford")
    q, qd = arm.random_state(1)
    qdd = np.linspace(-1.0, 2.0, 6)
    found = arm.loads(q, qd, qdd=qdd)
    assert_close(found.joints, arm.reactions(q, qd, qdd), 0.0, "reactions")
    assert_close(found.tau, arm.inverse_dynamics(q, qd, qdd), 1e-11, "torques")
    assert_close(arm.loads(q, qd, tau=found.tau).joints, found.joints, 1e-9, "under torques")
    assert found.unique("joint1") and found.cuts.shape == (0, 6) and "~" not in found.table()


def test_table_marks_what_is_shared():
    """Read joints, cuts, units and marks in the table, and a refusal for many states."""
    arm = door()
    lines = str(arm.loads([0.1], [0.0])).splitlines()
    heads = [f"{letter}_{axis} [{unit}]" for letter, unit in (("n", "N m"), ("f", "N")) for axis in "xyz"]
    assert " ".join(lines[0].split()) == f"joint {' '.join(heads)}"
    assert lines[1].split()[0] == "lower" and lines[2].startswith("upper (cut) ")
    assert lines[1].split()[-1] == "58.86~" and lines[1].split()[3] == "0"
    assert lines[-1] == "~ shared by the joints' compliance: motion alone does not determine it."
    with pytest.raises(InputError, match="loads are of states of shape \\(2,\\); a table shows one of them"):
        arm.loads([[0.1], [0.2]], [0.0]).table()


def test_wrong_arguments_are_told():
    """Refuse torques with motion, motion without actuators, unknown names and impossible compliances."""
    arm, q, qd, qdd = library_state("four_bar")
    with pytest.raises(InputError, match="both tau and qdd are given; give the torques, or the motion"):
        arm.loads(q, qd, tau=[0.0] * 3, qdd=qdd)
    with pytest.raises(InputError, match="a motion qdd of a closed mechanism needs actuated="):
        arm.loads(q, qd, qdd=qdd)
    with pytest.raises(InputError, match="actuated names the joints that make a motion; it goes with qdd"):
        arm.loads(q, qd, actuated=["crank"])
    with pytest.raises(InputError, match="the actuators cannot make this motion .*under-actuated.*; give tau"):
        arm.loads(q, qd, qdd=qdd, actuated=[])
    with pytest.raises(UnknownNameError, match="share: no joint or loop 'pim'; did you mean 'pin'"):
        arm.loads(q, qd, share={"pim": 1.0})
    with pytest.raises(InputError, match="share of 'pin' is -1; expected a compliance of 0 or more, or six of"):
        arm.loads(q, qd, share={"pin": -1})
    with pytest.raises(InputError, match="share of 'pin' is nan; expected a compliance of 0 or more, or six of"):
        arm.loads(q, qd, share=[{}, {"pin": np.nan}])
    with pytest.raises(InputError, match="share has 'pin'; expected compliances by joint or loop, or a list of such"):
        arm.loads(q, qd, share=["pin"])
    with pytest.raises(InputError, match="qd opens the loops: 'pin' \\(position [xy]\\) would part at .* m/s; give qd"):
        arm.loads(q, [1.0, 0.0, 0.0])
    found = arm.loads(q, qd)
    with pytest.raises(UnknownNameError, match="no axes 'word'; did you mean 'world'"):
        found.at("pin", axes="word")
    with pytest.raises(UnknownNameError, match="no joint or loop 'cranc'; did you mean 'crank'"):
        found.at("cranc")
    with pytest.raises(UnknownNameError, match="no joint or loop 'cranc'"):
        found.unique("cranc")


@everyday.long
def test_parameters_are_those_of_the_fixed_mechanism():
    """Give a length to torques, loads and the doctor, and find the results of the mechanism of that length."""
    arm, given = free_rod(), [0.47]
    fixed = arm.fixed(given)
    q = arm.assemble(hold={"j0": 0.4}, parameters=given)
    qd = arm.consistent_speeds(q, {"j0": 1.7}, parameters=given)
    qdd = arm.consistent_accelerations(q, qd, {"j0": -2.3}, parameters=given)
    found, expected = (
        s.loads(q, qd, qdd=qdd, actuated="j0", **more) for s, more in ((arm, {"parameters": given}), (fixed, {}))
    )
    assert_close(found.joints, expected.joints, 1e-12, "joints")
    assert_close(found.at("rod"), expected.at("rod"), 1e-12, "rod")
    tau = arm.inverse_dynamics(q, qd, qdd, actuated="j0", parameters=given)
    assert_close(tau, arm.actuation(q, qd, qdd, "j0", parameters=given).tau, 0.0, "tau")
    assert_close(arm.forward_dynamics(q, qd, tau, parameters=given), qdd, 1e-9, "qdd")
    assert arm.doctor(q, qd, parameters=given).ok
    assert not arm.doctor(q, qd).ok
    with pytest.raises(InputError, match=r"q leaves the loops open: 'rod' \(length\) has a gap of 0.13 m"):
        arm.loads(q, qd)


def test_many_states_print_their_largest_loads():
    """Print the loads of a full rotation of the crank: the largest magnitude of each component, and marks."""
    arm = kt.load("four_bar")
    q = [arm.assemble(hold={"crank": angle}) for angle in (0.3, 0.9, 1.7)]
    found = arm.loads(q, np.zeros((3, 3)))
    text = str(found)
    assert text.startswith("largest sizes in 3 states\njoint ")
    assert text.endswith("~ shared by the joints' compliance: motion alone does not determine it.")
    pin = text.splitlines()[5].split()
    assert pin[:2] == ["pin", "(cut)"]
    assert_close([float(x) for x in pin[5:7]], np.abs(found.at("pin")[:, 3:5]).max(axis=0), 1e-2, "pin")
    with pytest.raises(InputError, match=r"the loads are of states of shape \(3,\); a table shows one of them"):
        found.table()


SHARES = (
    {"crank": 2.5, "pin": (0.3, 1.0, 0.7, 2.0, 1.4, 0.1)},
    [{"pin": (0, 0, 0, 0, 0, 3.0)}, {"crank": 0, "coupler": (1, 0, 2, 0, 0, 0)}],
    [{"pin": 1.0, "output": (0, 1, 0, 0, 0, 0)}, {"output": 2.0, "crank": (1, 1, 0, 0, 0, 1)}, {"crank": 1e-3}],
)


@pytest.mark.parametrize("share", everyday.some(SHARES))
def test_shares_of_batches_are_those_of_single_states(share):
    """Share the loads of a batch in native code as those of each of its states alone, by every rank of compliances."""
    arm = kt.load("four_bar")
    q = np.array([arm.assemble(hold={"crank": angle}) for angle in (0.4, 1.1, 2.9)])
    qd = np.array([arm.consistent_speeds(x, {"crank": 3.0}) for x in q])
    qdd = np.array([arm.consistent_accelerations(x, v, {"crank": -1.5}) for x, v in zip(q, qd, strict=True)])
    w = np.random.default_rng(4).normal(size=(3, 3, 6))
    batch = arm.loads(q, qd, qdd=qdd, actuated="crank", share=share, wrenches=w)
    scale = np.abs(batch.joints).max()
    for k in range(3):
        one = arm.loads(q[k], qd[k], qdd=qdd[k], actuated="crank", share=share, wrenches=w[k])
        assert_close(batch.joints[k], one.joints, 1e-11 * scale, "joints")
        assert_close(batch.cuts[k], one.cuts, 1e-11 * scale, "cuts")
        assert_close(batch.multipliers[k], one.multipliers, 1e-11 * scale, "multipliers")
        assert (batch.unique_joints[k] == one.unique_joints).all()
    equal = arm.loads(q, qd, qdd=qdd, actuated="crank", wrenches=w)
    assert np.abs(equal.joints - batch.joints).max() > 1e-3 * scale
    found = arm.actuation(q, qd, qdd, "crank", share=share, wrenches=w)
    assert_close(found.multipliers, batch.multipliers, 1e-12 * scale, "multipliers of the torques")
