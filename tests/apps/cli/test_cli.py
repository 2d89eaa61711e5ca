"""The command line: its output on a screen and in a pipe, and its errors."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import kinetree as kt
from closed_form_runs import swinging
from command_line import run, words
from kinetree import library
from kinetree.apps.cli.console import clean, make_console
from kinetree.apps.cli.showing import print_library, print_system
from kinetree.apps.demo import Check, Demo, History, Links, Timing, turning
from kinetree.formats.report import Report
from kinetree.joints import KINDS

URDF = """\
<robot name="two">
  <gazebo/>
  <link name="base"/>
  <link name="arm">
    <inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" iyz="0" ixz="0"/></inertial>
  </link>
  <link name="hand">
    <inertial><mass value="0.5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" iyz="0" ixz="0"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="2.5" velocity="3" effort="40"/>
  </joint>
  <joint name="wrist" type="fixed"><parent link="arm"/><child link="hand"/></joint>
</robot>
"""


@pytest.fixture
def urdf(tmp_path) -> Path:
    """Return a URDF file with a link to merge and elements to drop."""
    file = tmp_path / "two.urdf"
    file.write_text(URDF)
    return file


def screen(width: int = 100) -> Console:
    """Return a console that acts as a screen."""
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        width=width,
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def shown(system: kt.System, console: Console, *, everything: bool = False) -> str:
    """Return the output of `show` for a system."""
    print_system(console, system, everything=everything)
    return console.file.getvalue()  # type: ignore[attr-defined]


def chain(count: int) -> kt.System:
    """Return a chain of bodies with a branch each, whose tree of modules is as deep as the chain is long."""
    bodies = [kt.Body(f"{kind}{i}", 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)) for i in range(count) for kind in "bt"]
    joints = []
    for i in range(count):
        joints.append(kt.Joint(f"j{i}", "revolute", f"b{i - 1}" if i else kt.GROUND, f"b{i}"))
        joints.append(kt.Joint(f"k{i}", "revolute", f"b{i}", f"t{i}"))
    return kt.System(kt.build_mechanism("comb", bodies, joints))


def test_version(capsys):
    """Print the version."""
    assert run("--version") == 0
    assert capsys.readouterr().out == f"kinetree {kt.__version__}\n"


def test_module_runs():
    """Run `python -m kinetree` in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "kinetree", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kinetree {kt.__version__}\n"


def test_import_is_light():
    """Import the command line and find no compiler and no plots loaded."""
    heavy = ("casadi", "matplotlib", "llvmlite", "scipy")
    code = f"import sys, kinetree.apps.cli; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_lists_the_commands(capsys):
    """Read every command with its full line of help."""
    assert run("--help") == 0
    out = re.sub(" +", " ", capsys.readouterr().out)
    assert "list List mechanisms and installed robots; `show NAME` has details.\n" in out
    assert "show Show a mechanism and the report of its import.\n" in out
    assert "demo Compute, compare, simulate, time and draw arms.\n" in out
    assert "..." not in out.split("Commands:")[1], "no line of help is cut"


def test_list_names_every_mechanism(capsys, monkeypatch):
    """List the library in a pipe: every name in one line, in groups, and no spaces at the ends."""
    monkeypatch.delenv("COLUMNS", raising=False)  # set where tests run in several processes
    assert run("list") == 0
    out = capsys.readouterr().out
    for name in library.names():
        assert re.search(rf"^{name} ", out, re.MULTILINE)
        assert sum(line.startswith(f"{name} ") for line in out.splitlines()) == 1
    for group in ("Chains and trees on the ground", "Trees on a free base", "Closed mechanisms"):
        assert f"\n{group}\n" in out
    assert re.search(r"^stanford +6 +6  The Stanford arm of", out, re.MULTILINE)
    assert out.endswith("kinetree show NAME: joints, bodies, description and source.\n")
    assert "\x1b" not in out
    assert not re.search(r" $", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 125


def test_list_groups_by_the_property_of_the_first_joint(monkeypatch):
    """List a cart that moves in a plane, and one on a new kind that floats, among the trees on a free base."""
    monkeypatch.setitem(KINDS, "hover", KINDS["free"])
    for kind, title in (("planar", "free base"), ("hover", "free base"), ("cylindrical", "on the ground")):
        console = screen()
        cart = kt.build_mechanism(
            "cart", [kt.Body("cart", 1.3)], [kt.Joint("base", kind, kt.GROUND, "cart", axis=(0, 0, 1))]
        )
        print_library(console, [("cart", cart)])
        assert title in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [30, 71, 72, 200])
def test_list_keeps_every_word_at_any_width(width):
    """List the library on screens of any width and find every word of the summaries."""
    console, mechanism = screen(width), kt.load("stanford").mechanism
    print_library(console, [("stanford", mechanism)], ["panda", "ur5_with_a_long_name"])
    out = console.file.getvalue()  # type: ignore[attr-defined]
    assert "2" in out and "panda" in out
    assert max(map(len, out.splitlines())) <= width
    letters = set(re.findall(r"[A-Za-z]{3,}", out))
    assert {word for word in re.findall(r"[A-Za-z]{3,9}", "The Stanford arm") if word not in letters} == set()


def test_show_prints_the_mechanism(capsys):
    """Show a library mechanism: sizes, mass, modules, joints and the import."""
    assert run("show", "stanford") == 0
    out = capsys.readouterr().out
    mechanism = kt.load("stanford").mechanism
    assert re.search(r"^size +6 bodies, nq = 6, nv = 6$", out, re.MULTILINE)
    assert re.search(r"^total mass +21.1 kg$", out, re.MULTILINE)
    assert re.search(rf"^hash +{mechanism.hash}$", out, re.MULTILINE)
    assert "module 1: link1 - link2 - link3 - link4 - link5 - link6\n" in out
    assert re.search(r"^2  joint3  prismatic  link2   link3  \(0, 0, 1\)$", out, re.MULTILINE)
    assert re.search(r"^link1 +9 +\(0, 0, 0.1\) +0.01, 0.01, 0.02 +0, 0, 0$", out, re.MULTILINE)
    assert "read (1): recognized and kept\n  stanford.toml: 6 bodies, 6 degrees of freedom\n" in out


def test_show_prints_the_whole_report(urdf, capsys):
    """Show a URDF file and read the merged and dropped parts, each with file and line."""
    assert run("show", str(urdf)) == 0
    out = capsys.readouterr().out
    assert f"Import report of {urdf}\n" in out
    assert re.search(r"^changed \(\d+\): merged, moved, cut, snapped or repaired$", out, re.MULTILINE)
    assert re.search(r"^  two.urdf:\d+: link 'hand' is merged into 'arm'", out, re.MULTILINE)
    assert re.search(r"^  two.urdf:2: <gazebo> in <robot name='two'>", out, re.MULTILINE)
    assert re.search(r"^shoulder +-1.5 +2.5 +3 +40$", out, re.MULTILINE)
    for entry in kt.load(urdf).report.entries:
        assert entry.text in out


def test_show_passes_the_options_on(urdf, capsys):
    """Let the base float and keep the fixed joint, and count the bodies."""
    assert run("show", str(urdf), "--base", "free", "--fixed", "keep", "--root", ".", "--root", "..") == 0
    out = capsys.readouterr().out
    assert re.search(r"^size +3 bodies, nq = 8, nv = 7$", out, re.MULTILINE)
    assert re.search(r"^0-6 +\S+ +free +ground +base +-$", out, re.MULTILINE)


@pytest.mark.parametrize("command", ["show", "doctor", "simulate", "cost"])
def test_roots_are_searched_for_meshes(command, tmp_path, monkeypatch):
    """Find the mesh of a package below --root in every command that loads a model."""
    (tmp_path / "packages/arm").mkdir(parents=True)
    (tmp_path / "packages/arm/a.stl").write_text("solid a\nendsolid a\n")
    mesh = '<visual><geometry><mesh filename="package://arm/a.stl"/></geometry></visual>'
    (tmp_path / "robot").mkdir()
    (tmp_path / "robot/r.urdf").write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    real, files = kt.load, []

    def noted(*arguments, **options):
        files.append(real(*arguments, **options).mechanism.scenery[0].file)
        raise kt.InputError("enough")

    monkeypatch.setattr("kinetree.loading.load", noted)
    for roots in ((), ("--root", str(tmp_path / "packages"))):
        assert run(command, str(tmp_path / "robot/r.urdf"), *roots) == 2
    assert files == ["package://arm/a.stl", str(tmp_path / "packages/arm/a.stl")]


def test_long_lists_are_shortened_on_a_screen_only(capsys):
    """Shorten long lists on a screen with a remark; print them in full with --all and in a pipe."""
    report = Report("x.urdf")
    for line in range(200):
        report.dropped(f"<part{line}>", line)
    system = kt.System(chain(30).mechanism, report)
    short, whole = shown(system, screen()), shown(system, screen(), everything=True)
    assert "  ... and 188 more: --all prints them\n" in short
    assert "  ... and 20 more: --all prints them\n" in short
    assert "<part11>" in short
    assert "<part12>" not in short
    print_system(make_console(), system, everything=False)
    for out in (whole, capsys.readouterr().out):
        assert all(f"x.urdf:{line}: <part{line}>\n" in out for line in range(200))
        assert re.search(r"^ *59 +k29 ", out, re.MULTILINE)
        assert "--all" not in out


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_body_is_lost_in_a_deep_tree(width):
    """Draw a tree that nests deeper than the screen is wide and find every body in it."""
    out = shown(chain(60), screen(width), everything=True)
    tree = out.split("Tree, by kinematic modules")[1].split("Joints (")[0]
    assert set(re.findall(r"\b[bt]\d+\b", tree)) >= {f"{kind}{i}" for i in range(60) for kind in "bt"}


def test_parts_beyond_the_tree_are_listed():
    """Show loops, couplings, forces and free parameters with the parts that they connect."""
    base = chain(2).mechanism
    mechanism = replace(
        base,
        loops=(kt.Loop("ring", "revolute", "t0", "t1"),),
        couplings=(kt.Coupling("gear", "j1", (("j0", 2.0),)),),
        forces=(kt.ForceElement("spring", "spring_damper", "b0", "t1"),),
        parameters=(kt.Parameter("l1", 0.25, free=True, unit="m", note="length"), kt.Parameter("g", 9.81)),
    )
    out = shown(kt.System(mechanism), screen())
    assert "0 frames, 1 loop, 1 coupling, 1 force" in out
    assert "2, 1 of them free" in out
    assert "Loops (1)\n  ring: revolute of t0 and t1\n" in out
    assert "Couplings (1)\n  gear: j1 follows j0\n" in out
    assert "Forces (1)\n  spring: spring_damper between b0 and t1\n" in out
    assert "Free parameters (1)\n  l1 = 0.25 m: length\n" in out
    assert "nothing to report" in out


def test_names_cannot_command_the_terminal():
    """Print control characters of a name as text, and brackets unchanged."""
    assert clean("a\x1b[31mb\nc\u202e") == "a\\x1b[31mb\\nc\\u202e"
    body = kt.Body("[red]x[/red]", 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = kt.System(kt.build_mechanism("m", [body], [kt.Joint("j", "revolute", kt.GROUND, body.name)]))
    assert "module 1: [red]x[/red]" in shown(system, screen())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "stanfrd"], "no library mechanism 'stanfrd'; did you mean 'stanford'? available: bicycle, biped, "),
        (
            ["show", "none.urdf"],
            "none.urdf: does not exist; give the path of a .toml, .urdf, .xacro, .xml, .sdf, .csv or .m file",
        ),
        (
            ["show", "stanford", "--base", "free"],
            "--base, --fixed and --root are options of URDF, SDF and MJCF files; leave",
        ),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    """Fail with one readable line on stderr and exit status 2."""
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kinetree: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_broken_file_is_located(tmp_path, capsys):
    """Show a file with a fault and read its line."""
    file = tmp_path / "bad.toml"
    file.write_text('[mechanism]\nname = "x"\nwhat = 1\n')
    assert run("show", str(file)) == 2
    assert capsys.readouterr().err.startswith(f"kinetree: {file}:3: ")


def test_an_unknown_command_is_refused(capsys):
    """Mistype a command and read the intended one."""
    assert run("shw") == 2
    assert "show" in capsys.readouterr().err


def test_names_beyond_the_terminals_alphabet_stop_nothing(tmp_path):
    """Show a name with other characters on an ASCII terminal."""
    file = tmp_path / "name.toml"
    file.write_text('[mechanism]\nname = "caf\u00e9"\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "kinetree", "show", str(file)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert "caf\\xe9" in done.stdout


def fake_demo(residual: float) -> Demo:
    """Return a result of the demonstration with one agreement."""
    return Demo(
        stanford=History(np.array([0.0]), np.array([[1.0, -0.0]]), ("N m", "N")),
        planar=History(np.array([0.0]), np.zeros((1, 3)), ("N m",) * 3),
        kuka=History(np.array([0.0]), np.zeros((1, 7)), ("N m",) * 7),
        smallest_eigenvalue=0.5,
        condition=10.0,
        checks=(Check("two routes", residual, 1e-12),),
        timing=Timing("arm", 1000, 1e-5, True, True),
        fall=swinging("stanford"),
        tracking=swinging("kuka_lwr4"),
        bars=turning(0.1),
        links=Links(7, 1.0, 0.0),
    )


def test_demo_prints_what_it_found(monkeypatch, capsys, tmp_path):
    """Print torques, residuals beside bounds, timings and files, and end with status 0."""
    monkeypatch.setattr("kinetree.apps.demo.run", lambda *, say: say("step") or fake_demo(2e-15))
    monkeypatch.setattr("kinetree.apps.cli.demonstration.draw_demo", lambda demo, folder: (folder / "a.png",))
    assert run("demo", "--out", str(tmp_path)) == 0
    out, progress = capsys.readouterr()
    assert progress == "... step\n"
    assert re.search(r"^ *0.0 +1 +0$", out, re.MULTILINE)
    assert re.search(r"^two routes +2.0e-15 +1.0e-12  holds$", out, re.MULTILINE)
    assert "1,000 inverse dynamics of arm in one call, one thread: 0.0 ms, 10.0 ns per sample." in words(out)
    assert "split into four calls: the same bits." in out
    assert f"{tmp_path / 'a.png'}\n" in out
    assert out.endswith("All agreements hold.\n")


def test_demo_fails_when_an_agreement_fails(monkeypatch, capsys, tmp_path):
    """End with status 1 and print the check that fails."""
    monkeypatch.setattr("kinetree.apps.demo.run", lambda *, say: fake_demo(float("nan")))
    monkeypatch.setattr("kinetree.apps.cli.demonstration.draw_demo", lambda demo, folder: ())
    assert run("demo", "--out", str(tmp_path)) == 1
    out = capsys.readouterr().out
    assert re.search(r"^two routes +nan +1.0e-12  FAILS$", out, re.MULTILINE)
    assert out.endswith("A CHECK FAILS: see above.\n")


def test_the_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    """Show folder, files, size and limit of the cache, clear it, and find it empty."""
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path / "code"))
    assert run("cache") == 0
    assert (
        capsys.readouterr().out == f"{tmp_path / 'code'}\n0 files, 0.0 MiB of at most 512 MiB; --clear removes them\n"
    )
    kt.load("planar_2r").gravity_torque([0.3, 0.4])
    (tmp_path / "code" / ("0" * 64 + ".o")).write_bytes(bytes(3 * 2**20))
    count = len(list((tmp_path / "code").glob("*.o")))
    assert run("cache", "--clear") == 0
    assert f"\nremoved: {count} files, 3.0 MiB\n" in capsys.readouterr().out
    assert not list((tmp_path / "code").iterdir()) and run("cache") == 0
    assert "0 files" in capsys.readouterr().out
