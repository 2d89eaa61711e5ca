"""The C compiler of the tests: the installed one, or that of the ziglang package."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

ZIG = [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else []
COMPILER = next(([path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), ZIG)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C compiler (cc, gcc, clang or the package ziglang)")

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]

MAIN = "int {name}_selftest(void);\nint main(void) {{ return {name}_selftest(); }}\n"
"""A program that runs a self-test; its exit status is the number of the first wrong sample."""


def library(sources: Sequence[Path], *flags: str, level: str = "-O0") -> ctypes.CDLL:
    """Compile sources and object files to a shared library; warnings are errors."""
    out = sources[0].with_suffix(f".{abs(hash((tuple(sources), flags)))}.so")
    call = [*COMPILER, *STRICT, level, "-fPIC", "-shared", *flags, *map(str, sources), "-o", str(out), "-lm"]
    subprocess.run(call, check=True)
    return ctypes.CDLL(str(out))


def called(function, inputs: Sequence, shapes: Sequence[tuple[int, ...]], dtype: str = "float64", first=()) -> list:
    """Call a C function sample by sample, with further arguments first; return its outputs of the given shapes."""
    count = len(inputs[0])
    arrays = [np.ascontiguousarray(x, dtype) for x in inputs]
    out = [np.full((count, *shape), np.nan, dtype) for shape in shapes]
    for k in range(count):
        function(*first, *(ctypes.c_void_p(x[k : k + 1].ctypes.data) for x in (*arrays, *out)))
    return out
