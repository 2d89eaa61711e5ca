"""Large batches: time per sample over the size of a batch, with prefetch and without it."""

from __future__ import annotations

import ctypes

import numpy as np

from book import Section
from kinetree.compiler.ir.program import Program
from kinetree.runtime.native import core_signature, register
from kinetree.targets import target
from kinetree.targets.llvm import cache_lines
from measure import Contender, Disagreement, Figure, interleaved, ratio
from report import Table
from robots import FUNCTIONS, ROBOTS, TITLE

SIZES = (4096, 16_384, 65_536, 131_072, 524_288)
NEVER = 2**62
"""A least number of operations per prefetched line that no Program reaches."""


def section(quick: bool) -> Section:
    """Return the times of all robots and sizes."""
    rows, gains = [], {}
    for robot in ROBOTS:
        system = robot.rigid().tree
        for name in FUNCTIONS:
            program = system.function(name).program
            assert isinstance(program, Program)
            for n in SIZES[:: 4 if quick else 1]:
                with_, without = times(program, n, 5 if quick else 15)
                gain = ratio(without, with_)
                gains[robot.name, TITLE[name], n] = gain.median
                who = (f"{robot.name} (nv = {system.nv})", TITLE[name], f"{n:,}")
                rows.append((*who, Figure.of(with_).text(), Figure.of(without).text(), gain.text()))
    table = Table(
        "Prefetch over the size of a batch",
        ("robot", "function", "batch", "with [ns]", "without [ns]", "without / with"),
        tuple(rows),
        "ns per sample, one call of the gufunc with `out=` on plain row-major float64 arrays. Both codes run in turn, "
        "and give the same bits. The code of a function requests the inputs of the next block of 8 samples and its own "
        "outputs, cache line by cache line between its operations.",
    )
    largest = max(SIZES if not quick else SIZES[::4])
    talos = " and ".join(f"{gains['Talos', title, largest]:.2f}" for title in TITLE.values())
    headline = f"Without prefetch, batches of {largest:,} states of Talos take {talos} times as long."
    return Section("Large batches", headline, (table,))


def times(program: Program, n: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return the ns per sample with prefetch and without, round by round."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, *a.shape)) for a in program.inputs]
    out, other = (np.empty((n, *program.outputs[0].shape)) for _ in range(2))
    codes = {"with": compiled(program, cache_lines.SPACING), "without": compiled(program, NEVER)}
    codes["with"](*arrays, out=out)
    codes["without"](*arrays, out=other)
    if not np.array_equal(out, other):
        raise Disagreement(f"{program.name}: prefetch changes bits")
    found = interleaved({key: Contender(lambda f=f: f(*arrays, out=out), n) for key, f in codes.items()}, rounds)
    return found["with"], found["without"]


def compiled(program: Program, spacing: int) -> np.ufunc:
    """Return a gufunc with prefetch if it has a number of operations per line, compiled without the cache."""
    kept, native = cache_lines.SPACING, target()
    cache_lines.SPACING = spacing
    try:
        code = native.load(native.build(native.emit(program, "float64")))
    finally:
        cache_lines.SPACING = kept
    signature, arity = core_signature(program.inputs, program.outputs), (len(program.inputs), len(program.outputs))
    counts = (ctypes.c_int64 * 2)()
    return register(code.find("kernel"), counts, program.name, signature, signature, arity, "float64", code)
