"""Inverse kinematics: reached poses by forward kinematics and by Pinocchio, limits, weights, loops, and refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinetree as kt
from kinetree.analysis.kinematics.pose_kernel import PoseEquations, pose_kernel
from kinetree.analysis.kinematics.pose_search import rotation_vectors
from kinetree.compiler.lanes.interpret import interpret
from public_robots import public_robots
from tolerance import assert_close

REACHED = 4e-12
"""Twice the tolerance of the search in characteristic lengths, for arms with lengths of up to a meter."""


@pytest.fixture(scope="module")
def stanford() -> kt.System:
    return kt.load("stanford")


@pytest.fixture(scope="module")
def panda() -> kt.System:
    return kt.load(next(p for p in public_robots() if p.name == "panda.urdf"))


def random_arm(seed: int, count: int) -> kt.System:
    """Return a serial arm of awkward dimensions: rotations and a translation."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        joint = "prismatic" if k == seed % 5 + 1 and seed % 2 else "revolute"
        a, b = rng.uniform(0.05, 0.6, 2)
        alpha, theta = rng.uniform(-2.0, 2.0, 2)
        rows.append(
            {
                "joint": joint,
                "a": a,
                "b": b,
                "alpha": alpha,
                "theta": theta,
                "mass": 1.0,
                "com": (0.1, 0.02, 0.03),
                "inertia": (0.1, 0.2, 0.15, 0, 0, 0),
            }
        )
    return kt.from_dh(rows, convention="modified")


def test_poses_of_a_batch_are_reached(stanford):
    """Reach every pose of a batch with leading shape, from its start alone, and report the errors of the poses."""
    q, _ = stanford.random_state(11, (3, 40))
    T = stanford.pose(q, "tool")
    found = stanford.inverse_kinematics(T, "tool")
    assert found.q.shape == (3, 40, 6) and found.converged.shape == (3, 40) and found.converged.all()
    assert_close(stanford.pose(found.q, "tool"), T, REACHED, "poses at the positions found")
    away = np.linalg.norm(stanford.pose(found.q, "tool")[..., :3, 3] - T[..., :3, 3], axis=-1)
    assert_close(found.position, away, 1e-15, "reported errors of the position")
    assert (found.iterations > 0).all() and (found.restarts >= 0).all() and found.rotation.max() <= REACHED
    assert str(found).startswith("stanford: 120 of 120 targets of 'tool' are reached; the largest errors are ")


def test_answers_do_not_depend_on_the_batch(stanford):
    """Return the same bits for a target alone and among others, also after restarts."""
    q, _ = stanford.random_state(5, (60,))
    T = stanford.pose(q, "tool")
    together = stanford.inverse_kinematics(T, "tool")
    assert together.restarts.max() > 0
    for k in (0, 17, int(np.argmax(together.restarts))):
        alone = stanford.inverse_kinematics(T[k], "tool")
        assert np.array_equal(alone.q, together.q[k]) and alone.restarts == together.restarts[k]


def test_starts_near_a_solution_lead_to_it(stanford):
    """Return the solution next to the start, without restarts."""
    q, _ = stanford.random_state(8, (50,))
    keep = np.abs(np.linalg.det(stanford.jacobian(q, "tool"))) > 0.05
    q = q[keep]
    found = stanford.inverse_kinematics(stanford.pose(q, "tool"), "tool", q0=q + 0.01)
    assert (found.restarts == 0).all() and keep.sum() > 20
    assert_close(found.q, q, 1e-10, "positions next to their starts")


@pytest.mark.peers
def test_pinocchio_confirms_positions_within_limits(panda):
    """Reach poses of a Panda within its limits, as Pinocchio's forward kinematics confirms."""
    pin = pytest.importorskip("pinocchio")
    path = next(p for p in public_robots() if p.name == "panda.urdf")
    model = pin.buildModelFromUrdf(str(path))
    data, frame = model.createData(), model.getFrameId("panda_link8")
    q, _ = panda.random_state(2, (40,))
    targets = []
    for row in q:
        pin.framesForwardKinematics(model, data, row)
        targets.append(data.oMf[frame].homogeneous.copy())
    found = panda.inverse_kinematics(np.array(targets), "panda_link8")
    lower, upper = model.lowerPositionLimit, model.upperPositionLimit
    assert ((found.q >= lower) & (found.q <= upper)).all()
    for row, T in zip(found.q, targets, strict=True):
        pin.framesForwardKinematics(model, data, row)
        assert_close(data.oMf[frame].homogeneous, T, REACHED, "Pinocchio's poses")


def test_limits_are_kept_at_the_price_of_the_pose(panda):
    """Stay within the limits of an unreachable pose, and name the joints that stand at one."""
    T = panda.pose(panda.inverse_kinematics([0.4, 0.1, 0.5], "panda_link8").q, "panda_link8").copy()
    T[:3, 3] = (2.0, 0.3, 0.4)
    found = panda.inverse_kinematics(T, "panda_link8", on_failure="nearest", restarts=3)
    assert not found.converged and found.position > 0.5
    joints = panda.mechanism.resolved_joints
    assert all(j.limits.lower[0] <= x <= j.limits.upper[0] for j, x in zip(joints, found.q, strict=True))


@pytest.mark.slow
def test_redundant_arms_move_toward_the_middle(panda):
    """Return positions whose distance from the middle of the ranges no motion in the null space reduces."""
    q, _ = panda.random_state(9, (12,))
    T = panda.pose(q, "panda_link8")
    near, middle = (panda.inverse_kinematics(T, "panda_link8", prefer=p) for p in ("near", "middle"))
    assert middle.converged.all()
    assert_close(panda.pose(middle.q, "panda_link8"), T, REACHED, "poses after centering")
    lower, upper = (
        np.array([getattr(j.limits, x)[0] for j in panda.mechanism.resolved_joints]) for x in ("lower", "upper")
    )
    half, center = (upper - lower) / 2, (upper + lower) / 2
    distance = [(((x.q - center) / half) ** 2).sum(axis=-1) for x in (near, middle)]
    assert (distance[1] <= distance[0] + 1e-12).all() and (distance[1] < 0.99 * distance[0]).any()
    inside = ~middle.at_limit.any(axis=-1)
    assert inside.any()
    one = panda.inverse_kinematics(T[np.argmax(inside)], "panda_link8", q0=middle.q[np.argmax(inside)])
    assert one.nullspace.shape == (9, 2)  # a self-motion of the arm, and two fingers that move together
    assert_close(panda.jacobian(one.q, "panda_link8") @ one.nullspace, np.zeros((6, 2)), 1e-12, "velocity of the frame")
    slope = one.nullspace.T @ ((one.q - center) / half**2)
    assert_close(slope, np.zeros(2), 2e-2, "slope of the distance from the middle")


def test_weights_free_axes_of_the_target(stanford):
    """Align the z axes and the origins alone if the rotation about z has no weight."""
    q, _ = stanford.random_state(21, (30,))
    T = stanford.pose(q, "tool")
    found = stanford.inverse_kinematics(T, "tool", weights=(1, 1, 0, 1, 1, 1))
    reached = stanford.pose(found.q, "tool")
    assert_close(reached[..., :3, 2:], T[..., :3, 2:], REACHED, "axis z and origin")
    assert np.abs(reached[..., :3, 0] - T[..., :3, 0]).max() > 0.1


def test_points_leave_the_rotation_free(stanford):
    """Bring the origin of the frame to points, with joints that are held in place."""
    q, _ = stanford.random_state(4, (25,))
    point = stanford.pose(q, "tool")[..., :3, 3]
    names = [j.name for j in stanford.joints]
    found = stanford.inverse_kinematics(point, "tool", q0=q + 0.2, hold=names[3:], restarts=64)
    assert_close(stanford.pose(found.q, "tool")[..., :3, 3], point, REACHED, "points")
    assert np.array_equal(found.q[:, 3:], q[:, 3:] + 0.2)
    assert found.rotation.max() == 0.0


def test_the_limit_of_reach_is_met_where_solutions_meet():
    """Reach the stretched position of a planar arm, where its Jacobian is singular, and two solutions are one."""
    arm = kt.load("planar_2r")
    stretched = arm.pose([0.7, 0.0], "tool")[:3, 3]
    found = arm.inverse_kinematics(stretched, "tool")
    assert_close(found.q, [0.7, 0.0], 1e-5, "stretched arm")
    with pytest.raises(
        kt.UnreachableError,
        match=r"inverse kinematics of 'planar_2r': the target of 'tool' is not "
        r"reached: the nearest position of 101 searches misses the pose at \[.*\] by 0\.0",
    ) as error:
        arm.inverse_kinematics(stretched * 1.1, "tool")
    nearest = error.value.result
    assert not nearest.converged
    assert_close(nearest.position, np.linalg.norm(0.1 * stretched), 1e-9, "distance to the reach of the arm")
    again = pickle.loads(pickle.dumps(error.value))
    assert str(again) == str(error.value) and np.array_equal(again.result.q, nearest.q)


def test_unreachable_targets_are_marked_in_batches():
    """Return NaN, or the nearest position, only for the targets out of reach."""
    arm = kt.load("planar_3r")
    good = arm.pose([0.3, -0.8, 0.5], "tool")
    far = good.copy()
    far[:2, 3] += 30.0
    T = np.array([good, far, good])
    assert np.isnan(arm.inverse_kinematics(T, "tool", on_failure="nan").q).any(axis=-1).tolist() == [False, True, False]
    found = arm.inverse_kinematics(T, "tool", on_failure="nearest")
    assert found.converged.tolist() == [True, False, True] and np.isfinite(found.q).all()
    with pytest.raises(
        kt.UnreachableError,
        match=r"target \[1\] of 'tool' is not reached: .* 3 degrees of freedom meet "
        "6 errors only at special targets: give weights of zero",
    ):
        arm.inverse_kinematics(T, "tool")


def test_loops_stay_closed():
    """Bring the tool of a five-bar to points with its loop closed to the same tolerance."""
    arm = kt.load("five_bar")
    frame = arm.mechanism.frame_names[0]
    base = arm.pose(arm.assemble(), frame)[:3, 3]
    points = base + np.random.default_rng(3).uniform((-0.05, -0.08, 0.0), (0.05, -0.02, 0.0), (20, 3))
    found = arm.inverse_kinematics(points, frame)
    assert_close(arm.pose(found.q, frame)[..., :3, 3], points, REACHED, "points")
    assert_close(arm.closure_residual(found.q), np.zeros((20, len(arm.closures))), REACHED, "gaps of the loop")


def test_parameters_change_the_arm():
    """Take parameters by batch: the same target for arms of different lengths."""
    arm = kt.load("tube_arm")
    assert arm.mechanism.free_parameters
    frame = arm.mechanism.frame_names[0]
    nominal = np.array([p.value for p in arm.mechanism.free_parameters])
    values = nominal * np.linspace(0.9, 1.1, 5)[:, None]
    q, _ = arm.random_state(1)
    T = arm.pose(np.broadcast_to(q, (5, arm.nq)), frame, parameters=values)
    found = arm.inverse_kinematics(T, frame, parameters=values)
    assert_close(arm.pose(found.q, frame, parameters=values), T, REACHED, "poses of all arms")


@pytest.mark.slow
def test_quaternions_keep_unit_length():
    """Reach poses with a floating base, whose rotation is a quaternion."""
    robot = kt.load("space_robot_3r")
    frame = robot.bodies[-1].name
    q, _ = robot.random_state(6, (10,))
    T = robot.pose(q, frame)
    found = robot.inverse_kinematics(T, frame)
    assert_close(robot.pose(found.q, frame), T, REACHED, "poses")


def test_the_interpreted_kernel_agrees():
    """Find the same positions by the interpreter of kernels as by native code."""
    arm = kt.load("planar_3r")
    q, _ = arm.random_state(3, (4,))
    T = arm.pose(q, "tool")
    kernel = pose_kernel(PoseEquations(arm.mechanism, "tool", (True,) * 6))
    infinite = np.full(3, np.inf)
    given = (q + 0.3, T.reshape(-1, 16), np.ones(6), -infinite, infinite, np.ones(3), 1e-12, 100.0)
    found, report = interpret(kernel, *given)
    native = arm.inverse_kinematics(T, "tool", q0=q + 0.3, restarts=0, limits=False)
    assert_close(found, native.q, 1e-11, "positions")
    assert report[:, 0].max() <= 1e-12


def test_rotation_vectors_are_exact_at_all_angles():
    """Return the vector of every rotation, from tiny angles to half a revolution."""
    axis = np.array([0.36, -0.48, 0.8])
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    for angle in (0.0, 1e-9, 1e-4, 0.7, 2.9, np.pi - 1e-6, np.pi):
        R = np.eye(3) + np.sin(angle) * K + 2 * np.sin(angle / 2) ** 2 * (K @ K)
        assert_close(rotation_vectors(R), angle * axis, 1e-9 if angle > 3 else 1e-15, f"angle {angle}")


ERRORS = {
    "shape": ({"T": np.zeros((2, 5))}, r"the target has shape \(2, 5\); expected poses \[..., 4, 4\] or \[..., 6\]"),
    "scaled": ({"T": np.diag([2.0, 2, 2, 1])}, "target is not a pose: its rotation must have orthonormal columns"),
    "mirrored": ({"T": np.diag([1.0, 1, -1, 1])[None]}, r"target \[0\] is not a pose"),
    "nan": ({"T": [np.nan, 0, 0]}, "the target has entries that are not finite"),
    "text": ({"T": "there"}, "the target is not an array of real numbers"),
    "frame": ({"frame": "tol"}, "no frame 'tol'; did you mean 'tool'"),
    "ground": ({"frame": "ground"}, "frame 'ground' is fixed to the ground; no joint moves it"),
    "no frame": ({"frame": 3}, "frame is 3; expected one of tool"),
    "weights": ({"weights": (1, 1)}, r"weights have shape \(2,\); expected 6 numbers"),
    "negative": ({"weights": (0, 0, 0, 1, -1, 1)}, "expected finite numbers of zero or more"),
    "none": ({"weights": np.zeros(6)}, "weights are all zero"),
    "rotation": ({"weights": np.ones(6)}, r"weights of a rotation are given for points; give poses"),
    "mixed": ({"weights": [[0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]]}, "weights are zero for some targets"),
    "start": ({"q0": np.zeros(3)}, r"q0 has shape \(3,\); expected \[..., 2\]"),
    "start nan": ({"q0": [0, np.nan]}, "q0 has entries that are not finite"),
    "hold": ({"hold": "joint1"}, "hold requires q0"),
    "parameters": ({"parameters": [1.0]}, "'planar_2r' has no free parameters"),
    "failure": ({"on_failure": "skip"}, "on_failure is 'skip'; expected one of 'raise', 'nearest', 'nan'"),
    "prefer": ({"prefer": "far"}, "prefer is 'far'; expected one of 'near', 'middle'"),
    "tolerance": ({"tolerance": 0}, "tolerance is 0; give more than zero"),
    "restarts": ({"restarts": -1}, "restarts is -1; give 0 or more"),
    "iterations": ({"iterations": 0}, "iterations is 0; give 1 or more"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_are_refused(case):
    """Refuse wrong arguments with the value and what was expected."""
    arm = kt.load("planar_2r")
    options, message = ERRORS[case]
    if "hold" in options:
        options = {"hold": arm.joints[0].name}
    with pytest.raises(kt.KinetreeError, match=message):
        arm.inverse_kinematics(**({"T": [0.3, 0.2, 0.0], "frame": "tool"} | options))


def test_long_mechanisms_are_refused():
    """Refuse mechanisms whose straight-line code would be too long."""
    rope = kt.chain(80)
    with pytest.raises(kt.InputError, match="inverse kinematics of .*: it is straight-line code, which .* bodies make"):
        rope.inverse_kinematics([0.1, 0.2, 0.3], rope.bodies[-1].name)


@pytest.mark.slow
def test_sizes_do_not_matter():
    """Find the same solutions of an arm of micrometers and one of thousands of kilometers, with a sliding joint."""
    found = []
    for size in (1e-6, 1.0, 1e6):
        rng = np.random.default_rng(3)
        numbers = zip(rng.uniform(0.1, 0.5, (6, 2)), rng.uniform(-2, 2, (6, 2)), strict=True)
        rows = [
            {"joint": "prismatic" if k == 2 else "revolute", "a": size * a, "b": size * b,
             "alpha": alpha, "theta": theta, "mass": 1.0, "com": (0, 0, 0), "inertia": (1, 1, 1, 0, 0, 0)}
            for k, ((a, b), (alpha, theta)) in enumerate(numbers)
        ]  # fmt: skip
        arm = kt.from_dh(rows)
        q, _ = arm.random_state(1, (50,))
        q[:, 2] *= size
        frame = arm.bodies[-1].name
        found.append(arm.inverse_kinematics(arm.pose(q, frame), frame).q / [1, 1, size, 1, 1, 1])
    assert_close(found[0], found[1], 1e-7, "micrometers")
    assert_close(found[2], found[1], 1e-7, "thousands of kilometers")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 8))
def test_random_arms_reach_their_own_poses(seed, count):
    """Reach random poses of random arms of five to eight joints, redundant or not."""
    arm = random_arm(seed, count)
    q, _ = arm.random_state(seed, (100,))
    T = arm.pose(q, arm.bodies[-1].name)
    found = arm.inverse_kinematics(T, arm.bodies[-1].name, restarts=100)
    assert_close(arm.pose(found.q, arm.bodies[-1].name), T, 2e-11, "poses")
