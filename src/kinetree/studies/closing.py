"""Closed positions of many designs: Newton's method in native code along a path from one closed position.

Each row of a batch depends on its own numbers alone, so that its bits do not depend on the rows around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.ir.program import Program
from ..compiler.ir.trace import Op
from ..model.scales import loop_units
from ..simulation.compiled_parts import kept_of
from ..simulation.loop_closing import Closer, closing_program
from ..system import System

PATHS = (8, 64)
"""The numbers of steps from the known position to a design; more steps are taken if fewer do not arrive."""

JUMP = 0.5
"""The largest correction of a predicted position [rad, or lengths of the mechanism]: more would be a jump to another
assembly mode, since steps are a tenth of it."""


@dataclass(frozen=True, eq=False)
class HeldClosing:
    """The closing of the loops of a System with some degrees of freedom held, by their entries in q and in qd."""

    system: System
    q: tuple[int, ...]
    v: tuple[int, ...]

    @cached_property
    def closer(self) -> Closer:
        """The compiled closing."""
        mechanism, held = self.system.mechanism, frozenset(self.v)
        return kept_of(self.system).part(
            ("closer", held), lambda: Closer.of_program(closing_program(mechanism, locked=held))
        )

    def close(self, q: Numbers, qd: Numbers, values: Numbers | None) -> tuple[Numbers, Numbers]:
        """Return states [n, .] with closed loops; NaN where they do not close near the given ones."""
        if not self.system.closures:
            return q, qd
        with np.errstate(all="ignore"):
            found, speeds = self.closer.close(q, qd, values)
            step = self.system.difference(q, found, **self._options(values)) / loop_units(self.system.mechanism)[1]
            jumped = ~(np.abs(step).max(axis=-1, keepdims=True, initial=0.0) <= JUMP)
        return np.where(jumped, np.nan, found), np.where(jumped, np.nan, speeds)

    def predicted(self, q: Numbers, dq: Numbers, values: Numbers | None) -> Numbers:
        """Return positions after a displacement."""
        with np.errstate(all="ignore"):
            return self.system.integrate(q, dq, **self._options(values))

    def _options(self, values: Numbers | None) -> dict:
        return {"check": False} | ({} if values is None else {"parameters": values})

    def arrived(self, q0: Numbers, first: Numbers | None, values: Numbers | None, held: Numbers) -> Numbers:
        """Return closed positions of designs [n, nq], from a closed position q0 [nq] of the parameters `first`.

        `held` are the coordinates of the held degrees of freedom [n, .]. Rows that do not close are NaN.
        """
        count = len(held)
        out = np.full((count, len(q0)), np.nan)
        missing = np.ones(count, dtype=bool)
        for steps in PATHS:
            if not missing.any():
                break
            own = values[missing] if values is not None and values.ndim > 1 else values
            out[missing] = self._along(q0, first, own, held[missing], steps)
            missing = ~np.isfinite(out).all(axis=-1)
        return out

    def _along(self, q0: Numbers, first: Numbers | None, values: Numbers | None, held: Numbers, steps: int) -> Numbers:
        at, places = np.repeat(q0[None], len(held), axis=0), list(self.q)
        rest = np.zeros((len(held), self.system.nv))
        for k in range(1, steps + 1):
            part = k / steps
            tried = at.copy()
            tried[:, places] = held if k == steps else q0[places] + part * (held - q0[places])
            now = values
            if values is not None and first is not None and values.ndim > 1 and k < steps:
                now = first + part * (values - first)
            at, _ = self.close(tried, rest, now)
        return at


def depends_on_parameters(system: System, entries: Sequence[int]) -> bool:
    """Return whether the equations of the loops contain some of the free parameters, by their entries."""
    if not system.closures or not entries:
        return False
    program = system.function("closure_residual").program
    if not isinstance(program, Program):  # rolled code: not examined
        return True
    group = [array.name for array in program.inputs].index("parameters")
    return any(op[0] is Op.INPUT and op[1] == group and op[2] in entries for op in program.ops)
