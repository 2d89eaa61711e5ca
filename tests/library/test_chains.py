"""Chains and ropes: geometry, inertia, stiffness, loads and loops, and rejected input."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError
from kinetree.library.chains import Link, rope_parts
from kinetree.model.checks import check
from strategies import ALL
from tolerance import assert_close

ROPE = {"mass_per_metre": 0.37, "radius": 0.013}


@pytest.mark.parametrize("joint", ALL)
def test_chains_pass_all_checks(joint):
    """Build chains of every kind of joint and find no error."""
    check(kt.chain(5, joint=joint, length=0.23, mass=0.7).mechanism)


def test_a_chain_reaches_its_length():
    """Stretch a chain and find its tip, its mass, and alternating axes."""
    chain = kt.chain(7, length=0.23, mass=0.7, radius=0.03)
    assert_close(chain.pose(chain.neutral(), "tip")[:3, 3], (1.61, 0.0, 0.0), 1e-14, "tip")
    assert sum(b.mass for b in chain.bodies) == pytest.approx(4.9)
    assert [j.axis for j in chain.joints[:3]] == [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)]
    assert {j.axis for j in kt.chain(4, planar=True).joints} == {(0.0, 1.0, 0.0)}


def test_a_link_is_a_solid_cylinder():
    """Compare a link's inertia with that of a cylinder, and with a point mass at its end."""
    link = Link(0.4, 3.0, 0.05)
    assert link.inertia[:3] == pytest.approx((0.00375, 0.041875, 0.041875))
    loaded = link.body("x", 1.5)
    assert loaded.mass == 4.5
    assert loaded.com[0] == pytest.approx((3.0 * 0.2 + 1.5 * 0.4) / 4.5)
    about_joint = loaded.inertia[1] + 4.5 * loaded.com[0] ** 2
    assert about_joint == pytest.approx(0.041875 + 3.0 * 0.04 + 1.5 * 0.16)


@pytest.mark.parametrize(
    ("end", "joint"), everyday.some(product(["free", "pinned", 0.8], ["revolute", "universal", "euler", "spherical"]))
)
def test_ropes_pass_all_checks(joint, end):
    """Build ropes of every kind and find no error; closed ones are closed at their guess."""
    rope = kt.rope(2.7, 9, ends=("pinned", end), joint=joint, **ROPE)
    check(rope.mechanism)
    assert sum(b.mass for b in rope.bodies) == pytest.approx(2.7 * 0.37 + (0.8 if end == 0.8 else 0.0))
    if end == "pinned":
        q = np.array([x for _, own in rope.mechanism.guess for x in own])
        assert_close(rope.closure_residual(q), np.zeros(3), 1e-12, "gap")
        assert_close(rope.pose(q, "tip")[:3, 3], (0.9 * 2.7, 0.0, 0.0), 1e-12, "end")
        assert rope.pose(q, "link5")[2, 3] < -0.3
    else:
        assert_close(rope.pose(rope.neutral(), "tip")[:3, 3], (0.0, 0.0, -2.7), 1e-14, "tip")


def test_stiffness_is_gathered_in_the_joints():
    """Find EI, GJ and the damping divided by a link's length, and no spring in the pinned end."""
    rope = kt.rope(2.0, 8, bending=0.6, torsion=0.2, damping=0.04, joint="euler", **ROPE)
    springs = [f for f in kt.forces_of(rope.mechanism) if isinstance(f, kt.JointSpring)]
    assert [f.joint for f in springs] == [f"joint{k}" for k in range(2, 9)]
    assert springs[0].stiffness == pytest.approx((2.4, 2.4, 0.8))
    assert rope.joints[3].damping == pytest.approx((0.16,) * 3)
    assert not kt.rope(2.0, 8, **ROPE).mechanism.forces


def test_a_stiff_rope_bends_as_a_beam():
    """Load the tip of a clamped row of links and find the deflection of a cantilever, F L^3 / (3 EI)."""
    n, length, EI, force = 200, 1.3, 50.0, 0.01
    k, link = EI / (length / n), length / n
    arms = np.array([length - j * link for j in range(n)])  # from each joint to the tip
    angles = force * arms / k
    angles[0] /= 2  # the clamped joint represents half a link's curvature
    assert_close(np.sum(angles * arms) / (force * length**3 / (3 * EI)), 1.0, 1e-2, "deflection")


def test_springs_act_in_a_simulation():
    """Bend a light rope without gravity and find its energy conserved by the springs."""
    rope = kt.rope(0.5, 4, bending=0.3, joint="revolute", gravity=(0.0, 0.0, 0.0), **ROPE)
    run = kt.simulate(rope, [0.0, 0.2, 0.1, -0.1], duration=0.05, method="rk4", dt=1e-5)
    stored = 0.3 / 0.125 / 2 * (0.2**2 + 0.1**2 + 0.1**2)
    kinetic = rope.kinetic_energy(run.q, run.qd)
    spring = 0.3 / 0.125 / 2 * (run.q[:, 1:] ** 2).sum(axis=1)
    assert kinetic.max() > 0.1 * stored
    assert_close((kinetic + spring) / stored, np.ones(len(run.t)), 1e-8, "energy")


def test_trees_of_ropes():
    """Attach two ropes to the end of a third and find their tips."""
    link = Link(0.25, 0.1, 0.01)
    trunk = rope_parts(link, 4, prefix="a_")
    end = kt.Placement((0.25, 0.0, 0.0))
    twigs = [rope_parts(link, n, parent="a_link4", start=end, prefix=p) for n, p in ((3, "b_"), (5, "c_"))]
    parts = [trunk, *twigs]
    tree = kt.System(kt.build_mechanism("tree", sum((p[0] for p in parts), ()), sum((p[1] for p in parts), ())))
    assert_close(tree.pose(tree.neutral(), "c_link5")[0, 3], 4 * 0.25 + 4 * 0.25, 1e-14, "tip")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kt.chain(0), "n is 0; give 1 or more links"),
        (lambda: kt.chain(2.5), "n is 2.5; give a whole number of links"),
        (lambda: kt.chain(2, joint="hinge"), "joint is 'hinge'; expected one of fixed, revolute"),
        (lambda: kt.chain(2, mass=-1.0), "the mass is -1; give more than zero"),
        (lambda: kt.chain(2, gravity=(0.0, math.inf, 0.0)), "the gravity is inf; give a finite number"),
        (lambda: kt.rope(1.0, 3, torsion=1.0, **ROPE), "universal joints cannot twist against it; use joint='euler'"),
        (lambda: kt.rope(1.0, 3, bending=1.0, joint="spherical", **ROPE), "spherical joints have no springs"),
        (lambda: kt.rope(1.0, 3, bending=-1.0, **ROPE), "the bending is -1; give 0 or more"),
        (lambda: kt.rope(1.0, 3, ends=("free", "free"), **ROPE), "ends is ('free', 'free'); expected ('pinned',"),
        (lambda: kt.rope(1.0, 3, ends=("pinned", "glued"), **ROPE), "the second end is 'glued'; expected 'free'"),
        (lambda: kt.rope(1.0, 3, ends=("pinned", -2.0), **ROPE), "the load is -2; give 0 or more"),
        (lambda: kt.rope(1.0, 3, span=0.5, **ROPE), "a span is given, but only one end is pinned"),
        (
            lambda: kt.rope(1.0, 3, ends=("pinned", "pinned"), span=1.5, **ROPE),
            "the span is 1.5 m; expected no more than the length, 1 m",
        ),
        (lambda: kt.rope(1.0, 3, joint="fixed", **ROPE), "joint is 'fixed'; expected one of revolute, universal"),
    ],
)
def test_what_is_refused(call, message):
    """Request impossible chains and ropes and read the expected input."""
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value)


def test_springs_of_joints_that_are_not_there():
    """Describe a spring between bodies without a joint, or with a coefficient too many, and read the error."""
    made = kt.chain(3).mechanism

    def forces(body_a: str, name: str):
        element = kt.ForceElement("s", "joint_spring", body_a, "link3", coefficients=((name, 2.0),))
        return kt.forces_of(kt.Mechanism("x", made.bodies, made.joints, forces=(element,)))

    assert forces("link2", "stiffness_1")[0] == kt.JointSpring("joint3", (2.0,), (0.0,))
    with pytest.raises(kt.ModelError, match="no joint has the parent 'link1' and the child 'link3'"):
        forces("link1", "stiffness_1")
    with pytest.raises(kt.ModelError, match="stiffness_2"):
        forces("link2", "stiffness_2")


def test_wrong_arguments_are_told_by_the_name_that_was_called():
    """Omit an argument, mistype one, give gravity as a number, and read the expected input."""
    with pytest.raises(
        TypeError, match=r"^rope\(\): missing a required .*'radius'; it takes length, n, mass_per_metre,"
    ):
        kt.rope(1.3, 7, mass_per_metre=0.37)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^chain\(\): got an unexpected keyword argument 'lenght'; it takes n, joint"):
        kt.chain(3, lenght=0.2)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"^from_dh\(\): got an unexpected keyword argument 'degree'; it takes rows, conv"
    ):
        kt.from_dh([{"joint": "revolute"}], degree=True)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"the gravity has 1 numbers; give 3"):
        kt.chain(3, gravity=9.81)  # type: ignore[arg-type]


def test_more_links_than_memory_are_refused():
    """Request a billion links and read the largest number."""
    with pytest.raises(InputError, match="n is 1,000,000,000; give no more than 2,000,000 links"):
        kt.chain(10**9)
