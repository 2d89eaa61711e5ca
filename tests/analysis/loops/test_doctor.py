"""The doctor: its findings in mechanisms with known faults."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
import strategies
from closed_mechanisms import closed_mechanisms
from kinetree.analysis.loops.kinematics import LoopKinematics
from kinetree.analysis.loops.redundancy import redundancy
from kinetree.compiler.lower.loop_pattern import closing_pattern
from kinetree.errors import InputError, ModelError
from kinetree.model import GROUND
from planar_loops import CRANK_ROCKER, THREE_RRR, at, chain, pin, rod, two_bars
from sprung_mechanisms import sprung
from tolerance import assert_close

ACROSS = ("position z", "rotation x", "rotation y")
"""What a planar mechanism closes by itself."""


def finding(found, title: str):
    """Return the finding with a title, or fail with the list of findings."""
    for one in found.findings:
        if title in one.title:
            return one
    raise AssertionError(f"no finding {title!r}; there are {[one.title for one in found.findings]}")


def test_a_planar_four_bar_in_space():
    """Find three of the five equations redundant, because the mechanism is planar, and a mobility that is not -2."""
    found = kt.load("four_bar").doctor()
    assert found.ok and found.closed
    assert (found.counted, found.rank, found.mobility, found.lasting) == (-2, 2, 1, 1)
    assert found.redundant == found.unclear == tuple(("pin", label) for label in ACROSS)
    one = finding(found, "3 equations hold by themselves")
    assert one.level == "note"
    assert one.text == (
        "loop 'pin': position z, rotation x and rotation y add nothing new, whatever the joints do. "
        "The mechanism is planar: nothing leaves its plane."
    )
    assert "also in the reactions of crank, output and coupler" in one.advice and "point_on_line" in one.advice
    assert found.verdict == "four_bar: closed, mobility 1, nothing is wrong."


def test_a_loop_that_says_only_what_counts():
    """Follow the advice, with a point on a line, and find nothing redundant."""
    from dataclasses import replace

    m = kt.load("four_bar").mechanism
    found = kt.System(replace(m, loops=(replace(m.loops[0], kind="point_on_line"),))).doctor()
    assert found.redundant == () and found.counted == found.mobility == 1


def test_a_parallelogram_with_a_third_bar():
    """Find one equation in the plane that follows from the other bar's, and all reactions that share in it."""
    system = kt.load("parallelogram")
    found = system.doctor(system.assemble(hold={"rocker": 0.37}))
    assert (found.mobility, found.rank) == (1, 3)
    inside = [pair for pair in found.redundant if pair[1] not in ACROSS]
    assert len(inside) == 1 and inside[0][0] == "third_pin"
    one = finding(found, "1 equation follows from others")
    assert one.level == "caution"
    assert one.text.startswith("At every position around: 'third_pin' position y follows from 'second_pin' position y")
    assert "the reactions of rocker, coupler, second_rocker and third_rocker" in one.advice


def test_the_combination_is_one():
    """Add up the rows of J with the coefficients found, and get the redundant row."""
    system = kt.load("parallelogram")
    loops = LoopKinematics(system)
    q = system.assemble(hold={"rocker": 0.37})
    (dependence,) = redundancy(loops, q).dependent
    J = loops.jacobian(q)
    assert_close(sum(x * J[k] for k, x in dependence.of), J[dependence.equation], 1e-14, "rows")


@pytest.mark.parametrize("name", ["four_bar", "parallelogram", "stewart", "spatial_slider_crank", "gear_train"])
def test_idle_equations_are_those_that_dynamics_leaves_out(name):
    """Find the same idle equations as by the multipliers."""
    system = kt.load(name)
    idle = set(redundancy(LoopKinematics(system), system.assemble()).idle)
    assert idle == set(range(len(system.closures))) - set(closing_pattern(system.mechanism).kept)


def test_what_cannot_be_told_is_what_no_torque_feels():
    """Apply a stress that is reported as not unique, and find no joint torques but reactions."""
    system = kt.load("parallelogram")
    q = system.assemble(hold={"rocker": 0.37})
    loops = LoopKinematics(system)
    found = redundancy(loops, q)
    stress = np.zeros(len(system.closures))
    stress[found.dependent[0].equation] = 1.0
    for k, x in found.dependent[0].of:
        stress[k] = -x
    assert_close(loops.jacobian(q).T @ stress, np.zeros(4), 1e-14, "torques")
    assert set(found.open) == set(np.flatnonzero(stress))


@pytest.mark.parametrize("n", everyday.some([1, 2, 5]))
def test_four_bars_that_lie_flat(n):
    """Find n more degrees of freedom where n four-bars lie flat, at this instant only, and none where they stand."""
    system = kt.n_four_bars(n)
    flat = [-math.pi / 2 if "rocker" in j.name else math.pi / 2 for j in system.joints]
    assert np.abs(system.closure_residual(flat)).max() < 1e-12
    found = system.doctor(flat)
    assert (found.mobility, found.lasting, found.closeness) == (n + 1, 1, 0.0)
    one = finding(found, "the position is singular")
    assert one.level == "caution" and found.ok
    assert f"At this instant mobility is {n + 1}, around it 1: " in one.text
    assert f"'pin{n}'" in one.text and "Branches of motion may meet here" in one.advice
    upright = system.doctor()
    assert upright.mobility == upright.lasting == 1 and upright.closeness > 0.5


def test_closeness_falls_toward_the_singular_position():
    """Approach the flat position and see the weakest hold decrease with the angle, until it is reported."""
    system = kt.n_four_bars(2)
    values = []
    for angle in (0.5, 0.05, 0.005):
        q = system.assemble(hold={"rocker0": angle - math.pi / 2})
        found = system.doctor(q)
        values.append(found.closeness)
    assert values[0] > 2 * values[1] > 10 * values[2] > 0
    assert "they hardly hold coupler" in finding(found, "nearly singular").text


def test_the_published_four_bar_does_not_close():
    """Detect the published start by its gap of 26.1 mm, and repair it, also with the crank held."""
    found = kt.load("crank_rocker").doctor(CRANK_ROCKER)
    assert not found.ok and not found.closed
    one = finding(found, "the position does not close")
    assert one.level == "wrong" and one.text == "It leaves open loop 'pin' by 26.1 mm."
    assert_close(found.gaps[0].distance, math.hypot(3.40e-3, 25.88e-3), 5e-6, "as published")
    assert "The nearest closed position: crank 0 -> -0.104" in one.advice
    assert "With crank held: rocker 2.54015 -> 2.27838 rad, coupler 2.27835 -> 2.27838 rad" in one.advice
    assert np.abs(kt.load("crank_rocker").closure_residual(found.q)).max() < 1e-12
    assert found.verdict == "crank_rocker: the position does not close."


def test_the_published_three_rrr_does_not_close():
    """Detect the published start by the gaps of both loops, 8.8 and 9.6 mm."""
    system = kt.load("three_rrr")
    start = dict(zip((f"joint{k}" for k in range(1, 8)), THREE_RRR, strict=True))
    found = system.doctor([start[joint.name] for joint in system.joints], drives=("joint1", "joint4", "joint6"))
    one = finding(found, "the position does not close")
    assert one.text == "It leaves open loop 'pin_a' by 8.76 mm, loop 'pin_b' by 9.62 mm."
    assert_close([g.distance for g in found.gaps], np.hypot([8.7e-3, 9.5e-3], [1.3e-3, 1.6e-3]), 1e-4, "as published")
    assert found.mobility == 3 and found.leads == ("joint1", "joint4", "joint6")
    assert "joint1, joint4 and joint6 hold the mechanism" in finding(found, "the drives hold").text


def test_a_guess_may_be_near():
    """Examine a mechanism with an open guess: it is assembled, and a note gives the gap."""
    found = two_bars(rod("strut", 0.6), guess={"j0": 0.3, "j1": 0.2}).doctor()
    assert found.ok and not found.closed and found.verdict == "chain: closes, mobility 1, nothing is wrong."
    assert "It leaves open loop 'strut' by " in finding(found, "the guess is only near").text
    without = finding(two_bars(rod("strut", 0.6)).doctor(), "there is no guess, and zero displacements do not close")
    assert without.advice.endswith("give a [guess] near the one that you mean.")


def test_speeds_that_break_a_loop():
    """Rotate only the crank and read the rate of the gap, and consistent velocities."""
    system = kt.load("four_bar")
    found = system.doctor(qd=[1.0, 0.0, 0.0])
    one = finding(found, "the velocities open the loops")
    assert not found.ok and one.text == "They open loop 'pin' by 38 mm/s."
    nearest = system.closing_speed(found.q, [1.0, 0.0, 0.0])
    assert f"crank 1 -> {nearest[0]:.6g}, output 0 -> {nearest[1]:.6g}" in one.advice
    assert system.doctor(qd=system.consistent_speeds(found.q, {"crank": 3.0})).ok
    with pytest.raises(InputError, match=r"qd has shape \(2,\); expected 3 finite numbers"):
        system.doctor(qd=[1.0, 0.0])


def test_locking_loops():
    """Pin the tip of two bars to the ground: nothing moves, and the report names the loop to leave out."""
    found = two_bars(pin(0.43, 0.21), guess={"j0": 0.9, "j1": -1.7}).doctor()
    assert not found.ok and (found.mobility, found.lasting) == (0, 0)
    one = finding(found, "the loops lock the mechanism")
    assert one.text == "The 2 independent equations of the loops leave none of the 2 degrees of freedom."
    assert "without loop 'pin' mobility 2" in one.advice


def test_a_structure_that_only_shakes():
    """Stretch two bars exactly to a pin: they can move at this instant, but not by a finite angle."""
    found = two_bars(pin(1.2, 0.0)).doctor([0.0, 0.0])
    assert not found.ok and (found.mobility, found.lasting) == (1, 0)
    assert "no motion goes on from here" in finding(found, "the mechanism only shakes").text


def test_contradicting_loops():
    """Report two rods that contradict each other as loops that cannot close, with nothing measured."""
    found = two_bars(rod("long", 0.64), rod("short", 0.6)).doctor()
    assert not found.ok and not found.closable and found.mobility is None
    text = finding(found, "the loops cannot close").text
    assert "loop 'long' and loop 'short' contradict each other" in text
    assert list(found.facts()) == ["position", "mobility"] and "counted 2 - 2 = 0" in str(found)


def test_joints_that_stand_still():
    """Name the slider at its dead center, and a joint that a weld locks at every position."""
    slider = kt.load("slider_crank").doctor(drives="slider")
    assert finding(slider, "slider stands still").level == "note"
    assert "slider holds nothing of a motion of rod and crank" in finding(slider, "at a dead center").text
    weld = kt.Loop("weld", "fixed", "b0", "b1", at(0.7), at(0.0))
    locked = chain(0.7, 0.5, loops=[weld]).doctor()
    assert finding(locked, "the loops lock some joints").text == "j1 cannot move at all, whatever the others do."


def test_too_few_drives():
    """Drive one crank of a five-bar and read that the rest moves freely."""
    found = kt.load("five_bar").doctor(drives=["left_crank"])
    assert "1 of the 2 degrees of freedom" in finding(found, "the drives are too few").text


def test_a_tree_has_no_loops():
    """Examine an arm without loops and find every joint free."""
    found = kt.load("stanford").doctor()
    assert found.ok and found.mobility == found.lasting == 6
    assert finding(found, "there are no loops").level == "note"
    assert found.facts() == {"mobility": "6, that of the joints"}


def test_the_report_is_text_and_json():
    """Print a report with verdict, numbers and advice, and the same as JSON."""
    found = kt.load("parallelogram").doctor()
    text = str(found)
    assert text.startswith("parallelogram: closed, mobility 1; caution: 1 equation follows from others.")
    assert "measured 1 (nv 4 - rank 3), counted 4 - 10 = -6: 7 of the equations are redundant" in text
    assert all(len(line) <= 110 for line in text.splitlines()) and "\n  -> Motions are not affected" in text
    data = json.loads(json.dumps(found.as_dict()))
    assert data["ok"] and data["mobility"] == 1 and data["mobility_counted"] == -6
    assert ["third_pin", "position z"] in data["redundant"]
    assert {one["level"] for one in data["findings"]} == {"caution", "note"}


def test_bodies_without_mass_do_not_matter():
    """Examine a mechanism of bodies without mass: loops are geometry, but forward dynamics is refused."""
    from dataclasses import replace

    m = kt.load("four_bar").mechanism
    found = kt.System(replace(m, bodies=tuple(kt.Body(b.name) for b in m.bodies))).doctor()
    assert found.ok and found.mobility == 1 and len(found.redundant) == 3
    light = finding(found, "no inertia resists some joints")
    assert light.level == "caution" and light.text.startswith("Beyond crank, output and coupler no body has")
    assert found.verdict == "four_bar: closed, mobility 1; caution: no inertia resists some joints."


def test_a_loop_to_an_unknown_body_is_refused():
    """Give an unknown body and read which ones exist."""
    with pytest.raises(ModelError, match="loop 'strut': no body 'b7'; .*available: b0, b1, ground"):
        two_bars(kt.Loop("strut", "rod", GROUND, "b7", length=1.0))


@strategies.examples(20)
@given(closed_mechanisms())
def test_random_mechanisms_are_examined(drawn):
    """Examine random mechanisms at closed positions: the numbers are those of J, and the reports can be read."""
    mechanism, q = drawn
    system = kt.System(mechanism)
    found = system.doctor(q)
    assert found.closed and found.closable
    sizes = np.linalg.svd(system.closure_jacobian(q), compute_uv=False)
    assert found.rank == (sizes > 1e-6 * sizes.max()).sum()
    assert found.mobility == system.nv - found.rank == len(found.leads)
    assert found.lasting <= found.mobility
    assert found.ok == (found.lasting > 0), str(found)
    json.dumps(found.as_dict(), allow_nan=False)


def test_many_leads_are_cut_short():
    """Examine a bridge of many links and read the first of the independent joints."""
    bridge = kt.rope(1.3, 14, mass_per_metre=0.37, radius=0.01, joint="revolute", ends=("pinned", "pinned"))
    found = bridge.doctor()
    assert len(found.leads) == found.mobility == 12
    assert found.facts()["leads"] == ", ".join(found.leads[:7]) + ", 5 more"


def test_designs_are_examined_without_compiling(tmp_path):
    """Examine several designs at once: the diagnoses are those of fixed mechanisms, also of one that cannot close."""
    system = sprung(tmp_path)
    found = system.doctor(parameters={"arm": [[0.041], [0.5]]}, drives="crank")
    assert found.shape == (2, 1) and found[0, 0].ok and not found[1, 0].ok
    alone = system.fixed({"arm": 0.5}).doctor(drives="crank")
    assert found[1, 0].verdict == alone.verdict and found[1, 0].as_dict()["gaps"] == alone.as_dict()["gaps"]
    positions = system.assemble(hold={"crank": [0.3, 0.9]})
    assert [d.mobility for d in system.doctor(positions)] == [1, 1]
