"""Inverse dynamics by recursion between subsystems, against the whole system at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, closed, closed_mechanisms, library_state, motion
from kinetree.analysis.loops.driven_programs import subsystem_program
from kinetree.analysis.loops.subsystems import NEGLECTED, Recursion, subsystem_recursion, subsystems
from kinetree.compiler.ir.program import interpret
from kinetree.dynamics.subsystems import Stage, solve_block
from kinetree.errors import InputError, UnknownNameError
from kinetree.formulations.closed_system import closed_equations
from kinetree.model import GROUND
from kinetree.model.axes import axis_labels
from strategies import examples, random_mechanism
from tolerance import assert_close

NAMES = (
    *DRIVES, "car", "charmie_torso", "crank_rocker", "flexible_four_bar", "hoeken", "mecanum_base", "press",
    "rack_steering", "bicycle", "differential_drive", "flexible_slider_crank",
)  # fmt: skip
"""The closed mechanisms of the library, but for the complete CHARMIE."""


def check_against_the_whole(arm: kt.System, recursion: Recursion, q, qd, qdd, bound: float) -> None:
    """Compare torques and multipliers with arm.actuation and with dense equations, with external wrenches."""
    w = np.random.default_rng(3).normal(size=(len(arm.bodies), 6))
    found = recursion.inverse_dynamics(q, qd, qdd, wrenches=w)
    whole = arm.actuation(q, qd, qdd, recursion.actuated, wrenches=w)
    scale = max(1.0, np.abs(found.multipliers).max(initial=0.0), np.abs(whole.tau).max(initial=0.0))
    assert_close(found.tau, whole.tau, bound * scale, "tau")
    sure = whole.unique_multipliers
    assert_close(found.multipliers[sure], whole.multipliers[sure], bound * scale, "multipliers")
    if not arm.mechanism.has_flexible:
        e = closed_equations(arm.mechanism, q, qd, w)
        own = recursion.inverse_dynamics(q, qd, qdd, wrenches=w, forces=False)
        balance = own.tau + e.J.T @ own.multipliers
        assert_close(balance, e.I @ qdd + e.h, bound * scale, "balance of explicit matrices")


@pytest.mark.parametrize("name", everyday.some(NAMES))
def test_subsystems_agree_with_the_system(name):
    """Find the torques and multipliers of the whole system, with external wrenches, for drives of each kind."""
    arm, q, qd, qdd = library_state(name)
    for drives in (DRIVES.get(name), None):
        check_against_the_whole(arm, arm.subsystems(drives), q, qd, qdd, 1e-11)


@everyday.long
def test_subsystems_of_the_largest_mechanism():
    """Find the torques of CHARMIE with both arms, 37 degrees of freedom on one tree, by 21 drives."""
    arm, q, qd, qdd = library_state("charmie_complete")
    check_against_the_whole(arm, arm.subsystems(), q, qd, qdd, 1e-10)


def leading_dofs(J: np.ndarray) -> list[int] | None:
    """Return degrees of freedom that determine all others, by elimination of J; None near positions with more."""
    _, R, order = scipy.linalg.qr(J, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > 1e-7 * sizes.max(initial=0.0)).sum())
    clear = rank == 0 or sizes[rank - 1] > 1e-2 * sizes[0]
    return sorted(int(k) for k in order[rank:]) if clear and 0 < rank < J.shape[1] else None


@given(drawn=closed_mechanisms())
@examples(60)
def test_random_mechanisms_agree(drawn):
    """Close random trees by loops of any kind, with couplings and floating bases, and balance their explicit matrices.

    The programs are interpreted, since compiling them takes longer than all else.
    """
    mechanism, q = drawn
    mechanism = replace(mechanism, forces=())
    qd, qdd = motion(mechanism, q)
    w = np.random.default_rng(3).normal(size=(len(mechanism.bodies), 6))
    e = closed_equations(mechanism, q, qd, w)
    leaders = leading_dofs(e.J)
    assume(leaders is not None)
    try:
        recursion = subsystem_recursion(kt.System(mechanism), [axis_labels(mechanism, 1)[k] for k in leaders or ()])
    except InputError as error:  # where the order is sought, the mechanism has other freedoms, or is singular
        assume("actuated degrees of freedom for" not in str(error) and "do not hold" not in str(error))
        raise
    program = subsystem_program(mechanism, recursion.stages, forces=False, wrenches=True)
    tau, multipliers, strength, opens, neglected = interpret(program, *(x[None] for x in (q, qd, qdd, w)))
    assume(strength.min() > 1e-4)
    scale = max(1.0, np.abs(multipliers).max(), np.abs(tau).max())
    assert_close(tau[0] + e.J.T @ multipliers[0], e.I @ qdd + e.h, 1e-10 * scale, "balance")
    assert not np.delete(tau[0], leaders or ()).any() and opens.max() < 1e-6
    assert_close(neglected, np.zeros((1, 1)), 1e-10, "torques left out")


def test_the_four_bar_is_solved_as_in_the_paper():
    """Solve the two links first, which are determinate, then the crank with their multipliers.   [Saha2013] 4"""
    arm = kt.load("four_bar")
    crank, other = subsystems(arm.mechanism)
    assert (crank.name, crank.bodies, crank.dofs) == ("crank", ("crank",), (0,))
    assert (other.name, other.bodies, other.dofs) == ("output", ("output", "coupler"), (1, 2))
    recursion = arm.subsystems("crank")
    first, second = recursion.steps
    assert (first.subsystems, first.equations, first.known, first.together) == (("output",), 2, (), 2)
    assert first.determinate and set(first.found) == {"pin position x", "pin position y"}
    assert second.subsystems == ("crank",) and second.found == ("tau crank",) and second.together == 0
    assert str(first) == "output: 2 equations for pin position x, pin position y"
    assert str(second) == "crank: 1 equation for tau crank, with pin position y known"
    assert arm.subsystems(["crank"]) is recursion and arm.subsystems().actuated == ("crank",)


@everyday.long
def test_a_row_of_four_bars_is_solved_from_its_end_at_linear_cost():
    """Solve loop by loop, the far end first; a bar more costs the same everywhere, in one system ever more."""
    arm = kt.n_four_bars(3)
    q = arm.assemble(np.array([0.4, -0.4, 0.4, -0.4, 0.4, -0.4, 0.4]))
    qd, qdd = motion(arm.mechanism, q)
    recursion = arm.subsystems("rocker0")
    assert [s.subsystems for s in recursion.steps] == [("rocker3",), ("rocker2",), ("rocker1",), ("rocker0",)]
    assert max(s.equations for s in recursion.steps) == 2
    check_against_the_whole(arm, recursion, q, qd, qdd, 1e-11)
    costs = [kt.n_four_bars(n).subsystems("rocker0").costs() for n in (2, 4, 8)]
    counts = {route: [c[route]["multiplications"] + c[route]["divisions"] for c in costs] for route in costs[0]}
    assert counts["subsystem by subsystem"] == [69, 135, 267]  # 33 per bar
    two, four, eight = counts["whole system at once"]
    assert eight - four > 2.4 * (four - two)  # 2 if it were linear


@everyday.long
def test_costs_are_those_of_the_documentation():
    """Count the operations of every mechanism in the table of the page on closed-loop dynamics."""
    page = (Path(__file__).parents[3] / "docs/closed-loop-dynamics.md").read_text()
    legs = "Stewart platform, legs"
    made = {
        "four-bar, crank": ("four_bar", "crank"), "spatial slider-crank, crank": ("spatial_slider_crank", "crank"),
        "five-bar, both cranks": ("five_bar", None), "parallelogram with three rockers": ("parallelogram", None),
        "rack-and-pinion steering": ("rack_steering", None), "3-RRR robot": ("three_rrr", DRIVES["three_rrr"]),
        legs: ("stewart", DRIVES["stewart"]), "Stewart platform, platform": ("stewart", "platform"),
        "CHARMIE's torso": ("charmie_torso", None),
    }  # fmt: skip
    systems = {what: (kt.load(name), drives) for what, (name, drives) in made.items()}
    systems |= {f"{n} four-bars in a row": (kt.n_four_bars(n), "rocker0") for n in (4, 16, 64)}
    for what, (arm, drives) in systems.items():
        recursion = arm.subsystems(drives)
        steps = [len(recursion.steps), max(s.together for s in recursion.steps)]
        counts = [f"{c['multiplications'] + c['divisions']} + {c['additions']}" for c in recursion.costs().values()]
        assert f"| {' | '.join(map(str, [what, *steps, *counts]))} |" in page, what


def test_batches_have_the_bits_of_single_states():
    """Compute many states at once and find the same bits; shapes of the batch are kept."""
    arm = kt.load("four_bar")
    run = arm.driven_motion({"crank": np.linspace(0.0, 6.0, 7)}, {"crank": np.full(7, 2.0)}, {"crank": np.ones(7)})
    recursion = arm.subsystems("crank")
    whole = recursion.inverse_dynamics(run.q, run.qd, run.qdd)
    assert whole.tau.shape == (7, 3) and whole.multipliers.shape == (7, len(arm.closures))
    for k in range(7):
        one = recursion.inverse_dynamics(run.q[k], run.qd[k], run.qdd[k])
        assert (one.tau == whole.tau[k]).all() and (one.multipliers == whole.multipliers[k]).all()
    assert_close(whole.tau, run.tau, 1e-13, "tau of the driven motion")


def test_subsystems_that_need_each_other_are_joined():
    """Solve both arms of a five-bar together, and a slider-crank together or by parts, depending on its actuator."""
    (step,) = kt.load("five_bar").subsystems(DRIVES["five_bar"]).steps
    assert step.subsystems == ("left_crank", "right_crank") and step.equations == 4 and not step.determinate
    arm = kt.load("slider_crank")
    assert len(arm.subsystems("crank").steps) == 1
    assert [s.subsystems for s in arm.subsystems("slider").steps] == [("crank",), ("slider",)]


@everyday.long
def test_the_platform_decides_the_order_of_a_stewart_platform():
    """Drive the platform itself and solve every leg by itself; drive the legs, and all need each other."""
    arm, q, qd, qdd = library_state("stewart")
    by_legs = arm.subsystems(DRIVES["stewart"])
    assert len(by_legs.steps) == 1 and by_legs.steps[0].equations == 24
    by_platform = arm.subsystems("platform")
    assert [s.subsystems[0] for s in by_platform.steps][-1] == "platform" and len(by_platform.steps) == 7
    assert all(s.determinate for s in by_platform.steps)
    check_against_the_whole(arm, by_platform, q, qd, qdd, 1e-11)


@everyday.long
def test_loops_inside_one_subsystem():
    """Close a loop inside a branch and one between branches, and solve the rest after it."""
    kinds = ["revolute", "revolute", "prismatic", "revolute", "universal", "revolute", "revolute"]
    tree = random_mechanism(kinds, [-1, 0, 1, -1, 3, -1, 4], 21)
    mechanism, q = closed(tree, [("rod", "b0", "b2"), ("spherical", "b6", GROUND), ("rod", "b5", "b2")], 22)
    arm = kt.System(mechanism)
    recursion = arm.subsystems(["j0", "j1", "j3"])
    check_against_the_whole(arm, recursion, q, *motion(mechanism, q), 1e-10)
    order = [s.subsystems for s in recursion.steps]
    assert sorted(order) == [("j0",), ("j3",), ("j5",)] and order.index(("j5",)) < order.index(("j0",))


def test_bodies_fixed_to_the_ground_join_nothing():
    """Put both cranks of a five-bar on a plate that is welded to the ground and find two subsystems as before."""
    m = kt.load("five_bar").mechanism
    plate = kt.Body("plate", 2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    joints = [replace(j, parent="plate") if j.parent == GROUND else j for j in m.joints]
    on_plate = replace(m, bodies=(plate, *m.bodies), joints=(kt.Joint("weld", "fixed", GROUND, "plate"), *joints))
    assert [s.name for s in subsystems(on_plate)] == [s.name for s in subsystems(m)] == ["left_crank", "right_crank"]


def test_symbols_of_parameters_keep_the_recursion():
    """Free a mass and find, for other values of it, the torques of the mechanism that has them."""
    m = kt.load("four_bar").mechanism
    free = kt.System(kt.with_free(m, "mass.coupler"))
    q, qd, qdd = library_state("four_bar")[1:]
    heavy = replace(m, bodies=tuple(replace(b, mass=4.2) if b.name == "coupler" else b for b in m.bodies))
    found = free.subsystems("crank").inverse_dynamics(q, qd, qdd, parameters=[4.2])
    assert_close(found.tau, kt.System(heavy).actuation(q, qd, qdd, "crank").tau, 1e-13, "tau")


def test_mismatched_actuators_are_told():
    """Reject too many actuators, and unknown ones."""
    arm = kt.load("four_bar")
    with pytest.raises(
        InputError, match="2 actuated degrees of freedom for 1 of the mechanism; the recursion requires"
    ):
        arm.subsystems(["crank", "output"])
    with pytest.raises(UnknownNameError, match="actuated: no joint 'pin'; available: crank, output, coupler"):
        arm.subsystems("pin")
    with pytest.raises(InputError, match="1 actuated degrees of freedom for 2 of the mechanism"):
        kt.load("planar_2r").subsystems("joint1")


def test_motions_that_open_the_loops_are_refused():
    """Give an open position, velocities that open the loop, shapes and numbers that are wrong, and read why."""
    arm, q, qd, qdd = library_state("four_bar")
    recursion, away = arm.subsystems("crank"), np.array([0.1, 0.0, 0.0])
    with pytest.raises(InputError, match="q leaves the loops open: 'pin'"):
        recursion.inverse_dynamics(q + away, qd, qdd)
    with pytest.raises(InputError, match="qd opens the loops: 'pin'"):
        recursion.inverse_dynamics(q, qd + away, qdd)
    with pytest.raises(InputError, match="qdd opens the loops"):
        recursion.inverse_dynamics(q, qd, qdd + away)
    with pytest.raises(InputError, match=r"qdd\[0\] is nan; give finite numbers"):
        recursion.inverse_dynamics(q, qd, [np.nan, 0.0, 0.0])
    with pytest.raises(InputError, match=r"wrenches\[0, 0\] is nan"):
        recursion.inverse_dynamics(q, qd, qdd, wrenches=np.full((3, 6), np.nan))
    with pytest.raises(InputError, match="qd"):
        recursion.inverse_dynamics(q, [0.0], qdd)


def test_dead_centres_are_told():
    """Drive a stretched slider-crank by its slider and read that this cannot hold it; its crank can."""
    arm = kt.load("slider_crank")
    q, rest = np.array([-np.pi / 2, 0.0, 2.0]), np.zeros(3)
    assert np.abs(arm.closure_residual(q)).max() < 1e-15
    arm.subsystems("crank").inverse_dynamics(q, rest, rest)
    message = "do not hold the mechanism in this position: the equations of 'crank' are singular; actuate other joints"
    with pytest.raises(InputError, match=message):
        arm.subsystems("slider").inverse_dynamics(q, rest, rest)
    good = arm.assemble([0.4, 0.0, 0.0], ["crank"])
    with pytest.raises(InputError, match=r"in this position \(state \[1\]\)"):
        arm.subsystems("slider").inverse_dynamics([good, q], [rest, rest], [rest, rest])


def test_an_order_that_does_not_hold_is_told():
    """Take a multiplier for known before it is, and read which part of the torques this leaves out."""
    arm, q, qd, qdd = library_state("four_bar")
    made = arm.subsystems("crank")
    links, crank = made.stages
    ((passive, unknown),) = links.blocks
    one_by_one = tuple(((p,), (k,)) for p, k in zip(passive, unknown, strict=True))
    wrong = replace(made, stages=(Stage(links.dofs, one_by_one, ()), crank))
    with pytest.raises(
        InputError, match="act on other joints here .* of the torques is left out; close the loops more"
    ):
        wrong.inverse_dynamics(q, qd, qdd)
    assert NEGLECTED < 1e-8


def test_trees_need_no_steps_between():
    """Find plain inverse dynamics for an arm, one subsystem that is determinate by itself."""
    arm = kt.load("planar_2r")
    q, qd = arm.random_state(1)
    recursion = arm.subsystems()
    found = recursion.inverse_dynamics(q, qd, qd)
    assert len(recursion.steps) == 1 and found.multipliers.shape == (0,)
    assert_close(found.tau, arm.inverse_dynamics(q, qd, qd), 1e-12, "tau")
    assert "torques and multipliers" not in str(recursion)


def test_blocks_are_solved_with_exchanged_rows():
    """Solve systems whose first pivots vanish, by plain numbers, and find the pivot 0 of one that is singular."""
    rng = np.random.default_rng(4)
    for count in (1, 2, 3, 6):
        A = rng.normal(size=(count, count))
        A[0, 0] = 0.0 if count > 1 else 1.7
        b = rng.normal(size=count)
        x, pivots = solve_block(A.tolist(), b.tolist())
        assert_close(np.array(x), np.linalg.solve(A, b), 1e-13 * np.linalg.cond(A), f"{count} equations")
        assert_close(np.abs(np.prod(pivots)), np.abs(np.linalg.det(A)), 1e-13, f"determinant of {count}")
    _, pivots = solve_block([[1.0, 2.0], [0.5, 1.0 + 1e-15]], [1.0, 1.0])
    assert abs(pivots[1]) < 1e-14
