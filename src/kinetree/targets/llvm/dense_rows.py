"""Dense rows of samples and blocks of vectors: whole rows are loaded and transposed in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.ir.program import Array, Program
from .writer import Text


def raise_top(t, lanes, top: str, vectors: list[str]) -> None:
    """Write the maximum of the magnitudes of some vectors, and of the integers at `top`, to `top`.

    Without their sign, floats are ordered like their bit patterns as integers, infinity and NaN last. Comparing
    integers raises no floating-point flags, which NumPy would report.
    """
    ints, bits = lanes.integers, lanes.bits
    maximum = f"llvm.umax.v{lanes.count}i{bits}"
    t.used.add(f"declare {ints} @{maximum}({ints}, {ints})")
    plain = [t.new(f"bitcast {lanes.vector} {x} to {ints}") for x in vectors]
    sizes = [t.new(f"and {ints} {x}, splat (i{bits} {2 ** (bits - 1) - 1})") for x in plain]
    sizes.append(t.new(f"load {ints}, ptr {top}, align 64"))
    while len(sizes) > 1:  # by pairs, because a chain would wait for every maximum
        pairs = zip(sizes[::2], sizes[1::2], strict=False)
        larger = [t.new(f"call {ints} @{maximum}({ints} {a}, {ints} {b})") for a, b in pairs]
        sizes = [*larger, *sizes[2 * len(larger) :]]
    t.put(f"  store {ints} {sizes[0]}, ptr {top}, align 64")


def pieces(t, n: int, L: int, piece) -> None:
    """Run `piece(start, used)` for the whole pieces of a row, in a loop if there are several, and for the rest."""
    whole = n - n % L
    if whole == L:
        piece("0", L)
    elif whole:
        t.loop(whole, L, lambda start: piece(start, L))
    if n % L:
        piece(str(whole), n % L)


def load_rows(t, lanes, samples: list[str], k: int, n: int, at: int) -> None:
    """Load the rows of 8 (16) samples piece by piece, and transpose each piece into vectors."""
    V, L, size = lanes.vector, lanes.count, lanes.bits // 8
    rows = _rows(t, samples, k)

    def piece(start: str, used: int) -> None:
        offset = t.new(f"mul i64 {start}, {size}")
        pieces = [_load_piece(t, lanes, t.new(f"getelementptr i8, ptr {row}, i64 {offset}"), used) for row in rows]
        first = t.new(f"add i64 {start}, {at}")
        columns = write_transpose(t, lanes, pieces)[:used]
        raise_top(t, lanes, "%top", columns)
        for j, column in enumerate(columns):
            p = t.new(f"getelementptr {V}, ptr %in, i64 {t.new(f'add i64 {first}, {j}')}")
            t.put(f"  store {V} {column}, ptr {p}, align 64")

    pieces(t, n, L, piece)


def store_rows(t, lanes, samples: list[str], k: int, n: int, at: int) -> None:
    """Transpose pieces of the output back into rows and store them."""
    pieces(t, n, lanes.count, _store_pieces(t, lanes, samples, k, at))


def store_ends(t, lanes, samples: list[str], k: int, n: int, at: int) -> None:
    """Store the last entries of rows with a rest after the whole pieces, with some entries before them."""
    if n % lanes.count:
        _store_pieces(t, lanes, samples, k, at)(str(n - lanes.count), lanes.count)


def _store_pieces(t, lanes, samples: list[str], k: int, at: int) -> Callable[[str, int], None]:
    """Return the function that writes the store of a piece of array k, given by its first entry and its length."""
    V, L, size = lanes.vector, lanes.count, lanes.bits // 8
    rows = _rows(t, samples, k)

    def piece(start: str, used: int) -> None:
        first = t.new(f"add i64 {start}, {at}")
        columns = []
        for j in range(used):
            p = output_vector(t, lanes, t.new(f"add i64 {first}, {j}"))
            columns.append(t.new(f"load {V}, ptr {p}, align 64"))
        raise_top(t, lanes, "%top_out", columns)
        columns += ["zeroinitializer"] * (L - used)
        offset = t.new(f"mul i64 {start}, {size}")
        for row, values in zip(rows, write_transpose(t, lanes, columns), strict=True):
            store_piece(t, lanes, t.new(f"getelementptr i8, ptr {row}, i64 {offset}"), values, used)

    return piece


def sample_indices(t, lanes) -> list[str]:
    """Write the sample in each lane of a block: idle lanes of the last block repeat the last sample."""
    t.used.add("declare i64 @llvm.smin.i64(i64, i64)")
    indices = [t.new(f"add i64 %i, {lane}") for lane in range(lanes.count)]
    return [t.new(f"call i64 @llvm.smin.i64(i64 {index}, i64 %last)") for index in indices]


def _rows(t, samples: list[str], k: int) -> list[str]:
    """Return pointers to the samples of array k in the lanes."""
    return [t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 {index}, %s{k}')}") for index in samples]


def load_one(t, lanes, k: int, n: int, at: int) -> None:
    """Load the entries of one sample, each into all lanes of its vector."""
    V, S, L, size = lanes.vector, lanes.scalar, lanes.count, lanes.bits // 8
    (row,) = _rows(t, ["%i"], k)

    def piece(start: str, used: int) -> None:
        place = t.new(f"getelementptr {S}, ptr {row}, i64 {start}")
        raise_top(t, lanes, "%top", [_load_piece(t, lanes, place, used)])
        first = t.new(f"add i64 {start}, {at}")
        for j in range(used):
            x = t.new(f"load {S}, ptr {t.new(f'getelementptr {S}, ptr {place}, i64 {j}')}, align {size}")
            lane = t.new(f"insertelement {V} poison, {S} {x}, i32 0")
            every = t.new(f"shufflevector {V} {lane}, {V} poison, <{L} x i32> zeroinitializer")
            p = t.new(f"getelementptr {V}, ptr %in, i64 {t.new(f'add i64 {first}, {j}')}")
            t.put(f"  store {V} {every}, ptr {p}, align 64")

    pieces(t, n, L, piece)


def store_one(t, lanes, k: int, n: int, at: int) -> None:
    """Store the entries of one sample from the first lane."""
    S, L, size = lanes.scalar, lanes.count, lanes.bits // 8
    (row,) = _rows(t, ["%i"], k)

    def piece(start: str, used: int) -> None:
        place = t.new(f"getelementptr {S}, ptr {row}, i64 {start}")
        first = t.new(f"add i64 {start}, {at}")
        for j in range(used):
            x = t.new(f"load {S}, ptr {output_vector(t, lanes, t.new(f'add i64 {first}, {j}'))}, align 64")
            t.put(f"  store {S} {x}, ptr {t.new(f'getelementptr {S}, ptr {place}, i64 {j}')}, align {size}")

    pieces(t, n, L, piece)


def output_vector(t, lanes, entry: str) -> str:
    """Return a pointer to the vector of an entry of the outputs."""
    slot = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr @slots, i64 {entry}')}")
    return t.new(f"getelementptr {lanes.vector}, ptr %out, i64 {slot}")


def _load_piece(t, lanes, p: str, used: int) -> str:
    """Return a vector with the first `used` entries from memory; no entry after them is accessed."""
    V, L, S, size = lanes.vector, lanes.count, lanes.scalar, lanes.bits // 8
    if used == 1:
        return t.new(f"insertelement {V} poison, {S} {t.new(f'load {S}, ptr {p}, align {size}')}, i32 0")
    if used == L:
        return t.new(f"load {V}, ptr {p}, align {size}")
    name = f"llvm.masked.load.v{L}f{lanes.bits}.p0"
    t.used.add(f"declare {V} @{name}(ptr, {lanes.mask}, {V})")
    return t.new(f"call {V} @{name}(ptr align {size} {p}, {lanes.mask} {_mask(L, used)}, {V} zeroinitializer)")


def store_piece(t, lanes, p: str, values: str, used: int) -> None:
    """Store the first `used` entries of a vector; no entry after them is accessed."""
    V, L, S, size = lanes.vector, lanes.count, lanes.scalar, lanes.bits // 8
    if used == 1:
        t.put(f"  store {S} {t.new(f'extractelement {V} {values}, i32 0')}, ptr {p}, align {size}")
    elif used == L:
        t.put(f"  store {V} {values}, ptr {p}, align {size}")
    else:
        name = f"llvm.masked.store.v{L}f{lanes.bits}.p0"
        t.used.add(f"declare void @{name}({V}, ptr, {lanes.mask})")
        t.put(f"  call void @{name}({V} {values}, ptr align {size} {p}, {lanes.mask} {_mask(L, used)})")


def _mask(count: int, used: int) -> str:
    return "<" + ", ".join(f"i1 {'true' if j < used else 'false'}" for j in range(count)) + ">"


def write_transpose(t, lanes, rows: list[str], end: int | None = None) -> list[str]:
    """Transpose a square of vectors by log2(L) rounds of two-way shuffles (a butterfly).

    The rounds between rows at a distance of 1, 2, ... below `end` are written, by default all.
    """
    V, L = lanes.vector, lanes.count
    rows = list(rows)
    step = 1
    while step < (end or L):
        low = [(j if not j & step else L + j - step) for j in range(L)]
        high = [(j + step if not j & step else L + j) for j in range(L)]
        new = list(rows)
        for i in range(L):
            if not i & step:
                a, b = rows[i], rows[i + step]
                new[i] = t.new(f"shufflevector {V} {a}, {V} {b}, <{L} x i32> <{_ints(low)}>")
                new[i + step] = t.new(f"shufflevector {V} {a}, {V} {b}, <{L} x i32> <{_ints(high)}>")
        rows, step = new, step * 2
    return rows


def _ints(indices: list[int]) -> str:
    return ", ".join(f"i32 {j}" for j in indices)


# --- Stores of whole blocks of rows that follow each other without gaps, the usual layout of batches ---
#
# All rows of a block are then at known distances from the first, so that no addresses of rows are computed and kept.
# For matrices of arms, this saves a third of the instructions of their stores.

SHORTEST, LONGEST = 16, 128
"""The least and the most entries of a row that is stored this way: few have no loop, and many are stored by lines."""

LEAST = 100
"""The least number of entries of all such rows of a sample; for fewer, such as one matrix, nothing is gained."""


def packed_outputs(program: Program) -> list[int]:
    """Return the outputs that are stored as packed rows where their layout permits it."""
    found = [g for g, a in enumerate(program.outputs) if SHORTEST <= a.size <= LONGEST]
    return found if sum(program.outputs[g].size for g in found) >= LEAST else []


def store_packed(t: Text, lanes, k: int, a: Array, at: int, otherwise) -> None:
    """Write the store of the rows of array k, packed if %full and its samples follow each other, else as given."""
    length = a.size * lanes.bits // 8
    packed = t.new(f"and i1 %full, {t.new(f'icmp eq i64 %s{k}, {length}')}")

    def store() -> None:
        to = t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 %i, {length}')}")
        offsets = t.new(f"getelementptr i64, ptr @offsets, i64 {at}")
        t.put(f"  call void @packed{a.size}(ptr %out, ptr {offsets}, ptr {to}, ptr %top_out)")

    t.either(packed, store, otherwise)


def functions(program: Program, lanes, w, slots: Sequence[int]) -> list[str]:
    """Return the functions that store packed rows, one per length, and the places of all entries in the block."""
    lengths = sorted({program.outputs[g].size for g in packed_outputs(program)})
    if not lengths:
        return []
    places = ", ".join(f"i64 {j * lanes.count * lanes.bits // 8}" for j in slots)
    table = f"@offsets = internal constant [{len(slots)} x i64] [{places}]"
    return [table, *(_function(n, lanes, w) for n in lengths)]


def _function(n: int, lanes, w) -> str:
    """Return the function that stores a block of rows of n entries, whose places in the block are at %offsets."""
    V, L, S = lanes.vector, lanes.count, lanes.scalar
    t = Text()
    t.put(
        f"define internal void @packed{n}(ptr noalias readonly align 64 %out, ptr noalias readonly %offsets, "
        "ptr noalias %to, ptr noalias align 64 %top_out) noinline #0 {",
        "entry:",
    )

    def piece(start: str, used: int) -> None:
        first, to = (t.new(f"getelementptr {x}, ptr {p}, i64 {start}") for x, p in (("i64", "%offsets"), (S, "%to")))
        columns = []
        for j in range(used):
            offset = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr {first}, i64 {j}')}")
            columns.append(t.new(f"load {V}, ptr {t.new(f'getelementptr i8, ptr %out, i64 {offset}')}, align 64"))
        raise_top(t, lanes, "%top_out", columns)
        for lane, x in enumerate(write_transpose(t, lanes, columns + ["zeroinitializer"] * (L - used))):
            store_piece(t, lanes, t.new(f"getelementptr {S}, ptr {to}, i64 {lane * n}"), x, used)

    pieces(t, n, L, piece)
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text()
