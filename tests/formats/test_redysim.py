"""ReDySim's model files: the library's mechanisms of its gallery, calculated numbers, reports and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from kinetree.algebra.vectors import from_moments
from kinetree.errors import ModelError
from kinetree.formats.redysim import read_redysim_text
from kinetree.model.mechanism import resolve_parts
from strategies import examples
from tolerance import assert_close

PLAIN = {
    "n": "2", "r": "[1; 1]", "alp": "[0; 0]", "a": "[0; 0.3]", "b": "[0 0]", "th": "[0, 0]", "bt": "[0; 1]",
    "dx": "[0.15 0.1]", "dy": "[0; 0]", "dz": "[0; 0]", "m": "[1; 0.8]", "g": "[0; -9.81; 0]",
    "Icxx": "[0.001 0.001]", "Icyy": "[0.01 0.01]", "Iczz": "[0.01 0.01]",
    "Icxy": "zeros(n,1)", "Icyz": "zeros(n,1)", "Iczx": "zeros(n,1)",
}  # fmt: skip
"""Two links in a plane."""
LITERAL = {"Icxy": "[0 0]", "Icyz": "[0 0]", "Iczx": "[0 0]"}
"""Products of inertia without n."""


def text_of(assignments: dict[str, str]) -> str:
    """Return a file with these assignments."""
    body = "\n".join(f"{name}={value};" for name, value in assignments.items())
    return f"% a model\nfunction [{' '.join(assignments)}]=inputs()\n{body}\nend\n"


def read(**changes: str | None) -> tuple[kt.System, object]:
    """Return the System and the report of the two links with some assignments changed, or left out for None."""
    mechanism, report = read_redysim_text(text_of({k: v for k, v in {**PLAIN, **changes}.items() if v is not None}))
    return kt.System(mechanism), report


def value(expression: str) -> float:
    """Return the number of an expression, as a mass of the two links, in terms of k=[3; 5; 7]."""
    source = text_of({"k": "[3; 5; 7]", **PLAIN, "m": f"[({expression}); 1]"})
    return resolve_parts(read_redysim_text(source)[0].bodies, {})[0].mass


def as_file(name: str, *, floating: bool = False) -> str:
    """Return a mechanism of the library, whose joints are those of a modified DH table, as ReDySim has it."""
    arm = kt.load(name)
    m = arm.mechanism
    bodies, joints = resolve_parts(m.bodies, m.values()), resolve_parts(m.joints, m.values())
    columns: dict[str, list[float]] = {key: [] for key in PLAIN if key not in ("n", "g")}
    place = {b.name: k for k, b in enumerate(bodies, 1)}
    for b, j in zip(bodies, joints, strict=True):
        R, p = np.array(j.placement.rotation), np.array(j.placement.translation)
        alpha = np.arctan2(R[2, 1], R[1, 1]) if j.kind == "revolute" else np.arctan2(-R[1, 2], R[2, 2])
        theta = np.arctan2(-R[0, 1], R[0, 0])
        slide = -p[1] * np.sin(alpha) + p[2] * np.cos(alpha)
        tensor = np.array(from_moments(b.inertia))
        row = [j.kind != "prismatic", alpha, p[0], slide, theta, place.get(j.parent, 0), *b.com, b.mass]
        row += [tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[1, 2], tensor[2, 0]]
        for key, x in zip(columns, row, strict=True):
            columns[key].append(float(x))
    given = {key: f"[{'; '.join(map(repr, x))}]" for key, x in columns.items() if not (floating and key in ("r", "th"))}
    return text_of({"n": str(len(bodies)), **given, "g": f"[{' '.join(repr(float(x)) for x in m.gravity)}]"})


@pytest.mark.parametrize("name", ["crank_rocker", "four_bar", "gripper", "chain_20", "slider_crank", "spatial_biped"])
def test_fixed_bases_are_those_of_the_library(name):
    """Write mechanisms of the gallery as the files have them, and find their inertias, gravity torques and poses."""
    found, wanted = kt.System(read_redysim_text(as_file(name))[0]), kt.load(name).tree
    assert [j.kind for j in found.joints] == [j.kind for j in wanted.joints]
    q, qd = wanted.random_state(3)
    for function in ("inertia_matrix", "gravity_torque", "poses"):
        x = getattr(wanted, function)(q)
        assert_close(getattr(found, function)(q), x, 1e-13 * max(1.0, float(np.abs(x).max())), f"{name}, {function}")
    assert_close(found.bias_torque(q, qd), wanted.bias_torque(q, qd), 1e-12, "bias")


@pytest.mark.parametrize("name", ["space_robot_3r", "space_robot_dual_arm"])
def test_floating_bases_are_those_of_the_library(name):
    """Leave the kinds of joints out, and find a base that floats."""
    mechanism, report = read_redysim_text(as_file(name, floating=True))
    found, wanted = kt.System(mechanism), kt.load(name)
    assert found.joints[0].kind == "free" and found.nv == wanted.nv
    q, qd = wanted.random_state(3)
    assert_close(found.inertia_matrix(q), wanted.inertia_matrix(q), 1e-10, "I")  # of 500 kg
    assert_close(found.bias_torque(q, qd), wanted.bias_torque(q, qd), 1e-10, "bias")
    assert "there are no joint types r: link 1 floats, on the joint 'base'" in str(report)


def test_files_are_loaded(tmp_path):
    """Load a file by its path, with the name of its folder, and refuse options of other formats."""
    folder = tmp_path / "gripper"
    folder.mkdir()
    (folder / "inputs.m").write_text(as_file("gripper"))
    arm = kt.load(folder / "inputs.m")
    assert arm.mechanism.name == "gripper" and arm.nv == 4
    with pytest.raises(ModelError, match="base, fixed and roots are options of URDF"):
        kt.load(folder / "inputs.m", base="free")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("(1/12)*m0*.01*.01", 2.0 * 1e-4 / 12),
        ("2+3*4^2/8", 8.0),
        ("2^-1", 0.5),
        ("10-2^2", 6.0),
        ("-(-4)", 4.0),
        ("k(2)", 5.0),
        ("k(k(1)-1)*2", 10.0),
        ("sum(k.*k)/83", 1.0),
        ("sum(k./[3 5 7])", 3.0),
        ("sum([k; 1])", 16.0),
        ("sum(2*k-[1,1,1]) ...\n +1", 28.0),
        ("1.5e-3", 0.0015),
        ("sin(pi/2)+cos(0)", 2.0),
        ("sqrt(abs(-16))", 4.0),
        ("deg2rad(180)/pi", 1.0),
        ("sum(ones(1,3))", 3.0),
        ("sum([1 -2 +4])", 3.0),
        ("sum([6 - 2, 1 -1])", 4.0),
        ("sum([k(1) -k(2) +8])", 6.0),
    ],
)
def test_numbers_are_calculated(text, number):
    """Calculate expressions as MATLAB does: precedence, entries, functions, and signs between entries of a row."""
    source = text.replace("m0", "2")
    assert_close(value(source), number, 4e-15 * number, text)


def test_entries_are_assigned_one_by_one():
    """Assign entries of vectors that exist and of new ones, which grow."""
    arm, _ = read(Icxx="zeros(n,1); Icxx(1)=0.002; Icxx(2)=Icxx(1)/2", m="3; m(2)=4")
    bodies = resolve_parts(arm.mechanism.bodies, {})
    assert [b.inertia[0] for b in bodies] == [0.002, 0.001] and [b.mass for b in bodies] == [3.0, 4.0]


def test_the_report_lists_what_was_left_out():
    """Read where the loops of closed mechanisms are, what else was ignored, and that angles became the guess."""
    arm, report = read(th="[0.3; -0.4]", type="1", al="[1; 1]", Tp="10", a1="2", alp="[0; 0; 0]")
    text = str(report)
    _, parted = read(bt="[0; 0]", a="[0; 0]")
    assert "links 1, 2 are at the same place on the ground" in str(parted)
    assert (
        "type is 1, a closed mechanism, but its loops stand in another file (jacobian.m): this is the open tree" in text
    )
    for part in ("al: lengths of the links, for drawings", "Tp: the duration", "a1 only served to calculate others"):
        assert part in text
    assert "alp has 3 entries for 2 links; the others were ignored" in text
    assert "is their coordinate: it is the guess" in text and arm.neutral().tolist() == [0.3, -0.4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": "[1; 2"}, r":14: no variable 'g'; available: pi, n, r, alp"),
        ({"m": None}, "there is no m; assign n, g, and one entry per link of alp, a, b"),
        ({"m": "[1]"}, r"<text>:13: m has 1 entries; give 2, one per link"),
        ({"g": "[0; -9.81]"}, r":14: g has 2 entries; give three \[m/s\^2\]"),
        ({"n": "2.5", **LITERAL}, r":3: n is 2.5; give the number of links, from 1 to 20,000"),
        ({"n": "1e9", **LITERAL}, r":3: n is 1000000000.0; give the number of links"),
        ({"r": "[1; 2]"}, ":4: an entry of r is 2; give 1 for revolute, 0 for prismatic"),
        ({"bt": "[0; 3]"}, ":9: the parent of link 2 is 3; give 0 for the ground, or the number of another"),
        ({"bt": "[0; 2]"}, ":9: the parent of link 2 is 2"),
        ({"bt": "[2; 1]"}, "link"),
        ({"m": "[1; mass]"}, r":13: no variable 'mass'; available: "),
        ({"m": "load('inputs.mat')"}, r''':13: "'" has no place here; only assignments of numbers are read'''),
        ({"m": "system(1)"}, r":13: no function of one number 'system'"),
        ({"m": "[1 2; 3 4]"}, ":13: this is a matrix; give a row or a column"),
        ({"m": "[1 2]*[3 4]"}, r":13: '\*' between vectors of 2 and 2 entries; entry by entry, vectors of one"),
        ({"m": "[1 2]+[3 4 5]"}, r":13: '\+' between vectors of 2 and 3 entries"),
        ({"m": "[1/0; 2]"}, ":13: the result at '/' is not a finite number"),
        ({"m": "[(-1)^0.5; 2]"}, r":13: the result at '\^' is not a finite number"),
        ({"m": "[10^400; 2]"}, ":13: the result at '\\^' is not a finite number"),
        ({"m": "[1e999; 2]"}, ":13: the result at '1e999' is not a finite number"),
        ({"m": "[sqrt(-1); 2]"}, ":13: sqrt has no finite value there"),
        ({"m": "zeros(1e9,1)"}, r":13: zeros\(1e\+09\); entries are counted from 1 to 20,000"),
        ({"m": "zeros(n,n)"}, r":13: zeros of a matrix; give \(n,1\) or \(1,n\)"),
        ({"m": "alp(5)"}, ":13: alp has 2 entries, not 5; assign it before"),
        ({"m": "[1; 2] 3"}, ":13: '3' after the value of m; end it by ;"),
        ({"m": "(" * 60 + "1" + ")" * 60}, ":13: parentheses are nested too deeply; use at most 40 levels"),
        ({"pi": "3"}, "pi is a function or a constant; choose another name"),
        ({"m": "[-1; 2]"}, "mass"),
    ],
)  # fmt: skip
def test_mistakes_are_located(changes, message):
    """Read the line and the remedy of what cannot be read."""
    with pytest.raises(ModelError, match=message):
        read(**changes)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("if n==2", ":21: 'if' where an assignment belongs; only assignments are read, such as"),
        ("clear all", ":21: 'clear' where an assignment belongs"),
        ("m(0)=3;", r":21: m\(0\); entries are counted from 1"),
        ("m(1)=[1 2];", ":21: a vector of 2 entries where one number belongs"),
        ("m=3\nend\nx=2", ":23: 'x' after the end of the function; keep one function alone"),
        ("m=", ":21: the end of the line where a number belongs"),
        ("m=(3", r":21: the end of the line where '\)' belongs"),
        ("5=m", ":21: '5' where an assignment belongs"),
    ],
)
def test_programs_are_refused(statement, message):
    """Read that control flow, commands and broken assignments have no place, with their lines."""
    source = text_of(PLAIN).replace("\nend\n", f"\n{statement}\n")
    with pytest.raises(ModelError, match=message):
        read_redysim_text(source)


def test_a_second_tree_has_no_floating_base():
    """Refuse a link on the ground beside a floating base."""
    with pytest.raises(ModelError, match=":7: a floating base is link 1, and no other link is on the ground; give bt"):
        read(r=None, th=None, bt="[0; 0]")


def test_impossible_inertias_need_leave():
    """Refuse an inertia that no body can have, and read it leniently with an entry in the report."""
    source = text_of({**PLAIN, "Iczz": "[1; 1]"})
    with pytest.raises(ModelError, match="inertia"):
        read_redysim_text(source)
    _, report = read_redysim_text(source, lenient=True)
    assert report.of("suspect")


@given(data=st.data())
@examples(200)
def test_any_text_is_a_mechanism_or_an_error(data):
    """Cut, double and change parts of a file, and get a mechanism or a ModelError alone."""
    source = as_file("crank_rocker") + "Icxx(1)=(1/12)*m(1)*al(1); k=[1 -2 +3];\n"
    for _ in range(data.draw(st.integers(1, 4))):
        i, j = sorted(data.draw(st.tuples(*[st.integers(0, len(source))] * 2)))
        with_ = data.draw(
            st.sampled_from(
                ["", source[i:j] * 2, "nan", "1e400", "(", "[", "]", ";", "^9^9^9", "\n", "-", "=", "'", "%"]
            )
        )
        source = source[:i] + with_ + source[j if with_ == "" and j - i < 40 else i :]
    try:
        mechanism, _ = read_redysim_text(source)
    except ModelError:
        return
    assert replace(mechanism).nv >= 0
