"""Equations in symbols: the closed forms of textbooks, and code with the results of the compiled functions."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
import strategies
from kinetree.analysis.equations import equations
from kinetree.errors import InputError, ModelError
from tolerance import assert_close

sympy = pytest.importorskip("sympy")

PLANAR_2R = """
[mechanism]
name = "planar"
gravity = [0, "-g", 0]

[parameters]
l1 = { value = 0.3, free = true, unit = "m" }
d1 = { value = 0.15, free = true, unit = "m" }
d2 = { value = 0.125, free = true, unit = "m" }
m1 = { value = 0.5, free = true, unit = "kg" }
m2 = { value = 0.4, free = true, unit = "kg" }
J1 = { value = 0.004, free = true, unit = "kg m^2" }
J2 = { value = 0.002, free = true, unit = "kg m^2" }
g = { value = 9.81, unit = "m/s^2" }

[dh]
convention = "modified"
row = [
    { joint = "revolute", mass = "m1", com = ["d1", 0, 0], inertia = [0, "J1", "J1", 0, 0, 0] },
    { joint = "revolute", a = "l1", mass = "m2", com = ["d2", 0, 0], inertia = [0, "J2", "J2", 0, 0, 0] },
]
"""


@pytest.fixture
def planar(tmp_path) -> kt.System:
    """Return a planar arm whose numbers are parameters."""
    file = tmp_path / "planar.toml"
    file.write_text(PLANAR_2R)
    return kt.load(file)


def assert_as_in_textbook(made, expected: dict[tuple[int, ...], str]) -> None:
    """Assert that entries equal those of a textbook and are no longer."""
    for index, text in expected.items():
        entry = made.expression[index if len(index) == 2 else (index[0], 0)]
        names = {str(s): s for s in entry.free_symbols}
        textbook = sympy.sympify(text, locals=names | {"I": sympy.Symbol("I")})
        assert sympy.simplify(entry - textbook) == 0, (index, entry)
        assert entry.count_ops() <= textbook.count_ops(), (index, entry)


def test_planar_2r_is_the_textbook(planar):
    """Print inertia matrix, convective matrix, gravity and torques of a planar arm as textbooks do."""
    assert_as_in_textbook(
        planar.equations("inertia_matrix"),
        {
            (0, 0): "J1 + J2 + m1*d1**2 + m2*l1**2 + m2*d2**2 + 2*m2*l1*d2*cos(q2)",
            (0, 1): "J2 + m2*d2**2 + m2*l1*d2*cos(q2)",
            (1, 1): "J2 + m2*d2**2",
        },
    )
    assert_as_in_textbook(
        planar.equations("convective_matrix"),
        {
            (0, 0): "-m2*l1*d2*sin(q2)*qd2",
            (0, 1): "-m2*l1*d2*sin(q2)*(qd1 + qd2)",
            (1, 0): "m2*l1*d2*sin(q2)*qd1",
            (1, 1): "0",
        },
    )
    assert_as_in_textbook(
        planar.equations("gravity_torque"),
        {(0,): "(m1*d1 + m2*l1)*g*cos(q1) + m2*d2*g*cos(q1 + q2)", (1,): "m2*d2*g*cos(q1 + q2)"},
    )
    assert_as_in_textbook(
        planar.equations("inverse_dynamics"),
        {
            (
                1,
            ): "(J2 + m2*d2**2)*(qdd1 + qdd2) + m2*l1*d2*cos(q2)*qdd1 + m2*l1*d2*sin(q2)*qd1**2 + m2*d2*g*cos(q1 + q2)"
        },
    )


def test_planar_3r_is_the_textbook():
    """Print the planar arm of [Saha1999] 6.1 with every number a symbol."""
    assert_as_in_textbook(
        kt.load("planar_3r").equations("inertia_matrix", symbols="all"),
        {
            (0, 2): "I3zz + m3*c3**2 + m3*l2*c3*cos(q3) + m3*l1*c3*cos(q2 + q3)",
            (1, 1): "I2zz + I3zz + m2*c2**2 + m3*l2**2 + m3*c3**2 + 2*m3*l2*c3*cos(q3)",
            (2, 2): "I3zz + m3*c3**2",
        },
    )
    assert_as_in_textbook(
        kt.load("planar_3r").equations("gravity_torque", symbols="all"),
        {(2,): "m3*c3*g*cos(q1 + q2 + q3)", (1,): "(m2*c2 + m3*l2)*g*cos(q1 + q2) + m3*c3*g*cos(q1 + q2 + q3)"},
    )


def test_numbers_become_fractions():
    """Print a mechanism without parameters in exact numbers."""
    made = kt.load("planar_2r").equations()
    assert str(made).splitlines()[0] == "I[0][0] = 3*cos(q2)/100 + 89/1500"
    assert made.parameters == {}


def test_declared_parameters_stay():
    """Print the spatial pendulum in its length, diameter and mass; without symbols, in numbers."""
    pendulum = kt.load("spatial_pendulum")
    made = pendulum.equations()
    assert_as_in_textbook(
        made, {(2, 2): "m*(16*a**2 + 3*d**2)/48", (0, 2): "m*(16*a**2 + 3*d**2)*cos(q2)/48", (1, 2): "0"}
    )
    assert {str(s): v for s, v in made.parameters.items()} == {"m": 2.512, "a": 1.0, "d": 0.02}
    assert pendulum.equations(symbols="none").expression.free_symbols == {*made.arguments["q"][1:]}


@pytest.mark.parametrize(
    "function", everyday.some(["inertia_matrix", "inverse_dynamics", "convective_matrix", "kinetic_energy"])
)
@pytest.mark.parametrize(
    "name", everyday.without(["planar_2r", "planar_3r", "spatial_pendulum", "gripper", "stanford"], ["stanford"])
)
def test_python_gives_the_compiled_numbers(name, function):
    """Execute the printed function and find the result of the compiled one."""
    arm = kt.load(name)
    if name == "stanford" and function in ("inverse_dynamics", "convective_matrix"):
        function = "gravity_torque"
    symbols = "all" if name.startswith("planar") else "declared"
    scope: dict = {}
    made = arm.equations(function, symbols=symbols)
    exec(made.python(), scope)
    s = strategies.State(arm.mechanism, 3, 4)
    given = [getattr(s, argument) for argument in made.arguments]
    expected = np.asarray(getattr(arm, function)(*given))
    found = np.array([scope[function](*(x[k] for x in given)) for k in range(4)])
    assert_close(found, expected, 1e-13 * max(1.0, np.abs(expected).max()), function)


def test_python_takes_other_parameters(planar):
    """Give the printed function other lengths and find the result of the compiled one for them."""
    scope: dict = {}
    made = planar.equations("gravity_torque")
    text = made.python()
    exec(text, scope)
    assert "def gravity_torque(q, parameters=(0.3, 0.15, " in text
    free = [0.5, 0.2, 0.1, 1.0, 2.0, 0.01, 0.02]
    expected = planar.gravity_torque([0.1, 0.2], parameters=free)
    assert_close(scope["gravity_torque"]([0.1, 0.2], (*free, 9.81)), expected, 1e-13)


def test_angles_that_are_not_right():
    """Print a mechanism with axes at 45 degrees with roots, and one with another angle with decimals."""
    link = {"joint": "revolute", "mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": (1, 1, 1, 0, 0, 0)}
    rows: list[dict] = [dict(link), dict(link)]
    rows[1]["alpha"] = 45
    tilted = kt.from_dh(rows, convention="modified", degrees=True)
    made = tilted.equations("inertia_matrix")
    assert "sqrt(2)" in str(made)
    s = strategies.State(tilted.mechanism, 0, ())
    numbers = sympy.lambdify([made.arguments["q"]], made.expression)(s.q)
    assert_close(numbers, tilted.inertia_matrix(s.q), 1e-13)
    rows[1]["alpha"] = 31.7
    odd = kt.from_dh(rows, convention="modified", degrees=True)
    made = odd.equations("inertia_matrix")
    assert_close(sympy.lambdify([made.arguments["q"]], made.expression)(s.q), odd.inertia_matrix(s.q), 1e-13)


def test_frames_and_sliding_joints():
    """Print the pose of a frame, and the Jacobian of a slider."""
    made = kt.load("planar_2r").equations("pose", frame="tool", symbols="all")
    assert_as_in_textbook(made, {(0, 3): "l1*cos(q1) + l2*cos(q1 + q2)", (2, 3): "0", (0, 1): "-sin(q1 + q2)"})
    slider = kt.from_dh([{"joint": "prismatic", "mass": 2.0}])
    assert_as_in_textbook(slider.equations("jacobian", frame="link1"), {(5, 0): "1", (0, 0): "0"})
    assert str(slider.equations("inertia_matrix")) == "I[0][0] = 2"


def test_the_legend_says_what_the_symbols_are():
    """Read the lengths of the links of a planar arm and of a four-bar, and the joints of the coordinates."""
    arm = kt.load("planar_2r").equations("pose", frame="tool", symbols="all")
    names = {str(s): text for s, text in arm.legend.items()}
    assert names["l1"] == "length of link1, to joint2 [m]" and names["l2"] == "length of link2, to tool [m]"
    assert names["q2"] == "q of joint2"
    assert "  l1 = 0.3: length of link1, to joint2 [m]" in str(arm).splitlines()
    bars = kt.load("four_bar").equations("closure_residual", symbols="all")
    lengths = {str(s): value for s, value in bars.parameters.items()}
    assert lengths == {"l0": 0.0895, "l1": 0.038, "l2": 0.1152, "l3": 0.1152}


def test_a_closed_mechanism_says_what_closes_it():
    """Read that the inertia is that of the open tree, and find its constraint zero where the loops are closed."""
    system = kt.load("four_bar")
    made = system.equations("inertia_matrix", symbols="all")
    assert "This is I of the open tree, every joint free; closed by 'pin' where -l0*cos(q1) - l1 + " in str(made)
    assert "(pin, position y); see reduced()." in str(made)
    assert r"(open tree; loops close where }" in made.latex() and "of the open tree" in made.python()
    gaps = sympy.lambdify([made.arguments["q"], list(made.parameters)], made.loops.gaps)
    values = list(made.parameters.values())
    for angle in (0.3, 2.1, 4.4):
        q = system.assemble(hold={"crank": angle})
        assert_close(gaps(q, values), [0.0, 0.0], 1e-15, "gaps of a closed position")
        open_ = q + np.array([0.0, 0.1, -0.2])
        expected = system.closure_residual(open_)
        found = np.array(gaps(open_, values))
        assert_close(np.sort(np.abs(found)), np.sort(np.abs(expected))[-2:], 1e-15, "gaps of an open position")


@pytest.mark.parametrize("name", everyday.some(["four_bar", "slider_crank", "hoeken", "parallelogram"]))
def test_reduced_equations_are_those_of_the_closed_mechanism(name):
    """Compare reduced inertia, gravity and torques with G^T I G by numbers, and with the torque of the drive."""
    system = kt.load(name)
    lead = system.independent().names[0]
    made = {f: system.equations(f, symbols="all").reduced(lead) for f in ("inertia_matrix", "gravity_torque")}
    torque = None if name == "parallelogram" else system.equations("inverse_dynamics", symbols="all").reduced(lead)
    q = system.assemble(hold={lead: system.assemble()[system.independent().at[0]] + 0.2})
    qd = system.consistent_speeds(q, {lead: 1.7})
    qdd = system.consistent_accelerations(q, qd, {lead: -2.3})
    G, scope = system.independent(q, prefer=lead).G, {}
    for function in (*made.values(), *([torque] if torque else [])):
        exec(function.python(), scope)
    inertia = G.T @ system.inertia_matrix(q) @ G
    assert_close(scope["reduced_inertia_matrix"](q), inertia, 1e-12 * np.abs(inertia).max(), "inertia")
    weight = G.T @ system.gravity_torque(q)
    assert_close(scope["reduced_gravity_torque"](q), weight, 1e-12 * max(1.0, np.abs(weight).max()), "gravity")
    energy = 0.5 * 1.7**2 * inertia[0, 0]
    assert_close(energy, system.kinetic_energy(q, qd), 1e-12 * energy, "kinetic energy")
    assert made["inertia_matrix"].shape == (1, 1) and f"entries are those of {lead}, and q" in str(
        made["inertia_matrix"]
    )
    if torque:
        driven = system.inverse_dynamics(q, qd, qdd, actuated=lead, forces=False)
        found = scope["reduced_inverse_dynamics"](q, qd, qdd)
        assert_close(found, driven[list(system.independent(q, prefer=lead).at)], 1e-11 * np.abs(driven).max(), "drive")


def four_bar_by_hand(angle, output, coupler):
    """Return the inertia of a four-bar that its crank feels, from the kinetic energy of its three links.

    The ground link lies along -x from the crank's joint, the coupler starts at the tip of the output link, and all
    angles are those of the links against x, with e = (cos, sin) and n = (-sin, cos). The velocity of the pin is

        l1 n(angle) = r l2 n(output) + s l3 n(coupler)

    per unit velocity of the crank. Its products with e(coupler) and e(output) are the velocity ratios r and s.
    """
    l1, l2, l3, m1, m2, m3, c1, c2, c3, J1, J2, J3 = (
        sympy.Symbol(x, real=True) for x in "l1 l2 l3 m1 m2 m3 c1 c2 c3 I1zz I2zz I3zz".split()
    )
    r = l1 * sympy.sin(coupler - angle) / (l2 * sympy.sin(coupler - output))
    s = l1 * sympy.sin(output - angle) / (l3 * sympy.sin(output - coupler))
    center = l2**2 * r**2 + c3**2 * s**2 + 2 * l2 * c3 * r * s * sympy.cos(coupler - output)  # |r l2 n + s c3 n|^2
    return J1 + m1 * c1**2 + (J2 + m2 * c2**2) * r**2 + J3 * s**2 + m3 * center


@everyday.long
def test_the_explicit_inertia_of_a_four_bar():
    """Derive the inertia of [Saha2013]'s four-bar by hand, with lengths as symbols, and find it exactly."""
    made = kt.load("four_bar").equations("inertia_matrix", symbols="all").reduced("crank")
    angle, output, bend = made.arguments["q"]
    l0, l1, l2, l3 = (sympy.Symbol(f"l{k}", real=True) for k in range(4))
    by_hand = four_bar_by_hand(angle, output, output + bend)
    # The pin closes the loop, l1 e(angle) = -l0 e(0) + l2 e(output) + l3 e(output + bend): no crank angle is left.
    across = -l0 + l2 * sympy.cos(output) + l3 * sympy.cos(output + bend)
    up = l2 * sympy.sin(output) + l3 * sympy.sin(output + bend)
    closed = sympy.expand_trig(by_hand).subs({sympy.cos(angle): across / l1, sympy.sin(angle): up / l1})
    difference = sympy.expand_trig(closed - sympy.expand_trig(made.expression[0, 0]))
    numerator = sympy.numer(sympy.together(difference))
    x, y, u, v = sympy.symbols("x y u v")
    names = {sympy.cos(output): x, sympy.sin(output): y, sympy.cos(bend): u, sympy.sin(bend): v}
    polynomial = sympy.expand(numerator.subs(names))
    left = sympy.reduced(polynomial, [x**2 + y**2 - 1, u**2 + v**2 - 1], x, u, y, v)[1]
    assert left == 0


def test_the_inertia_of_a_four_bar_in_its_crank_angle_alone():
    """Solve the triangle of four random links for both branches, and compare with the reduced inertia."""
    bars = kt.load("four_bar")
    made = bars.equations("inertia_matrix", symbols="all").reduced("crank")
    names = sorted({str(s) for s in made.parameters} | {"l1"})
    symbols = [sympy.Symbol(x, real=True) for x in names]
    q = sympy.symbols("q1:4", real=True)
    formula = sympy.lambdify([*q, *symbols], made.expression[0, 0])
    by_hand = sympy.lambdify([*q, *symbols], four_bar_by_hand(q[0], q[1], q[1] + q[2]))
    rng, own = np.random.default_rng(8), {str(s): float(x) for s, x in made.parameters.items()} | {"l1": 0.038}
    tested = 0
    for values in (own, *({x: float(rng.uniform(0.3, 1.5)) for x in names} for _ in range(40))):
        angle = rng.uniform(-3.0, 3.0)
        reach = values["l1"] * np.exp(1j * angle) + values["l0"]  # from the joint of the output link to the pin
        part = (abs(reach) ** 2 + values["l2"] ** 2 - values["l3"] ** 2) / (2 * abs(reach) * values["l2"])
        if abs(part) > 0.95:  # the links do not reach, or nearly
            continue
        for branch in (1.0, -1.0):
            output = np.angle(reach) + branch * np.arccos(part)
            coupler = np.angle(reach - values["l2"] * np.exp(1j * output))
            state = (angle, output, coupler - output)
            expected = by_hand(*state, *(values[x] for x in names))
            assert_close(formula(*state, *(values[x] for x in names)), expected, 1e-12 * expected, "reduced inertia")
            if values is own:
                G = bars.independent(np.array(state), prefer="crank").G
                inertia = (G.T @ bars.inertia_matrix(np.array(state)) @ G)[0, 0]
                assert_close(inertia, expected, 1e-12 * expected, "G^T I G")
            tested += 1
    assert tested > 20


def test_the_inertia_of_three_links_by_hand():
    """Write the inertia matrix of three links in a plane from the kinetic energy of their centers, and find it."""
    made = kt.load("planar_3r").equations("inertia_matrix", symbols="all")
    _, q2, q3 = made.arguments["q"]
    m1, m2, m3, c1, c2, c3, l1, l2, J1, J2, J3 = (
        sympy.Symbol(x, real=True) for x in "m1 m2 m3 c1 c2 c3 l1 l2 I1zz I2zz I3zz".split()
    )
    # The centers move with sums of l_k w_k n_k, for absolute angular velocities w, and n_i . n_k is the cosine between.
    w = {(0, 0): J1 + m1 * c1**2 + (m2 + m3) * l1**2, (1, 1): J2 + m2 * c2**2 + m3 * l2**2, (2, 2): J3 + m3 * c3**2}
    w |= {(0, 1): (m2 * c2 + m3 * l2) * l1 * sympy.cos(q2), (1, 2): m3 * l2 * c3 * sympy.cos(q3)}
    w |= {(0, 2): m3 * l1 * c3 * sympy.cos(q2 + q3)}
    absolute = sympy.Matrix(3, 3, lambda i, k: w[min(i, k), max(i, k)])
    sums = sympy.Matrix([[1, 0, 0], [1, 1, 0], [1, 1, 1]])  # absolute from relative velocities
    left = made.expression - sums.T * absolute * sums
    assert left.applyfunc(lambda x: sympy.simplify(sympy.expand(sympy.expand_trig(x)))).is_zero_matrix


def test_what_has_no_reduced_form_says_so(planar):
    """Ask for the reduced form of an open arm and of bias torques, and for a joint that is not independent."""
    with pytest.raises(InputError, match="inertia_matrix has no reduced form here; inertia_matrix, gravity_to"):
        planar.equations().reduced()
    bars = kt.load("four_bar")
    with pytest.raises(InputError, match="bias_torque has no reduced form here"):
        bars.equations("bias_torque").reduced()
    with pytest.raises(InputError, match="'coupler' is not independent beside crank where the mechanism is assembled"):
        bars.equations().reduced(["crank", "coupler"])


def test_own_forces_are_named_as_left_out():
    """Read that a spring is not part of the printed torques."""
    arm = kt.load("planar_2r").mechanism
    sprung = kt.System(replace(arm, joints=tuple(replace(j, damping=(0.3,)) for j in arm.joints)))
    assert str(sprung.equations("gravity_torque")).endswith(
        "Springs, damping and friction of the mechanism are left out."
    )


def test_latex_reads_like_a_book(planar):
    """Read dots, subscripts and the letter of the result."""
    text = planar.equations("inverse_dynamics").latex()
    assert text.startswith(r"\boldsymbol{\tau} = \left[\begin{matrix}")
    assert r"\ddot{q}_{1}" in text and r"\dot{q}_{2}" in text and "d_{2}" in text
    assert planar.equations("inertia_matrix").latex().startswith(r"\mathbf{I} = ")
    assert planar.equations("kinetic_energy").latex().startswith("T = ")


def test_what_cannot_be_printed_says_so(planar):
    """Refuse large mechanisms, quaternions, quotients, unknown choices and names that clash."""
    with pytest.raises(
        ModelError, match="20 degrees of freedom give equations that are too long to read; print those of"
    ):
        kt.load("chain_20").equations()
    floating = strategies.random_mechanism(["spherical"], [-1], 1)
    with pytest.raises(ModelError, match="joint 'j0' has a quaternion, which no textbook prints; use a euler joint"):
        equations(floating)
    with pytest.raises(InputError, match="forward_dynamics divides by long sums; print inertia_matrix"):
        planar.equations("forward_dynamics")
    with pytest.raises(InputError, match="symbols is 'some'; expected one of declared, all, none"):
        planar.equations(symbols="some")
    clash = kt.build_mechanism(
        "c", [kt.Body("b", 1.0)], [kt.Joint("j", "revolute", kt.GROUND, "b")], parameters=[kt.Parameter("q1", 1.0)]
    )
    with pytest.raises(InputError, match="the parameter 'q1' has the name of a coordinate"):
        equations(clash)


def test_without_sympy_the_remedy_is_named(monkeypatch, planar):
    """Hide SymPy and read what to install."""
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(
        InputError, match=r"Equations in symbols need the package sympy, which .*; pip install 'kinetree\[symbolic\]'"
    ):
        planar.equations()
