"""Elementary functions in LLVM's own arithmetic, for processors without a C library: one number at a time, in double.

Each function is a reduction to a small interval and a polynomial there (polynomials.py). float32 is computed in double
and rounded. Measured errors are below 2.5 units in the last place of the double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from ..polynomials import ATAN, EXP, LOG, LOG_2_SHORT, QUARTER_PI
from . import vector_math
from .writer import SCALARS, Writer

# --- Angles of any size reduced to one revolution, by integer arithmetic alone (Payne and Hanek) ---
#
# x = m 2^e is m times 2^e / (2 pi) revolutions. Of the bits of 1 / (2 pi), those in front of the window of 192 bits
# that starts at 2^e give whole revolutions, those behind it do not matter. The product modulo 2^192 is the fraction.

LEAD = 64
"""Zero bits in front of the table, for angles with e < 0."""
WORDS = 21
"""64-bit words of the table: LEAD + 971 bits, the largest e of a double, and four words of a window."""
TWO_PI = (6.283185307179586, 2.4492935982947064e-16)


@cache
def table() -> str:
    """Return the definition of the table of the bits of 1 / (2 pi)."""
    bits = 64 * WORDS - LEAD
    value = (1 << 2 * bits + 64) // (2 * _pi(bits + 64))
    words = [value >> 64 * (WORDS - 1 - k) & 2**64 - 1 for k in range(WORDS)]
    return f"@revolutions = internal constant [{WORDS} x i64] [{', '.join(f'i64 {x}' for x in words)}]"


def _pi(bits: int) -> int:
    """Return pi 2^bits, rounded down, by Machin's formula."""
    guard = 32
    one = 1 << bits + guard

    def arctan_of_inverse(n: int) -> int:
        power, total, k = one // n, one // n, 1
        while power:
            power //= -n * n
            k += 2
            total += power // k
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> guard


def revolution(w: Writer, x: str) -> str:
    """Write the angle in [-pi, pi] that equals x, for 2^26 <= |x|; NaN for infinities."""
    lanes = SCALARS["float64"]

    def op(how: str, a: str, b: str | int) -> str:
        return w.new(f"{how} i64 {a}, {b}")

    w.used.add(table())
    pattern = w.new(f"bitcast double {x} to i64")
    biased = op("and", op("lshr", pattern, 52), 2047)
    mantissa = op("or", op("and", pattern, 2**52 - 1), 2**52)
    start = op("sub", biased, 1075 - LEAD)
    # Numbers for which there is no window read the first one; their result is not used.
    start = w.new(f"select i1 {op('icmp ult', start, 64 * (WORDS - 4))}, i64 {start}, i64 0")
    first, shift = op("lshr", start, 6), op("and", start, 63)
    words = []
    for k in range(4):
        place = w.new(f"getelementptr i64, ptr @revolutions, i64 {op('add', first, k)}")
        words.append(w.new(f"load i64, ptr {place}"))
    w.used.add("declare i64 @llvm.fshl.i64(i64, i64, i64)")
    window = [w.new(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})") for a, b in pairwise(words)]
    # The upper two words of the product modulo 2^192.
    wide = [w.new(f"zext i64 {part} to i128") for part in (*window, mantissa)]
    low = w.new(f"mul i128 {wide[2]}, {wide[3]}")
    middle = w.new(f"mul i128 {wide[1]}, {wide[3]}")
    carry = w.new(f"lshr i128 {low}, 64")
    middle = w.new(f"add i128 {middle}, {carry}")
    next_word = w.new(f"trunc i128 {middle} to i64")
    upper = w.new(f"trunc i128 {w.new(f'lshr i128 {middle}, 64')} to i64")
    top = op("add", op("mul", window[0], mantissa), upper)
    # As two doubles without rounding: 53 bits with the sign of the nearest revolution, and the next 53.
    head = w.new(f"sitofp i64 {op('ashr', top, 11)} to double")
    tail = op("or", op("shl", op("and", top, 2**11 - 1), 42), op("lshr", next_word, 22))
    tail = w.new(f"sitofp i64 {tail} to double")
    a = w.new(f"fmul double {head}, {lanes.number(2.0**-53)}")
    b = w.new(f"fmul double {tail}, {lanes.number(2.0**-106)}")
    rest = w.intrinsic("llvm.fma", a, lanes.number(TWO_PI[1]), w.new(f"fmul double {b}, {lanes.number(TWO_PI[0])}"))
    angle = w.intrinsic("llvm.fma", a, lanes.number(TWO_PI[0]), rest)
    signed = w.new(f"select i1 {op('icmp slt', pattern, 0)}, double {w.new(f'fneg double {angle}')}, double {angle}")
    finite = op("icmp ne", biased, 2047)
    return w.new(f"select i1 {finite}, double {signed}, double {w.new(f'fsub double {x}, {x}')}")


LOG_2 = (0.6931471805599453, 2.3190468138462996e-17)

DOUBLE = SCALARS["float64"]


class Formula:
    """Instructions on doubles, written as calls."""

    def __init__(self, w: Writer) -> None:
        """Write to a function on scalars."""
        self.w = w

    def number(self, x: str | float) -> str:
        """Return the text of an operand."""
        return x if isinstance(x, str) else DOUBLE.number(x)

    def two(self, how: str, a: str | float, b: str | float) -> str:
        """Write fadd, fsub, fmul, fdiv or a comparison of doubles."""
        return self.w.new(f"{how} double {self.number(a)}, {self.number(b)}")

    def fma(self, a: str | float, b: str | float, c: str | float) -> str:
        """Write a b + c with one rounding."""
        return self.w.intrinsic("llvm.fma", *map(self.number, (a, b, c)))

    def sqrt(self, a: str) -> str:
        """Write a square root."""
        return self.w.intrinsic("llvm.sqrt", a)

    def choose(self, condition: str, yes: str | float, no: str | float) -> str:
        """Write a selection."""
        return self.w.new(f"select i1 {condition}, double {self.number(yes)}, double {self.number(no)}")

    def horner(self, coefficients: tuple[float, ...], z: str) -> str:
        """Write a polynomial."""
        y: str | float = coefficients[0]
        for k in coefficients[1:]:
            y = self.fma(y, z, k)
        return self.number(y)

    def bits(self, a: str) -> str:
        """Write the bit pattern of a double."""
        return self.w.new(f"bitcast double {a} to i64")

    def unbits(self, a: str) -> str:
        """Write the double of a bit pattern."""
        return self.w.new(f"bitcast i64 {a} to double")

    def integer(self, how: str, a: str, b: str | int) -> str:
        """Write an operation on integers."""
        return self.w.new(f"{how} i64 {a}, {b}")


def _exp(w: Writer, x: str) -> str:
    """Write exp x = 2^k exp r, r = x - k log 2."""
    f = Formula(w)
    x = f.choose(f.two("fcmp olt", x, -750.0), -750.0, x)
    x = f.choose(f.two("fcmp ogt", x, 720.0), 720.0, x)  # comparisons with NaN are false
    shifted = f.fma(x, 1 / math.log(2.0), vector_math.MAGIC[64])
    k = f.two("fsub", shifted, vector_math.MAGIC[64])
    r = f.fma(k, -LOG_2[1], f.fma(k, -LOG_2[0], x))
    y = f.two("fadd", f.fma(f.two("fmul", r, r), f.horner(EXP, r), r), 1.0)
    # Two factors 2^(k/2), because 2^k alone may be no double where the result is one.
    whole = f.integer("sub", f.bits(shifted), DOUBLE.pattern(vector_math.MAGIC[64]))
    half = f.integer("ashr", whole, 1)
    for part in (half, f.integer("sub", whole, half)):
        y = f.two("fmul", y, f.unbits(f.integer("shl", f.integer("add", part, 1023), 52)))
    return y


def _log(w: Writer, x: str) -> str:
    """Write log x = k log 2 + log(1 + f)."""
    f = Formula(w)
    tiny = f.two("fcmp olt", x, 2.0**-1022)
    scaled = f.choose(tiny, f.two("fmul", x, 2.0**54), x)
    pattern = f.bits(scaled)
    k = f.integer("ashr", f.integer("sub", pattern, DOUBLE.pattern(math.sqrt(0.5))), 52)
    m = f.unbits(f.integer("sub", pattern, f.integer("shl", k, 52)))
    power = f.two("fadd", w.new(f"sitofp i64 {k} to double"), f.choose(tiny, -54.0, 0.0))
    d = f.two("fsub", m, 1.0)
    s = f.two("fdiv", d, f.two("fadd", d, 2.0))
    z = f.two("fmul", s, s)
    square = f.two("fmul", f.two("fmul", d, 0.5), d)
    rest = f.fma(s, f.fma(z, f.horner(LOG, z), square), f.two("fmul", power, LOG_2_SHORT[1]))
    y = f.fma(power, LOG_2_SHORT[0], f.two("fsub", d, f.two("fsub", square, rest)))
    y = f.choose(f.two("fcmp oeq", x, math.inf), math.inf, y)
    y = f.choose(f.two("fcmp oeq", x, 0.0), -math.inf, y)
    return f.choose(f.two("fcmp uge", x, 0.0), f.choose(f.two("fcmp uno", x, x), x, y), math.nan)


def _atan2(w: Writer, y: str, x: str) -> str:
    """Write the angle c pi/4 +- atan t of the point (x, y), |t| <= tan(pi/8)."""
    f = Formula(w)
    a, b = w.intrinsic("llvm.fabs", y), w.intrinsic("llvm.fabs", x)
    steep = f.two("fcmp ogt", a, b)
    low, high = f.choose(steep, b, a), f.choose(steep, a, b)
    endless = w.new(f"and i1 {f.two('fcmp oeq', low, math.inf)}, {f.two('fcmp oeq', high, math.inf)}")
    low, high = f.choose(endless, 1.0, low), f.choose(endless, 1.0, high)
    factor = f.choose(f.two("fcmp ogt", high, 1e300), 2.0**-4, 1.0)  # the sum of both must not overflow
    low, high = f.two("fmul", low, factor), f.two("fmul", high, factor)
    high = f.choose(f.two("fcmp oeq", high, 0.0), 1.0, high)
    middle = f.two("fcmp ogt", low, f.two("fmul", high, math.tan(math.pi / 8)))
    above = f.choose(middle, f.two("fsub", low, high), low)
    t = f.two("fdiv", above, f.choose(middle, f.two("fadd", low, high), high))
    z = f.two("fmul", t, t)
    angle = f.fma(f.two("fmul", f.horner(ATAN, z), z), t, t)
    count = f.choose(middle, 1.0, 0.0)
    behind = f.integer("icmp slt", f.bits(x), 0)  # also for -0
    for mirrored, center in ((steep, 2.0), (behind, 4.0)):
        count = f.choose(mirrored, f.two("fsub", center, count), count)
        angle = f.choose(mirrored, w.new(f"fneg double {angle}"), angle)
    total = f.fma(count, QUARTER_PI[0], f.fma(count, QUARTER_PI[1], angle))
    return w.intrinsic("llvm.copysign", total, y)


def _leg(f: Formula, x: str) -> str:
    """Write the square root of 1 - x^2."""
    return f.sqrt(f.two("fmul", f.two("fsub", 1.0, x), f.two("fadd", 1.0, x)))


def _asin(w: Writer, x: str) -> str:
    return _atan2(w, x, _leg(Formula(w), x))


def _acos(w: Writer, x: str) -> str:
    return _atan2(w, _leg(Formula(w), x), x)


def _atan(w: Writer, x: str) -> str:
    return _atan2(w, x, DOUBLE.number(1.0))


def _tan(w: Writer, x: str) -> str:
    sine, cosine = guarded_sines(w, x)
    return Formula(w).two("fdiv", sine, cosine)


WRITERS: dict[str, Callable[..., str]] = {
    "exp": _exp,
    "log": _log,
    "atan2": _atan2,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "tan": _tan,
    "revolution": revolution,
}


def call(w: Writer, name: str, arguments: list[str]) -> str:
    """Write the call of a function on doubles, with conversions for float32."""
    lanes = w.lanes
    if lanes.bits == 32:
        arguments = [w.new(f"fpext float {a} to double") for a in arguments]
    w.used.add(f"; own {name} {len(arguments)}")
    y = w.new(f"call double @own_{name}({', '.join(f'double {a}' for a in arguments)})")
    return w.new(f"fptrunc double {y} to float") if lanes.bits == 32 else y


def guarded_sines(w: Writer, x: str) -> tuple[str, str]:
    """Write sine and cosine of an angle of any size; large ones are reduced to one revolution on a rare branch."""
    return vector_math.sines(w, within_a_revolution(w, [x])[0])


def within_a_revolution(w: Writer, angles: list[str]) -> list[str]:
    """Write angles, all of which are reduced to one revolution if one of them is beyond the limit of `sines`."""
    V, here = w.lanes.vector, w.label
    small: list[str] = []
    cold = if_any_large(w, angles, lambda: small.extend(call(w, "revolution", [x]) for x in angles))
    return [w.new(f"phi {V} [ {x}, %{here} ], [ {y}, %{cold} ]") for x, y in zip(angles, small, strict=True)]


def if_any_large(w: Writer, angles: list[str], rare: Callable[[], None]) -> str:
    """Write a branch for angles beyond the limit of `sines`, and return the label of its last block."""
    lanes = w.lanes
    largest = w.intrinsic("llvm.fabs", angles[0])
    for x in angles[1:]:
        largest = w.intrinsic("llvm.maxnum", largest, w.intrinsic("llvm.fabs", x))
    over = w.new(f"fcmp ogt {lanes.vector} {largest}, {lanes.constant(vector_math.LIMIT[lanes.bits])}")
    cold, merge = w.block("large"), w.block("merge")
    w.do(f"br i1 {over}, label %{cold}, label %{merge}, !prof !0")
    w.begin(cold)
    rare()
    last = w.label
    w.do(f"br label %{merge}")
    w.begin(merge)
    return last


def definitions(used: set[str]) -> tuple[list[str], set[str]]:
    """Return the definitions of the functions that `call` has noted, and the declarations that they need."""
    out, declared, done = [], set(), set()
    notes = {n for n in used if n.startswith("; own")}
    while notes - done:
        note = min(notes - done)
        done.add(note)
        _, _, name, count = note.split()
        w = Writer(DOUBLE)
        arguments = [f"%a{k}" for k in range(int(count))]
        result = WRITERS[name](w, *arguments)
        w.do(f"ret double {result}")
        passed = ", ".join(f"double {a}" for a in arguments)
        out += [f"define internal double @own_{name}({passed}) noinline #0 {{", "entry:", *w.lines, "}"]
        notes |= {n for n in w.used if n.startswith("; own")}
        declared |= {n for n in w.used if not n.startswith("; own")}
    return out, declared
