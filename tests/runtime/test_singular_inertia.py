"""Weightless joints: the same pivots on plain numbers and by rolled code."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
from kinetree.compiler.lower.loop_pattern import random_coordinates
from kinetree.dynamics.products import NOTHING
from kinetree.model import Body, build_mechanism
from kinetree.runtime.singularity import resistance_of_long, resistance_of_short, weightless_joints
from strategies import ALL, random_mechanism
from tolerance import assert_close


@everyday.long
@pytest.mark.parametrize("seed", everyday.only(range(3), [0]))
def test_both_ways_find_the_same(seed):
    """Remove the mass of some bodies and find the same pivots on plain numbers and by rolled code."""
    rng = np.random.default_rng(seed)
    kinds = [str(x) for x in rng.choice(ALL, 25)]
    parents = [-1] + [k - 1 if rng.random() < 0.7 else int(rng.integers(-1, k)) for k in range(1, 25)]
    made = random_mechanism(kinds, parents, seed, armature=bool(seed % 2), geometry="mixed")
    light = set(rng.choice(25, 10, replace=False))
    bodies = [Body(b.name) if k in light else b for k, b in enumerate(made.bodies)]
    made = build_mechanism("light", bodies, made.joints, gravity=made.gravity)
    q = random_coordinates(made, np.random.default_rng(1))
    short, long = np.array(resistance_of_short(made, q)), resistance_of_long(made, q)
    assert ((short <= NOTHING) == (long <= NOTHING)).all()
    assert_close(short, long, 1e-11, "what is left of the pivots")
    assert weightless_joints(made)
