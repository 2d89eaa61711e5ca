"""Rolled code as a gufunc, with its context, its tables and the memory that it owns."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.program import Array
from ..rolled.binding import Job, bind
from ..rolled.context import PAD, Layout, RolledUnit
from ..rolled.program import CLASS, COUNT, Step
from .gufunc import core_signature, register
from .native import loaded_text


@dataclass(frozen=True)
class Make:
    """Compiled code that computes numbers of the table from parameters, for one sample and for a vector of samples."""

    single: int
    wide: int
    loaded: Any


class RolledKernel:
    """A gufunc, its program, and the context that its code reads; the context begins with two counts of bad blocks."""

    def __init__(self, job: Job) -> None:
        """Compile the job, or read its code from the cache, and fill the tables."""
        self.program = bound = bind(job)
        ranks = tuple(len(a.shape) for a in (*bound.inputs, *bound.outputs))
        loaded = loaded_text(RolledUnit(bound.program, ranks, bound.make is not None), job.dtype)
        self._places = places = Layout(bound.program).places
        self.context = (ctypes.c_int64 * len(places))()
        kept = self._fill(job, places)
        signature = core_signature(job.inputs, (job.output,))
        doc = f"{job.name} of {job.mechanism.name}: {signature}"
        arity = (len(job.inputs), 1)
        owner = _Owner(self.context, places, loaded, kept)
        self.gufunc = register(loaded.find("kernel"), self.context, job.name, doc, signature, arity, job.dtype, owner)

    def _fill(self, job: Job, places: dict[str, int]) -> tuple:
        """Fill the context; return the objects that must live as long as it."""
        b, p = self.program, self.program.program
        segments, codes, table = b.segments, b.codes, b.table.astype(job.dtype)
        shifts = np.zeros(_padded(len(b.shifts)), dtype=job.dtype)
        shifts[: len(b.shifts)] = b.shifts
        make = None if b.make is None else _compiled(b.make, job.dtype)
        widths = np.array(p.slots, dtype=int)[segments[:, CLASS]]
        sizes = {a.name: a.size for a in job.inputs} | {"out": job.output.size}
        sizes |= {"sin": len(b.shifts), "cos": len(b.shifts), "slots": int(widths @ segments[:, COUNT])}
        sizes |= {"table": len(table), "made": len(b.make.results)} if b.make else {"table": 0, "made": 0}
        sizes |= {f"rows{k}": len(loop.keys) * (len(segments) + 1) for k, loop in enumerate(p.loops)}
        at, offsets = 0, {}
        for name in sizes:
            offsets[f"{name}@"] = at
            at += _padded(sizes[name])
        fields = {
            "segment_count": len(segments), "segments": segments.ctypes.data, "frame": len(segments),
            "table": table.ctypes.data, "entries": len(table), "code": codes.ctypes.data,
            "shifts": shifts.ctypes.data, "vectors": at, "input_vectors": offsets["out@"],
            "coordinates": len(b.shifts), "nv": job.mechanism.nv,
        }  # fmt: skip
        if make:
            fields |= {"make_1": make.single, "make": make.wide}
        for a in (*job.inputs, Array("out", job.output.shape)):
            shape = (1,) * (3 - len(a.shape)) + a.shape
            fields |= {f"{a.name}.{d}": n for d, n in enumerate(shape)}
        for name, value in (fields | offsets).items():
            self.context[places[name]] = value
        return segments, table, codes, shifts, make

    @property
    def workspace(self) -> int:
        """The size of the workspace of one sample, in numbers."""
        return self.context[self._places["vectors"]]

    def failures(self) -> int:
        """Return and reset the number of workspaces that could not be allocated."""
        place = self._places["failed"]
        count, self.context[place] = self.context[place], 0
        return count


def _padded(size: int) -> int:
    return max(PAD, -(-size // PAD) * PAD)


def _compiled(step: Step, dtype: str) -> Make:
    loaded = loaded_text(step, dtype)
    return Make(loaded.find("make1"), loaded.find("make"), loaded)


class _Owner:
    """The owner of the memory that the gufunc reads; its workspaces are freed at the end."""

    def __init__(self, context: Any, places: dict[str, int], loaded: Any, kept: tuple) -> None:
        self.kept = (context, loaded, kept)
        put = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.find("put"))
        pools = [ctypes.addressof(context) + 8 * places[name] for name in ("pool_1", "pool")]
        weakref.finalize(self, _release, self.kept, put, pools)


def _release(kept: tuple, put: Any, pools: list[int]) -> None:
    for pool in pools:
        put(pool, 0)
