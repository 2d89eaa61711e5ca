"""A Program in two parts: the second takes inputs that are known only after the first has run."""

from __future__ import annotations

from .forms import Array
from .operations import BOOLEANS, Op
from .program import Program

KEPT = "kept"
"""The name of the values that the first part passes on."""


def split(program: Program, late: str, *outputs: str) -> tuple[Program, Program]:
    """Return the operations that do not depend on an input, and those that do, as two Programs.

    The outputs of the first are those that do not depend on the input, then `kept`; those of the second are the others,
    with all that are named. The inputs of the second are `kept`
    and the late input. Together they have the operations of the whole, so that the bits are the same; comparisons that
    the second part needs are computed again there.
    """
    group = next(g for g, a in enumerate(program.inputs) if a.name == late)
    after = _dependent(program, group)
    named = [a.name in outputs for a in program.outputs]
    early = [k for k, entries in enumerate(program.results) if not (named[k] or any(after[i] for i in entries))]
    second = [k for k in range(len(program.results)) if k not in early]
    kept = sorted(_crossing(program, after, [i for k in second for i in program.results[k]]))
    passed = Array(KEPT, (len(kept),))
    first = _part(
        program,
        {i: _moved(op, group) for i, op in enumerate(program.ops) if not after[i]},
        tuple(a for a in program.inputs if a.name != late),
        (*(program.outputs[k] for k in early), passed),
        (*(program.results[k] for k in early), tuple(kept)),
    )
    place = {i: n for n, i in enumerate(kept)}
    ops = {
        i: (Op.INPUT, 0, place[i]) if i in place else (Op.INPUT, 1, op[2]) if _is_input(op, group) else op
        for i, op in enumerate(program.ops)
        if after[i] or i in place or op[0] is Op.CONST or op[0] in BOOLEANS
    }
    return first, _part(
        program,
        ops,
        (passed, program.inputs[group]),
        tuple(program.outputs[k] for k in second),
        tuple(program.results[k] for k in second),
    )


def _dependent(program: Program, group: int) -> list[bool]:
    """Return which operations depend on an input."""
    out: list[bool] = []
    for op in program.ops:
        out.append(_is_input(op, group) or (op[0] > Op.CONST and any(out[k] for k in op[1:])))
    return out


def _crossing(program: Program, after: list[bool], roots: list[int]) -> set[int]:
    """Return the numbers of the first part that the second one uses, itself or in comparisons."""
    out: set[int] = set()
    stack, seen = list(roots), set()
    while stack:
        i = stack.pop()
        op = program.ops[i]
        if i in seen or op[0] is Op.CONST:
            continue
        seen.add(i)
        if after[i] or op[0] in BOOLEANS:
            stack.extend(op[1:] if op[0] > Op.CONST else ())
        else:
            out.add(i)
    return out


def _part(program: Program, ops: dict[int, tuple], inputs, outputs, results) -> Program:
    """Return the Program of some operations, with those that its results need."""
    needed, stack = set(), [i for entries in results for i in entries]
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack.extend(ops[i][1:] if ops[i][0] > Op.CONST else ())
    new = {i: n for n, i in enumerate(sorted(needed))}
    own = tuple(ops[i] if ops[i][0] <= Op.CONST else (ops[i][0], *(new[k] for k in ops[i][1:])) for i in sorted(needed))
    return Program(program.name, tuple(inputs), tuple(outputs), own, tuple(tuple(new[i] for i in e) for e in results))


def _is_input(op: tuple, group: int) -> bool:
    return op[0] is Op.INPUT and op[1] == group


def _moved(op: tuple, group: int) -> tuple:
    """Return an operation of the first part, whose inputs lack the late one."""
    return (op[0], op[1] - 1, op[2]) if op[0] is Op.INPUT and op[1] > group else op
