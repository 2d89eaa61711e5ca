"""Denavit-Hartenberg tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.formats.dh import mechanism_from_dh
from kinetree.model import Parameter
from kinetree.model.mechanism import resolve_parts
from pose_products import about, poses, shift
from tolerance import assert_close

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
ANGLE, LENGTH = st.floats(-7, 7), st.floats(-2, 2)


@st.composite
def tables(draw, branches: bool = False):
    """Draw rows with awkward geometry, with any earlier row or the ground as parent, and coordinates for them."""
    rows = []
    for i in range(draw(st.integers(1, 5))):
        row = {"joint": draw(st.sampled_from(["revolute", "prismatic"])), "mass": draw(st.floats(0, 5))}
        row |= {key: draw(LENGTH) for key in ("a", "b")} | {key: draw(ANGLE) for key in ("alpha", "theta")}
        if branches:
            row |= {"gamma": draw(ANGLE), "epsilon": draw(LENGTH)}
        row["com"] = [draw(LENGTH) for _ in range(3)]
        row["parent"] = draw(st.sampled_from(["ground", *range(i)]))
        rows.append(row)
    return rows, [draw(ANGLE) for _ in rows]


def moved(row, q):
    """Return theta and b of a row at the coordinate q."""
    theta, b = row["theta"], row["b"]
    return (theta + q, b) if row["joint"] == "revolute" else (theta, b + q)


def in_row_order(mechanism, q):
    """Return the coordinates in the mechanism's order; body link{k} is that of row k-1."""
    return [q[int(body.name[4:]) - 1] for body in mechanism.bodies]


@given(tables())
def test_standard_frames_are_products_of_dh_matrices(table):
    """Find frame i+1 of every row at Rz(theta) Tz(b) Tx(a) Rx(alpha) in its parent's frame, in any tree."""
    rows, q = table
    mechanism = mechanism_from_dh(rows)
    found = poses(mechanism, in_row_order(mechanism, q))
    expected = {"ground": np.eye(4)}
    for i, row in enumerate(rows):
        theta, b = moved(row, q[i])
        step = about(Z, theta) @ shift(0, 0, b) @ shift(row["a"], 0, 0) @ about(X, row["alpha"])
        expected[i] = expected[row["parent"]] @ step
        assert_close(found[f"frame_{i + 2}"], expected[i], 1e-13, "pose")
        com = found[f"link{i + 1}"] @ [*mechanism.body(f"link{i + 1}").com, 1.0]
        assert_close(com, expected[i] @ [*row["com"], 1.0], 1e-13, "mass centre")
    assert_close(found["tool"], expected[len(rows) - 1], 1e-13, "tool")


@given(tables(branches=True))
def test_modified_frames_are_products_of_dh_matrices(table):
    """Find every body at Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Rz(theta) Tz(b) in its parent's frame, in any tree."""
    rows, q = table
    mechanism = mechanism_from_dh(rows, convention="modified")
    found = poses(mechanism, in_row_order(mechanism, q))
    expected = {"ground": np.eye(4)}
    for i, row in enumerate(rows):
        theta, b = moved(row, q[i])
        branch = about(Z, row["gamma"]) @ shift(0, 0, row["epsilon"])
        step = branch @ about(X, row["alpha"]) @ shift(row["a"], 0, 0) @ about(Z, theta) @ shift(0, 0, b)
        expected[i] = expected[row["parent"]] @ step
        assert_close(found[f"link{i + 1}"], expected[i], 1e-13, "pose")
        assert mechanism.body(f"link{i + 1}").com == tuple(row["com"])


@given(ANGLE, ANGLE, st.tuples(*[st.floats(0.1, 1)] * 3), st.tuples(*[st.floats(-0.03, 0.03)] * 3))
def test_standard_inertia_is_turned_into_the_body(theta, alpha, second_moments, products):
    """Rotate the inertia from frame i+1 into the body's frame: R I R^T."""
    a, b, c = second_moments
    moments = (b + c, c + a, a + b, *products)
    matrix = np.array([[b + c, products[0], products[2]], [products[0], c + a, products[1]], [*products[:0:-1], a + b]])
    rows = [{"joint": "revolute", "theta": theta, "alpha": alpha, "mass": 1.0, "inertia": moments}]
    R = (about(Z, theta) @ about(X, alpha))[:3, :3]
    xx, yy, zz, xy, yz, zx = mechanism_from_dh(rows).bodies[0].inertia
    assert_close([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]], R @ matrix @ R.T, 1e-14, "inertia")
    assert mechanism_from_dh([rows[0] | {"inertia": matrix}]).bodies[0].inertia == (xx, yy, zz, xy, yz, zx)


@pytest.mark.parametrize("degrees", [True, False])
def test_right_angles_are_exact(degrees):
    """Keep zeros and ones of right angles exact, in degrees and in radians."""
    for quarter in range(-9, 10):
        angle = 90 * quarter if degrees else quarter * math.pi / 2
        rows = [{"joint": "revolute", "alpha": angle, "theta": -angle, "inertia": (0.3, 0.2, 0.1, 0, 0, 0)}]
        mechanism = mechanism_from_dh(rows, degrees=degrees)
        assert {abs(x) for row in mechanism.frame("tool").placement.rotation for x in row} == {0.0, 1.0}
        assert sorted(mechanism.bodies[0].inertia) == [0, 0, 0, 0.1, 0.2, 0.3]


def test_degrees_are_radians():
    """Read the same mechanism from degrees as from radians."""
    row = {"joint": "revolute", "a": 0.3, "theta": 12.5, "alpha": -33.0, "com": (0.1, 0.2, 0.3), "mass": 2.0}
    plain = row | {key: math.radians(row[key]) for key in ("theta", "alpha")}
    assert_close(
        mechanism_from_dh([row], degrees=True).bodies[0].com, mechanism_from_dh([plain]).bodies[0].com, 1e-15, "com"
    )


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_numbers_may_be_formulas(convention):
    """Read formulas of parameters, and get the results of their values."""
    formulas = {"a": "l/2", "b": "-l", "alpha": "turn", "theta": "2*turn", "mass": "l^2", "com": ["l", 0, 0.1]}
    values = {"a": 0.15, "b": -0.3, "alpha": 40.0, "theta": 80.0, "mass": 0.09, "com": [0.3, 0, 0.1]}
    rows = [{"joint": "revolute", **formulas}] * 2
    parameters = (Parameter("l", 0.3), Parameter("turn", 40.0, free=True))
    symbolic = mechanism_from_dh(rows, convention=convention, degrees=True, parameters=parameters)
    plain = mechanism_from_dh([{"joint": "revolute", **values}] * 2, convention=convention, degrees=True)
    for a, b in zip(poses(symbolic, [0.1, 0.2]).values(), poses(plain, [0.1, 0.2]).values(), strict=True):
        assert_close(a, b, 1e-15, "pose")
    bodies = resolve_parts(symbolic.bodies, symbolic.values())
    for a, b in zip(bodies, plain.bodies, strict=True):
        assert_close([a.mass, *a.com], [b.mass, *b.com], 1e-15, "body")


def test_rows_carry_the_rest():
    """Keep names, limits, damping, friction and armature, and arrays as numbers."""
    rows = [
        {"joint": "revolute", "name": "upper", "a": np.float32(0.5), "com": np.array([1, 2, 3])},
        {"joint": "prismatic", "parent": "upper", "limits": {"lower": 0, "effort": [9]}, "damping": 1, "armature": [2]},
    ]
    mechanism = mechanism_from_dh(rows, gravity=(0, -9.81, 0), name="arm")
    assert (mechanism.name, mechanism.gravity) == ("arm", (0.0, -9.81, 0.0))
    assert [(j.name, j.kind, j.parent, j.child) for j in mechanism.joints] == [
        ("upper", "revolute", "ground", "upper"),
        ("joint2", "prismatic", "upper", "link2"),
    ]
    joint = mechanism.joint("joint2")
    assert (joint.limits.lower, joint.limits.upper, joint.limits.effort) == ((0.0,), (), (9.0,))
    assert (joint.damping, joint.friction, joint.armature) == ((1.0,), (), (2.0,))
    assert mechanism.body("upper").com == (1.5, 2.0, 3.0)
    assert [f.name for f in mechanism.frames] == ["frame_2", "frame_3", "tool"]


def test_a_body_may_be_called_tool():
    """Leave out the frame "tool" if a body has this name."""
    mechanism = mechanism_from_dh([{"joint": "revolute", "name": "tool"}])
    assert [f.name for f in mechanism.frames] == ["frame_2"]


GOOD = {"joint": "revolute"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "dh: the table has no rows; give one row per moving body"),
        ([GOOD, {"a": 1}], "row 2: 'joint' is missing; add joint = ..."),
        ([GOOD, 7], "row 2: a number where a table belongs"),
        ([{"joint": "revolut"}], "row 1, joint: no joint 'revolut'; did you mean 'revolute'?"),
        ([{"joint": 3}], "row 1, joint: a number where a text belongs"),
        ([GOOD | {"alfa": 1}], "row 1: no key 'alfa'; did you mean 'alpha'?"),
        ([GOOD | {"gamma": 1}], "row 1: no key 'gamma'"),
        ([GOOD | {"d": 0.1}], "row 1: no key 'd'; did you mean 'b'?"),
        (
            [GOOD, GOOD | {"alpha": -90}],
            "row 2, alpha: -90 rad are 14.3 revolutions; if the table is in",
        ),
        ([GOOD | {"theta": 45}], "row 1, theta: 45 rad are 7.2 revolutions; if the table is in"),
        ([GOOD | {"Jm": 0.1}], "row 1: no key 'Jm'; did you mean 'armature'?"),
        ([GOOD | {"a": math.nan}], "row 1, a: the number is nan; give a finite number"),
        ([GOOD | {"b": True}], "row 1, b: true or false where a number belongs"),
        ([GOOD | {"theta": "2 +"}], "row 1, theta: something is missing at the end in the expression '2 +'"),
        ([GOOD | {"com": (1, 2)}], "row 1, com: 2 numbers; give 3"),
        ([GOOD | {"inertia": (1, 2)}], "row 1, inertia: an inertia has 2 numbers; give xx, yy, zz, xy, yz, zx"),
        ([GOOD | {"inertia": [[1, 2, 0], [3, 1, 0], [0, 0, 1]]}], "row 1, inertia: the inertia is not symmetric"),
        ([GOOD | {"parent": 1}], "row 1, parent: there is no such row; give a row from 0 to 0"),
        ([GOOD | {"parent": -1}], "row 1, parent: there is no such row"),
        ([GOOD | {"parent": 0.5}], "row 1, parent: a number where a row belongs; give a number from 0, or a name"),
        ([GOOD | {"parent": "lnk2"}, GOOD], "row 1, parent: no row 'lnk2'; did you mean 'link2'?"),
        ([GOOD | {"parent": 1}, GOOD], "the joints form a circle"),
        ([GOOD | {"mass": -1}], "body 'link1': the mass is -1 kg"),
        ([GOOD | {"name": "x"}, GOOD | {"name": "x"}], "the body name 'x' is used twice; rename one of them"),
        ([GOOD | {"name": ""}], "row 1, name: the name has 0 characters"),
    ],
)
def test_faults_name_the_row(rows, message):
    """Read the faulty row, the cause and the remedy in the message."""
    with pytest.raises(ModelError) as caught:
        mechanism_from_dh(rows)
    assert str(caught.value).startswith(message)


def test_unknown_conventions_are_refused():
    """Read the known conventions in the message."""
    with pytest.raises(ModelError, match=r"no convention 'modifed'; did you mean 'modified'\? available: standard"):
        mechanism_from_dh([GOOD], convention="modifed")


LINK = {"joint": "revolute", "a": 0.3, "alpha": 0.4, "mass": 2.0, "inertia": (0.02, 0.03, 0.04, 0, 0, 0)}
PUMA_LINK = {"joint": "revolute", "alpha": 90, "a": 0.1, "b": 0.2, "mass": 1.5, "inertia": (0, 0.35, 0, 0, 0, 0)}
"""A link with an inertia about one axis only, as some published tables of the PUMA 560 have."""


def test_published_tables_need_leniency():
    """Refuse an inertia that no body can have with the remedy, and accept it leniently with an entry in the report."""
    with pytest.raises(ModelError, match=r"body 'link1': no body can have this inertia.* accept it by lenient"):
        kt.from_dh([PUMA_LINK], degrees=True)
    arm = kt.from_dh([PUMA_LINK, PUMA_LINK], degrees=True, lenient=True)
    assert [e.text.split(" kg")[0] for e in arm.report.of("suspect")] == [
        f"body 'link{k}': no body can have this inertia: its principal moments are 0, 0, 0.35" for k in (1, 2)
    ]
    assert arm.inertia_matrix(arm.neutral()).shape == (2, 2)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_fixed_rows_frames_and_a_tool(convention):
    """Weld a flange to an arm, attach frames and a tool, and find their poses."""
    arm = kt.from_dh(
        [LINK, {"joint": "fixed", "b": 0.3, "theta": 0.2, "mass": 0.5, "name": "flange"}],
        convention=convention,
        frames=[kt.Frame("camera", "link1"), {"name": "lamp", "body": "flange", "translation": [0, 0.1, 0]}],
        tool=(0.01, 0.02, 0.05),
    )
    assert (arm.nv, arm.joints[1].kind) == (1, "fixed")
    q = [0.4]
    last = arm.pose(q, "frame_3" if convention == "standard" else "flange")
    assert_close(np.linalg.solve(last, arm.pose(q, "tool"))[:3, 3], np.array([0.01, 0.02, 0.05]), 1e-15, "tool")
    assert_close(
        np.linalg.solve(arm.pose(q, "flange"), arm.pose(q, "lamp"))[:3, 3], np.array([0, 0.1, 0]), 1e-15, "lamp"
    )
    assert_close(arm.pose(q, "camera"), arm.pose(q, "link1"), 1e-15, "camera")


def test_a_tool_in_any_form():
    """Give a tool as a translation, a matrix, a placement and a table, and find the same frame."""
    pose = np.eye(4)
    pose[:3, 3] = 0.1, 0.2, 0.3
    pose[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    placement = kt.Placement((0.1, 0.2, 0.3), tuple(map(tuple, pose[:3, :3].tolist())))
    table = {"translation": [0.1, 0.2, 0.3], "rotation": pose[:3, :3]}
    found = [kt.from_dh([LINK], tool=tool).mechanism.frames for tool in (pose, placement, table)]
    assert found[0] == found[1] == found[2]
    with pytest.raises(ModelError, match="tool: 2 numbers; give 3"):
        kt.from_dh([LINK], tool=(0.1, 0.2))
    with pytest.raises(ModelError, match="tool: the last row of the matrix is .*; give a 4 x 4 pose"):
        kt.from_dh([LINK], tool=2 * pose)


def test_a_table_with_a_loop():
    """Close a four-bar whose joints are rows of a table."""
    bars = [{"joint": "revolute", "a": a, "mass": 1.0, "inertia": (0.01,) * 3 + (0,) * 3} for a in (0.2, 0.5, 0.4)]
    loop = {
        "name": "pin",
        "kind": "revolute",
        "body_a": "link3",
        "body_b": "ground",
        "placement_b": {"translation": [0.45, 0, 0]},
    }
    loop["placement_a"] = {"translation": [0.4, 0, 0]}
    system = kt.from_dh(bars, loops=[loop], guess={"joint1": 1.0, "joint2": -0.5, "joint3": -1.5})
    assert system.assemble(hold={"joint1": 0.9})[0] == 0.9
    assert len(system.closures) == 5
