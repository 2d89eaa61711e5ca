"""ptxas, the assembler of PTX: on the PATH, or from the wheel of the test extra."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

WHEEL = Path(sysconfig.get_path("purelib"), "nvidia", "cuda_nvcc", "bin", "ptxas")
PTXAS = str(WHEEL) if WHEEL.exists() else shutil.which("ptxas")
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="no ptxas in the test extra or on the PATH")


def assembled(code: bytes, folder: Path, architecture: str = "sm_90") -> dict[str, tuple[int, int]]:
    """Assemble PTX and return the registers and the bytes of spilled stores of each entry."""
    path = folder / "code.ptx"
    path.write_bytes(code)
    command = [str(PTXAS), "-v", f"-arch={architecture}", str(path), "-o", str(folder / "code.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pattern = r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
    return {m[1]: (int(m[3]), int(m[2])) for m in re.finditer(pattern, done.stderr, re.DOTALL)}
