"""Runge-Kutta methods with steps of one length."""

from __future__ import annotations

from .llvm_ode import OdeKernel

ROUNDING = 1e-9
"""A number of steps that is whole but for this part is taken as whole."""


def emit_fixed(program, dtype: str, tableau, quaternions: list[int]) -> str:
    """Return the assembly of (q0, qd0[, parameters], times, dt) -> (q, qd).

    Between two times, of which there are at least two, it takes as few equal steps as are not longer than dt.
    """
    o = OdeKernel(program, dtype, len(tableau.b), quaternions, ["dt"], {})
    t, S = o.t, o.lanes.scalar

    def step(begin: str, h: str, m: str) -> None:
        wide, number = o.splat(h), t.new(f"sitofp i64 {m} to {S}")
        for s, (c, weights) in enumerate(zip(tableau.c, tableau.a, strict=True)):
            elapsed = t.new(f"fmul {S} {t.new(f'fadd {S} {number}, {o.lanes.number(c)}')}, {h}")
            o.advance(weights, wide, "%in", 1)
            o.rates(o.splat(t.new(f"fadd {S} {begin}, {elapsed}")), s)
        o.advance(tableau.b, wide, "%y", 0)
        o.normalize("%y")

    def interval(longest: str, j: str) -> None:
        following = t.new(f"add i64 {j}, 1")
        begin = o.time(j)
        span = t.new(f"fsub {S} {o.time(following)}, {begin}")
        steps = whole(t.new(f"fdiv {S} {span}, {longest}"))
        h = t.new(f"fdiv {S} {span}, {t.new(f'sitofp i64 {steps} to {S}')}")
        t.loop(steps, 1, lambda m: step(begin, h, m))
        o.keep(following)

    def whole(ratio: str) -> str:
        """Write the smallest whole number, at least one, that is not below a ratio but for rounding."""
        below = t.new(f"fptosi {S} {t.new(f'fsub {S} {ratio}, {o.lanes.number(ROUNDING)}')} to i64")
        steps = t.new(f"add i64 {below}, 1")
        return t.new(f"select i1 {t.new(f'icmp slt i64 {steps}, 1')}, i64 1, i64 {steps}")

    def run() -> None:
        o.keep("0")
        longest = o.scalar("dt")
        t.loop(t.new("sub i64 %count, 1"), 1, lambda j: interval(longest, j))

    return o.module(run)
