"""Springs, dampers and friction of all joints as arrays: against the compiled forces one by one, and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree import InputError, UnknownNameError
from kinetree.model import parse
from kinetree.runtime.native import native
from kinetree.simulation.acting.rates import ForcedMechanism, loads
from kinetree.simulation.engines.marching import joint_law
from tolerance import assert_close

LINK = {"mass": 0.7, "com": (0.1, 0.02, -0.03), "inertia": (0.01, 0.012, 0.011, 0.001, 0.002, -0.001)}
FORCES = (
    kt.JointSpring("turn", 3.1, 0.4),
    kt.JointSpring("turn", 1.7, -0.9),
    kt.JointSpring("swing", (2.3, 0.9), (0.1, -0.2)),
    kt.JointDamper("swing", (0.11, 0.07)),
    kt.JointDamper("ball", 0.31),
    kt.JointDamper("turn", 0.05),
    kt.JointDamper("turn", 0.06),
    kt.JointFriction("turn", 0.21, slip_speed=0.3),
    kt.JointFriction("ball", (0.1, 0.2, 0.3), slip_speed=0.02),
)


def mixed(*, free: bool = False) -> kt.System:
    """Return a chain with different indices of coordinates and velocities; `k` and `c` are parameters."""
    kinds = {"ball": "spherical", "turn": "revolute", "swing": "universal"}
    names = ("ground", *kinds)
    joints = [
        kt.Joint(name, kind, above, f"b_{name}", kt.Placement((0.2, 0.1, 0.0)), axis=(0.0, 1.0, 0.0),
                 axis2=(0.0, 0.0, 1.0) if kind == "universal" else None)
        for (name, kind), above in zip(kinds.items(), ("ground", *(f"b_{x}" for x in names[1:])), strict=False)
    ]  # fmt: skip
    parameters = [kt.Parameter("k", 1.3, free=free), kt.Parameter("c", 0.2, free=free)]
    return kt.System(
        kt.build_mechanism("mixed", [kt.Body(f"b_{x}", **LINK) for x in kinds], joints, parameters=parameters)
    )


def test_the_law_is_that_of_the_forces():
    """Compare the torques with those of the compiled forces at random states, and the energy with their sum."""
    system = mixed()
    law, others = joint_law(system.mechanism, FORCES)
    assert not others
    q, qd = system.random_state(2, (7,))
    expected = native(loads(ForcedMechanism(system.mechanism, FORCES)))(np.zeros((7, 1)), q, qd)[0]
    assert_close(law.torque(q, qd), expected, 1e-14, "torques")
    turn, swing = q[:, 4], q[:, 5:7]
    two = 3.1 * (turn - 0.4) ** 2 + 1.7 * (turn + 0.9) ** 2
    apart = 3.1 * 1.7 / 4.8 * 1.3**2  # springs side by side keep what holds them apart
    swung = (np.array([2.3, 0.9]) * (swing - (0.1, -0.2)) ** 2).sum(axis=1)
    assert_close(law.energy(q), (two - apart + swung) / 2, 1e-14, "energy")


def test_friction_resists_as_a_damper_at_its_speed():
    """Find damping, and friction divided by the speed, in the factor of the velocities."""
    law, _ = joint_law(mixed().mechanism, FORCES)
    qd = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6])
    assert law.resistance(qd)[3] == pytest.approx(0.11 + 0.21 / 0.5)
    assert law.resistance(qd)[4] == pytest.approx(0.11)
    none, _ = joint_law(mixed().mechanism, FORCES[:6])
    assert none.resistance(qd) is none.damping


def test_parameters_of_many_runs():
    """Give free parameters in a batch and find the law of each; give none and find that of the nominal values."""
    system = mixed(free=True)
    forces = [kt.JointSpring("turn", parse("2*k"), parse("c")), kt.JointDamper("ball", parse("c"))]
    assert joint_law(system.mechanism, forces)[0].stiffness[3] == pytest.approx(2.6)
    values = np.array([[[1.1, 0.3]], [[0.7, 0.5]]])
    many, _ = joint_law(system.mechanism, forces, values)
    assert many.stiffness.shape == (2, 1, 6)
    q, qd = system.random_state(3, (2, 4))
    for k in range(2):
        one, _ = joint_law(system.mechanism, forces, values[k, 0])
        assert one.damping[0] == values[k, 0, 1]
        assert_close(many.torque(q, qd)[k], one.torque(q[k], qd[k]), 0.0, "torques")


def test_what_the_law_does_not_hold():
    """Return stops, and frictions with a second slip speed, among the other forces."""
    stops = kt.JointStops("turn")
    slow = kt.JointFriction("turn", 0.1, slip_speed=0.5)
    same = kt.JointFriction("turn", 0.1, slip_speed=0.3)
    law, others = joint_law(mixed().mechanism, [FORCES[7], stops, slow, same])
    assert others == [stops, slow]
    assert law.friction[3] == pytest.approx(0.31)


def test_springs_that_cancel():
    """Put a spring and its opposite into a joint and find no torque, not NaN."""
    law, _ = joint_law(mixed().mechanism, [kt.JointSpring("turn", 2.0, 0.3), kt.JointSpring("turn", -2.0, 0.3)])
    assert (law.torque(np.ones(7), np.ones(6)) == 0.0).all()


@pytest.mark.parametrize(
    ("force", "error", "message"),
    [
        (kt.JointSpring("tun", 1.0), UnknownNameError, "no joint 'tun'; did you mean 'turn'"),
        (kt.JointSpring("ball", 1.0), InputError, "JointSpring cannot act on the joint 'ball': a spherical joint"),
        (
            kt.JointSpring("swing", (1.0, 2.0, 3.0)),
            InputError,
            "the stiffness of 'swing' has 3 numbers; give one, or 2",
        ),
        (kt.JointDamper("turn", (1.0, 2.0)), InputError, "the damping of 'turn' has 2 numbers; give one"),
    ],
)
def test_what_is_refused(force, error, message):
    """Describe forces that do not fit the joints, and read the remedy."""
    with pytest.raises(error) as raised:
        joint_law(mixed().mechanism, [force])
    assert message in str(raised.value)
