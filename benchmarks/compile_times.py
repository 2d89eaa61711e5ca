"""Compile times, each in a new process: with an empty cache, then with the cache filled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from book import Section
from measure import Figure
from report import Table
from robots import ROBOTS, TITLE, Robot

TARGETS = {("UR5", "inverse_dynamics"): 0.3, ("Panda", "inverse_dynamics"): 0.3, ("Talos", "forward_dynamics"): 2.0}
CACHE_TARGET = 0.03

CHILD = """
import json, sys, time
start = time.perf_counter()
import casadi, llvmlite.binding, kinetree as kt, kinetree.targets.llvm
imported = time.perf_counter()
system = kt.load(sys.argv[1]).tree
loaded = time.perf_counter()
function = system.function(sys.argv[2], forces=False)
ready = time.perf_counter()
print(json.dumps([imported - start, loaded - imported, ready - loaded]))
"""


@dataclass(frozen=True)
class Compilation:
    """Seconds of one function of one robot: imports, reading the file, compiling, loading from the cache."""

    robot: Robot
    function: str
    imports: Figure
    reading: Figure
    cold: Figure
    cached: Figure
    target: float | None


def section(quick: bool) -> Section:
    """Return the compile times of inverse and forward dynamics of every robot."""
    found = [_compilation(r, f, 1 if quick else 3) for r in ROBOTS for f in ("inverse_dynamics", "forward_dynamics")]
    rows = tuple(
        (
            c.robot.name,
            TITLE[c.function],
            c.cold.text(),
            _verdict(c.cold.median, c.target),
            c.cached.times(1e3).text(),
            _verdict(c.cached.median, CACHE_TARGET),
            c.reading.times(1e3).text(),
        )
        for c in found
    )
    note = (
        "Each in a new process after its imports (which take "
        f"{found[0].imports.median:.2f} s with CasADi and LLVM): tracing, LLVM and linking with an empty cache; then "
        "the same with the cache filled. The time to read the URDF file is separate."
    )
    columns = ("robot", "function", "compiled [s]", "target", "from the cache [ms]", "target", "reading [ms]")
    headline = (
        f"Compiling takes {min(c.cold.median for c in found):.2f} to {max(c.cold.median for c in found):.2f} s, "
        f"loading from the cache {max(c.cached.median for c in found) * 1e3:.0f} ms or less."
    )
    return Section("Compile times", headline, (Table("Cold and cached", columns, rows, note),))


def _verdict(seconds: float, target: float | None) -> str:
    if target is None:
        return "-"
    limit = f"< {target:g} s" if target >= 0.1 else f"< {target * 1e3:g} ms"
    return f"{limit}: {'met' if seconds < target else 'missed'}"


def _compilation(robot: Robot, function: str, repeats: int) -> Compilation:
    cold, cached = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_child(robot.path, function, cache))
            cached += [_child(robot.path, function, cache) for _ in range(2)]
    imports, reading, _ = zip(*(cold + cached), strict=True)
    return Compilation(
        robot,
        function,
        Figure.of(list(imports)),
        Figure.of(list(reading)),
        Figure.of([x[2] for x in cold]),
        Figure.of([x[2] for x in cached]),
        TARGETS.get((robot.name, function)),
    )


def _child(path: Path, function: str, cache: str) -> tuple[float, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), function],
        env={**os.environ, "KINETREE_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        check=True,
    )
    imports, reading, ready = json.loads(done.stdout)
    return imports, reading, ready
