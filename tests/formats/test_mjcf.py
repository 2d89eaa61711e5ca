"""MJCF compared with MuJoCo: poses, inertia matrices and torques of models with awkward numbers."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import builtins
import importlib
import math

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import kinetree as kt  # noqa: E402
from interpreted import compute  # noqa: E402
from kinetree.formats import mjcf as module  # noqa: E402
from kinetree.formats.mjcf import read_mjcf_text  # noqa: E402
from kinetree.formats.toml import read_toml_text  # noqa: E402
from kinetree.formats.toml_writer import write_toml  # noqa: E402
from mujoco_peer import Peer  # noqa: E402
from strategies import State  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers

ARM = """<mujoco model="arm">
  <compiler autolimits="true"/>
  <option gravity="0.3 -0.2 -9.7"/>
  <default><joint damping="0.7" armature="0.013"/><default class="slow"><joint damping="3" frictionloss="0.4"/>
  </default></default>
  <worldbody>
    <site name="origin" pos="0.1 0.2 0.3"/>
    <body name="stand" pos="0.1 -0.2 0.5" euler="10 20 30">
      <inertial pos="0.01 0 0" mass="3" diaginertia="0.1 0.2 0.25"/>
      <body name="upper" pos="0.05 0.07 0.2" quat="0.9 0.1 -0.3 0.2">
        <joint name="yaw" pos="0.02 -0.03 0.04" axis="0.1 0.2 1" range="-90 120" ref="25"/>
        <joint name="pitch" class="slow" pos="-0.05 0.01 0.06" axis="1 0.3 0" ref="-40"/>
        <joint name="reach" type="slide" pos="9 9 9" axis="0.2 1 0.4" ref="0.15" range="-0.2 0.9"/>
        <inertial pos="0.1 0.02 -0.05" quat="0.8 0.2 0.3 0.1" mass="2.3" diaginertia="0.04 0.05 0.03"/>
        <site name="elbow" pos="0.3 0 0.1" euler="5 -15 40"/>
        <body name="lower" pos="0.3 0.01 0.02" axisangle="1 1 0 35">
          <joint name="twist" type="ball" pos="0.01 0.06 -0.02"/>
          <inertial pos="0.02 0.2 0.03" mass="1.1" fullinertia="0.02 0.03 0.025 0.001 -0.002 0.003"/>
          <body name="tip" pos="0 0.4 0.1" euler="0 0 17">
            <inertial pos="0.01 0.02 0.03" quat="0.5 0.1 0.1 0.3" mass="0.4" diaginertia="0.001 0.002 0.0015"/>
            <site name="tool" pos="0 0 0.1"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""

FLOATING = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="hull" pos="1 2 3" quat="0.7 0.1 0.2 -0.4">
      <freejoint name="float"/>
      <geom type="box" size="0.3 0.2 0.1" pos="0.05 0.01 -0.02" euler="0.1 0.2 0.3" mass="7"/>
      <geom type="sphere" size="0.12" pos="0.3 0.1 0" density="800"/>
      <body name="leg" pos="0.2 -0.1 0" euler="0.3 0 0.9">
        <joint name="hip" type="ball" damping="0.2" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.05 -0.4" size="0.04"/>
        <body name="foot" pos="0.1 0.05 -0.4">
          <joint name="slip_x" type="slide" axis="1 0 0.1"/>
          <joint name="slip_y" type="slide" axis="0 1 0"/>
          <joint name="turn" axis="0 0.1 1" pos="0.03 0.02 0.01"/>
          <geom type="ellipsoid" size="0.1 0.05 0.03" euler="0.4 0.5 0.6" density="1200"/>
        </body>
      </body>
    </body>
    <body name="swing" pos="-1 0.3 0.2">
      <joint name="pivot" axis="0.3 0.1 0.2" ref="0.8"/>
      <geom type="cylinder" size="0.05 0.3" pos="0 0.1 0.3" euler="0.5 0 0"/>
    </body>
  </worldbody>
</mujoco>"""

MODELS = {"arm": ARM, "floating": FLOATING}


def read(text):
    """Return the mechanism of a text with its report, and MuJoCo's model of the unchanged text."""
    mechanism, report = read_mjcf_text(text, file="model.xml")
    model = mujoco.MjModel.from_xml_string(text)
    return mechanism, report, Peer(mechanism, model, mujoco.MjData(model))


def as_given(mechanism, peer, q, qd):
    """Set MuJoCo's state from coordinates that differ only in the order of quaternions."""
    peer.set(q, qd)
    mujoco.mj_forward(peer.model, peer.data)


@pytest.mark.parametrize("fixed", ["merge", "keep"])
@pytest.mark.parametrize("name", MODELS)
def test_same_motion_as_mujoco(name, fixed):
    """Compare inertia matrix and bias torques with several joints per body, anchors and references."""
    mechanism, _ = read_mjcf_text(MODELS[name], fixed=fixed)
    _, _, p = read(MODELS[name])
    p.mechanism = mechanism
    s = State(mechanism, 3, shape=4)
    I, bias = compute(mechanism, "inertia_matrix", s.q), compute(mechanism, "bias_torque", s.q, s.qd)
    for k in range(4):
        as_given(mechanism, p, s.q[k], s.qd[k])
        B, drift = p.map(), p.drift(s.qd[k])
        M = np.zeros((p.model.nv, p.model.nv))
        for row, unit in zip(M, np.eye(p.model.nv), strict=True):
            mujoco.mj_mulM(p.model, p.data, row, unit)
        assert_close(B.T @ M @ B, I[k], 1e-12 * np.abs(I[k]).max(), "inertia matrix")
        expected = B.T @ (p.data.qfrc_bias + M @ drift)
        assert_close(bias[k], expected, 1e-12 * np.abs(expected).max(), "bias")


@pytest.mark.parametrize("name", MODELS)
def test_same_poses_as_mujoco(name):
    """Compare the poses of bodies and sites; bodies whose origin moved are compared by their frames."""
    mechanism, _, p = read(MODELS[name])
    s = State(mechanism, 5, shape=())
    as_given(mechanism, p, s.q, s.qd)
    assert p.model.nbody > 3
    for kind, count in (("body", p.model.nbody), ("site", p.model.nsite)):
        for k in range(1 if kind == "body" else 0, count):
            there = getattr(p.data, kind)(k)
            moved = f"{there.name}_frame"
            frame = moved if moved in mechanism.frame_names else there.name
            T = compute(mechanism, "pose", s.q, frame=frame)
            assert_close(T[:3, :3], there.xmat.reshape(3, 3), 1e-13, f"{kind} rotation")
            assert_close(T[:3, 3], there.xpos, 1e-13, f"{kind} position")


def test_names_and_numbers_of_the_arm():
    """Read joints, losses, limits and gravity with their names, and welded bodies as frames."""
    mechanism, report, _ = read(ARM)
    assert (mechanism.name, mechanism.source, mechanism.gravity) == ("arm", "model.xml", (0.3, -0.2, -9.7))
    assert [b.name for b in mechanism.bodies] == ["upper_1", "upper_2", "upper", "lower"]
    assert [j.kind for j in mechanism.joints] == ["revolute", "revolute", "prismatic", "spherical"]
    yaw, pitch, reach, twist = mechanism.joints
    assert_close((*yaw.limits.lower, *yaw.limits.upper), np.radians([-90, 120]), 1e-15, "limits")
    assert (pitch.damping, pitch.friction, pitch.armature) == ((3.0,), (0.4,), (0.013,))
    assert reach.limits.lower == (-0.2,)
    assert twist.damping == (0.7,) * 3
    assert {f.name: f.body for f in mechanism.frames} == {
        "origin": "ground", "elbow": "upper", "tool": "lower", "upper_frame": "upper", "lower_frame": "lower",
        "stand": "ground", "tip": "lower",
    }  # fmt: skip
    assert_close(mechanism.body("lower").mass, 1.5, 1e-15, "mass with the tip")
    text = str(report)
    assert "model.xml:10: body 'upper' has 3 joints: the first ones move massless bodies, upper_1, upper_2" in text
    assert "model.xml:19: body 'tip' has no joint: it is merged into 'lower' and remains a frame" in text
    assert "model.xml:16: the origin of body 'lower' moves to its joint's anchor; frame 'lower_frame' is" in text
    assert "4 bodies and 4 joints: 4 bodies, 6 degrees of freedom, 7 frames, 0 loops, 0 couplings" in text


def test_the_reference_is_the_guess():
    """Keep MuJoCo's nonzero reference coordinates as the guess, with w of quaternions last."""
    guess = dict(read(ARM)[0].guess)
    assert set(guess) == {"yaw", "pitch", "reach"}
    assert_close([guess[n][0] for n in ("yaw", "pitch", "reach")], [*np.radians([25, -40]), 0.15], 1e-15, "guess")
    floating = read(FLOATING)[0]
    guess = dict(floating.guess)
    unit = np.array([0.1, 0.2, -0.4, 0.7]) / math.hypot(0.1, 0.2, 0.4, 0.7)
    assert_close(guess["float"], [1, 2, 3, *unit], 1e-15, "free body")
    assert guess["pivot"] == (0.8,)
    again, _ = read_toml_text(write_toml(floating))
    assert (again.guess, again.hash) == (floating.guess, floating.hash)


LOSSES = """<mujoco>
  <worldbody>
    <body name="a"><joint name="j" stiffness="4" springref="30" actuatorfrcrange="-2 2" {joint}/><geom size="1"/></body>
    <body name="b" gravcomp="1"><joint name="k" type="ball" range="0 50"/><geom size="0.1"/></body>
    <body name="d"><joint name="l" type="slide" actuatorfrcrange="-1 2"/><geom size="0.1"/></body>
    <body name="c" mocap="true"/>
  </worldbody>
</mujoco>"""


def test_what_has_no_place_is_reported():
    """Report gravity compensation, limits of balls, asymmetric efforts and mocap bodies."""
    mechanism, report, _ = read(LOSSES.format(joint=""))
    text = str(report)
    assert mechanism.joint("j").limits.effort == (2.0,)
    assert mechanism.joint("k").limits == kt.Limits()
    assert [(f.name, f.body_b) for f in mechanism.forces] == [("j_spring", "a")]
    assert "gravcomp = 1 of body 'b'" in text
    assert "model.xml:4: range = 0 0.872665 of the ball joint 'k'" in text
    assert "model.xml:5: actuatorfrcrange = -1 2 of joint 'l': not symmetric" in text
    assert "the mocap body 'c' does not move" in text


def test_armatures_of_free_bodies_are_suspect():
    """Keep the losses of a free joint, one number per degree of freedom, and report its armature."""
    joint = '<joint name="f" type="free" armature="0.1" damping="0.2"/>'
    text = f'<mujoco><worldbody><body>{joint}<geom size="1"/></body></worldbody></mujoco>'
    mechanism, report, _ = read(text)
    assert (mechanism.joint("f").armature, mechanism.joint("f").damping) == ((0.1,) * 6, (0.2,) * 6)
    assert "the armature of the free joint 'f' acts along the body's axes here" in str(report.of("suspect")[0])


def test_flags_switch_things_off():
    """Apply and report the flags that disable gravity, damping and friction."""
    text = LOSSES.format(joint='damping="3" frictionloss="2"')
    text = text.replace("<worldbody>", '<option><flag gravity="disable" damper="disable"/></option><worldbody>')
    mechanism, report, _ = read(text)
    assert mechanism.gravity == (0.0, 0.0, 0.0)
    assert (mechanism.joint("j").damping, mechanism.joint("j").friction) == ((), (2.0,))
    changed = "\n".join(map(str, report.of("changed")))
    assert "gravity is zero: the file disables it" in changed
    assert "joints have no damping: the file disables it" in changed


def test_parts_without_names_get_some():
    """Name bodies, joints and sites without a name, and rename those with the name of the ground or of a body."""
    mechanism, report, _ = read(
        '<mujoco><worldbody><body><joint/><joint type="slide"/><geom size="1"/><site/></body>'
        '<body name="ground"><freejoint/><geom size="1"/><site name="ground_"/></body></worldbody></mujoco>'
    )
    assert [b.name for b in mechanism.bodies] == ["body1_1", "body1", "ground_"]
    assert [j.name for j in mechanism.joints] == ["body1_joint", "body1_joint2", "ground__joint"]
    assert [f.name for f in mechanism.frames] == ["site1", "ground__site"]
    assert "body 'ground' is renamed to 'ground_'" in str(report)
    assert "site 'ground_' is the frame 'ground__site'" in str(report)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody>\n<bdy/></worldbody></mujoco>", "MuJoCo cannot compile it: .*'bdy', line 2; repair"),
        (
            '<mujoco>\n\n<worldbody><body name="x"><joint/></body></worldbody></mujoco>',
            "mass and inertia of moving bodies must be larger than mjMINVAL .*'x', id 1, line 3; repair the part",
        ),
        ("<robot/>", "<robot>: the root element is not <mujoco>; give an MJCF file"),
        ("<mujoco", "is not well-formed XML"),
    ],
)
def test_faults_are_model_errors(text, message):
    """Turn an error of MuJoCo into a ModelError with its message and the line of the file."""
    with pytest.raises(kt.ModelError, match=message) as caught:
        read_mjcf_text(text, file="model.xml")
    assert str(caught.value).startswith("model.xml:")


def test_load_takes_both_sorts_of_xml(tmp_path):
    """Distinguish MJCF and URDF by their root elements, and refuse URDF's options for MJCF."""
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "robot.xml").write_text('<robot name="r"><link name="a"/></robot>')
    system = kt.load(tmp_path / "arm.xml")
    assert (system.nq, system.nv, system.mechanism.name) == (7, 6, "arm")
    assert len(kt.load(tmp_path / "arm.xml", fixed="keep").bodies) == 6
    assert kt.load(tmp_path / "robot.xml").mechanism.name == "r"
    with pytest.raises(kt.ModelError, match="base is an option of URDF and SDF files; leave it out"):
        kt.load(tmp_path / "arm.xml", base="free")
    with pytest.raises(kt.InputError, match="fixed must be one of merge, keep, not 'weld'"):
        kt.load(tmp_path / "arm.xml", fixed="weld")


def test_without_mujoco_the_remedy_is_named(monkeypatch):
    """Read that the package is required if it is not installed."""
    monkeypatch.setattr(module, "import_module", _refuse)
    needed = "a.xml: MJCF files require the package mujoco, which is not installed; pip install mujoco, or give"
    with pytest.raises(kt.ModelError, match=needed):
        read_mjcf_text(ARM, file="a.xml")


def _refuse(name):
    raise builtins.ImportError(name)


def test_importing_the_reader_does_not_import_mujoco():
    """Import mujoco only when a model is compiled."""
    assert not hasattr(importlib.import_module("kinetree.formats.mjcf_parts"), "mujoco")
    assert not hasattr(module, "mujoco")
