"""The table of targets, and the modules that may import LLVM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kinetree
from kinetree.errors import InputError, UnknownNameError
from kinetree.targets import EMITTERS, TARGETS, emitter, target
from native_program import traced

PACKAGE = Path(kinetree.__file__).parent


def test_targets_are_found_by_name():
    """Get each target, with a text and a fingerprint, and refuse an unknown name."""
    program = traced(lambda x: [x * 3.0])
    for name in TARGETS:
        assert target(name) is target(name)
        assert target(name).fingerprint()
        assert "x" in target(name).emit(program, "float64")
    with pytest.raises(UnknownNameError, match="no target 'cuda'; available: llvm"):
        target("cuda")


def test_emitters_are_found_by_suffix():
    """Get the content of a file of each suffix, and refuse an unknown suffix."""
    program = traced(lambda x: [x * 3.0])
    for suffix in EMITTERS:
        assert emitter(suffix) is emitter(suffix)
        assert len(emitter(suffix).emit(program, "float64")) > 30
    with pytest.raises(
        InputError, match=r"the suffix '.f90' is not one of exported code; expected one of .c, .o, .obj, .wasm, .ptx"
    ):
        emitter(".f90")


def test_one_line_knows_llvm():
    """Find LLVM imported only by its own modules, by the PTX that it writes, and by the table of targets."""
    users = set()
    for path in PACKAGE.rglob("*.py"):
        if re.search(r"^\s*(from|import)\s.*\bllvm", path.read_text(encoding="utf-8"), re.MULTILINE):
            users.add(path.relative_to(PACKAGE).as_posix())
    own = ("targets/llvm/", "targets/ptx/")
    assert {u for u in users if not u.startswith(own)} == {"targets/__init__.py"}
