"""A native loop over time steps: the rates of a state are a body, and a Runge-Kutta method runs around it.

Samples ride in the lanes here too: a block of 8 (16) runs is started, stepped and stored together. The step of a run
does not depend on its neighbours.
"""

from __future__ import annotations

from . import llvm_math
from .llvm_blocks import copy_entries, mend, output_vector, scan
from .llvm_ir import LANES, Writer, arithmetic, attributes, bare_angles, slots_of
from .llvm_writer import Text

ROUNDING = 1e-9
"""A number of steps that is whole but for this part is taken as whole."""


def emit_fixed_steps(program, dtype: str, tableau, quaternions: list[int]) -> str:
    """Return the assembly of a kernel that integrates with steps of one length.

    `program` has the inputs t, q, qd and perhaps parameters, and the outputs dq and dqd. The kernel is an inner loop of
    NumPy's for (q0, qd0[, parameters], times, dt) -> (q, qd) at the times, of which there are at least two; between
    two times it takes as few equal steps as are not longer than dt. `quaternions` are the places in q where a
    quaternion starts: these are brought to unit length after every step.
    """
    lanes = LANES[dtype]
    w = Writer(lanes)
    arithmetic(program, w)
    places, slots = bare_angles(program)[1], slots_of(program)
    parts = [
        "define internal void @body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out) noinline #0 {",
        "entry:",
        *w.lines,
        "  ret void",
        "}",
        _rates(program, lanes, w, slots),
        mend(lanes, w, places),
        _kernel(program, lanes, w, tableau, quaternions),
        llvm_math.exact_functions(lanes, w),
        *sorted(w.used),
        attributes(),
    ]
    return "\n".join(parts)


def _rates(program, lanes, w, slots: list[int]) -> str:
    """Return `rates(in, k, bad)`: the body on a block that is looked at first, its results in their order."""
    V, n_out = lanes.vector, max(slots) + 1
    t = Text()
    t.put(
        f"@slots = internal constant [{len(slots)} x i64] [{', '.join(f'i64 {j}' for j in slots)}]",
        "define internal void @rates(ptr %in, ptr %k, ptr %bad) noinline #0 {",
        "compute:",
        f"  %out = alloca {V}, i64 {n_out}, align 64",
    )
    scan(t, lanes, sum(a.size for a in program.inputs))
    t.put("  call void @body(ptr %in, ptr %out)")

    def move(j: str) -> None:
        x = t.new(f"load {V}, ptr {output_vector(t, lanes, j)}, align 64")
        t.put(f"  store {V} {x}, ptr {_at(t, lanes, '%k', j)}, align 64")

    t.loop(len(slots), 1, move)
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text()


def _kernel(program, lanes, w, tableau, quaternions: list[int]) -> str:
    V, S, L = lanes.vector, lanes.scalar, lanes.count
    nq, nv = program.inputs[1].size, program.inputs[2].size
    n, n_in = nq + nv, sum(a.size for a in program.inputs)
    arguments = ["q0", "qd0", *(["parameters"] if len(program.inputs) > 3 else []), "times", "dt", "q", "qd"]
    cores = {"times": 1, "dt": 0, "q": 2, "qd": 2}
    t = Text()
    t.put(
        "define void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %bad) #0 {",
        "entry:",
        f"  %in = alloca {V}, i64 {n_in}, align 64",
        f"  %y = alloca {V}, i64 {n}, align 64",
        f"  %k = alloca {V}, i64 {n * len(tableau.b)}, align 64",
        "  %n = load i64, ptr %dims",
    )
    sizes = list(dict.fromkeys(a.size for a in program.inputs[1:]))  # one core dimension for each number
    count = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %dims, i64 {1 + len(sizes)}')}")
    intervals = t.new(f"sub i64 {count}, 1")
    at, core = len(arguments), {}
    for k, name in enumerate(arguments):
        t.put(f"  %p_{name} = load ptr, ptr {t.new(f'getelementptr ptr, ptr %args, i64 {k}')}")
        t.put(f"  %s_{name} = load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {k}')}")
        core[name] = []
        for _ in range(cores.get(name, 1)):
            core[name].append(t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr %steps, i64 {at}')}"))
            at += 1
    last = t.new("sub i64 %n, 1")
    longest = t.new(f"load {S}, ptr %p_dt")
    t.put(
        "  br label %head",
        "head:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %after ]",
        "  %more = icmp slt i64 %i, %n",
        "  br i1 %more, label %start, label %done",
        "start:",
    )

    def row(name: str, lane: str) -> str:
        index = t.new(f"add i64 %i, {lane}")
        inside = t.new(f"select i1 {t.new(f'icmp slt i64 {index}, %n')}, i64 {index}, i64 {last}")
        return t.new(f"getelementptr i8, ptr %p_{name}, i64 {t.new(f'mul i64 {inside}, %s_{name}')}")

    def bring(name: str, size: int, block: str, first: int) -> None:
        copy_entries(
            t, lanes, (size,), core[name], lambda lane: row(name, lane),
            lambda flat: _at(t, lanes, block, t.new(f"add i64 {flat}, {first}")), store=False,
        )  # fmt: skip

    def keep(index: str) -> None:
        for name, size, first in (("q", nq, 0), ("qd", nv, nq)):
            offset = t.new(f"mul i64 {core[name][0]}, {index}")
            copy_entries(
                t, lanes, (size,), core[name][1:],
                lambda lane, name=name, offset=offset: t.new(f"getelementptr i8, ptr {row(name, lane)}, i64 {offset}"),
                lambda flat, first=first: _at(t, lanes, "%y", t.new(f"add i64 {flat}, {first}")), store=True,
            )  # fmt: skip

    bring("q0", nq, "%y", 0)
    bring("qd0", nv, "%y", nq)
    if "parameters" in arguments:
        bring("parameters", program.inputs[3].size, "%in", 1 + n)
    keep("0")

    def interval(j: str) -> None:
        begin, end = (_time(t, lanes, core["times"][0], index) for index in (j, t.new(f"add i64 {j}, 1")))
        span = t.new(f"fsub {S} {end}, {begin}")
        steps = _whole_steps(t, lanes, t.new(f"fdiv {S} {span}, {longest}"))
        h = t.new(f"fdiv {S} {span}, {t.new(f'sitofp i64 {steps} to {S}')}")
        t.loop(steps, 1, lambda m: _step(t, lanes, tableau, n, begin, h, m, quaternions))
        keep(t.new(f"add i64 {j}, 1"))

    t.loop(intervals, 1, interval)
    t.put("  br label %after", "after:", f"  %next = add i64 %i, {L}", "  br label %head", "done:", "  ret void", "}")
    w.used |= t.used
    return t.text()


def _step(t, lanes, tableau, n: int, begin: str, h: str, m: str, quaternions: list[int]) -> None:
    """Write one step: stages k_s = rates(t + c_s h, y + h sum a_sj k_j), then y + h sum b_j k_j."""
    V, S = lanes.vector, lanes.scalar
    number = t.new(f"sitofp i64 {m} to {S}")
    for s, (c, weights) in enumerate(zip(tableau.c, (*tableau.a,), strict=True)):
        moment = t.new(f"fadd {S} {number}, {lanes.number(c)}")
        now = t.new(f"fadd {S} {begin}, {t.new(f'fmul {S} {moment}, {h}')}")
        t.put(f"  store {V} {_splat(t, lanes, now)}, ptr %in, align 64")
        t.loop(n, 1, lambda j, weights=weights: _advance(t, lanes, n, h, weights, j, "%in", 1))
        t.put(f"  call void @rates(ptr %in, ptr {_at(t, lanes, '%k', str(s * n))}, ptr %bad)")
    t.loop(n, 1, lambda j: _advance(t, lanes, n, h, tableau.b, j, "%y", 0))
    for place in quaternions:
        _normalize(t, lanes, place)


def _advance(t, lanes, n: int, h: str, weights, j: str, target: str, shift: int) -> None:
    """Write target[shift + j] = y[j] + h sum of weight k[j]."""
    V = lanes.vector
    y = t.new(f"load {V}, ptr {_at(t, lanes, '%y', j)}, align 64")
    total = None
    for s, weight in enumerate(weights):
        if weight:
            k = t.new(f"load {V}, ptr {_at(t, lanes, '%k', t.new(f'add i64 {j}, {s * n}'))}, align 64")
            term = t.new(f"fmul {V} {k}, {lanes.constant(weight)}")
            total = term if total is None else t.new(f"fadd {V} {total}, {term}")
    if total is not None:
        y = t.new(f"fadd {V} {y}, {t.new(f'fmul {V} {total}, {_splat(t, lanes, h)}')}")
    place = t.new(f"add i64 {j}, {shift}")
    t.put(f"  store {V} {y}, ptr {_at(t, lanes, target, place)}, align 64")


def _normalize(t, lanes, place: int) -> None:
    """Write the division of four entries of y by their length."""
    V, L, bits = lanes.vector, lanes.count, lanes.bits
    where = [_at(t, lanes, "%y", str(place + k)) for k in range(4)]
    parts = [t.new(f"load {V}, ptr {p}, align 64") for p in where]
    total = t.new(f"fmul {V} {parts[0]}, {parts[0]}")
    for x in parts[1:]:
        total = t.new(f"fadd {V} {total}, {t.new(f'fmul {V} {x}, {x}')}")
    t.used.add(f"declare {V} @llvm.sqrt.v{L}f{bits}({V})")
    length = t.new(f"call {V} @llvm.sqrt.v{L}f{bits}({V} {total})")
    for p, x in zip(where, parts, strict=True):
        t.put(f"  store {V} {t.new(f'fdiv {V} {x}, {length}')}, ptr {p}, align 64")


def _time(t, lanes, stride: str, index: str) -> str:
    """Return the time with an index; all samples share the times of the first."""
    p = t.new(f"getelementptr i8, ptr %p_times, i64 {t.new(f'mul i64 {stride}, {index}')}")
    return t.new(f"load {lanes.scalar}, ptr {p}")


def _whole_steps(t, lanes, ratio: str) -> str:
    """Return the smallest whole number, at least one, that is not below the ratio but for rounding."""
    S = lanes.scalar
    less = t.new(f"fsub {S} {ratio}, {lanes.number(ROUNDING)}")
    below = t.new(f"fptosi {S} {less} to i64")
    steps = t.new(f"add i64 {below}, 1")
    return t.new(f"select i1 {t.new(f'icmp slt i64 {steps}, 1')}, i64 1, i64 {steps}")


def _at(t, lanes, block: str, index: str) -> str:
    return t.new(f"getelementptr {lanes.vector}, ptr {block}, i64 {index}")


def _splat(t, lanes, x: str) -> str:
    one = t.new(f"insertelement {lanes.vector} poison, {lanes.scalar} {x}, i32 0")
    zeros = f"<{lanes.count} x i32> zeroinitializer"
    return t.new(f"shufflevector {lanes.vector} {one}, {lanes.vector} poison, {zeros}")
