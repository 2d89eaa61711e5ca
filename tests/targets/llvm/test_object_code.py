"""Object code for this computer, linked and run, and for others, by its headers and symbols and in emulators."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import MAIN, ZIG, called, library, needs_compiler
from kinetree.errors import InputError
from kinetree.targets import object_code
from native_program import traced
from strategies import State
from tolerance import assert_close

EPS = float(np.finfo(float).eps)

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "cortex-m7": 40, "cortex-m4": 40, "cortex-m33": 40}
"""The machine in an ELF header, by processor."""


def elf_symbols(data: bytes) -> dict[str, int]:
    """Return the names of the symbols of an ELF object file, each with its section (0 if it is undefined)."""
    wide = data[4] == 2
    at, size, count = (
        struct.unpack_from("<Q", data, 40)[0] if wide else struct.unpack_from("<I", data, 32)[0],
        *(struct.unpack_from("<HH", data, 58 if wide else 46)),
    )
    layout = "<IIQQQQIIQQ" if wide else "<10I"
    sections = [struct.unpack_from(layout, data, at + k * size) for k in range(count)]
    table = next(s for s in sections if s[1] == 2)
    strings = sections[table[6]][4]
    out = {}
    entry = 24 if wide else 16
    for place in range(table[4], table[4] + table[5], entry):
        name, section = (
            struct.unpack_from("<I", data, place)[0],
            struct.unpack_from("<H", data, place + (6 if wide else 14))[0],
        )
        text = data[strings + name : data.index(b"\0", strings + name)].decode()
        if text:
            out[text] = section
    return out


@pytest.mark.parametrize("processor", MACHINES)
def test_other_processors(processor):
    """Write object code for each processor, and find its machine, its function and the functions of the C library."""
    program = replace(traced(lambda x, y: [x.sin() * y.sqrt(), x.atan2(y)], 2), name="motion")
    data = object_code(processor).emit(program, "float64")
    assert data[:4] == b"\x7fELF" and data[4] == (1 if "cortex" in processor else 2)
    assert struct.unpack_from("<H", data, 18)[0] == MACHINES[processor]
    symbols = elf_symbols(data)
    assert symbols["motion"] > 0 and symbols["sin"] == 0 and symbols["atan2"] == 0
    assert ("__aeabi_dmul" in symbols) == (processor in ("cortex-m4", "cortex-m33"))  # no hardware for doubles
    assert "sinf" in elf_symbols(object_code(processor).emit(program, "float32"))
    assert object_code(processor).emit(program, "float64") == data


def test_unknown_processors():
    """Ask for a processor that LLVM does not know, and for code of a rolled function."""
    with pytest.raises(
        InputError, match=r"triple is 'z80-toaster', which LLVM does not know .*give one of native, x86"
    ):
        object_code("z80-toaster")
    rolled = kt.chain(4).function("inverse_dynamics", lowering="rolled").program
    with pytest.raises(InputError, match="object code is not written for a BoundProgram; use lowering='unrolled'"):
        object_code("native").emit(rolled, "float64")  # type: ignore[arg-type]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_native_object_code(dtype, tmp_path):
    """Link object code for this computer and compare it with the gufunc."""
    arm = kt.load("stanford")
    path = arm.function("forward_dynamics", dtype=dtype).save(tmp_path / "fd.o")
    s = State(arm.mechanism, 4)
    (found,) = called(library([path]).forward_dynamics, (s.q, s.qd, s.tau), [(arm.nv,)], dtype)
    given = [x.astype(dtype).astype(float) for x in (s.q, s.qd, s.tau)]
    expected = arm.forward_dynamics(*given)
    condition = np.linalg.cond(arm.inertia_matrix(s.q)).max()
    assert_close(found, expected, 20 * np.finfo(dtype).eps * condition * np.abs(expected).max(), dtype)


@needs_compiler
@pytest.mark.parametrize("name", everyday.some(["planar_3r", "four_bar"]))
def test_object_code_passes_the_self_test_of_the_c_source(name, tmp_path):
    """Link the object code of a function, a step and a run to the self-tests of the C source."""
    kt.export(kt.load(name), ["forward_dynamics", "step", "run"], ["c", "object"], tmp_path)
    kt.export(kt.load(name), "run", ["c", "object"], tmp_path, method="dopri5", prefix="adaptive_")
    for function in ("forward_dynamics", "time_step", "run", "adaptive_run"):
        both = [tmp_path / f"{function}.c", tmp_path / f"{function}.o"]
        assert library(both, "-DKINETREE_SELFTEST_ONLY")[f"{function}_selftest"]() == 0


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["aarch64", "riscv64"])
def test_emulated_processors(processor, tmp_path):
    """Run object code of a closed mechanism in an emulator, with the self-tests of the C source."""
    emulator = shutil.which(f"qemu-{processor}") or shutil.which(f"qemu-{processor}-static")
    if not emulator or not ZIG:
        pytest.skip(f"qemu-{processor} (apt: qemu-user) or the package ziglang is not installed")
    kt.export(kt.load("four_bar"), ["forward_dynamics", "step", "run"], ["c", f"object:{processor}"], tmp_path)
    for function in ("forward_dynamics", "time_step", "run"):
        main = tmp_path / "main.c"
        main.write_text(MAIN.format(name=function))
        files = [main, tmp_path / f"{function}.c", tmp_path / f"{function}.{processor}.o"]
        out = tmp_path / function
        target = ["-target", f"{processor}-linux-musl", "-static", "-O1", "-DKINETREE_SELFTEST_ONLY"]
        subprocess.run([*ZIG, *target, *map(str, files), "-o", str(out), "-lm"], check=True)
        assert subprocess.run([emulator, str(out)]).returncode == 0
