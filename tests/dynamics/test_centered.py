"""Centered states of floating trees, by the poses and twists of their bodies in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from floating_states import Floating
from kinetree.compiler.lower.sweeps import Tree
from kinetree.dynamics import centered
from strategies import MOVING, State, examples, random_mechanism
from tolerance import assert_close


@given(
    st.sampled_from(["free", "free_euler", "planar"]),
    st.lists(st.sampled_from(MOVING), max_size=4),
    st.integers(0, 10**6),
)
@examples(30)
def test_centers_of_mass_and_their_velocities(root, others, seed):
    """Center a random state, compare it with sums over the bodies, and find the state again."""
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(-1, k)) for k in range(1, len(others) + 1))]
    mechanism = random_mechanism([root, *others], parents, seed)
    s = State(mechanism, seed, ())
    z, u = (np.array(x, float) for x in centered.center(Tree(mechanism, {"q": s.q.tolist(), "qd": s.qd.tolist()})))
    expected = Floating(kt.System(mechanism)).centered(s.q, s.qd)
    scale = 1.0 + np.abs(s.q).max() + np.abs(s.qd).max()
    assert_close(z, expected[0], 1e-13 * scale, "centers of mass")
    assert_close(u, expected[1], 1e-12 * scale, "their velocities")
    q, qd = (np.array(x, float) for x in centered.uncenter(Tree(mechanism, {"q": z.tolist(), "qd": u.tolist()})))
    assert_close(q, s.q, 1e-13 * scale, "coordinates")
    assert_close(qd, s.qd, 1e-12 * scale, "velocities")


@pytest.mark.parametrize("place", [0, 1])
def test_roots_that_do_not_float(place):
    """Find no floating root on a moving body, with armature in its translation, or under a reference."""
    bodies = [
        kt.Body("a", 1.3, (0.1, 0.2, -0.1), (0.1, 0.2, 0.15, 0, 0, 0)),
        kt.Body("b", 0.7, (0.0, 0.1, 0.3), (0.1, 0.1, 0.1, 0, 0, 0)),
    ]
    hinge, free = kt.Joint("hinge", "revolute", "ground", "a", axis=(0.6, 0.0, 0.8)), kt.Joint("root", "free", "a", "b")
    joints = [(hinge, free), (kt.Joint("root", "free", "ground", "a", armature=(0, 0, 0, 0.1, 0, 0)),)][place]
    mechanism = kt.build_mechanism("m", bodies[: len(joints)], joints)
    tree = Tree(mechanism, {"q": kt.System(mechanism).neutral().tolist()})
    assert not centered.floats(tree)
    loose = kt.build_mechanism("m", bodies[:1], [kt.Joint("root", "planar", "ground", "a")])
    tree = Tree(loose, {"q": [0.3, 0.2, 0.1]})
    assert centered.floats(tree)
    assert not centered.floats(tree, frozenset({1}))
