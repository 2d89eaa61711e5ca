"""Pages of sweeps on flexible bodies against Lagrange's equations, differences and the points of the bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from flexible_mechanisms import beam, body, placement, random_tree, state
from kinetree.compiler.lower.build import Request, build
from kinetree.formulations import lagrange, points
from kinetree.model.beams import points_of
from kinetree.runtime.singularity import weightless_joints
from tolerance import assert_close

SEEDS = everyday.some(range(24))
ALL = [(base, seed) for seed in range(24) for base in ("revolute", "free")]
CASES = everyday.seldom(ALL, ALL[1:])


@pytest.mark.parametrize(("base", "seed"), CASES)
def test_equations_are_those_of_lagrange(base, seed):
    """Find torques, inertia and gravity of random trees by differentiating their energies, and the motion back."""
    mechanism = random_tree(seed, base=base)
    system = kt.System(mechanism)
    q, qd, qdd = state(system, seed)
    w = np.random.default_rng(seed).normal(size=(len(mechanism.bodies), 6))
    e = lagrange.equations(mechanism, q, qd, w)
    tau = system.inverse_dynamics(q, qd, qdd, wrenches=w, forces=False)
    scale = np.abs(tau).max()
    assert_close(e.torque(qdd), tau, 1e-10 * scale, "torques")
    assert_close(e.I, system.inertia_matrix(q), 1e-10 * np.abs(e.I).max(), "I")
    assert_close(e.g, system.gravity_torque(q, forces=False), 1e-10 * scale, "gravity")
    assert_close(
        e.convective + e.g - e.external, system.bias_torque(q, qd, wrenches=w, forces=False), 1e-10 * scale, "h"
    )
    back = system.forward_dynamics(q, qd, tau, wrenches=w, forces=False)
    assert_close(back, qdd, 1e-9 * np.abs(qdd).max() * max(1.0, 1e-7 * np.linalg.cond(e.I)), "qdd")
    inverse = system.inverse_inertia_matrix(q)
    assert_close(inverse @ e.I, np.eye(system.nv), 1e-14 * np.linalg.cond(e.I), "I^-1")
    assert_close(system.kinetic_energy(q, qd), 0.5 * qd @ e.I @ qd, 1e-12 * np.trace(e.I) * (qd @ qd), "kinetic energy")


def slope(function, h: float) -> np.ndarray:
    """Return the derivative of a function at zero by differences of fourth order."""
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h)


@pytest.mark.parametrize(("base", "seed"), CASES)
def test_convective_matrix(base, seed):
    """Find the torques of the bias in C qd, and dI/dt in C + C^T, so that dI/dt - 2 C is skew."""
    system = kt.System(random_tree(seed, base=base))
    q, qd, _ = state(system, seed)
    C = system.convective_matrix(q, qd)
    moving = system.bias_torque(q, qd, forces=False) - system.gravity_torque(q, forces=False)
    assert_close(C @ qd, moving, 1e-12 * np.abs(moving).max(), "C qd")  # 2e-15
    rate = slope(lambda s: system.inertia_matrix(system.integrate(q, s * qd)), 1e-5)
    assert_close(C + C.T, rate, 1e-8 * np.abs(rate).max(), "dI/dt")  # 5e-11


def test_convective_matrix_has_the_symbols_of_christoffel():
    """Find C of a tree of revolute joints and modes in the derivatives of its inertia matrix."""
    rng = np.random.default_rng(4)
    bodies = [kt.Body("b", flexible=beam(rng, (1, 1, 1, 1))), body(rng, "load")]
    links = [kt.Joint("j", "revolute", "ground", "b", placement(rng)), kt.Joint("elbow", "revolute", "b.tip", "load")]
    arm = kt.System(kt.build_mechanism("arm", bodies, links))
    q, qd = arm.random_state(rng)
    rates = np.stack([slope(lambda s, x=x: arm.inertia_matrix(q + s * x), 1e-4) for x in np.eye(arm.nv)])
    first = np.einsum("kij,k->ij", rates, qd) + np.einsum("jik,k->ij", rates, qd) - np.einsum("ijk,k->ij", rates, qd)
    assert_close(arm.convective_matrix(q, qd), first / 2, 1e-8 * np.abs(first).max(), "C")


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_on_nodes_move_as_their_poses(seed):
    """Compare twists, Jacobians and accelerations of a body behind nodes with differences of its poses."""
    system = kt.System(random_tree(seed, base="free"))
    q, qd, qdd = state(system, seed)
    frame, h = system.mechanism.bodies[-1].name, 1e-5

    def at(s: float) -> tuple[np.ndarray, np.ndarray]:
        return system.integrate(q, s * qd), qd + s * qdd

    twist = system.twist(q, qd, frame, axes="world")
    rate = slope(lambda s: system.pose(at(s)[0], frame), 1e-4)
    assert_close(twist[3:], rate[:3, 3], 1e-7, "velocity")
    spin = rate[:3, :3] @ system.pose(q, frame)[:3, :3].T
    assert_close(twist[:3], [spin[2, 1], spin[0, 2], spin[1, 0]], 1e-7, "angular velocity")
    J = system.jacobian(q, frame)
    assert_close(J @ qd, twist, 1e-12 * max(1.0, np.abs(twist).max()), "Jacobian")
    after, before = (system.twist(*at(s), frame, axes="world") for s in (h, -h))
    dt = system.twist_rate(q, qd, qdd, frame, axes="world")
    assert_close(dt, (after - before) / (2 * h), 1e-6 * max(1.0, np.abs(dt).max()), "acceleration")
    assert_close(
        J @ qdd + system.jacobian_rate(q, qd, frame) @ qd, dt, 1e-11 * max(1.0, np.abs(dt).max()), "J qdd + J' qd"
    )
    own = [system.jacobian(at(s)[0], frame, axes="body") for s in (h, -h)]
    rates = system.jacobian_rate(q, qd, frame, axes="body")
    assert_close(rates, (own[0] - own[1]) / (2 * h), 1e-6 * max(1.0, np.abs(rates).max()), "rate in the frame's axes")


@pytest.mark.parametrize("seed", SEEDS)
def test_potential_energy_and_momentum(seed):
    """Find gravity's torques as the slope of the potential energy, and the momentum of the center of mass."""
    system = kt.System(random_tree(seed, base="free"))
    q, qd, _ = state(system, seed)
    h = 1e-5

    def slope(function, along):
        return (function(system.integrate(q, h * along)) - function(system.integrate(q, -h * along))) / (2 * h)

    slopes = [slope(system.potential_energy, x) for x in np.eye(system.nv)]
    g = system.gravity_torque(q, forces=False)
    assert_close(g, slopes, 1e-7 * np.abs(g).max(), "gravity")
    mass = sum(b.mass for b in system.mechanism.bodies)
    moved = slope(system.center_of_mass, qd)
    p = system.momentum(q, qd)[3:]
    assert_close(p, mass * moved, 1e-7 * max(1.0, np.abs(p).max()), "momentum")


def ball_at_the_end(base: str, seed: int) -> tuple[kt.Mechanism, np.ndarray, np.ndarray]:
    """Return a tree whose last body is held by a ball joint to the ground, the place in it, and a closed position."""
    tree = random_tree(seed, base=base)
    q, place = state(kt.System(tree), seed)[0], 0.1 * np.random.default_rng(seed + 99).normal(size=3)
    body = [b.name for b in tree.bodies if b.flexible is None][-1]
    T = kt.System(tree).pose(q, body)
    ends = (kt.Placement(tuple(place)), kt.Placement(tuple(T[:3, :3] @ place + T[:3, 3])))
    return replace(tree, loops=(kt.Loop("ball", "spherical", body, "ground", *ends),)), place, q


@everyday.long
@pytest.mark.parametrize(
    ("base", "seed"), everyday.some([(base, seed) for seed in range(6) for base in ("revolute", "free")])
)
def test_loops_of_random_trees_by_lagrange(base, seed):
    """Find accelerations with a loop through nodes by energies and by the loop's position, both differentiated."""
    ca = pytest.importorskip("casadi")
    mechanism, place, q = ball_at_the_end(base, seed)
    system, rng = kt.System(mechanism), np.random.default_rng(seed)
    qd, tau = system.closing_speed(q, rng.normal(size=system.nv)), rng.normal(size=system.nv)
    w = rng.normal(size=(len(mechanism.bodies), 6))
    tree = replace(mechanism, loops=())
    x, delta, speed = ca.SX.sym("q", system.nq), ca.SX.sym("delta", system.nv), ca.SX.sym("speed", system.nv)
    R, o = lagrange._poses(tree, lagrange._moved(tree, x, delta))[mechanism.body_indices[mechanism.loops[0].body_a]]
    held = o + R @ ca.DM(place)
    parts = (ca.jacobian(held, delta), ca.jtimes(ca.jtimes(held, delta, speed), delta, speed))
    here = ca.Function("loop", [x, speed], [ca.substitute(y, delta, ca.DM.zeros(system.nv)) for y in parts])
    J, bias = (np.asarray(y) for y in here(q, qd))
    assert np.abs(J @ qd).max() < 1e-11
    e = lagrange.equations(tree, q, qd, w)
    units = 1 / np.sqrt(np.diag(e.I))
    whole = np.block([[units[:, None] * e.I * units, -(J * units).T], [J * units, np.zeros((3, 3))]])
    h = e.convective + e.g - e.external
    solved = np.linalg.lstsq(whole, np.concatenate([units * (tau - h), -bias.ravel()]), rcond=1e-13)[0]
    expected = units * solved[: system.nv]
    found = system.forward_dynamics(q, qd, tau, wrenches=w, forces=False)
    size = np.linalg.svd(whole)[1]
    condition = size[0] / size[size > 1e-13 * size[0]][-1]
    assert_close(found, expected, 1e-10 * np.abs(expected).max() * max(1.0, 1e-5 * condition), "qdd")


@everyday.long
@pytest.mark.parametrize("name", ["flexible_four_bar", "flexible_slider_crank"])
def test_loops_by_the_denoc_matrices(name):
    """Find the accelerations of closed mechanisms with flexible bodies by dense equations with multipliers."""
    found = kt.load(name).verify(states=2)
    assert found, str(found)
    assert [row.name for row in found.rows if row.comparisons] == ["denoc", "centre", "lagrange", "loops", "subsystems"]


@pytest.mark.parametrize("modes", [(2, 1, 1, 1), (6, 0, 2, 2), (0, 3)])
def test_energy_is_that_of_the_points(modes):
    """Find the kinetic energy of a beam with large deflections as the sum over its points."""
    rng = np.random.default_rng(5)
    shape = beam(rng, modes, tip_mass=0.4)
    w, v = np.array([0.7, -1.3, 0.4]), np.array([0.5, 0.2, -0.9])
    e, de = (s * np.array(shape.modal.valid) * rng.normal(size=sum(modes)) for s in (1.0, 10.0))
    expected = _energy_of_points(shape, w, v, e, de)
    assert_close(_energy(shape, w, v, e, de), expected, 1e-11 * expected, "kinetic energy")


@pytest.mark.parametrize("shapes", ["polynomials", "eigenmodes"])
@pytest.mark.parametrize("count", [2, 6, 10])
def test_mass_is_positive_within_the_limits(shapes, count):
    """Find positive pivots where all modes of a family are at their limits together."""
    rng = np.random.default_rng(1)
    shape = kt.Beam(1.3, EI=2.3, mass_per_length=0.7, modes=(count,), shapes=shapes)
    limits = np.array(shape.modal.valid)
    for signs in rng.choice((-1.0, 1.0), (20, count)):
        M = shape.modal.moments.at(tuple(signs * limits))
        x, y, z = M.rigid.mc
        first = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        C = np.array([[*c.n, *c.f] for c in M.C])
        rigid = np.block([[np.array(M.rigid.inertia), first], [first.T, M.rigid.m * np.eye(3)]])
        whole = np.block([[rigid, C.T], [C, np.array(M.K)]])[1:, 1:]  # a thin beam has no inertia about its axis
        size = np.sqrt(np.diag(whole))
        assert np.linalg.eigvalsh(whole / np.outer(size, size)).min() > 1e-6


def _energy(shape, w, v, e, de) -> float:
    system = kt.System(
        kt.build_mechanism("one", [kt.Body("b", flexible=shape)], [kt.Joint("j", "free", "ground", "b")])
    )
    return float(system.kinetic_energy([*np.zeros(6), 1.0, *e], [*w, *v, *de]))


def _energy_of_points(shape, w, v, e, de) -> float:
    points = points_of(shape)
    S = points.Phi + np.einsum("njka,k->nja", points.G, e)
    r = points.x + np.einsum("nja,j->na", points.Phi, e) + 0.5 * np.einsum("njka,j,k->na", points.G, e, e)
    speed = v + np.cross(w, r) + np.einsum("nja,j->na", S, de)
    return float(0.5 * points.mass @ (speed**2).sum(axis=1))


@everyday.long
def test_derivatives_are_those_of_lagrange():
    """Find the derivatives of inverse and forward dynamics by differentiating Lagrange's equations once more."""
    ca = pytest.importorskip("casadi")
    rng = np.random.default_rng(3)
    link = kt.Joint("elbow", "revolute", "b.tip", "load", placement(rng), (0.3, 1.0, -0.2))
    bodies = [kt.Body("b", flexible=beam(rng, (1, 1, 1, 0))), body(rng, "load")]
    arm = kt.System(kt.build_mechanism("arm", bodies, [kt.Joint("j", "revolute", "ground", "b"), link]))
    n = arm.nv
    q, qd = arm.random_state(rng)
    qdd = rng.normal(size=n)
    momenta, terms = lagrange._functions(lagrange._Key(arm.mechanism.motion_hash, arm.mechanism))
    x, v, a = (ca.SX.sym(name, n) for name in "xva")
    columns = momenta(ca.repmat(x, 1, n), ca.DM.eye(n))
    convective, g, _ = terms(x, v, ca.DM.zeros(6, len(arm.mechanism.bodies)))
    torque = columns @ a + convective + g
    exact = ca.Function("d", [x, v, a], [columns, *(ca.jacobian(torque, y) for y in (x, v, a))])
    I, *parts = (np.asarray(y) for y in exact(q, qd, qdd))  # noqa: E741 - the papers' letter
    tau = arm.inverse_dynamics(q, qd, qdd, forces=False)
    found = arm.inverse_dynamics_derivatives(q, qd, qdd, forces=False)
    for J, expected in zip(found, parts, strict=True):
        assert_close(J, expected, 1e-10 * np.abs(expected).max(), "of inverse dynamics")
    found = arm.forward_dynamics_derivatives(q, qd, tau, forces=False)
    for J, part in zip(found, (-parts[0], -parts[1], np.eye(n)), strict=True):
        expected = np.linalg.solve(I, part)
        assert_close(J, expected, 1e-10 * np.abs(expected).max(), "of forward dynamics")


def test_a_body_without_deflection_is_the_rigid_one():
    """Lock the modes of a beam at zero and find the torques of the rigid body at rest in its shape."""
    shape = beam(np.random.default_rng(2), (2, 2, 1, 1))
    flexible = kt.build_mechanism("f", [kt.Body("b", flexible=shape)], [kt.Joint("j", "spherical", "ground", "b")])
    rigid = kt.build_mechanism("r", [kt.Body("b", **shape.modal.rigid)], [kt.Joint("j", "spherical", "ground", "b")])
    a, b = kt.System(flexible), kt.System(rigid)
    q, qd, qdd = b.random_state(np.random.default_rng(1))[0], np.array([0.3, -1.1, 0.8]), np.array([1.0, 2.0, -0.4])
    still = np.zeros(6)
    tau = a.inverse_dynamics([*q, *still], [*qd, *still], [*qdd, *still])[:3]
    assert_close(tau, b.inverse_dynamics(q, qd, qdd), 1e-14 * np.abs(tau).max() * 10, "torques")


def test_no_modes_make_the_rigid_robot():
    """Find the bits of the rigid robot, whose links have the mass of the beams and fixed joints to their ends."""

    def link(k: int) -> kt.Beam:
        return kt.Beam(1.3 - 0.4 * k, E=7e10, rho=2700, section=("rectangle", 0.02, 0.03), modes=(0,), tip_mass=0.2 * k)

    rng = np.random.default_rng(8)
    hubs, load = [body(rng, "b0"), body(rng, "b1")], body(rng, "load")
    joints = [
        kt.Joint("j0", "universal", "ground", "b0", placement(rng), (0.2, 1.0, -0.3)),
        kt.Joint("j1", "revolute", "b0.tip", "b1", placement(rng), (0.2, 1.0, 0.4)),
        kt.Joint("w", "spherical", "b1.tip", "load", placement(rng)),
    ]
    bodies, held = [], []
    for k, hub in enumerate(hubs):
        bodies += [hub, kt.Body(f"b{k}.elastic", **link(k).modal.rigid), kt.Body(f"b{k}.tip")]
        held += [kt.Joint(f"e{k}", "fixed", f"b{k}", f"b{k}.elastic")]
        held += [kt.Joint(f"t{k}", "fixed", f"b{k}.elastic", f"b{k}.tip", kt.Placement((link(k).length, 0.0, 0.0)))]
    rigid = kt.System(kt.build_mechanism("rigid", [*bodies, load], [*joints, *held]))
    whole = [replace(hub, flexible=link(k)) for k, hub in enumerate(hubs)]
    flexible = kt.System(kt.build_mechanism("flexible", [*whole, load], joints))
    q, qd = rigid.random_state(rng, 20)
    qdd = rng.normal(size=qd.shape)
    for name, inputs in (
        ("inverse_dynamics", (q, qd, qdd)),
        ("forward_dynamics", (q, qd, qdd)),
        ("inertia_matrix", (q,)),
    ):
        assert np.array_equal(getattr(flexible, name)(*inputs), getattr(rigid, name)(*inputs)), name


def test_long_chains_of_flexible_bodies():
    """Count the operations of a chain of 24 beams, of 72 bodies: each further beam adds the same number."""
    counts = {}
    for n in (4, 8, 24):
        shape = kt.Beam(0.8, E=7e10, rho=2700, section=("rectangle", 0.02, 0.02), modes=(1, 1))
        above = ["ground", *(f"b{k}.tip" for k in range(n))]
        joints = [kt.Joint(f"j{k}", "revolute", above[k], f"b{k}", axis="yz"[k % 2]) for k in range(n)]
        system = kt.System(kt.build_mechanism("chain", [kt.Body(f"b{k}", flexible=shape) for k in range(n)], joints))
        program = build(system.mechanism, Request("forward_dynamics", lowering="unrolled").checked(system.mechanism))
        counts[n] = sum(program.cost().values())
        assert not weightless_joints(system.mechanism)
    each = (counts[8] - counts[4]) / 4
    assert counts[24] == counts[8] + 16 * each


def test_what_does_not_know_flexible_bodies_says_so():
    """Refuse rolled code and the routes of rigid bodies."""
    system = kt.System(random_tree(1, count=3))
    q, qd, _ = state(system, 1)
    with pytest.raises(kt.InputError, match=r"code with loops over the bodies does not know flexible ones such as 'b0"):
        system.function("inverse_dynamics", lowering="rolled", forces=False)
    with pytest.raises(
        kt.ModelError, match=r"joint 'b0\.modes' is within a flexible body, which this function does not"
    ):
        points.equations(system.mechanism, q, qd)
    found = system.verify(states=2)
    assert [row.name for row in found.rows if row.comparisons] == ["denoc", "centre", "lagrange"]
    assert found
