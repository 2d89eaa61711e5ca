"""MJCF that Kinetree writes: read back, and run by MuJoCo, it has the masses, poses and torques of the mechanism."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import kinetree as kt
from kinetree import ModelError, System
from kinetree.formats.mjcf import read_mjcf_text
from kinetree.formats.mjcf_writer import write_mjcf
from kinetree.model import Coupling, ForceElement, Frame, Joint, Keyframe, Limits, Loop, Mechanism, Placement, Shape
from kinetree.model.drives import Actuator
from strategies import State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

mujoco = pytest.importorskip("mujoco")
KINDS = ["revolute", "prismatic", "spherical", "fixed"]


def reread(system: System, tmp_path) -> System:
    """Return a system written as MJCF and read."""
    return kt.load(kt.save(system, tmp_path / "model.xml"), fixed="keep")


def by_mujoco(system: System, q, qd, qdd) -> tuple[dict, np.ndarray]:
    """Return positions of bodies, and torques by joint name, of MuJoCo's inverse dynamics of the text."""
    model = mujoco.MjModel.from_xml_string(write_mjcf(system.mechanism)[0])
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    for joint, own, dofs in zip(system.joints, system.mechanism.q_slices, system.mechanism.v_slices, strict=True):
        if joint.kind == "fixed":
            continue
        k = model.joint(joint.name).id
        at, start = model.jnt_qposadr[k], model.jnt_dofadr[k]
        x = q[own]
        if joint.kind == "spherical":
            x = np.r_[x[3], x[:3]] / np.linalg.norm(x)
        data.qpos[at : at + len(x)] = x
        n = dofs.stop - dofs.start
        data.qvel[start : start + n], data.qacc[start : start + n] = qd[dofs], qdd[dofs]
    mujoco.mj_inverse(model, data)
    torques = np.zeros(system.nv)
    for joint, dofs in zip(system.joints, system.mechanism.v_slices, strict=True):
        if joint.kind != "fixed":
            start = model.jnt_dofadr[model.joint(joint.name).id]
            torques[dofs] = data.qfrc_inverse[start : start + dofs.stop - dofs.start]
    return {b.name: data.body(b.name).xpos.copy() for b in system.bodies}, torques


@given(moving_mechanisms(KINDS, most=5))
@examples(20)
def test_written_trees_are_the_same(tmp_path_factory, mechanism):
    """Write random trees, read them, and find masses, poses and torques, here and by MuJoCo."""
    mechanism = evened(mechanism)
    system = System(mechanism)
    again = reread(system, tmp_path_factory.mktemp("mjcf"))
    s = State(mechanism, 1)
    q, qd, qdd = s.q[0], s.qd[0], s.qdd[0]
    moving = [j.name for j in again.joints if j.kind != "fixed"]  # MJCF has no names of fixed joints
    order = [n for name in moving for n in range(system.nv)[entries(system, name, "v")]]
    coordinates = [n for name in moving for n in range(system.nq)[entries(system, name, "q")]]
    tau = system.inverse_dynamics(q, qd, qdd)
    size = max(np.abs(system.inertia_matrix(q)).max(), np.abs(tau).max())
    found = again.inverse_dynamics(q[coordinates], qd[order], qdd[order])
    assert_close(found, tau[order], 1e-12 * size, "torques")
    masses = {b.name: b.mass for b in again.bodies}
    assert masses == {b.name: b.mass for b in system.bodies}
    places, torques = by_mujoco(system, q, qd, qdd)
    assert_close(torques, tau, 1e-12 * size, "MuJoCo's torques")
    for body in system.bodies:
        pose = np.asarray(system.pose(q, body.name))
        assert_close(again.pose(q[coordinates], body.name), pose, 1e-12, "pose")
        assert_close(places[body.name], pose[:3, 3], 1e-12 * max(1.0, np.abs(pose).max()), "MuJoCo's position")


def evened(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism whose ball joints have the same numbers about all axes, the only ones that MJCF holds."""

    def even(joint: Joint) -> Joint:
        numbers = {key: getattr(joint, key) for key in ("damping", "friction", "armature")}
        return replace(joint, **{key: x[:1] * len(x) for key, x in numbers.items()})

    return replace(mechanism, joints=tuple(even(j) if j.kind == "spherical" else j for j in mechanism.joints))


def entries(system: System, joint: str, what: str) -> slice:
    """Return the places of a joint's coordinates or velocities."""
    m = system.mechanism
    k = [j.name for j in m.joints].index(joint)
    return (m.q_slices if what == "q" else m.v_slices)[k]


def equipped() -> System:
    """Return an arm with springs, limits, actuators, keyframes, frames, shapes, a coupling and resistances."""
    arm = kt.load("planar_3r").mechanism
    one, two, three = arm.joints
    joints = (
        replace(one, armature=(0.31,), damping=(0.7,), limits=Limits(-1.1, 2.3, 3.0, 40.0)), two,
        replace(three, friction=(0.2,), limits=Limits(lower=-1.0)),
    )  # fmt: skip
    numbers = (("stiffness_1", 7.1), ("rest_1", 0.3))
    spring = ForceElement("s", "joint_spring", two.parent, two.child, coefficients=numbers)
    bodies = tuple(
        replace(b, shapes=(Shape("box", (0.1, 0.2, 0.3)), Shape("mesh", file="a.stl"))) if k == 0 else b
        for k, b in enumerate(arm.bodies)
    )
    return System(replace(
        arm, bodies=bodies, joints=joints, forces=(spring,),
        frames=(*arm.frames, Frame("spot", arm.bodies[1].name, Placement((0.1, 0.2, 0.3)))),
        couplings=(Coupling("gear", three.name, ((two.name, -0.7),), 0.2),),
        actuators=(Actuator("servo", one.name, (11.0,), 20.0, (0.0, -20.0, -1.5), (-1.0, 1.0), (-9.0, 9.0)),),
        keyframes=(Keyframe("home", ((one.name, (0.4,)), (three.name, (-0.1,))), ((two.name, (0.3,)),)),),
    ))  # fmt: skip


def test_parts_of_an_arm_return(tmp_path):
    """Write springs, drives, keyframes, limits, couplings and sites, and read them."""
    arm = equipped()
    again = reread(arm, tmp_path)
    m, n = arm.mechanism, again.mechanism
    for a, b in zip(m.joints, n.joints, strict=True):
        assert a.armature == b.armature or (not any(a.armature) and not any(b.armature))
        assert (sum(a.damping), sum(a.friction)) == (sum(b.damping), sum(b.friction))
    assert (n.joints[0].limits.lower, n.joints[0].limits.upper, n.joints[0].limits.effort) == ((-1.1,), (2.3,), (40.0,))
    assert dict(n.forces[0].coefficients) == dict(m.forces[0].coefficients)
    assert (n.couplings[0].terms, n.couplings[0].offset) == (m.couplings[0].terms, m.couplings[0].offset)
    assert n.actuators == m.actuators
    assert_close(again.keyframe("home")[0], arm.keyframe("home")[0], 0.0, "keyframe")
    assert next(f for f in n.frames if f.name == "spot") == m.frames[-1]
    assert n.gravity == m.gravity
    q = np.array([0.3, -0.4, 0.48])
    tree, other = arm.tree, again.tree
    assert_close(other.inverse_dynamics(q, q, q), tree.inverse_dynamics(q, q, q), 1e-12, "torques")


def test_what_is_left_out_is_listed():
    """Read the comment on top of a file: limits, meshes and friction that differ."""
    text, report = write_mjcf(equipped().mechanism)
    lost = [e.text for sort in ("dropped", "changed") for e in report.of(sort)]
    assert "the limit of velocity of joint 'joint1'" in lost
    assert "the limit of joint 'joint3' at one end alone" in lost
    assert any(x.startswith("the mesh 'a.stl'") for x in lost)
    assert any("frictionloss also holds at rest" in x for x in lost)
    assert all(x in text for x in lost)
    assert text.startswith("<?xml")


def test_fixed_joints_have_no_names():
    """Read in the report which joints come back under the names of their bodies."""
    arm = kt.load("planar_2r").mechanism
    weld = replace(arm.joints[1], kind="fixed", name="weld", damping=(), friction=(), armature=(), limits=Limits())
    _, report = write_mjcf(replace(arm, joints=(arm.joints[0], weld)))
    assert f"fixed joints have no names: 'weld' is read as {weld.child!r}" in [e.text for e in report.of("changed")]


def test_loops_at_points_and_rigid_ones(tmp_path):
    """Write a chain closed at a point, and find the loop and the accelerations."""
    chain = random_mechanism(["revolute"] * 4, [-1, 0, 1, 2], 3)
    closed = replace(chain, loops=(Loop("pin", "spherical", "ground", chain.bodies[-1].name,
                                        Placement((0.1, 0.2, 0.1)), Placement((0.2, -0.1, 0.3))),))  # fmt: skip
    loop = reread(System(closed), tmp_path).mechanism.loops[0]
    assert loop.kind == "spherical"
    ends = {loop.body_a: loop.placement_a, loop.body_b: loop.placement_b}
    assert_close(ends["ground"].translation, (0.1, 0.2, 0.1), 1e-14, "point of the ground")
    assert_close(ends[chain.bodies[-1].name].translation, (0.2, -0.1, 0.3), 1e-14, "point of the body")


def test_free_bodies(tmp_path):
    """Write a floating arm, and find its torques by the same coordinates."""
    arm = kt.load("space_robot_3r")
    again = reread(arm, tmp_path)
    q, qd = arm.random_state(3)
    assert_close(again.inverse_dynamics(q, qd, qd), arm.inverse_dynamics(q, qd, qd), 1e-11, "torques")


def test_what_mjcf_has_no_place_for_is_reported():
    """Write mechanisms with other loops, forces and contacts, and read in the report what is left out."""
    _, report = write_mjcf(kt.load("charmie_torso").mechanism)
    lost = [e.text for e in report.of("dropped")]
    assert "point_on_line loop 'head_5d', which acts on the motion" in lost
    _, report = write_mjcf(kt.load("mecanum_base").mechanism)
    assert any(e.text.startswith("rolling_rollers loop") for e in report.of("dropped"))


def test_a_revolute_loop_is_two_connects(tmp_path):
    """Write a hinge that closes a loop as two points on its axis, and read one revolute loop again."""
    bars = kt.load("four_bar")
    report = kt.save(bars, tmp_path / "bars.xml")
    assert Path(report).read_text().count("<connect") == 2
    again = kt.load(report)
    assert [loop.kind for loop in again.mechanism.loops] == ["revolute"]
    assert "are one revolute loop: two points are on its axis" in str(again.report)
    q = bars.assemble()
    tau = np.array([0.3, 0.0, 0.0])
    found = again.forward_dynamics(q, 0.0 * q, tau)
    expected = bars.forward_dynamics(q, 0.0 * q, tau)
    assert_close(found, expected, 1e-10 * np.abs(expected).max(), "accelerations")


POINTS = """<mujoco><worldbody><body name="a"><freejoint/><geom size="0.1" mass="1"/>
<site name="a1"/><site name="a2" pos="0 0 1"/></body><body name="b"><freejoint/><geom size="0.1" mass="1"/>
<site name="b1"/><site name="b2" pos="0.6 0 {}"/></body></worldbody><equality>
<connect name="one" site1="a1" site2="b1"/><connect name="two" site1="b2" site2="a2"/></equality></mujoco>"""


@pytest.mark.parametrize(("height", "kinds"), [(0.8, ["revolute"]), (2.0, ["spherical", "spherical"])])
def test_two_points_make_a_hinge_where_their_distances_agree(height, kinds):
    """Read two connects, given from both sides, as a hinge; keep them where no hinge fits their distances."""
    mechanism, _ = read_mjcf_text(POINTS.format(height))
    assert [loop.kind for loop in mechanism.loops] == kinds


def test_bodies_without_mass_are_refused():
    """Write a joint that moves nothing, and read the remedy."""
    arm = kt.load("planar_2r").mechanism
    light = replace(arm, bodies=(arm.bodies[0], replace(arm.bodies[1], mass=0.0, inertia=(0.0,) * 6)))
    with pytest.raises(ModelError, match="moves nothing with mass, and MuJoCo takes no body such as"):
        write_mjcf(light)


@pytest.mark.parametrize("inertia", [(0.1, 0.2, 0.5), (-0.1, 0.2, 0.15)])
def test_impossible_inertias_are_refused(inertia):
    """Write principal moments that no body has, which MuJoCo would refuse, and read them with the remedy."""
    arm = kt.load("planar_2r").mechanism
    odd = replace(arm, bodies=(arm.bodies[0], replace(arm.bodies[1], inertia=(*inertia, 0.0, 0.0, 0.0))))
    message = "MuJoCo takes none that is negative or above the sum of the others; give an inertia that a body can have"
    with pytest.raises(ModelError, match=message):
        write_mjcf(odd)


def test_joints_of_massless_bodies_are_joints_of_the_next_body(tmp_path):
    """Write a chain with massless bodies between its joints, and find the motion of the body that has mass."""
    chain = random_mechanism(["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2], 7)
    light = replace(chain, bodies=tuple(
        replace(b, mass=0.0, inertia=(0.0,) * 6) if k in (0, 1) else b for k, b in enumerate(chain.bodies)
    ))  # fmt: skip
    arm = System(light)
    again = kt.load(kt.save(arm, tmp_path / "light.xml"))
    q, qd, qdd = np.linspace(0.4, -1.1, 12).reshape(3, 4)
    tau = arm.inverse_dynamics(q, qd, qdd)
    assert_close(again.inverse_dynamics(q, qd, qdd), tau, 1e-12 * np.abs(tau).max(), "torques")
    assert_close(again.pose(q, "tool"), arm.pose(q, "tool"), 1e-12, "pose")


def test_springs_between_points_are_tendons(tmp_path):
    """Write springs and dampers between points as straight tendons, and find their forces, here and in MuJoCo."""
    chain = random_mechanism(["revolute", "prismatic", "revolute"], [-1, 0, 1], 4)
    numbers = (("stiffness", 30.0), ("damping", 4.0), ("free_length", 0.2), ("preload", 3.0))
    ends = "ground", chain.bodies[-1].name
    springs = (
        ForceElement("s", "spring_damper", *ends, (0.1, 0.3, -0.2), (0.2, -0.1, 0.1), numbers),
        ForceElement("d", "spring_damper", chain.bodies[0].name, ends[1], coefficients=(("damping", 2.0),)),
    )
    arm = System(replace(chain, forces=springs))
    text, report = write_mjcf(arm.mechanism)
    assert not report.of("dropped")
    again = reread(arm, tmp_path)
    assert dict(again.mechanism.forces[0].coefficients) == {
        "stiffness": 30.0,
        "damping": 4.0,
        "free_length": 0.2 + 3.0 / 30.0,
    }
    q, qd, qdd = np.linspace(0.4, -1.1, 9).reshape(3, 3)
    tau = arm.inverse_dynamics(q, qd, qdd)
    assert_close(again.inverse_dynamics(q, qd, qdd), tau, 1e-12 * np.abs(tau).max(), "torques")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
    mujoco.mj_inverse(model, data)
    assert_close(data.qfrc_inverse, tau, 1e-11 * np.abs(tau).max(), "MuJoCo's torques")


def test_tendons_that_are_no_springs_are_reported():
    """Drop tendons around geoms, slack ones and ones without a law, with their names."""
    body = '<body name="b"><joint name="j"/><geom name="g" size="0.1" mass="1"/><site name="s" pos="1 0 0"/></body>'
    text = f"""<mujoco><worldbody><site name="w"/>{body}</worldbody><tendon>
    <spatial name="slack" stiffness="2" damping="1" springlength="0.1 0.3"><site site="w"/><site site="s"/></spatial>
    <spatial name="idle"><site site="w"/><site site="s"/></spatial><fixed name="f"><joint joint="j" coef="1"/></fixed>
    <spatial name="around" stiffness="1"><site site="w"/><geom geom="g"/><site site="s"/></spatial></tendon></mujoco>"""
    mechanism, report = read_mjcf_text(text)
    assert [(f.name, dict(f.coefficients)) for f in mechanism.forces] == [("slack", {"damping": 1.0})]
    lost = str(report)
    assert "the spring of tendon 'slack', which is slack from 0.1 to 0.3 m" in lost
    assert "the tendon 'idle': it has no spring and no damper" in lost
    assert "<spatial name='around'> in <tendon>: only straight ones between two sites are read" in lost
