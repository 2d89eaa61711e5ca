"""Integrators as gufuncs: the rates of a state and a method in, one native function of whole runs out."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...compiler.ir.program import Program
from ...compiler.runtime import cache
from ...compiler.runtime.gufunc import register
from ...joints import kind
from ...model.mechanism import Mechanism
from ..stabilization import ProgramCloser
from ..tableaus import Pair, Tableau


def quaternion_places(mechanism: Mechanism) -> list[int]:
    """Return where in q the quaternions start."""
    places, at = [], 0
    for joint in mechanism.joints:
        count = kind(joint.kind).NQ
        if joint.kind in ("spherical", "free"):
            places.append(at + count - 4)
        at += count
    return places


@dataclass(frozen=True)
class Stepper:
    """One method on one program of rates; `method` is None for a program that makes steps by itself.

    `closing` keeps loops closed after each step (closing.py).
    """

    program: Program
    method: Tableau | Pair | None
    quaternions: tuple[int, ...]
    dtype: str = "float64"
    closing: Program | None = None

    @property
    def adaptive(self) -> bool:
        """Whether the method chooses its steps."""
        return isinstance(self.method, Pair)

    @cached_property
    def closer(self) -> ProgramCloser | None:
        """What closes the loops of states between steps."""
        return ProgramCloser(self.closing) if self.closing else None

    @cached_property
    def gufunc(self) -> np.ufunc:
        """The native function: (q0, qd0[, parameters], times, dt) -> (q, qd), or with settings and a report."""
        from ...compiler.targets.llvm import machine as llvm

        options = repr((self.method, self.quaternions, self.dtype, self.closing.hash if self.closing else None))
        name = cache.digest(self.program.hash, options, llvm.fingerprint())
        loaded = llvm.Loaded(cache.fetch(name, lambda: llvm.compile_assembly(self._assembly())))
        sizes = {a.name: a.size for a in self.program.inputs}
        given = [f"({sizes[n]})" for n in ("q", "qd", "parameters") if n in sizes]
        settings, report = (4, ["(6)"]) if self.adaptive else (1, [])
        results = [f"(t,{sizes['q']})", f"(t,{sizes['qd']})", *report]
        signature = ",".join([*given, "(t)", *["()"] * settings]) + "->" + ",".join(results)
        arity = (len(given) + 1 + settings, len(results))
        label = self.method.name if self.method else self.program.name
        return register(loaded.address, (ctypes.c_int64 * 2)(), label, signature, signature, arity, self.dtype, loaded)

    def _assembly(self) -> str:
        from ...compiler.targets.llvm import adaptive_steps, fixed_steps, implicit_steps

        places = list(self.quaternions)
        if self.method is None:
            return fixed_steps.emit_map(self.program, self.dtype, places, self.closing)
        if isinstance(self.method, Pair):
            return adaptive_steps.emit_adaptive(self.program, self.dtype, self.method, places, self.closing)
        implicit = len(self.method.a[0]) == len(self.method.b)
        emit = implicit_steps.emit_implicit if implicit else fixed_steps.emit_explicit
        return emit(self.program, self.dtype, self.method, places, self.closing)
