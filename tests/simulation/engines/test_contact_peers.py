"""Contact beside MuJoCo: agreement where the models coincide, and creep where MuJoCo regularizes friction."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from tolerance import assert_close
from touching_bodies import G, box_on_slope, free_body, leg_start, sticking_leg

pytestmark = pytest.mark.slow
mujoco = pytest.importorskip("mujoco")

BOX = """<mujoco><option timestep="{dt}" cone="{cone}"/><worldbody>
  <geom type="plane" size="9 9 .1" euler="0 {deg} 0" friction="{mu} 0 0" condim="3" solref="{ref} 1"/>
  <body pos="{x} 0 {z}" euler="0 {deg} 0"><freejoint/>
    <geom type="box" size=".15 .1 .05" mass="2" friction="{mu} 0 0" condim="3" solref="{ref} 1"/></body>
</worldbody></mujoco>"""

LADDER = """<mujoco><option timestep="1e-4"/><default><geom condim="1" solref="0.0004 1"/></default><worldbody>
  <geom type="plane" size="9 9 .1"/><geom type="plane" size="9 9 .1" euler="0 90 0"/>
  <body pos="{x} 0 {z}" euler="0 {deg} 0"><freejoint/>
    <inertial pos="0 0 0" mass="3" diaginertia="1 1 .001"/>
    <geom type="sphere" size=".01" pos="0 0 -1"/><geom name="top" type="sphere" size=".01" pos="0 0 1"/></body>
</worldbody></mujoco>"""


def velocity_in_mujoco(degrees: float, mu: float, *, cone: str = "elliptic", dt: float = 1e-3, ref: float = 0.02):
    """Return the velocity down the slope and the depth of a box after two seconds."""
    a = math.radians(degrees)
    text = BOX.format(dt=dt, cone=cone, deg=degrees, mu=mu, x=0.05 * math.sin(a), z=0.05 * math.cos(a), ref=ref)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    while data.time < 2.0 - dt / 2:
        mujoco.mj_step(model, data)
    along, up = np.array([math.cos(a), 0, -math.sin(a)]), np.array([math.sin(a), 0, math.cos(a)])
    return along @ data.qvel[:3], 0.05 - up @ data.qpos[:3]


@pytest.mark.parametrize("cone, least", [("elliptic", 4e-4), ("pyramidal", 8e-4)])
def test_box_creeps_there_and_not_here(cone, least) -> None:
    """Find the creep of a box on a slope in MuJoCo's default settings, and none here."""
    for degrees in (10, 20, 30):
        speed, depth = velocity_in_mujoco(degrees, 1.0, cone=cone)
        assert speed > least and depth > 5e-5
        system, q, corners = box_on_slope(math.radians(degrees), 1.0)
        run = kt.simulate(system, q, times=[0.0, 2.0], contacts=corners)
        assert_close(run.qd[-1], np.zeros(6), 1e-12, "creep")


def test_sliding_box_agrees() -> None:
    """Reach the same velocity of sliding as MuJoCo with stiff contacts and small steps."""
    speed, _ = velocity_in_mujoco(30.0, 0.3, dt=1e-4, ref=0.0004)
    system, q, corners = box_on_slope(math.radians(30.0), 0.3)
    run = kt.simulate(system, q, times=[0.0, 2.0], contacts=corners)
    exact = 2 * G * (math.sin(math.pi / 6) - 0.3 * math.cos(math.pi / 6))
    assert_close(run.qd[-1, 3], exact, 1e-9, "velocity against the closed form")
    assert_close(speed, exact, 2e-3 * exact, "MuJoCo's velocity")


def test_detachment_agrees() -> None:
    """Leave a smooth wall at the same time as in MuJoCo."""
    angle = 0.6
    text = LADDER.format(x=math.sin(angle) + 0.01, z=math.cos(angle) + 0.01, deg=-math.degrees(angle))
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    last = 0.0
    while data.time < 0.6:
        mujoco.mj_step(model, data)
        if any(abs(c.frame[0]) > 0.5 for c in data.contact):
            last = data.time
    system = free_body("ladder", 3.0, (1.0, 1.0, 1e-3))
    q = system.neutral()
    q[:3] = math.sin(angle) + 0.01, 0.0, math.cos(angle) + 0.01
    q[3:] = 0.0, math.sin(-angle / 2), 0.0, math.cos(-angle / 2)
    upright = kt.Surface(placement=kt.Placement.from_euler("y", (math.pi / 2,)))
    ends = [kt.Contact("foot", "ladder", "sphere", 0.01, (0, 0, -1)),
            kt.Contact("top", "ladder", "sphere", 0.01, (0, 0, 1), upright)]  # fmt: skip
    run = kt.simulate(system, q, times=[0.0, 0.6], contacts=ends)
    (left,) = [e.t for e in run.contact.events if e.kind == "lift-off"]
    assert_close(last, left, 5e-3, "time of detachment [s]")


def test_a_pulled_box_creeps_there_and_holds_here() -> None:
    """Pull a box by 7 of the 9.81 N that friction holds, then by 11 N: the first creeps in MuJoCo, both slide alike."""
    text = BOX.format(dt=1e-3, cone="elliptic", deg=0, mu=0.5, x=0, z=0.05, ref=0.02)
    stiff = BOX.format(dt=1e-4, cone="elliptic", deg=0, mu=0.5, x=0, z=0.05, ref=0.0004)
    for given, pull, seconds in ((text, 7.0, 2.0), (stiff, 11.0, 0.5)):
        model = mujoco.MjModel.from_xml_string(given)
        data = mujoco.MjData(model)
        data.xfrc_applied[1, 0] = pull
        while data.time < seconds - model.opt.timestep / 2:
            data.xfrc_applied[1, 4] = -0.05 * pull  # acts at the base: the box does not tip
            mujoco.mj_step(model, data)
        system, q, corners = box_on_slope(0.0, 0.5)
        drag = kt.ExternalWrench("box", (0.0, 0.0, -0.05), force=(pull, 0.0, 0.0))
        run = kt.simulate(system, q, times=[0.0, seconds], contacts=corners, forces=drag)
        exact = max(0.0, pull / 2.0 - 0.5 * G) * seconds
        assert_close(run.qd[-1, 3], exact, 1e-12 if pull < 9 else 1e-9, "velocity here")
        if pull < 9:
            assert data.qvel[0] > 1e-4  # creep
        else:
            assert_close(data.qvel[0], exact, 2e-2 * exact, "MuJoCo's velocity")


LEG = """<mujoco><option timestep="1e-5" cone="elliptic" impratio="100" noslip_iterations="10"/>
  <default><geom friction=".9 0 0" condim="3" solref="2e-5 1" solimp=".99 .999 .001"/></default><worldbody>
  <geom type="plane" size="9 9 .1"/>
  <body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 1 0"/>
    <inertial pos="0 0 0" mass="1.3" diaginertia="{0} {0} {0}"/><geom type="sphere" size="1e-4" pos="0 0 -1"/>
  </body></worldbody></mujoco>"""


@pytest.mark.parametrize("inertia", [1e-2, 3e-5, 1e-6])
def test_a_leg_on_a_small_inertia_turns_as_in_mujoco(inertia) -> None:
    """Turn a leg about the foot that friction holds, with small steps in MuJoCo, and compare the angles."""
    model = mujoco.MjModel.from_xml_string(LEG.format(inertia))
    data = mujoco.MjData(model)
    q, qd = leg_start()
    data.qpos[:], data.qvel[:] = q + np.array([0.0, 1e-4, 0.0]), qd
    while data.time < 0.4 - 5e-6:
        mujoco.mj_step(model, data)
    for options in ({}, {"method": "moreau", "dt": 2e-4}):
        run = kt.simulate(sticking_leg(inertia), q, qd, times=[0.0, 0.4], **options)
        assert run.finished
        assert_close(run.q[-1, 2], data.qpos[2], 2e-4, "angle [rad]")


ARM = """<mujoco><option timestep="2e-5" integrator="implicitfast" cone="elliptic"/>
  <default><geom condim="3" solref="0.0001 1" solimp="0.999 0.9999 0.0001"/></default><worldbody>
  <geom name="floor" type="plane" size="9 9 1" friction="0.3 0 0"/>
  <body name="upper" pos="0 0 .75"><joint name="shoulder" type="hinge" axis="0 1 0"/>
    <inertial pos="0 0 -.25" mass="2" diaginertia=".05 .05 .01"/>
    <body name="lower" pos="0 0 -.5"><joint name="elbow" type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .01"/>
      <geom name="tip" type="sphere" size=".05" pos="0 0 -.4" friction="0.3 0 0"/>
  </body></body></worldbody></mujoco>"""


def test_the_tip_of_an_arm_slides_as_in_mujoco(tmp_path) -> None:
    """Read an arm with its floor from MJCF, and let its tip slide: angles agree with MuJoCo's stiff contact."""
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    arm = kt.load(path, contacts=True)
    assert [(c.name, c.friction) for c in arm.mechanism.contacts] == [("tip", 0.3)]
    elbow = 1.2
    low, high = 0.0, 0.5  # the angle of the shoulder at which the tip touches
    for _ in range(80):
        shoulder = 0.5 * (low + high)
        height = 0.75 - 0.5 * math.cos(shoulder) - 0.4 * math.cos(shoulder - elbow) - 0.05
        low, high = (shoulder, high) if height > 0 else (low, shoulder)
    q, lever = np.array([shoulder, -elbow]), 0.4 * math.sin(shoulder - elbow)
    qd = np.array([-1.5, 1.5 * (0.5 * math.sin(shoulder) + lever) / lever])  # along the floor
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    times = [0.0, 0.05, 0.1, 0.15]
    theirs = [q.copy()]
    for t in times[1:]:
        while data.time < t - 1e-5:
            mujoco.mj_step(model, data)
        theirs.append(data.qpos.copy())
    run = kt.simulate(arm, q, qd, times=times)
    assert [e.kind for e in run.contact.events] == ["slip"] and (run["contact_forces"][:, 0, 0] > 1.0).all()
    assert np.abs(run.q[-1] - q).max() > 0.1
    assert_close(theirs, run.q, 1e-3, "angles")


BRICK = """<body pos="{x} 0 {z}" euler="0 {deg} 0"><freejoint/>
    <geom type="box" size="{half}" mass="{mass}" friction="{mu} 0 0" condim="3" solref="{ref} 1"/></body>"""


def bricks(degrees: float, sizes: list, mu: float, masses: list, *, dt: float, ref: float):
    """Return a model of MuJoCo of boxes on each other and on a slope."""
    a, height, text = math.radians(degrees), 0.0, ""
    for half, mass in zip(sizes, masses, strict=True):
        height += half[2]
        at = {"x": height * math.sin(a), "z": height * math.cos(a)}
        text += BRICK.format(**at, deg=degrees, half=" ".join(map(str, half)), mass=mass, mu=mu, ref=ref)
        height += half[2]
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" cone="elliptic"/><worldbody><geom type="plane" size="9 9 .1" '
        f'euler="0 {degrees} 0" friction="0 0 0" condim="3" solref="{ref} 1"/>{text}</worldbody></mujoco>'
    )


def two_bricks(sizes: list, masses: list) -> tuple[kt.System, np.ndarray]:
    """Return two boxes, one on the other, as free bodies, and their positions."""
    bodies = []
    for k, (half, m) in enumerate(zip(sizes, masses, strict=True)):
        x, y, z = (4 * h * h / 12 for h in half)
        bodies.append(kt.Body(f"b{k}", m, inertia=(m * (y + z), m * (x + z), m * (x + y), 0, 0, 0)))
    joints = [kt.Joint(f"j{k}", "free", kt.GROUND, f"b{k}") for k in range(2)]
    system = kt.System(kt.build_mechanism("bricks", bodies, joints))
    q = system.neutral()
    q[2], q[9] = sizes[0][2], 2 * sizes[0][2] + sizes[1][2]
    return system, q


def test_a_box_on_a_box_creeps_there_and_not_here() -> None:
    """Find the creep of a box that lies on another one on a slope in MuJoCo, and none here."""
    half = (0.2, 0.15, 0.1)
    for degrees in (10, 20):
        model = bricks(degrees, [half, half], 1.0, [2.0, 2.0], dt=1e-3, ref=0.02)
        data = mujoco.MjData(model)
        while data.time < 2.0:
            mujoco.mj_step(model, data)
        assert np.linalg.norm(data.qvel[6:9]) > 1e-3
        system, q = two_bricks([half, half], [2.0, 2.0])
        a = math.radians(degrees)
        for k in range(2):
            q[7 * k : 7 * k + 3] = q[7 * k + 2] * np.array([math.sin(a), 0.0, math.cos(a)])
            q[7 * k + 3 : 7 * k + 7] = 0.0, math.sin(a / 2), 0.0, math.cos(a / 2)
        size = tuple(2 * x for x in half)
        slope = kt.Surface(placement=kt.Placement.from_euler("y", (a,)))
        contacts = [
            kt.Contact("ground", "b0", "box", size, surface=slope, friction=1.0),
            kt.Contact("pair", "b1", "box", size, surface=kt.Surface("box", "b0", size=size), friction=1.0),
        ]
        run = kt.simulate(system, q, times=[0.0, 2.0], contacts=contacts, method="moreau", dt=1e-3)
        assert_close(run.qd[-1], np.zeros(12), 1e-12, "creep of a box on a box")


def test_a_box_that_slides_on_a_board_agrees() -> None:
    """Slide a box on a board that is free to move: MuJoCo's stiff contacts and small steps, and the closed form."""
    sizes, masses = [(1.0, 0.25, 0.05), (0.05, 0.05, 0.05)], [5.0, 2.0]
    model = bricks(0.0, sizes, 0.3, masses, dt=1e-4, ref=0.0004)
    data = mujoco.MjData(model)
    data.qpos[7], data.qvel[6] = -0.5, 1.2
    model.geom_friction[1, 0] = 0.0  # MuJoCo takes the larger one of two
    while data.time < 0.2 - 5e-5:
        mujoco.mj_step(model, data)
    system, q = two_bricks(sizes, masses)
    size = [tuple(2 * x for x in half) for half in sizes]
    contacts = [
        kt.Contact("ground", "b0", "box", size[0]),
        kt.Contact("pair", "b1", "box", size[1], surface=kt.Surface("box", "b0", size=size[0]), friction=0.3),
    ]
    q[7], qd = -0.5, np.zeros(12)
    qd[9] = 1.2
    run = kt.simulate(system, q, qd, times=[0.0, 0.2], contacts=contacts)
    exact = 0.3 * 2.0 * G * 0.2 / 5.0, 1.2 - 0.3 * G * 0.2
    assert_close(run.qd[-1, [3, 9]], exact, 1e-9, "velocities against the closed form")
    assert_close(data.qvel[[0, 6]], exact, 5e-3, "MuJoCo's velocities")
