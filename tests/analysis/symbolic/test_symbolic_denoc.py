"""The DeNOC matrices in symbols: numbers of the formulations, the identities of the papers, and formulas by hand."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError, UnknownNameError
from tolerance import assert_close

sympy = pytest.importorskip("sympy")
RNG = np.random.default_rng(4)


def chain(*kinds: str, parents: tuple[object, ...] = ()) -> kt.System:
    """Return an arm of joints of these kinds about square axes, or a tree by the parents of its rows."""
    rows = []
    for k, name in enumerate(kinds):
        a, b, mass, *com = (round(float(x), 1) for x in RNG.uniform(0.1, 0.9, 6))
        alpha = (0.5 * np.pi, -0.5 * np.pi, 0.0)[k % 3]
        row = {"joint": name, "a": a, "alpha": alpha, "b": b, "mass": mass, "com": com, "name": f"link{k + 1}"}
        row["inertia"] = (0.3, 0.27, 0.2, 0.03, 0.05, -0.02)
        rows.append(row | ({"parent": parents[k]} if parents else {}) | ({"armature": (0.07,)} if k == 1 else {}))
    return kt.from_dh(rows, convention="modified")


R, P = "revolute", "prismatic"
CASES = {
    "planar_2r": lambda: kt.load("planar_2r"),
    "pendulum": lambda: kt.load("pendulum"),
    "RP": lambda: chain(R, P),
    "PR": lambda: chain(P, R),
    "PP": lambda: chain(P, P),
    "RR": lambda: chain(R, R),
    "planar_3r": lambda: kt.load("planar_3r"),
    "PRR": lambda: chain(P, R, R),
    "fork": lambda: chain(R, R, R, parents=("ground", "link1", "link1")),
    "two trees": lambda: chain(R, P, R, parents=("ground", "link1", "ground")),
}
EVERY_DAY = ("planar_2r", "pendulum", "RP", "PP")


@pytest.mark.parametrize(
    "name", [x if x in EVERY_DAY else pytest.param(x, marks=pytest.mark.slow) for x in CASES]
)  # fmt: skip
def test_symbols_are_the_numbers_of_the_formulations(name):
    """Compare all matrices of ten mechanisms with those of numbers, and I with U D U^T."""
    arm = CASES[name]()
    made = arm.symbolic_denoc(symbols="none")
    q, _ = arm.random_state(3)
    numbers = arm.denoc(q)
    values = dict(zip(made.inertia.arguments["q"], map(float, q), strict=False)) | made.parameters
    evaluated = {n: np.array(made[n].subs(values).evalf(), dtype=float) for n in ("N_l", "N_d", "N", "psi", "mhat")}
    evaluated |= {n: np.array(made[n].subs(values).evalf(), dtype=float) for n in ("U", "D", "I", "inverse")}
    factors = numbers.elimination
    expected = {n: numbers[n] for n in ("N_l", "N_d", "N", "I")} | {n: getattr(factors, n) for n in ("psi", "U", "D")}
    expected |= {"inverse": factors.I_inverse, "mhat": factors.mhat[:, None]}
    for what, x in expected.items():
        assert_close(evaluated[what], x, 1e-13 * max(1.0, float(np.abs(x).max())), what)  # 2e-15
    U, D = evaluated["U"], evaluated["D"]
    assert_close(U @ D @ U.T, numbers.I, 1e-13 * np.abs(numbers.I).max(), "I = U D U^T")
    assert_close(np.diag(D), evaluated["mhat"][:, 0], 1e-13 * np.abs(D).max(), "pivots by two recursions")


def test_two_links_by_hand():
    """Find the factors, pivots and inverse of two links as one derives them by hand."""
    made = kt.load("planar_2r").symbolic_denoc(symbols="all")
    m1, m2, c1, c2, l1, J1, J2 = (sympy.Symbol(x, real=True) for x in ("m1", "m2", "c1", "c2", "l1", "I1zz", "I2zz"))
    q1, q2 = made.inertia.arguments["q"]
    inner, coupling = J2 + m2 * c2**2, m2 * l1 * c2 * sympy.cos(q2)
    outer = J1 + m1 * c1**2 + m2 * l1**2
    zero = lambda x: sympy.simplify(sympy.expand(x)) == 0  # noqa: E731
    assert zero(made.U[0, 1] - (1 + coupling / inner))
    assert zero(made.D[1, 1] - inner)
    assert zero(made.D[0, 0] - (outer - coupling**2 / inner))  # I11 - I12^2 / I22
    assert zero(made.mhat[0] - made.D[0, 0])
    determinant = outer * inner - coupling**2
    assert zero(made.inverse[0, 1] + (inner + coupling) / determinant)
    assert made.psi[2, 1] == 1 and zero(made.psi[4, 1] - m2 * c2 * sympy.cos(q1 + q2) / inner)
    across = l1 * sympy.Matrix([[0, 0, -sympy.sin(q1)], [0, 0, sympy.cos(q1)], [sympy.sin(q1), -sympy.cos(q1), 0]])
    assert (made.N_l[9:12, 0:3] - across).applyfunc(sympy.simplify).is_zero_matrix
    assert r"\mathbf{U} = " in made._repr_latex_() and r"\hat{\mathbf{m}} = " in made.latex("mhat")
    assert "U[0][1] = " in str(made) and made["U"] is made.U


@pytest.mark.slow
def test_three_links_by_hand():
    """Find the last pivots and multipliers of three links by hand: I23 / I33 and I22 - I23^2 / I33."""
    made = kt.load("planar_3r").symbolic_denoc(symbols="all")
    m2, m3, c2, c3, l2, J2, J3 = (sympy.Symbol(x, real=True) for x in ("m2", "m3", "c2", "c3", "l2", "I2zz", "I3zz"))
    q3 = made.inertia.arguments["q"][2]
    last, coupling = J3 + m3 * c3**2, m3 * l2 * c3 * sympy.cos(q3)
    zero = lambda x: sympy.simplify(sympy.expand(x)) == 0  # noqa: E731
    assert zero(made.D[2, 2] - last)
    assert zero(made.U[1, 2] - (1 + coupling / last))
    assert zero(made.D[1, 1] - (J2 + m2 * c2**2 + m3 * l2**2 - coupling**2 / last))


def test_mistakes_are_named():
    """Refuse loops with the way to their inertia, joints of several degrees of freedom, and unknown matrices."""
    with pytest.raises(InputError, match=r"'four_bar' has loops; .*\.reduced\(\) has G\^T I G of the closed mechanism"):
        kt.load("four_bar").symbolic_denoc()
    with pytest.raises(InputError, match="the joint 'base' has 6 degrees of freedom; matrices in symbols are those of"):
        kt.load("biped").symbolic_denoc()
    with pytest.raises(UnknownNameError, match="no matrix 'X'"):
        kt.load("pendulum").symbolic_denoc()["X"]
