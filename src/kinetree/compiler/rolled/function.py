"""A page of sweeps as a gufunc of rolled code: its context, its tables, and its life in memory."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ...dynamics import Algorithm
from ...model.mechanism import Mechanism
from ..ir.operations import count
from ..ir.program import Array
from ..runtime.gufunc import core_signature, register
from ..runtime.loaded import loaded_text
from .context import PAD, Layout, RolledUnit
from .numbers import Numbers, Table
from .program import RolledProgram, rolled_program
from .tables import COUNT, FIRST_Q, ROW, SLOT, Bodies, bodies_of, known
from .tree import RolledTree


@dataclass(frozen=True)
class Job:
    """What is to be compiled: a page of a mechanism, with its arrays and options."""

    mechanism: Mechanism
    name: str
    algorithm: Algorithm
    inputs: tuple[Array, ...]
    output: Array
    frame: str | None = None
    axes: str | None = None
    wrenches: bool = False
    dtype: str = "float64"

    def trace(self, bodies: Bodies, given: list[dict[str, Any]]) -> RolledProgram:
        """Run the page on the classes of bodies, whose numbers are given."""
        names = tuple(a.name for a in self.inputs)
        tree = RolledTree(self.mechanism, bodies.classes, frozenset(names), [known(x) for x in given])
        options = {"frame": self.frame} if self.algorithm.frame else {}
        if self.algorithm.axes:
            options["axes"] = self.axes
        result = self.algorithm.page(tree, **options)
        return rolled_program(self.name, tree, names, result, coordinates="nq" in self.algorithm.shape)


class RolledKernel:
    """A gufunc, with the context that its code reads; `context` begins with the counts of numbers not finite."""

    def __init__(self, job: Job) -> None:
        """Compile, or fetch from the cache, and fill the tables."""
        self.bodies = bodies_of(job.mechanism, frame=job.frame, wrenches=job.wrenches)
        numbers_ = Numbers(job.mechanism, job.frame, job.dtype, self.bodies)
        self.program = job.trace(self.bodies, numbers_.classes)
        widths = np.array([*map(len, self.program.columns)], dtype=int)
        rows = np.cumsum([len(self.program.shared), *widths[self.bodies.of_class]])
        table = numbers_.table(self.program, rows)
        ranks = (*(len(a.shape) for a in job.inputs), len(job.output.shape))
        loaded = loaded_text(RolledUnit(self.program, ranks, table.make is not None), job.dtype)
        self._places = places = Layout(self.program).places
        self.context = (ctypes.c_int64 * len(places))()
        kept = self._fill(job, places, numbers_, table, rows)
        signature = core_signature(job.inputs, (job.output,))
        doc = f"{job.name} of {job.mechanism.name}: {signature}"
        arity = (len(job.inputs), 1)
        owner = _Owner(self.context, places, loaded, kept)
        self.gufunc = register(loaded.find("kernel"), self.context, job.name, doc, signature, arity, job.dtype, owner)

    def cost(self) -> dict[str, int]:
        """Return the operations of one sample, all bodies together."""
        out: dict[str, int] = {}
        counts = np.bincount(self.bodies.of_class, minlength=len(self.bodies.classes))
        steps = [(s, int(n)) for loop in self.program.loops for s, n in zip(loop.steps, counts, strict=True)]
        for step, times in [*steps, (self.program.last, 1)]:
            for what, n in count(step.ops).items():
                out[what] = out.get(what, 0) + n * times
        return out

    def _fill(self, job: Job, places: dict[str, int], numbers_: Numbers, table: Table, rows: np.ndarray) -> tuple:
        """Write the context; return what must live as long as it."""
        b, p = self.bodies, self.program
        segments = b.segments.copy()
        slot_rows = np.cumsum([0, *np.array(p.slots, dtype=int)[b.of_class]])
        first = np.flatnonzero(b.starts)
        segments[:, ROW], segments[:, SLOT] = rows[first], slot_rows[first]
        shifts = np.zeros(_padded(job.mechanism.nq), dtype=job.dtype)
        sizes = {a.name: a.size for a in job.inputs} | {"out": job.output.size}
        angles = job.mechanism.nq if p.angles else 0
        if p.angles:
            _shift(b, numbers_.classes, shifts)
        sizes |= {"sin": angles, "cos": angles, "slots": int(slot_rows[-1])}
        make = table.make
        sizes |= {"table": len(table.numbers) if make else 0, "made": make.count if make else 0}
        sizes |= {f"rows{k}": len(loop.keys) * (len(segments) + 1) for k, loop in enumerate(p.loops)}
        at, offsets = 0, {}
        for name in sizes:
            offsets[f"{name}@"] = at
            at += _padded(sizes[name])
        fields = {
            "segment_count": len(segments), "segments": segments.ctypes.data, "frame": len(segments),
            "table": table.numbers.ctypes.data, "entries": len(table.numbers), "code": table.codes.ctypes.data,
            "shifts": shifts.ctypes.data, "vectors": at, "input_vectors": offsets["out@"], "coordinates": angles,
            "nv": job.mechanism.nv,
        }  # fmt: skip
        if make:
            fields |= {"make_1": make.single, "make": make.wide}
        for a in (*job.inputs, Array("out", job.output.shape)):
            shape = (1,) * (3 - len(a.shape)) + a.shape
            fields |= {f"{a.name}.{d}": n for d, n in enumerate(shape)}
        for name, value in (fields | offsets).items():
            self.context[places[name]] = value
        return segments, table, shifts

    @property
    def workspace(self) -> int:
        """The numbers of one sample's workspace."""
        return self.context[self._places["vectors"]]

    def failures(self) -> int:
        """Return how often no workspace could be had since this was last asked."""
        place = self._places["failed"]
        count, self.context[place] = self.context[place], 0
        return count


def _padded(size: int) -> int:
    return max(PAD, -(-size // PAD) * PAD)


def _shift(b: Bodies, given: list[dict[str, Any]], shifts: np.ndarray) -> None:
    """Write the thetas of lean revolute joints."""
    segments = b.segments
    of_body = np.repeat(np.arange(len(segments)), segments[:, COUNT])
    for c, what in enumerate(b.classes):
        if what.lean and joint_kinds.kind(what.kind).AXIAL == joint_kinds.ROTATION:
            members = b.members(c)
            theta = np.arctan2(given[c]["st"], given[c]["ct"])
            first = np.flatnonzero(b.starts)[of_body[members]]
            shifts[segments[of_body[members], FIRST_Q] + members - first] = theta


class _Owner:
    """Keeps what the gufunc needs, and gives its workspaces back in the end."""

    def __init__(self, context: Any, places: dict[str, int], loaded: Any, kept: tuple) -> None:
        self.kept = (context, loaded, kept)
        put = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.find("put"))
        pools = [ctypes.addressof(context) + 8 * places[name] for name in ("pool_1", "pool")]
        weakref.finalize(self, _release, self.kept, put, pools)


def _release(kept: tuple, put: Any, pools: list[int]) -> None:
    for pool in pools:
        put(pool, 0)
