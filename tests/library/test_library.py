"""The built-in mechanisms against their sources."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import library
from kinetree.errors import UnknownNameError
from kinetree.formats.toml import read_toml, read_toml_text
from kinetree.formats.toml_writer import write_toml
from kinetree.model.checks import inertia_excess
from kinetree.model.mechanism import resolve_parts
from pose_products import about, poses, shift
from tolerance import assert_close

SIZES = {
    "bicycle": (4, 10, 9, 94.0),
    "biped": (7, 13, 12, 9.4),
    "cam_follower": (2, 2, 2, 1.15),
    "car": (5, 11, 10, 1250 + 12 + 3 * 18.0),
    "chain_20": (20, 20, 20, 1.0),
    "charmie": (26, 23, 23, 62.4),
    "charmie_complete": (40, 37, 37, 62.4),
    "charmie_torso": (8, 8, 8, 16.7),
    "crank_rocker": (3, 3, 3, 9.5),
    "differential_drive": (3, 9, 8, 9 + 2 * 0.6),
    "five_bar": (4, 4, 4, 0.692),
    "flexible_arm": (8, 6, 6, 2700 * (0.012 * 0.03 * 0.6 + 0.008 * 0.03 * 0.5) + 0.8 + 0.25),
    "flexible_four_bar": (6, 5, 5, 7800 * 0.003 * 0.02 * 0.35 + 0.8),
    "flexible_slider_crank": (6, 6, 6, 7800 * 0.004 * 0.012 * 0.3 + 0.57),
    "four_bar": (3, 3, 3, 9.5),
    "fuel_pump": (3, 3, 3, 1.375),
    "gear_train": (4, 4, 4, 5 + 78.5 * np.pi * 0.001**2 * (20**2 + 60**2 + 18**2 + 54**2)),
    "gripper": (4, 4, 4, 1.0),
    "hexapod": (13, 19, 18, 14.0),
    "hoeken": (3, 3, 3, 0.408),
    "kuka_lwr4": (7, 7, 7, 15.5),
    "kuka_lwr4_elastic": (14, 14, 14, 15.5),
    "mecanum_base": (5, 11, 10, 24 + 4 * 1.1),
    "parallelogram": (4, 4, 4, 5.0),
    "pendulum": (1, 1, 1, 1.0),
    "planar_2r": (2, 2, 2, 0.9),
    "planar_3r": (3, 3, 3, 1.2),
    "press": (3, 3, 3, 15.0),
    "puma560": (6, 6, 6, 23.45),
    "quadruped": (13, 19, 18, 12.0),
    "rack_steering": (6, 8, 8, 0.4 + 2.1 + 2 * 0.6 + 2 * 14),
    "slider_crank": (3, 3, 3, 2.5),
    "space_arm": (10, 14, 14, 1299 + 400 * np.pi * ((0.33**2 - 0.324**2) * 6.4 + (0.33**2 - 0.325**2) * 7)),
    "space_robot_3r": (4, 10, 9, 530.0),
    "space_robot_dual_arm": (7, 13, 12, 560.0),
    "spatial_biped": (12, 12, 12, 9.2),
    "spatial_pendulum": (1, 3, 3, 2.512),
    "spatial_slider_crank": (3, 4, 4, 2.62),
    "spinning_beam": (3, 7, 7, 12.0),
    "stanford": (6, 6, 6, 21.1),
    "stewart": (13, 25, 24, 41.0),
    "three_rrr": (7, 7, 7, 29.0),
    "tube_arm": (2, 2, 2, 1.8 * 0.7 + 1.5 + 2.0),
}
"""Bodies, coordinates, degrees of freedom and mass [kg] of each."""

X, Y, Z = np.eye(3)


def load(name):
    """Return a built-in mechanism with the values of its parameters."""
    mechanism = read_toml(library.path(name))[0]
    return resolve_parts(mechanism, mechanism.values())


def test_names_are_known():
    """List every built-in mechanism, and name the closest for one that does not exist."""
    assert set(library.names()) == set(SIZES)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in library.names())
    with pytest.raises(UnknownNameError, match="no built-in mechanism 'standford'; did you mean 'stanford'"):
        library.path("standford")


@pytest.mark.parametrize("name", everyday.some(library.names()))
def test_entries_are_sound(name):
    """Load an entry, find its source, and write and read it again to the same hash."""
    mechanism, report = read_toml(library.path(name))
    assert mechanism.name == name
    assert len(mechanism.source) > 20
    assert len(mechanism.description) > 40
    assert report.of("suspect") == []
    again, _ = read_toml_text(write_toml(mechanism))
    assert again.hash == mechanism.hash == read_toml(library.path(name))[0].hash
    assert len({read_toml(library.path(other))[0].hash for other in library.names()}) == len(library.names())


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    """Count bodies, coordinates and degrees of freedom, and sum the mass."""
    mechanism = load(name)
    bodies, nq, nv, mass = SIZES[name]
    assert (len(mechanism.bodies), mechanism.nq, mechanism.nv) == (bodies, nq, nv)
    assert_close(sum(b.mass for b in mechanism.bodies), mass, 1e-13 * mass, "mass")


def test_planar_3r():
    """Stretch the arm of [Saha1999] 6.1 along x: links of 0.3, 0.25 and 0.22 m in the plane of gravity."""
    mechanism = load("planar_3r")
    found = poses(mechanism, [0.0, 0.0, 0.0])
    assert [found[f"link{i}"][0, 3] for i in (1, 2, 3)] == [0.0, 0.3, 0.55]
    assert_close(found["tool"][:3, 3], (0.77, 0, 0), 1e-15, "tool")
    assert [b.mass for b in mechanism.bodies] == [0.5, 0.4, 0.3]
    assert_close([b.inertia[2] for b in mechanism.bodies], [0.5 * 0.09 / 12, 0.4 / 192, 0.3 * 0.22**2 / 12], 1e-17)
    assert mechanism.gravity == (0, -9.81, 0)


STANFORD = [(0.2, -90, "revolute"), (0.1, -90, "revolute"), (0.0, 0, "prismatic")]
STANFORD += [(0.6, 90, "revolute"), (0.0, -90, "revolute"), (0.0, 0, "revolute")]


def test_stanford_is_table_3():
    """Find the frames of the Stanford arm at the poses of table 3 of [Saha1999], for awkward coordinates."""
    mechanism = load("stanford")
    q = [0.3, 1.4, 0.25, -0.7, 0.9, 2.1]
    found, pose = poses(mechanism, q), np.eye(4)
    for i, (b, alpha, kind) in enumerate(STANFORD):
        theta, b = (q[i], b) if kind == "revolute" else (0.0, b + q[i])
        pose = pose @ about(Z, theta) @ shift(0, 0, b) @ about(X, math.radians(alpha))
        assert_close(found[f"frame_{i + 2}"], pose, 1e-15, "frame")
    assert [b.mass for b in mechanism.bodies] == [9, 6, 4, 1, 0.6, 0.5]
    assert mechanism.gravity == (0, 0, -9.81)


def test_stanford_mass_centres_are_on_the_links():
    """Find the centers of mass of links 1 and 4 between their joints, with the corrected signs."""
    mechanism = load("stanford")
    assert_close(mechanism.body("link1").com, (0, 0, 0.1), 1e-16, "half way up the post of 0.2 m")
    assert_close(mechanism.body("link4").com, (0, 0, 0.5), 1e-16, "0.1 m before the wrist at 0.6 m")
    assert sorted(mechanism.body("link1").inertia[:3]) == [0.01, 0.01, 0.02]
    assert mechanism.body("link1").inertia[2] == 0.02  # yy of frame 2 is along the post


def test_kuka_stands_along_y():
    """Find the KUKA LWR 4+ upright against gravity at q = 0, and every joint rotated by its own coordinate."""
    mechanism = load("kuka_lwr4")
    found = poses(mechanism, np.zeros(7))
    heights = [0, 0.3105, 0.5105, 0.7105, 0.9055, 1.1005, 1.1005]
    for i, height in enumerate(heights):
        assert_close(found[f"link{i + 1}"][:3, 3], (0, height, 0), 1e-15, "joint")
    assert mechanism.gravity == (0, -9.81, 0)
    still = poses(mechanism, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.0])
    turned = poses(mechanism, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    assert_close(turned["link6"], still["link6"], 0, "link 6")
    assert_close(turned["link7"], still["link7"] @ about(Z, 0.7), 1e-15, "link 7")
    assert [b.mass for b in mechanism.bodies] == [3, 3, 3, 2.5, 2.5, 1, 0.5]


def test_spatial_pendulum_is_a_rod():
    """Find the printed inertia of the rod of [Gupta2013] about its tip, by Steiner's theorem."""
    (rod,) = load("spatial_pendulum").bodies
    m, a, d = 2.512, 1.0, 0.02
    assert (rod.mass, rod.com) == (m, (0.5, 0, 0))
    about_tip = [rod.inertia[0], rod.inertia[1] + m * 0.25, rod.inertia[2] + m * 0.25]
    assert_close(about_tip, [m * d**2 / 8, *[m * d**2 / 16 + m * a**2 / 3] * 2], 1e-15, "inertia about the tip")
    joint = load("spatial_pendulum").joints[0]
    assert (joint.kind, joint.sequence) == ("euler", "zyz")


PUMA = [(0, 0, 0), (0, -90, 0.2435), (0.4318, 0, -0.0934), (-0.0203, 90, 0.4331), (0, -90, 0), (0, 90, 0)]


def test_puma560_is_modified_dh():
    """Find the bodies of the PUMA 560 at the poses of its modified DH table, with G^2 Jm as armature."""
    mechanism = load("puma560")
    q = [0.1, -0.4, 0.7, 1.2, -0.3, 0.5]
    found, pose = poses(mechanism, q), np.eye(4)
    for i, (a, alpha, d) in enumerate(PUMA):
        pose = pose @ about(X, math.radians(alpha)) @ shift(a, 0, 0) @ about(Z, q[i]) @ shift(0, 0, d)
        assert_close(found[f"link{i + 1}"], pose, 1e-15, "body")
    gears = [(-62.6111, 0.000291), (107.815, 0.000409), (-53.7063, 0.000299)]
    gears += [(76.0364, 3.5e-05), (71.923, 3.5e-05), (76.686, 3.5e-05)]
    assert_close([j.armature[0] for j in mechanism.joints], [g * g * j for g, j in gears], 1e-15, "armature")
    upright = poses(mechanism, np.zeros(6))
    assert_close(upright["link4"][:3, 3], (0.4115, 0.1501, 0.4331), 1e-15, "wrist")


def test_charmie_stands_on_its_base():
    """Stack the bodies of CHARMIE as tables 1 and 2 of [Goncalves2023] do, d_4 down and the arms at the shoulders."""
    mechanism = load("charmie")
    q = np.zeros(23)
    q[0], q[1], q[3] = 0.2, -0.1, 0.05  # d_1, d_2, d_4
    found = poses(mechanism, q)
    assert_close(found["body_4"][:3, 3], (0.2, -0.1, 0.29 - 0.05), 1e-15, "body 4")
    assert_close(found["body_5"][:3, 3], (0.2, -0.1, 0.29 + 0.438 - 0.05), 1e-15, "body 5")
    for name, place in (("6a", (-0.2, -0.002, 0.46)), ("6b", (0.2, -0.002, 0.46)), ("6c", (0, 0, 0.495))):
        assert_close((np.linalg.inv(found["body_5"]) @ found[f"body_{name}"])[:3, 3], place, 1e-15, name)
    arm = np.array([0.03, 0.0615, 0.145, 0.145, 0.14, 0.14, 0.1023])
    for side, direction in (("a", -X), ("b", X)):
        along = (np.linalg.inv(found[f"body_6{side}"]) @ found[f"claw_{side}"])[:3, 3]
        assert_close(along, (0, 0, arm.sum()), 1e-15, "claw")
        assert_close(found[f"body_6{side}"][:3, 2], direction, 1e-15, "arms point outwards")


def test_charmie_rotations_are_zxz():
    """Rotate the shoulders by (2) and (3), intrinsic ZXZ."""
    mechanism = load("charmie")
    for side, (z1, x2, z3) in (("a", (90, -90, 180)), ("b", (90, 90, 0))):
        expected = about(Z, math.radians(z1)) @ about(X, math.radians(x2)) @ about(Z, math.radians(z3))
        assert_close(mechanism.joint(f"joint_6{side}").placement.rotation, expected[:3, :3], 4e-16, side)


@pytest.mark.parametrize(
    ("printed", "corrected"),
    [
        ((1.3, 1.5, 1.8, 1.4e-4, -5.3, 4.7e-3), "body_3"),
        ((8.5e-3, 7.2e-4, 4.9e-3, 3.2e-5, -2.2e-4, 1.4e-4), "body_8c"),
    ],
)
def test_charmie_corrections_were_needed(printed, corrected):
    """Find the printed inertia impossible, and the corrected one possible and different in one entry."""
    assert inertia_excess(printed)[0] > 0.1
    taken = load("charmie").body(corrected).inertia
    assert inertia_excess(taken)[0] < 0
    assert sum(not math.isclose(a, b, rel_tol=1e-12) for a, b in zip(printed, taken, strict=True)) == 1


def test_charmie_complete_is_counted_as_in_the_paper():
    """Count 40 bodies on 34 revolute, 10 prismatic and 3 rigid joints, cut ones included, and 21 motors."""
    mechanism = load("charmie_complete")
    kinds = [part.kind for part in (*mechanism.joints, *mechanism.loops)]
    assert len(mechanism.bodies) == 40
    assert {kind: kinds.count(kind) for kind in kinds} == {"revolute": 34, "prismatic": 10, "fixed": 3}
    assert {c.joint: c.terms for c in mechanism.couplings} == {
        "joint_13a2": (("joint_13a1", -1),),
        "joint_13b2": (("joint_13b1", -1),),
    }


def test_charmie_complete_contains_tree_and_torso():
    """Find every body and joint of the main tree unchanged, and the parameters of the torso."""
    whole, tree, torso = load("charmie_complete"), load("charmie"), load("charmie_torso")
    assert all(whole.body(b.name) == b for b in tree.bodies)
    assert all(whole.joint(j.name) == j for j in tree.joints)
    assert whole.frames == tree.frames
    assert whole.parameters == torso.parameters


def test_charmie_torso_carries_arms_and_head():
    """Find in body 5 of the torso the bodies that it carries in CHARMIE: mass, center of mass and inertia at q = 0."""
    robot, upper = load("charmie"), load("charmie_torso").body("body_5")
    found = poses(robot, np.zeros(robot.nq))
    first = [b.name for b in robot.bodies].index("body_5")
    mass, moment, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    for body in robot.bodies[first:]:
        pose = np.linalg.inv(found["body_5"]) @ found[body.name]
        at = pose[:3, :3] @ body.com + pose[:3, 3]
        xx, yy, zz, xy, yz, zx = body.inertia
        own = np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
        mass, moment = mass + body.mass, moment + body.mass * at
        inertia += pose[:3, :3] @ own @ pose[:3, :3].T + body.mass * (at @ at * np.eye(3) - np.outer(at, at))
    com = moment / mass
    inertia -= mass * (com @ com * np.eye(3) - np.outer(com, com))
    assert_close(upper.mass, mass, 1e-14, "mass")
    assert_close(upper.com, com, 1e-15, "center of mass")
    entries = [inertia[k] for k in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))]
    assert_close(upper.inertia, entries, 2e-14, "inertia")


def test_charmie_torso_has_the_actuators_of_the_paper():
    """Reach the lengths of actuators by (6) and (10)-(14) of [Goncalves2023] at awkward d_4 and angles."""
    mechanism = load("charmie_torso")
    d4, angle = 0.137, -0.41
    D3, E4 = (np.array(mechanism.joint("foot_4d").placement.translation), mechanism.loops[0].placement_a.translation)
    act_4 = np.hypot(E4[1] - D3[1], 0.29 - d4 + E4[2] - D3[2])  # (6), solved for the length
    F4, G5 = mechanism.joint("foot_5d").placement.translation, mechanism.loops[1].placement_a.translation
    G4 = np.array((0, 0, 0.438)) + about(X, angle)[:3, :3] @ G5
    act_5 = np.linalg.norm(G4 - F4)
    system = kt.System(mechanism)
    q = dict(
        zip((j.name for j in mechanism.joints), system.assemble(hold={"joint_4": d4, "joint_5": angle}), strict=True)
    )
    assert_close([q["actuator_4"], q["actuator_5"]], [act_4, act_5], 1e-12, "lengths")
    tip = 0.1 + 0.25 * np.sin(q["bar_4l"])
    assert_close([tip, q["bar_4r"]], [0.29 - d4 + 0.06 - 0.1, q["bar_4l"]], 1e-12, "(22) and (23)")


def test_biped_trunk_is_a_box():
    """Find the inertia of a flat box of 5 kg, 0.5 m by 0.1 m, in the biped's trunk instead of an impossible one."""
    base = load("biped").body("base")
    expected = [5 * 0.01 / 12, 5 * 0.26 / 12, 5 * 0.25 / 12]
    assert_close(base.inertia[:3], expected, 1e-16, "inertia")
    assert inertia_excess((0.01 / 12, *base.inertia[1:]))[0] > 0.01  # the value of the source


def test_trees_branch_where_their_sources_do():
    """Compare parents of the branched systems with those of their sources."""
    parents = {
        "gripper": (-1, 0, 1, 0),
        "biped": (-1, 0, 1, 2, 0, 4, 5),
        "space_robot_dual_arm": (-1, 0, 1, 2, 0, 4, 5),
        "quadruped": (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11),
        "spatial_biped": tuple(range(-1, 11)),
    }
    assert {name: load(name).parents for name in parents} == parents


def test_spatial_biped_is_modified_dh():
    """Find the swinging foot of the spatial biped at the product of its modified DH matrices."""
    alpha = np.radians([0, 90, -90, 0, 90, 90, 180, 90, 90, 0, -90, 90])
    a = [0, 0, 0.5, 0.5, 0, 0, -0.1, 0, 0, 0.5, 0.5, 0]
    q = np.linspace(-1.0, 1.3, 12)
    pose = np.eye(4)
    for i in range(12):
        pose = pose @ about(X, alpha[i]) @ shift(a[i], 0, 0) @ about(Z, q[i])
    assert_close(poses(load("spatial_biped"), q)["link12"], pose, 1e-14, "foot")


TABLE_1 = {
    "Ba": (-200.0, -2.0, 460.0), "Bb": (200.0, -2.0, 460.0), "Bc": (0.0, 0.0, 495.0), "C": (0.0, -5.7, 338.5),
    "D": (0.0, 0.0, -15.0), "E": (0.0, 0.0, 85.0), "F": (0.0, 0.0, 397.2), "G": (0.0, 56.0, 397.2),
    "H": (0.0, 0.0, 460.0), "I": (0.0, -20.0, 460.0), "J": (200.0, -20.0, 460.0), "K": (-200.0, -20.0, 460.0),
}  # fmt: skip
"""Points of CHARMIE's body 5, from its origin, in millimeters."""


def test_body_5_of_charmie_has_the_points_of_table_1():
    """Find the points of table 1 as joints, center of mass and frames of body 5."""  # [Goncalves2023]
    mechanism = load("charmie")
    found = {j.name[-2:]: j.placement.translation for j in mechanism.joints if j.parent == "body_5"}
    found = {f"B{name[-1]}": place for name, place in found.items()} | {"C": mechanism.body("body_5").com}
    found |= {f.name.removesuffix("5"): f.placement.translation for f in mechanism.frames if f.body == "body_5"}
    assert found.keys() == TABLE_1.keys()
    for name, point in TABLE_1.items():
        assert_close(found[name], np.array(point) / 1000, 1e-16, name)


def test_robots_of_installed_packages(tmp_path, monkeypatch):
    """Load robots by name with their meshes, and read what is there, what is not downloaded, and what to install."""
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    if "panda" in library.robots():
        arm = kt.load("robot:panda")
        assert arm.nv == 9 and not any("meshes are not found" in line for line in arm.report.lines("suspect"))
        with pytest.raises(UnknownNameError, match="no robot 'pandda'; did you mean 'panda'"):
            kt.load("robot:pandda")
        with pytest.raises(UnknownNameError, match="no library mechanism 'Panda'; did you mean 'robot:panda'"):
            kt.load("Panda")
        assert {"ur5", "anymal_b_simple", "anymal_c_simple", "cassie_v2"} <= library.robots().keys()
    urdf = tmp_path / "downloads" / "own_description" / "urdf" / "own_robot.urdf"
    urdf.parent.mkdir(parents=True)
    urdf.write_text('<robot name="own"><link name="a"/></robot>')
    assert kt.load("robot:own").mechanism.name == "own"
    with monkeypatch.context() as few:  # folders and files that are no models count too
        few.setattr(library, "MOST", 2)
        assert "own" not in library.robots()
    package = tmp_path / "site" / "robot_descriptions"
    package.mkdir(parents=True)
    for name in ("__init__", "far_description"):
        (package / f"{name}.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(package.parent))
    with pytest.raises(kt.ModelError, match="'far' of robot_descriptions is not downloaded; run: python -m robot_d"):
        kt.load("robot:far")
    monkeypatch.setattr(library, "DATA", "no-such-package")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "empty"))
    with pytest.raises(kt.ModelError, match="no package with a robot 'panda' is installed; install"):
        monkeypatch.setattr(library, "DESCRIPTIONS", "no_such_module")
        kt.load("robot:panda")


REPOSITORIES = """
class Repository: pass
REPOSITORIES: dict = {"Menagerie": Repository(url="https://x", commit="1", cache_path="menagerie"),
                      "Arms": Repository(cache_path="arms_download", url="https://x", commit="2")}
raise RuntimeError("imported")
"""
MODULE = """
from os import path as _path
from ._cache import clone_to_cache as _clone_to_cache
REPOSITORY_PATH: str = _clone_to_cache("{}", commit=_getenv("X", None))
PACKAGE_PATH: str = _path.join(REPOSITORY_PATH{})
{}
raise RuntimeError("imported")
"""
MODULES = {
    "hinge_mj": ("Menagerie", ', "hinge"', 'MJCF_PATH: str = _path.join(PACKAGE_PATH, "own.xml")'),
    "twin": (
        "Arms",
        "",
        'XACRO_PATH: str = _path.join(PACKAGE_PATH, "urdf", "arm.xacro")\nXACRO_ARGS = {"name": "twin"}',
    ),
    "odd": ("Arms", "", "URDF_PATH: str = _patched(PACKAGE_PATH)\nlambda: (yield)"),
    "broken": ("Arms", "", "def ("),
    "elsewhere": ("Other", "", 'URDF_PATH: str = _path.join(PACKAGE_PATH, "a.urdf")'),
}


def test_robots_are_found_by_the_modules_of_robot_descriptions(tmp_path, monkeypatch):
    """Read from modules, which are not run, which downloaded file a robot is, with the arguments of its xacro."""
    pytest.importorskip("mujoco")
    cache, package = tmp_path / "cache", tmp_path / "site" / "robot_descriptions"
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(cache))
    monkeypatch.setattr(library, "DATA", "no-such-package")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_repositories.py").write_text(REPOSITORIES)
    for name, texts in MODULES.items():
        repository, folder, rest = texts
        text = MODULE.replace("{}", repository, 1).replace("{}", folder, 1).replace("{}", rest, 1)
        (package / f"{name}_description.py").write_text(text)
    monkeypatch.syspath_prepend(str(package.parent))
    with pytest.raises(kt.ModelError, match="'twin' of robot_descriptions is not downloaded; run: python -m robot_d"):
        kt.load("robot:twin")
    (cache / "menagerie/hinge").mkdir(parents=True)
    (cache / "menagerie/hinge/own.xml").write_text(
        '<mujoco><worldbody><body name="a"><joint/><geom size="1"/></body></worldbody></mujoco>'
    )
    arm = cache / "arms_download/urdf"
    arm.mkdir(parents=True)
    (arm.parent / "package.xml").write_text("<package><name>arm_description</name></package>")
    (arm / "arm.xacro").write_text(
        '<robot name="$(arg name)"><xacro:arg name="name" default="one"/>'
        '<xacro:include filename="$(find arm_description)/urdf/links.xacro"/></robot>'
    )
    (arm / "links.xacro").write_text('<robot><link name="$(arg name)_link"/></robot>')
    assert set(library.robots()) == {"hinge_mj", "twin"}
    assert kt.load("robot:hinge_mj").nv == 1
    assert kt.load("robot:twin", base="free").bodies[0].name == "twin_link"
    assert kt.load("robot:twin", base="free", arguments={"name": "own"}).bodies[0].name == "own_link"
