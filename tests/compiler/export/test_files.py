"""Files of exported functions: contents by suffix, documentation, reproducible bytes, and errors."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import COMPILER, library, needs_compiler
from closed_mechanisms import DRIVES
from kinetree.compiler.export.exportable import plain
from kinetree.errors import InputError, WriteError


def test_functions_are_saved_by_suffix(tmp_path):
    """Write a function in each language, with what belongs beside it."""
    arm = kt.load("planar_2r")
    function = arm.function("inertia_matrix")
    for suffix, beside in ((".c", [".h"]), (".o", [".h", ".selftest.json"]), (".wasm", [".selftest.json"]),
                           (".ptx", [".selftest.json"])):  # fmt: skip
        folder = tmp_path / suffix
        folder.mkdir()
        assert function.save(folder / f"inertia{suffix}") == folder / f"inertia{suffix}"
        others = ["kinetree.mjs"] if suffix == ".wasm" else []
        assert sorted(p.name for p in folder.iterdir()) == sorted(
            [*(f"inertia{x}" for x in (suffix, *beside)), *others]
        )
    assert (tmp_path / ".wasm" / "inertia.wasm").read_bytes()[:4] == b"\0asm"
    assert ".visible .entry inertia_matrix(" in (tmp_path / ".ptx" / "inertia.ptx").read_text()


def test_the_header_documents_the_arguments(tmp_path):
    """Read names, shapes, units, order, model, version and hash in a header."""
    crank = kt.load("slider_crank")
    crank.function("forward_dynamics", wrenches=True).save(tmp_path / "fd.c")
    text = (tmp_path / "fd.h").read_text()
    assert f"model slider_crank, Kinetree {kt.__version__}, float64, hash " in text
    assert "forward_dynamics: accelerations [rad/s^2, m/s^2]" in text
    assert f"tau[{crank.nv}] (in): joint torques" in text and "crank [N m]" in text
    assert f"wrenches[{len(crank.bodies)}][6] (in): external wrench [n; f] on each body" in text
    assert "void forward_dynamics(const double *q, const double *qd, const double *tau, const double *wrenches" in text
    assert max(map(len, text.splitlines())) <= 140
    assert text.isascii()


def test_names_from_files_end_no_comment(tmp_path):
    """Write a function of a model whose name has control characters and the end of a comment."""
    mechanism = replace(kt.load("planar_2r").mechanism, name="a*/ int x;\n\\\n/* \u00e4")
    kt.System(mechanism).function("gravity_torque").save(tmp_path / "g.c")
    for name in ("g.h", "g.c"):
        text = (tmp_path / name).read_text()
        assert text.isascii() and "*/ int x" not in text and "\\\n" not in text
    assert plain("a*/b") == "a* /b"


def test_bytes_are_reproducible(tmp_path):
    """Write functions twice and compare all files."""
    contents = []
    for k in range(2):
        folder = tmp_path / str(k)
        arm = kt.System(kt.load("four_bar").mechanism)
        paths = kt.export(arm, ["forward_dynamics", "step"], ["c", "object:aarch64", "wasm"], folder)
        contents.append({p.name: p.read_bytes() for p in paths})
    assert contents[0] == contents[1] and len(contents[0]) == 11


def test_the_json_holds_a_self_test(tmp_path):
    """Repeat the self-test of the JSON by the library, and find closed states in it."""
    system = kt.load("four_bar")
    system.function("forward_dynamics").save(tmp_path / "fd.wasm")
    data = json.loads((tmp_path / "fd.selftest.json").read_text())
    assert (data["model"], data["function"], data["dtype"]) == ("four_bar", "forward_dynamics", "float64")
    assert [a["name"] for a in data["arrays"]] == ["q", "qd", "tau", "qdd"] and len(data["hash"]) == 16
    for sample in data["samples"]:
        given = [np.array(sample["inputs"][name]) for name in ("q", "qd", "tau")]
        assert np.abs(system.closure_residual(given[0])).max() < 1e-12
        difference = np.abs(system.forward_dynamics(*given) - sample["outputs"]["qdd"]).max()
        assert difference <= sample["tolerances"]["qdd"] < 1e-9 * np.abs(sample["outputs"]["qdd"]).max()


@pytest.mark.parametrize("name", everyday.some([x for x in DRIVES if x != "stewart"]))
def test_self_tests_of_closed_mechanisms_are_closed(name):
    """Find closed loops in the samples of closed mechanisms of the library."""
    system = kt.load(name)
    test = system.function("closing_speed").exportable().selftest
    gap = np.abs(system.closure_residual(test.inputs["q"])).max()
    assert gap < 1e-11
    assert np.abs(test.inputs["qd"] - test.outputs["qd_out"]).max() < 1e-8 * np.abs(test.inputs["qd"]).max()


@needs_compiler
def test_a_self_test_fails_for_wrong_code(tmp_path):
    """Change one number of a function, and find that its self-test fails; leave the self-test out."""
    path = kt.load("planar_2r").function("gravity_torque").save(tmp_path / "g.c")
    text = path.read_text()
    assert library([path]).gravity_torque_selftest() == 0
    head, tail = text.split("#ifndef KINETREE_NO_SELFTEST", 1)
    wrong = tmp_path / "wrong.c"
    wrong.write_text(head.replace(" * 0x1.", " * 0x1.00001", 1) + "#ifndef KINETREE_NO_SELFTEST" + tail)
    assert library([wrong]).gravity_torque_selftest() == 1
    assert not hasattr(library([path], "-DKINETREE_NO_SELFTEST"), "gravity_torque_selftest")


@needs_compiler
def test_the_header_serves_c_plus_plus(tmp_path):
    """Compile a header as C++, after a macro I such as that of complex.h."""
    kt.load("planar_2r").function("inertia_matrix").save(tmp_path / "inertia.c")
    (tmp_path / "use.cpp").write_text('#define I 1\n#include "inertia.h"\nint main() { return 0; }\n')
    subprocess.run([*COMPILER, "-x", "c++", "-Wall", "-Werror", "-fsyntax-only", str(tmp_path / "use.cpp")], check=True)


def test_errors(tmp_path):
    """Refuse unknown suffixes, unsuitable options, folders that do not exist, and functions in loops."""
    function = kt.load("planar_2r").function("inertia_matrix")
    with pytest.raises(InputError, match=r"the suffix '.f90' is not one of exported code; expected one of .c, .o"):
        function.save(tmp_path / "inertia.f90")
    with pytest.raises(InputError, match=r"triple is 'aarch64', but .c has no choice of processors; only .o and .obj"):
        function.save(tmp_path / "inertia.c", triple="aarch64")
    with pytest.raises(InputError, match=r"triple is 'pdp11', which LLVM does not know"):
        function.save(tmp_path / "inertia.o", triple="pdp11")
    with pytest.raises(WriteError, match=r"cannot be written \(No such file or directory\); choose another path"):
        function.save(tmp_path / "missing" / "inertia.c")
    long = kt.load("planar_2r").function("inverse_dynamics", lowering="rolled")
    with pytest.raises(InputError, match="compiled with loops over its bodies.*lowering='unrolled'"):
        long.save(tmp_path / "long.c")
    with pytest.raises(
        InputError, match="closure_residual of 'planar_2r' is not exported: its array gap has no entries"
    ):
        kt.load("planar_2r").function("closure_residual").save(tmp_path / "gap.c")
    assert not [*tmp_path.iterdir()]
