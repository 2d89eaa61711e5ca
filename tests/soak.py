"""A soak: random mechanisms through functions, runs, files and pages in one process, with its memory watched.

`python tests/soak.py --minutes 120` writes out/soak.md and out/soak.json; `python tests/soak.py --round 81204` makes
one round again, by the number that a failure printed.

`./dev test --soak` draws new examples for the property tests; this looks for what only a long life shows: memory that
is not returned, files left open, and rare numbers that end a function with anything but a result or a KinetreeError.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import platform
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import closed_mechanisms
import flexible_mechanisms
import kinetree as kt
import strategies
from kinetree.dynamics import ALGORITHMS
from kinetree.library import names as library_names

METHODS = {"rk4": 2e-3, "euler": 2e-3, "midpoint": 5e-3, "dopri5": None, "tsit5": None, "bs3": None, "auto": None}
"""Methods of runs and their steps [s]; None where the method chooses them."""
FUNCTIONS = 6
"""How many functions a round compiles, besides inverse and forward dynamics."""
LARGEST = 24
"""The most degrees of freedom of a mechanism of the library that a round takes: larger ones compile for long."""
EPS = float(np.finfo(float).eps)


@dataclass
class Soak:
    """What a soak has seen so far; memory and open files by round."""

    started: float = field(default_factory=time.monotonic)
    checks: Counter = field(default_factory=Counter)
    failures: list[dict] = field(default_factory=list)
    memory: list[tuple[float, float, int]] = field(default_factory=list)
    """Seconds since the start, resident memory [MB] and open files, after each round."""


@cache
def small_mechanisms() -> list[str]:
    """Return the mechanisms of the library that compile quickly."""
    return [name for name in library_names() if kt.load(name).nv <= LARGEST]


def draw_mechanism(rng: np.random.Generator) -> kt.System:
    """Return a random tree, a closed or flexible mechanism, or one of the library."""
    sort = rng.choice(["tree", "tree", "tree", "closed", "flexible", "library"])
    if sort == "library":
        return kt.load(str(rng.choice(small_mechanisms())))
    seed = int(rng.integers(2**32))
    if sort == "flexible":
        return kt.System(flexible_mechanisms.random_tree(seed, count=int(rng.integers(3, 6))))
    count = int(rng.integers(2, 9))
    kinds = [str(kind) for kind in rng.choice(strategies.MOVING, count)]
    parents = [-1] + [int(rng.integers(-1, k)) for k in range(1, count)]
    geometry = str(rng.choice(["general", "neat", "mixed"]))
    tree = strategies.random_mechanism(kinds, parents, seed, armature=bool(rng.random() < 0.5), geometry=geometry)
    if sort == "tree":
        return kt.System(tree)
    a, b = rng.choice([body.name for body in tree.bodies] + ["ground"], 2, replace=False)
    whole, _ = closed_mechanisms.closed(tree, [(str(rng.choice(closed_mechanisms.KINDS)), str(a), str(b))], seed)
    return kt.System(whole)


def check_dynamics(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Compare inverse with forward dynamics, and the inertia matrix with inverse dynamics, on a tree."""
    del folder
    if system.closures or any(body.flexible for body in system.mechanism.bodies):
        return
    tau = rng.normal(size=qd.shape)
    qdd = system.forward_dynamics(q, qd, tau, forces=False)
    inertia = system.inertia_matrix(q)
    cond = float(np.max(np.linalg.cond(inertia)))
    back = system.inverse_dynamics(q, qd, qdd, forces=False)
    scale = 1.0 + np.abs(back).max() + np.abs(system.bias_torque(q, qd, forces=False)).max()
    require_close(back, tau, 1e3 * EPS * cond * scale, "inverse of forward dynamics")
    again = np.einsum("...ij,...j->...i", inertia, qdd) + system.bias_torque(q, qd, forces=False)
    require_close(again, back, 1e3 * EPS * cond * scale, "inertia matrix against inverse dynamics")


def check_functions(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Evaluate some of the compiled functions, and compare a state alone with the same in a batch, bit by bit."""
    del folder
    more = {"qdd": rng.normal(size=qd.shape), "tau": rng.normal(size=qd.shape), "added": np.zeros_like(qd)}
    given = {"q": q, "qd": qd, "q2": system.integrate(q, 0.1 * qd), **more}
    values = [[p.value for p in system.mechanism.free_parameters]] if system.mechanism.free_parameters else []
    for name in rng.choice([name for name, page in ALGORITHMS.items() if not page.driven], FUNCTIONS, replace=False):
        page = ALGORITHMS[name]
        frame = str(rng.choice([body.name for body in system.mechanism.bodies])) if page.frame else None
        with refusals(f"function {name}"):
            function = system.function(str(name), frame=frame)
            inputs = [given[key] for key in page.inputs]
            many, one = function(*inputs, *values), function(*(x[0] for x in inputs), *values)
            for all_of, single in zip(as_tuple(many), as_tuple(one), strict=True):
                require(bool(np.isfinite(all_of).all()), f"{name} is not finite")
                require(np.array_equal(all_of[0], single), f"{name}: one state differs from the same in a batch")


def check_derivatives(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Compare a derivative of inverse dynamics along a velocity with differences."""
    del folder
    if system.nv > 10:
        return
    qdd, step = rng.normal(size=qd.shape), 1e-5
    along = rng.normal(size=qd.shape)
    with refusals("derivatives"):
        slopes = system.inverse_dynamics_derivatives(q, qd, qdd)
        exact = np.einsum("...ij,...j->...i", slopes[0], along)
        ahead = system.inverse_dynamics(system.integrate(q, step * along), qd, qdd)
        behind = system.inverse_dynamics(system.integrate(q, -step * along), qd, qdd)
        scale = 1.0 + np.abs(exact).max() + np.abs(ahead).max()
        require_close((ahead - behind) / (2 * step), exact, 1e-4 * scale, "derivative of inverse dynamics")


def check_run(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Simulate by a random method, and read the same run back from a random format."""
    method = str(rng.choice(list(METHODS)))
    with refusals("run"):
        run = kt.simulate(
            system, q[0], 0.3 * qd[0], duration=0.2, method=method, dt=METHODS[method], max_steps=20_000, progress=False
        )
        finite = np.isfinite(run.q).all() and np.isfinite(run.qd).all()
        require(bool(finite), f"a run by {method} has numbers that are not finite: {run.status}")
        if run.outcome == kt.Outcome.FINISHED and METHODS[method] is None and not system.closures:
            balance = kt.energy_balance(run)  # NaN if the samples are too coarse to integrate the work of dampers
            require(not balance.error > 1e-2, f"energy less work changed by {balance.error:.2g} in a run by {method}")
        file = folder / f"run{rng.choice(['.npz', '.csv', '.zarr', '.parquet'])}"
        run.save(file)
        again = kt.read_trajectory(file)
        require(np.array_equal(again.q, run.q) and np.array_equal(again.t, run.t), f"{file.suffix} changed a run")


def check_model_file(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Write the mechanism as TOML, read it again, and compare torques."""
    with refusals("model file"):
        file = folder / "model.toml"
        kt.save(system, file)
        again = kt.load(file)
        qdd = rng.normal(size=qd.shape)
        tau = system.inverse_dynamics(q, qd, qdd)
        require_close(again.inverse_dynamics(q, qd, qdd), tau, 1e-11 * (1 + np.abs(tau).max()), "torques after a file")


def check_loops(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Close the loops at a random position, and look at the gap."""
    del q, qd, folder
    if not system.closures:
        return
    with refusals("assembly"):
        closed, speed = system.random_state(rng)
        gap = system.closure_residual(closed)
        require(float(np.abs(gap).max(initial=0.0)) < 1e-8, f"loops of random_state gape by {np.abs(gap).max():.2g}")
        require(bool(np.isfinite(speed).all()), "closed speeds are not finite")


def check_page(system: kt.System, q, qd, rng: np.random.Generator, folder: Path) -> None:
    """Write a page, or C, now and then: both are large."""
    del qd
    if rng.random() < 0.2 and system.nv <= 10:
        with refusals("page"):
            require(len(system.page(q=q[0]).text) > 10_000, "a page without content")
    if rng.random() < 0.2:
        with refusals("export"):
            system.function("inverse_dynamics").save(folder / "id.c")
            require((folder / "id.c").stat().st_size > 100, "an empty file of C")


CHECKS: tuple[Callable, ...] = (
    check_dynamics, check_functions, check_derivatives, check_run, check_model_file, check_loops, check_page,
)  # fmt: skip
refused: Counter = Counter()
"""What the library refused with a reason, by check and text."""


class Unexpected(Exception):
    """A result that is wrong."""


def require(condition: bool, text: str) -> None:
    """Raise Unexpected unless the condition holds."""
    if not condition:
        raise Unexpected(text)


def require_close(a, b, bound: float, what: str) -> None:
    """Raise Unexpected unless all differences are finite and within the bound."""
    worst = float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))
    require(worst <= bound, f"{what}: differs by {worst:.3g}, bound {bound:.3g}")


@contextlib.contextmanager
def refusals(what: str) -> Iterator[None]:
    """Count a KinetreeError as a refusal, by what was tried and the start of its text."""
    try:
        yield
    except kt.KinetreeError as error:
        refused[f"{what}: {type(error).__name__}"] += 1


def as_tuple(result) -> tuple:
    """Return the outputs of a function as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def run_round(number: int, soak: Soak) -> None:
    """Draw a mechanism and states of a number, and make all checks, each of which may fail alone."""
    rng = np.random.default_rng(number)
    try:
        system = draw_mechanism(rng)
        q, qd = system.random_state(rng, (3,))
    except kt.KinetreeError as error:
        refused[f"mechanism: {type(error).__name__}"] += 1
        return
    with tempfile.TemporaryDirectory(prefix="kinetree-soak-") as folder:
        for check in CHECKS:
            try:
                check(system, q, qd, np.random.default_rng([number, CHECKS.index(check)]), Path(folder))
                soak.checks[check.__name__] += 1
            except Exception as error:  # any other end of a check is what the soak looks for
                text = f"{type(error).__name__}: {error}"
                failure = {"round": number, "mechanism": system.mechanism.name, "check": check.__name__, "error": text}
                soak.failures.append(failure)
                print(f"FAILED: --round {number}: {check.__name__} of {system.mechanism.name!r}: {text}", flush=True)
                traceback.print_exc()


def watch_memory(soak: Soak) -> None:
    """Record the resident memory and the open files of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    soak.memory.append((time.monotonic() - soak.started, resident, len(os.listdir("/proc/self/fd"))))


def growth(soak: Soak) -> float:
    """Return the slope of the memory over the second half of the rounds [MB per 100 rounds], 0 for a few."""
    half = [resident for _, resident, _ in soak.memory[len(soak.memory) // 2 :]]
    return 100 * float(np.polyfit(np.arange(len(half)), half, 1)[0]) if len(half) > 9 else 0.0


def report(soak: Soak) -> str:
    """Return the outcome as Markdown."""
    minutes = (time.monotonic() - soak.started) / 60
    resident = [row[1] for row in soak.memory]
    lines = [
        f"{len(soak.memory)} rounds in {minutes:.1f} minutes, {sum(soak.checks.values())} checks passed, "
        f"{len(soak.failures)} failed. Python {platform.python_version()}, NumPy {np.__version__}, "
        f"Kinetree {kt.__version__}, {platform.machine()}.",
        "",
        f"Memory: {resident[0]:.0f} MB after the first round, {resident[len(resident) // 2]:.0f} MB at half, "
        f"{resident[-1]:.0f} MB at the end; {growth(soak):.2f} MB per 100 rounds over the second half. "
        f"Open files: {soak.memory[0][2]} and {soak.memory[-1][2]}.",
        "",
        *(f"* {name}: {count} passed" for name, count in soak.checks.items()),
        *(f"* refused, {what}: {count}" for what, count in sorted(refused.items())),
        *(f"* FAILED, round {f['round']}, {f['mechanism']}, {f['check']}: {f['error']}" for f in soak.failures),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run rounds until the time is up, and write what was seen after each of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=120.0, help="how long rounds are begun")
    parser.add_argument("--round", type=int, help="make this round alone")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder of soak.md and soak.json")
    given = parser.parse_args()
    soak = Soak()
    with tempfile.TemporaryDirectory(prefix="kinetree-cache-") as cache:
        os.environ["KINETREE_CACHE_DIR"] = cache
        if given.round is not None:
            run_round(given.round, soak)
            return 1 if soak.failures else 0
        given.out.mkdir(parents=True, exist_ok=True)
        numbers = random.SystemRandom()
        with contextlib.suppress(KeyboardInterrupt):
            while time.monotonic() - soak.started < 60 * given.minutes:
                run_round(numbers.randrange(2**32), soak)
                watch_memory(soak)
                (given.out / "soak.md").write_text(report(soak))
                (given.out / "soak.json").write_text(
                    json.dumps({"failures": soak.failures, "refused": refused, "memory": soak.memory})
                )
    print(report(soak))
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
