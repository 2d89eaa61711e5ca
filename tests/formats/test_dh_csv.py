"""DH tables as CSV."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinetree.errors import ModelError
from kinetree.formats.dh import mechanism_from_dh, read_dh_csv, read_dh_csv_text
from kinetree.model import Mechanism
from strategies import examples

ARM = """\
# A small tree.
# convention: modified
# degrees: true
# gravity: 0 -9.81 0
# name: arm
joint,a,alpha,b,theta,mass,cx,cy,cz,ixx,iyy,izz,ixy,iyz,izx,parent,name,lower,upper,damping
revolute,0,0,0.1,0,2,0.1,0,0,0.2,0.3,0.4,0.01,0.02,0.03,,upper,-1,1,0.5
prismatic, 0.3, -90, 0, 45, 1

# a branch
revolute,0,90,0,0,"0.5",,,0.2,,,,,,,0,"a, b"
revolute,1/4,,,,,,,,,,,,,,upper
"""
ROWS = [
    {
        "joint": "revolute",
        "name": "upper",
        "b": 0.1,
        "mass": 2,
        "com": (0.1, 0, 0),
        "inertia": (0.2, 0.3, 0.4, 0.01, 0.02, 0.03),
        "limits": {"lower": -1, "upper": 1},
        "damping": 0.5,
    },
    {"joint": "prismatic", "a": 0.3, "alpha": -90, "theta": 45, "mass": 1},
    {"joint": "revolute", "alpha": 90, "mass": 0.5, "com": (0, 0, 0.2), "parent": 0, "name": "a, b"},
    {"joint": "revolute", "a": 0.25, "parent": "upper"},
]


def test_cells_are_rows(tmp_path):
    """Read the mechanism of the same rows from CSV, with the settings of the comments."""
    expected = mechanism_from_dh(ROWS, convention="modified", degrees=True, gravity=(0, -9.81, 0), name="arm")
    file = tmp_path / "some.csv"
    file.write_text(ARM)
    mechanism, report = read_dh_csv(file)
    assert mechanism == expected
    assert str(report) == f"{file}\nread (1)\n  {file.name}: 4 bodies, 4 degrees of freedom"


def test_arguments_go_before_comments(tmp_path):
    """Override settings of the file by arguments, and use the file name without another name."""
    file = tmp_path / "two.csv"
    file.write_text("# degrees: true\njoint,alpha\nrevolute,-pi/2\n")
    mechanism, _ = read_dh_csv(file, degrees=False, convention="modified", gravity=(0, 0, 0))
    assert mechanism.name == "two"
    assert mechanism.gravity == (0, 0, 0)
    assert mechanism.joints[0].placement.rotation[1] == (0, 0, 1)
    assert read_dh_csv(file, name="other")[0].name == "other"


def test_misspelt_settings_are_suspect():
    """Report a comment that resembles a setting but is none."""
    _, report = read_dh_csv_text("# degres: true\n# note: degrees\njoint,a\nrevolute,1\n", file="f.csv")
    assert [str(e) for e in report.of("suspect")] == [
        "f.csv:1: the comment 'degres' resembles the setting 'degrees' and was ignored"
    ]


def test_letters_of_joints_and_files_without_a_header():
    """Read R and P as joints, and rows without a header in the order of the columns, which the report states."""
    given = read_dh_csv_text("joint,a,alpha,b,theta,mass\nrevolute,0.3,pi/2,0,0,1.5\nprismatic,0,0,1/3,0,2\n")[0]
    short, report = read_dh_csv_text("R,0.3,pi/2,0,0,1.5\np,0,0,1/3,0,2\n", file="f.csv")
    assert (short.bodies, short.joints, short.frames) == (given.bodies, given.joints, given.frames)
    assert [str(e) for e in report.of("suspect")] == [
        "f.csv:1: there is no header: the columns were read as joint, a, alpha, b, theta, mass"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.csv: there is no header; begin with a line such as joint,a,alpha"),
        ("0.3,0,0\n", "f.csv:1: there is no header above '0.3'; begin with a line such as joint,a,alpha,b,theta,mass"),
        ("joint,a\n", "f.csv: dh: the table has no rows"),
        ("joint,alfa\n", "f.csv:1: no column 'alfa'; did you mean 'alpha'?"),
        ("joint,a,d\nR,0.3,0.1\n", "f.csv:1: no column 'd'; did you mean 'b'?"),
        (
            "a,alpha\n0.3,0\n",
            "f.csv:1: there is no column 'joint'; add one, with revolute, prismatic or fixed",
        ),
        ("joint,alpha\nR,0\nR,90\n", "f.csv:3: row 2, alpha: 90 rad are 14.3 revolutions; if the table is in degrees"),
        ("joint,a,a\n", "f.csv:1: two columns have the name 'a'; keep one of them"),
        ("joint,a\n\nrevolute,1,2\n", "f.csv:3: 3 cells under 2 columns; add a column or remove a cell"),
        ("joint,a\nrevolute,x1\n", "f.csv:2: a: 'x1' is not a number"),
        ("joint,a\nrevolute,1_000\n", "f.csv:2: a: '1_000' is not a number"),
        ("joint,a\nrevolute,\u0661\n", "f.csv:2: a: '\\u0661' is not a number"),
        ("joint,a\nrevolute,nan\n", "f.csv:2: a: 'nan' is not a number"),
        ("joint,a\nrevolute,1e400\n", "f.csv:2: a: '1e400' is too large for a double"),
        ("joint,a\nrevolute,1/0\n", "f.csv:2: a: '1/0' is not a number"),
        ("joint,a\n# a comment\nrevolute,1\n,2\n", "f.csv:4: row 2: 'joint' is missing"),
        ("joint,parent\nrevolute,3\n", "f.csv:2: row 1, parent: there is no such row"),
        ("joint,parent\nrevolute,foot\n", "f.csv:2: row 1, parent: no row 'foot'"),
        ('joint,name\nrevolute,"x\n', "f.csv:2: not a line of CSV (unexpected end of data); separate cells by commas"),
        ("# degrees: yes\njoint\n", "f.csv:1: degrees is 'yes'; write true or false"),
        ("joint\n# gravity: 1 2\n", "f.csv:2: gravity: 2 numbers in '1 2'; give 3 decimals"),
        ("# convention: khalil\njoint\nrevolute\n", "f.csv: dh, convention: no convention 'khalil'"),
    ],
)
def test_faults_name_file_and_line(text, message):
    """Read the line, the cause and the remedy in the message."""
    with pytest.raises(ModelError) as caught:
        read_dh_csv_text(text, file="f.csv")
    assert str(caught.value).startswith(message)


def test_files_that_cannot_be_read(tmp_path):
    """Turn an error of the operating system into a ModelError."""
    with pytest.raises(ModelError, match=r"none\.csv: the file cannot be read \(No such file or directory\)"):
        read_dh_csv(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"joint\nrevolute\n# caf\xe9\n")
    with pytest.raises(ModelError, match=r"latin\.csv:3: byte 0xe9 is not UTF-8; save the file as UTF-8"):
        read_dh_csv(tmp_path / "latin.csv")


NASTY = ["nan", "1e400", "1_000", "\u0661", '"', ",,,,", "\0", "#", "9" * 5000, "-", "x" * 200_000, "\n", "0"]


@examples(400)
@given(st.data())
@example(None)
def test_mutations_give_a_mechanism_or_an_error(data):
    """Cut, repeat and replace pieces of a good table, and get a Mechanism or a ModelError only."""
    text = ARM
    for _ in range(data.draw(st.integers(1, 4)) if data else 0):
        i = data.draw(st.integers(0, len(text)))
        j = data.draw(st.integers(i, min(len(text), i + 30)))
        piece = data.draw(st.sampled_from(["", text[i:j] * 2, *NASTY]) | st.text(string.printable, max_size=5))
        text = text[:i] + piece + text[j:]
    try:
        mechanism, _ = read_dh_csv_text(text, file="f.csv")
    except ModelError as error:
        assert error.file == "f.csv"
        assert error.remedy
    else:
        assert isinstance(mechanism, Mechanism)
        assert all(math.isfinite(g) for g in mechanism.gravity)


def test_lenient_files_and_a_tool(tmp_path):
    """Accept an impossible inertia by a comment or an argument, weld a row, and attach a tool."""
    file = tmp_path / "arm.csv"
    file.write_text("joint,a,mass,ixx,iyy,izz\nrevolute,0.1,1,0,0.35,0\nfixed,0.2,1,1,1,1\n")
    with pytest.raises(ModelError, match="no body can have this inertia.* accept it by lenient"):
        read_dh_csv(file)
    mechanism, report = read_dh_csv(file, lenient=True)
    assert [e.text.partition(" kg")[0] for e in report.of("suspect")] == [
        "body 'link1': no body can have this inertia: its principal moments are 0, 0, 0.35"
    ]
    file.write_text("# lenient: true\n# tool: 0 0 0.1\n" + file.read_text())
    again, _ = read_dh_csv(file)
    assert again.bodies == mechanism.bodies
    assert again.frames[-1].name == "tool"
    assert again.frames[-1].placement.translation == (pytest.approx(0.2), 0.0, 0.1)
    assert [j.kind for j in again.joints] == ["revolute", "fixed"]


def test_the_number_of_rows_is_bounded(monkeypatch):
    """Refuse a table with more rows than can be read in seconds, with the line of the first one too many."""
    monkeypatch.setattr("kinetree.formats.dh.MAX_ROWS", 2)
    with pytest.raises(ModelError, match=r"^arm\.csv:5: there are more than 2 rows; build long chains by kt\.rope"):
        read_dh_csv_text("joint,a\n\nrevolute,0.3\nrevolute,0.4\nrevolute,0.5\n", file="arm.csv")
