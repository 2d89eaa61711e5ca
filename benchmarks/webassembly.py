"""WebAssembly in V8, the engine of Chromium and Node: time per call and size of modules, beside native code."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kinetree as kt
from book import Section
from closed_loops import closed_states
from kinetree.simulation.acting.rates import ForcedMechanism
from kinetree.simulation.methods.stepper import stepper
from kinetree.simulation.methods.table import METHODS
from kinetree.targets.wasm import LOADER, loader, wasm_module
from measure import Contender, Figure, NotMeasured, agree, interleaved
from report import Table
from robots import ROBOTS, TITLE

CLOSED = ("four_bar", "stewart")
SAMPLES, STEPS, AGREE = 256, 100, 1e-9
DT = 1e-4
FLAGS = ("--no-liftoff", "--no-wasm-tier-up", "--no-wasm-lazy-compilation")
"""V8 compiles with its optimizing compiler from the start; a page has such code after some hundred calls."""

SCRIPT = """
import { load } from "./kinetree.mjs";
import { readFileSync } from "node:fs";
const { cases, rounds } = JSON.parse(readFileSync("cases.json"));
const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const made = [];
for (const c of cases) {
  const model = await load(bytes(c.module));
  const f = model.functions[c.function];
  f.resize({ samples: c.samples, times: 2 });
  for (const [name, x] of Object.entries(c.inputs)) f.inputs[name].set(x);
  f.run();
  made.push({ run: f.run, count: c.count, result: [...f.outputs[c.output]], calls: 1, times: [] });
}
function timed(m, calls) {
  const start = process.hrtime.bigint();
  for (let k = 0; k < calls; k++) m.run();
  return Number(process.hrtime.bigint() - start);
}
for (const m of made) {
  for (const end = Date.now() + 20; Date.now() < end; ) timed(m, 10);
  m.calls = Math.max(1, Math.round(4e6 / (timed(m, 20) / 20)));
}
for (let r = 0; r < rounds; r++) for (const m of made) m.times.push(timed(m, m.calls) / m.calls / m.count);
console.log(JSON.stringify(made.map(({ result, times }) => ({ result, times }))));
"""


@dataclass(frozen=True)
class Case:
    """One function of a module on some samples; a call does `count` evaluations."""

    module: bytes
    function: str
    inputs: dict[str, np.ndarray]
    output: str
    samples: int
    count: int

    def data(self) -> dict:
        """Return the case for the script."""
        numbers = {name: np.ravel(x).tolist() for name, x in self.inputs.items()}
        encoded = base64.b64encode(self.module).decode()
        return {**vars(self), "module": encoded, "inputs": numbers}


def section(quick: bool) -> Section:
    """Return times and sizes of the dynamics of robots and closed mechanisms, and of steps of Runge-Kutta."""
    node = shutil.which("node")
    if node is None:
        raise NotMeasured("no Node on the PATH")
    rounds = 5 if quick else 25
    systems = {r.name: r.rigid().tree for r in ROBOTS} | {name: kt.load(name) for name in CLOSED}
    rows, cases, native, expected = [], [], [], []
    for name, system in systems.items():
        state = states(system)
        for function in ("forward_dynamics",) if system.closures else ("inverse_dynamics", "forward_dynamics"):
            made = system.function(function)
            module = wasm_module([made.program], model=system.mechanism.name)
            names = [a.name for a in made.inputs]
            for count in (1, SAMPLES):
                given = {n: x[:count] for n, x in zip(names, state, strict=True)}
                cases.append(Case(module, function, given, made.output.name, count, count))
                expected.append(made(*given.values()))
            out = np.empty((SAMPLES, system.nv))
            call = Contender(lambda f=made.gufunc, x=state, out=out: f(*x, out=out), SAMPLES)
            native.append(Figure.of(interleaved({"native": call}, rounds)["native"]))
            rows.append((name, TITLE[function], str(len(module))))
    found = in_node(node, cases, rounds)
    for case, (result, _), right in zip(cases, found, expected, strict=True):
        agree(f"{case.function} in WebAssembly", result.reshape(right.shape), right, AGREE)
    times = [Figure.of(t) for _, t in found]
    table = tuple(
        (*row, one.text(), many.text(), there.text(), f"{one.median / there.median:.1f}")
        for row, one, many, there in zip(rows, times[::2], times[1::2], native, strict=True)
    )
    note = (
        "One call of a function on arrays in the memory of its module, called from JavaScript, and one call for "
        f"{SAMPLES} samples, after V8's optimizing compiler. Native code runs the same batch with 8 samples per "
        "vector. Sines are part of the module (about 1 kB). An earlier prototype with the host's sines took 206 ns and "
        "4.6 kB for the forward dynamics of UR5, and 1.8 us and 67 kB for the Stewart platform."
    )
    columns = (
        "mechanism",
        "function",
        "bytes",
        "one call [ns]",
        "batch [ns]",
        "native batch [ns]",
        "one call / native",
    )
    steps, pace = runs(node, systems, rounds)
    first = times[::2]
    return Section(
        "WebAssembly",
        f"Forward dynamics in V8: UR5 {first[1].median:.0f} ns in {rows[1][2]} bytes, Stewart platform "
        f"{first[-1].median / 1e3:.2f} us in {rows[-1][2]} bytes; {pace}.",
        (Table("ForcedMechanism in V8", columns, table, note), steps),
    )


def runs(node: str, systems: dict[str, kt.System], rounds: int) -> tuple[Table, str]:
    """Return the times of steps of Runge-Kutta in a kernel, and the headline."""
    cases, expected = [], []
    for system in systems.values():
        kernel = stepper(ForcedMechanism(system.mechanism), METHODS["rk4"].scheme)
        q, qd, _ = (x[0] for x in states(system))
        settings = {"dt": DT, "skip": 0.0, "budget": 1e9}
        given = {"q0": q, "qd0": 0.1 * qd, "times": np.array([0.0, STEPS * DT]), **settings}
        inputs = {n: np.asarray(x, dtype=float) for n, x in given.items()}
        cases.append(Case(wasm_module([kernel.kernel]), "rk4", inputs, "q_end", 1, STEPS))
        expected.append(kernel.gufunc(*given.values())[2])
    found = in_node(node, cases, rounds)
    rows = []
    for name, case, (result, t), right in zip(systems, cases, found, expected, strict=True):
        agree(f"steps of {name} in WebAssembly", result, right, AGREE)
        one = Figure.of(t)
        rows.append((name, str(len(case.module)), one.times(1e-3).text(), f"{1 / 60 / (one.median * 1e-9):,.0f}"))
    note = (
        f"Steps of {DT:g} s of the classical Runge-Kutta method, {STEPS} per call, in one module with the equations of "
        "motion; loops are closed after each step."
    )
    columns = ("mechanism", "bytes", "one step [us]", "steps per frame at 60 Hz")
    return Table("Runge-Kutta steps in V8", columns, tuple(rows), note), f"a step of UR5 takes {rows[0][2]} us"


def states(system: kt.System) -> tuple[np.ndarray, ...]:
    """Return states and torques, closed ones for a mechanism with loops."""
    if system.closures:
        return closed_states(system, SAMPLES)
    rng = np.random.default_rng(0)
    q, qd = system.random_state(rng, SAMPLES)
    return q, qd, rng.normal(size=(SAMPLES, system.nv))


def in_node(node: str, cases: list[Case], rounds: int) -> list[tuple[np.ndarray, list[float]]]:
    """Return the result and the times per evaluation [ns] of each case, in turn in one process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / LOADER).write_text(loader())
        (folder / "main.mjs").write_text(SCRIPT)
        (folder / "cases.json").write_text(json.dumps({"cases": [c.data() for c in cases], "rounds": rounds}))
        done = subprocess.run([node, *FLAGS, "main.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    return [(np.array(x["result"]), x["times"]) for x in json.loads(done.stdout)]
