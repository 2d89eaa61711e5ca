"""./dev bench: Kinetree and Pinocchio side by side, compile times, a large batch; writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from measure import one_thread, pin_to_one_core
from report import ROOT, Table, environment, page

TITLE = {"inverse_dynamics": "inverse", "forward_dynamics": "forward"}


def main() -> int:
    """Measure, print and write; return 1 if bits differ."""
    parser = argparse.ArgumentParser(prog="dev bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a measurement")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the page to write")
    options = parser.parse_args()
    one_thread()
    try:
        import pinocchio  # noqa: F401
    except ImportError:
        print("bench: Pinocchio is not installed; run ./dev bench, or pip install '.[bench]'", file=sys.stderr)
        return 2
    from rich.console import Console

    start, console = time.monotonic(), Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 160
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    facts = environment(pin_to_one_core())
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KINETREE_CACHE_DIR"] = cache
        wall, own = time.perf_counter(), time.process_time()
        tables = [*_robots(options.quick), _stepping(options.quick)]
        share = (time.process_time() - own) / (time.perf_counter() - wall)
        facts["run"] += f"; the process had its core for {share:.0%} of the time"
        tables += [_charmie(), _compilation(options.quick)]
        if cores:
            os.sched_setaffinity(0, cores)  # threads need them all
        batch, same = _batch(options.quick)
    tables.append(batch)
    if options.quick:
        facts["run"] += "; quick: few rounds"
    for label, text in facts.items():
        console.print(f"{label}: {text}")
    for table in tables:
        table.show(console)
    summary = _summary(tables[0])
    options.out.write_text(page(facts, summary, tables))
    console.print(f"\n{summary}\nwritten: {options.out} ({time.monotonic() - start:.0f} s)")
    return 0 if same else 1


def _robots(quick: bool) -> list[Table]:
    from robots import BATCHES, FUNCTIONS, ROBOTS, compare

    comparisons = [compare(robot, name, 5 if quick else 31) for robot in ROBOTS for name in FUNCTIONS]
    rows, singles = [], []
    for c in comparisons:
        who = (f"{c.robot.name} (nv = {c.nv})", TITLE[c.function])
        for n in BATCHES:
            met = "met" if c.ratios[n].median >= c.robot.target else "missed"
            target = f">= {c.robot.target:g}: {met}"
            ours, peer = c.ours[n].text(), c.peer.text(4)
            rows.append((*who, f"{n:,}", ours, peer, c.ratios[n].text(), target, c.bare_ratios[n].text()))
        singles.append((*who, *(c.single[key].text(4) for key in ("gufunc", "method", "peer, single"))))
    last = comparisons[-2:]
    calls = ", ".join(
        f"{TITLE[c.function]} {c.empty_call.median:.0f} ns without joints, {c.one_joint_call.median:.0f} ns with one"
        for c in last
    )
    worst = max(c.difference for c in comparisons)
    note = (
        "Ours: one call of the gufunc on plain row-major float64 arrays with `out=`, ns a sample. Pinocchio: `rnea` "
        "and `aba` in a Python loop over rows made beforehand, ns a call. The last column subtracts from each "
        "Pinocchio call one on a model of a single joint, which is the crossing from Python and a little dynamics: it "
        "errs in the peer's favour. "
        f"Such a call takes: {calls}. Answers agree to {worst:.1e} relative or better (asked: 1e-10)."
    )
    columns = ("robot", "function", "batch", "ours [ns]", "Pinocchio [ns]", "ratio", "target", "ratio less the call")
    return [
        Table("Batches against Pinocchio", columns, tuple(rows), note),
        Table(
            "One single call",
            ("robot", "function", "our gufunc [ns]", "our method, checked [ns]", "Pinocchio [ns]"),
            tuple(singles),
            "From Python, one sample a call, the result a new array. The method refuses input that is not finite.",
        ),
    ]


def _stepping(quick: bool) -> Table:
    from stepping import STEP, compare_steps

    targets = {"4,096 arms to MuJoCo": 50, "one arm to MuJoCo": 5, "4,096 arms to SciPy": 50}
    found = compare_steps(5 if quick else 31)
    rows = [(name, figure.text(4), "", "") for name, figure in found.rates.items()]
    for name, figure in found.ratios.items():
        met = "met" if figure.median >= targets[name] else "missed"
        rows.append((f"ratio: {name}", "", figure.text(), f">= {targets[name]}: {met}"))
    note = (
        f"UR5 arms falling freely, steps of {STEP:g} s of the classical Runge-Kutta method, one thread. MuJoCo: "
        "`mj_step` with 1000 steps a call, RK4, contacts and constraints off. SciPy: its RK45 (six evaluations a step, "
        "ours four) with steps of the same length, calling our gufunc. After 1000 steps positions agree with MuJoCo's "
        f"to {found.difference:.1e} rad."
    )
    return Table("Steps of a simulation", ("contender", "steps/s", "ratio", "target"), tuple(rows), note)


def _charmie() -> Table:
    from kinetree.reproduce.goncalves2023 import table_5

    with tempfile.TemporaryDirectory() as folder:
        outcome = table_5(Path(folder))
    ((title, (headings, *rows)),) = outcome.tables
    return Table(f"[Goncalves2023] {title}", tuple(headings), tuple(map(tuple, rows)), " ".join(outcome.notes))


def _compilation(quick: bool) -> Table:
    from compile_times import CACHE_TARGET, compile_times

    def verdict(seconds: float, target: float | None) -> str:
        if target is None:
            return "-"
        limit = f"< {target:g} s" if target >= 0.1 else f"< {target * 1e3:g} ms"
        return f"{limit}: {'met' if seconds < target else 'missed'}"

    found = compile_times(1 if quick else 3)
    rows = [
        (
            c.robot.name,
            TITLE[c.function],
            c.cold.text(),
            verdict(c.cold.median, c.target),
            _milliseconds(c.cached),
            verdict(c.cached.median, CACHE_TARGET),
            _milliseconds(c.reading),
        )
        for c in found
    ]
    imports = found[0].imports
    note = (
        "Each in a new process after its imports (which take "
        f"{imports.median:.2f} s with CasADi and LLVM): tracing, LLVM and linking with an empty cache; then the same "
        "with the cache filled. Reading the URDF file is apart."
    )
    columns = ("robot", "function", "compiled [s]", "target", "from the cache [ms]", "target", "reading [ms]")
    return Table("Compile times", columns, tuple(rows), note)


def _batch(quick: bool) -> tuple[Table, bool]:
    from batch import ARM, SAMPLES, run_batch

    rows, same = [], True
    for function in TITLE:
        b = run_batch(function, 3 if quick else 9, 3 if quick else 10)
        for threads, figure in b.times.items():
            rows.append((TITLE[function], str(threads), f"{figure.median * SAMPLES / 1e6:.1f}", figure.text()))
        same &= b.same_splits and all(b.same_threads.values())
        counts, splits = ", ".join(map(str, b.same_threads)), b.splits
    bits = "the same bits" if same else "OTHER BITS"
    note = f"{SAMPLES:,} samples of `{ARM}`, seven joints. {splits} random splits, and {counts} threads, give {bits}."
    columns = ("function", "threads", "one call [ms]", "a sample [ns]")
    return Table("A million samples in one call", columns, tuple(rows), note), same


def _summary(table: Table) -> str:
    ratio, target = table.columns.index("ratio"), table.columns.index("target")
    met = sum(row[target].endswith("met") for row in table.rows)
    medians = [float(row[ratio].split()[0]) for row in table.rows]
    return (
        f"Batches are {min(medians):.0f} to {max(medians):.0f} times as fast as Pinocchio looped from Python; "
        f"{met} of {len(table.rows)} ratios meet their targets."
    )


def _milliseconds(figure) -> str:
    return type(figure)(figure.median * 1e3, figure.low * 1e3, figure.high * 1e3).text()


if __name__ == "__main__":
    sys.exit(main())
