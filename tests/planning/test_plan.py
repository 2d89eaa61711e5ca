"""Optimal motions between states: exact solutions, Pontryagin's conditions, replays, closed mechanisms and errors."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.integrate import solve_bvp
from scipy.optimize import brentq

import everyday
import kinetree as kt
from kinetree.errors import InputError, UnknownNameError
from public_robots import public_robots
from tolerance import assert_close

pytest.importorskip("casadi")
ARM = kt.load("planar_2r")
START, GOAL = [-1.0, 0.3], [0.9, 0.7]
TORQUES = [6.0, 2.0]


def slider(mass: float = 2.3) -> kt.System:
    """Return a mass on a rail."""
    body = kt.Body("cart", mass, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    rail = kt.Joint("rail", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0))
    return kt.System(kt.build_mechanism("slider", [body], [rail]))


def cart_pole(m1: float = 1.0, m2: float = 0.3, length: float = 0.5) -> kt.System:
    """Return a cart with a point mass on a rod, which hangs at zero."""
    cart = kt.Body("cart", m1, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    pole = kt.Body("pole", m2, (0.0, 0.0, -length), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    rail = kt.Joint("rail", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0))
    pivot = kt.Joint("pivot", "revolute", "cart", "pole", axis=(0.0, 1.0, 0.0))
    return kt.System(kt.build_mechanism("cart and pole", [cart, pole], [rail, pivot]))


def acrobot() -> kt.System:
    """Return two uniform links of 1 m and 1 kg that hang at zero."""
    inertia = (0.0833, 0.0833, 0.0001, 0.0, 0.0, 0.0)
    links = [kt.Body(name, 1.0, (0.0, 0.0, -0.5), inertia) for name in ("upper", "lower")]
    joints = [
        kt.Joint("shoulder", "revolute", "ground", "upper", axis=(0.0, 1.0, 0.0)),
        kt.Joint("elbow", "revolute", "upper", "lower", kt.Placement((0.0, 0.0, -1.0)), axis=(0.0, 1.0, 0.0)),
    ]
    return kt.System(kt.build_mechanism("acrobot", links, joints))


def replay(plan, **options) -> kt.Trajectory:
    """Return the run under the torques of a plan alone."""
    options = {"rtol": 1e-11, "atol": 1e-12} | options
    return kt.simulate(plan.system, plan.q[0], plan.qd[0], duration=plan.duration, control=plan, **options)


def test_a_double_integrator_has_its_exact_solutions():
    """Compare least time 2 sqrt(m d / F), least effort 12 m^2 d^2 / T^3, and the work of accelerating and coasting."""
    m, way, F, T = 2.3, 1.5, 7.0, 2.0
    fast = kt.plan(slider(m), [0.1], [0.1 + way], limits={"torque": F})
    expected = 2.0 * math.sqrt(m * way / F)
    assert_close(fast.duration, expected, 1e-3 * expected, "least time")
    assert np.abs(fast.tau).max() <= F and fast.cost == fast.duration
    gentle = kt.plan(slider(m), [0.1], [0.1 + way], duration=T)
    assert_close(gentle.cost, 12.0 * m**2 * way**2 / T**3, 1e-8 * gentle.cost, "least effort")
    u = 6.0 * m * way / T**2 * (1.0 - 2.0 * gentle.t / T)
    assert_close(gentle.tau[:, 0], u, 1e-6, "torques of least effort")
    saving = kt.plan(slider(m), [0.1], [0.1 + way], duration=T, minimize="energy", limits={"torque": F}, intervals=100)
    v = brentq(lambda v: v * (T - m * v / F) - way, 0.0, F * T / m / 2.0)
    assert_close(saving.cost, m * v**2 / 2.0, 5e-3 * saving.cost, "least work")


def test_a_cart_swings_up_its_pole_as_pontryagin_demands():
    """Compare the swing-up of Kelly's tutorial with its two-point boundary value problem, and replay the torques."""
    m1, m2, length, T, g = 1.0, 0.3, 0.5, 2.0, 9.81
    limits = {"torque": {"rail": 20.0}, "position": {"rail": (-2.0, 2.0)}}
    plan = kt.plan(cart_pole(m1, m2, length), [0.0, 0.0], [1.0, math.pi], duration=T, limits=limits, actuated="rail")

    def rates(x, u):  # the tutorial's, whose angle grows against that of the library
        _, th, v, w = x
        s, c = np.sin(th), np.cos(th)
        a = (u + m2 * length * s * w**2 + m2 * g * s * c) / (m1 + m2 * s**2)
        return np.array([v, w, a, -(a * c + g * s) / length])

    def conditions(t, y):
        """Return the rates of states and costates, with u = -lambda df/du / 2 and derivatives by complex steps."""
        x, lam = y[:4], y[4:]
        step = 1e-30
        by_u = rates(x.astype(complex), np.zeros(x.shape[1]) + 1j * step).imag / step
        u = -(lam * by_u).sum(axis=0) / 2.0
        slopes = [-(lam * rates(x + 1j * step * np.eye(4)[:, [k]], u).imag / step).sum(axis=0) for k in range(4)]
        return np.concatenate([rates(x, u), slopes])

    sign = np.array([1.0, -1.0, 1.0, -1.0])
    at = cart_pole().forward_dynamics([0.3, 0.7], [0.4, -1.1], [2.0, 0.0])
    assert_close(rates(np.array([0.3, 0.7, 0.4, -1.1]) * sign, 2.0)[2:] * sign[2:], at, 1e-12, "the model")
    end = np.array([1.0, -math.pi, 0.0, 0.0])
    x = np.concatenate([plan.q, plan.qd], axis=1) * sign
    u = plan.tau[:, 0]
    guess = np.concatenate([x.T, np.zeros((4, len(u)))])
    guess[6] = -2.0 * u * m1
    found = solve_bvp(
        conditions, lambda a, b: np.concatenate([a[:4], b[:4] - end]), plan.t, guess, tol=1e-8, max_nodes=50000
    )
    assert found.success
    y = found.sol(np.linspace(0.0, T, 20001))
    by_u = np.array([rates(y[:4], 1.0)[k] - rates(y[:4], 0.0)[k] for k in range(4)])
    force = -(y[4:] * by_u).sum(axis=0) / 2.0
    best = float(((force[1:] ** 2 + force[:-1] ** 2) / 2.0).sum() * T / 20000)
    assert_close(plan.cost, best, 1e-5 * best, "the least effort")
    assert_close(plan.tau[:, 0], np.interp(plan.t, np.linspace(0.0, T, 20001), force), 0.05, "the force")
    assert np.abs(force).max() < 20.0  # no limit is reached, as in the tutorial
    run = replay(plan)
    assert_close(run.q[-1], [1.0, math.pi], 1e-4, "the end of the replay")
    assert np.abs(run["control"][:, 0]).max() <= 20.0 and plan.error <= 1e-8


@everyday.long
def test_an_acrobot_swings_up_and_is_followed():
    """Replay the torques of an elbow alone, and follow the plan from a disturbed start by TrackingLQR."""
    plan = kt.plan(
        acrobot(), [0.0, 0.0], {"shoulder": math.pi, "elbow": 0.0}, duration=2.0, actuated="elbow",
        limits={"torque": {"elbow": 25.0}}, tolerance=1e-8, max_intervals=800,
    )  # fmt: skip
    run = replay(plan)
    assert_close(run.q[-1], [math.pi, 0.0], 1e-4, "the end of the replay")
    assert np.abs(run["control"][:, 1]).max() <= 25.0 and not run["control"][:, 0].any()
    law = kt.TrackingLQR(plan.run, Q=100.0, joints="elbow", knots=201)
    followed = kt.simulate(plan.system, plan.q[0] + [0.01, -0.01], duration=plan.duration, control=law)
    open_loop = kt.simulate(plan.system, plan.q[0] + [0.01, -0.01], duration=plan.duration, control=plan)
    missed, astray = (np.abs(x.q[-1] - plan.q[-1]).max() for x in (followed, open_loop))
    assert missed < 0.05 and missed < 0.4 * astray


def test_two_links_in_least_time():
    """Keep all limits along the replay, agree with a fine mesh, and with the fastest timing of the same path."""
    limits = {"torque": TORQUES, "velocity": [9.0, 5.0]}
    plan = kt.plan(ARM, START, GOAL, limits=limits)
    fine = kt.plan(ARM, START, GOAL, limits=limits, intervals=120)
    assert_close(plan.duration, fine.duration, 5e-3 * fine.duration, "a fine mesh")
    run = replay(plan)
    assert (np.abs(run["control"]).max(axis=0) <= np.array(TORQUES) * (1.0 + 1e-6)).all()
    assert (np.abs(run.qd).max(axis=0) <= np.array([9.0, 5.0]) * (1.0 + 1e-6)).all()
    assert_close(run.q[-1], GOAL, 1e-6, "the end of the replay")
    timed = kt.time_optimal(ARM, plan, limits, span=(0.0, plan.duration))
    assert 0.995 * plan.duration < timed.duration < 1.005 * plan.duration  # no timing of this path is faster
    straight = kt.time_optimal(ARM, [START, GOAL], limits)
    assert plan.duration < straight.duration


@everyday.long
def test_a_public_arm_in_least_time():
    """Move a UR5 between two poses within the torques and velocities of its file, and replay it."""
    files = [file for file in public_robots() if file.name == "ur5_robot.urdf"]
    if not files:
        pytest.skip("example-robot-data is not installed")
    arm = kt.load(files[0])
    first, last = [0.0, -1.5, 1.2, 0.3, 0.2, 0.0], [1.5, -0.7, 1.4, 0.2, -0.4, 0.9]
    plan = kt.plan(arm, first, last, intervals=15, tolerance=1e-6)
    fine = kt.plan(arm, first, last, intervals=60, tolerance=1e-6, guess=plan)
    assert_close(plan.duration, fine.duration, 5e-3 * fine.duration, "a fine mesh")
    run = replay(plan, rtol=1e-10, atol=1e-11)
    most, fastest = np.array([150.0] * 3 + [28.0] * 3), np.array([3.15] * 3 + [3.2] * 3)
    assert (np.abs(run["control"]).max(axis=0) <= most * (1.0 + 1e-6)).all()
    assert (np.abs(run.qd).max(axis=0) <= fastest * (1.0 + 1e-6)).all()
    assert_close(run.q[-1], last, 1e-5, "the end of the replay")
    timed = kt.time_optimal(arm, plan, span=(0.0, plan.duration))
    assert 0.99 * plan.duration < timed.duration < 1.005 * plan.duration


@everyday.long
def test_a_closed_mechanism_is_planned_by_its_actuated_joints():
    """Turn the crank of a four-bar, whose only path makes the least time that of time_optimal; keep the loop closed."""
    bars = kt.load("four_bar")
    q = bars.assemble()
    plan = kt.plan(bars, q, {"crank": q[0] + 0.9}, actuated="crank", limits={"torque": {"crank": 5.0}})
    timed = kt.time_optimal(bars, [[q[0]], [q[0] + 0.9]], {"torque": 5.0}, actuated="crank")
    assert_close(plan.duration, timed.duration, 1e-3 * timed.duration, "least time")
    closed = bars.assemble(plan.q)
    assert_close(plan.q, closed, 1e-11, "loops along the plan")
    run = replay(plan)
    assert_close(run.q[-1], closed[-1], 1e-5, "the end of the replay")
    assert np.abs(run["control"][:, 0]).max() <= 5.0 and not run["control"][:, 1:].any()
    gentle = kt.plan(bars, q, closed[-1], actuated="crank", duration=0.4, tolerance=1e-7)
    assert_close(gentle.q[-1], closed[-1], 1e-5, "a goal with all joints")
    follow = kt.ComputedTorque(400.0, 40.0, gentle, actuated="crank")
    run = kt.simulate(bars, q, duration=0.4, control=follow, rtol=1e-9, atol=1e-10)
    assert_close(run.q[-1], closed[-1], 1e-4, "the plan as a reference")


def test_compiled_derivatives_lead_to_the_same_plan():
    """Compare the form of CasADi's expressions with that of native code."""
    options = {"duration": 0.6, "limits": {"torque": TORQUES}, "tolerance": 1e-4, "intervals": 12}
    plans = [kt.plan(ARM, START, GOAL, form=form, **options) for form in ("sx", "native")]
    assert_close(plans[0].cost, plans[1].cost, 1e-9 * plans[0].cost, "cost")
    assert_close(plans[0].q, plans[1].q, 1e-6, "positions")


def test_a_plan_is_a_warm_start():
    """Start from a plan and from its replay, on other meshes, and take fewer iterations to the same cost."""
    limits = {"torque": {"rail": 20.0}, "position": {"rail": (-2.0, 2.0)}}
    options = {"duration": 2.0, "limits": limits, "actuated": "rail", "tolerance": 1e-6}
    first = kt.plan(cart_pole(), [0.0, 0.0], [1.0, math.pi], **options)
    for guess in (first, replay(first)):
        again = kt.plan(cart_pole(), [0.0, 0.0], [1.0, math.pi], guess=guess, intervals=60, **options)
        assert again.meshes[0].iterations < first.meshes[0].iterations
        assert_close(again.cost, first.cost, 1e-4 * first.cost, "cost")


@everyday.long
def test_meshes_are_refined_where_errors_are():
    """Ask for smaller errors: estimates fall below the tolerance, and the replays come nearer to the goal."""
    missed = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        plan = kt.plan(ARM, START, GOAL, duration=0.6, limits={"torque": TORQUES}, tolerance=tolerance)
        assert plan.error <= tolerance and plan.meshes[-1].intervals >= plan.meshes[0].intervals
        missed.append(float(np.abs(replay(plan).q[-1] - GOAL).max()))
    assert missed[2] < 0.1 * missed[0] and missed[2] < 5e-6


def test_loads_springs_and_free_ends_are_taken():
    """Plan with a payload as a parameter, with a spring that acts or not, and with a joint that is free at the goal."""
    loaded = kt.with_payload(ARM, "tool", kt.Parameter("load", 0.0, free=True))
    times = [
        kt.plan(loaded, START, GOAL, limits={"torque": TORQUES}, parameters={"load": x}, tolerance=1e-5).duration
        for x in (0.0, 0.2)
    ]
    assert times[0] < times[1]
    plan = kt.plan(ARM, START, {"joint1": 0.9}, limits={"torque": TORQUES}, tolerance=1e-5)
    assert plan.duration < kt.plan(ARM, START, GOAL, limits={"torque": TORQUES}, tolerance=1e-5).duration
    assert_close(plan.q[-1, 0], 0.9, 1e-12, "the joint of the goal")
    moving = kt.plan(ARM, (START, [0.5, -0.2]), (GOAL, [0.0, 1.0]), duration=0.6, tolerance=1e-5)
    assert_close(moving.qd[[0, -1]], [[0.5, -0.2], [0.0, 1.0]], 1e-12, "velocities of the ends")


def test_results_are_shown(tmp_path):
    """Print the report, draw the picture, and use the plan as a run."""
    plan = kt.plan(ARM, START, GOAL, duration=0.6, limits={"torque": TORQUES}, tolerance=1e-4)
    assert "planar_2r: least effort" in str(plan) and "torque of joint2" in str(plan)
    assert plan.plot(tmp_path / "plan.png").stat().st_size > 10000
    assert plan.run.finished and np.array_equal(plan.run["control"], plan.tau)
    with pytest.raises(InputError, match="this plan is that of 'planar_2r' with 2 degrees of freedom"):
        kt.simulate(kt.load("planar_3r"), duration=0.1, control=plan)


@pytest.mark.parametrize(
    ("start", "goal", "options", "text"),
    [
        ([-3.0, 0.3], GOAL, {"limits": {"position": {"joint1": (-2.0, 2.0)}}}, "the start has 'joint1' at -3 rad, out"),
        (START, [2.5, 0.3], {"limits": {"position": {"joint1": (-2.0, 2.0)}}}, "the goal has 'joint1' at 2.5 rad, out"),
        ((START, [7.0, 0.0]), GOAL, {"limits": {"velocity": 3.0}}, "at a velocity of 7 rad/s, above its limit of 3"),
        ([0.0], GOAL, {}, r"q of the start has shape \(1,\); expected \[2\]"),
        ([0.0, np.nan], GOAL, {}, "q of the start has entries that are not finite"),
        ({"joint1": 0.0}, GOAL, {}, "the start leaves out 'joint2'"),
        (START, {"joint3": 0.0}, {}, "no joint 'joint3'"),
        (START, GOAL, {"minimize": "tme"}, "no cost of plan 'tme'; did you mean 'time'"),
        (START, GOAL, {"minimize": "time"}, "nothing limits the torque of 'joint1', 'joint2'"),
        (START, GOAL, {"duration": -1.0}, "duration of plan is -1.0; give a number above zero"),
        (START, GOAL, {"actuated": "elbow"}, "no joint 'elbow'"),
        (START, GOAL, {"guess": 3}, "guess of plan is 3; give a Plan or a single run"),
        (START, GOAL, {"limits": {"position": 2.0}}, "give ranges by joint"),
        (START, GOAL, {"limits": {"position": {"joint1": (2.0, 1.0)}}}, "give two numbers that rise"),
        (START, GOAL, {"duration": 0.1, "limits": {"torque": TORQUES}}, "no motion of 'planar_2r' from start to goal"),
        (
            START,
            GOAL,
            {"duration": 1.0, "limits": {"torque": [0.6, 0.2]}},
            "limits are reached of the torque of 'joint1'",
        ),
    ],
)
def test_faults_are_named(start, goal, options, text):
    """Give each fault, and read what is wrong and where."""
    options = {"duration": None if "minimize" in options else 0.6} | options
    with pytest.raises((InputError, kt.UnknownNameError), match=text):
        kt.plan(ARM, start, goal, **options)


def test_closed_mechanisms_have_errors_of_their_own():
    """Leave out the actuated joints, and start where the loops are open."""
    bars = kt.load("four_bar")
    q = bars.assemble()
    with pytest.raises(InputError, match="name the joints with a drive"):
        kt.plan(bars, q, {"crank": 1.0}, duration=1.0)
    with pytest.raises(InputError, match="loops of 'four_bar' are open at the start, by .*; give a closed position"):
        kt.plan(bars, q + 0.1, {"crank": 1.0}, duration=1.0, actuated="crank")
    with pytest.raises(InputError, match="the velocities of the start open the loops"):
        kt.plan(bars, (q, [1.0, 0.0, 0.0]), {"crank": 1.0}, duration=1.0, actuated="crank")


# --- Phases with contacts ---


def vertical_hopper(trunk: float = 4.3, foot: float = 0.7) -> kt.System:
    """Return a trunk on a rail, and a foot on a leg that a drive lengthens."""
    inertia = (0.02, 0.02, 0.01, 0.0, 0.0, 0.0)
    bodies = [kt.Body("trunk", trunk, (0.0, 0.0, 0.0), inertia), kt.Body("foot", foot, (0.0, 0.0, 0.0), inertia)]
    down = kt.Placement((0.0, 0.0, -0.1))
    joints = [
        kt.Joint("height", "prismatic", "ground", "trunk", axis=(0.0, 0.0, 1.0)),
        kt.Joint("leg", "prismatic", "trunk", "foot", down, axis=(0.0, 0.0, -1.0)),
    ]
    return kt.System(kt.build_mechanism("hopper", bodies, joints, contacts=[kt.Contact("sole", "foot")]))


HOP = [kt.Phase("sole"), kt.Phase((), duration=(0.1, 0.5)), kt.Phase("sole")]


@pytest.fixture(scope="module")
def jump():
    """Return a jump of a hopper on a rail, from rest to rest."""
    return kt.plan(vertical_hopper(), [0.6, 0.5], {"height": 0.55}, phases=HOP, actuated="leg", duration=0.9,
                   limits={"torque": 150.0, "position": {"leg": (0.2, 0.8)}}, intervals=8, tolerance=1e-8)  # fmt: skip


def test_a_jump_obeys_the_laws_of_impulse_and_free_fall(jump):
    """Compare the impulse with the momentum of the foot, flight with free fall, and momentum with contact forces."""
    stance, flight, landing = jump.parts
    before, after = flight.v[-1], landing.v[0]
    foot_before = before[0] - before[1]
    assert foot_before < -0.05
    assert_close(after, [before[0], before[0]], 1e-9, "the trunk goes on, the foot stops")
    assert_close(jump.contacts[2].impulses, [[-0.7 * foot_before, 0.0, 0.0]], 1e-8, "impulse")
    center = lambda x: (4.3 * x[:, 0] + 0.7 * (x[:, 0] - x[:, 1])) / 5.0  # noqa: E731
    t = flight.times
    fall = center(flight.q)[0] + center(flight.v)[0] * t - 9.81 / 2.0 * t**2
    assert_close(center(flight.q) - fall, np.zeros(len(t)), 1e-8, "free fall")
    forces = jump.contacts[0].forces[:, 0, 0]
    push = np.sum(np.diff(stance.times[::2]) * (forces[:-1:2] + 4.0 * forces[1::2] + forces[2::2]) / 6.0)
    assert_close(push - 5.0 * 9.81 * stance.duration, 5.0 * center(stance.v)[-1], 1e-6, "momentum")
    assert min(x.forces[..., 0].min() for x in (jump.contacts[0], jump.contacts[2])) > -1e-9
    assert (flight.q[:, 0] - 0.1 - flight.q[:, 1]).min() > -1e-9


def test_a_jump_is_replayed_with_hard_contacts(jump):
    """Simulate the torques of a jump, with contacts by Coulomb's law and no restitution, and land where it does."""
    assert_close(jump.duration, 0.9, 1e-9, "duration")
    assert (np.diff(jump.t) > 0.0).all()
    run = replay(jump, rtol=1e-9, atol=1e-10)
    assert_close(run.q[-1], jump.q[-1], 1e-5, "end of the replay")
    assert_close(run.qd[-1], jump.qd[-1], 1e-4, "velocities at the end")
    middle = np.interp(run.t, jump.t, jump.q[:, 0])
    assert_close(run.q[:, 0], middle, 2e-3, "height, by lines between the points of the plan")
    shown = str(jump)
    assert "impulse [N s]" in shown and "held" in shown and "free" in shown
    again = kt.plan(jump.system, [0.6, 0.5], {"height": 0.55}, phases=HOP, actuated="leg", duration=0.9, guess=jump,
                    limits={"torque": 150.0, "position": {"leg": (0.2, 0.8)}}, intervals=8, tolerance=1e-6)  # fmt: skip
    assert_close(again.cost, jump.cost, 1e-4 * jump.cost, "the same cost from the plan as a guess")


@pytest.mark.slow
def test_a_planar_hop_keeps_forces_in_the_friction_cone():
    """Hop forward by 0.3 m on a leg of two links with little friction, and replay it."""

    def hopper(friction: float) -> kt.System:
        inertia = (0.02, 0.02, 0.005, 0.0, 0.0, 0.0)
        bodies = [
            kt.Body("rail", 0.0, (0.0, 0.0, 0.0), (0.0,) * 6),
            kt.Body("trunk", 5.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)),
            kt.Body("thigh", 1.0, (0.0, 0.0, -0.2), inertia),
            kt.Body("shank", 0.6, (0.0, 0.0, -0.2), inertia),
        ]
        below = kt.Placement((0.0, 0.0, -0.4))
        joints = [
            kt.Joint("forward", "prismatic", "ground", "rail", axis=(1.0, 0.0, 0.0)),
            kt.Joint("height", "prismatic", "rail", "trunk", axis=(0.0, 0.0, 1.0)),
            kt.Joint("hip", "revolute", "trunk", "thigh", axis=(0.0, 1.0, 0.0)),
            kt.Joint("knee", "revolute", "thigh", "shank", below, axis=(0.0, 1.0, 0.0)),
        ]
        foot = kt.Contact("foot", "shank", placement=below, friction=friction)
        return kt.System(kt.build_mechanism("planar hopper", bodies, joints, contacts=[foot]))

    height = 0.8 * math.cos(0.6)
    found = kt.plan(
        hopper(0.2), [0.0, height, 0.6, -1.2], {"forward": 0.3, "height": height}, duration=0.8, intervals=10,
        phases=[kt.Phase("foot"), kt.Phase((), (0.1, 0.6)), kt.Phase("foot")], actuated=["hip", "knee"],
        limits={"torque": 80.0},
    )  # fmt: skip
    use = np.concatenate([x.use for x in found.contacts])
    assert 0.99 < use.max() <= 1.0 + 1e-7
    impulse = found.contacts[2].impulses[0]
    assert abs(impulse[1]) <= 0.2 * impulse[0] * (1.0 + 1e-7)
    run = kt.simulate(hopper(0.8), found.q[0], found.qd[0], duration=0.8, control=found, rtol=1e-10, atol=1e-11)
    assert_close(run.q[-1], found.q[-1], 1e-3, "end of the replay")  # 4e-5: an upright body amplifies errors


@pytest.mark.parametrize(("change", "text"), [
    ({"phases": [kt.Phase("heel")]}, "no contact 'heel'"),
    ({"phases": []}, r'plan: phases are \[\]; give a list such as \[kt.Phase\("foot"\), kt.Phase\(\)\]'),
    ({"phases": [kt.Phase("sole", duration=-1.0)]}, "the duration of phase 1 of plan is -1.0; give a number above"),
    ({"start": [0.7, 0.5]}, "the contact 'sole' of the first phase is 0.1 m above the ground at the start"),
    ({"goal": [0.6, 0.5]}, "the goal gives 2 positions, and the contacts of the last phase leave 1 free"),
    ({"minimize": "energy"}, "phases take minimize='effort' or 'time', not 'energy'"),
    ({"form": "native"}, "phases take form='sx', not 'native'"),
    ({"limits": {"torque": 30.0}}, "no motion of 'hopper' through 3 phases was found within the limits"),
])  # fmt: skip
def test_faults_of_phases_are_named(change, text):
    """Name phases and contacts that do not fit, and jumps that drives cannot make."""
    options = {"phases": HOP, "actuated": "leg", "limits": {"torque": 150.0}, "duration": 0.9, "intervals": 8}
    options = {"start": [0.6, 0.5], "goal": {"height": 0.55}} | options | change
    with pytest.raises((InputError, UnknownNameError), match=text):
        kt.plan(vertical_hopper(), options.pop("start"), options.pop("goal"), **options)


def test_a_missing_package_is_named(monkeypatch):
    """Plan without CasADi, and read how to install it."""
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(InputError, match=r"Optimal plans need the package casadi.*pip install 'kinetree\[optimal\]'"):
        kt.plan(ARM, START, GOAL, duration=1.0)
