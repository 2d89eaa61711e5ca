"""Floating-point flags: the mask agrees with this machine's C library, and every flag is cleared."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

import pytest

from kinetree.targets.llvm import writer


@pytest.mark.skipif(sys.platform == "win32", reason="its C library has another name")
def test_the_mask_is_what_the_c_library_can_raise():
    """Raise one flag after the other, and find all of them in the mask of this machine."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.feclearexcept(writer.all_flags())
    found = 0
    for bit in range(31):
        library.feraiseexcept(1 << bit)
        found |= library.fetestexcept(1 << bit)
    library.feclearexcept(writer.all_flags())
    assert found == writer.all_flags()
    assert found & ~writer.reported_flags() == writer.INEXACT[writer.platform.machine().lower()]
    assert library.fetestexcept(found) == 0


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("linux", "x86_64", (61, 29)), ("linux", "aarch64", (31, 15)), ("darwin", "arm64", (31, 15)),
        ("win32", "AMD64", (31, 30)), ("linux", "unheard_of", (0, 0)),
    ],
)  # fmt: skip
def test_masks_by_platform(monkeypatch, system, machine, expected):
    """Use the mask of the processor, on Windows that of its C runtime, and clear no flag on unknown machines."""
    monkeypatch.setattr(writer.sys, "platform", system)
    monkeypatch.setattr(writer.platform, "machine", lambda: machine)
    assert (writer.all_flags(), writer.reported_flags()) == expected
