"""Programs as lists of steps: numbers that an interpreter on the GPU reads, in the order and with the bits of a kernel.

A step is a name and four numbers: the slot of its result, and up to three operands. Slots are used again after the last
use of their values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...ir.operations import Op
from ...ir.program import Program
from ..llvm.fusion import Fusion
from .choices import bare_angles, fused
from .staging import Layout


class Step(NamedTuple):
    """A step of the interpreter on values: the name of a case, its results and its operands.

    `number` is the index of an array's entry or of a constant.
    """

    name: str
    results: tuple[object, ...]
    operands: tuple[object, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class Steps:
    """The steps of a Program as rows (case, result, three operands), its cases by name, its constants and its slots."""

    cases: tuple[str, ...]
    rows: tuple[tuple[int, int, int, int, int], ...]
    constants: tuple[float, ...]
    slots: int


SIGNS = {(False, False): "fma", (False, True): "fma-rest", (True, False): "fma-product", (True, True): "fma-both"}
"""The cases of fused products, by the signs of the product and of what is added."""


def steps(program: Program, places: Layout | None) -> Steps:
    """Return the steps of a Program, given in the order of a kernel with the kernel's layout of shared memory."""
    constants: dict[bytes, int] = {}
    found = list(_steps(program, places, constants))
    last = {value: i for i, step in enumerate(found) for value in (*step.results, *step.operands)}
    cases: dict[str, int] = {}
    slots: dict[object, int] = {}
    free: list[int] = []
    count, rows = 0, []
    for i, step in enumerate(found):
        operands = [slots[value] for value in step.operands]
        for value in dict.fromkeys(step.operands):
            if last[value] == i:
                free.append(slots[value])
        results = []
        for value in step.results:
            if not free:
                free.append(count)
                count += 1
            slots[value] = free.pop()
            results.append(slots[value])
        free += [slots[value] for value in step.results if last[value] == i]
        case = cases.setdefault(step.name, len(cases))
        rows.append(_row(case, results, operands, step.number))
    return Steps(
        tuple(cases), tuple(rows), tuple(x for bits in constants for x in struct.unpack("d", bits)), max(count, 1)
    )


def _row(case: int, results: list[int], operands: list[int], number: int) -> tuple[int, int, int, int, int]:
    """Return a row; numbers are in the place of the third operand, and the second of two results, too."""
    x = [*operands, 0, 0, 0][:3]
    if len(results) > 1:
        x[2] = results[1]
    elif len(operands) < 3:
        x[2] = number
    return case, results[0] if results else 0, x[0], x[1], x[2]


def _steps(program: Program, places: Layout | None, constants: dict[bytes, int]) -> Iterator[Step]:
    """Yield the steps; values are numbers of operations, and pairs for what is computed beside them."""
    fusions = fused(program, places)
    bare, angles = bare_angles(program, places)
    stored: dict[int, list[tuple[int, int]]] = {}
    for group, entries in enumerate(program.results):
        for index, k in enumerate(entries):
            stored.setdefault(k, []).append((group, index))
    yield from _angles(angles)
    used = {j for i, op in enumerate(program.ops) if op[0] > Op.CONST for j in _operands(program, fusions, i)}
    sines: set[int] = set()
    for k, (op, *x) in enumerate(program.ops):
        if k not in used and k not in stored:
            continue  # a product that is part of all its sums
        if op is Op.INPUT:
            group, index = x
            if (group, index) in angles:
                yield Step("reduce", (k,), (("angle", group, index), ("largest", len(angles) - 1)))
            else:
                yield Step(f"input {group}", (k,), (), index)
        elif op is Op.CONST:
            yield Step("constant", (k,), (), constants.setdefault(struct.pack("d", x[0]), len(constants)))
        elif k in fusions:
            fusion = fusions[k]
            yield Step(SIGNS[fusion.minus_product, fusion.minus_rest], (k,), fusion.operands)
        elif op in (Op.SIN, Op.COS):
            if x[0] not in sines:
                sines.add(x[0])
                yield Step("sines" if x[0] in bare else "guarded sines", (("sin", x[0]), ("cos", x[0])), (x[0],))
            yield Step("copy", (k,), ((op.name.lower(), x[0]),))
        else:
            yield Step(op.name.lower(), (k,), tuple(x))
        for group, index in stored.get(k, ()):
            yield Step(f"output {group}", (), (k,), index)


def _angles(angles: list[tuple[int, int]]) -> Iterator[Step]:
    """Yield the loads of bare angles, and the largest of them."""
    for n, (group, index) in enumerate(angles):
        value = ("angle", group, index)
        yield Step(f"input {group}", (value,), (), index)
        if n:
            yield Step("larger", (("largest", n),), (("largest", n - 1), value))
        else:
            yield Step("size", (("largest", 0),), (value,))


def _operands(program: Program, fusions: Mapping[int, Fusion], i: int) -> tuple[int, ...]:
    return fusions[i].operands if i in fusions else program.ops[i][1:]
