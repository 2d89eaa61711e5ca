"""Embedded Runge-Kutta pairs with step control and dense output; every lane keeps its own time and step.

Lanes that are done, or that failed, go along with steps of length zero until the last one of their block is done.
"""

from __future__ import annotations

import math

from .ode import ASTRAY, OdeKernel

SAFETY, LEAST, MOST = 0.9, 0.2, 5.0
"""A step is multiplied by SAFETY err^(-1/q), kept between LEAST and MOST (1 after a failure)."""

TOO_SHORT, TOO_MANY = 1.0, 2.0
"""Status of a run whose step fell below rounding, or whose steps were used up; 0 is well."""

REPORT = ("evaluations", "accepted", "rejected", "status", "time", "step")
"""What the kernel reports of each run, in this order."""

_PLACES = {name: k for k, name in enumerate((*REPORT, "old", "tried", "most"))}


def emit_adaptive(program, dtype: str, pair, quaternions: list[int], closing=None) -> str:
    """Return the assembly of (q0, qd0[, parameters], times, rtol, atol, first, most) -> (q, qd, report).

    `pair` has the tableau a, b, c; the error weights e (and e3, of an 8(5,3) pair); its error's order q; a_extra and
    c_extra, stages of the dense output alone; and p, the polynomials of the dense output: y + h sum_s k_s p_s(theta).
    The rates at the end of a step are the last regular stage, and the first one of the next step.
    """
    stages = len(pair.b) + 1 + len(pair.a_extra)
    settings = ["rtol", "atol", "first", "most"]
    o = OdeKernel(program, dtype, stages, quaternions, settings, {"report": len(REPORT)}, closing)
    return _Adaptive(o, pair).module()


class _Adaptive:
    """The writer of one kernel; `v` is a block with a vector for each quantity that a lane keeps."""

    def __init__(self, o: OdeKernel, pair) -> None:
        self.o, self.t, self.pair = o, o.t, pair
        self.V, self.S, self.L, self.bits = o.lanes.vector, o.lanes.scalar, o.lanes.count, o.lanes.bits
        self.regular = len(pair.b)

    def module(self) -> str:
        return self.o.module(self.run)

    def run(self) -> None:
        o, t, V, S, L = self.o, self.t, self.V, self.S, self.L
        # Allocas of a loop's body would grow the stack with every block: take the memory once, at the entry.
        entry = t.lines.index("  %last = sub i64 %n, 1")
        t.lines[entry:entry] = [
            f"  %v = alloca {V}, i64 {len(_PLACES)}, align 64",
            f"  %index = alloca i64, i64 {L}, align 64",
            f"  %accept = alloca i8, i64 {L}, align 64",
            f"  %theta = alloca {S}, i64 {o.stages}, align 64",
            f"  %sum = alloca {V}, i64 2, align 64",
            "  %tries = alloca i64",
            "  %due = alloca i64",
        ]
        rtol, atol = (o.splat(o.scalar(name)) for name in ("rtol", "atol"))
        end = o.splat(o.time(t.new("sub i64 %count, 1")))
        o.keep("0")
        for name in _PLACES:
            self.set(name, "zeroinitializer")
        self.set("time", o.splat(o.time("0")))
        t.loop(L, 1, lambda lane: self.bring("first", "step", lane))
        t.loop(L, 1, lambda lane: self.bring("most", "most", lane))
        self.set("evaluations", o.lanes.constant(1.0))
        t.loop(L, 1, lambda j: t.put(f"  store i64 1, ptr {t.new(f'getelementptr i64, ptr %index, i64 {j}')}"))
        t.put("  store i64 0, ptr %tries")
        o.advance((), rtol, "%in", 1)
        o.rates(self.get("time"), 0)
        t.repeat(lambda: self.attempt(rtol, atol, end))
        t.loop(L, 1, self.finish)

    def bring(self, setting: str, name: str, lane: str) -> None:
        """Write a setting that each run has its own of into a lane."""
        t, S = self.t, self.S
        p = t.new(f"getelementptr {S}, ptr {self.o.at('%v', _PLACES[name])}, i64 {lane}")
        given = self.o.row(setting, lane)
        t.put(f"  store {S} {t.new(f'load {S}, ptr {given}')}, ptr {p}")

    def attempt(self, rtol: str, atol: str, end: str) -> str:
        """Write one try of a step in all lanes; return whether a lane is still under way."""
        o, t, pair = self.o, self.t, self.pair
        now, h, status = self.get("time"), self.get("step"), self.get("status")
        left = self.op("fsub", end, now)
        active = self.both(self.compare("ogt", left, "zeroinitializer"), self.compare("oeq", status, "zeroinitializer"))
        clipped = self.select(self.compare("olt", h, left), h, left)
        tried = self.select(active, clipped, "zeroinitializer")
        for s, (c, weights) in enumerate(zip(pair.c[1:], pair.a[1:], strict=True), 1):
            o.advance(weights, tried, "%in", 1)
            o.rates(self.fma_time(now, tried, c), s)
        o.advance(pair.b, tried, "%z", 0)
        o.normalize("%z")
        o.close("%z")
        t.loop(o.n, 1, lambda j: o.store(o.load("%z", j), "%in", t.new(f"add i64 {j}, 1")))
        reached = self.select(self.compare("oge", tried, left), end, self.op("fadd", now, tried))
        o.rates(reached, self.regular)
        error = self.error(tried, rtol, atol)
        if o.closing:  # a step that leads too far from closed loops is too long
            astray = self.compare("ugt", o.load("%c", o.n), o.lanes.constant(ASTRAY))
            error = self.select(astray, o.lanes.constant(1e3), error)
        good = self.both(self.compare("ole", error, o.lanes.constant(1.0)), active)
        factor = self.factor(error, good)
        self.set("old", now)
        self.set("tried", tried)
        bad = self.both(active, t.new(f"xor {o.lanes.mask} {good}, splat (i1 true)"))
        self.count(active, good, bad)
        self.outputs(good, now, tried, reached)
        t.loop(o.n, 1, lambda j: self.take(good, j))
        self.set("time", self.select(good, reached, now))
        after = self.op("fmul", tried, factor)
        self.set("step", self.select(active, after, h))
        self.fail(bad, now, after)
        under_way = self.both(
            self.compare("ogt", self.op("fsub", end, self.get("time")), "zeroinitializer"),
            self.compare("oeq", self.get("status"), "zeroinitializer"),
        )
        return t.new(f"icmp ne i{self.L} {t.new(f'bitcast {o.lanes.mask} {under_way} to i{self.L}')}, 0")

    def error(self, h: str, rtol: str, atol: str) -> str:
        """Write the error of a step relative to atol + rtol |y|, root mean square over the entries."""
        o, t = self.o, self.t
        for k in range(2):
            o.store("zeroinitializer", "%sum", k)

        def entry_error(j: str) -> None:
            y, z = self.o.size(o.load("%y", j)), self.o.size(o.load("%z", j))
            largest = self.select(self.compare("ogt", y, z), y, z)
            scale = self.op("fadd", atol, self.op("fmul", rtol, largest))
            for k, weights in enumerate((self.pair.e, self.pair.e3)):
                if weights:
                    x = self.op("fdiv", self.op("fmul", str(o.combine(weights, j)), h), scale)
                    o.store(self.op("fadd", o.load("%sum", k), self.op("fmul", x, x)), "%sum", k)

        t.loop(o.n, 1, entry_error)
        five, three = o.load("%sum", 0), o.load("%sum", 1)
        count = o.lanes.constant(float(o.n))
        if not self.pair.e3:
            return self.o.root(self.op("fdiv", five, count))
        # Hairer's estimate of an 8(5,3) pair: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2), zero where both are.
        below = self.op("fadd", five, self.op("fmul", o.lanes.constant(0.01), three))
        safe = self.select(self.compare("oeq", below, "zeroinitializer"), o.lanes.constant(1.0), below)
        return self.op("fdiv", five, self.o.root(self.op("fmul", safe, count)))

    def factor(self, error: str, good: str) -> str:
        """Write SAFETY err^(-1/q) within its bounds; the power by the bits of the number, good to a few percent."""
        o, t, ints, bits = self.o, self.t, self.o.lanes.integers, self.bits
        one = float(o.lanes.pattern(1.0))
        power = -1.0 / self.pair.q
        x = t.new(f"sitofp {ints} {t.new(f'bitcast {self.V} {error} to {ints}')} to {self.V}")
        y = self.op("fadd", self.op("fmul", x, o.lanes.constant(power)), o.lanes.constant(one * (1.0 - power)))
        raw = t.new(f"bitcast {ints} {t.new(f'fptosi {self.V} {y} to {ints}')} to {self.V}")
        raised = self.op("fmul", raw, o.lanes.constant(SAFETY))
        top = self.select(good, o.lanes.constant(MOST), o.lanes.constant(1.0))
        bounded = self.select(self.compare("olt", raised, top), raised, top)
        bounded = self.select(self.compare("ogt", bounded, o.lanes.constant(LEAST)), bounded, o.lanes.constant(LEAST))
        finite = self.compare("olt", error, o.lanes.constant(1e30 if bits == 32 else 1e300))
        return self.select(finite, bounded, o.lanes.constant(LEAST))

    def count(self, active: str, good: str, bad: str) -> None:
        """Write the counts of rates, accepted and rejected steps."""
        o = self.o
        one, zero = o.lanes.constant(1.0), "zeroinitializer"
        each = o.lanes.constant(float(self.regular))
        self.set("evaluations", self.op("fadd", self.get("evaluations"), self.select(active, each, zero)))
        self.set("accepted", self.op("fadd", self.get("accepted"), self.select(good, one, zero)))
        self.set("rejected", self.op("fadd", self.get("rejected"), self.select(bad, one, zero)))

    def outputs(self, good: str, now: str, tried: str, reached: str) -> None:
        """Write the states at all asked times inside the steps that were accepted."""
        o, t = self.o, self.t
        self.set("time", reached)  # for the lanes that accept; restored by the caller
        bytes_ = t.new(f"zext {o.lanes.mask} {good} to <{self.L} x i8>")
        t.put(f"  store <{self.L} x i8> {bytes_}, ptr %accept, align 64")
        if self.pair.a_extra:
            t.if_(self.any_due(), lambda: self.extra_stages(now, tried))
        t.loop(self.L, 1, self.lane_outputs)

    def any_due(self) -> str:
        """Write whether an accepted step passes an asked time."""
        t = self.t
        t.put("  store i64 0, ptr %due")

        def look(lane: str) -> None:
            due = t.new(f"zext i1 {self.is_due(lane)} to i64")
            total = t.new(f"add i64 {t.new('load i64, ptr %due')}, {due}")
            t.put(f"  store i64 {total}, ptr %due")

        t.loop(self.L, 1, look)
        return t.new(f"icmp ne i64 {t.new('load i64, ptr %due')}, 0")

    def extra_stages(self, now: str, tried: str) -> None:
        """Write the stages of the dense output, for all lanes; they are counted where a step was accepted."""
        o = self.o
        for k, (c, weights) in enumerate(zip(self.pair.c_extra, self.pair.a_extra, strict=True)):
            o.advance(weights, tried, "%in", 1)
            o.rates(self.fma_time(now, tried, c), self.regular + 1 + k)

    def is_due(self, lane: str) -> str:
        """Write whether a lane's accepted step reaches its next asked time."""
        t = self.t
        accepted = t.new(f"load i8, ptr {t.new(f'getelementptr i8, ptr %accept, i64 {lane}')}")
        index = self.next_index(lane)
        inside = t.new(f"icmp slt i64 {index}, %count")
        safe = t.new(f"select i1 {inside}, i64 {index}, i64 0")
        passed = t.new(f"fcmp ole {self.S} {self.o.time(safe)}, {self.scalar('time', lane)}")
        return t.new(f"and i1 {t.new(f'icmp ne i8 {accepted}, 0')}, {t.new(f'and i1 {inside}, {passed}')}")

    def next_index(self, lane: str) -> str:
        return self.t.new(f"load i64, ptr {self.t.new(f'getelementptr i64, ptr %index, i64 {lane}')}")

    def set_next(self, lane: str, index: str) -> None:
        t = self.t
        place = t.new(f"getelementptr i64, ptr %index, i64 {lane}")
        t.put(f"  store i64 {t.new(f'add i64 {index}, 1')}, ptr {place}")

    def lane_outputs(self, lane: str) -> None:
        t = self.t

        def one() -> None:
            index = self.next_index(lane)
            self.dense(lane, index)
            self.set_next(lane, index)

        t.while_(lambda: self.is_due(lane), one)

    def dense(self, lane: str, index: str) -> None:
        """Write the state of one lane at an asked time: y + h sum_s k_s p_s(theta)."""
        o, t, S = self.o, self.t, self.S
        h, old = self.scalar("tried", lane), self.scalar("old", lane)
        theta = t.new(f"fdiv {S} {t.new(f'fsub {S} {o.time(index)}, {old}')}, {h}")
        for s, polynomial in enumerate(self.pair.p):
            value = o.lanes.number(polynomial[-1])
            for c in reversed(polynomial[:-1]):
                value = t.new(f"fadd {S} {t.new(f'fmul {S} {value}, {theta}')}, {o.lanes.number(c)}")
            value = t.new(f"fmul {S} {t.new(f'fmul {S} {value}, {theta}')}, {h}")
            t.put(f"  store {S} {value}, ptr {t.new(f'getelementptr {S}, ptr %theta, i64 {s}')}")
        for name, size, first in (("q", o.nq, 0), ("qd", o.nv, o.nq)):
            offset = t.new(f"mul i64 {o.core[name][0]}, {index}")
            base = t.new(f"getelementptr i8, ptr {o.row(name, lane)}, i64 {offset}")
            t.loop(size, 1, lambda j, n=name, f=first, b=base: self.dense_entry(lane, n, f, b, j))

    def dense_entry(self, lane: str, name: str, first: int, base: str, j: str) -> None:
        o, t, S = self.o, self.t, self.S
        place = t.new(f"add i64 {j}, {first}")
        value = self.lane_of("%y", place, lane)
        for s in range(len(self.pair.p)):
            k = self.lane_of("%k", t.new(f"add i64 {place}, {s * o.n}"), lane)
            weight = t.new(f"load {S}, ptr {t.new(f'getelementptr {S}, ptr %theta, i64 {s}')}")
            value = t.new(f"fadd {S} {value}, {t.new(f'fmul {S} {k}, {weight}')}")
        target = t.new(f"getelementptr i8, ptr {base}, i64 {t.new(f'mul i64 {o.core[name][1]}, {j}')}")
        t.put(f"  store {S} {value}, ptr {target}")

    def take(self, good: str, j: str) -> None:
        """Write the step of accepted lanes into the state, and its last rates into the first stage."""
        o, t = self.o, self.t
        o.store(self.select(good, o.load("%z", j), o.load("%y", j)), "%y", j)
        last = o.load("%k", t.new(f"add i64 {j}, {self.regular * o.n}"))
        o.store(self.select(good, last, o.load("%k", j)), "%k", j)

    def fail(self, bad: str, now: str, h: str) -> None:
        """Write the status of lanes whose step is lost in rounding, or that have tried too often."""
        o, t = self.o, self.t
        tiny, least = (16 * 2.0**-52, 1e-300) if self.bits == 64 else (16 * 2.0**-23, 1e-37)
        floor = self.op("fadd", self.op("fmul", self.o.size(now), o.lanes.constant(tiny)), o.lanes.constant(least))
        short = self.both(bad, self.compare("olt", h, floor))
        status = self.select(short, o.lanes.constant(TOO_SHORT), self.get("status"))
        tries = t.new(f"add i64 {t.new('load i64, ptr %tries')}, 1")
        t.put(f"  store i64 {tries}, ptr %tries")
        over = o.lanes.constant(TOO_MANY)
        used_up = self.compare("oge", o.splat(t.new(f"sitofp i64 {tries} to {self.S}")), self.get("most"))
        unfinished = self.both(used_up, self.compare("oeq", status, "zeroinitializer"))
        self.set("status", self.select(unfinished, over, status))

    def finish(self, lane: str) -> None:
        """Write what is left of a lane: NaN at the times it did not reach, and its report."""
        o, t, S = self.o, self.t, self.S

        def blank(name: str, size: int, index: str) -> None:
            offset = t.new(f"mul i64 {o.core[name][0]}, {index}")
            base = t.new(f"getelementptr i8, ptr {o.row(name, lane)}, i64 {offset}")
            t.loop(size, 1, lambda j: nothing(base, t.new(f"mul i64 {o.core[name][1]}, {j}")))

        def nothing(base: str, offset: str) -> None:
            t.put(f"  store {S} {o.lanes.number(math.nan)}, ptr {t.new(f'getelementptr i8, ptr {base}, i64 {offset}')}")

        def one() -> None:
            index = self.next_index(lane)
            blank("q", o.nq, index)
            blank("qd", o.nv, index)
            self.set_next(lane, index)

        t.while_(lambda: t.new(f"icmp slt i64 {self.next_index(lane)}, %count"), one)
        for k, name in enumerate(REPORT):
            offset = t.new(f"mul i64 {o.core['report'][0]}, {k}")
            p = t.new(f"getelementptr i8, ptr {o.row('report', lane)}, i64 {offset}")
            t.put(f"  store {S} {self.scalar(name, lane)}, ptr {p}")

    def fma_time(self, now: str, h: str, c: float) -> str:
        return self.op("fadd", now, self.op("fmul", h, self.o.lanes.constant(c)))

    def get(self, name: str) -> str:
        return self.o.load("%v", _PLACES[name])

    def set(self, name: str, value: str) -> None:
        self.o.store(value, "%v", _PLACES[name])

    def scalar(self, name: str, lane: str) -> str:
        return self.lane_of("%v", str(_PLACES[name]), lane)

    def lane_of(self, block: str, index: str, lane: str) -> str:
        t = self.t
        p = t.new(f"getelementptr {self.S}, ptr {self.o.at(block, index)}, i64 {lane}")
        return t.new(f"load {self.S}, ptr {p}")

    def op(self, name: str, a: str, b: str | None) -> str:
        return self.t.new(f"{name} {self.V} {a}, {b}")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.t.new(f"fcmp {how} {self.V} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.t.new(f"and {self.o.lanes.mask} {a}, {b}")

    def select(self, mask: str, yes: str, no: str) -> str:
        return self.t.new(f"select {self.o.lanes.mask} {mask}, {self.V} {yes}, {self.V} {no}")
