"""Derivatives of inverse and forward dynamics by pages of sweeps, on random trees and against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from interpreted import STEP, evaluate, program
from kinetree.compiler.derive.build import page, tangent_charts
from kinetree.compiler.derive.jacobians import derivative, weight
from kinetree.compiler.lower.build import Derivative, Request
from kinetree.joints import kind
from kinetree.runtime.derived import program_of
from public_robots import calculable, public_robots
from strategies import ALL, State, examples, moving_mechanisms, random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps
CONSTANT = ("revolute", "prismatic", "helical", "cylindrical", "universal", "euler", "spherical", "free")
"""Kinds whose motion is constant in the child, or that are split into such joints."""


def derivatives(mechanism, name: str, s: State) -> list[np.ndarray]:
    """Return the Jacobians by the page of sweeps, with external wrenches, by plain NumPy."""
    order = ("q", "qd", "qdd" if name == "inverse_dynamics" else "tau")
    found = page(mechanism, Request(name, wrenches=True).checked(mechanism), order)
    assert found is not None
    return found.interpret(s.q, s.qd, s.qdd if name == "inverse_dynamics" else s.tau, s.wrenches)


def complex_steps(mechanism, name: str, s: State) -> list[np.ndarray]:
    """Return the same Jacobians by complex steps along each direction of the tangent space."""
    p, rate = program(mechanism, name, wrenches=True), program(mechanism, "coordinate_rate")
    third = s.qdd if name == "inverse_dynamics" else s.tau
    inputs = [s.q, s.qd, third, s.wrenches.reshape(*s.q.shape[:-1], -1)]
    out = []
    for k in range(3):
        columns = []
        for e in np.eye(mechanism.nv):
            d = rate.interpret(s.q, e)[0] if k == 0 else np.broadcast_to(e, s.qd.shape)
            moved = [x + 1j * STEP * d if i == k else x + 0j for i, x in enumerate(inputs)]
            entries = evaluate(p, *(np.moveaxis(x, -1, 0) for x in moved))
            columns.append(np.stack([np.broadcast_to(x, s.q.shape[:-1]) for x in entries], axis=-1).imag / STEP)
        out.append(np.stack(columns, axis=-1))
    return out


@given(moving_mechanisms(CONSTANT, most=6))
@examples(8)
def test_pages_agree_with_complex_steps(mechanism):
    """Differentiate random trees with external wrenches, and find complex steps of the dynamics."""
    s = State(mechanism)
    for name in ("inverse_dynamics", "forward_dynamics"):
        found, wanted = derivatives(mechanism, name, s), complex_steps(mechanism, name, s)
        condition = 1.0
        if name == "forward_dynamics":
            I = program(mechanism, "inertia_matrix").interpret(s.q)[0]  # noqa: E741 - the papers' letter
            condition = float(np.linalg.cond(I).max())
        size = max(np.abs(x).max() for x in wanted)
        for a, b in zip(found, wanted, strict=True):
            bound = max(1e-12, 8 * EPS * condition) * size
            assert_close(a, b, bound, f"derivatives of {name}")


def test_pages_take_fewer_operations_than_differentiation():
    """Count the operations of a branched robot on a free base: fewer than two thirds of those of reverse mode."""
    mechanism = random_mechanism(["free", *["revolute"] * 6], [-1, 0, 1, 2, 0, 4, 5], 4)
    request = Request("inverse_dynamics").checked(mechanism)
    order = ("q", "qd", "qdd")
    sweeps = page(mechanism, request, order)
    assert sweeps is not None
    plain = derivative(
        program(mechanism, "inverse_dynamics"), order, mode="reverse", charts=tangent_charts(mechanism, request)
    )
    assert 3 * weight(sweeps) < 2 * weight(plain)


@pytest.mark.parametrize("name", [k for k in ALL if kind(k).NV and k not in CONSTANT])
def test_other_joints_are_differentiated(name):
    """Request the Jacobian of joints whose motion depends on q: no page applies, and complex steps agree."""
    mechanism = random_mechanism(["revolute", name, "revolute"], [-1, 0, 1], 2)
    request = Request("inverse_dynamics", wrenches=True).checked(mechanism)
    assert page(mechanism, request, ("q",)) is None
    s = State(mechanism)
    wanted = Request("inverse_dynamics", wrenches=True, derivative=Derivative("jacobian", ("q", "qd", "qdd")))
    found = program_of(mechanism, wanted.checked(mechanism)).interpret(s.q, s.qd, s.qdd, s.wrenches)
    expected = complex_steps(mechanism, "inverse_dynamics", s)
    size = max(np.abs(x).max() for x in expected)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-12 * size, "derivatives by differentiation")


def jacobians(mechanism, name: str, *state) -> list[np.ndarray]:
    """Return all Jacobians of a function by plain NumPy, which takes less time than compiling large robots."""
    return program_of(mechanism, Request(name, derivative=Derivative("jacobian")).checked(mechanism)).interpret(*state)


def compare_with_pinocchio(system: kt.System) -> None:
    """Compare both derivatives of a robot at one state, without its couplings, as Pinocchio has none."""
    pin = pytest.importorskip("pinocchio")
    from pinocchio_peer import peer

    tree = system.tree
    s, p = State(tree.mechanism, shape=()), peer(tree.mechanism)
    m, d = p.model, p.data
    qd, qdd, tau = map(p.speeds, (s.qd, s.qdd, s.tau))
    dq, dv, I = pin.computeRNEADerivatives(m, d, s.q, qd, qdd)  # noqa: E741 - the papers' letter
    found = jacobians(tree.mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)
    expected = (dq, dv, np.triu(I) + np.triu(I, 1).T)
    size = max(np.abs(b).max() for b in expected)  # gravity has no effect on a single vertical axis
    for a, b in zip(found, expected, strict=True):
        bound = max(1e-11 * np.abs(b).max(), 4 * EPS * size)
        assert_close(p.matrix(a), b, bound, "inverse dynamics against Pinocchio")
    found = jacobians(tree.mechanism, "forward_dynamics", s.q, s.qd, s.tau)
    wanted = pin.computeABADerivatives(m, d, s.q, qd, tau)
    condition = np.linalg.cond(jacobians(tree.mechanism, "inverse_dynamics", s.q, s.qd, s.qdd)[2])
    size = max(np.abs(b).max() for b in wanted)
    for a, b in zip(found, wanted, strict=True):
        full = np.triu(b) + np.triu(b, 1).T if b is wanted[2] else b
        bound = max(max(1e-11, 8 * EPS * condition) * np.abs(full).max(), 4 * EPS * size)
        assert_close(p.matrix(a), full, bound, "forward dynamics against Pinocchio")


@pytest.mark.peers
@pytest.mark.parametrize("base", everyday.only(["fixed", "free"], ["fixed"]))
def test_an_arm_against_pinocchio(base):
    """Compare the derivatives of an arm with Pinocchio's, on a fixed and on a free base."""
    compare_with_pinocchio(kt.load(next(p for p in public_robots() if p.name == "ur5_robot.urdf"), base=base))


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_all_public_robots_against_pinocchio(base):
    """Compare the derivatives of all public robots with Pinocchio's."""
    count = 0
    for system in calculable(public_robots(), base):
        if len(system.bodies) > 64:
            continue
        try:
            compare_with_pinocchio(system)
        except RuntimeError as error:  # the peer refuses inertias that no body can have
            assert "inertia should be positive" in str(error)
            continue
        count += 1
    assert count > 20
