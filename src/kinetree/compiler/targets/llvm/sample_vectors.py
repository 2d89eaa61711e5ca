"""Arrays whose samples are next to each other in memory: an entry of a block of samples is one vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from .block_checks import pieces
from .dense_rows import output_vector
from .writer import Text

LENGTH = 8
"""The most vectors that are copied at a time."""

Places = list[str]


def load_vectors(t: Text, lanes, k: int, shape: Sequence[int], core: Sequence[str], at: int) -> None:
    """Write the load of a whole block of array k."""
    V, size = lanes.vector, lanes.bits // 8

    def copy(places: Places, entries: Places) -> None:
        found = [t.new(f"load {V}, ptr {p}, align {size}") for p in places]
        for x, entry in zip(found, entries, strict=True):
            t.put(f"  store {V} {x}, ptr {t.new(f'getelementptr {V}, ptr %in, i64 {entry}')}, align 64")

    _by_pieces(t, k, shape, core, at, copy)


def store_vectors(t: Text, lanes, k: int, shape: Sequence[int], core: Sequence[str], at: int) -> None:
    """Write the store of a whole block of array k."""
    V, size = lanes.vector, lanes.bits // 8

    def copy(places: Places, entries: Places) -> None:
        found = [t.new(f"load {V}, ptr {output_vector(t, lanes, entry)}, align 64") for entry in entries]
        for x, p in zip(found, places, strict=True):
            t.put(f"  store {V} {x}, ptr {p}, align {size}")

    _by_pieces(t, k, shape, core, at, copy)


def _by_pieces(
    t: Text, k: int, shape: Sequence[int], core: Sequence[str], at: int, copy: Callable[[Places, Places], None]
) -> None:
    """Write `copy` of the addresses and the numbers of entries, for each piece of the last core dimension."""

    def along(d: int, place: str, flat: str) -> None:
        if d == len(shape):
            copy([place], [flat])
        elif d == len(shape) - 1:
            pieces(t, shape[d], LENGTH, lambda start, used: piece(d, place, flat, start, used))
        else:
            t.loop(shape[d], 1, lambda j: along(d + 1, moved(d, place, j), inner(d, flat, j)))

    def moved(d: int, place: str, j: str) -> str:
        return t.new(f"getelementptr i8, ptr {place}, i64 {t.new(f'mul i64 {core[d]}, {j}')}")

    def inner(d: int, flat: str, j: str) -> str:
        return t.new(f"add i64 {flat}, {t.new(f'mul i64 {j}, {prod(shape[d + 1 :])}')}")

    def piece(d: int, place: str, flat: str, start: str, used: int) -> None:
        first = t.new(f"add i64 {flat}, {start}")
        places = [moved(d, place, start)]
        for _ in range(used - 1):
            places.append(t.new(f"getelementptr i8, ptr {places[-1]}, i64 {core[d]}"))
        copy(places, [t.new(f"add i64 {first}, {j}") for j in range(used)])

    along(0, t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 %i, %s{k}')}"), str(at))
