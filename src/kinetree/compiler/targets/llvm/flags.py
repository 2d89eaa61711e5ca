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
INEXACT = {
    "x86_64": 0x20, "amd64": 0x20, "aarch64": 0x10, "arm64": 0x10, "riscv64": 0x01,
    "ppc64le": 0x02000000, "s390x": 0x00080000,
}  # fmt: skip
"""FE_INEXACT of <fenv.h> by machine, which almost every operation raises."""
WINDOWS, INEXACT_ON_WINDOWS = 0x1F, 0x01
"""FE_ALL_EXCEPT and FE_INEXACT of the Universal C Runtime, the same on every machine."""


def all_flags() -> int:
    """Return FE_ALL_EXCEPT of this machine; 0, which clears no flag, on unknown machines."""
    return WINDOWS if sys.platform == "win32" else ALL.get(platform.machine().lower(), 0)


def reported_flags() -> int:
    """Return the flags that NumPy reports, which are all but that of inexact results; 0 on unknown machines."""
    inexact = INEXACT_ON_WINDOWS if sys.platform == "win32" else INEXACT.get(platform.machine().lower(), 0)
    return all_flags() & ~inexact


def raised_flags(t: Text) -> str:
    """Write whether any of the flags that NumPy reports is raised."""
    t.used.add("declare i32 @kt_fetestexcept(i32)")
    return t.new(f"icmp ne i32 {t.new(f'call i32 @kt_fetestexcept(i32 {reported_flags()})')}, 0")


def clear_flags(t: Text) -> None:
    """Write a call of feclearexcept for all flags."""
    t.used.add("declare i32 @kt_feclearexcept(i32)")
    t.new(f"call i32 @kt_feclearexcept(i32 {all_flags()})")
