"""Verification: true if all routes agree, false if any does not, with reasons for routes that did not run."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import everyday
import flexible_mechanisms
import kinetree as kt
import strategies
from kinetree import library
from kinetree.analysis.loops.subsystems import Recursion
from kinetree.analysis.verify.comparisons import FACTOR, Answers, Comparison, NotRun
from kinetree.analysis.verify.referee import EPS, ROUTES, Route, closed_rows, formulation, verify
from kinetree.errors import InputError, ModelError, UnknownNameError
from kinetree.formulations import denoc
from tolerance import assert_close

OWN = ("denoc", "centre", "modules", "operators", "points", "lagrange")


def planted(change) -> Route:
    """Return a route by DeNOC matrices that gets another mechanism."""
    honest = formulation(denoc)
    return Route("planted", "an error of ours", lambda mechanism: honest(change(mechanism)))


def heavier(relative: float, index: int = -1):
    """Return a change of one body's mass."""

    def change(mechanism):
        bodies = list(mechanism.bodies)
        bodies[index] = replace(bodies[index], mass=bodies[index].mass * (1 + relative))
        return replace(mechanism, bodies=tuple(bodies))

    return change


@pytest.mark.parametrize(
    "name",
    everyday.some(
        everyday.seldom(
            everyday.without(
                library.names(),
                ("charmie", "charmie_complete", "chain_20", "quadruped", "spatial_biped", *flexible_mechanisms.LIBRARY),
            ),
            ["hexapod"],
        )
    ),
)
def test_every_library_mechanism_is_green(name):
    """See every formulation agree on a library mechanism, within 20 eps times the condition."""
    found = verify(kt.load(name), 2, routes=OWN)
    assert found, f"\n{found}"
    assert [row.name for row in found.rows if row.verdict == "agrees"] == list(OWN)


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    everyday.some(
        everyday.seldom(
            everyday.without(
                library.names(), ["charmie", "charmie_complete", "chain_20", *flexible_mechanisms.LIBRARY]
            ),
            ["quadruped", "hexapod"],
        )
    ),
)
def test_peers_agree_on_library_mechanisms(name):
    """See Pinocchio agree, and MuJoCo wherever it accepts the masses."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    found = verify(kt.load(name), 2, routes=["pinocchio", "mujoco"])
    assert found, f"\n{found}"
    assert found.row("pinocchio").verdict == "agrees"
    assert found.row("mujoco").verdict in ("agrees", "not run")


@everyday.long
@pytest.mark.parametrize("relative", [1e-2, 1e-6, 1e-9])
def test_a_planted_mass_is_red(relative):
    """Change one mass in one route and see that route named, also if the others agree."""
    found = verify(kt.load("stanford"), 2, routes=["denoc", planted(heavier(relative))])
    assert not found
    assert found.row("denoc").holds
    assert found.row("planted").verdict == "DIFFERS"
    assert "1 OF 2 ROUTES DO NOT AGREE with the recursion: planted." in found.summary()


@everyday.long
def test_planted_errors_of_every_sort_are_red():
    """Change an inertia, a center of mass, a placement, gravity and an armature slightly and detect each."""
    joint = strategies.one_of_each().joints[2]
    mechanism = strategies.one_of_each()

    def part(what, index, **new):
        def change(m):
            parts = list(getattr(m, what))
            parts[index] = replace(parts[index], **new)
            return replace(m, **{what: tuple(parts)})

        return change

    body = mechanism.bodies[4]
    moved = replace(
        joint.placement, translation=(joint.placement.translation[0] + 1e-8, *joint.placement.translation[1:])
    )
    changes = {
        "inertia": part("bodies", 4, inertia=(body.inertia[0] + 1e-8, *body.inertia[1:])),
        "com": part("bodies", 4, com=(body.com[0] + 1e-8, *body.com[1:])),
        "placement": part("joints", 2, placement=moved),
        "armature": part("joints", 0, armature=(1e-6,)),
        "gravity": lambda m: replace(m, gravity=(m.gravity[0] * (1 + 1e-8), *m.gravity[1:])),
    }
    for name, change in changes.items():
        assert not verify(kt.System(mechanism), 2, routes=[planted(change)]), name
    assert verify(kt.System(mechanism), 2, routes=[planted(lambda m: m)])


def test_an_error_in_external_wrenches_is_red():
    """Let a route omit a billionth of the wrenches and see it differ in torques, not in I."""

    def prepare(mechanism):
        honest = formulation(denoc)(mechanism)
        return lambda s: honest(replace(s, wrenches=s.wrenches * (1 + 1e-9)))

    row = verify(kt.load("puma560"), 1, routes=[Route("forgets", "", prepare)]).rows[0]
    assert row.comparisons["tau"].ratio > 1 and row.comparisons["bias"].ratio > 1
    assert row.comparisons["I"].ratio < 1


def test_every_joint_kind_agrees_by_every_route():
    """Compare all routes on a tree with every kind of joint, armatures and general numbers."""
    found = verify(kt.System(strategies.one_of_each()), 3, routes=OWN)
    assert found, f"\n{found}"


@pytest.mark.parametrize("kinds", [("fixed", "revolute"), ("prismatic", "fixed"), ("fixed", "fixed", "helical")])
def test_one_coordinate_beside_fixed_joints_agrees(kinds):
    """Compare all routes where only one of several joints moves."""
    mechanism = strategies.random_mechanism(kinds, range(-1, len(kinds) - 1), 3)
    found = verify(kt.System(mechanism), 2, routes=OWN)
    assert found, f"\n{found}"


@pytest.mark.peers
def test_every_joint_kind_agrees_with_pinocchio():
    """Compare with Pinocchio on every kind of joint, composite ones too, with armatures."""
    pytest.importorskip("pinocchio")
    found = verify(kt.System(strategies.one_of_each()), 3, routes=["pinocchio"])
    assert found, f"\n{found}"


@pytest.mark.slow
@pytest.mark.peers
def test_every_kind_that_mujoco_has_agrees():
    """Compare with MuJoCo on free, ball and all composite joints, and on fixed bodies."""
    pytest.importorskip("mujoco")
    kinds = ("free", "revolute", "spherical", "fixed", "cylindrical", "universal", "planar", "euler", "free_euler")
    mechanism = strategies.random_mechanism((*kinds, "prismatic"), [-1, 0, 1, 2, 3, 4, 5, 3, 0, 8], 4)
    found = verify(kt.System(mechanism), 3, routes=["mujoco"])
    assert found, f"\n{found}"
    assert found.row("mujoco").verdict == "agrees"


@everyday.long
@pytest.mark.peers
def test_mujoco_says_what_it_lacks():
    """Read why MuJoCo does not run on helical joints, inner free joints, odd armatures and massless bodies."""
    pytest.importorskip("mujoco")

    def reason(kinds, parents, change=lambda m: m):
        found = verify(kt.System(change(strategies.random_mechanism(kinds, parents, 3))), 1, routes=["mujoco"])
        assert not found and found.row("mujoco").verdict == "not run"
        assert found.summary() == "NO ROUTE RAN on random: nothing was compared."
        return found.row("mujoco").reason

    def armed(kind_of_joint, numbers):
        def change(m):
            return replace(m, joints=(replace(m.joints[0], armature=numbers), *m.joints[1:]))

        return [kind_of_joint, "revolute"], [-1, 0], change

    def massless(m):
        return replace(m, bodies=(kt.Body("b0"), *m.bodies[1:]))

    assert reason(["helical"], [-1]) == "MuJoCo has no helical joint (joint 'j0')"
    assert "free joints only on the ground (joint 'j1')" in reason(["revolute", "free"], [-1, 0])
    assert "armature of a free joint is along the ground's axes" in reason(*armed("free", (1.0,) * 6))
    assert "one armature for all axes of a ball joint" in reason(*armed("spherical", (1.0, 1.0, 2.0)))
    assert "mass and inertia of moving bodies must be larger" in reason(["revolute", "revolute"], [-1, 0], massless)


@pytest.mark.peers
def test_pinocchio_says_which_inertia_it_refuses():
    """Read the body of an inertia that Pinocchio refuses."""
    pytest.importorskip("pinocchio")
    body = kt.Body("odd", 1.0, (0.1, 0.0, 0.0), (-1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    joint = kt.Joint("hinge", "revolute", kt.GROUND, "odd", axis=(0.0, 1.0, 0.0))
    found = verify(
        kt.System(kt.build_mechanism("odd", [body], [joint], lenient=True)), 1, routes=["pinocchio", "denoc"]
    )
    assert found
    assert "Pinocchio refuses the inertia of body 'odd'" in found.row("pinocchio").reason


def test_a_missing_package_is_a_reason(monkeypatch):
    """Hide a peer and read that it is not installed, in the row and in the table."""
    monkeypatch.delitem(sys.modules, "kinetree.analysis.verify.mujoco", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    found = verify(kt.load("planar_2r"), 1, routes=["mujoco"])
    assert not found
    assert found.row("mujoco").reason == "mujoco is not installed; pip install mujoco"
    assert "not run: mujoco is not installed" in found.table()


def test_a_missing_module_of_ours_is_a_failure(monkeypatch):
    """Report a missing module of Kinetree as a failure, not as a package to install."""
    monkeypatch.setitem(sys.modules, "kinetree.analysis.verify.mujoco", None)
    assert verify(kt.load("planar_2r"), 1, routes=["mujoco"]).row("mujoco").verdict == "FAILED"


def test_a_route_that_raises_is_red():
    """Let a route fail and read how; the others still run."""

    def prepare(mechanism):
        raise RuntimeError("out of luck")

    found = verify(kt.load("planar_2r"), 1, routes=[Route("broken", "", prepare), "denoc"])
    assert not found
    assert found.row("broken").failure == "RuntimeError: out of luck"
    assert "FAILED: RuntimeError: out of luck" in str(found)
    assert found.row("denoc").verdict == "agrees"


def test_not_a_number_is_red():
    """Let a route return NaN and see it differ."""

    def prepare(mechanism):
        n = mechanism.nv
        bad = np.full(n, np.nan)
        return lambda s: Answers(bad, np.full((n, n), np.nan), bad, bad, bad)

    assert verify(kt.load("planar_2r"), 1, routes=[Route("nan", "", prepare)]).row("nan").verdict == "DIFFERS"


def test_a_refusal_is_a_reason():
    """Let a route refuse a mechanism by either error and read its message."""
    for error in (NotRun("has no wheels"), ModelError("has no wheels")):

        def prepare(mechanism, error=error):
            raise error

        found = verify(kt.load("planar_2r"), 1, routes=[Route("picky", "", prepare), "denoc"])
        assert found and found.row("picky").reason == "has no wheels"


def test_singular_inertia_leaves_out_accelerations():
    """Verify a mechanism with a joint that moves nothing: all but qdd is compared."""
    bodies = [kt.Body("a", 1.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0, 0.1, 0.1, 0.1)), kt.Body("b")]
    joints = [
        kt.Joint("j1", "revolute", kt.GROUND, "a", axis=(0.0, 1.0, 0.0)),
        kt.Joint("j2", "revolute", "a", "b", axis=(1.0, 0.0, 0.0)),
    ]
    found = verify(kt.System(kt.build_mechanism("limp", bodies, joints)), 2, routes=["denoc", "operators"])
    assert found and found.condition == np.inf
    assert set(found.row("denoc").comparisons) == {"tau", "I", "gravity", "bias"}


def test_the_progress_rises_to_one(capsys):
    """Report the part that is done after each state and route, also where a route does not run, and print no bar."""
    parts: list[float] = []
    found = kt.load("pendulum").verify(
        2, routes=["denoc", Route("none", "stops", _stops), "points"], progress=parts.append
    )
    assert [row.verdict for row in found.rows] == ["agrees", "not run", "agrees"]
    assert_close(np.array(parts), np.array([0, 0.5, 1, 2, 2, 2.5, 3]) / 3, 1e-15, "parts")
    assert capsys.readouterr() == ("", "")


def _stops(mechanism):
    raise NotRun("it stops")


def test_a_mechanism_without_motion_has_nothing_to_compare():
    """Verify a body welded to the ground and read that nothing moves."""
    weld = kt.build_mechanism("rock", [kt.Body("b", 1.0)], [kt.Joint("j", "fixed", kt.GROUND, "b")])
    found = verify(kt.System(weld))
    assert found and found.worst is None
    assert found.summary() == "rock has no degrees of freedom: there is nothing to compare."


def test_gravity_that_cancels_is_no_error():
    """Make all axes of an arm vertical, without gravity torques: the rounding of zeros passes, a tilt does not."""
    level = replace(kt.load("planar_3r").mechanism, gravity=(0.0, 0.0, -9.81))
    assert verify(kt.System(level), 3, routes=OWN)
    tilted = planted(lambda m: replace(m, gravity=(1e-12, 0.0, -9.81)))
    assert not verify(kt.System(level), 3, routes=[tilted])


def test_arguments_are_checked():
    """Give an unknown route, and no states, and read what is possible."""
    arm = kt.load("planar_2r")
    with pytest.raises(UnknownNameError, match="no route 'lagrang'; did you mean 'lagrange'\\? available: denoc, "):
        arm.verify(routes=["lagrang"])
    with pytest.raises(InputError, match="states is 0; expected 1 or more"):
        arm.verify(0)


def test_tolerance_and_seed_count():
    """Require more digits than doubles have and fail; verify twice with one seed and find the same."""
    arm = kt.load("kuka_lwr4")
    assert not arm.verify(2, tol=1e-20, routes=["operators"])
    one, two, other = (arm.verify(2, rng=seed, routes="operators").rows for seed in (1, 1, 2))
    assert one == two != other


def test_comparison_ratios():
    """Read ratios of differences and bounds, zeros and NaN included."""
    assert Comparison(1e-15, 2e-15).ratio == 0.5
    assert Comparison(0.0, 0.0).ratio == 0.0
    assert Comparison(1e-15, 0.0).ratio == np.inf
    assert Comparison(np.nan, 1.0).ratio == np.inf
    assert FACTOR * EPS == pytest.approx(4.44e-15, rel=1e-3)


def test_table_shows_all_there_is():
    """Find routes, bounds, condition and verdict in the table."""
    found = kt.load("stanford").verify(2, routes=["denoc", "lagrange"])
    lines = str(found).splitlines()
    assert lines[0].split() == ["route", "tau", "I", "gravity", "bias", "qdd", "verdict"]
    assert [line.split()[0] for line in lines[1:4]] == ["denoc", "lagrange", "bound"]
    assert "2 states; condition of I: " in lines[-1]
    assert lines[-1].endswith("All 2 routes that ran agree with the recursion, within 20 eps times the condition.")
    assert set(ROUTES) == {*OWN, "pinocchio", "mujoco"}


ROBOTS = """
ur_description/urdf/ur5_robot panda_description/urdf/panda kinova_description/robots/kinova z1_description/urdf/z1
xarm_description/urdf/xarm7 so_arm_description/urdf/so101 finger_edu_description/robots/finger_edu
double_pendulum_description/urdf/double_pendulum allegro_hand_description/urdf/allegro_right_hand
baxter_description/urdf/baxter a1_description/urdf/a1 go2_description/urdf/go2 solo_description/robots/solo12
anymal_c_simple_description/urdf/anymal hyq_description/robots/hyq_no_sensors bolt_description/robots/bolt
icub_description/robots/icub_reduced tiago_description/robots/tiago_no_hand
simple_humanoid_description/urdf/simple_humanoid talos_data/robots/talos_reduced g1_description/urdf/g1_29dof_rev_1_0
romeo_description/urdf/romeo_small
""".split()


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("robot", ROBOTS)
def test_public_robots_are_green(robot, base, robots_folder):
    """See every route agree on a public robot, its base fixed or free."""
    file = robots_folder / f"{robot}.urdf"
    found = kt.load(file, base=base, roots=[robots_folder]).verify(3)
    assert found, f"\n{found}"
    ran = {row.name for row in found.rows if row.verdict == "agrees"}
    assert ran >= {"denoc", "centre", "modules", "operators", "lagrange"}


@pytest.fixture(scope="module")
def robots_folder():
    """Return the folder of the example robots, or skip."""
    import site
    from pathlib import Path

    for folder in site.getsitepackages():
        robots = Path(folder) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if robots.is_dir():
            return robots
    pytest.skip("example-robot-data is not installed")


def test_the_route_of_lagrange_needs_casadi(monkeypatch):
    """Verify without CasADi: its route is not run, with the reason, and the others agree."""
    monkeypatch.setitem(sys.modules, "casadi", None)
    found = kt.load("planar_2r").verify(2, routes=["denoc", "lagrange"])
    assert found and [row.reason for row in found.rows] == ["", "casadi is not installed; pip install casadi"]


def test_subsystems_are_compared_with_dense_equations(monkeypatch):
    """Find the row of the recursion between subsystems of a closed mechanism, an error in it, and a reason."""
    bars = kt.load("four_bar")
    row = closed_rows(bars, 2, 20 * EPS, np.random.default_rng(0))[-1]
    assert (row.name, row.verdict, list(row.comparisons)) == ("subsystems", "agrees", ["tau"])
    honest = Recursion.inverse_dynamics

    def wrong(self, *states, **options):
        found = honest(self, *states, **options)
        return replace(found, tau=found.tau * (1 + 1e-9))

    monkeypatch.setattr(Recursion, "inverse_dynamics", wrong)
    assert closed_rows(bars, 2, 20 * EPS, np.random.default_rng(0))[-1].verdict == "DIFFERS"

    def refused(system):
        raise InputError("there is no order")

    monkeypatch.setattr("kinetree.analysis.verify.referee.subsystem_recursion", refused)
    row = closed_rows(bars, 2, 20 * EPS, np.random.default_rng(0))[-1]
    assert (row.verdict, row.reason) == ("not run", "there is no order")
    monkeypatch.setattr("kinetree.analysis.verify.referee.subsystem_recursion", lambda system: None)
    row = closed_rows(bars, 2, 20 * EPS, np.random.default_rng(0))[-1]
    assert row.verdict == "FAILED" and row.failure.startswith("AttributeError: ")
