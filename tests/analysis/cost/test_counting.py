"""Operation counts: of the programs that run, by the papers' rules, for robots with generic numbers."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
import strategies
from interpreted import compute
from kinetree.analysis.cost import Cost, cost, generic_robot, in_revolutes
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.errors import InputError, ModelError, UnknownNameError
from tolerance import assert_close


def test_the_rules_of_counting():
    """Count a small program by hand: constants count, signs do not, divisions are M."""
    trace = Trace()
    x, y = trace.input(0, 0), trace.input(0, 1)
    result = -(x * 3.0 + y * x) / y - x.sin() * y.cos()
    program = Program.of_trace("f", [Array("x", (2,))], [Array("y", (1,))], trace, [[result]])
    found = Cost("f", **program.cost())
    assert (found.multiplications, found.additions, found.divisions, found.sines) == (3, 2, 1, 2)
    assert (found.M, found.A, str(found)) == (4, 2, "4M 2A")


def test_the_count_is_that_of_the_function():
    """Find the compiled function's own count."""
    arm = kt.load("stanford")
    found = arm.cost("inverse_dynamics")
    own = arm.function("inverse_dynamics").cost()
    assert own == {name: getattr(found, name) for name in own}
    assert arm.cost("inverse_dynamics", wrenches=True).A > found.A
    assert arm.cost("pose", frame="tool").M > 0


def test_nothing_of_a_generic_robot_is_special():
    """Find no zero and no right angle in the numbers of a generic robot, except in the first placement."""
    robot = generic_robot(5)
    for body in robot.bodies:
        assert 0 not in (body.mass, *body.com, *body.inertia)
    for joint in robot.joints[1:]:
        (a, b, c), R = joint.placement.translation, np.array(joint.placement.rotation)
        assert 0 not in (a, b, c)
        assert 0.1 < abs(R[1, 2]) < 0.95 and R[0, 0] == 1
    assert 0 not in robot.gravity
    other = generic_robot(5, seed=2)
    assert other != robot
    for name in ("inverse_dynamics", "forward_dynamics"):
        assert cost(other, name) == cost(robot, name), "the count does not depend on the numbers"


def test_counts_grow_linearly():
    """Add the same cost with every body, for inverse and forward dynamics."""
    for name in ("inverse_dynamics", "forward_dynamics"):
        counts = [cost(generic_robot(n), name) for n in (4, 5, 6, 7)]
        for letter in ("M", "A"):
            steps = np.diff([getattr(c, letter) for c in counts])
            assert len(set(steps)) == 1, (name, letter, steps)


def test_branches_and_kinds():
    """Build a tree of two branches with joints of one, two and three degrees of freedom."""
    tree = generic_robot(7, ("revolute", "universal", "spherical"), branches=2)
    assert tree.parents == (-1, 0, 1, 2, 0, 4, 5)  # one branch after the other
    assert [j.kind for j in tree.joints[:4]] == ["revolute", "universal", "revolute", "spherical"]
    assert tree.nv == 13


def test_in_revolutes_move_alike():
    """Write universal and Euler joints as revolute ones and find the same torques and accelerations."""
    whole = generic_robot(4, ("revolute", "universal", "euler"))
    apart = in_revolutes(whole)
    assert len(apart.bodies) == 7 and apart.nv == whole.nv
    s = strategies.State(whole, 1, 3)
    tau = compute(whole, "inverse_dynamics", s.q, s.qd, s.qdd)
    assert_close(compute(apart, "inverse_dynamics", s.q, s.qd, s.qdd), tau, 1e-12 * np.abs(tau).max())
    qdd = compute(whole, "forward_dynamics", s.q, s.qd, tau)
    assert_close(compute(apart, "forward_dynamics", s.q, s.qd, tau), qdd, 1e-10)


def test_errors_say_what_is_possible():
    """Refuse an unknown function, an impossible one, and a robot without bodies."""
    arm = kt.load("planar_2r")
    with pytest.raises(UnknownNameError, match="no function 'inverse'"):
        arm.cost("inverse")
    limp = kt.build_mechanism("limp", [kt.Body("b")], [kt.Joint("j", "revolute", kt.GROUND, "b")])
    with pytest.raises(ModelError, match="no inertia resists the motion of joint 'j'"):
        cost(limp, "forward_dynamics")
    with pytest.raises(InputError, match="n = 0, branches = 1, 1 kinds; expected 1 or more of each"):
        generic_robot(0)
