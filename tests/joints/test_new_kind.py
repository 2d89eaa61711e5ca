"""A joint kind from outside the package: one object that follows the protocol, and one line that registers it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.algebra.mass import MassMatrix
from kinetree.algebra.rotations import about
from kinetree.algebra.scalars import cos, sin
from kinetree.algebra.spatial import Motion, Twist
from kinetree.algebra.vectors import ZERO
from kinetree.analysis.verify.referee import ROUTES
from kinetree.joints import KINDS, JointKind, plain
from kinetree.joints._common import axes_with_z, check_axis, random_in_limits
from kinetree.plots.modules_picture import modules_picture
from tolerance import assert_close

OWN = [name for name in ROUTES if name not in ("pinocchio", "mujoco")]


def motion(joint, q, qd) -> Motion:
    """Return [z; pitch Rz(q)^T x] and its rate."""
    c, s, r = cos(q[0]), sin(q[0]), joint.pitch
    rate = Twist(ZERO, (-r * s * qd[0], -r * c * qd[0], 0.0))
    return Motion((Twist((0.0, 0.0, 1.0), (r * c, -r * s, 0.0)),), (rate,))


RACK = SimpleNamespace(
    NQ=1,
    NV=1,
    UNITS=("rad",),
    NAMES=(("",),) * 3,
    DATA=("axis", "pitch"),
    QUATERNION=None,
    ANGLES=None,
    AXIAL=None,
    PERIODIC=False,
    FLOATS=(),
    ADVANCES=False,
    SOLID="cylinder",
    SYMBOL="rack",
    PEERS={},
    check=lambda joint, where: check_axis(joint.axis, where),
    frame=lambda joint: axes_with_z(joint.axis),
    steps=lambda joint: None,
    displacement=lambda joint, q: ((joint.pitch * q[0], 0.0, 0.0), about(2, q[0]), ZERO),
    motion=motion,
    common=lambda mass: MassMatrix(),
    rate=plain.rate,
    neutral=lambda joint: (0.0,),
    integrate=plain.integrate,
    difference=plain.difference,
    random=lambda joint, rng, size=None: random_in_limits(joint, rng, (math.pi,), size),
    reverse=lambda joint: None,
)
"""A pinion that rolls along a rack: q rotates it [rad] while its center advances by pitch [m/rad] times q."""


@pytest.fixture
def robot(monkeypatch) -> kt.System:
    """Return an arm on a pinion that rolls along a rack."""
    monkeypatch.setitem(KINDS, "rack", RACK)
    bodies = [
        kt.Body("pinion", 2.3, (0.07, -0.04, 0.02), (0.03, 0.04, 0.05, 0.001, 0.002, -0.003)),
        kt.Body("arm", 1.1, (0.21, 0.03, -0.05), (0.02, 0.05, 0.04, 0.002, -0.001, 0.003)),
    ]
    limits = kt.Limits(lower=(-0.3,), upper=(0.4,))
    joints = [
        kt.Joint("roll", "rack", kt.GROUND, "pinion", axis=(0.1, 0.9, 0.2), pitch=0.13, damping=(0.4,), limits=limits),
        kt.Joint("hinge", "revolute", "pinion", "arm", kt.Placement((0.2, 0.1, 0.05)), axis=(0.3, 0.2, 0.8)),
    ]
    return kt.System(kt.build_mechanism("roller", bodies, joints, frames=[kt.Frame("tool", "arm")]))


def test_every_kind_keeps_the_protocol():
    """Find every field and function of the protocol in every kind, in the order of the protocol."""
    wanted = [name for name in vars(JointKind) if not name.startswith("_")]
    assert len(wanted) == 26
    for name, module in KINDS.items():
        assert all(hasattr(module, field) for field in wanted), name
        assert [len(names) for names in module.NAMES] == [module.NQ, module.NV, module.NV], name
        home = module.__name__  # type: ignore[attr-defined]
        own = [key for key, x in vars(module).items() if key in wanted and getattr(x, "__module__", home) == home]
        assert own == [field for field in wanted if field in own], name


def test_dynamics_of_a_new_kind(robot):
    """Compute inverse and forward dynamics of a new kind, unrolled and rolled, and recover the accelerations."""
    q, qd = robot.random_state(3, 5)
    qdd = np.random.default_rng(4).normal(size=(5, 2))
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert_close(robot.forward_dynamics(q, qd, tau), qdd, 1e-12, "FD(ID)")
    rolled = robot.function("inverse_dynamics", lowering="rolled", forces=False)
    assert_close(rolled(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd, forces=False), 1e-13, "rolled")
    with pytest.raises(
        kt.InputError, match="does not contain its own forces .damping or friction of 'roll'.; give for"
    ):
        robot.function("inverse_dynamics", lowering="rolled")


def test_a_new_kind_is_verified(robot):
    """Verify a new kind by every formulation, and read the reason of peers without such a joint."""
    found = robot.verify(2, routes=OWN)
    assert found, str(found)
    assert all(row.verdict == "agrees" for row in found.rows)


@pytest.mark.peers
@pytest.mark.parametrize(("peer", "name"), [("pinocchio", "Pinocchio"), ("mujoco", "MuJoCo")])
def test_a_peer_without_the_kind_says_so(robot, peer, name):
    """Read the joint that a peer does not support."""
    pytest.importorskip(peer)
    row = robot.verify(1, routes=[peer]).rows[0]
    assert row.verdict == "not run"
    assert row.reason == f"{name} has no rack joint (joint 'roll')"


@everyday.long
def test_a_new_kind_runs(robot, tmp_path):
    """Simulate a new kind, check its energy and limits, and draw it."""
    run = kt.simulate(robot, [0.1, 0.2], [1.0, -2.0], duration=1.0)
    assert run.finished and kt.energy_balance(run).error < 1e-3
    assert [v.joint for v in kt.limit_violations(run).violations][:1] == ["roll"]
    assert_close(run.at([0.5]).q[0], run.q[np.argmin(abs(run.t - 0.5))], 1e-12, "sample")
    run.replay(tmp_path / "run.html")
    modules_picture(robot.mechanism, tmp_path / "modules.png")
    assert (tmp_path / "run.html").stat().st_size > 10_000 and (tmp_path / "modules.png").stat().st_size > 5_000
