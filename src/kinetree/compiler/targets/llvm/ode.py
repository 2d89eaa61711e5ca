"""Native loops over time steps: what fixed and adaptive steps share.

The rates of a state are a body (llvm_ir.py); a kernel starts a block of 8 (16) runs, one a lane, steps them and stores
them. Nothing that a run does depends on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

from . import vector_math
from .arithmetic import LANES, Writer, arithmetic, attributes, bare_angles, slots_of
from .blocks import copy_entries, judge_inputs, mend, output_vector, scan
from .writer import Text

ROUNDS = 10
"""Steps of Newton's method that close a state's loops; from a step of an integrator two are usual."""

ASTRAY = 1e6
"""Loops open by more than this times what is left alone did not close; near singular positions less may stay."""


class OdeKernel:
    """The assembly of a kernel that integrates, in the making.

    `program` has the inputs t, q, qd and perhaps parameters, and the outputs dq and dqd. The kernel is NumPy's inner
    loop for (q0, qd0[, parameters], times, *settings) -> (q, qd at the times, *results); settings are scalars.
    `closing` is a Program of the same inputs, up to the parameters it has, for mechanisms with loops: (q one step of
    Newton further, qd that keeps the loops closed, gap over what is allowed).
    """

    def __init__(
        self, program, dtype: str, stages: int, quaternions: list[int], settings: list[str], results: dict[str, int],
        closing=None,
    ) -> None:  # fmt: skip
        """Name the arguments: `results` maps names to numbers of entries."""
        self.closing = closing
        self.program, self.lanes, self.stages, self.quaternions = program, LANES[dtype], stages, quaternions
        self.nq, self.nv = program.inputs[1].size, program.inputs[2].size
        self.n = self.nq + self.nv
        self.t = Text()
        self.parameters = next((a.size for a in program.inputs if a.name == "parameters"), 0)
        more = ["parameters"] if self.parameters else []
        self.arguments = ["q0", "qd0", *more, "times", *settings, "q", "qd", *results]
        self.cores = dict.fromkeys(settings, 0) | {"q": 2, "qd": 2} | dict.fromkeys(results, 1)
        self.core: dict[str, list[str]] = {}

    def module(self, run: Callable[[], None]) -> str:
        """Return the whole module; `run` writes what happens to a block whose state is in %y."""
        w = Writer(self.lanes)
        parts = self._called(self.program, w, "rates")
        if self.closing:
            parts += self._called(self.closing, w, "closing")
        parts += [
            self._kernel(run),
            vector_math.exact_functions(self.lanes, w),
            *sorted(w.used | self.t.used),
            attributes(),
        ]
        return "\n".join(parts)

    def _called(self, program, w: Writer, name: str) -> list[str]:
        """Return `name(in, k, bad)`: a Program on a block that is looked at first, its results in their order."""
        V, slots = self.lanes.vector, slots_of(program)
        w.label = "entry"
        arithmetic(program, w)
        body, w.lines = w.lines, []
        t = Text()
        t.put(
            f"define internal void @{name}_body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out) "
            "noinline #0 {",
            "entry:",
            *body,
            "  ret void",
            "}",
            f"@{name}_slots = internal constant [{len(slots)} x i64] [{', '.join(f'i64 {j}' for j in slots)}]",
            f"define internal void @{name}(ptr %in, ptr %k, ptr %bad) noinline #0 {{",
            "compute:",
            f"  %out = alloca {V}, i64 {max(slots) + 1}, align 64",
            f"  %top = alloca {self.lanes.integers}, align 64",
            f"  store {self.lanes.integers} zeroinitializer, ptr %top, align 64",
        )
        scan(t, self.lanes, "%in", sum(a.size for a in program.inputs), "%top")
        judge_inputs(t, self.lanes, f"{name}_mend")
        t.put(f"  call void @{name}_body(ptr %in, ptr %out)")

        def move(j: str) -> None:
            x = t.new(f"load {V}, ptr {output_vector(t, self.lanes, j, f'{name}_slots')}, align 64")
            t.put(f"  store {V} {x}, ptr {t.new(f'getelementptr {V}, ptr %k, i64 {j}')}, align 64")

        t.loop(len(slots), 1, move)
        t.put("  ret void", "}")
        w.used |= t.used
        return [t.text(), mend(self.lanes, w, bare_angles(program)[1], f"{name}_mend")]

    def _kernel(self, run: Callable[[], None]) -> str:
        t, V = self.t, self.lanes.vector
        t.put(
            "define void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %bad) #0 {",
            "entry:",
            f"  %in = alloca {V}, i64 {sum(a.size for a in self.program.inputs)}, align 64",
            f"  %y = alloca {V}, i64 {self.n}, align 64",
            f"  %z = alloca {V}, i64 {self.n}, align 64",
            f"  %k = alloca {V}, i64 {self.n * self.stages}, align 64",
            f"  %c = alloca {V}, i64 {self.n + 1 if self.closing else 1}, align 64",
            f"  %shut = alloca {V}, align 64",
            "  %rounds = alloca i64",
            "  %n = load i64, ptr %dims",
            "  %last = sub i64 %n, 1",
        )
        # NumPy has one core dimension for each number in the signature.
        sizes = {self.nq, self.nv} | ({self.parameters} if self.parameters else set())
        t.put(f"  %count = load i64, ptr {t.new(f'getelementptr i64, ptr %dims, i64 {1 + len(sizes)}')}")
        at = len(self.arguments)
        for k, name in enumerate(self.arguments):
            t.put(f"  %p_{name} = load ptr, ptr {t.new(f'getelementptr ptr, ptr %args, i64 {k}')}")
            t.put(f"  %s_{name} = load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {k}')}")
            self.core[name] = []
            for _ in range(self.cores.get(name, 1)):
                self.core[name].append(t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {at}')}"))
                at += 1
        t.put(
            "  br label %head",
            "head:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %after ]",
            "  %more = icmp slt i64 %i, %n",
            "  br i1 %more, label %start, label %done",
            "start:",
        )
        self._bring("q0", self.nq, "%y", 0)
        self._bring("qd0", self.nv, "%y", self.nq)
        if self.parameters:
            self._bring("parameters", self.parameters, "%in", 1 + self.n)
        run()
        t.put(
            "  br label %after",
            "after:",
            f"  %next = add i64 %i, {self.lanes.count}",
            "  br label %head",
            "done:",
            "  ret void",
            "}",
        )
        return t.text()

    def row(self, name: str, lane: str) -> str:
        """Write the address of the sample in a lane; idle lanes share the last one."""
        t = self.t
        index = t.new(f"add i64 %i, {lane}")
        inside = t.new(f"select i1 {t.new(f'icmp slt i64 {index}, %n')}, i64 {index}, i64 %last")
        return t.new(f"getelementptr i8, ptr %p_{name}, i64 {t.new(f'mul i64 {inside}, %s_{name}')}")

    def _bring(self, name: str, size: int, block: str, first: int) -> None:
        copy_entries(
            self.t, self.lanes, (size,), self.core[name], lambda lane: self.row(name, lane),
            lambda flat: self.at(block, self.t.new(f"add i64 {flat}, {first}")), store=False,
        )  # fmt: skip

    def keep(self, index: str) -> None:
        """Store the state %y of all lanes as the output with an index."""
        t = self.t
        for name, size, first in (("q", self.nq, 0), ("qd", self.nv, self.nq)):
            offset = t.new(f"mul i64 {self.core[name][0]}, {index}")
            copy_entries(
                t, self.lanes, (size,), self.core[name][1:],
                lambda lane, n=name, o=offset: t.new(f"getelementptr i8, ptr {self.row(n, lane)}, i64 {o}"),
                lambda flat, f=first: self.at("%y", t.new(f"add i64 {flat}, {f}")), store=True,
            )  # fmt: skip

    def scalar(self, name: str) -> str:
        """Write the load of a setting that all samples share: the first one's."""
        return self.t.new(f"load {self.lanes.scalar}, ptr %p_{name}")

    def time(self, index: str) -> str:
        """Write the load of a time; all samples share the first one's."""
        offset = self.t.new(f"mul i64 {self.core['times'][0]}, {index}")
        return self.t.new(
            f"load {self.lanes.scalar}, ptr {self.t.new(f'getelementptr i8, ptr %p_times, i64 {offset}')}"
        )

    def at(self, block: str, index: str | int) -> str:
        """Write the address of a vector of a block."""
        return self.t.new(f"getelementptr {self.lanes.vector}, ptr {block}, i64 {index}")

    def load(self, block: str, index: str | int) -> str:
        """Write the load of a vector of a block."""
        return self.t.new(f"load {self.lanes.vector}, ptr {self.at(block, index)}, align 64")

    def store(self, value: str, block: str, index: str | int) -> None:
        """Write the store of a vector into a block."""
        self.t.put(f"  store {self.lanes.vector} {value}, ptr {self.at(block, index)}, align 64")

    def splat(self, x: str) -> str:
        """Write a vector with one number in every lane."""
        V = self.lanes.vector
        one = self.t.new(f"insertelement {V} poison, {self.lanes.scalar} {x}, i32 0")
        return self.t.new(f"shufflevector {V} {one}, {V} poison, <{self.lanes.count} x i32> zeroinitializer")

    def combine(self, weights, j: str) -> str | None:
        """Write the sum of weight k_s[j] over the stages s, None where all weights are zero."""
        t, V, total = self.t, self.lanes.vector, None
        for s, weight in enumerate(weights):
            if weight:
                k = self.load("%k", t.new(f"add i64 {j}, {s * self.n}"))
                term = t.new(f"fmul {V} {k}, {self.lanes.constant(weight)}")
                total = term if total is None else t.new(f"fadd {V} {total}, {term}")
        return total

    def advance(self, weights, h: str, target: str, shift: int) -> None:
        """Write target[shift + j] = y[j] + h sum of weight k_s[j] for all j; h is a vector."""
        t, V = self.t, self.lanes.vector

        def one(j: str) -> None:
            y, total = self.load("%y", j), self.combine(weights, j)
            if total is not None:
                y = t.new(f"fadd {V} {y}, {t.new(f'fmul {V} {total}, {h}')}")
            self.store(y, target, t.new(f"add i64 {j}, {shift}"))

        t.loop(self.n, 1, one)

    def rates(self, now: str, stage: int) -> None:
        """Write k_stage = rates at the time `now` (a vector) of the state in %in."""
        self.t.put(f"  store {self.lanes.vector} {now}, ptr %in, align 64")
        self.t.put(f"  call void @rates(ptr %in, ptr {self.at('%k', stage * self.n)}, ptr %bad)")

    def close(self, block: str) -> None:
        """Write Newton's method on a state until its loops are closed, each lane for itself, and then on its speeds.

        Where rounding keeps a gap, the speeds are those of the last round. What is left of it is the last vector of %c.
        """
        if not self.closing:
            return
        t, V, mask = self.t, self.lanes.vector, self.lanes.mask

        def once() -> str:
            t.loop(self.n, 1, lambda j: self.store(self.load(block, j), "%in", t.new(f"add i64 {j}, 1")))
            t.put("  call void @closing(ptr %in, ptr %c, ptr %bad)")
            before = t.new(f"fcmp ogt {V} {self.load('%shut', 0)}, zeroinitializer")
            small = t.new(f"fcmp ule {V} {self.load('%c', self.n)}, {self.lanes.constant(1.0)}")
            rounds = t.new(f"add i64 {t.new('load i64, ptr %rounds')}, 1")
            t.put(f"  store i64 {rounds}, ptr %rounds")
            last = t.new(f"icmp sge i64 {rounds}, {ROUNDS}")
            shut = t.new(f"select i1 {last}, {mask} splat (i1 true), {mask} {small}")
            after = t.new(f"or {mask} {before}, {shut}")
            for first, count, change in ((0, self.nq, t.new(f"xor {mask} {after}, splat (i1 true)")),
                                         (self.nq, self.nv, t.new(f"xor {mask} {before}, {after}"))):  # fmt: skip
                t.loop(count, 1, lambda j, f=first, c=change: self._taken(block, t.new(f"add i64 {j}, {f}"), c))
            one = t.new(f"select {mask} {after}, {V} {self.lanes.constant(1.0)}, {V} zeroinitializer")
            t.put(f"  store {V} {one}, ptr %shut, align 64")
            bits = t.new(f"bitcast {mask} {after} to i{self.lanes.count}")
            return t.new(f"icmp ne i{self.lanes.count} {bits}, -1")

        t.put(f"  store {V} zeroinitializer, ptr %shut, align 64", "  store i64 0, ptr %rounds")
        t.repeat(once)

    def close_or_lose(self, block: str) -> None:
        """Write `close`, with NaN for a state whose loops did not close: a step this long is none."""
        self.close(block)
        if self.closing:
            V, gap = self.lanes.vector, self.load("%c", self.n)
            self.lose(self.t.new(f"fcmp ugt {V} {gap}, {self.lanes.constant(ASTRAY)}"), block)

    def lose(self, lost: str, block: str) -> None:
        """Write NaN into the state of the lanes of a mask."""
        t, V, nan = self.t, self.lanes.vector, self.lanes.constant(float("nan"))

        def one(j: str) -> None:
            y = self.load(block, j)
            self.store(t.new(f"select {self.lanes.mask} {lost}, {V} {nan}, {V} {y}"), block, j)

        t.loop(self.n, 1, one)

    def _taken(self, block: str, j: str, change: str) -> None:
        """Write an entry of %c into a state where lanes change."""
        t, V = self.t, self.lanes.vector
        y = t.new(f"select {self.lanes.mask} {change}, {V} {self.load('%c', j)}, {V} {self.load(block, j)}")
        self.store(y, block, j)

    def size(self, x: str) -> str:
        """Write |x|."""
        return self._unary("fabs", x)

    def root(self, x: str) -> str:
        """Write the square root of x."""
        return self._unary("sqrt", x)

    def _unary(self, name: str, x: str) -> str:
        V, full = self.lanes.vector, f"llvm.{name}.v{self.lanes.count}f{self.lanes.bits}"
        self.t.used.add(f"declare {V} @{full}({V})")
        return self.t.new(f"call {V} @{full}({V} {x})")

    def normalize(self, block: str) -> None:
        """Write the division of every quaternion of a state by its length."""
        t, V = self.t, self.lanes.vector
        for place in self.quaternions:
            parts = [self.load(block, place + k) for k in range(4)]
            total = t.new(f"fmul {V} {parts[0]}, {parts[0]}")
            for x in parts[1:]:
                total = t.new(f"fadd {V} {total}, {t.new(f'fmul {V} {x}, {x}')}")
            length = self.root(total)
            for k, x in enumerate(parts):
                self.store(t.new(f"fdiv {V} {x}, {length}"), block, place + k)
