"""Types, names and numbers in C."""

from __future__ import annotations

import math
import re

import numpy as np

REALS = {"float64": ("double", ""), "float32": ("float", "f")}
"""The C type of numbers and the suffix of the C library's functions, by dtype."""

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    "and and_eq asm bitand bitor bool catch class compl constexpr const_cast decltype delete dynamic_cast explicit "
    "export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "reinterpret_cast static_cast template this throw true try typeid typename using virtual wchar_t xor xor_eq "
    "I".split()
)
"""The keywords of C and C++, since headers serve both, and the macro I of complex.h."""

LOCAL = re.compile(r"[vmn]\d|m_")
"""The beginning of the names of local variables, blocks of memory and extents."""


def identifier(name: str) -> str:
    """Return a valid name in C and C++ that differs from those of local variables."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    free = re.match(r"[A-Za-z]", plain) and not LOCAL.match(plain) and plain not in KEYWORDS
    return plain if free else f"a_{plain}"


def number(x: float, suffix: str) -> str:
    """Return a number as a hexadecimal literal that keeps every bit of the type."""
    if suffix:
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    if not math.isfinite(x):
        return "NAN" if math.isnan(x) else ("INFINITY" if x > 0 else "(-INFINITY)")
    text = float(x).hex() + suffix
    return f"({text})" if text.startswith("-") else text
