"""Sines and cosines of two angles at once, in vectors of 128 bits, with errors below one unit in the last place.

The method is that of `sines`, with one difference: r is not rounded again after the correction s is known, so that the
polynomials need not wait for s. Up to LIMIT, s is small enough for that. Larger angles are taken one after the other.
"""

from __future__ import annotations

import math
import struct

from ..polynomials import COSINE, SINE
from .binary import SPLAT, routine
from .module import Module
from .sines import MAGIC, parts

LIMIT = 2.0**12
"""The largest angle [rad] of the vectors: beyond, products of s with higher powers of r would matter."""


def add_sine_pairs(module: Module, sines: int) -> int:
    """Add the function (x, y) -> ([sin x, sin y], [cos x, cos y]) to a module, and return its index."""

    def both(x: float | int) -> str:
        """Return the code of a vector with a constant in both lanes."""
        return f"i32.const 0 {SPLAT} {module.number(struct.pack('<d' if isinstance(x, float) else '<q', x))}"

    def polynomial(coefficients: tuple[float, ...]) -> str:
        more = " ".join(f"local.get z f64x2.mul {both(c)} f64x2.add" for c in coefficients[1:])
        return f"{both(coefficients[0])} {more}"

    first, second, third = parts()
    source = f"""
        local.get a f64x2.splat local.get b f64x2.replace_lane 1 local.tee x
        f64x2.abs {both(LIMIT)} f64x2.le i64x2.all_true i32.eqz
        if
            local.get a call sines local.set c local.set a
            local.get b call sines local.set d local.set b
            local.get a f64x2.splat local.get b f64x2.replace_lane 1
            local.get c f64x2.splat local.get d f64x2.replace_lane 1
            return
        end
        local.get x {both(2 / math.pi)} f64x2.mul {both(MAGIC)} f64x2.add local.tee q
        {both(MAGIC)} f64x2.sub local.set k
        local.get x local.get k {both(first)} f64x2.mul f64x2.sub
        local.tee x local.get k {both(second)} f64x2.mul local.tee w f64x2.sub local.tee r
        local.get x f64x2.sub local.set z
        local.get x local.get r local.get z f64x2.sub f64x2.sub local.get w local.get z f64x2.add f64x2.sub
        local.get k {both(third)} f64x2.mul f64x2.sub local.set s
        local.get r local.get r f64x2.mul local.tee z {both(0.5)} f64x2.mul local.set w
        local.get r local.get z local.get r f64x2.mul {polynomial(SINE[64])} f64x2.mul
        local.get s {both(1.0)} local.get w f64x2.sub local.tee k f64x2.mul f64x2.add f64x2.add local.set x
        local.get k {both(1.0)} local.get k f64x2.sub local.get w f64x2.sub
        local.get z local.get z f64x2.mul {polynomial(COSINE[64])} f64x2.mul
        local.get r local.get s f64x2.mul f64x2.sub f64x2.add f64x2.add local.set w
        {both(0)} local.get q {both(1)} v128.and i64x2.sub local.set z
        local.get w local.get x local.get z v128.bitselect
        local.get q {both(2)} v128.and i32.const 62 i64x2.shl v128.xor
        local.get x local.get w local.get z v128.bitselect
        local.get q {both(1)} i64x2.add {both(2)} v128.and i32.const 62 i64x2.shl v128.xor
        """
    variables = {"c": "f64", "d": "f64", **dict.fromkeys(("x", "q", "k", "w", "r", "z", "s"), "v128")}
    return module.add(
        ("f64", "f64"), ("v128", "v128"), routine({"a": "f64", "b": "f64"}, variables, source, {"sines": sines})
    )
