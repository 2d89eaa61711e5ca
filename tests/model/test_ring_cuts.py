"""Which pairs of a ring are cut, what becomes of the others, and pairs that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.model import parse
from kinetree.model.mechanism import resolve_parts
from strategies import nested
from tolerance import assert_close

BODIES = [kt.Body(name, 1.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)) for name in "abc"]


def ring(**changes) -> list[kt.Pair]:
    """Return the pairs of a ring ground - a - b - c, with changed fields by name."""
    ends = (("p", "ground", "a"), ("q", "a", "b"), ("r", "b", "c"), ("s", "c", "ground"))
    return [replace(kt.Pair(name, "revolute", *two), **changes.get(name, {})) for name, *two in ends]


HELD = {"damping": (1.0,)}


@pytest.mark.parametrize(("changes", "cut", "reversed"), [
    ({}, "r", ["s"]),
    ({"q": {"kind": "spherical"}}, "q", ["r", "s"]),
    ({"p": {"kind": "cylindrical"}, "s": {"kind": "prismatic"}}, "p", ["q", "r", "s"]),
    ({"p": {"kind": "fixed"}, "q": {"kind": "universal"}, "s": {"kind": "universal"}}, "q", ["r", "s"]),
    ({"r": HELD}, "q", ["r", "s"]),
    ({"q": HELD, "r": {"limits": kt.Limits((-1.0,), (1.0,))}}, "s", []),
    ({"q": {"armature": (0.1,)}, "r": {"cut": False}, "s": {"friction": (0.1,)}}, "p", ["q", "r", "s"]),
    ({"p": {"cut": True}}, "p", ["q", "r", "s"]),
])  # fmt: skip
def test_the_chosen_cut(changes, cut, reversed):
    """Cut the pair with the fewest equations that may be cut, at the greatest depth, and reverse those behind it."""
    system = kt.from_pairs("ring", BODIES, ring(**changes))
    assert [x.name for x in system.mechanism.loops] == [cut]
    told = [str(e).split("'")[1] for e in system.report.of("changed") if "from body_b to body_a" in str(e)]
    assert told == reversed


def test_bodies_without_mass_do_not_end_a_branch():
    """Cut beside bodies with mass, at the cost of equations, so that every joint of the tree moves inertia."""
    bodies = [kt.Body("a"), kt.Body("b"), BODIES[2]]
    places = {name: {"placement_a": kt.Placement((0.3, 0.1 * k, 0.0))} for k, name in enumerate("pqrs")}
    places["r"] |= {"kind": "universal"}
    system = kt.from_pairs("ring", bodies, ring(**places))
    assert [x.name for x in system.mechanism.loops] == ["s"]
    assert str(system.report.of("changed")[0]).endswith(
        "5 equations; those with fewer connect a body without mass, which must not end a branch"
    )
    assert not system.report.of("suspect")


def test_a_guess_decides_between_equals():
    """Keep a guessed pair in the tree where another cut is as good."""
    system = kt.from_pairs("ring", BODIES, ring(), guess={"r": 0.3})
    assert [x.name for x in system.mechanism.loops] != ["r"]
    assert dict(system.mechanism.guess) == {"r": (0.3,)}


def test_keep_and_parallel_pairs():
    """Keep actuated pairs by the option; allow two pairs between the same bodies, and cut the second."""
    pairs = [*ring(), kt.Pair("hinge", "revolute", "ground", "a")]
    system = kt.from_pairs("ring", BODIES, pairs, keep=["r", "hinge"])
    assert [x.name for x in system.mechanism.loops] == ["p", "q"]
    assert [j.name for j in system.joints] == ["s", "r", "hinge"]


def test_joints_beside_pairs():
    """Keep joints of the file in the tree, with pairs around them."""
    joints = [kt.Joint("q", "revolute", "a", "b"), kt.Joint("r", "revolute", "b", "c")]
    system = kt.from_pairs("ring", BODIES, [p for p in ring() if p.name in "ps"], joints=joints)
    assert [x.name for x in system.mechanism.loops] == ["s"]


def test_data_of_a_cut_pair_are_reported():
    """Report the data that a marked cut drops."""
    system = kt.from_pairs("ring", BODIES, ring(p=HELD, q=HELD, r=HELD, s=HELD), cut=["r"], guess={"r": 0.1})
    assert [str(e) for e in system.report.of("dropped")] == [
        "ring: damping of pair 'r', which is cut",
        "ring: the guess of pair 'r', which is cut",
    ]


def joint_spring(a: str, b: str) -> kt.ForceElement:
    """Return a joint spring between two bodies."""
    return kt.ForceElement("spring", "joint_spring", a, b, coefficients=(("stiffness_1", 2.0),))


def test_springs_of_reversed_joints():
    """Reorder the coefficients of a spring with the coordinates of its joint, and change the sign of its rest."""
    seat = {"kind": "euler", "sequence": "xyz", "cut": False}
    spring = kt.ForceElement(
        "spring", "joint_spring", "b", "c", coefficients=(("stiffness_1", 2.0), ("rest_1", 0.3), ("stiffness_3", 4.0))
    )
    system = kt.from_pairs("ring", BODIES, ring(r=seat, q={"cut": True}), forces=[spring])
    (found,) = system.mechanism.forces
    assert (found.body_a, found.body_b) == ("c", "b")
    assert dict(found.coefficients) == {"stiffness_3": 2.0, "rest_3": -0.3, "stiffness_1": 4.0}
    assert system.mechanism.joint("r").sequence == "zyx"


def test_limits_of_reversed_joints():
    """Exchange and reorder the limits of a joint whose coordinates change sign and order."""
    limits = kt.Limits((-1.0, -2.0, -3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    system = kt.from_pairs("ring", BODIES, ring(r={"kind": "euler", "limits": limits}, q={"cut": True}))
    found = system.mechanism.joint("r").limits
    assert (found.lower, found.upper, found.velocity) == ((-6.0, -5.0, -4.0), (3.0, 2.0, 1.0), (9.0, 8.0, 7.0))


ALL_HELD = dict.fromkeys("pqrs", HELD)


@pytest.mark.parametrize(("pairs", "options", "message"), [
    (ring(p={"body_b": "arm"}), {}, "pair 'p', body_b: no body 'arm'; available: a, b, c, ground"),
    (ring(p={"kind": "rod"}), {}, "pair 'p', kind: no joint kind 'rod'"),
    (ring(p={"kind": "slider"}), {}, "pair 'p', kind: no joint kind 'slider'; did you mean 'prismatic'?"),
    (ring(p={"body_b": "ground"}), {}, "pair 'p', body_b: both bodies are 'ground'; name two different bodies"),
    (ring(q={"name": "p"}), {}, "pair 'p': the pair name 'p' is used twice; rename one of them"),
    (ring(q={"cut": "yes"}), {}, "pair 'q': cut is 'yes'; give True, False, or None to let it be chosen"),
    (ring()[1:3], {},
     "no pairs connect 'a', 'b', 'c' to the ground; add a pair; one of kind free lets the bodies float"),
    (ring(), {"cut": list("pqrs")}, "only pairs that are marked as cut, 'p', 's', connect 'a', 'b', 'c' to the ground; "
     "remove cut = true from one of them"),
    (ring(p={"kind": "free", "cut": True}), {}, "pair 'p', cut: a free pair cannot be cut: there is no such loop; "),
    (ring(p={"kind": "free"}, s={"kind": "free"}, q=HELD, r=HELD), {},
     "pair 's': all pairs of a ring must stay in the tree: 'r' (damping), 'q' (damping), 'p' (no free loop exists), "
     "'s' (no free loop exists); mark one with cut = true; a loop has no limits, damping, friction or armature"),
    (ring(**ALL_HELD), {}, "pair 'r': all pairs of a ring must stay in the tree: 'q' (damping), 'p' (damping), 's' ("),
    (ring(), {"cut": ["x"]}, "no pair 'x'; available: p, q, r, s"),
    (ring(), {"cut": "p"}, "cut is 'p'; expected a list of names of pairs"),
    (ring(), {"cut": ["p"], "keep": ["p"]}, "pair 'p' is in cut and in keep; leave it out of one of them"),
    (ring(p={"cut": True}), {"couplings": [kt.Coupling("gear", "p", (("q", 2.0),))]},
     "pair 'p', cut: it is cut, but coupling 'gear' needs its coordinate; cut another pair of the ring"),
    (ring(p={"cut": True}), {"forces": [joint_spring("ground", "a")]},
     "force 'spring': no pair that stays in the tree connects 'ground' and 'a'; a joint spring needs one such pair"),
    ([*ring(), kt.Pair("p2", "revolute", "a", "ground")], {"forces": [joint_spring("ground", "a")]},
     "force 'spring': 2 pairs connect 'ground' and 'a'; a joint spring needs one such pair; mark others between"),
    (ring(s={"kind": "planar", "damping": (1.0, 1.0, 1.0)}), {},
     "pair 's', body_a: the tree leads from 'ground' to 'c', and its damping would differ; exchange body_a and body_b, "
     "with their placements, or mark another pair of the ring with cut = true"),
    (ring(s={"kind": "planar", "cut": False}), {"forces": [joint_spring("c", "ground")]},
     "force 'spring': the tree leads from 'ground' to 'c', and a planar spring has no reverse"),
    (ring(r={"kind": "helical", "cut": True}), {}, "loop 'r', pitch: the pitch is 0 m/rad; give a pitch, or make it a"),
    (ring(), {"guess": {"t": 1.0}}, "guess: no pair 't'; available: p, q, r, s"),
    (ring(), {"guess": {"s": [1.0, 2.0]}}, "guess, s: 2 coordinates for joint 's'; give 1"),
    ([1], {}, "pair 1: 1 is not a kt.Pair; give a list of kt.Pair"),
])  # fmt: skip
def test_impossible_pairs_are_refused(pairs, options, message):
    """Name the pair, the cause and the remedy."""
    with pytest.raises(kt.KinetreeError) as caught:
        kt.from_pairs("bad", BODIES, pairs, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("cut", list("pqrs"))
def test_frames_of_drawings_do_not_depend_on_the_cut(cut):
    """Find every body in its drawing's frame under one name for any cut, and at its joint under its own name."""
    turn = kt.Placement.from_euler("zxz", (0.3, -0.8, 0.5), (0.2, 0.1, -0.4))
    places = {
        "p": {"placement_a": kt.Placement((0.4, -0.1, 0.2))},
        "q": {"placement_a": turn, "placement_b": kt.Placement((0.1, 0.3, 0.0))},
        "r": {"placement_b": turn},
    }
    pairs = ring(**places)
    x = {"a": _matrix(pairs[0].placement_a)}  # at zero displacement the frames of a pair coincide
    x["b"] = x["a"] @ _matrix(turn) @ np.linalg.inv(_matrix(pairs[1].placement_b))
    x["c"] = x["b"] @ np.linalg.inv(_matrix(turn))
    closing = replace(pairs[3], placement_b=kt.Placement(nested(x["c"][:3, 3]), nested(x["c"][:3, :3])), cut=None)
    system = kt.from_pairs("ring", BODIES, [*pairs[:3], closing], cut=[cut])
    assert [loop.name for loop in system.mechanism.loops] == [cut]
    assert {f.name: f.body for f in system.mechanism.frames} == {f"{name}_frame": name for name in "abc"}
    q = system.neutral()
    assert_close(system.closure_residual(q), np.zeros(len(system.mechanism.closures)), 1e-14, "closure")
    run = kt.Trajectory(system, np.zeros(1), q[None], np.zeros((1, system.nv)))
    for k, body in enumerate(system.bodies):
        drawn = system.pose(q, f"{body.name}_frame")
        assert_close(drawn, x[body.name], 1e-15, "pose of the drawing")
        assert_close(run[f"poses.{body.name}_frame"][0], drawn, 0.0, "pose of the drawing in a run")
        at_joint = system.pose(q, body.name)
        assert_close(at_joint, system.poses(q)[k], 1e-15, "pose of the body")
        assert_close(run[f"poses.{body.name}"][0], at_joint, 1e-15, "pose of the body in a run")
        com = at_joint @ (*body.com, 1.0)
        assert_close(com, drawn @ (0.1, 0.0, 0.0, 1.0), 1e-15, "center of mass as it was given")


def _matrix(place: kt.Placement) -> np.ndarray:
    return np.block([[np.array(place.rotation), np.array(place.translation)[:, None]], [np.eye(4)[3:]]])


def test_axes_with_parameters_are_reversed():
    """Reverse joints whose axes and placements depend on parameters, and ask for the second axis of a universal one."""
    tilt = (parse("sin(t)"), 0.0, parse("cos(t)"))
    place = kt.Placement((0.0, parse("t"), 0.2))
    changes = {"s": {"axis": tilt, "placement_a": place}, "r": {"cut": True}}
    system = kt.from_pairs("ring", BODIES, ring(**changes), parameters=[kt.Parameter("t", 0.4, free=True)])
    joint = resolve_parts(system.mechanism.joint("s"), {"t": 0.7})
    assert_close(joint.axis, [-np.sin(0.7), 0.0, -np.cos(0.7)], 1e-16, "axis")
    found = system.pose(system.neutral(), "c_frame", parameters={"t": 0.7})[:3, 3]
    assert_close(found, [0.0, -0.7, -0.2], 1e-15, "position")
    changes["s"] = {"kind": "universal", "axis": tilt, "cut": False}
    with pytest.raises(kt.ModelError, match="pair 's': its axis depends on a parameter; give axis2 as well"):
        kt.from_pairs("ring", BODIES, ring(**changes), parameters=[kt.Parameter("t", 0.4, free=True)])


def test_equal_names_of_bodies_are_refused_first():
    """Refuse two bodies of one name before a pair misses the other."""
    with pytest.raises(kt.ModelError, match="the body name 'a' is used twice; rename one of them"):
        kt.from_pairs("ring", [*BODIES[:1], kt.Body("a", 1.0), *BODIES[2:]], ring())
