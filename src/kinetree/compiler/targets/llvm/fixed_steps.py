"""Steps of one length: explicit Runge-Kutta methods, and maps that are a step by themselves."""

from __future__ import annotations

from collections.abc import Callable

from .ode import OdeKernel

ROUNDING = 1e-9
"""A number of steps that is whole but for this part is taken as whole."""


def emit_explicit(program, dtype: str, tableau, quaternions: list[int], closing=None) -> str:
    """Return the assembly of (q0, qd0[, parameters], times, dt) -> (q, qd)."""
    o = OdeKernel(program, dtype, len(tableau.b), quaternions, ["dt"], {}, closing)
    t, S = o.t, o.lanes.scalar

    def step(begin: str, h: str, m: str) -> None:
        wide, number = o.splat(h), t.new(f"sitofp i64 {m} to {S}")
        for s, (c, weights) in enumerate(zip(tableau.c, tableau.a, strict=True)):
            elapsed = t.new(f"fmul {S} {t.new(f'fadd {S} {number}, {o.lanes.number(c)}')}, {h}")
            o.advance(weights, wide, "%in", 1)
            o.rates(o.splat(t.new(f"fadd {S} {begin}, {elapsed}")), s)
        o.advance(tableau.b, wide, "%y", 0)
        o.normalize("%y")
        o.close_or_lose("%y")

    def run() -> None:
        o.keep("0")
        steps_between(o, step)

    return o.module(run)


def emit_map(program, dtype: str, quaternions: list[int], closing=None) -> str:
    """Return the same for a program that makes a step itself: its last input is the step's length."""
    o = OdeKernel(program, dtype, 1, quaternions, ["dt"], {}, closing)
    t, S = o.t, o.lanes.scalar
    place = sum(a.size for a in program.inputs) - 1

    def step(begin: str, h: str, m: str) -> None:
        elapsed = t.new(f"fmul {S} {t.new(f'sitofp i64 {m} to {S}')}, {h}")
        o.advance((), h, "%in", 1)
        o.store(o.splat(h), "%in", place)
        o.rates(o.splat(t.new(f"fadd {S} {begin}, {elapsed}")), 0)
        t.loop(o.n, 1, lambda j: o.store(o.load("%k", j), "%y", j))
        o.close_or_lose("%y")

    def run() -> None:
        o.keep("0")
        steps_between(o, step)

    return o.module(run)


def steps_between(o: OdeKernel, step: Callable[[str, str, str], None]) -> None:
    """Write the loops over times, of which there are at least two, and over steps between them.

    Between two times as few equal steps are taken as are not longer than dt; `step` gets the time at the beginning of
    the interval, the step's length and its number, and moves %y on.
    """
    t, S = o.t, o.lanes.scalar
    longest = o.scalar("dt")

    def whole(ratio: str) -> str:
        below = t.new(f"fptosi {S} {t.new(f'fsub {S} {ratio}, {o.lanes.number(ROUNDING)}')} to i64")
        steps = t.new(f"add i64 {below}, 1")
        return t.new(f"select i1 {t.new(f'icmp slt i64 {steps}, 1')}, i64 1, i64 {steps}")

    def interval(j: str) -> None:
        following = t.new(f"add i64 {j}, 1")
        begin = o.time(j)
        span = t.new(f"fsub {S} {o.time(following)}, {begin}")
        steps = whole(t.new(f"fdiv {S} {span}, {longest}"))
        h = t.new(f"fdiv {S} {span}, {t.new(f'sitofp i64 {steps} to {S}')}")
        t.loop(steps, 1, lambda m: step(begin, h, m))
        o.keep(following)

    t.loop(t.new("sub i64 %count, 1"), 1, interval)
