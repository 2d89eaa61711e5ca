"""Elementary functions of float64 as functions of the module, with errors below two units in the last place.

Each is a reduction to a small interval and a polynomial there. A module has those that its Programs use.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable

from ..polynomials import ATAN, EXP, LOG, LOG_2_SHORT, QUARTER_PI
from .module import Module, horner, routine
from .sines import SIZES, add_sine_group, add_sines


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
