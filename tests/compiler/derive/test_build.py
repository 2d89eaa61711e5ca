"""Derivatives of every function of a mechanism, in the tangent space, against differences with 50 digits."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import library_state
from high_precision import difference
from interpreted import program
from kinetree.compiler.lower.build import CLOSING, Derivative, Request, signature
from kinetree.dynamics import ALGORITHMS
from kinetree.errors import InputError, UnknownNameError
from kinetree.runtime.derived import program_of
from strategies import State, one_of_each, random_mechanism
from tolerance import assert_close

TREES = [name for name in ALGORITHMS if name not in CLOSING]
QUICK = ("inverse_dynamics", "reactions", "pose", "twist_rate", "momentum", "integrate", "difference")
SOME = ("inverse_dynamics", "forward_dynamics", "pose", "kinetic_energy", "difference")
CLOSED = ("four_bar", "five_bar", "three_rrr", "parallelogram", "gear_train")


def request(mechanism, name: str, derivative: Derivative | None = None) -> Request:
    """Return the checked request of a function, with external wrenches if it depends on them."""
    algorithm = ALGORITHMS[name]
    frame = "tool" if algorithm.frame else None
    return Request(name, frame, wrenches=algorithm.wrenches, derivative=derivative).checked(mechanism)


def arguments(mechanism, inputs, seed: int = 0) -> list[np.ndarray]:
    """Return one random sample of inputs."""
    s, t = State(mechanism, seed, shape=()), State(mechanism, seed + 1, shape=())
    known = {"q": s.q, "qd": s.qd, "qdd": s.qdd, "tau": s.tau, "wrenches": s.wrenches, "q2": t.q, "added": abs(t.tau)}
    return [known[a.name] for a in inputs]


def expected(mechanism, name: str, given: list, tangents: list) -> list[np.ndarray]:
    """Return the derivative of a function along tangents of all inputs, by differences with 50 digits."""
    plain = request(mechanism, name)
    p = program_of(mechanism, plain)
    rate = program(mechanism, "coordinate_rate")
    along = [
        rate.interpret(x, d)[0] if a.name in ("q", "q2") else d
        for a, x, d in zip(p.inputs, given, tangents, strict=True)
    ]
    return difference(p, given, along)


@pytest.mark.parametrize("name", everyday.some(everyday.only(TREES, QUICK)))
def test_products_of_every_function(name):
    """Compare the products with tangents and with cotangents of a function of all joint kinds."""
    mechanism = one_of_each()
    inputs, outputs = signature(mechanism, request(mechanism, name))
    given = arguments(mechanism, inputs)
    rng = np.random.default_rng(3)
    jvp = program_of(mechanism, request(mechanism, name, Derivative("jvp")))
    tangents = [rng.normal(size=a.shape) for a in jvp.inputs[len(inputs) :]]
    wanted = expected(mechanism, name, given, tangents)
    found = jvp.interpret(*given, *tangents)
    for a, x, y in zip(outputs, found, wanted, strict=True):
        assert_close(x, y, 1e-12 * max(1.0, np.abs(y).max()), f"jvp, {a.name}")
    cotangents = [rng.normal(size=a.shape) for a in outputs]
    vjp = program_of(mechanism, request(mechanism, name, Derivative("vjp")))
    gradients = vjp.interpret(*given, *cotangents)
    both = [
        sum(np.vdot(a, b) for a, b in zip(x, y, strict=True)) for x, y in ((gradients, tangents), (cotangents, wanted))
    ]
    size = sum(np.abs(a * b).sum() for a, b in zip(gradients, tangents, strict=True))
    assert_close(both[0], both[1], 1e-12 * max(1.0, size), "vjp")


@pytest.mark.parametrize("name", everyday.only(SOME, ("kinetic_energy", "difference")))
def test_jacobians_and_second_derivatives(name):
    """Compare Jacobians with products, and second derivatives with 50-digit differences of gradients."""
    mechanism = random_mechanism(["free", "revolute", "spherical", "prismatic"], [-1, 0, 0, 2], 8)
    inputs, outputs = signature(mechanism, request(mechanism, name))
    given, rng = arguments(mechanism, inputs), np.random.default_rng(4)
    jvp = program_of(mechanism, request(mechanism, name, Derivative("jvp")))
    tangents = [rng.normal(size=a.shape) for a in jvp.inputs[len(inputs) :]]
    found = jvp.interpret(*given, *tangents)
    jacobian = program_of(mechanism, request(mechanism, name, Derivative("jacobian"))).interpret(*given)
    for k, out in enumerate(outputs):
        parts = jacobian[k * len(inputs) : (k + 1) * len(inputs)]
        summed = sum(np.tensordot(J, d, d.ndim) for J, d in zip(parts, tangents, strict=True))
        assert_close(summed, found[k], 1e-12 * max(1.0, np.abs(found[k]).max()), f"Jacobian, {out.name}")
    cotangents = [rng.normal(size=a.shape) for a in outputs]
    hvp = program_of(mechanism, request(mechanism, name, Derivative("hvp"))).interpret(*given, *cotangents, *tangents)
    vjp = program_of(mechanism, request(mechanism, name, Derivative("vjp")))
    rate = program(mechanism, "coordinate_rate")
    along = [
        rate.interpret(x, d)[0] if a.name in ("q", "q2") else d for a, x, d in zip(inputs, given, tangents, strict=True)
    ]
    wanted = difference(vjp, [*given, *cotangents], [*along, *map(np.zeros_like, cotangents)])
    for x, y in zip(hvp, wanted, strict=True):
        assert_close(x, y, 1e-11 * max(1.0, np.abs(y).max()), "hvp")


def test_states_at_rest_have_derivatives():
    """Differentiate integrate at zero displacement, and difference of equal positions: the identity."""
    mechanism = random_mechanism(["free", "spherical"], [-1, 0], 8)
    q, zero = State(mechanism, shape=()).q, np.zeros(mechanism.nv)
    moved = program_of(mechanism, request(mechanism, "integrate", Derivative("jacobian", ("qd",)))).interpret(q, zero)[
        0
    ]
    back = program_of(mechanism, request(mechanism, "difference", Derivative("jacobian", ("q2",)))).interpret(q, q)[0]
    rates = [program(mechanism, "coordinate_rate").interpret(q, e)[0] for e in np.eye(mechanism.nv)]
    assert_close(moved, np.stack(rates, axis=-1), 1e-15, "integrate")
    assert_close(back, np.eye(mechanism.nv), 1e-14, "difference")


@pytest.mark.parametrize("name", everyday.only(CLOSED, ("four_bar",)))
def test_accelerations_with_loops(name):
    """Differentiate forward dynamics with loops, and find differences of its arithmetic with 50 digits."""
    system, q, qd, _ = library_state(name)
    tau = np.random.default_rng(5).normal(size=system.nv)
    found = system.forward_dynamics_derivatives(q, qd, tau)
    p = program_of(system.mechanism, Request("forward_dynamics").checked(system.mechanism))
    n, zero = system.nv, np.zeros(system.nv)
    for k, J in enumerate(found):
        columns = [difference(p, [q, qd, tau], [e if k == i else zero for i in range(3)])[0] for e in np.eye(n)]
        wanted = np.stack(columns, axis=-1)
        assert_close(J, wanted, 1e-12 * max(np.abs(x).max() for x in found), f"{name}, {'q qd tau'.split()[k]}")


def test_derivatives_along_closed_motions_are_those_of_closed_accelerations():
    """Move a four-bar along its closed motion, and find the change of the accelerations by the chain rule."""
    system, q, qd, _ = library_state("four_bar")
    tau = np.array([1.3, -0.4, 0.7])
    by_q, by_qd, _ = system.forward_dynamics_derivatives(q, qd, tau)
    qdd = system.forward_dynamics(q, qd, tau)
    h = 1e-5
    ends = []
    for side in (h, -h):
        moved = system.assemble(system.integrate(q, side * qd + 0.5 * side**2 * qdd))
        speed = system.closing_speed(moved, qd + side * qdd)
        ends.append(system.forward_dynamics(moved, speed, tau))
    rate = (ends[0] - ends[1]) / (2 * h)
    assert_close(by_q @ qd + by_qd @ qdd, rate, 1e-6 * np.abs(rate).max(), "along the motion")


def test_derivatives_of_long_mechanisms_are_refused():
    """Ask for derivatives of a chain of 70 links, and read what to do."""
    rope = random_mechanism(["revolute"] * 70, [k - 1 for k in range(70)], 3, name="rope")
    told = (
        "jacobian of inverse_dynamics of 'rope': derivatives are straight-line code, and a function of 70 bodies is "
        "compiled with loops over them by default; make the function with lowering='unrolled'"
    )
    with pytest.raises(InputError, match=told):
        Request("inverse_dynamics", derivative=Derivative("jacobian")).checked(rope)
    request = Request("inverse_dynamics", lowering="unrolled", derivative=Derivative("jacobian"))
    assert request.checked(rope).lowering == "unrolled"


def test_wrong_inputs_are_refused():
    """Ask for derivatives with respect to inputs that do not exist, twice, or that are no names."""
    fn = kt.load("stanford").function("forward_dynamics")
    with pytest.raises(
        UnknownNameError, match="no input of forward_dynamics 'qdd'; did you mean 'qd'. available: q, qd, tau"
    ):
        fn.jacobian("qdd")
    with pytest.raises(InputError, match="wrt is 3; give the names of inputs, such as 'q' or"):
        fn.vjp(3)
    with pytest.raises(InputError, match="wrt is q, q; expected each input once"):
        fn.jvp(("q", "q"))
    with pytest.raises(InputError, match=r"wrt is \(\); give the names of inputs"):
        fn.jvp(())
    with pytest.raises(
        InputError, match="jvp of forward_dynamics of 'stanford' is a derivative and has none itself; hvp"
    ):
        fn.jvp("q").jacobian("q")
