"""Writing the native TOML format: reading gives the same mechanism again."""

from __future__ import annotations

import functools
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree.algebra.rotations import from_quaternion
from kinetree.errors import ModelError
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml
from kinetree.joints import KINDS
from kinetree.joints.euler import SEQUENCES
from kinetree.loops import KINDS as LOOPS
from kinetree.model import (
    GROUND,
    Body,
    Coupling,
    Curve,
    Elastic,
    Expression,
    ForceElement,
    Frame,
    Joint,
    Law,
    Limits,
    Loop,
    Parameter,
    Placement,
    Shape,
    build_mechanism,
    parse,
)
from kinetree.model.checks import COEFFICIENTS, RESERVED, massless_inertias
from strategies import examples

PLAIN = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 0.1 + 0.2, 1 / 3, 1e22, 3])
FORMULA = st.sampled_from(
    ["p", "-p", "p/2 + 0.1", "2*p - q*(p + 1e-5)", "sin(p)*cos(q)^2 - deg(p)", "sqrt(q)/3", "q^-2", "-(-p) - -1", "0*p"]
).map(parse)
NUMBER = PLAIN | FORMULA
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER)
NAME = st.text(min_size=1, max_size=12) | st.sampled_from(['a "quoted" \\ name', "a.b", "tab\tline\nreturn\r\x7f\x00"])
BOUND = st.floats(allow_nan=False)


@st.composite
def rotations(draw):
    """Draw a rotation of awkward numbers, or one that depends on a parameter."""
    if draw(st.booleans()):
        c, s = parse("cos(p)"), parse("sin(p)")
        return ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
    q = np.array(draw(st.tuples(*[st.floats(-1, 1)] * 4)))
    length = float(np.linalg.norm(q))
    return from_quaternion(tuple(map(float, q / length)) if length > 1e-3 else (0.0, 0.0, 0.0, 1.0))


PLACEMENT = st.builds(Placement, VECTOR, rotations()) | st.just(Placement())
SHAPE = st.builds(
    Shape,
    st.sampled_from(["box", "mesh", "sphere"]),
    st.lists(PLAIN, max_size=3).map(tuple),
    PLACEMENT,
    role=st.sampled_from(["visual", "collision"]),
    file=st.text(max_size=5),
    color=st.none() | st.tuples(*[st.floats(0, 1)] * 4),
    name=st.text(max_size=5),
)
COORDINATE_AXES = st.permutations([(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 3.0)])


SIZE = st.floats(1e-3, 1e6) | st.just(parse("p^2 + 0.1"))
ELASTIC = st.none() | st.builds(
    Elastic, SIZE, damping=SIZE, inertia=SIZE, ratio=SIZE, backlash=st.just(0.0) | SIZE, motor_friction=SIZE
)


@st.composite
def joints(draw, name, parent, child):
    """Draw a joint of any kind with all fields."""
    kind = draw(st.sampled_from(list(KINDS)))
    nq, nv = KINDS[kind].NQ, KINDS[kind].NV
    axis, axis2, _ = draw(COORDINATE_AXES)
    bounds = [st.just(()) | st.tuples(*[BOUND] * n) for n in (nq, nq, nv, nv)]
    lower, upper, velocity, effort = (draw(b) for b in bounds)
    if lower and upper:
        lower, upper = zip(*(sorted(pair) for pair in zip(lower, upper, strict=True)), strict=True)
    losses = st.just(()) | st.tuples(*[st.floats(0, 1e3) | st.just(parse("p^2"))] * nv)
    elastic = draw(ELASTIC) if kind in ("revolute", "prismatic", "helical") else None
    return Joint(
        name,
        kind,
        parent,
        child,
        draw(PLACEMENT),
        axis=axis,
        axis2=axis2 if draw(st.booleans()) else None,
        pitch=draw(NUMBER),
        sequence=draw(st.sampled_from(SEQUENCES)),
        limits=Limits(lower, upper, velocity, effort),
        damping=draw(losses),
        friction=draw(losses),
        armature=draw(losses) if elastic is None else (),
        ratio=draw(st.floats(0.1, 200) | st.just(parse("p^2 + 1"))) if kind == "rotor" else None,
        elastic=elastic,
    )


APART = st.tuples(*[st.integers(-9000, 9000).map(lambda n: n / 1001)] * 2)
"""Points that are equal, or apart."""
POINT = st.tuples(st.floats(-9, 9), st.floats(-9, 9))
CURVE = st.builds(Curve.ellipse, st.floats(0.1, 2), st.floats(0.1, 2), POINT) | st.builds(
    Curve, points=st.lists(APART, min_size=3, max_size=5, unique=True).map(tuple), closed=st.booleans()
)
LAW = (
    st.builds(Law, polynomial=st.lists(st.floats(-9, 9), min_size=1, max_size=4).map(tuple))
    | st.builds(Law, slope=st.floats(0.1, 2), sines=st.lists(st.floats(-9, 9), max_size=3).map(tuple))
    | st.builds(Law, points=st.just(((0.1, 0.2), (0.7, -0.1), (1.3, 0.4))), periodic=st.booleans())
)


@st.composite
def loops(draw, ends):
    """Draw a loop of any kind between two of the ends, with all fields of its kind."""
    kind = draw(st.sampled_from(list(LOOPS)))
    body_a, body_b = draw(st.permutations(ends))[:2]
    axis, axis2, _ = draw(COORDINATE_AXES)
    own = {"rod": {"length": draw(st.floats(1e-3, 9) | st.just(parse("p^2 + 0.1")))}, "helical": {"pitch": 0.1 + 0.2}}
    own["rolling_ball"] = {"radius": draw(st.floats(1e-3, 9) | st.just(parse("p^2 + 0.1")))}
    own["knife_edge"] = {"axis2": axis2}
    own["rolling_disc"] = own["rolling_ball"] | own["knife_edge"]
    own["rolling_rollers"] = own["rolling_disc"] | {"angle": draw(st.floats(-1.5, 1.5))}
    own["point_on_curve"] = {"curve": draw(CURVE)}
    own["roller_on_curve"] = own["point_on_curve"] | own["rolling_ball"]
    own["rolling_on_curve"] = own["roller_on_curve"]
    own["face_on_curve"] = own["point_on_curve"] | own["knife_edge"]
    own["curve_on_curve"] = own["point_on_curve"] | {"curve_b": draw(CURVE)}
    if kind == "universal" and draw(st.booleans()):
        own["universal"] = {"axis2": axis2}
    return Loop(draw(NAME), kind, body_a, body_b, draw(PLACEMENT), draw(PLACEMENT), axis, **own.get(kind, {}))


@st.composite
def inertias(draw):
    """Draw the inertia of a few point masses, which is possible, or one that depends on a parameter."""
    if draw(st.booleans()):
        return (parse("p^2"), parse("p^2"), parse("p*p"), 0.0, 0.0, 0.0)
    x = np.array(draw(st.lists(st.tuples(*[st.floats(-2, 2)] * 3), min_size=1, max_size=4)))
    moments = float((x * x).sum()) * np.eye(3) - x.T @ x
    return tuple(float(moments[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)))


@st.composite
def mechanisms(draw):
    """Draw a mechanism with at most one part of each sort."""
    names = draw(st.lists(NAME.filter(lambda s: s != GROUND), max_size=4, unique=True))
    labels = draw(st.lists(NAME, min_size=len(names), max_size=len(names), unique=True))
    bodies, carried = [], []
    for i, name in enumerate(names):
        mass = draw(st.floats(0, 1e3) | st.just(parse("p^2")))
        shapes = tuple(draw(st.lists(SHAPE, max_size=2)))
        bodies.append(Body(name, mass, draw(VECTOR), draw(inertias()), shapes))
        carried.append(draw(joints(labels[i], draw(st.sampled_from([GROUND, *names[:i]])), name)))
    ends = st.sampled_from([GROUND, *names])
    pairs = st.lists(st.tuples(st.sampled_from(COEFFICIENTS["spring_damper"]), NUMBER), max_size=3).map(tuple)
    frames = draw(st.lists(NAME.filter(lambda s: s not in (GROUND, *names)), max_size=2, unique=True))
    parameters = [
        Parameter(
            "p", draw(st.floats(0.1, 2)), draw(st.booleans()), draw(st.text(max_size=3)), draw(st.text(max_size=9))
        ),
        Parameter("q", 0.7),
        Parameter(draw(NAME.filter(lambda s: s not in {"p", "q", *RESERVED})), draw(PLAIN)),
    ]
    couplings = []
    single = [j.name for j in carried if KINDS[j.kind].NQ == 1]
    if single:
        leaders = single[1:] or [single[0]]
        terms = st.lists(st.tuples(st.sampled_from(leaders), NUMBER), max_size=3 * (len(single) > 1)).map(tuple)
        couplings = draw(st.lists(st.builds(Coupling, NAME, st.just(single[0]), terms, NUMBER), max_size=1))
    springs = st.builds(ForceElement, NAME, st.just("spring_damper"), ends, ends, VECTOR, VECTOR, pairs)
    coordinates = {j.name: st.tuples(*[PLAIN] * KINDS[j.kind].NQ) for j in carried}
    guess = draw(st.fixed_dictionaries({}, optional=coordinates))
    return build_mechanism(
        draw(st.text(max_size=9)),
        bodies,
        carried,
        frames=[Frame(name, draw(ends), draw(PLACEMENT)) for name in frames],
        loops=draw(st.lists(loops([GROUND, *names]), max_size=1)) if names else (),
        guess=guess,
        couplings=couplings,
        forces=draw(st.lists(springs, max_size=1)),
        scenery=draw(st.lists(SHAPE, max_size=1)),
        gravity=draw(VECTOR),
        parameters=parameters,
        source=draw(st.text(max_size=30)),
        description=draw(st.text(max_size=30)),
    )


@examples(300)
@given(mechanisms())
def test_what_is_written_is_read(mechanism):
    """Write any mechanism and read it again: same hash, same parts, same texts."""
    text = write_toml(mechanism)
    again, report = read_toml_text(text)
    assert again.hash == mechanism.hash
    assert (again.source, again.description) == (mechanism.source, mechanism.description)
    assert write_toml(again) == text
    assert len(report.of("suspect")) == len(massless_inertias(mechanism))


def one_body(**given):
    """Return a mechanism of one body on a fixed joint."""
    return build_mechanism("one", [Body("b", **given)], [Joint("j", "fixed", GROUND, "b")], lenient=True)


def test_the_text_is_short():
    """Leave out the defaults of the reader."""
    assert write_toml(one_body(mass=2)) == (
        '[mechanism]\nname = "one"\ngravity = [0.0, 0.0, -9.81]\n\n[[body]]\nname = "b"\nmass = 2.0\n\n'
        '[[joint]]\nname = "j"\nkind = "fixed"\nparent = "ground"\nchild = "b"\n'
    )


def test_impossible_inertias_make_a_lenient_file():
    """Write a mechanism with an impossible inertia so that it can be read again."""
    mechanism = one_body(inertia=(1.0, 1.0, 3.0, 0.0, 0.0, 0.0))
    again, report = read_toml_text(write_toml(mechanism))
    assert again.hash == mechanism.hash
    assert len(report.of("suspect")) == 1


def test_terms_named_twice_are_kept():
    """Write a coupling that names a joint twice as pairs, since a table has no equal keys."""
    coupling = Coupling("c", "k", (("j", 1.0), ("j", 2.0)))
    joints = [Joint("j", "prismatic", GROUND, "b"), Joint("k", "prismatic", "b", "c")]
    mechanism = build_mechanism("m", [Body("b"), Body("c")], joints, couplings=[coupling])
    assert 'terms = [["j", 1.0], ["j", 2.0]]' in write_toml(mechanism)
    assert read_toml_text(write_toml(mechanism))[0].couplings == (coupling,)


def test_loops_and_guesses_are_short():
    """Write only the fields of a loop's kind, and the guess as a table at the end."""
    loop = Loop(
        "l", "universal", "b", GROUND, placement_b=Placement((0.0, 0.3, 0.0)), axis2=(0.0, 0.0, 1.0), axis=(0, 2, 0)
    )
    joint = Joint("j j", "spherical", GROUND, "b")
    mechanism = build_mechanism("m", [Body("b")], [joint], loops=[loop], guess={"j j": (0.0, 0.6, 0.0, 0.8)})
    assert write_toml(mechanism).endswith(
        '\n[[loop]]\nname = "l"\nkind = "universal"\nbody_a = "b"\nbody_b = "ground"\n'
        "placement_b = { translation = [0.0, 0.3, 0.0] }\naxis = [0.0, 2.0, 0.0]\naxis2 = [0.0, 0.0, 1.0]\n\n"
        '[guess]\n"j j" = [0.0, 0.6, 0.0, 0.8]\n'
    )


def test_infinite_limits_are_toml():
    """Write infinities in TOML's spelling, one number plain and several as a list."""
    limits = Limits((-math.inf,), (math.inf,))
    mechanism = build_mechanism("m", [Body("b")], [Joint("j", "revolute", GROUND, "b", limits=limits)])
    assert tomllib.loads(write_toml(mechanism))["joint"][0]["limits"] == {"lower": -math.inf, "upper": math.inf}


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (
            Expression("name", ("two {words}",)),
            r"the expression '{two {words}}' cannot be written as a formula; shorten it",
        ),
        (
            functools.reduce(lambda e, _: e * e, range(9), Expression("name", ("p",))),
            r"the expression 'p \* p .* cannot be written as a formula",
        ),
    ],
    ids=["name", "length"],
)
def test_formulas_that_cannot_be_read_are_not_written(number, message):
    """Refuse to write a formula that would not be read again."""
    mechanism = one_body()
    bodies = (Body("b", mass=number),)
    with pytest.raises(ModelError, match=message):
        write_toml(
            type(mechanism)(
                "m", bodies, mechanism.joints, parameters=(Parameter("p", 1.0), Parameter("two {words}", 1.0))
            )
        )


def test_names_that_are_not_unicode_are_not_written():
    """Refuse to write half of a surrogate pair, which UTF-8 cannot encode."""
    mechanism = build_mechanism("m", [Body("b\ud800")], [Joint("j", "fixed", GROUND, "b\ud800")])
    with pytest.raises(ModelError, match=r"'b\\ud800' is not Unicode; rename it"):
        write_toml(mechanism)
