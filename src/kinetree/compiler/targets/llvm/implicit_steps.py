"""Implicit Runge-Kutta methods with steps of one length, their stages found by fixed-point iteration.

A lane iterates until its stages stop to come closer, which is at the last bit, and then waits: how often its neighbours
iterate does not matter to it.
"""

from __future__ import annotations

from .fixed_steps import steps_between
from .ode import OdeKernel

MOST = 60
"""Iterations of one step; a step that needs more is too long for the method and makes the state NaN, which shows."""

CLOSE = 1e-9
"""Below this relative change of the stages, a change that does not shrink any more is rounding."""


def emit_implicit(program, dtype: str, tableau, quaternions: list[int], closing=None) -> str:
    """Return the assembly of (q0, qd0[, parameters], times, dt) -> (q, qd)."""
    stages = len(tableau.b)
    o = OdeKernel(program, dtype, 2 * stages, quaternions, ["dt"], {}, closing)
    return _Implicit(o, tableau, stages).module()


class _Implicit:
    """The writer of one kernel; stages are iterated in the second half of %k and kept in the first."""

    def __init__(self, o: OdeKernel, tableau, stages: int) -> None:
        self.o, self.t, self.tableau, self.stages = o, o.t, tableau, stages
        self.V, self.mask = o.lanes.vector, o.lanes.mask

    def module(self) -> str:
        o, t = self.o, self.t

        def run() -> None:
            entry = t.lines.index("  %last = sub i64 %n, 1")
            t.lines[entry:entry] = [
                f"  %size = alloca {self.V}, i64 4, align 64",  # change, former change, size of the stages, done
                "  %tries = alloca i64",
            ]
            o.keep("0")
            steps_between(o, self.step)

        return o.module(run)

    def step(self, begin: str, h: str, m: str) -> None:
        """Write one step: iterate the stages, then advance."""
        o, t, S = self.o, self.t, self.o.lanes.scalar
        wide, number = o.splat(h), t.new(f"sitofp i64 {m} to {S}")
        moments = []
        for c in self.tableau.c:
            elapsed = t.new(f"fmul {S} {t.new(f'fadd {S} {number}, {o.lanes.number(c)}')}, {h}")
            moments.append(o.splat(t.new(f"fadd {S} {begin}, {elapsed}")))
        # The stages start as the rates at the beginning of the step.
        o.advance((), wide, "%in", 1)
        o.rates(o.splat(t.new(f"fadd {S} {begin}, {t.new(f'fmul {S} {number}, {h}')}")), 0)
        for s in range(1, self.stages):
            t.loop(o.n, 1, lambda j, s=s: o.store(o.load("%k", j), "%k", t.new(f"add i64 {j}, {s * o.n}")))
        for k, start in enumerate((0.0, 1e300 if o.lanes.bits == 64 else 1e37, 0.0, 0.0)):
            o.store(o.lanes.constant(start), "%size", k)
        t.put("  store i64 0, ptr %tries")
        t.repeat(lambda: self.iterate(wide, moments))
        o.advance(self.tableau.b, wide, "%y", 0)
        o.lose(self.compare("oeq", o.load("%size", 3), "zeroinitializer"), "%y")  # stages that were not found
        o.normalize("%y")
        o.close_or_lose("%y")

    def iterate(self, h: str, moments: list[str]) -> str:
        """Write one iteration of all stages; return whether a lane goes on."""
        o, t, n = self.o, self.t, self.o.n
        done = self.compare("ogt", o.load("%size", 3), "zeroinitializer")
        o.store("zeroinitializer", "%size", 0)
        o.store("zeroinitializer", "%size", 2)
        for s, weights in enumerate(self.tableau.a):
            o.advance(weights, h, "%in", 1)
            o.rates(moments[s], self.stages + s)
        for s in range(self.stages):
            t.loop(n, 1, lambda j, s=s: self.renew(done, j, s))
        change, former, size = (o.load("%size", k) for k in range(3))
        close = self.compare("ole", change, self.op("fmul", size, o.lanes.constant(CLOSE)))
        stuck = self.compare("oge", change, former)
        still = self.compare("oeq", change, "zeroinitializer")
        finished = t.new(f"or {self.mask} {t.new(f'and {self.mask} {close}, {stuck}')}, {still}")
        now_done = t.new(f"or {self.mask} {done}, {finished}")
        o.store(self.select(now_done, o.lanes.constant(1.0), "zeroinitializer"), "%size", 3)
        o.store(self.select(done, former, change), "%size", 1)
        tries = t.new(f"add i64 {t.new('load i64, ptr %tries')}, 1")
        t.put(f"  store i64 {tries}, ptr %tries")
        bits = t.new(f"bitcast {self.mask} {now_done} to i{o.lanes.count}")
        open_ = t.new(f"icmp ne i{o.lanes.count} {bits}, -1")
        return t.new(f"and i1 {open_}, {t.new(f'icmp slt i64 {tries}, {MOST}')}")

    def renew(self, done: str, j: str, s: int) -> None:
        """Write the new value of one entry of a stage, and its part in the change."""
        o, t = self.o, self.t
        old_place = t.new(f"add i64 {j}, {s * o.n}")
        old = o.load("%k", old_place)
        new = self.select(done, old, o.load("%k", t.new(f"add i64 {j}, {(self.stages + s) * o.n}")))
        o.store(new, "%k", old_place)
        self.raise_to(0, self.op("fsub", new, old))
        self.raise_to(2, new)

    def raise_to(self, k: int, x: str) -> None:
        """Write the larger of a size and |x|; NaN stays."""
        o = self.o
        known, size = o.load("%size", k), o.size(x)
        o.store(self.select(self.compare("ugt", size, known), size, known), "%size", k)

    def op(self, name: str, a: str, b: str) -> str:
        return self.t.new(f"{name} {self.V} {a}, {b}")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.t.new(f"fcmp {how} {self.V} {a}, {b}")

    def select(self, mask: str, yes: str, no: str) -> str:
        return self.t.new(f"select {self.mask} {mask}, {self.V} {yes}, {self.V} {no}")
