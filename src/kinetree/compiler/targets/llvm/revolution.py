"""Angles of any size reduced to one revolution, by integer arithmetic alone (Payne and Hanek).

x = m 2^e is m times 2^e / (2 pi) revolutions. Of the bits of 1 / (2 pi), those in front of the window of 192 bits that
starts at 2^e give whole revolutions, those behind it do not matter. The product modulo 2^192 is the fraction.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from .instructions import Writer
from .number_types import SCALARS

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
