"""./dev bench: comparison with other libraries, case by case; writes docs/benchmarks.md and docs/benchmarks/."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from book import Chapter, Section, headline, read_facts, read_sections, write_pages
from measure import Disagreement, NotMeasured, one_thread, pin_to_one_core
from report import ROOT, busy, environment, measured, spent

CASES = {
    "robots": "batches and single calls of arms, humanoids and a quadruped, compared with Pinocchio",
    "derivatives": "derivatives of inverse and forward dynamics, compared with Pinocchio; products of Jacobians",
    "regressors": "regressors of inverse dynamics in plain calls, compared with Pinocchio",
    "flexible_links": "forward dynamics of arms with flexible links; a steel rod, compared with PyElastica",
    "throughput": "samples per second over the size of a batch; float32; threads; equal bits in all cases",
    "large_batches": "time per sample over the size of a batch, with and without prefetch",
    "chains": "time per link from 10 to 100,000 links, compared with Pinocchio up to 300 links",
    "pose_targets": "inverse kinematics of arms within their limits, compared with a loop on Pinocchio's kinematics",
    "stepping": "Runge-Kutta steps of one arm and of thousands, compared with MuJoCo and SciPy",
    "contact_steps": "time steps of a quadruped on four feet, compared with MuJoCo's batches",
    "learning": "steps of environments for learning, compared with Gymnasium, and with EnvPool if it is installed",
    "accuracy": "the error of integrators over right-hand sides and over seconds, compared with SciPy and MuJoCo",
    "closed_loops": "forward dynamics of closed mechanisms, compared with Pinocchio's constraint dynamics",
    "design_batches": "a million designs of a closed mechanism along a motion, and the bearing loads of a press",
    "study_workers": "a study in one process, in two, and on a Dask cluster, with shards of a second",
    "stiff_runs": "a KUKA LWR under stiff control: a native batch, compared with SUNDIALS run by run",
    "closed_stepping": "steps of four-bars, compared with Exudyn if it is installed",
    "other_peers": "inverse and forward dynamics, compared with Drake, adam, Robotics Toolbox and JaxSim if installed",
    "webassembly": "time per call and size of WebAssembly modules in V8, if Node is installed",
    "pages": "steps, sliders and first pictures of pages in Chromium, if it is installed",
    "gpu": "samples per second on an NVIDIA GPU, row- and column-major, if there is one; requires CuPy",
    "gpu_runs": "time steps per second on an NVIDIA GPU, in the kernel and as whole calls, if there is one",
    "gpu_learning": "environments per second on an NVIDIA GPU, times of calls, and a quadruped that learns to walk",
    "charmie": "1000 steps of a robot with closed loops in one call, compared with plain NumPy step by step",
    "goncalves2023": "comparison with the times printed in a paper",
    "compile_times": "compiling with an empty cache, and from the cache",
    "memory_use": "peak memory of batches and of long chains",
}
"""The cases: each is a module here with `section(quick)`; pictures go to `section(..., folder)`."""
CHAPTERS = (
    Chapter(
        "dynamics",
        "Dynamics, derivatives and kinematics",
        (
            "robots",
            "derivatives",
            "regressors",
            "flexible_links",
            "throughput",
            "large_batches",
            "chains",
            "closed_loops",
            "pose_targets",
            "other_peers",
        ),
    ),
    Chapter(
        "simulation",
        "Simulation",
        ("stepping", "contact_steps", "learning", "accuracy", "stiff_runs", "closed_stepping"),
    ),
    Chapter(
        "studies", "Studies, and a robot with loops", ("design_batches", "study_workers", "charmie", "goncalves2023")
    ),
    Chapter(
        "machines",
        "GPUs, browsers, compilation and memory",
        ("gpu", "gpu_runs", "gpu_learning", "webassembly", "pages", "compile_times", "memory_use"),
    ),
)
"""The pages of docs/benchmarks/ in order; each case is in one of them."""
GPU = ("gpu", "gpu_runs", "gpu_learning")
"""The cases of --gpu, which compare with no other library."""
THREADED = (
    "throughput",
    "chains",
    "stepping",
    "study_workers",
    "compile_times",
    "memory_use",
    "webassembly",
    "pages",
    *GPU,
)
"""Cases in which the process uses several cores, or waits for other processes."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and write; return 1 if a case fails, 2 if a required package is missing."""
    parser = argparse.ArgumentParser(prog="dev bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a measurement")
    parser.add_argument("--only", action="append", choices=list(CASES), help="a case; may be given more than once")
    parser.add_argument("--gpu", dest="only", action="store_const", const=list(GPU), help="only the cases of GPUs")
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "docs" / "benchmarks.md",
        help="the summary to write; tables go to its folder",
    )
    parser.add_argument("--take", type=Path, help="the folder of another machine's pages: take its cases, measure none")
    parser.add_argument("--list", action="store_true", help="list the cases")
    options = parser.parse_args(arguments)
    if options.list:
        for name, words in CASES.items():
            print(f"{name:<16}{words}")
        return 0
    if options.take:
        taken = read_sections(options.take)
        sections = read_sections(options.out.with_suffix("")) | taken
        write_pages(options.out, read_facts(options.out), sections, CHAPTERS)
        print(f"taken from {options.take}: {', '.join(taken)}")
        return 0
    one_thread()
    try:
        if set(options.only or CASES) - set(GPU):
            import mujoco  # noqa: F401
            import pinocchio  # noqa: F401
    except ImportError as error:
        print(f"bench: {error.name} is not installed; run ./dev bench, or pip install '.[bench]'", file=sys.stderr)
        return 2
    from rich.console import Console

    start, console = time.monotonic(), Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 160
    facts = environment(pin_to_one_core()) | ({"rounds": "few: a quick look"} if options.quick else {})
    for label, text in facts.items():
        console.print(f"{label}: {text}")
    sections, failures = read_sections(options.out.with_suffix("")), []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KINETREE_CACHE_DIR"] = cache
        for name in options.only or CASES:
            try:
                sections[name], failure = _measure(name, options.quick, options.out, console)
            except NotMeasured as error:
                console.print(f"not measured, and kept as it was: {name}: {error}")
                continue
            except Disagreement as error:
                failure = str(error)
            except Exception as error:  # the other cases still run
                traceback.print_exc()
                failure = f"{type(error).__name__}: {error}"
            failures += [f"{name}: {failure}"] if failure else []
            write_pages(options.out, facts, sections, CHAPTERS)
    for title, words in map(headline, sections.values()):
        console.print(f"{title}: {words}")
    kept = [name for name in sections if name not in (options.only or CASES)]
    console.print(f"written: {options.out} ({time.monotonic() - start:.0f} s)")
    if kept:
        console.print(f"kept as they were: {', '.join(kept)}")
    for failure in failures:
        console.print(f"FAILED: {failure}")
    return 1 if failures else 0


def _measure(name: str, quick: bool, out: Path, console) -> tuple[str, str]:
    """Return the section of a case as text, and its failure."""
    case: Callable[..., Section] = import_module(name).section
    folder = out.with_suffix("")
    more = (folder,) if "folder" in inspect.signature(case).parameters else ()
    wall, own, before = time.perf_counter(), spent(), busy()
    found = case(quick, *more)
    taken = time.perf_counter() - wall
    share = None if name in THREADED else min(1.0, (spent() - own) / taken)
    after = busy()
    others = None if before is None or after is None else max(0.0, (after - before) / taken / (os.cpu_count() or 1))
    for table in found.tables:
        table.show(console)
    console.print(f"{name}: {found.headline} ({taken:.0f} s)\n", style="bold")
    return found.markdown(name, measured(share, others)), found.failure


if __name__ == "__main__":
    sys.exit(main())
