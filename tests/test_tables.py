"""Tables and results as text and as HTML: aligned, escaped and of bounded size."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree._support.tables import COLUMNS, ROWS, Table, count_text, html_of

ARM = kt.load("planar_2r")
Q, QD = np.array([0.31, -0.47]), np.array([0.9, -1.3])


def test_text_is_aligned():
    """Write texts to the left, numbers to the right, and a dash for nothing."""
    table = Table(("joint", "peak"), (("a", 0.123456), ("elbow", 1234.5), ("c", None)), ("", "N m"))
    assert table.text() == "joint  peak [N m]\na          0.1235\nelbow        1234\nc               -"


def test_html_is_escaped():
    """Write names that are HTML elements as text."""
    page = html_of(["<b> &\nnext", Table(("<i>", "x"), (("<script>", 1.0),))])
    assert page == (
        "<p>&lt;b&gt; &amp;<br>next</p><table>"
        '<tr><th style="text-align:left">&lt;i&gt;</th><th>x</th></tr>'
        '<tr><td style="text-align:left">&lt;script&gt;</td><td>1.000</td></tr></table>'
    )


def test_large_tables_are_shortened():
    """Show a table of many rows and columns: the last column stays, and what is left out is counted."""
    table = Table(tuple(f"c{k}" for k in range(50)), tuple((float(k),) * 50 for k in range(1000)))
    lines = table.shortened().splitlines()
    assert len(lines) == ROWS + 2
    assert lines[0].split() == [*(f"c{k}" for k in range(COLUMNS - 1)), "c49"]
    assert lines[-1] == f"... and {1000 - ROWS} more rows and {50 - COLUMNS} more columns before the last"
    assert table.html().count("<tr>") == ROWS + 2
    assert len(table.text().splitlines()) == 1001


PUMA = kt.load("puma560")
LINES = ("many linearizations", "energy balance", "momentum balance", "derivatives of many runs")
"""Results of one line."""


def _fall():
    return kt.simulate(ARM, Q, QD, duration=0.05, method="rk4", dt=0.01)


def _bounce():
    body = kt.Body("ball", 1.3, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0))
    ball = kt.System(kt.build_mechanism("ball", [body], [kt.Joint("root", "free", kt.GROUND, "ball")]))
    floor = kt.Contact("floor", "ball", "sphere", 0.1, friction=0.4)  # type: ignore
    return kt.simulate(ball, [0.0, 0.0, 0.15, 1.0, 0.0, 0.0, 0.0], times=[0.0, 0.2, 0.4], contacts=floor)


RESULTS = {
    "verify": lambda: ARM.verify(1),
    "doctor": lambda: kt.load("four_bar").doctor(),
    "inverse kinematics": lambda: ARM.inverse_kinematics(ARM.pose(Q, "tool"), "tool", q0=[0.2, -0.3]),
    "all solutions": lambda: ARM.inverse_kinematics(ARM.pose(Q, "tool"), "tool", all=True),
    "linearize": lambda: ARM.linearize(Q, QD, [0.1, 0.2]),
    "many linearizations": lambda: ARM.linearize([Q, Q], [QD, QD], [[0.1, 0.2]] * 2),
    "LQR": lambda: kt.LQR(ARM, Q),
    "modes": lambda: ARM.modes(),
    "cost": lambda: ARM.cost("inverse_dynamics"),
    "ledger": lambda: ARM.ledger(Q, QD, [0.3, 0.7]),
    "loads": lambda: ARM.loads(Q, QD),
    "actuation": lambda: ARM.actuation(Q, QD, [0.3, 0.7], ["joint1", "joint2"]),
    "independent": lambda: kt.load("four_bar").independent(),
    "report": lambda: kt.load("four_bar").report,
    "workspace": lambda: ARM.workspace("tool", samples=50),
    "path": lambda: PUMA.cartesian_motion(
        PUMA.pose([[0.3] * 6, [0.4] * 6], "link6"), "link6", q0=[0.3] * 6, duration=1.0
    ),
    "energy balance": lambda: kt.energy_balance(_fall()),
    "momentum balance": lambda: kt.momentum_balance(kt.simulate(kt.load("space_robot_3r"), duration=0.05)),
    "derivatives of runs": lambda: kt.simulation_derivatives(ARM, Q, duration=0.05, method="rk4", dt=0.01),
    "derivatives of many runs": lambda: kt.simulation_derivatives(ARM, [Q, Q], duration=0.05, method="rk4", dt=0.01),
    "contacts": lambda: _bounce().contact,
    "gradients of runs": lambda: kt.simulation_gradient(ARM, Q, duration=0.05, terminal=lambda now: now.q[0]),
    "study": lambda: kt.study(ARM, {"q.joint1": kt.grid(0.1, 0.9, 3)}, measures={"m": kt.rms("q.joint2")},
                              simulate={"duration": 0.05}),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_tables_in_notebooks_and_text_in_consoles(name):
    """Show each result: HTML with a table, and the same short text where it is printed and in a console."""
    result = RESULTS[name]()
    assert "array(" not in repr(result)
    assert len(repr(result)) < 4000
    assert repr(result) == str(result) or name == "cost"
    page = result._repr_html_()
    assert ("<table>" in page) == (name not in LINES)


def test_numbers_are_under_the_names_of_their_coordinates():
    """Find the entries of A, the gains, and the position of inverse kinematics beside their names."""
    lines = str(ARM.linearize(Q, QD, [0.1, 0.2])).splitlines()
    A = ARM.linearize(Q, QD, [0.1, 0.2]).A
    assert lines[2].split("  ")[-1] == "d joint2'"
    assert float(lines[6].split()[-1]) == pytest.approx(A[3, 3], rel=1e-3)
    assert float(lines[5].split()[2]) == pytest.approx(A[2, 0], rel=1e-3)
    regulator = kt.LQR(ARM, Q)
    assert float(str(regulator).splitlines()[3].split()[1]) == pytest.approx(regulator.K[1, 0], rel=1e-3)
    found = ARM.inverse_kinematics(ARM.pose(Q, "tool"), "tool", q0=[0.2, -0.3])
    row = str(found).splitlines()[-1].split()
    assert row[1] == "yes"
    assert [float(x) for x in row[-2:]] == pytest.approx(found.q, rel=1e-3)


def test_derivatives_of_runs_have_names():
    """Find a derivative of the last state, and a gradient, beside the names of what they belong to."""
    found = kt.simulation_derivatives(ARM, Q, QD, duration=0.05, method="rk4", dt=0.01)
    lines = str(found).splitlines()
    assert lines[1].split("  ")[-2:] == ["qd0 of joint1", "qd0 of joint2"]
    assert lines[-1].startswith("d joint2'")
    assert float(lines[-1].split()[-1]) == pytest.approx(found.dqd[-1, 1, -1], rel=1e-3)
    slope = kt.simulation_gradient(ARM, Q, QD, duration=0.05, method="rk4", dt=0.01, terminal=lambda now: now.qd[1])
    last = str(slope).splitlines()[-1].split()
    assert last[:3] == ["qd0", "of", "joint2"] and float(last[3]) == pytest.approx(found.dqd[-1, 1, -1], rel=1e-3)


def test_contacts_are_a_table():
    """Find the weight of a ball that rests as its largest normal force, and its name."""
    lines = str(_bounce().contact).splitlines()
    assert lines[0] == "1 of 1 places touch at the samples"
    assert lines[2].split()[:2] == ["floor", "12.75"]
    assert lines[3].startswith("2 events; largest residuals: signorini ")


def test_mechanisms_are_short():
    """Print a mechanism of 40 bodies in a line."""
    assert repr(kt.load("charmie_complete").mechanism) == (
        "<Mechanism 'charmie_complete': 40 bodies, 7 loops, 24 free parameters>"
    )


def test_equations_are_latex_in_notebooks():
    """Show equations as LaTeX, but not those that fill pages."""
    pytest.importorskip("sympy")
    assert ARM.equations()._repr_latex_() == rf"$\displaystyle {ARM.equations().latex()}$"
    assert repr(ARM.equations()) == str(ARM.equations())


@everyday.long
def test_long_mechanisms_have_short_results():
    """Print the loads of a chain of 300 links within a screen or two."""
    chain = kt.chain(300)
    found = chain.loads(np.full(300, 0.01), np.zeros(300))
    assert len(str(found).splitlines()) == ROWS + 2
    assert len(found.table().splitlines()) == 301


def test_one_of_a_thing_is_singular():
    """Write counts of none, one and two things, with a plural that is regular or given."""
    assert [count_text(n, "joint") for n in range(3)] == ["0 joints", "1 joint", "2 joints"]
    assert [count_text(n, "body", "bodies") for n in range(3)] == ["0 bodies", "1 body", "2 bodies"]
