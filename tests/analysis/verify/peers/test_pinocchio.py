"""Random mechanisms and public robots against Pinocchio."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import everyday

pin = pytest.importorskip("pinocchio")

from interpreted import compute, relative  # noqa: E402
from kinetree import ModelError, System, load  # noqa: E402
from kinetree.joints import kind  # noqa: E402
from kinetree.runtime.singularity import weightless_joints  # noqa: E402
from pinocchio_peer import SWAP, peer  # noqa: E402
from strategies import SINGLE, State, examples, moving_mechanisms  # noqa: E402
from tolerance import assert_close  # noqa: E402

pytestmark = pytest.mark.peers
EPS = np.finfo(float).eps


def rows(function, *arrays) -> np.ndarray:
    """Run Pinocchio sample by sample."""
    return np.stack([np.array(function(*x)) for x in zip(*arrays, strict=True)])


@given(moving_mechanisms())
@examples(40)
def test_torques_and_accelerations_of_random_mechanisms(mechanism):
    """Compare inverse and forward dynamics, with external wrenches and armatures, and the inertia matrix."""
    s, p = State(mechanism), peer(mechanism)
    m, d = p.model, p.data
    m_qd, m_qdd, m_tau = map(p.speeds, (s.qd, s.qdd, s.tau))
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    expected = rows(lambda q, v, a, w: pin.rnea(m, d, q, v, a, p.wrenches(w)), s.q, m_qd, m_qdd, s.wrenches)
    assert_close(relative(p.speeds(tau), expected), 0.0, 1e-12, "inverse dynamics")  # 3e-15

    I = compute(mechanism, "inertia_matrix", s.q)
    expected = rows(lambda q: full(pin.crba(m, d, q)), s.q)
    assert_close(relative(p.matrix(I), expected), 0.0, 1e-12, "inertia matrix")  # 2e-15

    qdd = compute(mechanism, "forward_dynamics", s.q, s.qd, s.tau, wrenches=s.wrenches)
    expected = rows(lambda q, v, t, w: pin.aba(m, d, q, v, t, p.wrenches(w)), s.q, m_qd, m_tau, s.wrenches)
    bound = max(1e-10, 4 * EPS * float(np.linalg.cond(I).max()))
    assert_close(relative(p.speeds(qdd), expected), 0.0, bound, "forward dynamics")  # 2e-13

    inverse = compute(mechanism, "inverse_inertia_matrix", s.q)
    expected = rows(lambda q: full(pin.computeMinverse(m, d, q)), s.q)
    assert_close(relative(p.matrix(inverse), expected), 0.0, bound, "inverse inertia matrix")  # 1e-12


def full(upper: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix from its upper triangle."""
    upper = np.triu(upper)
    return upper + np.triu(upper, 1).T


@given(moving_mechanisms())
@examples(30)
def test_energies_and_frames_of_random_mechanisms(mechanism):
    """Compare energies, momentum, center of mass, poses and Jacobians."""
    s, p = State(mechanism), peer(mechanism)
    m, d = p.model, p.data
    m_qd = p.speeds(s.qd)
    m.armature = np.zeros(m.nv)
    T, T2 = (
        compute(mechanism, "kinetic_energy", s.q, s.qd),
        rows(lambda q, v: pin.computeKineticEnergy(m, d, q, v), s.q, m_qd),
    )
    drives = [x for j in mechanism.joints for x in j.armature or (0.0,) * kind(j.kind).NV]
    assert_close(relative(T, T2 + 0.5 * s.qd**2 @ np.array(drives)), 0.0, 1e-12, "kinetic energy")  # 2e-15
    h = compute(mechanism, "momentum", s.q, s.qd)
    expected = rows(lambda q, v: momentum(m, d, q, v), s.q, m_qd)
    assert_close(relative(h, expected), 0.0, 1e-12, "momentum")  # 2e-15
    frame = mechanism.frame("tool")
    index, placement = p.bodies[frame.body]
    if index:
        local = placement * pin.SE3(np.array(frame.placement.rotation), np.array(frame.placement.translation))
        tool = m.addFrame(pin.Frame("tool", index, local, pin.FrameType.OP_FRAME))
        d = m.createData()
        J = compute(mechanism, "jacobian", s.q, frame="tool")
        expected = rows(lambda q: jacobian(m, d, q, tool), s.q)
        assert_close(relative(J[..., p.order], expected), 0.0, 1e-12, "jacobian")  # 2e-15
        pose = rows(lambda q: (pin.framesForwardKinematics(m, d, q), d.oMf[tool].homogeneous)[1], s.q)
        assert_close(relative(compute(mechanism, "pose", s.q, frame="tool"), pose), 0.0, 1e-12, "pose")  # 2e-15


def jacobian(m, d, q, frame: int) -> np.ndarray:
    """Return the Jacobian of a frame at its origin in the ground's axes, angular part first."""
    J = pin.computeFrameJacobian(m, d, q, frame, pin.LOCAL_WORLD_ALIGNED)
    return J.reshape(6, m.nv)[SWAP]


def momentum(m, d, q, v) -> np.ndarray:
    """Return [angular; linear] momentum about the ground's origin."""
    pin.computeCentroidalMomentum(m, d, q, v)
    linear = d.hg.linear
    return np.concatenate([d.hg.angular + np.cross(d.com[0], linear), linear])


@given(moving_mechanisms(SINGLE, armature=False))
@examples(30)
def test_convective_matrix_of_single_joints(mechanism):
    """Find exactly the entries of Pinocchio's Coriolis matrix, one of many that give the same forces."""
    s, p = State(mechanism), peer(mechanism)
    C = compute(mechanism, "convective_matrix", s.q, s.qd)
    expected = rows(lambda q, v: pin.computeCoriolisMatrix(p.model, p.data, q, v), s.q, s.qd)
    size = np.abs(expected).max(axis=(1, 2), keepdims=True) + 1.0
    assert_close(C / size, expected / size, 1e-12, "C")  # 3e-15


@given(moving_mechanisms(armature=False))
@examples(20)
def test_gravity_and_center_of_mass(mechanism):
    """Compare gravity torques, and with them the heights of masses."""
    s, p = State(mechanism), peer(mechanism)
    g = compute(mechanism, "gravity_torque", s.q)
    expected = rows(lambda q: pin.computeGeneralizedGravity(p.model, p.data, q), s.q)
    size = np.abs(expected).max() + 1.0
    assert_close(p.speeds(g) / size, expected / size, 1e-12, "gravity")  # 1e-15
    if not any(j.kind == "fixed" for j in mechanism.joints):  # those on the ground are not counted there
        c = compute(mechanism, "center_of_mass", s.q)
        assert_close(c, rows(lambda q: pin.centerOfMass(p.model, p.data, q), s.q), 1e-12, "center of mass")  # 6e-16


# Public robots.

FILES = {
    f.locate().resolve().relative_to(f.locate().resolve().parents[2]).as_posix(): f.locate().resolve()
    for f in importlib.metadata.files("example-robot-data") or ()
    if f.suffix == ".urdf"
}
SKIPPED = {
    "falcon_description/urdf/falcon.urdf": "joint top_propeller_joint names a link that is not there; both refuse it",
    "ur_description/urdf/ur3.urdf": "a template without links; both refuse it",
}
EVERYDAY = """
    ur_description/urdf/ur5_robot.urdf panda_description/urdf/panda.urdf kinova_description/robots/kinova.urdf
    talos_data/robots/talos_reduced.urdf solo_description/robots/solo12.urdf
    double_pendulum_description/urdf/double_pendulum_continuous.urdf
    anymal_b_simple_description/robots/anymal.urdf allegro_hand_description/urdf/allegro_left_hand.urdf
    bravo7_description/urdf/bravo7_gripper.urdf tiago_description/robots/tiago_no_hand.urdf
    icub_description/robots/icub_reduced.urdf iris_description/robots/iris_simple.urdf
""".split()
LARGE = ("talos_data/robots/talos_reduced.urdf", "icub_description/robots/icub_reduced.urdf")


class Robot:
    """One file read by both libraries, with states in both orders."""

    def __init__(self, path: Path, base: str) -> None:
        """Read the file twice."""
        self.ours = load(path, base=base).tree  # Pinocchio lets mimic joints move on their own
        root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
        self.model = pin.buildModelFromUrdf(str(path), *root)
        self.data = self.model.createData()
        theirs = {name: self.model.joints[i] for i, name in enumerate(self.model.names) if i}
        self.order: list[int] = []
        """The index in Pinocchio's velocity vectors of each of our velocities."""
        self.places: list[tuple[int, str, int]] = []
        for joint in self.ours.joints:
            if joint.kind == "fixed":
                continue
            name = joint.name if joint.name in theirs else "root_joint"
            start = theirs[name].idx_v
            self.order += [start + k for k in (SWAP if joint.kind == "free" else range(theirs[name].nv))]
            self.places.append((theirs[name].idx_q, joint.kind, theirs[name].nq))
        assert sorted(self.order) == list(range(self.model.nv))

    def coordinates(self, q: np.ndarray) -> np.ndarray:
        """Return our coordinates in Pinocchio's order, where a joint without limits has a cosine and a sine."""
        out = np.zeros(self.model.nq)
        at = 0
        for start, what, theirs in self.places:
            if what == "revolute" and theirs == 2:
                out[start : start + 2] = np.cos(q[at]), np.sin(q[at])
                at += 1
            else:
                out[start : start + theirs] = q[at : at + theirs]
                at += theirs
        assert at == len(q)
        return out

    def speeds(self, x: np.ndarray) -> np.ndarray:
        """Return our velocities in Pinocchio's order."""
        out = np.zeros(np.shape(x))
        out[..., self.order] = x
        return out

    def states(self, count: int = 5):
        """Return random states."""
        rng = np.random.default_rng(17)
        q, qd = self.ours.random_state(rng, count)
        return q, qd, *rng.normal(size=(2, count, self.ours.nv))


def check_against_pinocchio(path: Path, base: str) -> None:
    """Compare the results of both libraries for a file."""
    robot = Robot(path, base)
    system, m, d, order = robot.ours, robot.model, robot.data, robot.order
    if not system.nv:
        return check_immobile(robot)
    q, qd, qdd, tau = robot.states()
    Q = rows(robot.coordinates, q)
    torques = rows(lambda *x: pin.rnea(m, d, *x), Q, robot.speeds(qd), robot.speeds(qdd))[:, order]
    assert_close(relative(system.inverse_dynamics(q, qd, qdd, forces=False), torques), 0.0, 1e-10, "inverse dynamics")
    I = rows(lambda x: full(pin.crba(m, d, x)), Q)[:, order][:, :, order]
    assert_close(relative(system.inertia_matrix(q), I), 0.0, 1e-10, "inertia matrix")
    if weightless_joints(system.mechanism):
        with pytest.raises(ModelError, match="no inertia resists the motion of joint '"):
            system.forward_dynamics(q, qd, tau, forces=False)
    else:
        expected = rows(lambda *x: pin.aba(m, d, *x), Q, robot.speeds(qd), robot.speeds(tau))[:, order]
        bound = max(1e-10, 20 * EPS * float(np.linalg.cond(I).max()))
        assert_close(
            relative(system.forward_dynamics(q, qd, tau, forces=False), expected), 0.0, bound, "forward dynamics"
        )
    tip = m.getFrameId(system.bodies[-1].name)
    J = rows(lambda x: jacobian(m, d, x, tip), Q)[:, :, order]
    assert_close(relative(system.jacobian(q, system.bodies[-1].name), J), 0.0, 1e-10, "jacobian")
    U = rows(lambda x: pin.computePotentialEnergy(m, d, x), Q)
    ours = system.potential_energy(q)
    size = np.abs(U).max() + np.abs(ours).max() + 1e-300
    assert_close((ours - ours[0]) / size, (U - U[0]) / size, 1e-10, "potential energy")


def check_immobile(robot: Robot) -> None:
    """Compare a robot that cannot move: it has no degrees of freedom in either library."""
    assert robot.model.nv == 0
    assert robot.ours.inverse_dynamics(np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("base", everyday.some(["fixed", "free"]))
@pytest.mark.parametrize("file", everyday.some(everyday.without(EVERYDAY, LARGE)))
def test_everyday_robots(file, base):
    """Compare a dozen robots, on the ground and floating."""
    check_against_pinocchio(FILES[file], base)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("file", sorted(FILES))
def test_every_robot(file, base):
    """Compare every file, on the ground and floating; those that both refuse are named."""
    if file in SKIPPED:
        with pytest.raises(ModelError):
            load(FILES[file], base=base)
        with pytest.raises(ValueError, match="does not contain a valid URDF model"):
            pin.buildModelFromUrdf(str(FILES[file]))
        return
    check_against_pinocchio(FILES[file], base)


def test_all_robots_are_found():
    """Find the 77 files, and the everyday and skipped ones among them."""
    assert len(FILES) == 77
    assert set(EVERYDAY) | set(SKIPPED) <= set(FILES)
    assert isinstance(load(FILES[EVERYDAY[0]]), System)
