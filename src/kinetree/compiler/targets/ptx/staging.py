"""The layout of rows in shared memory: for each warp of 32 threads, one row per sample with its inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.operations import Op
from ...ir.program import Program

WARP = 32
LIMIT = 48 * 1024
"""The largest shared memory of a warp [bytes]: what every GPU gives a block without a special request."""


@dataclass(frozen=True)
class Layout:
    """Places of arrays in the row of a sample; None for arrays that threads access directly in global memory."""

    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    pitch: int

    def bytes(self, threads: int, size: int) -> int:
        """Return the shared memory of a block of threads, for numbers of this size."""
        return threads * self.pitch * size


def layout(program: Program, size: int) -> Layout:
    """Return the layout of a Program's arrays for numbers of `size` bytes.

    Small arrays come first until the memory is full. Outputs are placed over inputs that are no longer read. The
    distance between rows is odd, so that threads that access the same entry of their rows use different banks.
    """
    inputs, used = _inputs(program, _capacity(size))
    free = _last_reads(program, inputs, used)
    outputs: list[int | None] = [None] * len(program.outputs)
    for j in sorted(range(len(outputs)), key=lambda j: program.outputs[j].size):
        if program.outputs[j].size > 1:
            at = _fitting(program.results[j], free)
            if at + program.outputs[j].size <= _capacity(size):
                outputs[j] = at
                never = len(program.ops)
                free += [-1] * (at + program.outputs[j].size - len(free))
                free[at : at + program.outputs[j].size] = [never] * program.outputs[j].size
    return Layout(tuple(inputs), tuple(outputs), len(free) | 1)


def inputs_only(program: Program, size: int) -> Layout:
    """Return the layout of the inputs alone."""
    inputs, used = _inputs(program, _capacity(size))
    return Layout(tuple(inputs), (None,) * len(program.outputs), used | 1)


def _capacity(size: int) -> int:
    """Return the numbers of a row that fit."""
    return LIMIT // (WARP * size) - 1


def _inputs(program: Program, capacity: int) -> tuple[list[int | None], int]:
    """Return the places of inputs in a row, small arrays first until it is full, and their total size."""
    places: list[int | None] = [None] * len(program.inputs)
    used = 0
    for k in sorted(range(len(places)), key=lambda k: program.inputs[k].size):
        if 1 < program.inputs[k].size <= capacity - used:
            places[k], used = used, used + program.inputs[k].size
    return places, used


def _last_reads(program: Program, inputs: list[int | None], used: int) -> list[int]:
    """Return the operation that reads each entry of the row."""
    last = [-1] * used
    for k, (op, *x) in enumerate(program.ops):
        if op is Op.INPUT and (at := inputs[x[0]]) is not None:
            last[at + x[1]] = k
    return last


def _fitting(entries: tuple[int, ...], free: list[int]) -> int:
    """Return the first place at which each entry is written after the last read of what it overwrites."""
    for at in range(len(free)):
        if all(at + e >= len(free) or free[at + e] < k for e, k in enumerate(entries)):
            return at
    return len(free)
