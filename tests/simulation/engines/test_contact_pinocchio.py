"""Contact beside Pinocchio's solvers: forces and accelerations of the same states, by ADMM and by Gauss-Seidel.

Pinocchio solves for the impulses of one step: W p + J (v + h a) with a the acceleration without contacts. From rest,
p / h are the forces of the accelerations at this instant. In motion they differ from these by the order of h.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from tolerance import assert_close
from touching_bodies import G, box_on_slope, ladder

pytestmark = pytest.mark.slow
pin = pytest.importorskip("pinocchio", minversion="4.0")

METHODS = ("ADMM", "PGS")
TOL = 1e-12
"""The tolerance of Pinocchio's solvers, of velocities and impulses."""


def impulses(W: np.ndarray, g: np.ndarray, models, datas, method: str) -> np.ndarray:
    """Return the impulses of Pinocchio's solver; its rows are two tangents, then the normal."""
    settings = getattr(pin, f"{method}SolverSettings")()
    settings.max_iterations, settings.solve_ncp = 20_000, True
    settings.absolute_feasibility_tol = settings.relative_feasibility_tol = TOL
    settings.absolute_complementarity_tol = settings.relative_complementarity_tol = TOL
    result = getattr(pin, f"{method}SolverResult")()
    solver = getattr(pin, f"{method}ConstraintSolver")(len(g))
    solver.solve(pin.DelassusOperatorDense(W), g, models, datas, settings, result)
    assert result.converged
    return np.array(result.retrieveConstraintImpulses())


def step_of_pinocchio(system, contacts, q, qd, tau, h: float, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return accelerations and forces [nc, 3] (normal, tangents) of one step of length h with point contacts.

    The rates of J, which a step of Pinocchio's examples leaves out, are added: they belong to the accelerations.
    """
    from pinocchio_peer import peer, se3

    other = peer(system.mechanism)
    model, data = other.model, other.data
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    pin.forwardKinematics(model, data, q)
    for contact in contacts:
        joint, body = other.bodies[contact.body]
        own = body * se3(contact.placement)
        place = (data.oMi[joint] * own).translation
        plane = pin.SE3(np.array(contact.surface.placement.rotation, dtype=float), place)
        made = pin.PointContactConstraintModel(model, 0, plane, joint, own)
        made.setFriction(float(contact.friction))
        models.append(pin.ConstraintModel(made))
        datas.append(models[-1].createData())
    v, torque = other.speeds(qd), other.speeds(tau)
    free = pin.aba(model, data, q, v, torque)
    pin.computeJointJacobians(model, data, q)
    for one, own in zip(models, datas, strict=True):
        one.calc(model, data, own)
    J = pin.getConstraintsJacobian(model, data, models, datas)
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    bias = []
    for contact in contacts:
        joint, body = other.bodies[contact.body]
        own = body * se3(contact.placement)
        point = pin.Frame("point", joint, own, pin.FrameType.OP_FRAME)
        a = pin.getFrameClassicalAcceleration(
            model, data, joint, point.placement, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        bias.append(np.array(contact.surface.placement.rotation, dtype=float).T @ a.linear)
    answer = np.linalg.solve(pin.crba(model, data, q, pin.Convention.WORLD), J.T)
    p = impulses(J @ answer, J @ (v + h * free) + h * np.concatenate(bias), models, datas, method)
    return other.speeds(free + answer @ p / h), (p / h).reshape(-1, 3)[:, [2, 0, 1]]


def here(system, contacts, q, qd, tau) -> tuple[np.ndarray, np.ndarray]:
    """Return accelerations and forces at the start of a run from event to event."""
    torque = list(map(float, tau))
    run = kt.simulate(
        system, q, qd, times=[0.0, 0.05], contacts=contacts, control=kt.TorqueFunction(lambda t, q, qd: torque)
    )
    return run["qdd"][0], run["contact_forces"][0]


def corners(contact: kt.Contact) -> list[kt.Contact]:
    """Return points at the four lower corners of a box."""
    x, y, z = contact.size
    return [
        kt.Contact(f"c{i}{j}", "box", placement=(i * x / 2, j * y / 2, -z / 2), surface=contact.surface,
                   friction=contact.friction)
        for i in (-1, 1) for j in (-1, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", [(20.0, 0.3, 0.0), (20.0, 0.5, 0.0), (0.0, 0.5, 7.0), (0.0, 0.5, 11.0)])
def test_a_block_slides_or_sticks_alike(case, method) -> None:
    """Release a block on a slope, or pull one on the level: it slides, or holds, with the same acceleration."""
    degrees, mu, pull = case
    angle = math.radians(degrees)
    system, q, box = box_on_slope(angle, mu)
    tau = np.array([0, 0, 0, pull, 0, 0.0])
    points = corners(box)
    ours, forces = here(system, points, q, np.zeros(6), tau)
    theirs, other = step_of_pinocchio(system, points, q, np.zeros(6), tau, 1.0, method)
    assert_close(theirs, ours, 1e-9 * G, "accelerations")
    assert_close(other[:, 0].sum(), forces[:, 0].sum(), 1e-8, "normal forces together")
    expected = max(0.0, pull / 2.0 + G * math.sin(angle) - mu * G * math.cos(angle))
    assert_close(ours[3], expected, 1e-9, "closed form")


@pytest.mark.parametrize("speed", [0.0, 1.9, 3.1])
def test_a_ladder_detaches_alike(speed) -> None:
    """Slide a smooth ladder down its wall: where it is fast, the top has left the wall, with the same accelerations."""
    system, q, ends = ladder(0.6, 0.0, 0.0)
    qd = np.zeros(6)
    R = np.array(system.pose(q, "ladder"))[:3, :3]
    qd[1], qd[3:] = -speed, R.T @ (speed * np.array([math.cos(0.6), 0.0, -math.sin(0.6)]))
    ours, forces = here(system, ends, q, qd, np.zeros(6))
    theirs, other = step_of_pinocchio(system, ends, q, qd, np.zeros(6), 1.0 if speed == 0.0 else 1e-3, "ADMM")
    assert (forces[1, 0] == 0.0) == (speed == 3.1)
    assert_close(theirs, ours, 1e-7 * G, "accelerations")
    assert_close(other, forces, 1e-6 * 3 * G, "forces")


@pytest.mark.parametrize("speed", [0.0, 0.7])
def test_the_tip_of_an_arm_slides_alike(speed) -> None:
    """Press the tip of a Puma to a plane, at rest or sliding: forces and accelerations agree."""
    arm = kt.load("puma560")
    rng = np.random.default_rng(2)
    q = rng.uniform(-0.7, 0.7, arm.nq)
    tip = arm.bodies[-1].name
    at = (0.03, 0.02, 0.1)
    T = arm.pose(q, tip)
    point = T[:3, 3] + T[:3, :3] @ at
    plane = kt.Surface(placement=kt.Placement.from_euler("xy", (0.3, -0.2), tuple(point)))
    contact = kt.Contact("tip", tip, placement=at, surface=plane, friction=0.35)
    J = arm.jacobian(q, tip)
    rows = J[3:] + np.cross(T[:3, :3] @ at, np.eye(3)) @ J[:3]
    R = np.array(plane.placement.rotation)
    qd = np.linalg.pinv(R.T @ rows) @ [0.8 * speed, -0.6 * speed, 0.0]
    tau = arm.gravity_torque(q) + (R.T @ rows).T @ [14.0, -9.0, -21.0]
    ours, forces = here(arm, [contact], q, qd, tau)
    theirs, other = step_of_pinocchio(arm, [contact], q, qd, tau, 1.0 if speed == 0.0 else 1e-5, "ADMM")
    assert forces[0, 0] > 5.0
    assert_close(np.hypot(*forces[0, 1:]), 0.35 * forces[0, 0], 1e-9, "on the cone")
    assert_close(other, forces, 2e-4 if speed else 1e-8, "forces [N]")
    assert_close(theirs, ours, 1e-3 if speed else 1e-7, "accelerations")
