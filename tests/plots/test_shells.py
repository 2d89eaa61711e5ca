"""Shells of machines: girths that fall with the reach, housings on axes, rails, frames and a base."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.page.data import page_scene
from kinetree.plots.links import at
from kinetree.plots.skeleton import Scene, scene
from kinetree.results import Trajectory
from tolerance import assert_close


def drawn(system: kt.System) -> tuple[Scene, np.ndarray]:
    """Return the drawing of a mechanism at its first position, and the poses there."""
    q = system.assemble() if system.closures else system.neutral()
    run = Trajectory(system, np.zeros(1), q[None], np.zeros((1, system.nv)))
    return scene(run), np.asarray(run["poses"][0])


def arm_of(rows: list[dict]) -> kt.System:
    """Return an arm from a table of a user's own."""
    return kt.from_dh([{"mass": 1.1, **row} for row in rows])


def test_links_of_arms_get_thinner_and_have_housings_on_their_axes():
    """Draw a PUMA: tapered links of falling girth, one housing with caps per joint, about the joint's axis."""
    puma = kt.load("puma560")
    found, poses = drawn(puma)
    girths = [rod.radius for rod in found.rods if rod.solid == "link"]
    assert len(girths) >= 2 and girths == sorted(girths, reverse=True)
    assert 0.02 < girths[0] / found.size < 0.07
    for i in range(6):
        housing, cap = [rod for rod in found.shells if rod.solid == "drum" and rod.a == rod.b == i][:2]
        axis = at(poses, i, housing.point_b) - at(poses, i, housing.point_a)
        assert_close(axis / np.linalg.norm(axis), poses[i, :3, 2], 1e-12, "along z of a DH frame")
        assert_close(np.add(housing.point_a, housing.point_b), np.zeros(3), 1e-12, "about the joint")
        assert cap.radius < housing.radius


@pytest.mark.parametrize("length", [1e-3, 0.4, 250.0])
def test_shells_of_own_tables_scale_with_the_robot(length):
    """Draw a user's arm of any size: a rail to the sliding joint, and a base, all in proportion."""
    found, _ = drawn(arm_of([
        {"joint": "revolute", "b": length, "alpha": np.pi / 2},
        {"joint": "revolute", "a": length},
        {"joint": "prismatic", "a": 0.3 * length, "b": 0.5 * length},
    ]))  # fmt: skip
    solids = [rod.solid for rod in (*found.rods, *found.shells)]
    assert solids.count("block") == 2, "a rail and its carriage"
    base = [rod for rod in found.shells if rod.a < 0]
    assert [rod.solid for rod in base] == ["link", "drum"]
    assert max(rod.point_a @ found.up for rod in base) < 0
    assert all(1e-3 < rod.radius / found.size < 0.2 for rod in found.shells)


def test_a_base_touches_what_it_carries():
    """Draw an arm whose shoulder is on a post, and one whose shoulder is at the origin: no gap above the base."""
    for height in (0.4, 0.0):
        bodies = [kt.Body("upper", mass=1.2, com=(0.25, 0.0, 0.02)), kt.Body("lower", mass=0.8, com=(0.2, 0.0, 0.0))]
        shoulder = kt.Joint("shoulder", "revolute", kt.GROUND, "upper", kt.Placement((0.0, 0.0, height)), axis="y")
        elbow = kt.Joint("elbow", "revolute", "upper", "lower", kt.Placement((0.5, 0.0, 0.0)), axis="z")
        found, _ = drawn(kt.System(kt.build_mechanism("arm", bodies, [shoulder, elbow])))
        top = max(np.dot(end, found.up) for rod in found.shells if rod.a < 0 for end in (rod.point_a, rod.point_b))
        housing = next(rod for rod in found.shells if rod.a == rod.b == 0)
        if height:
            assert top == 0.0, "where the post begins"
        else:
            assert -housing.radius < top < 0.0, "within the housing"


def test_platforms_and_trunks_have_frames():
    """Draw rods around the joints of a platform, and around the hips of a quadruped, each with two neighbors."""
    for name, count in (("stewart", 12), ("quadruped", 4)):  # a Stewart platform has one on the ground, too
        found, poses = drawn(kt.load(name))
        around = [rod for rod in found.shells if rod.solid == "rod"]
        ends = [(k, p) for rod in around for k, p in ((rod.a, rod.point_a), (rod.b, rod.point_b))]
        assert len(around) == count
        assert len({tuple(np.round(at(poses, *end), 9)) for end in ends}) == count, "closed polygons"


def test_linkages_and_long_chains_stay_slender():
    """Draw a planar four-bar and a chain of twenty links with the rods of drawings."""
    four, _ = drawn(kt.load("four_bar"))
    assert {rod.solid for rod in four.rods} == {"rod"}
    assert max(rod.radius for rod in four.shells) < 0.03 * four.size
    chain, _ = drawn(kt.load("chain_20"))
    assert max(rod.radius for rod in chain.shells) < 0.03 * chain.size


def test_pages_have_the_shells_between_points():
    """Find every rod and shell of a drawing in its page, and no triangles of bodies."""
    puma = kt.load("puma560")
    found, poses = drawn(puma)
    page = page_scene(found, poses[None], standing=True)
    assert len(page["rods"]) == len(found.rods) + len(found.shells)
    assert all(count == 0 for _, count in page["ranges"][: len(puma.bodies)])
