"""Forward dynamics with loops: other cuts of the same mechanism, redundant equations, and singular positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import free_coordinates, held_body
from cut_rings import four_bar, moving, spatial
from kinetree import loops
from kinetree.joints import KINDS as JOINTS
from tolerance import assert_close


@pytest.mark.parametrize("kind", everyday.some([k for k in loops.KINDS if k in JOINTS and k != "fixed"]))
def test_a_cut_moves_as_the_joint_of_a_tree(kind):
    """Compare the twist rate of a body on a cut joint with that on the same joint in the tree."""
    on_tree, free = held_body(kind)
    rng = np.random.default_rng(4)
    for _ in range(4):
        q, qd = on_tree.random_state(rng)
        pose = free_coordinates(on_tree.pose(q, "bob"))
        t = on_tree.twist(q, qd, "bob")
        w = np.zeros((1, 6))
        w[0] = rng.normal(size=6)
        qdd = on_tree.forward_dynamics(q, qd, np.zeros(on_tree.nv), wrenches=w)
        dt = on_tree.twist_rate(q, qd, qdd, "bob")
        dv = free.forward_dynamics(pose, t, np.zeros(6), wrenches=w)
        mine = free.twist_rate(pose, t, dv, "bob")
        assert_close(mine, dt, 1e-10 * max(1.0, np.abs(dt).max()), kind)


@everyday.long
@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_same_accelerations_whichever_joint_is_cut(at):
    """Cut a spatial ring without redundant equations elsewhere, and find the same accelerations under wrenches."""
    ring = spatial()
    rates, w = ring.rates(), np.random.default_rng(3).normal(size=(3, 6))
    found = []
    for k in (3, at):
        system = ring.cut(k)
        q, qd = np.zeros(system.nq), ring.speeds(system, k, rates)
        qdd = system.forward_dynamics(q, qd, np.zeros(system.nv), wrenches=ring.pushed(system, w))
        found.append({b.name: system.twist_rate(q, qd, qdd, b.name, axes="world")[:3] for b in system.bodies})
    for name, expected in found[0].items():
        assert_close(found[1][name], expected, 1e-9 * np.abs(expected).max(), name)


def test_redundant_rows_change_nothing():
    """Find the same accelerations of the planar four-bar from five equations as from the two independent ones."""
    whole = four_bar()
    (loop,) = whole.mechanism.loops
    line = kt.System(replace(whole.mechanism, loops=(replace(loop, kind="point_on_line"),)))
    q, qd = whole.neutral(), moving(whole)
    tau = np.array([0.4, -0.3, 0.2])
    expected = line.forward_dynamics(q, qd, tau)
    assert_close(whole.forward_dynamics(q, qd, tau), expected, 1e-11 * np.abs(expected).max(), "qdd")


@everyday.long
def test_redundant_rows_are_found_in_single_precision():
    """Hold a body by a hinge and a pin on its axis, and find the multipliers of double precision, 0 for the pin."""
    on_tree, free = held_body("revolute")
    (hinge,) = free.mechanism.loops
    along = np.array(loops.frame(hinge))[:, 2] * 0.37

    def moved(p: kt.Placement) -> kt.Placement:
        return kt.Placement(tuple((np.array(p.translation) + np.array(p.rotation) @ along).tolist()), p.rotation)

    pin = replace(
        hinge,
        name="pin",
        kind="spherical",
        placement_a=moved(hinge.placement_a),
        placement_b=moved(hinge.placement_b),
    )
    both = kt.System(replace(free.mechanism, loops=(hinge, pin)))
    rng = np.random.default_rng(2)
    q = np.array([free_coordinates(on_tree.pose([x], "bob")) for x in np.linspace(-3.1, 3.1, 101)])
    qd, tau = free.closing_speed(q, rng.normal(size=(101, 6))), rng.normal(size=(101, 6))
    exact, single = both.multipliers(q, qd, tau), both.multipliers(q, qd, tau, dtype="float32")
    assert (exact[:, 5:] == 0.0).all() and (single[:, 5:] == 0.0).all()
    assert_close(single / np.abs(exact).max(), exact / np.abs(exact).max(), 1e-4, "multipliers")


def test_equations_of_motion_hold_with_the_multipliers():
    """Satisfy I qdd + h = tau + J^T lambda and J qdd + dJ/dt qd = 0."""
    system = four_bar()
    q, qd = system.neutral(), moving(system)
    tau = np.array([0.4, -0.3, 0.2])
    qdd = system.forward_dynamics(q, qd, tau)
    multipliers = system.function("multipliers")(q, qd, tau)
    J = system.closure_jacobian(q)
    assert_close(J @ qdd, -system.closure_bias(q, qd), 1e-11, "J qdd")
    force = system.inertia_matrix(q) @ qdd + system.bias_torque(q, qd)
    assert_close(force, tau + J.T @ multipliers, 1e-11, "force")


def test_a_singular_position_has_finite_accelerations():
    """Find finite accelerations where four-bars in a row are flat and have additional degrees of freedom."""
    system = kt.n_four_bars(3)
    q = np.array([-np.pi / 2 if b.name.startswith("rocker") else np.pi / 2 for b in system.bodies])
    qd = np.array([-1.0 if b.name.startswith("rocker") else 1.0 for b in system.bodies])
    assert_close(system.closure_residual(q), np.zeros(15), 1e-14, "closed")
    qdd = system.forward_dynamics(q, qd, np.zeros(system.nv))
    assert np.isfinite(qdd).all()
    assert np.abs(qdd).max() < 1e3


def test_couplings_hold_coordinates_together():
    """Accelerate geared discs as one disc with the reflected inertia J1 + J2 / ratio^2."""
    discs = [kt.Body(n, 1.0, inertia=(0.5, 0.5, j, 0.0, 0.0, 0.0)) for n, j in (("a", 0.3), ("b", 0.7))]
    joints = [kt.Joint(n, "revolute", "ground", n) for n in "ab"]
    gears = kt.Coupling("gears", "b", (("a", -0.4),))
    system = kt.System(kt.build_mechanism("gears", discs, joints, couplings=[gears]))
    qdd = system.forward_dynamics([0.5, -0.2], [2.0, -0.8], [1.3, 0.0])
    expected = 1.3 / (0.3 + 0.4**2 * 0.7)
    assert_close(qdd, [expected, -0.4 * expected], 1e-14, "qdd")


def test_closing_steps_converge_and_speeds_lose_the_least_energy():
    """Close a position quadratically, and find velocity changes with J^T lambda = I dqd."""
    system = four_bar()
    q = np.array([0.02, -0.03, 0.01])
    gaps = []
    for _ in range(5):
        gaps.append(np.abs(system.closure_residual(q)).max())
        q = system.integrate(q, system.closing_step(q))
    assert gaps[0] > 1e-4 and gaps[1] < 0.1 * gaps[0] and gaps[2] < gaps[1] ** 1.5 and gaps[4] < 1e-14
    qd = np.array([1.0, 2.0, 3.0])
    after = system.closing_speed(q, qd)
    assert_close(system.closure_jacobian(q) @ after, np.zeros(5), 1e-13, "J qd")
    impulse = system.inertia_matrix(q) @ (after - qd)
    free = np.linalg.svd(system.closure_jacobian(q))[2][-1]
    assert_close(impulse @ free, 0.0, 1e-13, "impulse along the free direction")


def test_one_sample_has_the_bits_of_a_batch():
    """Find the same bits of a sample alone and in a batch."""
    system = four_bar()
    rng = np.random.default_rng(6)
    q, qd, tau = rng.normal(size=(3, 37, 3))
    whole = system.forward_dynamics(q, qd, tau)
    for k in (0, 5, 36):
        assert (system.forward_dynamics(q[k], qd[k], tau[k]) == whole[k]).all()


def between_sliders(mass: float) -> kt.System:
    """Return two sliders of 10 t, connected by a rod of a given mass that is pinned to both."""

    def block(name: str, m: float) -> kt.Body:
        return kt.Body(name, m, inertia=(0.1 * m, 0.1 * m, 0.1 * m, 0.0, 0.0, 0.0))

    bodies = [block("a", 1e4), block("b", 1e4), block("rod", mass)]
    joints = [
        kt.Joint("a", "prismatic", "ground", "a", axis=(1.0, 0.0, 0.0)),
        kt.Joint("b", "prismatic", "ground", "b", kt.Placement((2.0, 0.0, 0.0)), axis=(1.0, 0.0, 0.0)),
        kt.Joint("rod", "free", "ground", "rod"),
    ]
    loops = [
        kt.Loop("left", "spherical", "a", "rod", placement_b=kt.Placement((-1.0, 0.0, 0.0))),
        kt.Loop("right", "spherical", "b", "rod", placement_b=kt.Placement((1.0, 0.0, 0.0))),
    ]
    return kt.System(kt.build_mechanism("sliders", bodies, joints, loops=loops))


def test_light_bodies_hold_heavy_ones_or_are_refused():
    """Push one slider and move both, with rods down to 1e-10 of their mass; refuse a rod with less than rounding."""
    q, rest = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.zeros(8)
    push = np.array([1e4, *rest[1:]])
    for mass in (1.0, 0.01, 1e-3, 1e-6):
        qdd = between_sliders(mass).forward_dynamics(q, rest, push)
        assert_close(qdd[:2], [1e4 / (2e4 + mass)] * 2, 1e-8, "qdd")
    with pytest.raises(
        kt.ModelError, match=r"loop 'right' connects heavy bodies by bodies .* 1e-11 .* replace them by a rod"
    ):
        between_sliders(1e-8).forward_dynamics(q, rest, push)


def thin_link(moment: float) -> kt.System:
    """Return a crank and a rocker with a link of 1 kg between two ball joints, with a given moment about its axis."""
    bodies = [
        kt.Body("crank", 1.0, (0.1, 0.0, 0.0), (1e-3, 4e-3, 4e-3, 0.0, 0.0, 0.0)),
        kt.Body("link", 1.0, (0.5, 0.0, 0.0), (moment, 1 / 12, 1 / 12, 0.0, 0.0, 0.0)),
        kt.Body("rocker", 1.0, (0.2, 0.0, 0.0), (1e-3, 1e-2, 1e-2, 0.0, 0.0, 0.0)),
    ]
    joints = [
        kt.Joint("crank", "revolute", kt.GROUND, "crank"),
        kt.Joint("ball", "spherical", "crank", "link", kt.Placement((0.2, 0.0, 0.03))),
        kt.Joint("rocker", "revolute", kt.GROUND, "rocker", kt.Placement((0.9, 0.2, 0.1)), axis=(0.0, 1.0, 0.0)),
    ]
    far = kt.Loop("far", "spherical", "link", "rocker", kt.Placement((1.0, 0.0, 0.0)), kt.Placement((0.4, 0.0, 0.0)))
    return kt.System(kt.build_mechanism("thin", bodies, joints, loops=[far]))


@everyday.long
def test_thin_links_hold_as_thick_ones_do():
    """Find the accelerations of crank and rocker with a thick link, for any moment of inertia about the link's axis."""
    thick = thin_link(1e-3)
    q = thick.assemble()
    qd = thick.consistent_speeds(q, {"crank": 1.3, "ball.wx": 0.0})
    tau = np.array([0.3, 0.0, 0.0, 0.0, -0.7])
    expected = thick.forward_dynamics(q, qd, tau)
    for moment in (1e-8, 1e-12):
        found = thin_link(moment).forward_dynamics(q, qd, tau)
        assert_close(found[[0, 4]], expected[[0, 4]], 1e-9, "qdd")
