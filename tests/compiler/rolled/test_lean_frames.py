"""Working frames of rolled code: no digits are lost if axes are almost parallel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.algebra.rotations import from_rpy
from kinetree.compiler.lower import tree_records
from kinetree.compiler.lower.build import Request, build
from kinetree.compiler.lower.working_frames import plain_frames
from kinetree.compiler.rolled.tables import bodies_of
from strategies import random_mechanism
from tolerance import assert_close

EPS = np.finfo(float).eps


def tilted(tilt: float, *, facing: bool) -> kt.Mechanism:
    """Return a chain with small angles between axes; `facing` axes have a common normal between the joints."""
    rng = np.random.default_rng(8)
    made = random_mechanism(["revolute"] * 9, range(-1, 8), 8)
    joints = [
        kt.Joint(j.name, j.kind, j.parent, j.child, kt.Placement(
            (0.37, 0.3 * tilt, 0.11) if facing else j.placement.translation,
            from_rpy(tilt, 0.0 if facing else -0.6 * tilt, 0.0 if facing else float(rng.uniform(-3, 3))),
        ))
        for j in made.joints
    ]  # fmt: skip
    return kt.build_mechanism("tilted", made.bodies, joints)


@pytest.mark.parametrize("facing", [True, False])
@pytest.mark.parametrize("tilt", everyday.some([0.0, 1e-15, 1e-12, 1e-9, 3e-7, 2e-6, 1e-5, 1e-4, 1e-3, 0.1]))
def test_almost_parallel_axes_lose_no_digits(tilt, facing, monkeypatch):
    """Tilt the axes of a chain a little and find the torques of the joints' own frames."""
    mechanism = tilted(tilt, facing=facing)
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, 9))
    tau = kt.System(mechanism).function("inverse_dynamics", lowering="rolled")(q, qd, qdd)
    monkeypatch.setattr(tree_records, "chosen_frames", lambda m: plain_frames(m, m.values()))
    plain = build(replace(mechanism), Request("inverse_dynamics"))  # a copy: frames are kept with a mechanism
    expected = plain.interpret(q, qd, qdd)[0]
    size = np.abs(expected).max()
    assert_close(tau / size, expected / size, 100 * EPS, "tau")


def test_one_threshold_decides_which_axes_cross():
    """Find lean joints in rolled code where axes cross by more than the threshold of parallel axes."""
    lean = [
        sum(b.classes[c].lean for c in b.of_class) for b in (bodies_of(tilted(x, facing=True)) for x in (2e-5, 1e-2))
    ]
    assert lean == [8, 8]
