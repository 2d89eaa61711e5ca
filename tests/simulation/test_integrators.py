"""Integration methods by name."""

import math
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.simulation.methods.adaptive_steps import Pair
from kinetree.simulation.methods.fixed_steps import Explicit
from kinetree.simulation.methods.table import METHODS, names_of
from kinetree.simulation.options import choose
from tolerance import assert_close

DOCS = Path(__file__).parents[2] / "docs" / "simulation.md"

NATIVE = [m for m in METHODS.values() if m.native]


def test_methods_are_chosen_by_name():
    """Choose rk4 for a given step, a pair for a tolerance, and read the known names for another."""
    assert choose("auto", 1e-3, 1e-8).name == "rk4"
    assert choose("auto", None, 1e-8).name == "dop853"
    assert choose("auto", None, 1e-5).name == "dopri5"
    with pytest.raises(kt.UnknownNameError, match="no method 'rk5'; did you mean 'rk4'"):
        choose("rk5", None, 1e-8)


def test_documentation_has_the_table_of_methods():
    """Find each method with its description, order and steps in the documentation, and no others."""
    rows = DOCS.read_text().split("| `method=` |")[1].split("\n\n")[0].splitlines()[2:]
    expected = [
        f"| `{m.name}` | {m.what} | {m.order} | {'by `rtol`, `atol`' if m.adaptive else '`dt`'} | "
        f"{'yes' if m.native else ''} |"
        for m in METHODS.values()
    ]
    assert rows == expected


@pytest.mark.parametrize("method", NATIVE, ids=lambda m: m.name)
def test_schemes_are_those_of_the_table(method):
    """Find the scheme of each native method, with steps of the kind that the table lists."""
    assert method.scheme.adaptive is method.adaptive
    assert getattr(method.scheme, "name", method.name) == method.name
    assert method.name in names_of(adaptive=method.adaptive).replace(" or ", ", ").split(", ")


def explicit_stages():
    """Return the native methods with explicit stages, as (name, rows, weights)."""
    found = [(m, m.scheme) for m in NATIVE if math.isfinite(m.stable)]
    return [(m, x.a, x.b) for m, x in found if m.adaptive or isinstance(x, Explicit)]  # pyright: ignore


@pytest.mark.parametrize(("method", "rows", "b"), explicit_stages(), ids=lambda x: getattr(x, "name", ""))
def test_explicit_methods_are_stable_up_to_their_bound(method, rows, b):
    """Multiply y by at most 1 in a step of y' = -y up to the bound of the table, and by more beyond 1.05 of it."""

    def growth(z):
        stages = []
        for row in rows:
            stages.append(z * (1.0 + sum(w * k for w, k in zip(row, stages, strict=True))))
        return abs(1.0 + sum(w * k for w, k in zip(b, stages, strict=True)))

    assert max(growth(-z) for z in np.linspace(0.02, 0.98, 60) * method.stable) <= 1.0
    assert growth(-1.05 * method.stable) > 1.0


def trees(A, c):
    """Return the elementary weights of all rooted trees of orders 1 to 5, with the integrals that they approximate."""
    one = np.ones_like(c)
    return {
        1: [(one, 1.0)],
        2: [(c, 1 / 2)],
        3: [(c**2, 1 / 3), (A @ c, 1 / 6)],
        4: [(c**3, 1 / 4), (c * (A @ c), 1 / 8), (A @ c**2, 1 / 12), (A @ A @ c, 1 / 24)],
        5: [
            (c**4, 1 / 5), (c**2 * (A @ c), 1 / 10), ((A @ c) ** 2, 1 / 20), (c * (A @ c**2), 1 / 15),
            (A @ c**3, 1 / 20), (c * (A @ A @ c), 1 / 30), (A @ (c * (A @ c)), 1 / 40), (A @ A @ c**2, 1 / 60),
            (A @ A @ A @ c, 1 / 120),
        ],
    }  # fmt: skip


@pytest.mark.parametrize("pair", [m.scheme for m in NATIVE if type(m.scheme) is Pair], ids=lambda pair: pair.name)
def test_pairs_satisfy_the_order_conditions(pair):
    """Meet the conditions up to order 5 with the step, below its own with error weights, up to 4 with dense output."""
    highest = min(METHODS[pair.name].order, 5)
    below, dense_order = min(pair.q, 5), min(highest, 4)
    rows = (*pair.a, pair.b, *pair.a_extra)
    A, c = np.zeros((len(rows), len(rows))), np.array([*pair.c, 1.0, *pair.c_extra])
    for s, row in enumerate(rows):
        A[s, : len(row)] = row
    size = np.abs(A).sum(axis=1).max()
    assert_close(A.sum(axis=1), c, 1e-15 * size, "sums of rows")
    b, e = np.zeros(len(c)), np.zeros(len(c))
    b[: len(pair.b)], e[: len(pair.e)] = pair.b, pair.e
    p = np.array(pair.p)
    dense = {theta: p @ theta ** np.arange(1.0, p.shape[1] + 1) for theta in (0.31, 0.77, 1.0)}
    assert_close(dense[1.0], b, 1e-14 * np.abs(p).max(), "the end of the dense output")
    for order in range(1, highest + 1):
        for weights, integral in trees(A, c)[order]:
            assert_close(b @ weights, integral, 1e-15 * size, f"order {order}")
            if order < below:
                assert_close(e @ weights, 0.0, 1e-15 * size, f"error weights, order {order}")
            if order <= dense_order:
                for theta, values in dense.items():
                    bound = 1e-15 * size * np.abs(p).max()
                    assert_close(values @ weights, integral * theta**order, bound, f"dense output, order {order}")
    assert max(abs(e @ weights) for weights, _ in trees(A, c)[below]) > 1e-5 or METHODS[pair.name].order > 5
