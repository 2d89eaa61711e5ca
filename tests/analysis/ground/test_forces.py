"""Ground forces of a motion: the loop closed by forward dynamics with hard contact, and verdicts where none exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.analysis.ground.balance_points import center_of_pressure, plane_of
from kinetree.errors import InputError, UnknownNameError
from legged_bodies import standing
from tolerance import assert_close


def moving(seed: int, slips: bool) -> tuple:
    """Return a trunk on three legs in a motion that keeps its feet on their plane; with `slips`, one of them slides."""
    rng = np.random.default_rng(seed)
    system, q, contacts = standing(rng, friction=(0.9, 1.1, 0.7))
    whole = kt.System(replace(system.mechanism, contacts=tuple(contacts)))
    _, J = jacobian(whole, q, np.zeros(system.nv))
    rows = J.reshape(-1, system.nv)
    aim = np.zeros(9)
    if slips:
        aim[4:6] = 0.21, -0.13
    onward = np.linalg.svd(rows)[2][9:].T
    qd = np.linalg.pinv(rows) @ aim + 0.3 * onward @ rng.normal(size=onward.shape[1])
    bias, _ = jacobian(whole, q, qd)
    wanted = -bias.ravel()
    if slips:
        wanted[4:6] += 0.4, 0.3
    qdd = np.linalg.pinv(rows) @ wanted + onward @ rng.normal(size=onward.shape[1])
    return system, q, qd, qdd, contacts


def jacobian(system: kt.System, q, qd) -> tuple[np.ndarray, np.ndarray]:
    """Return bias and J of the contacts."""
    from kinetree.analysis.ground.forces import contact_motion

    _, found = contact_motion(system, system.mechanism, q, qd, None)
    return found[2], found[3]


@pytest.mark.slow
@pytest.mark.parametrize("case", [(7, False), (7, True), (10, False)])
def test_simulation_returns_the_motion_and_the_forces(case) -> None:
    """Apply the torques in a run with hard contact, which begins with the accelerations and forces that were given."""
    seed, slips = case
    system, q, qd, qdd, contacts = moving(seed, slips)
    found = system.ground_forces(q, qd, qdd, contacts=contacts)
    assert found.realized, found.status
    assert found.modes.tolist() == ([1, 2, 1] if slips else [1, 1, 1])
    assert not found.tau[:6].any() and "the motion is realized" in str(found)
    torque = found.tau.copy()
    run = kt.simulate(
        system, q, qd, times=[0.0, 1e-4], contacts=contacts, control=kt.TorqueFunction(lambda t, q, qd: torque.tolist())
    )
    assert_close(run["qdd"][0], qdd, 1e-9 * np.abs(qdd).max(), "accelerations of the run")
    assert_close(run["contact_forces"][0], found.forces, 1e-9 * np.abs(found.forces).max(), "forces of the run")
    fixed = system.inverse_dynamics(q, qd, qdd, wrenches=run["wrenches"][0])
    assert_close(found.tau, fixed, 1e-8, "torques with the forces as external wrenches")
    plane = plane_of(system.mechanism, contacts[0].surface)
    pressed = center_of_pressure(found.points, found.world, plane)
    wanted = system.zero_moment_point(q, qd, qdd, plane=contacts[0].surface)
    assert_close(pressed, wanted, 1e-9, "center of pressure and zero-moment point")
    weight = sum(b.mass for b in system.bodies) * np.array(system.mechanism.gravity)
    momentum = system.momentum(q, qd)  # [angular; linear]
    h = 1e-6
    rate = (system.momentum(system.integrate(q, h * qd), qd + h * qdd) - momentum) / h
    assert_close(found.wrench[3:], rate[3:] - weight, 1e-3, "total force against the rate of the momentum")


@everyday.long
def test_many_instants_are_one_call() -> None:
    """Return for a batch of instants the results of each alone."""
    system, q, qd, qdd, contacts = moving(7, False)
    scale = np.linspace(0.0, 1.0, 7)[:, None]
    many = system.ground_forces(q, scale * qd, scale**2 * qdd, contacts=contacts)
    assert many.forces.shape == (7, 3, 3) and many.status.shape == (7,) and many.realized.all()
    one = system.ground_forces(q, scale[3] * qd, scale[3] ** 2 * qdd, contacts=contacts)
    assert_close(many.forces[3], one.forces, 1e-11, "forces")
    assert_close(many.tau[3], one.tau, 1e-11, "torques")
    kept = len(system._parts)
    system.ground_forces(q, qd, qdd, contacts=[replace(c, friction=0.37) for c in contacts])
    assert len(system._parts) == kept, "friction compiles no other function"


def test_motions_that_cannot_be_realized_are_named() -> None:
    """Report the missing wrench, cones at their limit, feet that would pull, and feet that move into the ground."""
    system, q, *_, contacts = moving(7, False)
    rest = np.zeros(system.nv)
    slippery = [replace(c, friction=0.05) for c in contacts]
    found = system.ground_forces(q, rest, rest, contacts=slippery)
    assert not found.realized and found.missing > 1e-3 and found.at_limit.any()
    assert "are missing at base." in str(found.status) and "friction is at its limit at" in str(found.status)
    need = system.inverse_dynamics(q, rest, rest)[:6]
    lack = need - found.residual[:6]
    total = system.ground_forces(q, rest, rest, contacts=slippery).residual
    assert_close(total[:6] + lack, need, 1e-12, "missing and present wrench")
    one = system.ground_forces(q, rest, rest, contacts=contacts, touching="foot1")
    assert one.modes.tolist() == [0, 1, 0] and one.missing > 0.1
    none = system.ground_forces(q, rest, rest, contacts=contacts, touching=[False] * 3)
    assert "nothing touches the ground" in str(none.status)
    fall = system.forward_dynamics(q, rest, rest)
    flight = system.ground_forces(q, rest, fall, contacts=contacts, touching=[False] * 3)
    assert flight.realized and not flight.forces.any()
    assert_close(flight.tau, rest, 1e-12, "torques in free flight")
    into = system.ground_forces(q, rest, np.array([0, 0, 0, 0, 0, -1.0, *rest[6:]]), contacts=contacts)
    assert not into.realized and "moves into its surface" in str(into)
    hop = rest.copy()
    hop[3:6] = np.array(contacts[0].surface.placement.rotation)[:, 2]
    hop[3:6] *= 12.0
    away = system.ground_forces(q, rest, hop, contacts=contacts)
    assert not away.modes.any() and not away.realized


def with_rods(system: kt.System, q: np.ndarray) -> kt.System:
    """Return the trunk with a rod from it to each shank, which moves the knee as the hip turns."""
    T = system.poses(q)
    rods = []
    for k in range(3):
        top, low = (0.02 + 0.03 * k, -0.04, 0.07), (0.05, 0.01, -0.03)
        length = np.linalg.norm((T[2 + 2 * k] @ [*low, 1.0] - T[0] @ [*top, 1.0])[:3])
        rods.append(
            kt.Loop(f"rod{k}", "rod", "trunk", f"shank{k}", kt.Placement(top), kt.Placement(low), length=length)
        )
    return kt.System(replace(system.mechanism, loops=tuple(rods)))


def rodded() -> tuple:
    """Return a trunk on legs whose knees are moved by rods, in a motion that keeps its feet at rest, and the drives."""
    system, q, *_, contacts = moving(7, False)
    closed = with_rods(system, q)
    whole = kt.System(replace(closed.mechanism, contacts=tuple(contacts)))
    _, J = jacobian(whole, q, np.zeros(system.nv))
    rows = np.concatenate([J.reshape(-1, system.nv), closed.closure_jacobian(q)])
    qd = 0.3 * np.linalg.svd(rows)[2][len(rows) :].T @ np.array([0.7, -1.1, 0.4])
    bias, _ = jacobian(whole, q, qd)
    qdd = np.linalg.pinv(rows) @ -np.concatenate([bias.ravel(), closed.closure_bias(q, qd)])
    return closed, q, qd, qdd, contacts, [f"hip{k}" for k in range(3)]


@everyday.long
def test_loops_carry_the_forces_of_driven_joints() -> None:
    """Drive the hips of legs whose knees are moved by rods, and find the torques of actuation under these forces."""
    closed, q, qd, qdd, contacts, drives = rodded()
    scale = np.array([[0.0], [1.0]])
    found = closed.ground_forces(q, scale * qd, scale**2 * qdd, contacts=contacts, actuated=drives)
    assert found.realized.all(), found.status
    assert (found.modes == 1).all()
    assert not found.tau[:, [*range(6), 8, 11, 14]].any()
    T = closed.poses(q)
    wrenches = np.zeros((2, len(T), 6))
    for k in range(3):
        R, r = T[2 + 2 * k, :3, :3], T[2 + 2 * k, :3, 3]
        wrenches[:, 2 + 2 * k, :3] = np.cross(found.points[:, k] - r, found.world[:, k]) @ R
        wrenches[:, 2 + 2 * k, 3:] = found.world[:, k] @ R
    same = closed.actuation(np.stack([q, q]), scale * qd, scale**2 * qdd, drives, wrenches=wrenches)
    assert same.achieved.all(), same
    assert_close(found.tau, same.tau, 1e-9, "torques with the forces as external wrenches")
    assert_close(found.residual, 0 * found.residual, 1e-10, "missing forces")


def test_missing_forces_of_closed_mechanisms_are_named() -> None:
    """Stand on slippery ground, and find drives, loops, ground forces and missing forces in balance with the weight."""
    closed, q, qd, _, contacts, drives = rodded()
    found = closed.ground_forces(
        q, 0 * qd, 0 * qd, contacts=[replace(c, friction=0.05) for c in contacts], actuated=drives
    )
    assert not found.realized and found.at_limit.any() and "are missing at" in str(found.status)
    whole = kt.System(replace(closed.mechanism, contacts=tuple(contacts)))
    _, J = jacobian(whole, q, 0 * qd)
    need = closed.tree.inverse_dynamics(q, 0 * qd, 0 * qd)
    left = need - found.tau - np.einsum("ckv,ck->v", J, found.forces) - found.residual
    allowed = np.linalg.svd(closed.closure_jacobian(q))[2][3:]
    assert_close(allowed @ left, np.zeros(12), 1e-10, "forces beyond those of the loops")


@pytest.mark.slow
def test_simulation_with_loops_returns_the_motion_and_the_forces() -> None:
    """Apply the torques of driven hips in a run with hard contact, and find accelerations and forces as they were."""
    closed, q, qd, qdd, contacts, drives = rodded()
    found = closed.ground_forces(q, qd, qdd, contacts=contacts, actuated=drives)
    torque = kt.TorqueFunction(lambda t, q, qd: found.tau.tolist())
    run = kt.simulate(closed, q, qd, times=[0.0, 1e-4], contacts=contacts, control=torque)
    assert_close(run["qdd"][0], qdd, 1e-9 * np.abs(qdd).max(), "accelerations of the run")
    assert_close(run["contact_forces"][0], found.forces, 1e-9 * np.abs(found.forces).max(), "forces of the run")


@pytest.mark.slow
def test_boxes_on_each_other_press_with_their_weight() -> None:
    """Stack two boxes: the lower contacts carry both weights, the upper ones that of the upper box alone."""
    sizes, masses = {"lower": 0.4, "upper": 0.3}, {"lower": 3.1, "upper": 1.7}
    bodies = [kt.Body(x, masses[x], inertia=(0.02, 0.03, 0.04, 0.0, 0.0, 0.0)) for x in sizes]
    joints = [kt.Joint(f"root_{x}", "free", kt.GROUND, x) for x in sizes]
    stack = kt.System(kt.build_mechanism("stack", bodies, joints))
    on_top = kt.Surface("plane", "lower", kt.Placement((0.0, 0.0, 0.1)))
    contacts = [
        kt.Contact("low", "lower", "box", (0.4, 0.3, 0.2), friction=0.6),
        kt.Contact("high", "upper", "box", (0.3, 0.2, 0.1), surface=on_top, friction=0.5),
    ]
    q = stack.neutral()
    q[2], q[9], q[7] = 0.1, 0.25, 0.03
    still = np.zeros(stack.nv)
    found = stack.ground_forces(q, still, still, contacts=contacts)
    assert found.realized and found.grounded.tolist() == [True] * 8 + [False] * 8
    assert_close(found.forces[:8, 0].sum(), 4.8 * 9.81, 1e-10, "both weights")
    assert_close(found.forces[8:, 0].sum(), 1.7 * 9.81, 1e-10, "upper weight")
    assert_close(found.wrench[3:], [0.0, 0.0, 4.8 * 9.81], 1e-10, "force of the ground")
    run = kt.simulate(stack, q, times=[0.0, 0.1], contacts=contacts)
    balance = kt.ground_balance(run, plane=kt.Placement())
    assert_close(balance.zero_moment_point, balance.center_of_pressure, 1e-9, "both points")
    assert_close(balance.zero_moment_point[0], [0.03 * 1.7 / 4.8, 0.0, 0.0], 1e-10, "below the center of mass")


def test_bad_input_is_refused() -> None:
    """Refuse mechanisms without undriven joints, unknown contacts and wrong shapes."""
    system, q, qd, qdd, contacts = moving(7, False)
    with pytest.raises(UnknownNameError, match="touching: no contact 'foot9'; did you mean 'foot2'"):
        system.ground_forces(q, qd, qdd, contacts=contacts, touching=["foot9"])
    with pytest.raises(InputError, match=r"touching has shape \(2,\) and type bool; give names of contacts, or truth"):
        system.ground_forces(q, qd, qdd, contacts=contacts, touching=[True, False])
    with pytest.raises(InputError, match="'trunk_on_legs' has no contacts"):
        system.ground_forces(q, qd, qdd)
    arm = kt.load("planar_2r")
    tip = kt.Contact("tip", "link2")
    with pytest.raises(
        InputError, match="drives determine every motion of 'planar_2r', .* name the joints with a drive"
    ):
        arm.ground_forces([0.1, 0.2], [0, 0], [0, 0], contacts=tip)
    bar = kt.load("four_bar")
    q, still = bar.assemble(), np.zeros(bar.nv)
    knock = kt.Contact("c", bar.bodies[0].name)
    with pytest.raises(InputError, match="drives determine every motion of 'four_bar'"):
        bar.ground_forces(q, still, still, contacts=knock)
    with pytest.raises(InputError, match="qd opens the loops: .* would part at"):
        bar.ground_forces(q, still + 1.3, still, contacts=knock, actuated=[])
