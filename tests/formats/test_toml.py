"""Reading the native TOML format."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
from kinetree import library
from kinetree.algebra.rotations import from_rpy
from kinetree.errors import ModelError, UnknownNameError
from kinetree.formats.dh import mechanism_from_dh
from kinetree.formats.toml import read_toml, read_toml_text
from kinetree.formats.toml_writer import write_toml
from kinetree.model import (
    Body,
    Coupling,
    Curve,
    ForceElement,
    Frame,
    Joint,
    Limits,
    Loop,
    Mechanism,
    Parameter,
    Placement,
    parse,
)
from pairs_of_mechanisms import TEXT as PAIRS
from strategies import examples
from tolerance import assert_close

EVERYTHING = """\
[mechanism]
name = "sample"
gravity = [0, "-g", 0]
source = "made up"
description = "has one of each"

[parameters]
l1 = 0.3
g = { value = 9.81, free = true, unit = "m/s^2", note = "gravity" }
right = "deg(90)"

[[body]]
name = "arm"
mass = 0.5
com = ["l1/2", 0, 0]
inertia = [[0.2, 0.01, 0.03], [0.01, 0.3, 0.02], [0.03, 0.02, 0.4]]

[[body.shape]]
kind = "box"
size = [0.3, 0.1, 0.1]
color = [1, 0, 0, 0.5]
translation = [0.15, 0, 0]

[[body.shape]]
kind = "mesh"
file = "arm.stl"
role = "collision"
name = "hull"

[[body]]
name = "slide"
mass = 1
inertia = [1, 1, 1, 0, 0, 0]

[[joint]]
name = "hinge"
kind = "revolute"
parent = "ground"
child = "arm"
axis = [0, 1, 0]
limits = { lower = -1, upper = inf, velocity = [2], effort = 3 }
damping = 0.1
friction = [0.2]
armature = "l1^2"

[[joint]]
name = "screw"
kind = "helical"
parent = "arm"
child = "slide"
pitch = 0.01
translation = ["l1", 0, 0]
rpy = [0, "right", 0]

[[frame]]
name = "tool"
body = "slide"
translation = [0, 0, 0.1]

[[loop]]
name = "cut"
kind = "universal"
body_a = "slide"
body_b = "ground"
placement_a = { translation = [0, 0, 0.2] }
placement_b = { translation = ["l1", 0, 0], rpy = [0.1, 0.2, 0.3] }
axis = [1, 0, 0]
axis2 = [0, 2, -1]

[[loop]]
name = "link"
kind = "rod"
body_a = "slide"
body_b = "arm"
length = "l1 + 0.2"

[[loop]]
name = "thread"
kind = "helical"
body_a = "ground"
body_b = "slide"
pitch = 0.003

[[coupling]]
name = "gear"
joint = "screw"
terms = { hinge = 2 }
offset = 0.1

[[force]]
name = "spring"
kind = "spring_damper"
body_a = "arm"
body_b = "slide"
point_a = [0, 0, 1]
coefficients = { stiffness = 100, free_length = "l1" }

[guess]
screw = 0.7
hinge = ["deg(90)"]
"""


def test_one_of_each():
    """Read every sort of table into its part."""
    mechanism, report = read_toml_text(EVERYTHING, file="sample.toml")
    assert (mechanism.name, mechanism.source, mechanism.description) == ("sample", "made up", "has one of each")
    assert mechanism.gravity == (0.0, parse("-g"), 0.0)
    assert mechanism.parameters == (
        Parameter("l1", 0.3),
        Parameter("g", 9.81, free=True, unit="m/s^2", note="gravity"),
        Parameter("right", math.pi / 2),
    )
    arm = mechanism.body("arm")
    assert (arm.mass, arm.com, arm.inertia) == (0.5, (parse("l1/2"), 0.0, 0.0), (0.2, 0.3, 0.4, 0.01, 0.02, 0.03))
    box, mesh = arm.shapes
    assert (box.kind, box.size, box.color) == ("box", (0.3, 0.1, 0.1), (1.0, 0.0, 0.0, 0.5))
    assert box.placement.translation == (0.15, 0.0, 0.0)
    assert (mesh.file, mesh.role, mesh.name, mesh.color) == ("arm.stl", "collision", "hull", None)
    assert mechanism.body("slide") == Body("slide", 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    assert mechanism.joint("hinge") == Joint(
        "hinge",
        "revolute",
        "ground",
        "arm",
        axis=(0.0, 1.0, 0.0),
        limits=Limits((-1.0,), (math.inf,), (2.0,), (3.0,)),
        damping=(0.1,),
        friction=(0.2,),
        armature=(parse("l1^2"),),
    )
    screw = mechanism.joint("screw")
    assert (screw.pitch, screw.placement.translation) == (0.01, (parse("l1"), 0.0, 0.0))
    assert isinstance(mechanism.frame("tool"), Frame)
    (cut, link, thread), (coupling,), (force,) = mechanism.loops, mechanism.couplings, mechanism.forces
    assert (cut.kind, cut.body_a, cut.body_b) == ("universal", "slide", "ground")
    assert (cut.axis, cut.axis2, cut.placement_a.translation) == ((1.0, 0.0, 0.0), (0.0, 2.0, -1.0), (0.0, 0.0, 0.2))
    assert cut.placement_b == Placement((parse("l1"), 0.0, 0.0), from_rpy(0.1, 0.2, 0.3))
    assert link == Loop("link", "rod", "slide", "arm", length=parse("l1 + 0.2"))
    assert (thread.kind, thread.pitch, thread.axis2) == ("helical", 0.003, None)
    assert mechanism.guess == (("screw", (0.7,)), ("hinge", (math.pi / 2,)))
    assert coupling == Coupling("gear", "screw", (("hinge", 2.0),), 0.1)
    assert force == ForceElement(
        "spring",
        "spring_damper",
        "arm",
        "slide",
        (0.0, 0.0, 1.0),
        coefficients=(("stiffness", 100.0), ("free_length", parse("l1"))),
    )
    assert str(report) == "read (1)\n  sample.toml: 2 bodies, 2 degrees of freedom, 3 loops, 1 coupling"


ONE = """\
[[body]]
name = "b"
[[joint]]
name = "j"
kind = "fixed"
parent = "ground"
child = "b"
"""


LOOP = """\
[[loop]]
name = "l"
kind = "rod"
body_a = "b"
body_b = "ground"
"""


@pytest.mark.parametrize(
    "rotation",
    [
        "rotation = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]",
        'rpy = [0, 0, "pi/2"]',
        "quaternion = [0, 0, 0.70710678, 0.70710678]",
        'euler = { sequence = "zxz", angles = ["pi/2", 0, 0] }',
        'euler = { sequence = "z", angles = ["deg(90)"] }',
        'axis_angle = { axis = [0, 0, 2], angle = "pi/2" }',
        'zxz = ["pi/2", 0, 0]',
        "zxz_deg = [30, 0, 60]",
        "rpy_deg = [0, 0, 90]",
    ],
)
def test_rotations(rotation):
    """Read a rotation by 90 degrees about z in every notation."""
    mechanism, _ = read_toml_text(ONE + rotation)
    assert_close(
        mechanism.joints[0].placement.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], 4e-16, "rotation"
    )  # measured: 2.2e-16 (quaternion)


@pytest.mark.parametrize(
    "rotation",
    [
        'rpy = ["t", 0.2, "2*t"]',
        'quaternion = [0, 0, "sin(t/2)", "cos(t/2)"]',
        'euler = { sequence = "zyx", angles = [0.1, "t", 0.2] }',
        'axis_angle = { axis = ["t", 1, 0.5], angle = "t" }',
        'zxz = [0.4, "t", "2*t"]',
        'zxz_deg = [40, "t", "2*t"]',
        'rpy_deg = ["t", 40, "2*t"]',
    ],
)
def test_rotations_of_parameters(rotation):
    """Read rotations with formulas, and get the results of the parameter's value."""
    mechanism, _ = read_toml_text("parameters = { t = 0.7 }\n" + ONE + rotation)
    plain = rotation.replace('"t"', "0.7").replace('"2*t"', "1.4")
    plain = plain.replace('"sin(t/2)"', repr(math.sin(0.35))).replace('"cos(t/2)"', repr(math.cos(0.35)))
    expected, _ = read_toml_text(ONE + plain)
    values = mechanism.values()
    found = [[x if isinstance(x, float) else x.value(values) for x in row] for row in _rotation(mechanism)]
    assert_close(found, _rotation(expected), 1e-15, "rotation")


def test_zxz_angles_are_those_of_the_paper():
    """Read ZXZ angles as the matrix of [Goncalves2023] (17), by radians, by degrees and in Python."""
    a, b, c = 0.3, -1.1, 2.4
    (c1, c2, c3), (s1, s2, s3) = np.cos([a, b, c]), np.sin([a, b, c])
    expected = [
        [c1 * c3 - s1 * c2 * s3, -c1 * s3 - s1 * c2 * c3, s1 * s2],  # Differs from the paper: it prints s1 s3
        [s1 * c3 + c1 * c2 * s3, c1 * c2 * c3 - s1 * s3, -c1 * s2],
        [s2 * s3, s2 * c3, c2],
    ]
    degrees = np.degrees([a, b, c]).tolist()
    for text in (f"zxz = [{a}, {b}, {c}]", f"zxz_deg = {degrees}"):
        assert_close(_rotation(read_toml_text(ONE + text)[0]), expected, 4e-16, "rotation")
    assert_close(Placement.from_euler("zxz", (a, b, c)).rotation, expected, 4e-16, "rotation")
    made = Placement.from_euler("zxz", degrees, (1.0, 2.0, 3.0), degrees=True)
    assert_close(made.rotation, expected, 4e-16, "rotation")
    assert made.translation == (1.0, 2.0, 3.0)


def test_axes_by_letter():
    """Read the axes of joints and loops by letter, and refuse other letters."""
    mechanism, _ = read_toml_text(ONE.replace("fixed", "universal") + 'axis = "-x"\naxis2 = "z"\n')
    assert (mechanism.joints[0].axis, mechanism.joints[0].axis2) == ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    assert str(mechanism.joints[0].axis[1]) == "0.0"
    loop = LOOP.replace("rod", "revolute") + 'axis = "y"\n'
    assert read_toml_text(ONE + loop)[0].loops[0].axis == (0.0, 1.0, 0.0)
    assert read_toml_text(write_toml(mechanism))[0].hash == mechanism.hash


def _rotation(mechanism):
    return mechanism.joints[0].placement.rotation


def test_dh_beside_bodies():
    """Attach DH rows to a body of the file, together with frames and other parts."""
    text = """\
[[body]]
name = "base"
mass = 1
inertia = [1, 1, 1, 0, 0, 0]
[[joint]]
name = "base"
kind = "free"
parent = "ground"
child = "base"
[dh]
convention = "modified"
degrees = true
[[dh.row]]
joint = "revolute"
parent = "base"
a = 0.5
[[dh.row]]
joint = "revolute"
alpha = 90
[[frame]]
name = "tip"
body = "link2"
"""
    mechanism, _ = read_toml_text(text)
    rows = [{"joint": "revolute", "a": 0.5}, {"joint": "revolute", "alpha": 90}]
    expected = mechanism_from_dh(rows, convention="modified", degrees=True)
    assert [j.parent for j in mechanism.joints] == ["ground", "base", "link1"]
    assert mechanism.bodies[1:] == expected.bodies
    assert [j.placement for j in mechanism.joints[1:]] == [j.placement for j in expected.joints]
    assert mechanism.frame("tip").body == "link2"


def test_the_name_is_that_of_the_file(tmp_path):
    """Name a mechanism without a name after its file, and accept a byte order mark."""
    (tmp_path / "box.toml").write_bytes(b"\xef\xbb\xbf" + ONE.encode())
    assert read_toml(tmp_path / "box.toml")[0].name == "box"
    assert read_toml_text(ONE)[0].name == "mechanism"


def test_an_empty_file_is_refused():
    """Refuse a file without any table; read one with only a head as a mechanism without bodies."""
    with pytest.raises(ModelError) as error:
        read_toml_text("# nothing\n", file="f.toml")
    assert str(error.value) == ("f.toml: the file is empty; describe parts under [[body]] and [[joint]], or a [dh]")
    assert read_toml_text('[mechanism]\nname = "none"\n')[0].bodies == ()


def test_lenient_files_keep_impossible_inertias():
    """Refuse an inertia that no body can have, unless the file is lenient; then report it as suspect."""
    text = ONE.replace('name = "b"', 'name = "b"\ninertia = [1, 1, 3, 0, 0, 0]')
    with pytest.raises(ModelError, match=r"^f\.toml:1: body 'b': no body can have this inertia"):
        read_toml_text(text, file="f.toml")
    mechanism, report = read_toml_text("mechanism = { lenient = true }\n" + text, file="f.toml")
    assert mechanism.body("b").inertia == (1, 1, 3, 0, 0, 0)
    assert str(report.of("suspect")[0]).startswith("f.toml:2: body 'b': no body can have this inertia")


def test_inertias_without_mass_are_suspect():
    """Keep an inertia without mass, and report it with its line."""
    text = ONE.replace('name = "b"', 'name = "b"\ninertia = [1, 1, 1.5, 0, 0, 0]').replace("fixed", "prismatic")
    report = read_toml_text(text, file="f.toml")[1]
    assert [str(e) for e in report.of("suspect")] == [
        "f.toml:1: body 'b': it has an inertia, up to 1.5 kg m^2, but no mass"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "f.toml:1: not TOML: Invalid value; write key = value lines"),
        ('[mechanism]\nname = "x', "f.toml:2: not TOML: Unterminated string"),
        ("[mechanism]\nname = x\n", "f.toml:2: not TOML: Invalid value"),
        ("[mechanism\n", "f.toml:1: not TOML: Expected ']' at the end of a table declaration"),
        ("\n[[bodys]]\n", "f.toml:2: no table 'bodys'; did you mean 'body'?"),
        ("name = 'arm'\n", "f.toml:1: the key 'name' belongs to no table; put it below a line [mechanism]"),
        ("[mechanism]\n\ngravty = [0, 0, 0]\n", "f.toml:3: mechanism: no key 'gravty'; did you mean 'gravity'?"),
        ("[mechanism]\nname = 3\n", "f.toml:2: mechanism, name: a number where a text belongs; put it in quotes"),
        ("[mechanism]\ngravity = [0, nan, 0]\n", "f.toml:2: mechanism, gravity: the number is nan"),
        ("[mechanism]\ngravity = [0, inf, 0]\n", "f.toml:2: mechanism, gravity: the number is inf"),
        ("[mechanism]\ngravity = [0, true, 0]\n", "f.toml:2: mechanism, gravity: true or false where a number"),
        ("[mechanism]\ngravity = [0, 0]\n", "f.toml:2: mechanism, gravity: 2 numbers; give 3"),
        ('[mechanism]\ngravity = [0, 0, "-q"]\n', "f.toml:2: gravity: no parameter 'q'"),
        (
            '[parameters]\na = 1\nb = "a"\n',
            "f.toml:3: parameter 'b': a depends on a parameter; give a plain number here",
        ),
        ("[parameters]\na = { free = true }\n", "f.toml:2: parameter 'a': 'value' is missing"),
        (
            "[parameters]\na = { value = 1, free = 1 }\n",
            "f.toml:2: parameter 'a': a number where true or false belongs",
        ),
        ("body = 3\n", "f.toml:1: body: not a list of tables; write [[body]], with its keys below"),
        ("[body]\n", "f.toml:1: body: not a list of tables"),
        ("[[body]]\nmass = 1\n", "f.toml:1: body 1: 'name' is missing; add name = ..."),
        (
            '[[force]]\nname = "f"\nkind = "sprong"\n',
            "f.toml:3: force 'f', kind: no kind of force 'sprong'; available: spring_damper, linear_actuator",
        ),
        ('[[body]]\nname = ""\n', "f.toml:2: body 1, name: the name has 0 characters; give 1 to 1000"),
        ('[[body]]\nname = "b"\nmass = [1]\n', "f.toml:3: body 'b', mass: a list where a number belongs"),
        ('[[body]]\nname = "b"\nmass = "2*"\n', "f.toml:3: body 'b', mass: something is missing at the end"),
        ('[[body]]\nname = "b"\nmass = "2*m"\n' + ONE[20:], "f.toml:1: body 'b': no parameter 'm'; available: none"),
        ('[[body]]\nname = "b"\n[[body.shape]]\nsize = [1]\n', "f.toml:3: body 'b', shape 1: 'kind' is missing"),
        ('[[body]]\nname = "b"\n', "f.toml:2: body 'b' is the child of no joint; connect it to its parent"),
        (ONE + "lower = 1\n", "f.toml:8: joint 'j': no key 'lower'"),
        (ONE + "origin = [0, 0, 1]\n", "f.toml:8: joint 'j': no key 'origin'; did you mean 'translation'?"),
        (ONE + "placement = [0, 0, 1]\n", "f.toml:8: joint 'j': no key 'placement'; did you mean 'translation'?"),
        (ONE + "limits = { lwer = 1 }\n", "f.toml:8: joint 'j', limits: no key 'lwer'; did you mean 'lower'?"),
        (ONE + "limits = { lower = nan }\n", "f.toml:8: joint 'j', limits: the number is nan"),
        (ONE + 'axis = "w"\n', "f.toml:8: joint 'j', axis: 'w' is not an axis; give x, y, z, -x, -y, -z, or three num"),
        (ONE + "axis = [0, 1]\n", "f.toml:8: joint 'j', axis: 2 numbers; give 3"),
        (ONE + "zxz = [0, 0]\n", "f.toml:8: joint 'j', zxz: 2 numbers; give 3"),
        (
            ONE + "zxz_deg = [0, 0, 90]\nzxz = [0, 0, 1]\n",
            "f.toml:8: joint 'j', zxz_deg: both zxz and zxz_deg are given",
        ),
        (
            ONE + "child_placement = { rotation = 1 }\n",
            "f.toml:8: joint 'j', child_placement, rotation: a number where a",
        ),
        (
            ONE + "child_placement = { rotation = [[2, 0, 0], [0, 1, 0], [0, 0, 1]] }\n",
            "f.toml:8: joint 'j', child_placement: the rotation is not orthonormal",
        ),
        (
            ONE + 'child_placement = { translation = [0, "l", 0] }\n',
            "f.toml:8: joint 'j', child_placement: no parameter 'l'; available: none",
        ),
        (ONE + "rpy = [0, 0]\n", "f.toml:8: joint 'j', rpy: 2 numbers; give 3"),
        (ONE + "rpy = [0, 0, 0]\nquaternion = [0, 0, 0, 1]\n", "f.toml:9: joint 'j', quaternion: both rpy and quat"),
        (ONE + "quaternion = [0, 0, 0, 2]\n", "f.toml:8: joint 'j', quaternion: the quaternion has the length 2;"),
        (
            ONE + "rotation = [[2, 0, 0], [0, 1, 0], [0, 0, 1]]\n",
            "f.toml:3: joint 'j': the rotation is not orthonormal",
        ),
        (
            ONE + 'euler = { sequence = "abc", angles = [] }\n',
            "f.toml:8: joint 'j', euler: 'abc' is not a sequence of axes",
        ),
        (
            ONE + "axis_angle = { axis = [0, 0, 0], angle = 1 }\n",
            "f.toml:8: joint 'j', axis_angle: the axis has no dir",
        ),
        (ONE.replace("fixed", "fxed"), "f.toml:3: joint 'j': no joint kind 'fxed'; did you mean 'fixed'?"),
        (ONE.replace("ground", "grund"), "f.toml:6: joint 'j', parent: no body 'grund'; did you mean 'ground'?"),
        (ONE.replace('child = "b"', 'child = "c"'), "f.toml:7: joint 'j', child: no body 'c'"),
        (ONE + ONE[:20], "f.toml:9: the body name 'b' is used twice; rename one of them"),
        (ONE + '[[frame]]\nname = "f"\nbody = "c"\n', "f.toml:8: frame 'f': no body 'c'; available: b, ground"),
        (ONE + '[[frame]]\nname = "b"\nbody = "b"\n', "f.toml:9: the frame 'b' has the name of a body"),
        (ONE + '[[coupling]]\nname = "c"\njoint = "j"\nterms = [["j"]]\n', "f.toml:11: coupling 'c', terms: 1 values"),
        (
            ONE + LOOP.replace("rod", "revolut"),
            "f.toml:10: loop 'l', kind: no loop kind 'revolut'; did you mean 'revolute'? available: revolute, pris",
        ),
        (ONE + LOOP, "f.toml:8: loop 'l', length: the rod is 0 m long; give a length above 0, or make it a spherical"),
        (ONE + LOOP + "length = -0.3\n", "f.toml:13: loop 'l', length: the rod is -0.3 m long; give a length above 0"),
        (ONE + LOOP + "length = inf\n", "f.toml:13: loop 'l', length: the number is inf; give a finite number"),
        (
            ONE + LOOP + "pitch = 0.1\n",
            "f.toml:13: loop 'l', pitch: a rod loop has no pitch; leave it out, or make it a",
        ),
        (
            ONE + LOOP.replace("ground", "b"),
            "f.toml:12: loop 'l', body_b: both ends are on body 'b'; name another body",
        ),
        (ONE + LOOP.replace("ground", "c"), "f.toml:8: loop 'l': no body 'c'; available: b, ground"),
        (
            ONE + LOOP + "placement_a = { translation = [0, 1] }\n",
            "f.toml:13: loop 'l', placement_a, translation: 2 numbers; give 3",
        ),
        (ONE + LOOP + "axs = [0, 1]\n", "f.toml:13: loop 'l': no key 'axs'; did you mean 'axis'?"),
        (
            ONE + '[[coupling]]\nname = "c"\njoint = "j"\nterms = { j = 2 }\n',
            "f.toml:8: coupling 'c': joint 'j' is fixed and has 0 coordinates, not one; couple revolute, prismatic or",
        ),
        (ONE + "[guess]\nk = 1\n", "f.toml:8: guess: no joint 'k'; available: j"),
        (ONE + "[guess]\nj = 1\n", "f.toml:9: guess, j: 1 coordinates for joint 'j'; give 0"),
        (ONE + "[guess]\nj = [nan]\n", "f.toml:9: guess, j: the number is nan; give a finite number"),
        (ONE + '[guess]\nj = "2*l"\n', "f.toml:9: guess, j: 2.0 * l depends on a parameter; give a plain number here"),
        (ONE + "[guess]\nj = { x = 1 }\n", "f.toml:9: guess, j: a table where a number belongs"),
        ("guess = 3\n", "f.toml:1: guess: a number where a table belongs; give keys and values"),
        ('[dh]\nconvention = "mdh"\nrow = [{}]\n', "f.toml:2: dh, convention: no convention 'mdh'"),
        ("[dh]\n", "f.toml:1: dh: 'row' is missing"),
        ('[dh]\n[[dh.row]]\njoint = "revolute"\n[[dh.row]]\nb = 1\n', "f.toml:4: row 2: 'joint' is missing"),
        ('[dh]\nrow = [\n{joint="revolute"},\n{joint="prism"},\n]\n', "f.toml:4: row 2, joint: no joint 'prism'"),
        ('[[dh.row]]\njoint = "revolute"\nmass = -1\n', "f.toml:1: body 'link1': the mass is -1 kg"),
    ],
)
def test_faults_name_file_and_line(text, message):
    """Read the line, the cause and the remedy in the message."""
    with pytest.raises(ModelError) as caught:
        read_toml_text(text, file="f.toml")
    assert str(caught.value).startswith(message)
    assert caught.value.remedy


def test_unknown_keys_are_key_errors():
    """Catch an unknown key as a KeyError, with its message in plain text."""
    with pytest.raises(UnknownNameError, match="^<text>:1: no table 'joints'; did you mean 'joint'"):
        read_toml_text("[[joints]]")


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    """Turn a missing file, bytes that are not UTF-8 and a huge file into ModelErrors."""
    with pytest.raises(ModelError, match=r"none\.toml: the file cannot be read \(No such file or directory\)"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(ModelError, match=r"the file cannot be read \(.*null"):
        read_toml("a\0b")
    (tmp_path / "bad.toml").write_bytes(b"# one\n# \xff\n")
    with pytest.raises(ModelError, match=r"bad\.toml:2: byte 0xff is not UTF-8; save the file as UTF-8"):
        read_toml(tmp_path / "bad.toml")
    monkeypatch.setattr("kinetree.formats.fields.MAX_BYTES", 2**20)
    (tmp_path / "big.toml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ModelError, match=r"big\.toml: the file has more than 1 MiB"):
        read_toml(tmp_path / "big.toml")


HOSTILE = {
    "nested lists": "a = " + "[" * 50_000,
    "nested tables": "a = " + "{a=" * 50_000,
    "dotted key": "a." * 50_000 + "a = 1",
    "quoted dotted key": '"a b".' * 50_000 + "a = 1",
    "dotted header": "[" + "a." * 50_000 + "a]",
    "digits": "[mechanism]\ngravity = [0, 0, " + "9" * 5000 + "]",
    "hexadecimal digits": "[mechanism]\ngravity = [0, 0, 0x" + "f" * 5000 + "]",
    "huge parent": '[[dh.row]]\njoint = "revolute"\nparent = 0x' + "f" * 5000,
    "long name": '[[body]]\nname = "' + "a" * 1_000_000 + '"',
    "long key": "a" * 1_000_000 + " = 1",
    "long kind": ONE.replace("fixed", "f" * 1_000_000),
    "long formula": ONE.replace('"b"\n', '"b"\nmass = "' + "+".join(["m"] * 900) + '"\n', 1),
    "many tables": "[[body]]\n" * 20_000,
    "large axis": ONE.replace("fixed", "revolute") + "axis = [1e308, 1e308, 0]",
    "quotes": '"' * 100_000,
    "null": "\0",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_refused(text):
    """Refuse texts that are too deep, too long or too slow to parse (minutes) with a short ModelError."""
    with pytest.raises(ModelError) as caught:
        read_toml_text(text, file="f.toml")
    assert len(str(caught.value)) < 2000
    assert caught.value.remedy


GOOD = [EVERYTHING, PAIRS, *(library.path(name).read_text() for name in ("puma560", "spatial_pendulum", "biped"))]
NASTY = [
    "nan",
    "-inf",
    "1e400",
    "1_000",
    "\u0661",
    "9" * 5000,
    "true",
    '"l1"',
    '"l1*"',
    "[",
    "]]",
    "{",
    "}",
    '"',
    "'''",
]
NASTY += ["\0", "\n", "#", "=", ".", '"ground"', "[]", "{}", "0", "-1", "1e308", "1979-05-27", "[[joint]]\n", "\\u0000"]


@pytest.mark.parametrize(
    "good", everyday.some(GOOD), ids=["everything", "pairs", "puma560", "spatial_pendulum", "biped"]
)
@examples(400)
@given(data=st.data())
def test_mutations_give_a_mechanism_or_an_error(good, data):
    """Cut, repeat and replace pieces of a good file, and get a Mechanism or a ModelError only."""
    text = good
    for _ in range(data.draw(st.integers(1, 4))):
        i = data.draw(st.integers(0, len(text)))
        j = data.draw(st.integers(i, min(len(text), i + 40)))
        piece = data.draw(st.sampled_from(["", text[i:j] * 2, *NASTY]) | st.text(string.printable, max_size=5))
        text = text[:i] + piece + text[j:]
    check_outcome(text)


@pytest.mark.parametrize(
    "good", everyday.some(GOOD), ids=["everything", "pairs", "puma560", "spatial_pendulum", "biped"]
)
@examples(400)
@given(data=st.data())
def test_swapped_values_give_a_mechanism_or_an_error(good, data):
    """Replace values by others of the wrong type or size, and get a Mechanism or a ModelError only."""
    lines = good.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[i].partition(" = ")
        if equals:
            lines[i] = f"{key} = {data.draw(st.sampled_from(NASTY + [line.partition(' = ')[2] for line in lines]))}"
        else:
            lines[i] = data.draw(st.sampled_from(lines))
    check_outcome("\n".join(lines))


def check_outcome(text):
    """Read a text and check that the result is a Mechanism or a ModelError with a file and a remedy."""
    try:
        mechanism, _ = read_toml_text(text, file="f.toml")
    except ModelError as error:
        assert error.file == "f.toml"
        assert error.remedy
    else:
        assert isinstance(mechanism, Mechanism)
        assert mechanism.hash


CONTACTS = """
[[body]]
name = "block"
mass = 1.3
inertia = [0.2, 0.3, 0.4, 0.0, 0.0, 0.0]

[[joint]]
name = "root"
kind = "free"
parent = "ground"
child = "block"

[[contact]]
name = "corners"
body = "block"
shape = "box"
size = [0.3, 0.2, 0.1]
friction = 0.7
restitution = 0.2
law = "poisson"

[[contact]]
name = "foot"
body = "block"
shape = "sphere"
size = 0.05
translation = [0.1, 0.2, -0.3]
surface = { kind = "steps", translation = [0.0, 0.0, 0.1], edges = [0.5, 1.0], heights = [0.0, 0.15, 0.3] }
friction = 0.9

[[contact]]
name = "toe"
body = "block"
surface = { kind = "heights", heights = [[0.0, 0.1], [0.2, 0.3]], spacing = [0.5, 0.7] }

[[contact]]
name = "post"
body = "block"
shape = "capsule"
size = [0.05, 0.3]
surface = { kind = "box", translation = [0.7, 0.0, 0.5], size = [0.1, 0.2, 1.0] }

[[contact]]
name = "cam"
body = "block"
surface = { kind = "curve", curve = { points = [[0.1, 0.0], [0.0, 0.2], [-0.1, 0.0]] } }
"""


def test_contacts_are_read_and_written() -> None:
    """Read contacts with planes, steps and height fields, and write a file with the same hash."""
    mechanism, _ = read_toml_text(CONTACTS)
    corners, foot, toe, post, cam = mechanism.contacts
    assert (corners.shape, corners.size, corners.law) == ("box", (0.3, 0.2, 0.1), "poisson")
    assert (foot.surface.kind, foot.surface.edges, foot.placement.translation) == (
        "steps",
        (0.5, 1.0),
        (0.1, 0.2, -0.3),
    )
    assert toe.surface.heights == ((0.0, 0.1), (0.2, 0.3))
    assert (post.surface.kind, post.surface.size) == ("box", (0.1, 0.2, 1.0))
    assert cam.surface.curve == Curve(points=((0.1, 0.0), (0.0, 0.2), (-0.1, 0.0)))
    again, _ = read_toml_text(write_toml(mechanism))
    assert again.contacts == mechanism.contacts and again.hash == mechanism.hash


@pytest.mark.parametrize("old, new, message", [
    ("friction = 0.7", "friction = -0.7", "<text>:13: contact 'corners': the friction is -0.7; give a number of zero"),
    ('body = "block"\nshape = "box"', 'body = "blok"\nshape = "box"', "<text>:13: contact 'corners': no body 'blok'"),
    ('kind = "steps"', 'kind = "stairs"', "contact 'foot', surface: no kind of surface 'stairs'"),
    ("restitution = 0.2", "bounce = 0.2", "contact 'corners': no key 'bounce'"),
    ("size = 0.05", 'size = "big"', "contact 'foot': no parameter 'big'"),
    ("size = [0.1, 0.2, 1.0]", "size = [0.1, -0.2, 1.0]", "contact 'post', surface: the y is -0.2 m; give a number"),
])  # fmt: skip
def test_faulty_contacts_name_their_line(old, new, message) -> None:
    """Name the contact, its line and the fault."""
    with pytest.raises(ModelError) as error:
        read_toml_text(CONTACTS.replace(old, new))
    assert message in str(error.value)
