"""Local variables of a WebAssembly function: values share few variables, each free again after the last use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ....errors import InputError
from .binary import indexed

Token = bytes | tuple[str, int]
"""Code, or an access to a value by its number: ("local.get", k), ("local.set", k) or ("local.tee", k)."""

MOST_VARIABLES = 50_000
"""The largest number of local variables that V8 accepts in a function."""

MOST_BYTES = 7_654_321
"""The largest function that V8 accepts [bytes]."""


def assign(
    tokens: Sequence[Token],
    types: Mapping[int, str],
    parameters: int,
    name: str,
    loops: Sequence[tuple[int, int]] = (),
) -> tuple[list[tuple[int, str]], bytes]:
    """Return the counts of variables by type, and the code with values replaced by variables.

    Every value is written before it is read. `loops` are the first and last places of loops among the tokens, inner
    ones first. Variables that are accessed often have small indices, which take fewer bytes.
    """
    last = _last_uses(tokens, loops)
    ends: dict[int, list[int]] = {}
    for value, at in last.items():
        ends.setdefault(at, []).append(value)
    made: list[str] = []
    free: dict[str, list[int]] = {kind: [] for kind in types.values()}
    place: dict[int, int] = {}
    accesses: Counter[int] = Counter()
    for at, token in enumerate(tokens):
        if not isinstance(token, bytes):
            value = token[1]
            if value not in place:
                pool = free[types[value]]
                place[value] = pool.pop() if pool else len(made)
                if place[value] == len(made):
                    made.append(types[value])
            accesses[place[value]] += 1
        for value in ends.get(at, ()):
            free[types[value]].append(place[value])
    _refuse_large(name, len(made) + parameters, MOST_VARIABLES, "variables")
    kinds = sorted(set(made), key=lambda kind: -sum(n for k, n in accesses.items() if made[k] == kind))
    order = sorted(range(len(made)), key=lambda k: (kinds.index(made[k]), -accesses[k]))
    index = {k: parameters + at for at, k in enumerate(order)}
    code = b"".join(t if isinstance(t, bytes) else indexed(t[0], index[place[t[1]]]) for t in _joined(tokens, last))
    _refuse_large(name, len(code), MOST_BYTES, "bytes")
    return [(made.count(kind), kind) for kind in kinds], code


def _last_uses(tokens: Sequence[Token], loops: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the place of the last access to each value; in a loop, values from before are used until its end."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if not isinstance(token, bytes):
            first.setdefault(token[1], at)
            last[token[1]] = at
    for start, end in loops:
        for value, at in last.items():
            if first[value] < start <= at < end:
                last[value] = end
    return last


def _joined(tokens: Sequence[Token], last: Mapping[int, int]) -> list[Token]:
    """Replace each write that is directly followed by a read of the same value by one instruction, or by none."""
    out: list[Token] = []
    for at, token in enumerate(tokens):
        if out and not isinstance(token, bytes) and token[0] == "local.get" and out[-1] == ("local.set", token[1]):
            out.pop()
            if last[token[1]] > at:
                out.append(("local.tee", token[1]))
        else:
            out.append(token)
    return out


def _refuse_large(name: str, count: int, most: int, what: str) -> None:
    if count > most:
        raise InputError(
            f"{name} takes {count:,} {what} in WebAssembly; browsers accept at most {most:,} per function: export a "
            "mechanism of fewer bodies"
        )
