"""References: formulas of the papers, consistent derivatives, equal values for floats, arrays and traces."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kinetree import InputError, ModelError
from kinetree.simulation.acting.references import (
    Constant,
    Cosine,
    Cycloid,
    Hold,
    Polynomial,
    Table,
    Trapezoid,
    Waypoints,
    sampled,
)
from kinetree.simulation.acting.references.table import MAX_KNOTS
from native_program import gufunc, traced
from tolerance import assert_close

KNOTS = np.array([-0.3, 0.1, 0.45, 1.3, 1.9, 2.6])
VALUES = np.random.default_rng(4).normal(size=(6, 3))

SMOOTH = {
    "cycloid": Cycloid([0.2, -1.1], [1.3, 0.4], 2.1, start=0.3),
    "cosine": Cosine([0.7, -1.2], [1.9, 0.4], phase=0.3, offset=[0.0, 1.0]),
    "cubic": Polynomial([0.2, -1.1], 1.4, 2.1, degree=3, qd0=0.4, qd1=[-0.3, 0.2]),
    "quintic": Polynomial(0.2, [1.4, 2.0], 1.7, qd0=0.4, qd1=-0.3, qdd0=0.6, qdd1=[0.2, -0.8], start=-0.1),
}
OTHERS = {
    "constant": Constant([0.3, -0.7]),
    "speed": Hold([0.3, -0.7], speed=[1.7, 0.0]),
    "trapezoid": Trapezoid([0.0, 1.0, 2.0], [1.5, 0.2, 2.0], [0.8, 0.5, 1.0], [1.1, 0.9, 2.0]),
    "single": Trapezoid([0.0, 1.0], [1.5, 0.2], [0.8, 5.0], [1.1, 0.9], synchronised=False, start=0.2),
    "table": Table(KNOTS, VALUES),
    "waypoints": Waypoints(
        [[0.2, -1.1], [1.3, 0.4], [0.9, 0.1]], velocity=[1.4, 2.0], acceleration=2.3, jerk=[11.0, 17.0], start=0.2
    ),
    "passing": Waypoints([[0.2, -1.1], [1.3, 0.4], [0.9, 0.1]], velocity=1.4, acceleration=2.3, stop=False),
    "rates": Table(KNOTS, VALUES, rates=VALUES[::-1], accelerations=2.0 * VALUES),
}
ALL = SMOOTH | OTHERS
TIMES = np.linspace(-0.73, 3.41, 211)


def flat(reference, t):
    """Return q, qd and qdd in one list."""
    return [x for entries in reference(t) for x in entries]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_by_complex_step(name):
    """Differentiate q and qd exactly, before, within and after the motion."""
    step = 1e-30
    q, qd, qdd = (np.array([np.broadcast_to(x, TIMES.shape) for x in e]) for e in SMOOTH[name](TIMES + 1j * step))
    assert_close(q.imag / step, qd.real, 1e-14 * np.abs(qd).max(), "speeds")
    assert_close(qd.imag / step, qdd.real, 1e-14 * np.abs(qdd).max(), "accelerations")


@pytest.mark.parametrize("name", ["trapezoid", "single", "table", "rates"])
def test_derivatives_by_differences(name):
    """Differentiate q and qd numerically at times away from the knots."""
    h = 1e-6
    _, qd, qdd = sampled(ALL[name], TIMES)
    (qa, va, _), (qb, vb, _) = sampled(ALL[name], TIMES - h), sampled(ALL[name], TIMES + h)
    assert_close((qb - qa) / (2 * h), qd, 5e-10 * np.abs(qd).max(), "speeds")  # 1.4e-10
    assert_close((vb - va) / (2 * h), qdd, 5e-10 * np.abs(qdd).max(), "accelerations")


@pytest.mark.parametrize("name", ALL)
def test_floats_arrays_and_traces_agree(name):
    """Evaluate a reference at floats, at an array, by the interpreter and by native code."""
    reference = ALL[name]
    expected = np.concatenate(sampled(reference, TIMES), axis=-1)
    by_floats = np.array([flat(reference, float(t)) for t in TIMES])
    assert all(isinstance(x, float) for x in flat(reference, 0.4))
    program = traced(lambda t: flat(reference, t))
    assert_close(by_floats, expected, 2e-15 * np.abs(expected).max(), "floats")
    assert_close(program.interpret(TIMES[:, None])[0], expected, 4e-15 * np.abs(expected).max(), "traced")
    assert_close(gufunc(program)(TIMES[:, None]), expected, 8e-15 * np.abs(expected).max(), "native")


def test_sampled_takes_any_shape():
    """Evaluate on a grid of times, a list of whole numbers and one time."""
    cycloid = SMOOTH["cycloid"]
    q, qd, qdd = sampled(cycloid, TIMES[:12].reshape(3, 4))
    assert q.shape == qd.shape == qdd.shape == (3, 4, 2)
    assert sampled(Hold([1.0, 2.0]), [0, 1, 2])[0].tolist() == [[1.0, 2.0]] * 3
    assert sampled(cycloid, 0.7)[0].shape == (2,)
    assert_close(cycloid([0, 1])[0][0], cycloid(np.array([0.0, 1.0]))[0][0], 0.0)


def test_cycloid_is_that_of_the_papers():
    """Compare with (34) of [Saha2013] within the motion, and with (38) of [Saha1999] for half a revolution."""
    T, t = 10.0, np.linspace(0, 10, 23)
    q = sampled(Cycloid(0.3, 1.1, T), t)[0][:, 0]
    assert_close(q, 0.3 + (1.1 - 0.3) / T * (t - T / (2 * np.pi) * np.sin(2 * np.pi * t / T)), 1e-15)
    half = sampled(Cycloid(0.0, math.pi, T), t)[0][:, 0]
    assert_close(half, 0.5 * (2 * np.pi * t / T - np.sin(2 * np.pi * t / T)), 2e-15)


def test_cycloid_rests_outside():
    """Find the ends and exact zeros of the rates before and after."""
    q, qd, qdd = sampled(SMOOTH["cycloid"], [-1.0, 0.2, 2.5, 9.0])
    assert_close(q, [[0.2, -1.1], [0.2, -1.1], [1.3, 0.4], [1.3, 0.4]], 1e-15)
    assert not qd.any() and not qdd.any()


def test_cosine_is_that_of_the_paper():
    """Compare with (28) and (29) of [Wolinski2015]."""
    t = np.linspace(0, 14, 29)
    q, qd, _ = sampled(Cosine([math.pi / 2] * 7, math.pi / 7), t)
    assert_close(q, np.tile((np.pi / 2 * np.cos(np.pi / 7 * t))[:, None], 7), 1e-15)
    assert_close(qd, np.tile((-(np.pi**2) / 14 * np.sin(np.pi / 7 * t))[:, None], 7), 1e-15)


@pytest.mark.parametrize("degree", [3, 5])
def test_polynomial_meets_its_ends(degree):
    """Find position, velocity and (degree 5) acceleration at both ends, and uniform motion beyond."""
    more = {"qdd0": 0.6, "qdd1": -0.8} if degree == 5 else {}
    p = Polynomial(0.2, 1.4, 1.7, degree=degree, qd0=0.4, qd1=-0.3, **more)
    q, qd, qdd = (x[:, 0] for x in sampled(p, [0.0, 1.7, -0.5, 2.2]))
    assert_close(q, [0.2, 1.4, 0.2 - 0.5 * 0.4, 1.4 - 0.5 * 0.3], 1e-14, "positions")  # 4e-15
    assert_close(qd, [0.4, -0.3, 0.4, -0.3], 1e-14, "speeds")
    assert_close(qdd[2:], [0.0, 0.0], 0.0, "accelerations beyond")
    if degree == 5:
        assert_close(qdd[:2], [0.6, -0.8], 4e-14, "accelerations")


@pytest.mark.parametrize("synchronised", [True, False])
def test_trapezoid_keeps_its_limits_and_arrives(synchronised):
    """Stay within the limits, reach at least one of them, and arrive in time."""
    q0, q1, vmax, amax = np.array([0.0, 1.0, 2.0]), np.array([1.5, 0.2, 2.0]), [0.8, 0.5, 1.0], [1.1, 0.9, 2.0]
    motion = Trapezoid(q0, q1, vmax, amax, synchronised=synchronised)
    t = np.linspace(0, motion.duration, 2001)
    q, qd, qdd = sampled(motion, t)
    assert (np.abs(qd) <= np.array(vmax) * (1 + 1e-12)).all() and (np.abs(qdd) <= np.array(amax) * (1 + 1e-12)).all()
    assert_close(np.max(np.abs(qd) / vmax), 1.0, 1e-12, "top speed")
    assert_close(np.max(np.abs(qdd) / amax), 1.0, 1e-12, "acceleration")
    assert_close(q[[0, -1]], [q0, q1], 1e-15, "ends")
    assert not qd[:, 2].any()
    if synchronised:
        share = (q[:, :2] - q0[:2]) / (q1 - q0)[:2]
        assert_close(share[:, 0], share[:, 1], 4e-15, "a straight line")


def test_trapezoid_of_a_short_way_is_a_triangle():
    """Reverse the acceleration half way, as in the motion of [Goncalves2023]: minus, then plus."""
    a = math.pi / 9
    motion = Trapezoid(0.0, -a * 2.5**2, 100.0, a)
    assert_close(motion.duration, 5.0, 1e-14)
    _, qd, qdd = sampled(motion, [1.0, 2.4, 2.6, 4.0])
    assert_close(qdd[:, 0], [-a, -a, a, a], 1e-15)
    assert_close(qd[:, 0], [-a, -2.4 * a, -2.4 * a, -a], 1e-14)


def test_trapezoid_without_a_way_stays():
    """Request a motion of zero length, and one too small for the arithmetic."""
    assert Trapezoid([1.0], [1.0], 1.0, 1.0).duration == 0.0
    tiny = Trapezoid([0.0], [1e-320], 1.0, 1.0)
    assert [float(x) for x in flat(tiny, 0.5)] == [0.0, 0.0, 0.0]


def test_table_passes_through_its_values_and_rests_outside():
    """Find the values at the knots, and the end values at rest beyond them."""
    q, qd, qdd = sampled(Table(KNOTS, VALUES), [*KNOTS, -5.0, 5.0])
    assert_close(q, [*VALUES, VALUES[0], VALUES[-1]], 4e-15)
    assert not qd[-2:].any() and not qdd[-2:].any()
    assert_close(sampled(Table(KNOTS, VALUES), KNOTS[[0, -1]])[1], np.zeros((2, 3)), 1e-14, "at rest by default")
    free = sampled(Table(KNOTS, VALUES, ends="natural"), KNOTS[[0, -1]])
    assert_close(free[2], np.zeros((2, 3)), 1e-13, "natural")
    assert np.abs(free[1]).min() > 0.1


def test_table_of_a_cubic_is_the_cubic():
    """Give values of a cubic and find it between them."""
    t = np.linspace(0, 2, 9)
    q, qd, qdd = sampled(Table(t, t**3 - t, ends="not-a-knot"), t[:-1] + 0.1)
    u = t[:-1] + 0.1
    assert_close(q[:, 0], u**3 - u, 1e-14)
    assert_close(qd[:, 0], 3 * u**2 - 1, 1e-13)
    assert_close(qdd[:, 0], 6 * u, 1e-12)


def test_table_from_csv(tmp_path):
    """Read a table with comments, take two of its columns in another order, and find them."""
    file = tmp_path / "motion.csv"
    file.write_text("# recorded\ntime, hip, knee, foot\n0, 1, 2, 3\n0.5, 1.5, -2, 3e0 # here\n\n1, 2, 0.5, 3\n")
    table = Table.from_csv(file, columns=["foot", "hip"])
    assert_close(sampled(table, 0.5)[0], [3.0, 1.5], 0.0)
    assert Table.from_csv(file).values.shape == (3, 3)


def test_table_with_rates(tmp_path):
    """Meet given velocities, and accelerations, at all times; follow a polynomial of degree 5 exactly."""
    t = np.array([0.2, 0.5, 0.9, 1.4])
    c = np.array([0.3, -0.7, 0.2, 1.1, -0.4, 0.6])
    value, rate, second = (np.polynomial.Polynomial(c).deriv(k) for k in range(3))
    table = Table(t, value(t), rates=rate(t), accelerations=second(t))
    for u in (0.21, 0.5, 0.77, 1.39):
        for found, expected in zip(sampled(table, u), (value, rate, second), strict=True):
            assert_close(found, [expected(u)], 1e-12, "polynomial of degree 5")
    cubic = Table(t, value(t), rates=rate(t))
    assert_close(sampled(cubic, 0.5)[1], [rate(0.5)], 1e-14, "rate at a time of the table")
    file = tmp_path / "motion.csv"
    rows = [f"{float(x)!r},{float(value(x))!r},{float(rate(x))!r},{float(second(x))!r}" for x in t]
    file.write_text("t,knee,qd.knee,qdd.knee\n" + "\n".join(rows) + "\n")
    again = Table.from_csv(file, columns=["knee"])
    assert_close(sampled(again, 0.77)[2], [second(0.77)], 1e-12, "acceleration from a file")


def test_rates_that_do_not_fit_are_refused(tmp_path):
    """Refuse rates of another shape, accelerations without rates, and rates of some columns only."""
    with pytest.raises(InputError, match=r"the rates of Table have shape \(3, 1\); give that of the values, \(2, 1\)"):
        Table([0, 1], [0, 1], rates=[0, 1, 2])
    with pytest.raises(InputError, match="Table has accelerations and no rates; give both"):
        Table([0, 1], [0, 1], accelerations=[0, 1])
    file = tmp_path / "motion.csv"
    file.write_text("t,hip,knee,qd.hip\n0,1,2,3\n1,2,3,4\n")
    with pytest.raises(ModelError, match=r"motion.csv: there is a column qd.hip, but none qd.knee; add qd.knee"):
        Table.from_csv(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "motion.csv: there is no header; begin with a line such as t,joint1,joint2"),
        ("q,t\n1,2\n", "motion.csv:1: the header begins with 'q' and has 2 columns; begin with t or time, then a name"),
        ("t,a,a\n1,2,3\n", "motion.csv:1: column 3 has no name of its own; give each column another name"),
        ("t,a\n1\n", "motion.csv:2: 1 cells under 2 columns; give every cell"),
        ("t,a\n1,nan\n", "motion.csv:2: a: 'nan' is not a number; give a decimal such as -1.5e-3"),
        ("t,a\n1,1_000\n", "motion.csv:2: a: '1_000' is not a number"),
        ('t,a\n1,"2\n', "motion.csv:2: not a line of CSV"),
        ("t,a\n1,2\n", "motion.csv: Table has 1 times; give two or more"),
        ("t,a\n1,2\n1,3\n", "motion.csv: the times of Table must rise: 1 s (number 2) comes after 1 s"),
    ],
)
def test_csv_faults_are_named(tmp_path, text, message):
    """Read files with one fault each, and find file, line and remedy in the message."""
    file = tmp_path / "motion.csv"
    file.write_text(text)
    with pytest.raises(ModelError) as caught:
        Table.from_csv(file)
    assert message in str(caught.value)


def test_csv_without_the_asked_column(tmp_path):
    """Request a column that does not exist, and read the list of columns."""
    file = tmp_path / "motion.csv"
    file.write_text("t,hip,knee\n0,1,2\n1,2,3\n")
    with pytest.raises(ModelError, match=r"motion.csv: no column 'nee'; did you mean 'knee'\? available: hip, knee"):
        Table.from_csv(file, columns=["nee"])


def test_large_table_is_refused_only_when_compiled():
    """Evaluate many knots in NumPy, and read why they are not compiled."""
    t = np.arange(MAX_KNOTS + 1.0)
    table = Table(t, np.sin(t))
    assert_close(table(7.0)[0][0], np.sin(7.0), 1e-12)
    with pytest.raises(InputError, match="Table has 2001 times; at most 2000 can be compiled; take fewer of them"):
        traced(lambda x: flat(table, x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant("q"), "q of Constant is 'q'; give a number"),
        (lambda: Constant([]), "q of Constant is empty; give one number, or one per degree of freedom"),
        (lambda: Constant([[1.0]]), "q of Constant is [1.0]; give a number"),
        (lambda: Constant(np.ones((2, 2))), "q of Constant has shape (2, 2); give one number, or one per degree"),
        (lambda: Cycloid(0.0, math.nan, 1.0), "q1 of Cycloid is nan; give a finite number"),
        (lambda: Cycloid([0.0] * 3, [1.0] * 2, 1.0), "q1 of Cycloid has 2 numbers; give one, or 3"),
        (lambda: Cycloid(0.0, 1.0, 0.0), "the duration of Cycloid is 0; give more than zero"),
        (lambda: Cosine(1.0, math.inf), "frequency of Cosine is inf; give a finite number"),
        (lambda: Polynomial(0.0, 1.0, 1.0, degree=4), "the degree of Polynomial is 4; give 3 or 5"),
        (lambda: Polynomial(0.0, 1.0, 1.0, degree=3, qdd1=1.0), "degree 3 cannot meet qdd0 and qdd1; leave them out"),
        (lambda: Trapezoid(0.0, 1.0, 0.0, 1.0), "vmax of Trapezoid is 0; give more than zero"),
        (lambda: Trapezoid(0.0, 1.0, 1.0, [1.0, -2.0]), "amax of Trapezoid is -2; give more than zero"),
        (lambda: Table([0.0, 1.0], [0.0]), "the times of Table have shape (2,), the values (1, 1); give [n] and [n, "),
        (lambda: Table([0.0, 1.0], ["a", "b"]), "the values of Table are no array of numbers"),
        (lambda: Table([0.0, 1.0], [0.0, math.nan]), "the values of Table are not all finite: entry [1]"),
        (
            lambda: Table([0.0, 1.0], [0.0, 1.0], ends="periodic"),
            "the ends of Table are 'periodic'; give one of not-a-knot",
        ),
    ],
)
def test_faults_are_named(make, message):
    """Give wrong arguments of references, and read the names and the reasons."""
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)
