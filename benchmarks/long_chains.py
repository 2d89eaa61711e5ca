"""Long chains: nanoseconds per link over the number of links, with Pinocchio, and the limits of other libraries.

Run by ./dev bench, or alone: python benchmarks/long_chains.py [--quick].
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np

import kinetree as kt
from measure import Contender, Figure, agree, interleaved, one_thread, pin_to_one_core
from report import Table

LENGTHS = (100, 200, 300, 1_000, 10_000, 100_000)
BESIDE = 300
"""The most links for which Pinocchio is timed: the size of its data grows faster than the chain."""
BATCH = 256
MEMORY = 4
"""Memory limit of a peer [GiB]."""
TARGETS = {"forward_dynamics": 150.0, "inverse_dynamics": 60.0}
"""Target times per link [ns], for one sample of a chain of any length."""


@dataclass(frozen=True)
class Length:
    """One chain: ns per link of one sample and of a sample in a batch, by function; ratios to Pinocchio, if it ran."""

    links: int
    making: float
    single: dict[str, Figure]
    batch: dict[str, Figure]
    ratios: dict[str, Figure]
    batch_ratios: dict[str, Figure]
    difference: float


def general_chain(n: int, seed: int = 0) -> kt.Mechanism:
    """Return a chain of revolute joints with axes in all directions and without zeros in its data."""
    rng = np.random.default_rng(seed)
    turns = [_rotation(rng) for _ in range(64)]
    offsets = [tuple(map(float, rng.normal(size=3) * 0.05 + (0.1, 0.0, 0.0))) for _ in range(64)]
    moments = (1e-5, 1.1e-4, 1.05e-4, 1e-6, 2e-6, -1e-6)
    bodies = tuple(kt.Body(f"b{k}", 0.1, (0.05, 0.003, -0.002), moments) for k in range(n))
    joints = tuple(
        kt.Joint(
            f"j{k}",
            "revolute",
            f"b{k - 1}" if k else kt.GROUND,
            f"b{k}",
            kt.Placement(offsets[k % 64], turns[k % 64]),  # type: ignore[arg-type]
        )
        for k in range(n)
    )
    return kt.Mechanism("chain", bodies, joints)


def _rotation(rng: np.random.Generator) -> tuple:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return tuple(tuple(map(float, row)) for row in q * np.linalg.det(q))


def measure_length(n: int, rounds: int) -> Length:
    """Time one chain."""
    start = time.perf_counter()
    system = kt.System(general_chain(n))
    functions = {name: system.function(name) for name in TARGETS}
    making = time.perf_counter() - start
    rng = np.random.default_rng(1)
    count = max(8, min(BATCH, 1_000_000 // n))
    one, many = rng.normal(size=(3, n)), rng.normal(size=(3, count, n))
    out, room = np.empty(n), np.empty((count, n))
    contenders = {}
    for name, f in functions.items():
        contenders[name] = Contender(lambda f=f: f.gufunc(*one, out=out), n)
        contenders[f"{name}, batch"] = Contender(lambda f=f: f.gufunc(*many, out=room), n * count)
    difference = 0.0
    if n <= BESIDE:
        import pinocchio as pin

        model = pinocchio_chain(system.mechanism)
        data = model.createData()
        contenders["peer forward_dynamics"] = Contender(lambda: pin.aba(model, data, *one), n)
        contenders["peer inverse_dynamics"] = Contender(lambda: pin.rnea(model, data, *one), n)
        difference = max(
            agree(f"{n} links, inverse", functions["inverse_dynamics"](*one), pin.rnea(model, data, *one), 1e-10),
            agree(f"{n} links, forward", functions["forward_dynamics"](*one), pin.aba(model, data, *one), 1e-10),
        )
    times = interleaved(contenders, rounds if n < 10_000 else max(5, rounds // 3))

    def ratio(name: str, ours: str) -> Figure:
        return Figure.of([a / b for a, b in zip(times[f"peer {name}"], times[ours], strict=True)])

    beside = TARGETS if n <= BESIDE else ()
    return Length(
        n,
        making,
        {name: Figure.of(times[name]) for name in TARGETS},
        {name: Figure.of(times[f"{name}, batch"]) for name in TARGETS},
        {name: ratio(name, name) for name in beside},
        {name: ratio(name, f"{name}, batch") for name in beside},
        difference,
    )


def pinocchio_chain(mechanism: kt.Mechanism):
    """Return Pinocchio's model of a chain of revolute joints about z."""
    import pinocchio as pin

    model, joint = pin.Model(), 0
    model.gravity = pin.Motion(np.array(mechanism.gravity), np.zeros(3))
    for body, j in zip(mechanism.bodies, mechanism.joints, strict=True):
        place = pin.SE3(np.array(j.placement.rotation), np.array(j.placement.translation))
        joint = model.addJoint(joint, pin.JointModelRZ(), place, j.name)
        xx, yy, zz, xy, yz, zx = body.inertia
        inertia = np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
        model.appendBodyToJoint(joint, pin.Inertia(body.mass, np.array(body.com), inertia), pin.SE3.Identity())
    return model


PINOCCHIO = """
import resource, sys, numpy as np, pinocchio as pin
n, limit = int(sys.argv[1]), int(sys.argv[2])
model, joint = pin.Model(), 0
for k in range(n):
    joint = model.addJoint(joint, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([0.1, 0.0, 0.0])), f"j{k}")
    model.appendBodyToJoint(joint, pin.Inertia(0.1, np.array([0.05, 0.0, 0.0]), np.eye(3) * 1e-4), pin.SE3.Identity())
def peak():  # of this process: ru_maxrss starts from that of the process which started it
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
before = peak()
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
data = model.createData()
pin.aba(model, data, *np.zeros((3, n)))
print((peak() - before) / 1024)
"""
MUJOCO = """
import sys, mujoco
n = int(sys.argv[1])
body = '<body pos="0.1 0 0"><joint axis="0 0 1"/><geom type="capsule" size="0.01" fromto="0 0 0 0.1 0 0"/>'
model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body * n}{'</body>' * n}</worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
print(model.nv)
"""


def peers_end(lengths: tuple[int, ...]) -> list[tuple[str, str, str]]:
    """Return the outcome of increasingly long chains in the peers, each in a process of its own."""
    out = []
    for n in lengths:
        done = _child(PINOCCHIO, str(n), str(MEMORY * 2**30))
        text = f"data of {float(done.stdout):,.0f} MiB" if done.returncode == 0 else _end(done)
        out.append((f"{n:,}", "Pinocchio, createData and aba", text))
    for n in lengths:
        done = _child(MUJOCO, str(n))
        out.append((f"{n:,}", "MuJoCo, nested bodies", "runs" if done.returncode == 0 else _end(done)))
    return out


def _child(script: str, *arguments: str) -> subprocess.CompletedProcess:
    limit = MEMORY * 2**30

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    try:
        return subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60, preexec_fn=bounded
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], 1, "", "no end within 60 s")


def _end(done: subprocess.CompletedProcess) -> str:
    """Return how a process ended, in few words."""
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return f"fails: {lines[-1][:90]}" if lines else "fails"


def tables(quick: bool) -> list[Table]:
    """Return the measurements as tables."""
    found = [measure_length(n, 5 if quick else 21) for n in LENGTHS]
    rows = []
    for x in found:
        for name, target in TARGETS.items():
            met = "met" if x.single[name].median < target else "missed"
            rows.append((
                f"{x.links:,}", name.split("_")[0], x.single[name].text(), f"< {target:g}: {met}", x.batch[name].text(),
                x.ratios[name].text() if x.ratios else "-", x.batch_ratios[name].text() if x.ratios else "-",
                f"{x.making:.2f}",
            ))  # fmt: skip
    flat = {
        name: max(f) / min(f) for name in TARGETS if (f := [x.single[name].median for x in found if x.links >= 1_000])
    }
    worst = max(x.difference for x in found)
    note = (
        "Revolute joints with axes in all directions; ns per link, for one sample and for a sample of a batch of up to "
        f"{BATCH}; `out=` given. From 1,000 to 100,000 links the time per link changes by a factor of "
        f"{flat['forward_dynamics']:.2f} (forward) and {flat['inverse_dynamics']:.2f} (inverse). Ratios are to "
        f"Pinocchio's `aba` and `rnea`, one call per sample; both agree to {worst:.1e} relative. Making is everything "
        "before the first call of both functions, compiling included."
    )
    columns = (
        "links", "function", "one sample [ns]", "target", "in a batch [ns]", "Pinocchio / one", "Pinocchio / batch",
        "making [s]",
    )  # fmt: skip
    ends = (
        f"Each chain in a process of its own with at most {MEMORY} GiB. Our forward dynamics requires about "
        f"{_bytes_a_link():.0f} bytes per link for one sample beyond its arrays, for any length."
    )
    return [
        Table("Long chains", columns, tuple(rows), note),
        Table("Where peers end", ("links", "peer", "outcome"), tuple(peers_end((100, 200, 400, 1_000))), ends),
    ]


def _bytes_a_link() -> float:
    f = kt.System(general_chain(10_000)).function("forward_dynamics")
    return f.workspace / 10_000


if __name__ == "__main__":
    from rich.console import Console

    one_thread()
    pin_to_one_core()
    console = Console(width=160, highlight=False, markup=False)
    for table in tables("--quick" in sys.argv):
        table.show(console)
