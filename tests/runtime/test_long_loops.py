"""Functions of long closed mechanisms: rolled against unrolled code, equations of motion, and NaN."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError
from kinetree.model import parse
from tolerance import assert_close

ROPE = {"mass_per_metre": 0.37, "radius": 0.004}
CLOSED = ("four_bar", "five_bar", "gear_train")
SLOWER = ("slider_crank", "spatial_slider_crank", "stewart", "three_rrr")


def compared(system: kt.System, q, qd, tau, added) -> dict[str, tuple]:
    """Return the arguments of every function that depends on loops; some at a position that is not closed."""
    off = system.integrate(q, 0.01 * tau / np.abs(tau).max())
    return {
        "closure_residual": (off,),
        "closure_jacobian": (off,),
        "closure_bias": (q, qd),
        "forward_dynamics": (q, qd, tau),
        "implicit_dynamics": (q, qd, tau, added),
        "closing_step": (off,),
        "closing_speed": (q, tau),
    }


def assert_rolled_is_unrolled(system: kt.System, q, rng: np.random.Generator, bound: float) -> None:
    """Compare all functions of loops at a closed position."""
    qd = system.closing_speed(q, rng.normal(size=system.nv))
    tau, added = rng.normal(size=system.nv), rng.uniform(0.01, 0.1, size=system.nv)
    for name, arguments in compared(system, q, qd, tau, added).items():
        expected = system.function(name, lowering="unrolled")(*arguments)
        found = system.function(name, lowering="rolled")(*arguments)
        size = max(1.0, float(np.abs(expected).max()))
        assert_close(found / size, expected / size, bound, name)


@pytest.mark.parametrize("name", everyday.some([*CLOSED, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOWER)]))
def test_library(name):
    """Compare rolled and unrolled functions of the library's closed mechanisms."""
    system = kt.load(name)
    assert_rolled_is_unrolled(system, system.assemble(), np.random.default_rng(3), 2e-13)  # 1.4e-14 measured


@everyday.long
def test_redundant_loops():
    """Close the parallelogram, whose equations are redundant, by rolled steps, and find the motion of unrolled code."""
    bars = kt.load("parallelogram")
    rng = np.random.default_rng(9)
    q = bars.assemble()
    qd, tau = bars.closing_speed(q, rng.normal(size=bars.nv)), rng.normal(size=bars.nv)
    found, expected = (bars.function("forward_dynamics", lowering=x)(q, qd, tau) for x in ("rolled", "unrolled"))
    assert_close(found / np.abs(expected).max(), expected / np.abs(expected).max(), 1e-12, "accelerations")
    off = q + 0.01 * rng.normal(size=bars.nq)
    step, gap = (bars.function(name, lowering="rolled") for name in ("closing_step", "closure_residual"))
    for _ in range(5):
        off = off + step(off)
    assert_close(gap(off), np.zeros(len(bars.closures)), 1e-13, "gap")


@pytest.mark.slow
@pytest.mark.parametrize("joint", ["revolute", "universal", "spherical"])
def test_bridges(joint):
    """Compare rolled and unrolled functions of ropes pinned at both ends."""
    bridge = kt.rope(1.3, 4, ends=("pinned", "pinned"), joint=joint, **ROPE)
    assert_rolled_is_unrolled(bridge, bridge.assemble(), np.random.default_rng(4), 1e-11)  # 4.4e-13


@pytest.mark.slow
def test_nets():
    """Compare rolled and unrolled functions of a net, whose loops have frames on several branches."""
    net = kt.net(2, 3, mesh=0.21, n=2, joint="revolute", **ROPE)
    rng = np.random.default_rng(5)
    assert_rolled_is_unrolled(net, net.assemble(0.2 * rng.normal(size=net.nq)), rng, 1e-13)  # 2.2e-15


@everyday.long
@pytest.mark.parametrize("n", [65, 200])
def test_frames_on_branches(n):
    """Compare the pose of a frame beyond a fork, computed without the other branches, with that among all poses."""
    tree = kt.rope_tree(2.0, n // 5, levels=2, joint="revolute", **ROPE)
    q, qd = tree.random_state(6)
    poses, twists = tree.poses(q), tree.twists(q, qd)
    for k in (0, n // 5, 2 * n // 5, len(tree.bodies) - 1):
        body = tree.bodies[k].name
        assert_close(tree.function("pose", frame=body, lowering="rolled")(q), poses[k], 1e-13, "pose")
        twist = tree.function("twist", frame=body, lowering="rolled")(q, qd)
        assert_close(twist / np.abs(twists).max(), twists[k] / np.abs(twists).max(), 1e-13, "twist")


@everyday.long
def test_a_long_bridge_obeys_lagrange():
    """Substitute accelerations and multipliers of 150 links into the equations of motion and of the loop."""
    bridge = kt.rope(2.3, 150, ends=("pinned", "pinned"), span=1.7, joint="universal", **ROPE)
    rng = np.random.default_rng(7)
    q = bridge.assemble()
    qd, tau = bridge.closing_speed(q, rng.normal(size=bridge.nv)), 1e-3 * rng.normal(size=bridge.nv)
    qdd, force = bridge.forward_dynamics(q, qd, tau), bridge.multipliers(q, qd, tau)
    J = bridge.closure_jacobian(q)
    torque = bridge.tree.inverse_dynamics(q, qd, qdd)
    assert_close((torque - J.T @ force - tau) / np.abs(torque).max(), np.zeros(bridge.nv), 1e-12, "motion")
    bias = bridge.closure_bias(q, qd)
    assert_close((J @ qdd + bias) / np.abs(bias).max(), np.zeros(3), 1e-12, "loop")
    assert np.abs(bias).max() > 1.0
    assert_close(J @ qd, np.zeros(3), 1e-11, "closing speed")


def test_batches():
    """Find the same bits for a state alone and as a row of a batch."""
    bridge = kt.rope(2.3, 130, ends=("pinned", "pinned"), joint="revolute", **ROPE)
    rng = np.random.default_rng(8)
    q = bridge.assemble() + 0.01 * rng.normal(size=(2, 3, bridge.nq))
    qd, tau = rng.normal(size=(2, 1, bridge.nv)), np.zeros(bridge.nv)
    many = bridge.forward_dynamics(q, qd, tau)
    assert many.shape == (2, 3, bridge.nv)
    for index in np.ndindex(2, 3):
        assert (many[index] == bridge.forward_dynamics(q[index], qd[index[0], 0], tau)).all()


def test_numbers_that_are_not_finite():
    """Give NaN to a function, read which entry it is, and get NaN with check=False, also from overflow."""
    bridge = kt.rope(2.3, 130, ends=("pinned", "pinned"), joint="revolute", **ROPE)
    q, zero = bridge.assemble(), np.zeros(130)
    bad = np.where(np.arange(130) == 17, np.nan, zero)
    with pytest.raises(InputError, match=r"forward_dynamics: qd\[17\] is nan"):
        bridge.forward_dynamics(q, bad, zero)
    assert np.isnan(bridge.forward_dynamics(q, bad, zero, check=False)).all()
    with np.errstate(all="ignore"):
        assert not np.isfinite(bridge.forward_dynamics(q, zero + 1e200, zero, check=False)).any()


@everyday.long
def test_a_quaternion_of_length_zero():
    """Give a long bridge a quaternion of length zero, read which joint has it, and get NaN with check=False."""
    bridge = kt.rope(2.3, 50, ends=("pinned", "pinned"), joint="spherical", **ROPE)
    assert bridge.nv > 128
    q = bridge.assemble()
    q[4 * 17 : 4 * 18] = 0.0
    with pytest.raises(InputError, match=r"closing_step: q has a quaternion of length zero \(joint 'joint18'\)"):
        bridge.closing_step(q)
    assert np.isnan(bridge.closing_step(q, check=False)).any()


def test_wrong_room_for_results():
    """Give `out` with the wrong shape or type, and read so."""
    bridge = kt.rope(2.3, 130, ends=("pinned", "pinned"), joint="revolute", **ROPE)
    q = bridge.assemble()
    with pytest.raises(InputError, match=r"closure_residual: out has shape \(2, 3\); expected \(3,\)"):
        bridge.closure_residual(q, out=np.empty((2, 3)))
    with pytest.raises(InputError, match=r"closure_residual: out has shape \(3,\) and type int64"):
        bridge.closure_residual(q, out=np.empty(3, dtype=np.int64))


def test_what_is_refused():
    """Request wrenches on a long closed mechanism, and parameters in its loops, and read the remedy."""
    bridge = kt.rope(2.3, 130, ends=("pinned", "pinned"), joint="revolute", **ROPE)
    with pytest.raises(
        InputError, match=r"a long mechanism with loops takes no external wrenches; use lowering='unrolled'"
    ):
        bridge.function("forward_dynamics", wrenches=True)
    made = kt.rope(1.3, 4, ends=("pinned", "pinned"), joint="revolute", **ROPE).mechanism
    loop = kt.Loop("end", "spherical", "link4", kt.GROUND, placement_b=kt.Placement((parse("span"), 0.0, 0.0)))
    free = kt.build_mechanism(
        "free", made.bodies, made.joints, loops=[loop], parameters=[kt.Parameter("span", 0.9, free=True)]
    )
    with pytest.raises(InputError, match=r"loops of 'free' have free parameters.* system\.fixed"):
        kt.System(free).function("forward_dynamics", lowering="rolled")
    fixed = kt.System(free).fixed([0.8])
    assert fixed.function("closure_residual", lowering="rolled")(np.zeros(4))[0] != 0.0
    parameters = [kt.Parameter("span", 0.9), kt.Parameter("other", 0.3, free=True)]
    other = kt.System(kt.build_mechanism("other", made.bodies, made.joints, loops=[loop], parameters=parameters))
    assert other.function("closure_residual", lowering="rolled")(np.zeros(4), [0.3]).shape == (3,)  # no free one
