"""Elementary functions of float64 as functions of the module, with errors below two units in the last place.

Each is a reduction to a small interval and a polynomial there. A module has those that its Programs use.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from fractions import Fraction

from ..polynomials import ATAN, COSINE, EXP, LOG, LOG_2_SHORT, QUARTER_PI, SINE
from .module import VECTOR, Module, horner, routine

MAGIC = 1.5 * 2.0**52
"""A number whose sum with k has k in its last bits."""

LIMIT = 2.0**19
"""The largest angle [rad] that is reduced by subtraction; k has at most 20 bits below it."""

_PI_DIGITS = (
    "314159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328"
    "230664709384460955058223172535940812848111745028410270193852110555964462294895493038196442881097566593344612847564"
    "823378678316527120190914564856692346034861045432664821339360726024914127372458700660631558817488152092096282925409"
    "171536436789259036001133053054882046652138414695194151160943305727036575959195309218611738193261179310511854807446"
)


def _pi() -> Fraction:
    return Fraction(int(_PI_DIGITS), 10 ** (len(_PI_DIGITS) - 1))


def parts() -> tuple[float, float, float]:
    """Return pi/2 in three parts: two of 33 bits, and the rest."""
    rest, found = _pi() / 2, []
    for bits in (32, 66):
        found.append(Fraction(math.floor(rest * 2**bits), 2**bits))
        rest -= found[-1]
    return float(found[0]), float(found[1]), float(rest)


WORDS = 20
"""The number of 64-bit words of the table of 2/pi: one of zeros, and enough bits for the largest finite angle."""


def _table() -> bytes:
    """Return 2/pi in words of 64 bits after one word of zeros, the most significant word first."""
    whole = math.floor(2 / _pi() * 2 ** (64 * (WORDS - 1)))
    return b"".join((whole >> 64 * (WORDS - 2 - k) & (2**64 - 1)).to_bytes(8, "little") for k in range(-1, WORDS - 1))


def add_sines(module: Module) -> int:
    """Add the function x -> (sin x, cos x) to a module, and return its index."""
    high = module.add(("i64", "i64"), ("i64",), _high_product())
    far = module.add(("f64",), ("f64", "f64", "i32"), _far(module.reserve(8 * WORDS, _table()), high))
    return module.add(("f64",), ("f64", "f64"), _sines(far))


def _high_product() -> bytes:
    """Return the function (a, b) -> the upper 64 bits of their product, for a below 2^53."""
    return routine(
        {"a": "i64", "b": "i64"},
        {"low": "i64", "mid": "i64"},
        """
        local.get a i64.const 0xffffffff i64.and local.tee low
        local.get b i64.const 32 i64.shr_u i64.mul
        local.get low local.get b i64.const 0xffffffff i64.and i64.mul i64.const 32 i64.shr_u i64.add local.tee mid
        i64.const 0xffffffff i64.and
        local.get a i64.const 32 i64.shr_u local.tee low
        local.get b i64.const 0xffffffff i64.and i64.mul i64.add i64.const 32 i64.shr_u
        local.get mid i64.const 32 i64.shr_u i64.add
        local.get low local.get b i64.const 32 i64.shr_u i64.mul i64.add
        """,
    )


def _far(table: int, high: int) -> bytes:
    """Return the function x -> (r, s, k mod 4) for angles beyond LIMIT, NaN for angles that are not finite.

    With x = m 2^e, the bits of 2/pi with a weight of 4 / 2^e or more contribute whole revolutions. The next 192 bits
    are multiplied by m. The two upper words of the product have 2 bits of the quadrant and 126 bits of its fraction.
    """

    def word(k: int) -> str:
        """Return the code for 64 bits of 2/pi at a distance of k words, from two neighbors in the table."""
        return f"""
            local.get at i64.load {table + 8 * k} local.get shift i64.shl
            local.get at i64.load {table + 8 * k + 8} i64.const 1 i64.shr_u
            i64.const 63 local.get shift i64.sub i64.shr_u i64.or
            """

    first, second, third = parts()
    source = f"""
        local.get x local.get x f64.sub f64.const 0 f64.ne
        if f64.const nan f64.const nan i32.const 0 return end
        local.get x i64.reinterpret_f64 local.tee bits
        i64.const 0xfffffffffffff i64.and i64.const 0x10000000000000 i64.or local.set m
        local.get bits i64.const 52 i64.shr_u i64.const 0x7ff i64.and i64.const {1023 + 52 + 2 - 64} i64.sub
        local.tee shift i64.const 6 i64.shr_u i64.const 3 i64.shl i32.wrap_i64 local.set at
        local.get shift i64.const 63 i64.and local.set shift
        local.get m {word(1)} local.tee w i64.mul
        local.get m {word(2)} call high i64.add local.set next
        local.get m {word(0)} i64.mul local.get m local.get w call high i64.add
        local.get next local.get m local.get w i64.mul i64.lt_u i64.extend_i32_u i64.add local.tee top
        i64.const 62 i64.shr_u i32.wrap_i64
        local.get top i64.const 2 i64.shl local.get next i64.const 62 i64.shr_u i64.or local.tee top
        i64.const 63 i64.shr_u i32.wrap_i64 i32.add local.set k
        local.get top f64.convert_i64_s local.tee f f64.const {2.0**-64!r} f64.mul
        local.get top local.get f i64.trunc_sat_f64_s i64.sub f64.convert_i64_s
        local.get next i64.const 2 i64.shl f64.convert_i64_u f64.const {2.0**-64!r} f64.mul f64.add
        f64.const {2.0**-64!r} f64.mul local.set g local.set f
        local.get bits i64.const 0 i64.lt_s
        if
            local.get f f64.neg local.set f local.get g f64.neg local.set g
            i32.const 0 local.get k i32.sub local.set k
        end
        """
    # r + s = (f + g) pi/2; the upper 20 bits of f make the largest product exact
    source += f"""
        local.get f f64.const {2.0**33 + 1!r} f64.mul local.tee x
        local.get x local.get f f64.sub f64.sub local.tee x f64.const {first!r} f64.mul
        local.get f local.get x f64.sub f64.const {first!r} f64.mul
        local.get f f64.const {second + third!r} f64.mul f64.add
        local.get g f64.const {math.pi / 2!r} f64.mul f64.add local.set g
        local.tee f local.get g f64.add local.tee x
        local.get f local.get x f64.sub local.get g f64.add
        local.get k
        """
    variables = {
        **dict.fromkeys(("bits", "m", "w", "top", "next", "shift"), "i64"),
        "at": "i32",
        "k": "i32",
        "f": "f64",
        "g": "f64",
    }
    return routine({"x": "f64"}, variables, source, {"high": high})


def _sines(far: int) -> bytes:
    """Return the function x -> (sin x, cos x)."""
    first, second, third = parts()
    source = f"""
        local.get x f64.abs f64.const {LIMIT!r} f64.le
        if
            local.get x f64.const {2 / math.pi!r} f64.mul f64.const {MAGIC!r} f64.add local.tee k
            i64.reinterpret_f64 i32.wrap_i64 local.set q
            local.get x local.get k f64.const {MAGIC!r} f64.sub local.tee k f64.const {first!r} f64.mul f64.sub
            local.tee x local.get k f64.const {second!r} f64.mul local.tee w f64.sub local.tee r
            local.get x f64.sub local.set z
            local.get x local.get r local.get z f64.sub f64.sub local.get w local.get z f64.add f64.sub
            local.get k f64.const {third!r} f64.mul f64.sub local.set s
            local.get r local.get s f64.add local.tee x
            local.get r local.get x f64.sub local.get s f64.add local.set s local.set r
        else
            local.get x call far local.set q local.set s local.set r
        end
        local.get r local.get r f64.mul local.tee z f64.const 0.5 f64.mul local.set w
        local.get r local.get z local.get r f64.mul {horner(SINE[64], "z")} f64.mul
        local.get s f64.const 1 local.get w f64.sub local.tee k f64.mul f64.add f64.add local.set x
        local.get k f64.const 1 local.get k f64.sub local.get w f64.sub
        local.get z local.get z f64.mul {horner(COSINE[64], "z")} f64.mul local.get r local.get s f64.mul f64.sub
        f64.add f64.add local.set w
        local.get w local.get x local.get q i32.const 1 i32.and select local.tee r
        f64.neg local.get r local.get q i32.const 2 i32.and select
        local.get x local.get w local.get q i32.const 1 i32.and select local.tee r
        f64.neg local.get r local.get q i32.const 1 i32.add i32.const 2 i32.and select
        """
    variables = {**dict.fromkeys(("k", "w", "r", "z", "s"), "f64"), "q": "i32"}
    return routine({"x": "f64"}, variables, source, {"far": far})


# --- Sines and cosines of two or four angles at once, in vectors of two, with errors below one unit in the last
# place.
#
# The method is the same as in `sines`, with one difference: r is not rounded again after the correction s is known, so
# that the polynomials need not wait for s. Up to LIMIT, s is small enough for that. Larger angles are taken one after
# the other.

GROUP_LIMIT = 2.0**12
"""The largest angle [rad] of the vectors: beyond, products of s with higher powers of r would matter."""

SIZES = (4, 2)
"""The numbers of angles of a call; two vectors at once share the loads of the constants."""

Line = tuple[str, str, float | int | None]
"""A variable, its new value as words without `local.get`, and a constant, which is the variable `c` in it."""


def add_sine_group(module: Module, size: int, sines: int) -> int:
    """Add the function of `size` angles -> (vectors of their sines, vectors of their cosines); return its index."""
    angles, pairs = [f"a{i}" for i in range(size)], range(size // 2)
    lines = _lines()
    contents = list(dict.fromkeys(_both(x) for _, _, x in [*lines, ("", "", GROUP_LIMIT)] if x is not None))
    table = module.constants(b"".join(contents))

    def constant(x: float | int) -> str:
        return f"i32.const 0 {VECTOR} {table + 16 * contents.index(_both(x))}"

    def vectors(names: list[str]) -> str:
        made = (
            f"local.get {names[2 * i]} f64x2.splat local.get {names[2 * i + 1]} f64x2.replace_lane 1" for i in pairs
        )
        return " ".join(made)

    near = " ".join(f"local.get x{i} f64x2.abs {constant(GROUP_LIMIT)} f64x2.le i64x2.all_true" for i in pairs)
    each = " ".join(f"local.get {a} call sines local.set b{i} local.set {a}" for i, a in enumerate(angles))
    source = f"""
        {vectors(angles)} {" ".join(f"local.set x{i}" for i in reversed(pairs))}
        {near} {"i32.and" if size > 2 else ""} i32.eqz
        if {each} {vectors(angles)} {vectors([f"b{i}" for i in range(size)])} return end
        """
    for name, words, x in lines:
        source += f"{constant(x)} local.set c " if x is not None else ""
        for i in pairs:
            source += f"{_value(words, i)} local.set {name}{i} "
    source += " ".join(f"local.get {name}{i}" for name in "rw" for i in pairs)
    variables = {f"b{i}": "f64" for i in range(size)} | {"c": "v128", "zero": "v128"}
    variables |= {f"{name}{i}": "v128" for name in "xqkwrzsp" for i in pairs}
    made = routine(dict.fromkeys(angles, "f64"), variables, source, {"sines": sines})
    return module.add(("f64",) * size, ("v128",) * size, made)


def _lines() -> list[Line]:
    """Return the sines r and the cosines w of vectors x of angles."""
    first, second, third = parts()
    return [
        ("q", "$x c f64x2.mul", 2 / math.pi),
        ("q", "$q c f64x2.add", MAGIC),
        ("k", "$q c f64x2.sub", MAGIC),
        ("x", "$x $k c f64x2.mul f64x2.sub", first),
        ("w", "$k c f64x2.mul", second),
        ("r", "$x $w f64x2.sub", None),
        ("z", "$r $x f64x2.sub", None),
        ("s", "$x $r $z f64x2.sub f64x2.sub $w $z f64x2.add f64x2.sub", None),
        ("s", "$s $k c f64x2.mul f64x2.sub", third),
        ("z", "$r $r f64x2.mul", None),
        ("w", "$z c f64x2.mul", 0.5),
        ("k", "c $w f64x2.sub", 1.0),
        *_polynomial(SINE[64]),
        ("x", "$r $z $r f64x2.mul $p f64x2.mul $s $k f64x2.mul f64x2.add f64x2.add", None),
        ("w", "c $k f64x2.sub $w f64x2.sub", 1.0),
        *_polynomial(COSINE[64]),
        ("w", "$k $w $z $z f64x2.mul $p f64x2.mul $r $s f64x2.mul f64x2.sub f64x2.add f64x2.add", None),
        ("z", "zero $q c v128.and i64x2.sub", 1),
        ("r", "$w $x $z v128.bitselect", None),
        ("w", "$x $w $z v128.bitselect", None),
        ("k", "$q c i64x2.add", 1),
        ("r", "$r $q c v128.and i32.const 62 i64x2.shl v128.xor", 2),
        ("w", "$w $k c v128.and i32.const 62 i64x2.shl v128.xor", 2),
    ]


def _value(words: str, i: int) -> str:
    """Return the instructions of a line for one vector: `$x` is its variable, and all vectors share `c` and `zero`."""

    def instruction(word: str) -> str:
        if word in ("c", "zero"):
            return f"local.get {word}"
        return f"local.get {word[1:]}{i}" if word[0] == "$" else word

    return " ".join(map(instruction, words.split()))


def _both(x: float | int) -> bytes:
    """Return a constant in both lanes."""
    return 2 * struct.pack("<d" if isinstance(x, float) else "<q", x)


def _polynomial(coefficients: tuple[float, ...]) -> list[Line]:
    """Return the lines of a polynomial p in z, with the highest power first."""
    return [("p", "c", coefficients[0]), *(("p", "$p $z f64x2.mul c f64x2.add", x) for x in coefficients[1:])]


# --- The other functions ---


def add_functions(module: Module, names: Iterable[str]) -> dict[str, int]:
    """Add functions by name, and those that they call, to a module; return their indices."""
    made: dict[str, int] = {}

    def add(name: str) -> int:
        if name not in made:
            needed, write = FUNCTIONS[name]
            below = {other: add(other) for other in needed}
            made[name] = write(module, below)
        return made[name]

    for name in sorted(names):
        add(name)
    return made


def _exp(module: Module, _: dict[str, int]) -> int:
    """Add exp x = 2^k exp r, r = x - k log 2; 2^k is two factors, because it may be no number where exp x is one."""
    high, low = LOG_2_SHORT

    def power(exponent: str) -> str:
        return f"{exponent} i64.const 1023 i64.add i64.const 52 i64.shl f64.reinterpret_i64"

    source = f"""
        local.get x f64.const -750 f64.max f64.const 720 f64.min local.tee x
        f64.const {1 / math.log(2)!r} f64.mul f64.nearest local.set k
        local.get x local.get k f64.const {high!r} f64.mul f64.sub local.get k f64.const {low!r} f64.mul f64.sub
        local.tee r
        local.get r local.get r f64.mul {horner(EXP, "r")} f64.mul f64.add f64.const 1 f64.add
        local.get k i64.trunc_sat_f64_s local.tee n i64.const 1 i64.shr_s local.set half
        {power("local.get half")} f64.mul {power("local.get n local.get half i64.sub")} f64.mul
        """
    variables = {"k": "f64", "r": "f64", "n": "i64", "half": "i64"}
    return module.add(("f64",), ("f64",), routine({"x": "f64"}, variables, source))


def _log(module: Module, _: dict[str, int]) -> int:
    """Add log x = k log 2 + log(1 + d), with 1 + d between the roots of 1/2 and 2."""
    high, low = LOG_2_SHORT
    root = int.from_bytes(struct.pack(">d", math.sqrt(0.5)), "big")
    source = f"""
        local.get x f64.const {2.0**-1022!r} f64.lt local.set tiny
        local.get x f64.const {2.0**54!r} f64.mul local.get x local.get tiny select i64.reinterpret_f64 local.tee n
        local.get n i64.const {root} i64.sub i64.const 52 i64.shr_s local.tee e i64.const 52 i64.shl i64.sub
        f64.reinterpret_i64 f64.const 1 f64.sub local.tee d
        local.get d f64.const 2 f64.add f64.div local.tee s local.get s f64.mul local.set z
        local.get e f64.convert_i64_s local.get tiny f64.convert_i32_s f64.const 54 f64.mul f64.sub local.set k
        local.get d f64.const 0.5 f64.mul local.get d f64.mul local.set h
        local.get k f64.const {high!r} f64.mul
        local.get d local.get h
        local.get s local.get h local.get z {horner(LOG, "z")} f64.mul f64.add f64.mul
        local.get k f64.const {low!r} f64.mul f64.add f64.sub f64.sub f64.add local.set z
        f64.const inf local.get z local.get x f64.const inf f64.eq select local.set z
        f64.const -inf local.get z local.get x f64.const 0 f64.eq select local.set z
        f64.const nan local.get z local.get x f64.const 0 f64.ge i32.eqz select
        """
    variables = {**dict.fromkeys(("d", "s", "z", "k", "h"), "f64"), "n": "i64", "e": "i64", "tiny": "i32"}
    return module.add(("f64",), ("f64",), routine({"x": "f64"}, variables, source))


def _atan2(module: Module, _: dict[str, int]) -> int:
    """Add the angle c pi/4 +- atan t of the point (x, y), |t| <= tan(pi/8)."""
    mirrored = """
        local.get angle f64.neg local.set angle f64.const {center} local.get c f64.sub local.set c
        """
    source = f"""
        local.get y f64.abs local.get x f64.abs f64.min local.tee low f64.const inf f64.eq
        if
            f64.const 1 local.set low f64.const 1 local.set high
        else
            local.get y f64.abs local.get x f64.abs f64.max local.tee high f64.const 1e300 f64.gt
            if
                local.get low f64.const 0.0625 f64.mul local.set low
                local.get high f64.const 0.0625 f64.mul local.set high
            end
            local.get high f64.const 0 f64.eq
            if f64.const 1 local.set high end
        end
        local.get low local.get high f64.const {math.tan(math.pi / 8)!r} f64.mul f64.gt local.tee middle
        f64.convert_i32_s local.set c
        local.get low local.get high f64.sub local.get low local.get middle select
        local.get low local.get high f64.add local.get high local.get middle select
        f64.div local.tee t local.get t f64.mul local.set z
        local.get t local.get t local.get z {horner(ATAN, "z")} f64.mul f64.mul f64.add local.set angle
        local.get y f64.abs local.get x f64.abs f64.gt
        if {mirrored.format(center=2)} end
        f64.const 1 local.get x f64.copysign f64.const 0 f64.lt
        if {mirrored.format(center=4)} end
        local.get c f64.const {QUARTER_PI[0]!r} f64.mul
        local.get c f64.const {QUARTER_PI[1]!r} f64.mul local.get angle f64.add f64.add
        local.get y f64.copysign
        """
    variables = {**dict.fromkeys(("low", "high", "c", "t", "z", "angle"), "f64"), "middle": "i32"}
    return module.add(("f64", "f64"), ("f64",), routine({"y": "f64", "x": "f64"}, variables, source))


def _of_one(source: str) -> Callable[[Module, dict[str, int]], int]:
    """Return the writer of a function of one number that calls others."""
    return lambda module, below: module.add(("f64",), ("f64",), routine({"x": "f64"}, {"y": "f64"}, source, below))


LEG = "f64.const 1 local.get x f64.sub f64.const 1 local.get x f64.add f64.mul f64.sqrt"
"""The square root of 1 - x^2."""

FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[[Module, dict[str, int]], int]]] = {
    "sines": ((), lambda module, _: add_sines(module)),
    "exp": ((), _exp),
    "log": ((), _log),
    "atan2": ((), _atan2),
    "atan": (("atan2",), _of_one("local.get x f64.const 1 call atan2")),
    "asin": (("atan2",), _of_one(f"local.get x {LEG} call atan2")),
    "acos": (("atan2",), _of_one(f"{LEG} local.get x call atan2")),
    "tan": (("sines",), _of_one("local.get x call sines local.set y local.get y f64.div")),
}
"""The functions by name: those that they call, and their writers; "sines" has two results, sine and cosine."""

FUNCTIONS |= {
    f"sines of {n}": (("sines",), lambda module, below, n=n: add_sine_group(module, n, below["sines"])) for n in SIZES
}
"""The sines of several angles, whose results are vectors: all sines, then all cosines."""
