"""Sines and cosines of two or four angles at once, in vectors of two, with errors below one unit in the last place.

The method is that of `sines`, with one difference: r is not rounded again after the correction s is known, so that the
polynomials need not wait for s. Up to LIMIT, s is small enough for that. Larger angles are taken one after the other.
"""

from __future__ import annotations

import math
import struct

from ..polynomials import COSINE, SINE
from .binary import VECTOR, routine
from .module import Module
from .sines import MAGIC, parts

LIMIT = 2.0**12
"""The largest angle [rad] of the vectors: beyond, products of s with higher powers of r would matter."""

SIZES = (4, 2)
"""The numbers of angles of a call; two vectors at once share the loads of the constants."""

Line = tuple[str, str, float | int | None]
"""A variable, its new value as words without `local.get`, and a constant, which is the variable `c` in it."""


def add_sine_group(module: Module, size: int, sines: int) -> int:
    """Add the function of `size` angles -> (vectors of their sines, vectors of their cosines); return its index."""
    angles, pairs = [f"a{i}" for i in range(size)], range(size // 2)
    lines = _lines()
    contents = list(dict.fromkeys(_both(x) for _, _, x in [*lines, ("", "", LIMIT)] if x is not None))
    table = module.constants(b"".join(contents))

    def constant(x: float | int) -> str:
        return f"i32.const 0 {VECTOR} {table + 16 * contents.index(_both(x))}"

    def vectors(names: list[str]) -> str:
        made = (
            f"local.get {names[2 * i]} f64x2.splat local.get {names[2 * i + 1]} f64x2.replace_lane 1" for i in pairs
        )
        return " ".join(made)

    near = " ".join(f"local.get x{i} f64x2.abs {constant(LIMIT)} f64x2.le i64x2.all_true" for i in pairs)
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
