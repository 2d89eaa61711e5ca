"""A Program in stages: each takes inputs that are known only after those before it have run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .operations import BOOLEANS, Op
from .program import Array, Program

KEPT = "kept"
"""The beginning of the name of the values that a stage passes on to later ones; the number of the stage follows."""


def in_stages(program: Program, *stages: Sequence[str]) -> list[Program]:
    """Return a Program per stage, which has the outputs of these names, then the values that later stages take from it.

    The first takes the inputs. Each of the others takes all outputs of those before it, in order: laid out one after
    the other in one block of memory, the outputs of a stage follow its inputs. An input with the name of an output is
    late: it is that output, which may have been changed. An operation is carried out in the first stage that needs it,
    so that the bits are the same as from the whole. Comparisons that a later stage needs are computed again there.
    """
    late = {g: a.name for g, a in enumerate(program.inputs) if any(a.name in names for names in stages)}
    stage = _stages(program, late, stages)
    crossing = _crossing(program, stage, late, stages)
    made: list[Program] = []
    known: tuple[Array, ...] = tuple(a for g, a in enumerate(program.inputs) if g not in late)
    for s, names in enumerate(stages):
        passed = Array(f"{KEPT}{s}", (len(crossing[s]),))
        outputs = (*(_named(program.outputs, name) for name in names), *([passed] if crossing[s] else []))
        results = [_result(program, name) for name in names] + ([crossing[s]] if crossing[s] else [])
        made.append(_part(program, s, known, outputs, results, stage, crossing, late))
        known = outputs if s == 0 else (*known, *outputs)
    return made


def constant_part(program: Program, name: str) -> tuple[Program, Program] | None:
    """Return what follows from one input alone, and the rest, for calls between which this input does not change.

    The first Program has the same inputs, and the output `kept0`. The rest has that output as a further input, after
    the others. It carries out comparisons itself, so that all values that pass are numbers. The whole has
    the same bits. None if no operation has operands that follow from that input alone.
    """
    group = [a.name for a in program.inputs].index(name)
    early: list[bool] = []
    for op in program.ops:
        leaf = op[0] is Op.CONST or (op[0] is Op.INPUT and op[1] == group)
        early.append(leaf if op[0] <= Op.CONST else all(early[i] for i in op[1:]))
    used = {i for k, op in enumerate(program.ops) if op[0] > Op.CONST and not early[k] for i in op[1:]}
    used.update(i for entries in program.results for i in entries)
    stack = [i for i in used if early[i]]
    passed: set[int] = set()
    while stack:
        op = program.ops[i := stack.pop()]
        if op[0] in BOOLEANS:
            stack.extend(op[1:])
        elif op[0] > Op.CONST:
            passed.add(i)
    if not passed:
        return None
    kept = Array(f"{KEPT}0", (len(passed),))
    order = sorted(passed)
    place = {i: (Op.INPUT, len(program.inputs), k) for k, i in enumerate(order)}
    first = _needed(program.name, program.inputs, (kept,), program.ops.__getitem__, [order])
    rest = (*program.inputs, kept)
    return first, _needed(program.name, rest, program.outputs, lambda i: place.get(i, program.ops[i]), program.results)


def some_outputs(program: Program, places: Sequence[int]) -> Program:
    """Return the Program of the outputs at some places, with all inputs."""
    outputs = [program.outputs[k] for k in places]
    results = [program.results[k] for k in places]
    return _needed(program.name, program.inputs, outputs, program.ops.__getitem__, results)


def _stages(program: Program, late: dict[int, str], stages: Sequence[Sequence[str]]) -> list[int]:
    """Return the stage in which each operation is carried out; inputs that are not late belong to the first."""
    stage = [-1] * len(program.ops)
    for s, names in enumerate(stages):
        stack = [i for name in names for i in _result(program, name)]
        while stack:
            i = stack.pop()
            if stage[i] < 0:
                op = program.ops[i]
                stage[i] = 0 if op[0] is Op.INPUT and op[1] not in late else s
                stack.extend(op[1:] if op[0] > Op.CONST else ())
    return stage


def _crossing(program: Program, stage: list[int], late: dict[int, str], stages) -> list[list[int]]:
    """Return the values of each stage that later ones use, themselves or in comparisons."""
    out: list[set[int]] = [set() for _ in stages]
    for s, names in enumerate(stages):
        stack = [i for i in range(len(program.ops)) if stage[i] == s]
        stack += [i for name in names for i in _result(program, name) if stage[i] < s]
        seen: set[int] = set()
        while stack:
            i = stack.pop()
            op = program.ops[i]
            if i in seen or op[0] is Op.CONST or (op[0] is Op.INPUT and op[1] in late):
                continue
            seen.add(i)
            if stage[i] == s or op[0] in BOOLEANS:
                stack.extend(op[1:] if op[0] > Op.CONST else ())
            else:
                out[stage[i]].add(i)
    return [sorted(x) for x in out]


def _part(
    program: Program, s: int, known: tuple[Array, ...], outputs, results, stage: list[int], crossing, late
) -> Program:
    """Return the Program of one stage from the arrays that are known before it."""
    group = {a.name: g for g, a in enumerate(known)}
    place = {i: (Op.INPUT, group[f"{KEPT}{n}"], k) for n in range(s) for k, i in enumerate(crossing[n])}

    def operation(i: int) -> tuple:
        op = program.ops[i]
        if op[0] is Op.INPUT and (s == 0 or op[1] in late):
            return (Op.INPUT, group[program.inputs[op[1]].name], op[2])
        return place.get(i, op) if stage[i] < s and op[0] not in BOOLEANS else op

    return _needed(program.name, known, outputs, operation, results)


def _needed(name: str, inputs, outputs, operation: Callable[[int], tuple], results) -> Program:
    """Return the Program of the operations on which results depend, with their old numbers in increasing order."""
    ops: dict[int, tuple] = {}
    stack = [i for entries in results for i in entries]
    while stack:
        i = stack.pop()
        if i not in ops:
            ops[i] = operation(i)
            stack.extend(ops[i][1:] if ops[i][0] > Op.CONST else ())
    new = {i: n for n, i in enumerate(sorted(ops))}
    own = tuple(ops[i] if ops[i][0] <= Op.CONST else (ops[i][0], *(new[k] for k in ops[i][1:])) for i in sorted(ops))
    return Program(name, tuple(inputs), tuple(outputs), own, tuple(tuple(new[i] for i in e) for e in results))


def _result(program: Program, name: str) -> tuple[int, ...]:
    return next(x for a, x in zip(program.outputs, program.results, strict=True) if a.name == name)


def _named(arrays: Sequence[Array], name: str) -> Array:
    return next(a for a in arrays if a.name == name)


# --- Orders of a Program's operations, such as the one in which each is computed shortly before it is used ---


def limb_by_limb(program: Program) -> Program:
    """Return the same operations, result after result, each with its operands before it.

    A page of sweeps computes all bodies outward, then all bodies inward. Most of its values then wait in memory. Here
    those of a limb are used before the next limb begins. Of two operands, the one that takes more registers comes
    first [Sethi1970]. Values do not change.
    """
    return depth_first(program, (k for entries in program.results for k in entries), _registers(program))


def depth_first(program: Program, roots: Iterable[int], ranks: Sequence[int] | None = None) -> Program:
    """Return a Program whose operations come as late as the roots allow, which are taken one after the other.

    Of the operands of an operation, the one with the highest rank comes first; by default the last one of the Program.
    """
    ranks = range(len(program.ops)) if ranks is None else ranks
    seen, order = bytearray(len(program.ops)), []
    for root in roots:
        stack = [(root, False)]
        while stack:
            k, ready = stack.pop()
            if ready:
                order.append(k)
            elif not seen[k]:
                seen[k] = 1
                stack.append((k, True))
                if program.ops[k][0] > Op.CONST:
                    stack.extend((i, False) for i in sorted(program.ops[k][1:], key=ranks.__getitem__))
    return reorder(program, order)


def reorder(program: Program, order: Sequence[int]) -> Program:
    """Return the operations with these numbers in this order; each must follow its operands."""
    place = {k: i for i, k in enumerate(order)}
    ops = (program.ops[k] for k in order)
    return replace(
        program,
        ops=tuple(op if op[0] <= Op.CONST else (op[0], *(place[k] for k in op[1:])) for op in ops),
        results=tuple(tuple(place[k] for k in entries) for entries in program.results),
    )


def _registers(program: Program) -> list[int]:
    """Return how many registers each value would take if it were the only one, and no value had two uses."""
    needs: list[int] = []
    for op in program.ops:
        if op[0] <= Op.CONST:
            needs.append(int(op[0] is Op.INPUT))
        else:
            least = sorted((needs[j] for j in op[1:]), reverse=True)
            needs.append(max(x + k for k, x in enumerate(least)))
    return needs
