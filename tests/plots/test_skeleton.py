"""Drawings of mechanisms, with shapes and without, and their cameras."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import PENDULUM, batch, swinging
from kinetree import library
from kinetree.plots.camera import fit
from kinetree.plots.links import rgb
from kinetree.plots.skeleton import scene
from kinetree.results import Trajectory
from tolerance import assert_close

T = np.linspace(0.0, 1.0, 5)


def still(system: kt.System) -> Trajectory:
    """Return a run in which nothing moves."""
    q = np.broadcast_to(system.neutral(), (5, system.nq))
    return Trajectory(system, T, q, np.zeros((5, system.nv)))


def one_body(joint: kt.Joint, **fields) -> kt.System:
    """Return a System of one body."""
    return kt.System(kt.build_mechanism("m", [kt.Body("b", **fields)], [joint]))


@pytest.mark.parametrize("name", everyday.some(library.names()))
def test_every_library_mechanism_is_seen(name):
    """Draw something of every library mechanism, inside the picture, above the floor."""
    run = still(kt.load(name))
    drawn = scene(run)
    assert len(drawn.bodies) == len(run.system.bodies) + 1
    assert drawn.rods or any(len(mesh.faces) for mesh in drawn.bodies)
    sight = fit(drawn, run["poses"])
    for mesh, pose in zip(drawn.bodies, run["poses"][0], strict=False):
        points = mesh.vertices @ pose[:3, :3].T + pose[:3, 3]
        places, depth = sight.camera.project(points)
        assert (np.abs(places) <= [4 / 3, 1.0]).all()
        assert (depth > 0).all()
        if sight.floor is not None:  # a planar mechanism is seen face on, without a floor
            assert (points @ drawn.up > sight.floor).all()


def test_shapes_are_drawn_in_place():
    """Draw visual shapes at their poses on the body and in their color; leave out collision shapes."""
    placement = kt.Placement((1.0, 2.0, 3.0))
    shapes = (
        kt.Shape("box", (0.2, 0.4, 0.6), placement, color=(1.0, 0.5, 0.0, 1.0)),
        kt.Shape("sphere", (9.0,), role="collision"),
    )
    drawn = scene(still(one_body(kt.Joint("j", "free", kt.GROUND, "b"), mass=1.0, shapes=shapes)))
    vertices = drawn.bodies[0].vertices
    assert_close(vertices.min(axis=0), [0.9, 1.8, 2.7], 1e-14, "low corner")
    assert_close(vertices.max(axis=0), [1.1, 2.2, 3.3], 1e-14, "high corner")
    assert (drawn.bodies[0].colors == [1.0, 0.5, 0.0]).all()
    assert drawn.rods == ()


def test_a_body_of_meshes_and_collisions_is_a_skeleton():
    """Draw the box of inertia if the only shapes are in files or for collisions."""
    shapes = (kt.Shape("sphere", (9.0,), role="collision"), kt.Shape("mesh", file="a.stl"))
    free = kt.Joint("j", "free", kt.GROUND, "b")
    system = one_body(free, mass=6.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), shapes=shapes)
    assert_close(np.ptp(scene(still(system)).bodies[0].vertices, axis=0), [1.0, 1.0, 1.0], 1e-14, "edges")


def test_a_free_body_is_a_box_of_its_inertia():
    """Draw a body without shapes as the homogeneous box of its mass and inertia, along its principal axes."""
    a, b, c, m = 0.3, 0.6, 0.9, 2.0
    moments = m / 12.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    k, s = np.cos(0.5), np.sin(0.5)
    turn = np.array([[k, -s, 0.0], [s, k, 0.0], [0.0, 0.0, 1.0]])
    full = turn @ np.diag(moments) @ turn.T
    inertia = (full[0, 0], full[1, 1], full[2, 2], full[0, 1], full[1, 2], full[2, 0])
    drawn = scene(still(one_body(kt.Joint("j", "free", kt.GROUND, "b"), mass=m, inertia=inertia)))
    local = drawn.bodies[0].vertices @ turn
    assert_close(np.ptp(local, axis=0), [a, b, c], 1e-13, "edges")


def test_rods_lead_from_joint_to_joint():
    """Draw an arm without shapes as rods between its joints, up to the frame at its end."""
    rods = scene(swinging("planar_3r")).rods
    assert [(rod.a, rod.b) for rod in rods] == [(0, 1), (1, 2), (2, 2)]
    assert rods[2].point_b == pytest.approx((0.22, 0.0, 0.0))


def test_parameters_of_the_run_place_the_bob(tmp_path):
    """Draw a pendulum with the length of the run, not that of the file."""
    (tmp_path / "p.toml").write_text(PENDULUM)
    pendulum = kt.load(tmp_path / "p.toml")
    run = Trajectory(pendulum, T, T[:, None], np.ones((5, 1)), parameters=[2.0])
    assert scene(run).rods[0].point_b == (0.0, 0.0, -2.0)


def test_up_is_against_gravity():
    """Find the direction opposite to gravity, and z without gravity."""
    assert scene(still(kt.load("biped"))).up.tolist() == [0.0, 1.0, 0.0]
    system = kt.System(kt.build_mechanism("m", [kt.Body("b", mass=1.0)], [kt.Joint("j", "free", kt.GROUND, "b")],
                                   gravity=(0.0, 0.0, 0.0)))  # fmt: skip
    assert scene(still(system)).up.tolist() == [0.0, 0.0, 1.0]


def test_the_camera_follows_what_goes_far():
    """Follow a body that falls a hundred sizes, and stay for one that swings."""
    system = kt.load("biped")
    q = np.broadcast_to(system.neutral(), (5, 13)).copy()
    q[:, 1] = -100.0 * T
    fall = Trajectory(system, T, q, np.zeros((5, 12)))
    sight = fit(scene(fall), fall["poses"])
    assert sight.follows
    middle = fall["poses"][4, :, :3, 3].mean(axis=0)
    assert_close(sight.at(fall["poses"][4]).target, middle, 1e-12, "target")
    assert not fit(scene(swinging()), swinging()["poses"]).follows


@pytest.mark.parametrize("tilt", [0.0, 0.4, 1.3])
def test_a_planar_mechanism_is_seen_face_on(tilt):
    """View a planar arm along the normal of its plane, also of one that leans, with gravity's side down."""
    arm = kt.load("planar_3r").mechanism
    k, s = np.cos(tilt), np.sin(tilt)
    leaning = kt.Placement((0.0, 0.0, 0.0), ((k, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, k)))
    joints = (replace(arm.joints[0], placement=leaning), *arm.joints[1:])
    run = still(kt.System(replace(arm, joints=joints)))
    drawn = scene(run)
    assert drawn.normal is not None
    assert_close(np.abs(drawn.normal), np.array([s, 0.0, k]), 1e-12, "normal of the plane")
    camera = fit(drawn, run["poses"]).camera
    assert_close(np.abs(camera.direction @ drawn.normal), 1.0, 1e-12, "view along the normal")
    assert_close(camera.view[1], np.eye(3)[1], 1e-12, "up in the picture")
    places, _ = camera.project(run["poses"][0, :, :3, 3])
    assert (np.diff(places[:, 0]) > 0.05).all() if tilt < 0.5 else (np.abs(np.diff(places[:, 0])) > 0.05).all()


def test_a_mechanism_in_a_horizontal_plane_is_seen_from_above():
    """View an arm whose plane gravity is perpendicular to from above, without a floor; draw it."""
    arm = kt.load("planar_2r").mechanism
    run = still(kt.System(replace(arm, gravity=(0.0, 0.0, -9.81))))
    sight = fit(scene(run), run["poses"])
    assert sight.floor is None
    assert_close(sight.camera.direction, np.eye(3)[2], 1e-12, "view from above")


def test_motions_in_space_are_seen_from_aside():
    """View a robot that moves in space from a side and from above."""
    run = swinging("stanford")
    drawn = scene(run)
    assert drawn.normal is None and fit(drawn, run["poses"]).camera.elevation > 0.2


def test_a_floating_body_with_joints_is_drawn_by_them():
    """Draw rods from the trunk of a quadruped to its hips, and no box; a free body with a frame by a rod to it."""
    drawn = scene(still(kt.load("quadruped")))
    hips = [rod for rod in drawn.rods if rod.a == 0]
    assert len(hips) == 4 and all(rod.b > 0 for rod in hips) and not len(drawn.bodies[0].faces)
    body = kt.Body("b", mass=6.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    free, mast = kt.Joint("j", "free", kt.GROUND, "b"), kt.Frame("mast", "b", kt.Placement((0.1, 0.2, 0.9)))
    drawn = scene(still(kt.System(kt.build_mechanism("m", [body], [free], frames=[mast]))))
    assert [rod.point_b for rod in drawn.rods] == [(0.1, 0.2, 0.9)] and not len(drawn.bodies[0].faces)
    assert drawn.size < 1.0, "the size is that of the rod"


def test_a_batch_is_refused():
    """Draw a batch and read how to choose a run."""
    with pytest.raises(kt.InputError, match=r"the batch has shape \(3,\); choose one of its runs with run\(i\)"):
        scene(batch())


def test_colors_are_read():
    """Read #rrggbb as numbers from 0 to 1."""
    assert rgb("#ff0080") == (1.0, 0.0, 128 / 255)


def test_rods_of_long_chains_are_thin():
    """Draw the rods of twenty links thinner than those of two, relative to the size of the mechanism."""
    chain, pair = (scene(still(kt.load(name))) for name in ("chain_20", "planar_2r"))
    assert chain.rods[1].radius / chain.size < 0.5 * pair.rods[0].radius / pair.size


def test_a_body_with_meshes_is_more_than_its_primitive():
    """Draw a body with a mesh and a small box with rods and joint as well, and one with only the box by the box."""
    box = kt.Shape("box", (0.02, 0.03, 0.01))
    mesh = kt.Shape("mesh", (1.0, 1.0, 1.0), file="torso.stl")
    counts = []
    for shapes in ((box,), (mesh, box), (mesh,)):
        bodies = [
            kt.Body("torso", mass=3.1, com=(0.1, 0.0, 0.2), inertia=(0.3, 0.2, 0.25, 0.0, 0.0, 0.0), shapes=shapes),
            kt.Body("arm", mass=1.2, com=(0.0, 0.1, 0.0), inertia=(0.1, 0.1, 0.1, 0.0, 0.0, 0.0)),
        ]
        joints = [
            kt.Joint("hip", "revolute", kt.GROUND, "torso"),
            kt.Joint("shoulder", "revolute", "torso", "arm", kt.Placement(translation=(0.1, 0.2, 0.6))),
        ]
        drawn = scene(still(kt.System(kt.build_mechanism("m", bodies, joints))))
        counts.append((len(drawn.bodies[0].faces), len([r for r in drawn.rods if r.a == 0])))
    (alone, none), (both, rods), (links, same) = counts
    assert (none, rods, same) == (0, 1, 1)
    assert both == alone + links
