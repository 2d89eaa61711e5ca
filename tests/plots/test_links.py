"""Drawings of loops: bars that meet at the cuts of the mechanism, and the joints there."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import library
from kinetree.model.mechanism import resolve_parts
from kinetree.plots.links import joint_solid
from kinetree.plots.skeleton import Scene, scene
from kinetree.results import Trajectory
from tolerance import assert_close

CLOSED = [
    name
    for name in library.names()
    if (m := kt.load(name).mechanism).loops and not m.rolls and all(x.curve is None for x in m.loops)
]
"""Mechanisms with loops that are cut joints: contacts are elsewhere than at the frames."""


def assembled(system: kt.System) -> Trajectory:
    """Return a run that stays at the closed position nearest to the guess."""
    q = np.broadcast_to(system.assemble(), (2, system.nq))
    return Trajectory(system, np.array([0.0, 0.1]), q, np.zeros((2, system.nv)))


def ends(drawn: Scene, poses: np.ndarray) -> np.ndarray:
    """Return both ends of every rod in the ground's frame, [n, 3]."""

    def place(body: int, point) -> np.ndarray:
        return np.array(point) if body < 0 else poses[body, :3, :3] @ point + poses[body, :3, 3]

    return np.array([x for r in drawn.rods for x in (place(r.a, r.point_a), place(r.b, r.point_b))])


def vertices(drawn: Scene, poses: np.ndarray) -> np.ndarray:
    """Return the corners of all solids in the ground's frame."""
    placed = [m.vertices @ p[:3, :3].T + p[:3, 3] for m, p in zip(drawn.bodies, poses, strict=False)]
    return np.concatenate([*placed, drawn.bodies[-1].vertices])


@pytest.mark.parametrize("name", everyday.some(CLOSED))
def test_no_bar_ends_in_the_air(name):
    """Draw every closed mechanism: at each cut there are rods of bodies, or solids, of both sides."""
    run = assembled(kt.load(name))
    drawn, poses = scene(run), run["poses"][0]
    mechanism = run.system.mechanism
    index = {body.name: i for i, body in enumerate(mechanism.bodies)}
    for loop in resolve_parts(mechanism.loops, mechanism.values()):
        for body, at in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
            i = index[body]
            point = poses[i, :3, :3] @ at.translation + poses[i, :3, 3]
            own = [r for r in drawn.rods if i in (r.a, r.b)]
            near = np.linalg.norm(ends(Scene(drawn.bodies, tuple(own), (), 1.0, drawn.up), poses) - point, axis=1)
            solid = drawn.bodies[i].vertices @ poses[i, :3, :3].T + poses[i, :3, 3]
            touched = np.linalg.norm(solid - point, axis=1).min(initial=np.inf) < 0.1 * drawn.size
            assert near.min() <= 1e-9 or touched, f"{loop.name} on {body}"


def two_sliders(loop: kt.Loop) -> kt.System:
    """Return a body on a slide along x and one on a slide along z, joined by a loop."""
    bodies = [
        kt.Body("a", 1.0, (0, 0, 0), (0.01,) * 3 + (0,) * 3),
        kt.Body("b", 2.0, (0, 0, 0), (0.02,) * 3 + (0,) * 3),
    ]
    joints = [
        kt.Joint("a", "prismatic", kt.GROUND, "a", axis=(1, 0, 0)),
        kt.Joint("b", "prismatic", kt.GROUND, "b", axis=(0, 0, 1)),
    ]
    return kt.System(kt.build_mechanism("m", bodies, joints, loops=[loop], guess={"a": 0.3, "b": 0.4}))


def test_a_rod_is_a_rod():
    """Draw the rod of a loop from end to end, with a ball at each."""
    shift = kt.Placement((0.0, 0.1, 0.0))
    run = assembled(two_sliders(kt.Loop("r", "rod", "a", "b", shift, shift, length=0.5)))
    drawn, poses = scene(run), run["poses"][0]
    (rod,) = [r for r in drawn.rods if (r.a, r.b) == (0, 1)]
    assert rod.point_a == rod.point_b == (0.0, 0.1, 0.0)
    for i in (0, 1):
        at = poses[i, :3, 3] + [0.0, 0.1, 0.0]
        reach = np.linalg.norm(vertices(drawn, poses) - at, axis=1).min()
        assert_close(reach, 2.6 * rod.radius, 1e-3, f"ball {i}")


def test_a_point_on_a_line_has_a_guide():
    """Draw a guide from frame to frame, a ball on the second, and a foot if the first is on the ground."""
    line = kt.Loop("l", "point_on_line", kt.GROUND, "a", kt.Placement((0.0, 0.2, 0.0)), kt.Placement((0.0, 0.2, 0.0)),
                   axis=(1, 0, 0))  # fmt: skip
    drawn = scene(assembled(two_sliders(line)))
    pairs = [(r.a, r.point_a, r.b, r.point_b) for r in drawn.rods]
    assert (-1, (0.0, 0.2, 0.0), 0, (0.0, 0.2, 0.0)) in pairs
    assert (-1, (0.0, 0.0, 0.0), -1, (0.0, 0.2, 0.0)) in pairs


def test_a_cut_on_the_ground_is_on_the_ground():
    """Draw the solid of a revolute cut on the ground if its first end is there."""
    bar = kt.Body("bar", 1.0, (0.2, 0, 0), (0, 0.01, 0.01, 0, 0, 0))
    hinge = kt.Joint("hinge", "revolute", kt.GROUND, "bar", axis=(1, 0, 0))
    loop = kt.Loop("far", "revolute", kt.GROUND, "bar", kt.Placement((0.4, 0, 0)), kt.Placement((0.4, 0, 0)), (1, 0, 0))
    drawn = scene(assembled(kt.System(kt.build_mechanism("m", [bar], [hinge], loops=[loop]))))
    corners = drawn.bodies[-1].vertices
    assert_close((corners.min(axis=0) + corners.max(axis=0)) / 2, [0.4, 0.0, 0.0], 1e-12, "middle")
    radius = drawn.rods[0].radius
    assert_close(np.ptp(corners[:, 0]), 6.0 * radius, 1e-12, "along the axis")


@pytest.mark.parametrize(("kind", "seen"), [("revolute", True), ("spherical", True), ("free", False), ("fixed", False)])
def test_joints_have_solids(kind, seen):
    """Return a solid for visible joints, and none for others."""
    assert (joint_solid(kt.Joint("j", kind, kt.GROUND, "b"), 0.01) is not None) == seen


def test_loops_leave_no_trails():
    """Find trails at frames and at the centers of last bodies, not at cuts."""
    drawn = scene(assembled(kt.load("four_bar")))
    assert drawn.tips == ((0, (0.019, 0, 0)), (2, (-0.1152, 0, 0)))
