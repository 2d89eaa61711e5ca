"""Models written as URDF, MJCF and SDF and read again: masses, poses and torques stay, here and in other libraries."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from kinetree import library
from kinetree.joints import kind
from kinetree.model import GROUND, Body, Coupling, ForceElement, Frame, Joint, Limits, Mechanism, Placement, Shape
from kinetree.model.checks import impossible_inertias
from kinetree.model.mechanism import resolve_parts
from public_robots import public_robots
from strategies import ALL, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

pin = pytest.importorskip("pinocchio")
mujoco = pytest.importorskip("mujoco")
import mujoco_peer  # noqa: E402 - needs mujoco
from pinocchio_peer import SWAP, peer  # noqa: E402 - needs pinocchio

SUFFIXES = (".toml", ".urdf", ".xml", ".sdf")
WRITTEN = tuple(k for k in ALL if k not in ("spherical", "free"))
"""The kinds whose coordinates are the same in every format."""
BASE = {".toml": {}, ".urdf": {"fixed": "keep"}, ".xml": {"fixed": "keep"}, ".sdf": {"fixed": "keep", "base": "free"}}


def rewritten(mechanism: Mechanism, path: Path) -> Mechanism:
    """Return a mechanism written to a file and read; URDF, which has no gravity and no guess, gets them back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of parts without a place, which other tests assert
        again = kt.load(kt.save(mechanism, path), **BASE[path.suffix]).mechanism
    if path.suffix == ".xml":  # MuJoCo takes no inertia without thickness: what is added is compared apart
        again = with_inertias_of(again, mechanism)
    return replace(again, gravity=mechanism.gravity, guess=mechanism.guess) if path.suffix == ".urdf" else again


def with_inertias_of(again: Mechanism, m: Mechanism) -> Mechanism:
    """Return a mechanism with the inertias of another one, which must be the same to a part in 1e11."""
    given = {b.name: b for b in m.bodies}

    def own(body: Body) -> Body:
        if body.name not in given:
            return body
        expected = np.array(given[body.name].inertia)
        assert_close(body.inertia, expected, 1e-11 * np.abs(expected).max() + 4e-15, "inertia")
        return replace(body, inertia=given[body.name].inertia)

    return replace(again, bodies=tuple(map(own, again.bodies)))


def torques_and_poses(m: Mechanism, q, qd, qdd) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the torques of the tree, and the poses of bodies, by Pinocchio's algorithms on the given mechanism."""
    other = peer(m)
    tau = other.speeds(pin.rnea(other.model, other.data, q, other.speeds(qd), other.speeds(qdd)))
    pin.forwardKinematics(other.model, other.data, q)
    return tau, {b: (other.data.oMi[k] * place).homogeneous for b, (k, place) in other.bodies.items()}


class Mapping:
    """The numbers of a mechanism in the order of another one, whose joints are those of the first in series."""

    def __init__(self, m: Mechanism, again: Mechanism) -> None:
        """Find the joints by their names."""
        self.m, self.again = m, again
        moving = {j.name: k for k, j in enumerate(again.joints) if j.kind != "fixed"}
        self.entries = []
        for joint, q_own, v_own in zip(m.joints, m.q_slices, m.v_slices, strict=True):
            names = [joint.name, f"{joint.name}_joint"]
            names += [f"{x}_{end}" for x in names for end in (*kind(joint.kind).NAMES[0], "advance")]
            if joint.kind == "free" and joint.name not in moving:
                names += ["root", f"{joint.child}_root"]
            found = [moving[name] for name in names if name in moving]
            q = [n for k in found for n in range(again.nq)[again.q_slices[k]]]
            v = [n for k in found for n in range(again.nv)[again.v_slices[k]]]
            factors = np.array([1.0, float(joint.pitch)]) if len(v) == 2 and joint.kind == "helical" else np.ones(1)
            assert len(v) in (v_own.stop - v_own.start, len(factors)), joint.name
            self.entries.append((q_own, v_own, q, v, factors))

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Return coordinates."""
        out = np.zeros(self.again.nq)
        for own, _, q, _, factors in self.entries:
            out[q] = x[own] * factors
        return out

    def velocities(self, x: np.ndarray) -> np.ndarray:
        """Return velocities or accelerations."""
        out = np.zeros(self.again.nv)
        for _, own, _, v, factors in self.entries:
            out[v] = x[own] * factors
        return out

    def torques(self, tau: np.ndarray) -> np.ndarray:
        """Return torques of the other mechanism as those of the first one, by virtual work."""
        out = np.zeros(self.m.nv)
        for _, own, _, v, factors in self.entries:
            out[own] = tau[v] if len(factors) == 1 else factors @ tau[v]
        return out


def assert_same_motion(m: Mechanism, again: Mechanism, file: Path, seed: int = 1) -> None:
    """Compare masses, poses and torques of the tree, also with those of Pinocchio's and MuJoCo's own readers."""
    rng = np.random.default_rng(seed)
    q, qd = kt.System(m).tree.random_state(rng)
    qdd = rng.normal(size=m.nv)
    same = Mapping(m, again)
    motion = same.coordinates(q), same.velocities(qd), same.velocities(qdd)
    tau, poses = torques_and_poses(m, q, qd, qdd)
    found, places = torques_and_poses(again, *motion)
    bound = 1e-12 * max(np.abs(tau).max(initial=0.0), 1e-9)
    assert_close(same.torques(found), tau, bound, "torques")
    theirs = {b.name: float(b.mass) for b in again.bodies}
    for body in m.bodies:
        if not body.mass and body.name not in theirs:
            continue  # MJCF has its joint in the next body
        name = body.name if body.name in theirs else f"{body.name}_link"
        assert abs(theirs[name] - float(body.mass)) <= 2e-15  # MuJoCo takes no massless bodies
        assert_close(places[name], poses[body.name], 1e-12 * max(1.0, np.abs(poses[body.name]).max()), "pose")
    if own := {".urdf": by_pinocchio, ".xml": by_mujoco}.get(file.suffix):
        found, places, masses = own(file, again, *motion)
        assert_close(same.torques(found), tau, bound, f"torques by the other reader of {file.suffix}")
        assert abs(masses - sum(theirs.values())) <= 1e-13 * max(masses, 1.0)
        for name, place in places.items():
            own_name = name if name in poses else name.removesuffix("_link")
            if own_name in poses and own_name != GROUND:
                size = max(1.0, np.abs(poses[own_name]).max())
                assert_close(place, poses[own_name], 1e-12 * size, f"pose by the other reader of {file.suffix}")


Found = tuple[np.ndarray, dict[str, np.ndarray], float]
"""Torques, the poses of bodies by name, and the mass of all of them, by the reader of another library."""


def by_pinocchio(file: Path, again: Mechanism, q, qd, qdd) -> Found:
    """Return the numbers of a URDF as Pinocchio reads it; fixed joints are merged into others there."""
    model = pin.buildModelFromUrdf(str(file))
    model.gravity.linear = np.array(again.gravity, dtype=float)
    at, order = np.zeros(model.nq), np.zeros(model.nv, dtype=int)
    for joint, own, dofs in zip(again.joints, again.q_slices, again.v_slices, strict=True):
        if joint.kind == "fixed":
            continue
        theirs = model.joints[model.getJointId(joint.name)]
        x = q[own]
        at[theirs.idx_q : theirs.idx_q + theirs.nq] = [np.cos(x[0]), np.sin(x[0])] if theirs.nq == 2 else x
        order[dofs] = theirs.idx_v + np.array(SWAP if joint.kind == "free" else range(theirs.nv))
    v, a = np.zeros(model.nv), np.zeros(model.nv)
    v[order], a[order] = qd, qdd
    data = model.createData()
    tau = pin.rnea(model, data, at, v, a)[order]
    pin.framesForwardKinematics(model, data, at)
    places = {f.name: data.oMf[k].homogeneous for k, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
    return tau, places, sum(inertia.mass for inertia in model.inertias)


def by_mujoco(file: Path, again: Mechanism, q, qd, qdd) -> Found:
    """Return the numbers of MJCF as MuJoCo reads it: of its recursion and armatures, without springs."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)  # at zero, Euler angles such as zxz have two equal axes
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    finally:
        mujoco.set_mju_user_warning(before)
    p = mujoco_peer.Peer(again, model, mujoco.MjData(model))
    p.set(q, qd)
    B = p.map()
    p.data.qacc[:] = B @ qdd + p.drift(qd)
    mujoco.mj_comPos(model, p.data)
    mujoco.mj_comVel(model, p.data)
    tau = np.zeros(model.nv)
    mujoco.mj_rne(model, p.data, 1, tau)
    tau += model.dof_armature * p.data.qacc
    places = {}
    for k in range(1, model.nbody):
        places[model.body(k).name] = np.eye(4)
        places[model.body(k).name][:3, :3] = p.data.xmat[k].reshape(3, 3)
        places[model.body(k).name][:3, 3] = p.data.xpos[k]
    return B.T @ tau, places, float(model.body_mass.sum())


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(moving_mechanisms(WRITTEN, most=6, armature=False))
@examples(60)
def test_random_trees_stay_the_same(tmp_path_factory, suffix, mechanism):
    """Write trees of all joints, those of several axes as joints in series, and find the same numbers."""
    path = tmp_path_factory.mktemp("written") / f"tree{suffix}"
    assert_same_motion(mechanism, rewritten(mechanism, path), path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_two_hundred_random_mechanisms_stay_the_same(tmp_path, suffix):
    """Write 200 random trees, every second one on a free base, and those of joints with quaternions where they stay."""
    rng = np.random.default_rng(20261119)
    kinds = {".toml": ALL, ".xml": (*WRITTEN, "spherical")}.get(suffix, WRITTEN)
    for seed in range(200):
        count = int(rng.integers(1, 11))
        chosen = [str(x) for x in rng.choice(kinds, count)]
        parents = [-1, *(int(rng.integers(-1, k)) for k in range(1, count))]
        chosen[0] = "free" if seed % 2 else chosen[0] if chosen[0] != "fixed" else "revolute"
        geometry = str(rng.choice(["general", "neat", "mixed"]))
        m = random_mechanism(chosen, parents, seed, geometry=geometry, armature=suffix in (".toml", ".xml"))
        first = m.joints[[j.name for j in m.joints].index("j0")]
        if suffix == ".xml" and first.kind == "free":  # elsewhere than at the origin it is written in series
            m = replace(m, joints=tuple(replace(j, placement=Placement()) if j is first else j for j in m.joints))
        path = tmp_path / f"x{suffix}"
        assert_same_motion(evened(m), rewritten(evened(m), path), path)


def evened(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with armatures that MJCF holds: of ball joints the same on all axes, of free ones none."""

    def even(joint: Joint) -> Joint:
        same = {"spherical": joint.armature[:1] * 3 if joint.armature else (), "free": ()}
        return replace(joint, armature=same.get(joint.kind, joint.armature))

    return replace(mechanism, joints=tuple(map(even, mechanism.joints)))


def plain(name: str) -> Mechanism | None:
    """Return a mechanism of the library without parameters, or None if it is flexible or has motors."""
    m = kt.load(name).mechanism
    if m.has_flexible or any(j.kind in ("rotor", "circuit") for j in m.joints):
        return None
    values = m.values()
    parts = ("bodies", "joints", "frames", "loops", "couplings", "forces", "gravity", "actuators", "contacts")
    return replace(m, parameters=(), **{key: resolve_parts(getattr(m, key), values) for key in parts})


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", library.names())
def test_the_library_stays_the_same(tmp_path, suffix, name):
    """Write every rigid mechanism of the library; closed ones have other coordinates in SDF, which has its own test."""
    m = plain(name)
    if m is None or (suffix == ".sdf" and m.loops):
        return
    if suffix in (".urdf", ".sdf"):  # the others have armatures
        m = replace(m, joints=tuple(replace(j, armature=()) for j in m.joints))
    path = tmp_path / f"x{suffix}"
    assert_same_motion(m, rewritten(m, path), path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_public_robots_stay_the_same(tmp_path, suffix):
    """Write all public robots, and find the same numbers."""
    count = 0
    for path in (*public_robots(), *public_robots(".sdf")):
        try:
            m = kt.load(path).mechanism
        except kt.ModelError:
            continue
        angles = suffix != ".toml" and any(j.kind == "spherical" for j in m.joints)  # other coordinates
        if not m.nv or angles or any(part for part, _ in impossible_inertias(m)):
            continue
        file = tmp_path / f"x{suffix}"
        try:
            again = rewritten(m, file)
        except kt.ModelError as error:
            assert suffix == ".xml" and "moves nothing with mass, and MuJoCo takes no" in str(error), error
            continue
        assert_same_motion(m, again, file)
        count += 1
    assert count > 40


CLOSED = ("four_bar", "slider_crank", "crank_rocker", "three_rrr", "spatial_slider_crank", "stewart")


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
@pytest.mark.parametrize("name", everyday.seldom(CLOSED, CLOSED[2:]))
def test_closed_mechanisms_accelerate_as_before(tmp_path, suffix, name):
    """Write closed mechanisms, read their loops, and find the accelerations at the same position."""
    m = plain(name)
    assert m is not None
    q, qd = kt.System(m).random_state(6)  # elsewhere than where the crank and rod of equal length fold
    m = replace(m, guess=tuple((j.name, tuple(q[own])) for j, own in zip(m.joints, m.q_slices, strict=True)))
    arm = kt.System(m)
    again = kt.System(rewritten(m, tmp_path / f"x{suffix}"))
    assert sorted(x.kind for x in again.mechanism.loops) == sorted(x.kind for x in m.loops)
    same = Mapping(m, again.mechanism)
    tau = np.linspace(-1.0, 2.0, arm.nv)
    at = same.coordinates(q)
    if suffix == ".sdf":  # coordinates are counted from the assembled position, which is the start
        at = again.neutral()
    elsewhere = again.forward_dynamics(at, same.velocities(qd), same.velocities(tau))
    expected = arm.forward_dynamics(q, qd, tau)
    quaternion = suffix == ".sdf" and any(kind(j.kind).QUATERNION is not None for j in m.joints)
    if not quaternion:  # velocities of ball joints are in the axes of the child, which the file keeps
        assert_close(same.torques(elsewhere), expected, 1e-9 * np.abs(expected).max(), "accelerations")
    assert np.isfinite(elsewhere).all()


def test_a_format_lists_what_it_loses(tmp_path):
    """Warn of parts that act on the motion, list them in the report and in the file, and keep the rest."""
    arm = kt.load("planar_2r").mechanism
    one, two = arm.joints
    rich = replace(
        arm,
        gravity=(0.0, 0.0, -9.81),
        joints=(replace(one, armature=(0.3,), limits=Limits(-1.0, 1.0, 2.0, 3.0)), two),
        forces=(ForceElement("s---", "joint_spring", two.parent, two.child, coefficients=(("stiffness_1", 7.0),)),),
        couplings=(Coupling("gear", two.name, ((one.name, -0.5),), 0.2),),
        bodies=(
            replace(arm.bodies[0], shapes=(Shape("box", (0.1, 0.2, 0.3), color=(1.0, 0.0, 0.0, 1.0)),)),
            arm.bodies[1],
        ),
    )
    with pytest.warns(
        RuntimeWarning,
        match=r"a\.urdf moves differently, without: joint_spring 's---', armature of joint 'joint1'; .toml has",
    ):
        report = kt.save(rich, tmp_path / "a.urdf")
    assert "armature of joint 'joint1', which acts on the motion" in str(report)
    assert "armature of joint 'joint1'" in Path(report).read_text()
    again = kt.load(report)
    assert again.mechanism.couplings[0].terms == ((one.name, -0.5),) and again.bodies[0].shapes[0].kind == "box"
    assert again.bodies[0].shapes[0].color == (1.0, 0.0, 0.0, 1.0)
    with pytest.warns(
        RuntimeWarning, match=r"a\.sdf moves differently, without: armature of joint 'joint1'; .toml has"
    ):
        report = kt.save(rich, tmp_path / "a.sdf")
    again = kt.load(report)
    assert dict(again.mechanism.forces[0].coefficients) == {"stiffness_1": 7.0, "rest_1": 0.0}
    assert again.mechanism.couplings[0].offset == 0.2 and again.joints[0].limits == rich.joints[0].limits
    assert again.bodies[0].shapes[0].size == (0.1, 0.2, 0.3)
    with pytest.raises(kt.ModelError, match=r"flexible_arm has flexible bodies \(.*\), for which SDF has no place"):
        kt.save(kt.load("flexible_arm"), tmp_path / "f.sdf")
    with pytest.raises(kt.ModelError, match="is of the kind rotor, for which URDF has no place"):
        kt.save(random_mechanism(["revolute", "rotor"], [-1, 0], 1), tmp_path / "k.urdf")


def test_second_springs_and_couplings_of_a_joint_are_listed(tmp_path):
    """Warn of a further spring or coupling of one joint where a format has a place for one; the first is kept."""
    arm = kt.load("planar_2r").mechanism
    one, two = arm.joints
    springs = tuple(
        ForceElement(name, "joint_spring", two.parent, two.child, coefficients=(("stiffness_1", k),))
        for name, k in (("soft", 5.0), ("stiff", 7.0))
    )
    gears = tuple(Coupling(name, two.name, ((one.name, x),)) for name, x in (("here", -0.5), ("there", 0.5)))
    for suffix, parts in ((".sdf", "both"), (".xml", "springs"), (".urdf", "couplings")):
        rich = replace(
            arm,
            gravity=(0.0, 0.0, -9.81),
            forces=() if parts == "couplings" else springs,
            couplings=() if parts == "springs" else gears,
        )
        with pytest.warns(RuntimeWarning, match="moves differently"):
            report = kt.save(rich, tmp_path / f"a{suffix}")
        again = kt.load(report).mechanism
        if parts != "couplings":
            assert "joint_spring 'stiff', the second one of" in str(report)
            assert [dict(x.coefficients)["stiffness_1"] for x in again.forces] == [5.0]
        if parts != "springs":
            assert f"coupling 'there', the second one of joint {two.name!r}" in str(report)
            assert [x.terms for x in again.couplings] == [((one.name, -0.5),)]


def test_names_of_sdf_have_no_separators(tmp_path):
    """Write names with "::", which separates models in SDF, and find the parts under other names, with the poses."""
    arm = kt.load("planar_2r").mechanism
    spots = (
        Frame("hand::tip", arm.bodies[1].name, Placement((0.1, 0.2, 0.3))),
        Frame("a::b", GROUND, Placement((1.0, 2.0, 3.0))),
    )
    report = kt.save(replace(arm, frames=spots), tmp_path / "a.sdf")
    assert "frame 'hand::tip' is named 'hand_tip': SDF has another use for the name" in str(report)
    again = kt.load(report)
    q = [0.3, -0.4]
    expected = np.array(kt.System(replace(arm, frames=spots)).pose(q, "hand::tip"))
    assert_close(again.pose(q, "hand_tip"), expected, 1e-15, "pose")
    assert_close(np.array(again.pose(q, "a_b"))[:3, 3], (1.0, 2.0, 3.0), 0.0, "frame of the ground")


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_mechanism_without_bodies_is_read_again(tmp_path, suffix):
    """Write the ground alone."""
    empty = kt.build_mechanism("empty", [], [])
    assert kt.load(kt.save(empty, tmp_path / f"x{suffix}")).nv == 0
