"""Motion of closed mechanisms: gaps, energies, exact solutions, other cut joints, and open starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import everyday
import kinetree as kt
from cut_rings import four_bar, moving
from kinetree.compiler.lower.closing_steps import ASTRAY, allowed_gaps
from kinetree.errors import InputError, ModelError, UnknownNameError
from kinetree.model.scales import largest_length
from planar_loops import free_rod
from tolerance import assert_close

EPS = np.finfo(float).eps

G = 9.81


@pytest.mark.parametrize("method", everyday.some(["dop853", "gauss"]))
def test_the_four_bar_neither_drifts_nor_loses_energy(method):
    """Keep the gap below 1e-10 and the energy to 1e-9 at every output of 10 s of free motion."""
    system = four_bar()
    how = {"rtol": 1e-10, "atol": 1e-12} if method == "dop853" else {"dt": 2.5e-4}
    run = kt.simulate(system, qd0=moving(system), duration=10.0, method=method, **how)
    assert run.status == "finished"
    assert np.ptp(run.q[:, 0]) > 1.0  # it moves a lot
    assert_close(np.abs(system.closure_residual(run.q)).max(), 0.0, 1e-10, "gap")
    assert_close(np.einsum("tij,tj->ti", system.closure_jacobian(run.q), run.qd), np.zeros((1001, 5)), 1e-9, "rate")
    assert run.energy_error <= 1e-9


@pytest.mark.parametrize(
    ("count", "method"),
    everyday.some([(2, "dop853"), (2, "rk4"), (5, "rk4"), pytest.param(40, "rk4", marks=pytest.mark.slow)]),
)
def test_four_bars_in_a_row_follow_their_exact_motion(count, method):
    """Agree after 10 s with the single equation of motion, through singular flat positions."""
    system = kt.n_four_bars(count)
    rocker = np.array([b.name.startswith("rocker") for b in system.bodies])
    how = {"dt": 1e-3} if method == "rk4" else {"rtol": 1e-9}
    run = kt.simulate(system, qd0=np.where(rocker, -1.0, 1.0), duration=10.0, method=method, **how)
    # The mass and length cancel: w' = -g ((n + 1) / 2 + n) / ((n + 1) / 3 + n) cos(phi), phi from the horizontal.
    c = G * ((count + 1) / 2 + count) / ((count + 1) / 3 + count)
    exact = solve_ivp(
        lambda t, y: [y[1], -c * np.cos(y[0])], (0, 10), [np.pi / 2, -1.0], method="DOP853", rtol=1e-13, atol=1e-14
    ).y[:, -1]
    assert np.diff(np.sign(np.sin(run.q[:, 0] - np.pi / 2))).any() or (np.cos(run.q[:, 0]) < 0).any()  # below flat
    assert_close(system.pose(run.q[-1], "B0")[:2, 3], [np.cos(exact[0]), np.sin(exact[0])], 1e-6, "B0")
    assert_close(np.abs(system.closure_residual(run.q)).max(), 0.0, 1e-10, "gap")
    assert run.energy_error < 1e-7


@everyday.long
@pytest.mark.parametrize("cut", everyday.only([0, 1, 2], [1]))
def test_the_same_motion_whichever_pin_is_cut(cut):
    """Find the same pose of every body after one second for all cuts."""
    places = []
    for system in (four_bar(), four_bar(cut)):
        q, qd = system.neutral(), moving(system)
        spin = system.twist(q, qd, "b3", axes="world")[:3]
        qd *= np.sign(spin[np.argmax(np.abs(spin))]) / np.linalg.norm(spin)
        run = kt.simulate(system, q, qd, duration=1.0, method="dop853", rtol=1e-12, atol=1e-13)
        ends = [(system.pose(run.q[-1], b.name) @ [*b.com, 1.0])[:3] for b in system.bodies]
        places.append(dict(zip((b.name for b in system.bodies), ends, strict=True)))
    for name, place in places[0].items():
        assert_close(places[1][name], place, 1e-9, name)


def test_baumgarte_leaves_a_small_gap():
    """Keep a gap that is small but larger than that of the projection."""
    system = four_bar()
    run = kt.simulate(system, qd0=moving(system), duration=1.0, method="rk4", dt=1e-3, loops=kt.Baumgarte(30.0))
    gap = np.abs(system.closure_residual(run.q)).max()
    assert 1e-13 < gap < 1e-6


@pytest.mark.parametrize("method", everyday.some(["dop853", "bdf"]))
def test_minimal_coordinates_give_the_same_motion(method):
    """Agree with the projection for every choice of the independent degree of freedom and every method."""
    system = four_bar()
    tight = {"rtol": 1e-11, "atol": 1e-13}
    expected = kt.simulate(system, qd0=moving(system), duration=0.3, method="dop853", **tight)
    for leads in ((), (0,), (1,)):
        run = kt.simulate(system, qd0=moving(system), duration=0.3, method=method, loops=kt.Minimal(leads), **tight)
        assert_close(np.abs(system.closure_residual(run.q)).max(), 0.0, 1e-12, "gap")
        assert_close(run.q[-1], expected.q[-1], 1e-7, f"q, {leads} leads")


@pytest.mark.parametrize("method", ["bdf", "scipy", "radau"])
def test_methods_that_are_not_native_close_their_outputs(method):
    """Agree with the native method, with closed loops at the outputs."""
    system = four_bar()
    native, other = (
        kt.simulate(system, qd0=moving(system), duration=0.5, method=m, rtol=1e-10, atol=1e-12)
        for m in ("dop853", method)
    )
    assert_close(np.abs(system.closure_residual(other.q)).max(), 0.0, 1e-12, "gap")
    assert_close(other.q[-1], native.q[-1], 1e-6, "q")


def test_a_run_has_the_bits_of_a_batch():
    """Find the same bits for a run alone and in a batch, with fixed and adaptive steps."""
    system = four_bar()
    qd = moving(system) * np.linspace(0.2, 2.0, 11)[:, None]
    for how in ({"method": "rk4", "dt": 1e-3}, {"method": "dopri5", "rtol": 1e-8}):
        whole = kt.simulate(system, np.zeros((11, 3)), qd, duration=0.2, **how)
        for k in (0, 9):
            one = kt.simulate(system, np.zeros(3), qd[k], duration=0.2, **how)
            assert (one.q == whole.q[k]).all() and (one.qd == whole.qd[k]).all()


def test_controllers_and_events_act_on_closed_mechanisms():
    """Stop after one revolution of the crank under a sampled torque."""
    system = four_bar()
    push = kt.Sampled(kt.PDGravity(0.0, 0.0, kt.Hold([0.0]), actuated="k0"), 200.0)
    turn = kt.Event(lambda now: now.q[0] - 2 * np.pi, stop=True, name="turn")
    run = kt.simulate(
        system, qd0=moving(system, 30.0), duration=1.0, control=push, events=[turn], method="rk4", dt=5e-4
    )
    assert [hit.name for hit in kt.event_hits(run)] == ["turn"]
    assert_close(run.q[-1, 0], 2 * np.pi, 1e-9, "crank")
    assert run.t[-1] < 1.0
    assert np.abs(system.closure_residual(run.q)).max() < 1e-12
    assert np.abs(run["tau"]).max() > 1e-3


def test_a_start_that_does_not_close_is_refused():
    """Read which loop is open, its gap, and the remedy."""
    system = four_bar()
    with pytest.raises(InputError, match=r"q0 does not close loop 'k3' \(position [xy]\): off by .* m; start from"):
        kt.simulate(system, [0.1, 0.0, 0.0], duration=1.0)
    with pytest.raises(InputError, match=r"qd0 breaks loop 'k3' \(position [xy]\): it opens at .* m/s; start with"):
        kt.simulate(system, qd0=[1.0, 0.0, 0.0], duration=1.0)


def test_wrong_ways_to_close_loops_are_refused():
    """Read the faults of an unknown method, of dependent degrees of freedom, and of held control."""
    bars = kt.load("four_bar")
    q = bars.assemble(hold={"crank": 0.7})
    with pytest.raises(InputError, match=r"loops is 'minimal'; expected Projection\(\), Baumgarte\(rate\) or Minimal"):
        kt.simulate(bars, q, duration=0.1, loops="minimal")  # type: ignore[arg-type]
    for places in ((0, 1), (7,), (-1,), (0, 0)):
        with pytest.raises(InputError, match=r"Minimal: independent is .* mobility of 1, such as \(0,\) \(crank\)"):
            kt.simulate(bars, q, duration=0.1, loops=kt.Minimal(places))
    held = kt.PythonControl(lambda t, q, qd: np.zeros(3), rate=100.0)
    with pytest.raises(InputError, match="PythonControl closes loops by Projection alone; leave loops out"):
        kt.simulate(bars, q, duration=0.1, control=held, loops=kt.Baumgarte())


@pytest.mark.parametrize("method", ["rk4", "euler", "gauss"])
def test_steps_that_leave_loops_open_end_a_run(method):
    """Take steps that are far too long, keep the closed states, and read why the run ended."""
    system = four_bar()
    qd = moving(system) * np.linspace(-8.3, 8.3, 11)[:, None]
    run = kt.simulate(system, np.zeros((11, 3)), qd, times=np.linspace(0.0, 6.0, 13), method=method, dt=0.5)
    why = "stopped: the loops did not close, or the state left the finite numbers; try a smaller dt; the last good"
    assert run.status.startswith(why)
    good = np.isfinite(run.q).all(axis=-1)
    assert good[:, 0].all() and good[:, 1:].any()
    counted_as_closed = ASTRAY["float64"] * allowed_gaps(system.mechanism).max()
    rounding = EPS * np.abs(run.q[good]).max(axis=-1) * largest_length(system.mechanism)  # angles reach 1e10 rad
    gaps = np.abs(system.closure_residual(run.q[good])).max(axis=-1)
    assert_close((gaps / (counted_as_closed + rounding)).max(), 0.0, 1.0, "gap")


@pytest.mark.parametrize("method", everyday.some(["rk4", "dop853"]))
def test_speeds_far_out_stay_those_of_closed_loops(method):
    """Move two sliders a thousand kilometers away, where rounding of positions must not affect velocities."""
    body = {"mass": 1.3, "com": (0.1, -0.2, 0.3), "inertia": (0.5, 0.6, 0.7, 0.05, -0.04, 0.03)}
    out = {"axis": (1.0, 0.0, 0.0)}
    joints = [
        kt.Joint("left", "prismatic", "ground", "a", **out),
        kt.Joint("pin", "revolute", "a", "b"),
        kt.Joint("elbow", "revolute", "b", "c", kt.Placement((0.5, 0.0, 0.0))),
        kt.Joint("right", "prismatic", "ground", "d", **out),
    ]
    loop = kt.Loop("end", "revolute", "d", "c", placement_b=kt.Placement((0.6, 0.0, 0.0)))
    bodies = [kt.Body(name, **body) for name in "abcd"]
    system = kt.System(kt.build_mechanism("far", bodies, joints, loops=[loop], gravity=(0.0, -G, 0.0)))
    q = system.assemble([1e6, 0.6, -1.3, 1e6 + 0.8], tolerance=1e-9)
    qd = system.closing_speed(q, [0.5, 0.3, 0.2, 0.6])
    run = kt.simulate(system, q, qd, duration=2.0, method=method, dt=1e-3 if method == "rk4" else None)
    assert run.status == "finished"
    assert np.abs(system.closure_residual(run.q)).max() > 1e-11  # no rounding, no test
    assert_close(np.einsum("tij,tj->ti", system.closure_jacobian(run.q), run.qd), np.zeros((1001, 5)), 1e-14, "rate")


def test_python_functions_leave_loops_closed():
    """Call a Python function at every stage, and find closed loops with the motion without it."""
    system = four_bar()
    start = {"qd0": moving(system), "times": np.linspace(0.0, 5.0, 51), "method": "dop853"}
    run = kt.simulate(system, control=kt.PythonControl(lambda t, q, qd: 0.0 * qd), rtol=1e-6, **start)
    assert np.abs(system.closure_residual(run.q)).max() < 1e-12
    assert_close(np.einsum("tij,tj->ti", system.closure_jacobian(run.q), run.qd), np.zeros((51, 5)), 1e-12, "rate")
    assert_close(run.q[-1], kt.simulate(system, rtol=1e-10, **start).q[-1], 1e-3, "q")


def test_no_runs_at_all():
    """Run an empty batch and get an empty Trajectory."""
    run = kt.simulate(four_bar(), np.zeros((0, 3)), duration=0.1, method="rk4", dt=1e-2)
    assert run.q.shape == (0, 1001, 3) and run.status == "finished"


@pytest.mark.parametrize("loops", [(), (kt.Loop("rail", "point_on_plane", "ground", "tip", axis=(0.0, 1.0, 0.0)),)])
def test_a_joint_that_nothing_resists_is_named(loops):
    """Give a joint no inertia to move, with and without a loop, and read its name and the remedy."""
    bodies = [kt.Body("arm", 1.3, (0.1, -0.2, 0.3), (0.5, 0.6, 0.7, 0.05, -0.04, 0.03)), kt.Body("tip")]
    joints = [kt.Joint("a", "revolute", "ground", "arm"), kt.Joint("b", "revolute", "arm", "tip")]
    with pytest.raises(ModelError, match="no inertia resists the motion of joint 'b'; give the bodies beyond it mass"):
        kt.simulate(kt.System(kt.build_mechanism("light", bodies, joints, loops=loops)), [0.0, 0.0], duration=0.1)


def test_digits_that_a_file_lost_are_closed():
    """Start from a position that was printed with ten digits."""
    system = four_bar()
    q = kt.simulate(system, qd0=moving(system), duration=0.1, method="rk4", dt=1e-3).q[-1]
    run = kt.simulate(system, np.round(q, 10), duration=0.01, method="rk4", dt=1e-3)
    assert np.abs(system.closure_residual(run.q)).max() < 1e-12


@everyday.long
def test_lengths_may_be_parameters():
    """Find the same motion for placements given by formulas and by numbers, also from the default start."""
    arm, given = free_rod(), [0.47]
    fixed = arm.fixed(given)
    q = fixed.assemble()
    run = kt.simulate(arm, duration=0.4, parameters=given)
    assert_close(run.q[0], q, 1e-12, "start")
    assert np.ptp(run.q[:, 0]) > 0.1 and np.abs(run["gap"]).max() < 1e-12
    assert_close(run.q[-1], kt.simulate(fixed, q, duration=0.4).q[-1], 1e-10, "end")


@everyday.long
def test_independent_joints_may_be_named():
    """Choose the independent joint by name and by index for the same motion; mistype it and read the known names."""
    bars = kt.load("four_bar")
    q = bars.assemble(hold={"crank": 0.7})
    by_place, by_name = (kt.simulate(bars, q, duration=0.1, loops=kt.Minimal((lead,))).q[-1] for lead in (1, "output"))
    assert np.array_equal(by_place, by_name)
    with pytest.raises(UnknownNameError, match="no joint 'outpt'; did you mean 'output'"):
        kt.simulate(bars, q, duration=0.1, loops=kt.Minimal(("outpt",)))


def test_starts_by_name_and_open_couplings_are_explained():
    """Give a start by joint, and one that contradicts a gear, and read the remedy."""
    bars, gears = kt.load("four_bar"), kt.load("gear_train")
    with pytest.raises(InputError, match=r"q0 is not an array .* with system.assemble\(hold=\{joint: position\}\)"):
        kt.simulate(bars, {"crank": 0.7}, duration=0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"qd0 is not an array .* with system.consistent_speeds\(q0, \{joint: speed"):
        kt.simulate(bars, qd0={"crank": 0.7}, duration=0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"q0 does not close coupling '\w+': off by .* rad; start from"):
        kt.simulate(gears, [0.3, 0.0, 0.0, 0.0], duration=0.1)


def test_a_locked_mechanism_is_refused():
    """Read that a triangle of bars cannot move."""
    bars = [kt.Body(n, 1.0, (0.5, 0.0, 0.0), (0.01, 0.1, 0.1, 0.0, 0.0, 0.0)) for n in "ab"]
    joints = [
        kt.Joint("a", "revolute", "ground", "a"),
        kt.Joint("b", "revolute", "a", "b", kt.Placement((1.0, 0.0, 0.0))),
    ]
    end = kt.Placement((1.0, 0.0, 0.0))
    pin = kt.Loop("pin", "revolute", "ground", "b", kt.Placement((1.2, 0.0, 0.0)), end)
    triangle = kt.System(kt.build_mechanism("triangle", bars, joints, loops=[pin], guess={"a": [0.9], "b": [-1.8]}))
    with pytest.raises(
        InputError, match="the loops of 'triangle' lock it: they leave none of its 2 degrees of freedom"
    ):
        kt.simulate(triangle, triangle.assemble(), duration=1.0)
