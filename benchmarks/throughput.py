"""Throughput over the size of a batch, in both precisions and on threads; a million samples with equal bits."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin

import kinetree as kt
from book import Picture, Section
from measure import Contender, Figure, agree, all_cores, interleaved, ratio
from pictures import Curve, Panel, draw
from report import Table
from robots import AGREE, FUNCTIONS, ROBOTS, TITLE, batch_call, calls, near_empty

SIZES = tuple(4**k for k in range(11))
PEER_SIZES = SIZES[:9]
"""Sizes of the peer's own batches, for which a call takes less than a second."""
MILLION = 1_000_000
THREADED = 8192
"""The smallest batch that is split among threads."""


def section(quick: bool, folder: Path) -> Section:
    """Return throughput over sizes as a picture and a table, and the million samples."""
    with all_cores() as cores:
        found = {name: sizes(name, cores, 3 if quick else 9) for name in FUNCTIONS}
        million = [run_million(name, cores, 3 if quick else 9, 2 if quick else 10) for name in FUNCTIONS]
    panels = [
        Panel(f"UR5, {TITLE[name]} dynamics", "samples in a call", "samples per second", _curves(times, cores))
        for name, times in found.items()
    ]
    draw(folder / "throughput.svg", panels)
    same = all(m[1] for m in million)
    fast = {name: times[f"1 float64 {4**6}"] for name, times in found.items()}
    headline = ", ".join(f"{1e3 / Figure.of(t).median:.0f} million {TITLE[name]}" for name, t in fast.items())
    table = Table(
        "A million samples in one call",
        ("function", "threads", "one call [ms]", "per sample [ns]", "ratio to one thread"),
        tuple(row for m in million for row in m[0]),
        f"{MILLION:,} samples of `kuka_lwr4`, seven joints. Ten random splits, and 2, 3 and 8 threads, give "
        + ("the same bits." if same else "OTHER BITS."),
    )
    return Section(
        "Throughput over the size of a batch",
        f"On one core a UR5 takes {headline} dynamics per second in calls of 4,096; float32 is "
        + " and ".join(_single_precision(times) for times in found.values())
        + " times as fast.",
        (_table(found, cores), table),
        (Picture("throughput.svg", "Samples per second over the number of samples in one call, UR5"),),
        "" if same else "bits differ between splits or thread counts",
    )


def sizes(name: str, cores: int, rounds: int) -> dict[str, list[float]]:
    """Return the ns per sample for every size, precision and thread count, and of Pinocchio's calls, for the UR5."""
    arm, model = ROBOTS[0].rigid(), pin.buildModelFromUrdf(str(ROBOTS[0].path))
    one, peer = near_empty(1), FUNCTIONS[name]
    data = model.createData()
    state = np.random.default_rng(0).normal(size=(3, SIZES[-1], arm.nv))
    rows = [tuple(np.array(x[k]) for x in state) for k in range(500)]
    point = [(np.full(1, 0.1),) * 3] * 500
    expected = np.array([peer(model, data, *row) for row in rows])
    function, method = arm.function(name), getattr(arm, name)
    agree(f"UR5 {name}", function(*state[:, :500]), expected, AGREE)
    single = arm.function(name, dtype="float32")
    agree(f"UR5 {name}, float32", single(*state[:, :500].astype(np.float32)), expected, 1e-3)

    contenders = {"peer": calls(peer, model, data, rows), "call": calls(peer, *one, point)}
    for n in SIZES:
        for dtype, f in (("float64", function), ("float32", single)):
            given, out = [x[:n].astype(dtype) for x in state], np.empty((n, arm.nv), dtype)
            contenders[f"1 {dtype} {n}"] = Contender(lambda f=f, g=given, o=out: f.gufunc(*g, out=o), n)
        if n in PEER_SIZES:
            contenders[f"whole {n}"] = batch_call(name, model, [x[:n] for x in state])[0]
        if n >= THREADED:
            out = np.empty((n, arm.nv))
            call = lambda g=list(state[:, :n]), o=out: method(*g, threads=cores, out=o)  # noqa: E731
            contenders[f"{cores} float64 {n}"] = Contender(call, n)
        if THREADED <= n and n in PEER_SIZES:
            contenders[f"whole, threads {n}"] = batch_call(name, model, [x[:n] for x in state], cores)[0]
    return interleaved(contenders, rounds)


def run_million(name: str, cores: int, rounds: int, splits: int) -> tuple[list[tuple[str, ...]], bool]:
    """Time a million samples on one thread and on all cores; return whether splits and threads give equal bits."""
    system, rng = kt.load("kuka_lwr4"), np.random.default_rng(2)
    state = [rng.uniform(-3.0, 3.0, size=(MILLION, system.nv)) for _ in range(3)]
    compiled, method = system.function(name), getattr(system, name)
    whole, other = np.empty((MILLION, system.nv)), np.empty((MILLION, system.nv))
    compiled(*state, out=whole)
    same = True
    for _ in range(splits):
        cuts = [0, *sorted(rng.integers(0, MILLION, size=rng.integers(1, 40))), MILLION]
        other.fill(np.nan)
        for first, last in pairwise(cuts):
            compiled(*(x[first:last] for x in state), out=other[first:last])
        same &= np.array_equal(whole.view(np.uint64), other.view(np.uint64))
    for threads in (2, 3, 8):
        other.fill(np.nan)
        method(*state, threads=threads, out=other)
        same &= np.array_equal(whole.view(np.uint64), other.view(np.uint64))
    counts = sorted({1, cores})
    times = interleaved(
        {str(n): Contender(lambda n=n: method(*state, threads=n, out=other), MILLION) for n in counts}, rounds
    )
    rows = []
    for n in counts:
        figure, gain = Figure.of(times[str(n)]), ratio(times["1"], times[str(n)]).text()
        rows.append((TITLE[name], str(n), f"{figure.median * MILLION / 1e6:.1f}", figure.text(), gain))
    return rows, same


def _single_precision(times: dict[str, list[float]]) -> str:
    return f"{ratio(times[f'1 float64 {4**6}'], times[f'1 float32 {4**6}']).median:.2g}"


def _curves(times: dict[str, list[float]], cores: int) -> list[Curve]:
    def rate(key: str) -> float:
        return 1e9 / Figure.of(times[key]).median

    out = [Curve(f"ours, {d}", SIZES, [rate(f"1 {d} {n}") for n in SIZES]) for d in ("float64", "float32")]
    large = [n for n in SIZES if n >= THREADED]
    out.append(Curve(f"ours, float64, {cores} threads", large, [rate(f"{cores} float64 {n}") for n in large]))
    out.append(Curve("Pinocchio, whole batches", PEER_SIZES, [rate(f"whole {n}") for n in PEER_SIZES], dashed=True))
    large = [n for n in large if n in PEER_SIZES]
    threaded = [rate(f"whole, threads {n}") for n in large]
    out.append(Curve(f"Pinocchio, whole batches, {cores} threads", large, threaded, dashed=True))
    out.append(Curve("Pinocchio, called in a loop", (SIZES[0], SIZES[-1]), [rate("peer")] * 2, dashed=True))
    return out


def _table(found: dict[str, dict[str, list[float]]], cores: int) -> Table:
    rows = []
    for name, times in found.items():
        for n in SIZES:
            ours = times[f"1 float64 {n}"]
            threaded = times.get(f"{cores} float64 {n}")
            rows.append((
                TITLE[name], f"{n:,}", Figure.of(ours).text(), Figure.of(times[f"1 float32 {n}"]).text(),
                "-" if threaded is None else Figure.of(threaded).text(), ratio(times["peer"], ours).text(),
                ratio(times["peer"], ours, times["call"]).text(),
                ratio(times[f"whole {n}"], ours).text() if n in PEER_SIZES else "-",
            ))  # fmt: skip
    columns = (
        "function", "samples", "float64 [ns]", "float32 [ns]", f"float64, {cores} threads [ns]",
        "Pinocchio / float64", "less the call", "Pinocchio's own batch / float64",
    )  # fmt: skip
    note = (
        "UR5, ns per sample of one call of the gufunc with `out=`, row-major arrays of the dtype; Pinocchio's `rnea` "
        "and `aba` in a Python loop in the same rounds, and its `rneaInParallel` and `abaInParallel` on one thread. "
        "float32 results are within 1e-3 of each sample's largest entry; its code is the same, with sixteen samples in "
        "a vector instead of eight."
    )
    return Table("Calls of all sizes", columns, tuple(rows), note)
