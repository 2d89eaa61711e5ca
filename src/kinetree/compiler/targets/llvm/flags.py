"""The floating-point exception flags of the processor, which NumPy reads after every call."""

from __future__ import annotations

import platform
import sys

from .writer import Text

ALL = {
    "x86_64": 0x3D, "amd64": 0x3D, "aarch64": 0x1F, "arm64": 0x1F, "riscv64": 0x1F,
    "ppc64le": 0x3E000000, "s390x": 0x00F80000,
}  # fmt: skip
"""FE_ALL_EXCEPT of <fenv.h> by machine: invalid, divide by zero, overflow, underflow, inexact."""
WINDOWS = 0x1F
"""FE_ALL_EXCEPT of the Universal C Runtime, the same on every machine."""


def all_flags() -> int:
    """Return FE_ALL_EXCEPT of this machine; 0, which clears no flag, on unknown machines."""
    return WINDOWS if sys.platform == "win32" else ALL.get(platform.machine().lower(), 0)


def clear_flags(t: Text) -> None:
    """Write a call of feclearexcept for all flags."""
    t.used.add("declare i32 @kt_feclearexcept(i32)")
    t.new(f"call i32 @kt_feclearexcept(i32 {all_flags()})")
