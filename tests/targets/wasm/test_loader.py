"""The loader of modules in JavaScript: functions of arrays, errors and self-tests, in Node."""

from __future__ import annotations

import json

import numpy as np

import kinetree as kt
from interpreted import program
from kinetree.targets.wasm import LOADER, loader, wasm_module
from tolerance import assert_close
from wasm_hosts import needs_node, run_node

PROLOGUE = """
import { load } from "./kinetree.mjs";
import { readFileSync } from "node:fs";
const arm = await load(readFileSync("arm.wasm"));
const { forward_dynamics, inertia_matrix } = arm.functions;
function message(action) {
  try { action(); } catch (error) { return `${error.name}: ${error.message}`; }
  return "no error";
}
const said = {};
"""
Q, QD, TAU = [0.31, -0.72], [1.13, 0.57], [0.21, -0.34]


def answers(folder, script: str) -> dict:
    """Run a script on the module of an arm with two functions, and return what it puts into `said`."""
    mechanism = kt.load("planar_2r").mechanism
    programs = [program(mechanism, name) for name in ("forward_dynamics", "inertia_matrix")]
    (folder / "arm.wasm").write_bytes(wasm_module(programs, model="planar_2r"))
    (folder / LOADER).write_text(loader())
    return json.loads(run_node(PROLOGUE + script + "console.log(JSON.stringify(said));", folder))


def expected(name: str, *state) -> np.ndarray:
    """Return a function of the same arm by NumPy."""
    return program(kt.load("planar_2r").mechanism, name).interpret(*map(np.array, state))[0]


@needs_node
def test_functions_take_and_return_arrays(tmp_path):
    """Call functions on lists, typed and nested arrays, write inputs in place, and grow to many samples."""
    said = answers(
        tmp_path,
        f"""
        const [q, qd, tau] = {json.dumps([Q, QD, TAU])};
        said.model = arm.metadata.model;
        said.plain = [...forward_dynamics(q, new Float64Array(qd), [[tau[0]], [tau[1]]])];
        const first = forward_dynamics(q, qd, tau);
        said.same = first === forward_dynamics(q, qd, tau);
        said.matrix = [...inertia_matrix(q)];
        forward_dynamics.inputs.q.fill(0.25);
        forward_dynamics.run();
        said.placed = [...forward_dynamics.outputs.qdd];
        const before = arm.memory.buffer.byteLength;
        inertia_matrix.resize({{ samples: 20000 }});
        said.grown = arm.memory.buffer.byteLength > before;
        inertia_matrix.inputs.q.forEach((_, i, view) => {{ view[i] = Math.sin(i); }});
        inertia_matrix.run();
        said.last = [...inertia_matrix.outputs.I.slice(-4)];
        said.after = [...forward_dynamics(q, qd, tau)];
        inertia_matrix.resize({{ samples: 1 }});
        said.again = [...inertia_matrix(q)];
        """,
    )
    assert said["model"] == "planar_2r" and said["same"] and said["grown"]
    for label in ("plain", "after"):
        assert_close(said[label], expected("forward_dynamics", Q, QD, TAU), 1e-13, label)
    assert_close(said["placed"], expected("forward_dynamics", [0.25, 0.25], QD, TAU), 1e-13, "inputs in place")
    for label in ("matrix", "again"):
        assert_close(said[label], expected("inertia_matrix", Q).ravel(), 1e-14, label)
    assert_close(said["last"], expected("inertia_matrix", np.sin([39998, 39999])).ravel(), 1e-14, "last of many")


@needs_node
def test_errors_name_the_function_and_the_array(tmp_path):
    """Refuse wrong numbers of arrays and of entries, unknown functions and foreign modules."""
    said = answers(
        tmp_path,
        """
        said.few = message(() => forward_dynamics([1, 2]));
        said.long = message(() => inertia_matrix([1, 2, 3]));
        said.test = message(() => arm.selfTest({ function: "jacobian", samples: [] }));
        const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
        said.foreign = await load(empty).then(() => "no error", (error) => error.message);
        """,
    )
    assert said["few"] == "TypeError: forward_dynamics takes 3 arrays (q, qd, tau), not 1"
    assert said["long"] == "RangeError: inertia_matrix: q has 3 numbers; expected 2"
    assert said["test"] == "Error: no function 'jacobian'; available: forward_dynamics, inertia_matrix"
    assert said["foreign"] == "the module has no section 'kinetree'; it was not written by Kinetree"


@needs_node
def test_self_tests_find_wrong_results(tmp_path):
    """Run a sample that holds, one with a wrong number and one with a missing number."""
    inertia = expected("inertia_matrix", Q).tolist()
    wrong = [inertia[0], [inertia[1][0], inertia[1][1] + 1e-9]]
    given = (inertia, wrong, inertia[:1], [[None, inertia[0][1]], inertia[1]])
    samples = [{"inputs": {"q": Q}, "outputs": {"I": x}, "tolerances": {"I": 1e-12}} for x in given]
    test = json.dumps({"function": "inertia_matrix", "samples": samples}).replace("null", "NaN")
    said = answers(tmp_path, f"said.results = arm.selfTest({test});")
    assert [r["passed"] for r in said["results"]] == [True, False, False, False]
    assert [r["sample"] for r in said["results"]] == [0, 1, 2, 3]
    assert said["results"][0]["output"] == "I"
    assert said["results"][0]["error"] <= 1e-14
