"""Derivatives of accelerations with loops: the implicit function against the derivative of the whole Program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from closed_mechanisms import closed_mechanisms, motion
from interpreted import program
from kinetree.compiler.derive.build import tangent_charts
from kinetree.compiler.derive.closed import closed_accelerations
from kinetree.compiler.derive.jacobians import derivative
from kinetree.compiler.lower.build import Derivative, Request
from kinetree.runtime.derived import program_of
from rounding_scales import dynamics_condition
from strategies import examples, random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps
ORDER = ("q", "qd", "tau")


@pytest.mark.slow
@given(closed_mechanisms(most=4, loops=1))
@examples(12)
def test_random_loops(drawn):
    """Compare both derivatives at closed positions of random mechanisms."""
    mechanism, q = drawn
    qd, _ = motion(mechanism, q)
    tau = np.random.default_rng(1).normal(size=mechanism.nv)
    request = Request("forward_dynamics").checked(mechanism)
    charts = tangent_charts(mechanism, request)
    implicit = closed_accelerations(mechanism, request, ORDER, charts)
    if implicit is None:
        return
    found = implicit.interpret(q, qd, tau)
    whole = derivative(program(mechanism, "forward_dynamics"), ORDER, mode="forward", charts=charts)
    wanted = whole.interpret(q, qd, tau)
    size = max(np.abs(x).max() for x in wanted)
    bound = max(1e-9, 1e3 * EPS * dynamics_condition(mechanism, q) ** 2) * size
    for name, a, b in zip(ORDER, found, wanted, strict=True):
        assert_close(a, b, bound, f"derivative with respect to {name}")


def test_trees_and_other_functions_are_not_implicit():
    """Leave trees, other functions and the forces of the mechanism to the other ways."""
    tree = random_mechanism(["revolute", "prismatic"], [-1, 0], 3)
    request = Request("forward_dynamics").checked(tree)
    assert closed_accelerations(tree, request, ("q",), tangent_charts(tree, request)) is None
    slope = program_of(tree, Request("forward_dynamics", derivative=Derivative("jacobian", ("tau",))).checked(tree))
    assert [a.name for a in slope.outputs] == ["dqdd_dtau"]
