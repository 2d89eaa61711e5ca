"""Units with distinct names of arrays and with a name of their own."""

from __future__ import annotations

from dataclasses import replace

from ..ir.program import Array, Program


def distinct(program: Program, name: str) -> Program:
    """Return a Program under another name; outputs that are named like an input get the ending _out."""
    taken = {a.name for a in program.inputs}
    outputs = tuple(Array(f"{a.name}_out", a.shape) if a.name in taken else a for a in program.outputs)
    return replace(program, name=name, outputs=outputs)
