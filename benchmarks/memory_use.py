"""Peak memory of a batch and of long chains, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from book import Section
from measure import NotMeasured
from report import Table
from robots import ROBOTS

BATCH = 1_000_000
LINKS = (1_000, 10_000, 100_000)
PEAK = """
import json, sys, numpy as np
sys.path.insert(0, sys.argv[1])
def reset():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts anew from what is held now
def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024
def held():
    return status("VmRSS:")
def peak():
    return status("VmHWM:")
"""
SAMPLES = """
import kinetree as kt
arm = kt.load(sys.argv[2])
function, n = arm.function(sys.argv[3], forces=False), int(sys.argv[4])
function(*np.ones((3, 8, arm.nv)))
start = held()
state, out = [np.full((n, arm.nv), 0.1) for _ in range(3)], np.ones((n, arm.nv))
arrays = held()
reset()
function.gufunc(*state, out=out)
print(json.dumps([start, arrays - start, peak() - arrays]))
"""
CHAIN = """
import kinetree as kt
from long_chains import general_chain
n = int(sys.argv[2])
small = kt.System(general_chain(100)).function("forward_dynamics", lowering="rolled")
small(*np.zeros((3, 100)))
start = held()
chain = kt.System(general_chain(n))
function = chain.function("forward_dynamics")
made = peak()
state, out = np.full((3, n), 0.1), np.ones(n)
before = held()
reset()
function.gufunc(*state, out=out)
print(json.dumps([start, made - start, peak() - before, function.workspace / n]))
"""


def section(quick: bool) -> Section:
    """Return the memory that batches and chains take beyond their arrays."""
    if not Path("/proc/self/clear_refs").exists():
        raise NotMeasured("peaks of memory are read from /proc, which this system does not have")
    count = BATCH // 10 if quick else BATCH
    batches, chains = [], []
    for name in ("inverse_dynamics", "forward_dynamics"):
        start, arrays, more = _child(SAMPLES, str(ROBOTS[0].path), name, str(count))
        batches.append((f"UR5, {name.split('_')[0]}", f"{count:,}", *(f"{x:,.1f}" for x in (start, arrays, more))))
    for n in LINKS[:2] if quick else LINKS:
        start, made, more, workspace = _child(CHAIN, str(n))
        cells = (*(f"{x:,.1f}" for x in (start, made, more)), f"{made * 2**20 / n:,.0f}", f"{workspace:,.0f}")
        chains.append((f"{n:,}", *cells))
    note = (
        "Resident memory (Linux): of the process with the function ready, what its arrays add, and how far the peak "
        "rises above that in the call."
    )
    chain_note = (
        "Forward dynamics of one sample: the process with a short chain ready, what making the chain adds (bodies and "
        "joints in Python, tables for the kernel; its peak), and what the call adds: what fits into memory that Python "
        "had freed before does not show, so the workspace that the kernel requests is listed as well."
    )
    columns = ("links", "process [MiB]", "the chain [MiB]", "the call [MiB]", "the chain [bytes per link]",
               "workspace [bytes per link]")  # fmt: skip
    return Section(
        "Memory",
        f"A call on {count:,} samples adds {max(float(b[-1]) for b in batches):.1f} MiB beyond its arrays; one on a "
        f"chain of {chains[-1][0]} links {chains[-1][-1]} bytes per link.",
        (
            Table(
                "Batches",
                ("function", "samples", "process [MiB]", "arrays [MiB]", "the call [MiB]"),
                tuple(batches),
                note,
            ),
            Table("Chains", columns, tuple(chains), chain_note),
        ),
    )


def _child(script: str, *arguments: str) -> list[float]:
    here = str(Path(__file__).resolve().parent)
    done = subprocess.run(
        [sys.executable, "-c", PEAK + script, here, *arguments], stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout)
