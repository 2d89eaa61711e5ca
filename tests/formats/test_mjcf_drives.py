"""Springs, actuators and keyframes of MJCF compared with MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import kinetree as kt  # noqa: E402
from kinetree.formats.mjcf import read_mjcf_text  # noqa: E402
from kinetree.formats.toml import read_toml_text  # noqa: E402
from kinetree.formats.toml_writer import write_toml  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers

HOPPER = """<mujoco model="hopper">
  <compiler angle="degree"/>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <geom type="plane" size="20 20 0.1"/>
    <body name="torso" pos="0 0 1.25">
      <joint name="rootx" type="slide" axis="1 0 0"/>
      <joint name="rootz" type="slide" axis="0 0 1" ref="1.25" stiffness="11" springref="0.9"/>
      <joint name="rooty" axis="0 1 0"/>
      <geom type="capsule" size="0.05" fromto="0 0 0.2 0 0 -0.2"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint name="thigh_joint" axis="0 -1 0" range="-150 10" stiffness="3.7" springref="20" ref="5" damping="0.3"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.45"/>
        <body name="leg" pos="0 0 -0.45">
          <joint name="leg_joint" axis="0 -1 0" range="-150 0" damping="0.7" actuatorfrcrange="-19 19"/>
          <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.5"/>
        </body>
      </body>
      <body name="arm" pos="0 0.2 0.1">
        <joint name="shoulder" type="ball" stiffness="{ball}"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0.3 -0.1"/>
        <site name="hand" pos="0 0.3 -0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="hip" joint="thigh_joint" gear="20" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="knee" joint="leg_joint" kp="1.5" kv="0.4" gear="3" forcerange="-11 11"/>
    <velocity joint="thigh_joint" kv="4.1"/>
    <general name="affine" joint="rooty" gear="-1.7" gainprm="2.1" biastype="affine" biasprm="0.3 -0.9 -0.2"/>
    <motor name="turn" joint="shoulder" gear="0.3 -0.7 1.1"/>
    {more}
  </actuator>
  <keyframe>
    <key name="home" qpos="0.1 1.3 0.2 -0.3 -0.4 1 0.3 0 0.2" qvel="0 0.1 0 0 0.2 0 0 0.5" ctrl="0.5 -0.4 0.3 0.2 0.7"/>
    <key qpos="0 1 0 0 0 2 0 0 0"/>
  </keyframe>
</mujoco>"""


def read(more: str = "", ball: float = 0.0):
    """Return the System of the hopper, its report, and MuJoCo's model with data."""
    text = HOPPER.format(more=more, ball=ball)
    mechanism, report = read_mjcf_text(text, file="hopper.xml")
    model = mujoco.MjModel.from_xml_string(text)
    return kt.System(mechanism, report), report, model, mujoco.MjData(model)


def states(system, model, count: int = 6):
    """Return random states, and the same coordinates with w of quaternions first."""
    q, qd = system.random_state(np.random.default_rng(4), count)
    theirs = q.copy()
    theirs[:, -4:] = q[:, [-1, -4, -3, -2]]
    return q, qd, theirs


def test_neutral_is_the_position_of_the_file():
    """Find the neutral position at MuJoCo's reference, with the torso at its height, and above the ground."""
    system, _, model, data = read()
    q = system.neutral()
    assert_close(q[:5], model.qpos0[:5], 1e-15, "reference")
    mujoco.mj_forward(model, data)
    for name in ("torso", "thigh", "leg"):
        T = system.pose(q, name)
        assert_close(T[:3, 3], data.body(name).xpos, 1e-15, f"position of {name}")
    assert system.pose(q, "leg")[2, 3] > 0.5


def test_springs_and_dampers_give_the_passive_forces():
    """Compare the forces of springs and dampers at random states with MuJoCo's passive forces."""
    system, _, model, data = read()
    assert [(f.kind, f.name) for f in system.mechanism.forces] == [
        ("joint_spring", "rootz_spring"), ("joint_spring", "thigh_joint_spring"),
    ]  # fmt: skip
    q, qd, theirs = states(system, model)
    passive = system.bias_torque(q, qd, forces=False) - system.bias_torque(q, qd, forces=True)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = theirs[k], qd[k]
        mujoco.mj_forward(model, data)
        assert np.abs(data.qfrc_passive).max() > 1.0
        assert_close(passive[k], data.qfrc_passive, 1e-12, "passive forces")


def test_actuators_give_the_torques_of_mujoco():
    """Compare gears, servos, and bounds of controls, forces and joints at random states and controls."""
    system, report, model, data = read()
    assert [a.name for a in system.mechanism.actuators] == ["hip", "knee", "thigh_joint_actuator", "affine", "turn"]
    assert "5 actuators, which act in a run with control=kt.ActuatorControl(...)" in str(report)
    q, qd, theirs = states(system, model)
    bounded = 0
    for k, u in enumerate(np.random.default_rng(7).normal(size=(len(q), 5))):
        data.qpos[:], data.qvel[:], data.ctrl[:] = theirs[k], qd[k], u
        mujoco.mj_forward(model, data)
        run = kt.simulate(system, q[k], qd[k], duration=1e-6, control=kt.ActuatorControl(u), method="rk4", dt=1e-6)
        assert_close(run.control[0], data.qfrc_actuator, 1e-12, "torques of actuators")
        bounded += abs(data.qfrc_actuator[4]) == 19.0
    assert 0 < bounded < len(q)


def test_keyframes_are_states():
    """Compare the state of a keyframe with MuJoCo's, with quaternions of length one, and simulate from it."""
    system, _, model, data = read()
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    q, qd = system.keyframe("home")
    assert_close(system.pose(q, "hand")[:3, 3], data.site("hand").xpos, 1e-15, "hand")
    assert_close(qd, data.qvel, 0.0, "velocities")
    assert_close(np.linalg.norm(system.keyframe("key1")[0][-4:]), 1.0, 1e-15, "quaternion")
    home = system.mechanism.keyframes[0]
    assert dict(home.control) == {
        "hip": (0.5,), "knee": (-0.4,), "thigh_joint_actuator": (0.3,), "affine": (0.2,), "turn": (0.7,),
    }  # fmt: skip
    run = kt.simulate(
        system, q, qd, duration=1e-6, control=kt.ActuatorControl(dict(home.control)), dt=1e-6, method="rk4"
    )
    assert_close(run.control[0], data.qfrc_actuator, 1e-12, "torques at home")
    with pytest.raises(kt.UnknownNameError, match="no keyframe 'hom'; did you mean 'home'.*available: home, key1"):
        system.keyframe("hom")


def test_free_bodies_of_keyframes_move_alike():
    """Turn the velocity of a free body, which MuJoCo has in the world's axes, into its own axes."""
    body = '<body name="a"><freejoint name="f"/><geom size="0.1" pos="0.1 0.2 0"/></body>'
    key = '<key name="k" qpos="0.1 0.2 0.3 0.9 0.1 -0.3 0.2" qvel="0.3 -0.2 0.7 0.5 0.1 -0.4"/>'
    text = f"<mujoco><worldbody>{body}</worldbody><keyframe>{key}</keyframe></mujoco>"
    system = kt.System(read_mjcf_text(text)[0])
    q, qd = system.keyframe("k")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    found = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 1, found, 0)
    assert_close(system.jacobian(q, "a") @ qd, found, 1e-15, "twist")


def test_files_keep_them():
    """Write springs, actuators and keyframes as TOML, and read the same mechanism."""
    mechanism = read()[0].mechanism
    again = read_toml_text(write_toml(mechanism))[0]
    assert (again.forces, again.actuators, again.keyframes) == (
        mechanism.forces, mechanism.actuators, mechanism.keyframes,
    )  # fmt: skip
    assert again.hash == mechanism.hash


def test_what_is_not_read_is_reported():
    """Report actuators of sites, with states and of muscles, controls that no longer match, and springs of balls."""
    more = '<general name="push" site="hand" gear="1 0 0 0 0 0"/><intvelocity name="slow" joint="leg_joint" kp="3" '
    more += 'actrange="-1 1"/>'
    text = HOPPER.format(more=more, ball=2.0).replace('0.3 0.2 0.7"/>', '0.3 0.2 0.7 0 0"/>')
    mechanism, report = read_mjcf_text(text, file="hopper.xml")
    found = str(report)
    assert [a.name for a in mechanism.actuators] == ["hip", "knee", "thigh_joint_actuator", "affine", "turn"]
    assert "<general name='push'> in <actuator>: it does not drive a joint" in found
    assert "the actuator 'slow': it has a state of its own" in found
    assert "ctrl of <key name='home'>: some actuators are not read" in found
    assert "stiffness = 2 of the ball joint 'shoulder'" in found
    assert mechanism.keyframes[0].control == ()


def test_springs_of_merged_bodies_act():
    """Read a spring whose joint is on a body that is merged into the ground, and a file that disables springs."""
    text = """<mujoco>{}<worldbody><body name="stand" pos="0 0 0.3"><geom size="0.1"/><body name="a">
      <joint name="j" axis="0.2 1 0" stiffness="4.2" springref="30"/><geom size="0.1" pos="0.1 0.2 0.3"/></body></body>
      </worldbody></mujoco>"""
    spring = read_mjcf_text(text.format(""))[0].forces[0]
    assert (spring.body_a, spring.body_b) == ("ground", "a")
    assert_close([x for _, x in spring.coefficients], [4.2, np.pi / 6], 1e-15, "coefficients")
    off, report = read_mjcf_text(text.format('<option><flag spring="disable"/></option>'))
    assert off.forces == ()
    assert "joints have no springs: the file disables them" in str(report)


ARM = [kt.Joint("a", "revolute", "ground", "b")]
BODY = [kt.Body("b", 0.7, inertia=(0.1, 0.2, 0.15, 0.0, 0.0, 0.0))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: {"actuators": [kt.Actuator("m", "x")]}, "actuator 'm', joint: no joint 'x'; .*available: a"),
        (lambda: {"actuators": [kt.Actuator("m", "a", (1.0, 2.0))]}, "actuator 'm', gear: 2 numbers; give 1"),
        (lambda: {"actuators": [kt.Actuator("m", "a"), kt.Actuator("m", "a")]}, "actuator name 'm' is used twice"),
        (
            lambda: {"actuators": [kt.Actuator("m", "a", control=(2.0, 1.0))]},
            "lower bound 2 is above 1; give",
        ),
        (lambda: {"keyframes": [kt.Keyframe("k", {"a": (0.1, 0.2)})]}, "keyframe 'k', q: 2 numbers; give 1"),
        (lambda: {"keyframes": [kt.Keyframe("k", control={"m": 0.1})]}, "keyframe 'k', control: no actuator 'm'"),
        (lambda: {"keyframes": [kt.Keyframe("k", q=5.0)]}, "5.0 where numbers by name belong; give"),
        (lambda: {"actuators": kt.Actuator("m", "a")}, "where a list of kt.Actuator belongs"),
    ],
)
def test_faults_are_told(make, message):
    """Give actuators and keyframes that do not fit, and read the part and the remedy."""
    with pytest.raises(kt.ModelError, match=message):
        kt.build_mechanism("arm", BODY, ARM, **make())


def test_controls_that_do_not_fit_are_told():
    """Control a mechanism without actuators, too many, and an unknown one."""
    arm = kt.System(kt.build_mechanism("arm", BODY, ARM, actuators=[kt.Actuator("m", "a", (3.0,))]))
    for system, control, message in (
        (kt.load("planar_2r"), 0.0, "'planar_2r' has no actuators; give a controller of torques, such as kt.PD"),
        (arm, [0.1, 0.2], r"control has shape \(2,\); give a number, or one per actuator: m"),
        (arm, {"n": 0.1}, "no actuator 'n'; .*available: m"),
    ):
        with pytest.raises(kt.KinetreeError, match=message):
            kt.simulate(system, duration=0.1, control=kt.ActuatorControl(control))
    run = kt.simulate(arm, duration=0.1, control=kt.ActuatorControl(kt.Hold([0.5])))
    assert_close(run.control, np.full((len(run), 1), 1.5), 1e-15, "a reference of controls")
