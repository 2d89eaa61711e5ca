"""The LLVM types of a sample's numbers: vectors with one lane per sample, or scalars of a single sample."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Lanes:
    """A vector type with as many samples as 64 bytes hold."""

    scalar: str
    bits: int
    count: int

    @property
    def vector(self) -> str:
        """The LLVM type of a vector."""
        return f"<{self.count} x {self.scalar}>"

    @property
    def integers(self) -> str:
        """The LLVM type of integers as wide as the scalars."""
        return f"<{self.count} x i{self.bits}>"

    @property
    def mask(self) -> str:
        """The LLVM type of a comparison's result."""
        return f"<{self.count} x i1>"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsic functions on vectors of this type."""
        return f"v{self.count}f{self.bits}"

    def constant(self, x: float) -> str:
        """Return a vector with the same number in every lane."""
        return f"splat ({self.scalar} {self.number(x)})"

    def whole(self, n: int) -> str:
        """Return a vector with the same integer in every lane."""
        return f"splat (i{self.bits} {n})" if n else "zeroinitializer"

    @property
    def true(self) -> str:
        """The mask that is true in every lane."""
        return "splat (i1 true)"

    def number(self, x: float) -> str:
        """Return a number with every bit kept; a float32 is written as the double it equals."""
        return number(x, self.bits)

    def pattern(self, x: float) -> int:
        """Return the bit pattern of a number as an integer."""
        return pattern(x, self.bits)


@dataclass(frozen=True)
class Scalars:
    """The same interface for one sample, whose numbers are scalars: for processors without vectors, such as GPUs."""

    scalar: str
    bits: int
    count = 1

    @property
    def vector(self) -> str:
        """The LLVM type of a number."""
        return self.scalar

    @property
    def integers(self) -> str:
        """The LLVM type of integers as wide as the numbers."""
        return f"i{self.bits}"

    @property
    def mask(self) -> str:
        """The LLVM type of a comparison's result."""
        return "i1"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsic functions on this type."""
        return f"f{self.bits}"

    def constant(self, x: float) -> str:
        """Return a number."""
        return self.number(x)

    def whole(self, n: int) -> str:
        """Return an integer."""
        return str(n)

    @property
    def true(self) -> str:
        """The true mask."""
        return "true"

    def number(self, x: float) -> str:
        """Return a number with every bit kept; a float32 is written as the double it equals."""
        return number(x, self.bits)

    def pattern(self, x: float) -> int:
        """Return the bit pattern of a number as an integer."""
        return pattern(x, self.bits)


LANES = {"float64": Lanes("double", 64, 8), "float32": Lanes("float", 32, 16)}
SCALARS = {"float64": Scalars("double", 64), "float32": Scalars("float", 32)}


def number(x: float, bits: int) -> str:
    """Return a number with every bit kept; a float32 is written as the double it equals."""
    if bits == 32:
        x = struct.unpack("f", struct.pack("f", x))[0]
    return "0x" + struct.pack(">d", x).hex().upper()


def pattern(x: float, bits: int) -> int:
    """Return the bit pattern of a number as an integer."""
    return int.from_bytes(struct.pack(">d" if bits == 64 else ">f", x))
