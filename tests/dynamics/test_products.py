"""Products of matrices with vectors, against the matrices themselves, on plain numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from interpreted import compute
from kinetree.compiler.lower.sweeps import Tree
from kinetree.dynamics import products
from kinetree.model import Body, Joint, build_mechanism
from rounding_scales import EPS, convective_terms, inertia_terms
from strategies import State, examples, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close


def run(page, mechanism, **inputs) -> np.ndarray:
    """Return the results of an algorithm on plain numbers."""
    return np.array(page(Tree(mechanism, {name: [float(a) for a in x] for name, x in inputs.items()})))


@given(moving_mechanisms(most=6))
@example(random_mechanism(["revolute", "fixed"], [-1, 0], 0))  # C is zero
@examples(25)
def test_products_are_those_of_the_matrices(mechanism):
    """Multiply a vector by the inertia and the convective matrix in O(n), and by the matrices."""
    s = State(mechanism, shape=1)
    q, qd, v = s.q[0], s.qd[0], s.qdd[0]
    inertia, convective = compute(mechanism, "inertia_matrix", q), compute(mechanism, "convective_matrix", q, qd)
    for found, matrix, terms, label in (
        (run(products.inertia_product, mechanism, q=q, qdd=v), inertia, inertia_terms(mechanism, q), "I v"),
        (
            run(products.convective_product, mechanism, q=q, qd=qd, qdd=v),
            convective,
            convective_terms(mechanism, q, qd),
            "C v",
        ),
    ):
        assert_close(found, matrix @ v, 20 * EPS * (terms @ np.abs(v)).max(), label)


def test_the_product_with_the_inverse():
    """Multiply a vector by the inverse inertia matrix and by the inertia matrix, and find the vector again."""
    made = one_of_each()
    s = State(made, shape=1)
    x = run(products.inverse_inertia_product, made, q=s.q[0], tau=s.tau[0])
    back = compute(made, "inertia_matrix", s.q[0]) @ x
    condition = np.linalg.cond(compute(made, "inertia_matrix", s.q[0]))
    assert_close(back, s.tau[0], 1e-15 * condition, "I I^-1 v")


@pytest.mark.parametrize("mass", [0.0, 0.7])
def test_resistance(mass):
    """Find a pivot of zero where the bodies beyond the joint have no mass, and the whole inertia at the tip."""
    bodies = [Body("a", 1.3, (0.2, 0.1, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), Body("b", mass, (0.3, 0.0, 0.0))]
    joints = [Joint("1", "revolute", "ground", "a"), Joint("2", "revolute", "a", "b")]
    made = build_mechanism("two", bodies, joints)
    left = run(products.resistance, made, q=[0.3, 0.4])
    assert left[1] == (1.0 if mass else 0.0)
    assert 0.1 < left[0] <= 1.0
