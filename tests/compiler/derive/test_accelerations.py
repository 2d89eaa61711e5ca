"""Products of forward dynamics by inverse dynamics, compared with those of forward dynamics differentiated itself."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.compiler.derive import jacobians
from kinetree.compiler.derive.build import tangent_charts
from kinetree.compiler.derive.closed import product_of_accelerations
from kinetree.compiler.lower.build import Request, build
from kinetree.model import parse
from strategies import random_mechanism
from tolerance import assert_close

DIRECT = {"jvp": jacobians.jvp, "vjp": jacobians.vjp, "hvp": jacobians.hvp}
CHOICES = [("q", "qd", "tau", "wrenches"), ("tau",), ("qd",), ("wrenches", "q")]


def both(mechanism, request: Request, kind: str, wrt, *, tangent: bool = True):
    """Return the results of a product in both ways at a random sample, and the numbers of operations."""
    charts = tangent_charts(mechanism, request) if tangent else {}
    found = product_of_accelerations(mechanism, request, kind, wrt, charts)
    assert found is not None
    direct = DIRECT[kind](build(mechanism, request), wrt, charts=charts)
    rng = np.random.default_rng(7)
    given = [rng.normal(size=a.shape) for a in direct.inputs]
    return found.interpret(*given), direct.interpret(*given), (len(found.ops), len(direct.ops))


def compare(found, wanted, what: str) -> None:
    """Compare all results, relative to the largest entry of each."""
    for x, y in zip(found, wanted, strict=True):
        assert_close(x, y, 1e-11 * max(1.0, np.abs(y).max()), what)


@pytest.mark.parametrize("wrt", CHOICES, ids="-".join)
@pytest.mark.parametrize("kind", everyday.some(DIRECT))
def test_products_with_respect_to_some_inputs(kind, wrt):
    """Compare products of a free body with limbs and external wrenches, for several choices of inputs."""
    mechanism = random_mechanism(["free", "revolute", "prismatic"], [-1, 0, 0], 8)
    request = Request("forward_dynamics", wrenches=True).checked(mechanism)
    found, wanted, _ = both(mechanism, request, kind, wrt)
    compare(found, wanted, f"{kind} with respect to {', '.join(wrt)}")


@pytest.mark.parametrize("kind", everyday.some(DIRECT))
def test_products_entry_by_entry(kind):
    """Compare products with respect to the four entries of a quaternion."""
    mechanism = random_mechanism(["spherical", "revolute"], [-1, 0], 3)
    request = Request("forward_dynamics").checked(mechanism)
    found, wanted, _ = both(mechanism, request, kind, ("q", "tau"), tangent=False)
    compare(found, wanted, kind)


@pytest.mark.parametrize("kind", DIRECT)
def test_products_with_parameters_and_forces(kind):
    """Compare products with respect to a free mass and length, with damping and a spring at the joint."""
    bob = kt.Body("bob", parse("m"), (parse("l"), 0.1, 0.0))
    joints = [
        kt.Joint("hinge", "revolute", "ground", "arm", axis=(0.0, 1.0, 0.0), damping=(0.3,)),
        kt.Joint("slide", "prismatic", "arm", "bob", axis=(1.0, 0.0, 0.0), damping=(0.7,)),
    ]
    arm = kt.Body("arm", 0.8, (0.2, 0.0, 0.1), (0.03, 0.04, 0.02, 0.0, 0.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    mechanism = kt.build_mechanism("bob", [arm, bob], joints, parameters=free)
    request = Request("forward_dynamics", forces=True).checked(mechanism)
    found, wanted, _ = both(mechanism, request, kind, ("q", "qd", "tau", "parameters"))
    compare(found, wanted, kind)


@pytest.mark.parametrize("kind", everyday.some(DIRECT))
def test_fewer_operations_for_arms(kind):
    """Find fewer operations than those of forward dynamics differentiated itself."""
    mechanism = random_mechanism(["revolute"] * 4, [-1, 0, 1, 2], 5)
    found, wanted, (ours, direct) = both(
        mechanism, Request("forward_dynamics").checked(mechanism), kind, ("q", "qd", "tau")
    )
    compare(found, wanted, kind)
    assert ours < direct


def test_loops_and_other_functions_are_left_to_differentiation():
    """Find no product for a four-bar, nor for inverse dynamics."""
    four_bar = kt.load("four_bar").mechanism
    for mechanism, name in ((four_bar, "forward_dynamics"), (random_mechanism(["revolute"], [-1], 3), "bias_torque")):
        request = Request(name).checked(mechanism)
        assert product_of_accelerations(mechanism, request, "vjp", ("q",), {}) is None
