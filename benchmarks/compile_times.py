"""Compile times, each in a process of its own: with an empty cache, then with what that left in the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import Figure
from robots import ROBOTS, Robot

TARGETS = {("UR5", "inverse_dynamics"): 0.3, ("Panda", "inverse_dynamics"): 0.3, ("Talos", "forward_dynamics"): 2.0}
CACHE_TARGET = 0.03

CHILD = """
import json, sys, time
start = time.perf_counter()
import casadi, llvmlite.binding, kinetree as kt, kinetree.compiler.targets.llvm
imported = time.perf_counter()
system = kt.load(sys.argv[1])
loaded = time.perf_counter()
function = system.function(sys.argv[2])
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


def compile_times(repeats: int) -> list[Compilation]:
    """Return the compile times of inverse and forward dynamics of every robot."""
    return [
        _compilation(robot, function, repeats)
        for robot in ROBOTS
        for function in ("inverse_dynamics", "forward_dynamics")
    ]


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
