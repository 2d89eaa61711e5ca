"""Sine and cosine as polynomials, on vectors or scalars, and the C library's functions lane by lane for the rest.

An angle x is reduced to r = x - k pi/2, |r| <= pi/4, with pi/2 in two parts (Cody and Waite). With fused
multiply-add the first step is exact. Adding 1.5 * 2^52 leaves k in the last bits of the sum. Angles beyond LIMIT are
first reduced to one revolution by the C library.
"""

from __future__ import annotations

import math

from ..polynomials import COSINE, SINE

LIMIT = {64: 1.0e8, 32: 1.0e4}
"""The largest angle [rad] whose reduction is correct to the last bit."""

MAGIC = {64: 1.5 * 2.0**52, 32: 1.5 * 2.0**23}
PI_HALF = {64: (1.5707963267948966, 6.123233995736766e-17), 32: (1.57079637050628662, -4.37113900018624283e-8)}

RARE = '!0 = !{!"branch_weights", i32 1, i32 100000}'
"""The metadata !0 of branches that are rarely taken."""

LIBRARY = ("sin", "cos", "atan2", "asin", "acos", "atan", "tan", "exp", "log")
"""The functions of the C library that code may call, as kt_<name> on doubles."""


def guarded_sines(w, x: str, shift: str = "") -> tuple[str, str]:
    """Write sine and cosine of an angle of any size; large ones are reduced first, by one more test and a branch."""
    lanes = w.lanes
    V, mask = lanes.vector, lanes.mask
    over = w.new(f"fcmp ugt {V} {w.intrinsic('llvm.fabs', x)}, {lanes.constant(LIMIT[lanes.bits])}")
    whole = w.new(f"bitcast {mask} {over} to i{lanes.count}")
    any_large = w.new(f"icmp ne i{lanes.count} {whole}, 0")
    here, cold, merge = w.label, w.block("large"), w.block("merge")
    w.do(f"br i1 {any_large}, label %{cold}, label %{merge}, !prof !0")
    w.begin(cold)
    small = within_a_revolution(w, x)
    w.do(f"br label %{merge}")
    w.begin(merge)
    angle = w.new(f"phi {V} [ {x}, %{here} ], [ {small}, %{cold} ]")
    return sines(w, w.new(f"fadd {V} {angle}, {shift}") if shift else angle)


def within_a_revolution(w, x: str) -> str:
    """Write x, with angles beyond LIMIT reduced to (-pi, pi] by the C library; the other lanes keep their bits."""
    lanes = w.lanes
    V, ints, bits = lanes.vector, lanes.integers, lanes.bits
    size = w.new(f"and {ints} {w.new(f'bitcast {V} {x} to {ints}')}, splat (i{bits} {2 ** (bits - 1) - 1})")
    large = w.new(f"icmp ugt {ints} {size}, splat (i{bits} {lanes.pattern(LIMIT[bits])})")
    reduced = by_library(w, "atan2", [by_library(w, "sin", [x]), by_library(w, "cos", [x])])
    return w.new(f"select {lanes.mask} {large}, {V} {reduced}, {V} {x}")


def sines(w, x: str) -> tuple[str, str]:
    """Write sine and cosine of an angle up to LIMIT; return their names."""
    lanes = w.lanes
    V, ints, bits, c = lanes.vector, lanes.integers, lanes.bits, lanes.constant

    def fma(a: str, b: str, d: str) -> str:
        return w.intrinsic("llvm.fma", a, b, d)

    def horner(coefficients, z: str) -> str:
        y = c(coefficients[0])
        for k in coefficients[1:]:
            y = fma(y, z, c(k))
        return y

    shifted = fma(x, c(2 / math.pi), c(MAGIC[bits]))
    k = w.new(f"fsub {V} {shifted}, {c(MAGIC[bits])}")
    r = x
    for part in PI_HALF[bits]:
        r = fma(k, c(-part), r)
    z = w.new(f"fmul {V} {r}, {r}")
    s = fma(horner(SINE[bits], z), w.new(f"fmul {V} {z}, {r}"), r)
    cosine = fma(fma(horner(COSINE[bits], z), z, c(-0.5)), z, c(1.0))
    # Odd k swaps sine and cosine; bit 1 of k is the sign of the sine, bit 1 of k + 1 the sign of the cosine.
    quarter = w.new(f"bitcast {V} {shifted} to {ints}")
    one, shift, top = (lanes.whole(n) for n in (1, bits - 2, -(2 ** (bits - 1))))
    odd = w.new(f"icmp ne {ints} {w.new(f'and {ints} {quarter}, {one}')}, {lanes.whole(0)}")
    out = []
    for yes, no, turn in ((cosine, s, quarter), (s, cosine, w.new(f"add {ints} {quarter}, {one}"))):
        value = w.new(f"select {lanes.mask} {odd}, {V} {yes}, {V} {no}")
        sign = w.new(f"and {ints} {w.new(f'shl {ints} {turn}, {shift}')}, {top}")
        flipped = w.new(f"xor {ints} {w.new(f'bitcast {V} {value} to {ints}')}, {sign}")
        out.append(w.new(f"bitcast {ints} {flipped} to {V}"))
    return out[0], out[1]


def by_library(w, name: str, arguments: list[str]) -> str:
    """Write a call of a C library function, lane by lane."""
    V = w.lanes.vector
    w.used.add(f"; exact {name} {len(arguments)}")
    return w.new(f"call {V} @exact_{name}({', '.join(f'{V} {a}' for a in arguments)})")


def exact_functions(lanes, w) -> str:
    """Return the functions that `by_library` calls, with the declarations of the C library."""
    out = [RARE]
    for note in sorted(n for n in w.used if n.startswith("; exact")):
        _, _, name, count = note.split()
        out.append(_exact(lanes, name, int(count)))
    return "\n".join(out)


def _exact(lanes, name: str, count: int) -> str:
    V, S = lanes.vector, lanes.scalar
    arguments = [f"%a{k}" for k in range(count)]
    lines = [f"define internal {V} @exact_{name}({', '.join(f'{V} {a}' for a in arguments)}) noinline #0 {{"]
    value = "undef"
    for lane in range(lanes.count):
        passed = []
        for k, a in enumerate(arguments):
            lines.append(f"  %x{k}_{lane} = extractelement {V} {a}, i32 {lane}")
            passed.append(f"%x{k}_{lane}")
            if S == "float":
                lines.append(f"  %d{k}_{lane} = fpext float %x{k}_{lane} to double")
                passed[-1] = f"%d{k}_{lane}"
        lines.append(f"  %y_{lane} = call double @kt_{name}({', '.join(f'double {p}' for p in passed)})")
        result = f"%y_{lane}"
        if S == "float":
            lines.append(f"  %f_{lane} = fptrunc double %y_{lane} to float")
            result = f"%f_{lane}"
        lines.append(f"  %r_{lane} = insertelement {V} {value}, {S} {result}, i32 {lane}")
        value = f"%r_{lane}"
    lines += [f"  ret {V} {value}", "}", f"declare double @kt_{name}({', '.join(['double'] * count)})"]
    return "\n".join(lines)
