"""The fastest motions along paths: exact solutions, a dynamic program, limits along replays, loops and loads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import everyday
import kinetree as kt
from kinetree.errors import InputError
from public_robots import public_robots
from strategies import THOROUGH
from tolerance import assert_close

INERTIA = (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)
ARM = kt.load("planar_2r")
POINTS = np.array([[0.13, -0.31], [0.87, 0.92], [1.41, 0.37]])
TORQUES = [6.1, 2.3]


def slider(mass: float = 2.3, damping: float = 0.0) -> kt.System:
    """Return a mass on a rail."""
    body = kt.Body("cart", mass, (0.0, 0.0, 0.0), INERTIA)
    rail = kt.Joint("rail", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0), damping=damping)
    return kt.System(kt.build_mechanism("slider", [body], [rail]))


def pendulum(m: float = 1.7, length: float = 0.43) -> kt.System:
    """Return a point mass that hangs at q = 0."""
    body = kt.Body("bob", m, (0.0, 0.0, -length), (1e-9, 1e-9, 1e-9, 0.0, 0.0, 0.0))
    pivot = kt.Joint("pivot", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    return kt.System(kt.build_mechanism("pendulum", [body], [pivot]))


@pytest.mark.parametrize("speed", [math.inf, 1.21])
def test_a_double_integrator_is_driven_by_full_force_both_ways(speed):
    """Compare with 2 sqrt(d / a), or with the trapezoid of the velocity: v / a + d / v."""
    way, a = 1.53, 7.0 / 2.3
    found = kt.time_optimal(slider(), [[0.1], [0.1 + way]], {"torque": 7.0, "velocity": speed})
    expected = 2.0 * math.sqrt(way / a) if math.isinf(speed) else speed / a + way / speed
    assert_close(found.duration, expected, 2e-5 * expected, "duration")
    half = found.t < 0.49 * found.duration
    if math.isinf(speed):
        assert_close(found.tau[half], np.full_like(found.tau[half], 7.0), 1e-9, "full force")
        assert [name for _, _, name in found.active] == ["torque of rail"]


@pytest.mark.parametrize("damping", [0.31, 19.0])
def test_viscous_friction_is_in_the_torques(damping):
    """Compare with the closed form of m v' = +-F - d v, also where friction alone limits the speed."""
    m, F, way = 2.3, 7.0, 1.53
    found = kt.time_optimal(slider(m, damping), [[0.1], [0.1 + way]], {"torque": F}, knots=1800)
    end, T = F / damping, m / damping

    def brake(v: float) -> tuple[float, float]:
        t = T * math.log1p(v / end)  # from v to rest under -F - d v
        return t, T * v - end * t

    def miss(t: float) -> float:
        v = end * -math.expm1(-t / T)
        return end * t - T * v + brake(v)[1] - way

    t = brentq(miss, 1e-6, 100.0, xtol=1e-12)
    expected = t + brake(end * -math.expm1(-t / T))[0]
    assert_close(found.duration, expected, 2e-4 * expected, "duration")
    assert np.abs(found.tau).max() <= F * (1.0 + 1e-6)


def test_a_pendulum_swings_up_as_in_its_phase_plane():
    """Compare with full torque from the start and backward from the end, integrated to where they meet."""
    m, length, u, g = 1.7, 0.43, 9.4, 9.81  # 7.17 N m are needed to hold it level
    J, end = m * length**2 + 1e-9, 2.6
    found = kt.time_optimal(pendulum(m, length), [[0.0], [1.1], [end]], {"torque": u})

    def square(sign: float):
        return lambda s, x: [2.0 * (sign * u - m * g * length * math.sin(s)) / J]

    s = np.linspace(0.0, end, 20001)
    up = solve_ivp(square(1.0), (0.0, end), [0.0], t_eval=s, rtol=1e-11, atol=1e-13).y[0]
    down = solve_ivp(square(-1.0), (end, 0.0), [0.0], t_eval=s[::-1], rtol=1e-11, atol=1e-13).y[0][::-1]
    speed = np.sqrt(np.minimum(up, down))
    expected = float((2.0 * np.diff(s) / (speed[1:] + speed[:-1])).sum())
    assert_close(found.duration, expected, 1e-3 * expected, "duration")


@everyday.long
def test_two_links_are_as_fast_as_a_dynamic_program():
    """Compare with brute force over a grid of speeds, whose accelerations follow from M, C and g of the arm."""
    path = kt.TimedPath(POINTS, velocity=1.0, acceleration=1.0).path
    found = kt.time_optimal(ARM, path, {"torque": TORQUES})
    steps, levels = 60, 1800
    s = np.linspace(path.times[0], path.times[-1], steps + 1)
    q, by_s, by_ss = kt.sampled(path, (s[:-1] + s[1:]) / 2.0)
    M, g = ARM.inertia_matrix(q), ARM.gravity_torque(q)
    a = np.einsum("nij,nj->ni", M, by_s)
    b = np.einsum("nij,nj->ni", M, by_ss) + np.einsum("nij,nj->ni", ARM.convective_matrix(q, by_s), by_s)
    x = np.linspace(0.0, 1.25 * float((found.s.max() / found.duration * 2.2) ** 2), levels)
    h, cost = s[1] - s[0], np.where(x == 0.0, 0.0, np.inf)
    change, middle = x - x[:, None], (x + x[:, None]) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        time = 2.0 * h / (np.sqrt(x) + np.sqrt(x[:, None]))
        for k in reversed(range(steps)):
            fits = np.ones(change.shape, dtype=bool)
            for j in range(2):
                tau = a[k, j] * change / (2.0 * h) + b[k, j] * middle + g[k, j]
                fits &= np.abs(tau) <= TORQUES[j] + abs(a[k, j]) * (x[1] - x[0]) / (4.0 * h)
            cost = np.where(fits, time + cost, np.inf).min(axis=1)
    assert np.isfinite(cost[0]) and x[-1] > 1.1 * float(np.square(np.gradient(found.s, found.t)).max())
    assert_close(found.duration, cost[0], 5e-3 * cost[0], "duration")


def test_a_finer_grid_changes_the_time_little():
    """Compare grids of 400, 1000 and 1900 intervals: half a percent, as the default promises much less."""
    coarse, usual, fine = (
        kt.time_optimal(ARM, POINTS, {"torque": TORQUES}, knots=n).duration for n in (400, 1000, 1900)
    )
    assert_close(coarse, fine, 5e-3 * fine, "400 intervals")
    assert_close(usual, fine, 1e-3 * fine, "1000 intervals")


@everyday.long
@pytest.mark.parametrize("law", ["computed", "feedforward"])
def test_torques_of_a_replay_are_within_the_limits(law):
    """Replay by simulate: torques stay within 1e-6 of the limits, one of them is always reached, the path is kept."""
    found = kt.time_optimal(ARM, POINTS, {"torque": TORQUES, "velocity": [9.0, 5.0]})
    control = kt.ComputedTorque(400.0, 40.0, found) if law == "computed" else kt.FeedForward(found)
    run = kt.simulate(ARM, POINTS[0], duration=found.duration, control=control, rtol=1e-10, atol=1e-11)
    assert (np.abs(run["control"]).max(axis=0) <= np.array(TORQUES) * (1.0 + 1e-6)).all()
    slack = 1e-6 if law == "computed" else 1e-4  # nothing corrects the motion under torques alone
    assert (np.abs(run.qd).max(axis=0) <= np.array([9.0, 5.0]) * (1.0 + slack)).all()
    assert_close(run.q[-1], POINTS[-1], 1e-5, "end")
    assert (found.usage.max(axis=1) > 0.98).mean() > 0.95
    names = {name for _, _, name in found.active}
    assert names <= set(found.labels) and len(names) >= 2


@everyday.long
def test_a_public_arm_keeps_its_own_limits():
    """Move a UR5 along waypoints within the torques and velocities of its file, and replay it."""
    files = [file for file in public_robots() if file.name == "ur5_robot.urdf"]
    if not files:
        pytest.skip("example-robot-data is not installed")
    arm = kt.load(files[0])
    way = [[0.0, -1.5, 1.2, 0.3, 0.2, 0.0], [0.8, -1.0, 0.9, 0.8, 0.6, 0.5], [1.5, -0.7, 1.4, 0.2, -0.4, 0.9]]
    found = kt.time_optimal(arm, way)
    fine = kt.time_optimal(arm, way, knots=1900)
    assert_close(found.duration, fine.duration, 5e-3 * fine.duration, "a finer grid")
    most = np.array([150.0, 150.0, 150.0, 28.0, 28.0, 28.0])
    tau = arm.inverse_dynamics(*kt.sampled(found, np.linspace(0.0, found.duration, 20001)))
    assert (np.abs(tau) <= most * (1.0 + 1e-6)).all()
    control = kt.ComputedTorque(400.0, 40.0, found)
    run = kt.simulate(arm, way[0], duration=found.duration, control=control, rtol=1e-11, atol=1e-12)
    assert (np.abs(run["control"]).max(axis=0) <= most * (1.0 + 1e-6)).all()
    assert_close(run.q[-1], way[-1], 1e-5, "end")


@everyday.long
def test_a_closed_mechanism_is_timed_by_its_actuated_joints():
    """Turn a crank with a limited torque and a limited speed of the output, and replay it."""
    bars = kt.load("four_bar")
    q = bars.assemble()
    limits = {"torque": 5.0, "velocity": {"output": 7.0}}
    found = kt.time_optimal(bars, [[q[0]], [q[0] + 0.9]], limits, actuated="crank")
    control = kt.ComputedTorque(400.0, 40.0, found, actuated="crank")
    run = kt.simulate(bars, q, duration=found.duration, control=control, rtol=1e-10, atol=1e-12)
    output = [joint.name for joint in bars.joints].index("output")
    assert np.abs(run["control"][:, 0]).max() <= 5.0 * (1.0 + 1e-6)
    assert np.abs(run.qd[:, output]).max() <= 7.0 * (1.0 + 1e-6)
    assert {name for _, _, name in found.active} == {"torque of crank", "velocity of output"}
    assert_close(run.q[-1, 0], q[0] + 0.9, 1e-6, "end")


@pytest.mark.parametrize(
    ("v", "F", "bound"),
    [(math.inf, 7.0, 5e-4), (math.inf, 700.0, 1e-6), (1.2, 7.0, 5e-4), (0.41, 7.0, 4e-3)],
)
def test_straight_moves_within_a_jerk_take_their_exact_time(v, F, bound):
    """Compare with closed forms in which jerk and acceleration, jerk alone, all limits, or most of them are reached."""
    m, j = 2.3, 20.0
    exact = kt.Waypoints([0.1, 1.6], velocity=min(v, 1e3), acceleration=F / m, jerk=j).duration
    found = kt.time_optimal(slider(m), [[0.1], [1.6]], {"torque": F, "velocity": v, "jerk": j})
    assert_close(found.duration, exact, bound * exact, "duration")
    assert found.duration >= exact * (1.0 - 1e-7) and found.usage.max() <= 1.0 + 1e-6


@pytest.mark.parametrize("jerk", everyday.without([1300.0, 20000.0], () if THOROUGH else (20000.0,)))
def test_jerks_along_curves_are_limited(jerk):
    """Keep all limits along a curve, stay between the times of two simple bounds, and reach limits nearly always."""
    limits = {"torque": TORQUES, "jerk": jerk}
    found = kt.time_optimal(ARM, POINTS, limits)
    t = np.linspace(0.0, found.duration, 40001)
    q, qd, qdd = kt.sampled(found, t)
    assert (np.abs(np.diff(qdd, axis=0)) <= np.array(jerk) * np.diff(t)[:, None] * (1.0 + 1e-4)).all()
    assert (np.abs(ARM.inverse_dynamics(q, qd, qdd)) <= np.array(TORQUES) * (1.0 + 1e-6)).all()
    assert found.without_jerk < found.duration and "without the limit of the jerk" in str(found)
    assert (found.usage.max(axis=1) > 0.97).mean() > 0.6
    assert_close(q[[0, -1]], POINTS[[0, -1]], 1e-9, "ends")


@everyday.long
def test_a_closed_mechanism_has_limits_of_the_jerk():
    """Turn a crank within a jerk, and refuse that of a joint without a drive."""
    bars = kt.load("four_bar")
    q = bars.assemble()
    limits = {"torque": 5.0, "jerk": 4000.0}
    found = kt.time_optimal(bars, [[q[0]], [q[0] + 0.9]], limits, actuated="crank", knots=300)
    t = np.linspace(0.0, found.duration, 20001)
    qdd = kt.sampled(found, t)[2][:, 0]
    assert np.abs(np.diff(qdd)).max() <= 4000.0 * (t[1] - t[0]) * (1.0 + 1e-4)
    assert found.usage.max() <= 1.0 + 1e-6 and (found.usage.max(axis=1) > 0.97).mean() > 0.6
    with pytest.raises(InputError, match="the jerk of 'output' is limited, which is not driven"):
        kt.time_optimal(
            bars, [[q[0]], [q[0] + 0.9]], {"torque": 5.0, "jerk": {"output": 9.0}}, actuated="crank", knots=300
        )


def test_a_payload_takes_time():
    """Compare a free parameter with mechanisms made with each load; a load that cannot be held is refused."""
    free = kt.with_payload(ARM, "tool", kt.Parameter("load", 0.0, free=True), com=(0.03, 0.0, 0.0))
    times = []
    for load in (0.0, 0.1, 0.23):
        found = kt.time_optimal(free, POINTS, {"torque": TORQUES}, parameters={"load": load}, knots=300)
        made = kt.with_payload(ARM, "tool", load, com=(0.03, 0.0, 0.0)) if load else ARM
        other = kt.time_optimal(made, POINTS, {"torque": TORQUES}, knots=300)
        assert_close(found.duration, other.duration, 1e-9, "time with a load")
        times.append(found.duration)
    assert times[0] < times[1] < times[2]
    with pytest.raises(
        InputError, match=r"the torques cannot carry 'planar_2r.*' along the path: at s = .*'joint2' needs"
    ):
        kt.time_optimal(free, POINTS, {"torque": TORQUES}, parameters={"load": 2.5}, knots=300)


@everyday.long
def test_the_map_of_payloads_is_that_of_a_sweep():
    """Find the largest load that torques hold at each position by two calls, and by rebuilt arms one by one."""
    free = kt.with_payload(ARM, "tool", kt.Parameter("load", 0.0, free=True))
    q = np.stack(np.meshgrid(np.linspace(-1.3, 1.3, 9), np.linspace(-2.0, 2.0, 7), indexing="ij"), axis=-1)
    empty, slope = (free.gravity_torque(q, parameters={"load": x}) for x in (0.0, 1.0))
    slope = slope - empty
    most = ((np.array([4.0, 2.0]) - np.sign(slope) * empty) / np.abs(slope)).min(axis=-1)
    loads = np.linspace(0.0, 4.0, 41)
    held = np.zeros((*q.shape[:-1], len(loads)), dtype=bool)
    for k, load in enumerate(loads):
        arm = kt.with_payload(ARM, "tool", load) if load else ARM  # another mechanism each time
        held[..., k] = (np.abs(arm.gravity_torque(q)) <= [4.0, 2.0]).all(axis=-1)
    swept = np.where(held.all(axis=-1), np.inf, loads[np.argmin(held, axis=-1)])
    inside = np.isfinite(swept)
    assert inside.sum() > 40 and (most[~inside] > 4.0 - 0.1).all()
    assert ((most[inside] <= swept[inside]) & (most[inside] > swept[inside] - 0.1 - 1e-9)).all()


def test_paths_of_a_frame_and_references_are_followed():
    """Retime a straight line of a tool, a table and a cycloid, whose own velocities vanish at their ends."""
    arm = kt.load("puma560")
    start = np.array([0.4, -0.6, 0.5, 0.7, 0.9, -0.3])
    goal = arm.pose([0.7, -0.4, 0.3, 0.5, 1.1, 0.1], "link6")
    first = arm.pose(start, "link6")
    line = arm.cartesian_motion([first, goal], "link6", duration=2.0, q0=start)
    found = kt.time_optimal(arm, line, {"torque": 80.0, "velocity": 3.0}, knots=300)
    places = arm.pose(found.q, "link6")[:, :3, 3] - first[:3, 3]
    way = goal[:3, 3] - first[:3, 3]
    aside = places - np.outer(places @ way / (way @ way), way)
    assert np.abs(aside).max() < 1e-6
    table = kt.Table([0.0, 0.5, 1.2], POINTS)
    cycloid = kt.Cycloid(POINTS[0], POINTS[1], 1.0)
    for path, span, ends in ((table, None, [0, 2]), (cycloid, (0.0, 1.0), [0, 1])):
        found = kt.time_optimal(ARM, path, {"torque": TORQUES}, span=span, knots=300)
        assert_close(found.q[[0, -1]], POINTS[ends], 1e-7, "ends")
    straight = kt.time_optimal(ARM, POINTS[:2], {"torque": TORQUES}, knots=300)
    assert_close(found.duration, straight.duration, 1e-3 * straight.duration, "the same line")


def test_results_are_shown(tmp_path):
    """Print the report, draw the picture, and start later."""
    found = kt.time_optimal(ARM, POINTS, {"torque": TORQUES, "velocity": 9.0}, knots=200, start=0.4)
    text = str(found)
    assert "planar_2r: along the path in" in text and "torque of joint1" in text and "6.100  N m" in text
    assert found.plot(tmp_path / "timing.png").stat().st_size > 10000
    q, qd, _ = found(0.4)
    assert_close(q, POINTS[0], 1e-12, "start") and not np.any(qd)


@pytest.mark.parametrize(
    ("path", "limits", "options", "text"),
    [
        (POINTS, {"torqe": 1.0}, {}, "no limit 'torqe'; did you mean 'torque'"),
        (POINTS, {"torque": -1.0}, {}, "the limit of torque of time_optimal is -1 at 'joint1'; give more than zero"),
        (POINTS, {"torque": [1.0, 2.0, 3.0]}, {}, "has 3 numbers; give one, or 2"),
        (POINTS, {"torque": {"joint3": 1.0}}, {}, "no joint 'joint3'"),
        (POINTS, 40.0, {}, 'give a mapping such as {"torque": 40.0}'),
        (POINTS, {"velocity": 3.0}, {}, "nothing limits the accelerations of 'planar_2r'"),
        (POINTS, {"torque": TORQUES}, {"actuated": "joint1"}, "has no loops, and all its joints are driven"),
        (np.zeros((3, 3)) + np.arange(3)[:, None], {"torque": 9.0}, {}, "has 3 coordinates, and 2 are expected"),
        ([[0.0, 1.0], [0.0, 1.0]], {"torque": 9.0}, {}, "points 1 and 2 of the path are equal"),
        ([[0.0, 1.0], [np.nan, 1.0]], {"torque": 9.0}, {}, "are not all finite"),
        (kt.Cosine([0.5, 0.5], 1.0), {"torque": 9.0}, {}, "span of time_optimal is missing"),
        (kt.Hold([0.5, 0.5]), {"torque": 9.0}, {"span": (0.0, 1.0)}, "does not move"),
        (POINTS, {"torque": [2.0, 2.0]}, {}, r"at s = .* 'joint1' needs .* N m at rest, and its limit is 2 N m"),
    ],
)
def test_faults_are_named(path, limits, options, text):
    """Give each fault, and read what is wrong and where."""
    with pytest.raises((InputError, kt.UnknownNameError), match=text):
        kt.time_optimal(ARM, path, limits, **options)


def test_closed_mechanisms_have_errors_of_their_own():
    """Leave out the actuated joints, drive beyond the reach of the loops, and give too little torque."""
    bars = kt.load("four_bar")
    q = bars.assemble()
    with pytest.raises(InputError, match="name the joints with a drive"):
        kt.time_optimal(bars, [[q[0]], [q[0] + 0.9]], {"torque": 5.0})
    with pytest.raises(InputError, match="'crank' needs 1.9.* N m at rest, and its limit is 0.5 N m"):
        kt.time_optimal(bars, [[q[0]], [q[0] + 0.9]], {"torque": 0.5}, actuated="crank")
    with pytest.raises(InputError, match="leaves the positions that the loops allow"):
        kt.time_optimal(bars, [[q[1]], [q[1] + 9.0]], {"torque": 50.0}, actuated=[bars.joints[1].name])


def test_friction_of_joints_can_be_left_out():
    """Compare an arm with friction, driven with forces=False, with the same arm without friction."""
    m = ARM.mechanism
    joints = [replace(joint, damping=0.3, friction=0.2) for joint in m.joints]
    rubbing = kt.System(kt.build_mechanism("rubbing", m.bodies, joints, gravity=m.gravity))
    with_, without = (
        kt.time_optimal(rubbing, POINTS, {"torque": TORQUES}, forces=forces, knots=300) for forces in (True, False)
    )
    plain = kt.time_optimal(ARM, POINTS, {"torque": TORQUES}, knots=300)
    assert_close(without.duration, plain.duration, 1e-12, "without friction")
    assert with_.duration != pytest.approx(plain.duration, rel=1e-3)
    t = np.linspace(0.0, with_.duration, 5001)
    tau = rubbing.inverse_dynamics(*kt.sampled(with_, t))
    assert (np.abs(tau) <= np.array(TORQUES) * (1.0 + 1e-6)).all()
