"""Architecture: textbook conditions of arms and of the parallelogram, designs that meet them, and measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree import InputError, UnknownNameError, UnreachableError
from kinetree.model import Body, Joint, Loop, Placement, build_mechanism
from tolerance import assert_close


def parallelogram(c3: float = 0.11, c4: float = 0.17) -> kt.System:
    """Return a five-bar parallelogram: links 1 and 2 on the ground, 3 parallel to 1 on 2, and 4 parallel to 2 on 1.

    Link 4 joins the ends of links 1 and 3.
    """
    l1, l2 = 0.37, 0.23
    bodies = [
        Body("one", 1.1, (0.13, 0.0, 0.0), (0.02, 0.03, 0.031, 0.0, 0.0, 0.0)),
        Body("two", 0.9, (0.09, 0.0, 0.0), (0.02, 0.03, 0.027, 0.0, 0.0, 0.0)),
        Body("three", 0.7, (c3, 0.0, 0.0), (0.02, 0.03, 0.023, 0.0, 0.0, 0.0)),
        Body("four", 1.3, (c4, 0.0, 0.0), (0.02, 0.03, 0.041, 0.0, 0.0, 0.0)),
    ]
    joints = [
        Joint("q1", "revolute", "ground", "one"), Joint("q2", "revolute", "ground", "two"),
        Joint("q3", "revolute", "two", "three", Placement((l2, 0.0, 0.0))),
        Joint("q4", "revolute", "one", "four", Placement((l1, 0.0, 0.0))),
    ]  # fmt: skip
    pin = Loop("pin", "revolute", "three", "four", Placement((l1, 0.0, 0.0)), Placement((l2, 0.0, 0.0)))
    guess = {"q1": (0.2,), "q2": (1.3,), "q3": (-1.1,), "q4": (1.1,)}
    return kt.System(
        build_mechanism("parallelogram", bodies, joints, loops=[pin], guess=guess, gravity=(0.0, -9.81, 0.0))
    )


def test_an_arm_of_two_links():
    """Find the conditions of textbooks: a counterweight on the second link, and no way to separate the drives."""
    arm = kt.load("planar_2r")
    found = arm.architecture()
    assert found.conditions["constant"].groupings == ("link2.mx", "link2.my")
    assert found.conditions["diagonal"].groupings == ("link2.mx", "link2.my", "link2.Izz")
    assert found.conditions["balanced"].groupings == (
        "link1.mx + 0.3000 link2.m", "link1.my", "link2.mx", "link2.my",
    )  # fmt: skip
    assert not any(found.met.values())
    made = found.design("constant")
    assert made.architecture().met == {"constant": True, "diagonal": False, "decoupled": False, "balanced": False}
    q = np.random.default_rng(2).normal(size=(5, 2))
    M = made.inertia_matrix(q)
    assert_close(M, np.broadcast_to(M[0], M.shape), 1e-12 * np.abs(M).max(), "inertia matrix")
    with pytest.raises(
        UnreachableError, match=r"no bodies of 'planar_2r' make it decoupled: .* impossible inertia \(link2\)"
    ):
        found.design("decoupled")
    still = found.design("balanced", method="points")
    assert_close(still.gravity_torque(q), np.zeros((5, 2)), 1e-9, "torques of gravity")


def test_the_parallelogram_of_direct_drives():
    """Find m3 l2 c3 + m4 l1 c4 = 0, by which direct drives of a parallelogram are separate.

    Centers of mass have the velocities l2 w2 + c3 w1 and l1 w1 + c4 w2 along the links, so that w1 w2 in the
    kinetic energy has this factor times the cosine of the angle between the links.
    """
    system = parallelogram()
    found = system.architecture(actuated=["q1", "q2"])
    c = found.conditions["decoupled"]
    assert len(c) == 2  # along the links, and across them
    three, four = (next(b for b in system.bodies if b.name == x) for x in ("three", "four"))
    expected = three.mass * three.com[0] * 0.23 + four.mass * four.com[0] * 0.37
    row = c.matrix[0] if abs(c.values[0]) > abs(c.values[1]) else c.matrix[1]
    names = list(c.names)
    weights = [row[names.index(x)] for x in ("three.mx", "four.mx")]
    assert weights[1] / weights[0] == pytest.approx(0.37 / 0.23, rel=1e-9)
    assert abs(c.values).max() / abs(weights[0]) == pytest.approx(abs(expected) / 0.23, rel=1e-9)
    assert not found.met["decoupled"]
    apart = parallelogram(c3=-0.2, c4=0.7 * 0.2 * 0.23 / (1.3 * 0.37))
    assert apart.architecture(actuated=["q1", "q2"]).met["decoupled"]


def test_conditions_are_measures_of_designs():
    """Multiply conditions by free parameters, and use them as a measure that an optimization drives to zero."""
    arm = kt.with_free(kt.load("planar_2r"), "com.link2.x")
    found = arm.architecture()
    assert_close(found.residuals("constant", [0.0]), np.zeros(2), 1e-15, "conditions")
    motion = {j.name: kt.Cycloid(0.0, 1.0, 1.0) for j in arm.joints}
    best = kt.optimize(
        arm, {"com.link2.x": (-0.1, 0.2)}, minimize="coupled", measures={"coupled": found.measure("constant")},
        motion=motion, duration=1.0, population=8, generations=40, progress=False,
    )  # fmt: skip
    assert abs(best.values["com.link2.x"]) < 1e-6


def test_mistakes():
    """Read what is wrong with options, and the remedy."""
    with pytest.raises(InputError, match=r"'four_bar' has loops: name the driven joints, such as actuated=\['crank'\]"):
        kt.load("four_bar").architecture()
    found = kt.load("planar_2r").architecture()
    with pytest.raises(UnknownNameError, match="no goal 'light'"):
        found.design("light")
    five = kt.load("five_bar")
    with pytest.raises(InputError, match="do not determine the motion|drive"):
        five.architecture(actuated=[five.joints[0].name])
    heavy = kt.load("planar_2r").mechanism
    assert kt.System(replace(heavy, gravity=(0.0, 0.0, 0.0))).architecture().met["balanced"]
