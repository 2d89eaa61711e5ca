"""The entries through which Python calls one sample, and XLA a batch, of compiled code."""

from __future__ import annotations

from math import prod

from ..abi import (
    ARGUMENTS,
    ARRAYS,
    DATA,
    DENSE,
    DIMENSIONS,
    EXTENSION,
    EXTENSION_TYPE,
    FRAME_DIMENSIONS,
    MAJOR,
    METADATA,
    METADATA_TYPE,
    NATIVE,
    NPY_DOUBLE,
    POINTERS,
    RANK,
    RESULTS,
    SHAPES,
    SHARED,
    STEPS,
    VERSION,
    WRITEABLE,
    Entry,
    Handler,
    Offset,
    Word,
)
from .writer import Text, clear_flags, field, raised_flags, reported_flags

# --- LLVM assembly of the direct entry: checks of the arguments, new arrays, one call of the kernel, and the result.


def emit_entry(entry: Entry, dtype: str) -> str:
    """Return the module's assembly; kernels take numbers of one dtype, "float64"."""
    if dtype != "float64":
        raise ValueError(f"the direct entry is written for float64, not {dtype}")
    t = Text()
    t.put(
        "define ptr @entry(ptr %self, ptr %args, i64 %count, ptr %names) {",
        "entry:",
        f"  %data = alloca [{ARRAYS} x ptr], align 64",
        f"  %results = alloca [{ARRAYS} x ptr], align 64",
        f"  %shape = alloca [{1 + DIMENSIONS} x i64], align 64",
        "  %samples = alloca i64",
        "  %items = alloca ptr",
    )
    words = field(t, field(t, "%self", entry.items), Offset.DATA)
    t.put(f"  %words = getelementptr i8, ptr {words}, i64 0")
    for word in Word:
        t.put(f"  %{word.name} = load {_type(word)}, ptr {_word(t, word)}")
    t.put(f"  store <{ARRAYS} x i64> zeroinitializer, ptr %results, align 64")
    _check_arguments(t)
    t.put("  %new = icmp eq ptr %names, null", "  br i1 %new, label %make, label %take", "take:")
    _take_results(t, entry)
    t.put("  br label %run", "make:")
    _make_results(t)
    t.put("  br label %run", "run:")
    _run_kernel(t)
    t.put("  br i1 %new, label %return_new, label %return_given", "return_given:")
    _return_given(t)
    t.put("return_new:")
    _return_results(t)
    release = "  call void @release_all(ptr %RELEASE, i64 %OUTPUTS, ptr %results)"
    t.put(
        "leave:",
        release,
        "  br label %fallback",
        "fallback:",
        "  %found = call ptr %VECTORCALL(ptr %FALLBACK, ptr %args, i64 %count, ptr %names)",
        "  ret ptr %found",
        "fail:",
        release,
        "  ret ptr null",
        "}",
    )
    return "\n".join([t.text(), _release_all(), *sorted(t.used)])


def _check_arguments(t: Text) -> None:
    """Write the checks, the number of samples, %batch, which is 1 if there is a leading dimension, and the pointers."""
    block = f"<{ARRAYS} x i64>"
    t.put(f"  store {block} {t.new(f'load {block}, ptr {_word(t, POINTERS)}, align 8')}, ptr %data, align 64")
    t.require(t.new("icmp eq i64 %count, %GIVEN"), "fallback")
    t.require(t.new("icmp sgt i64 %GIVEN, 0"), "fallback")
    array = t.new("load ptr, ptr %args")
    t.require(t.new(f"icmp eq ptr {field(t, array, Offset.TYPE)}, %ARRAY_TYPE"), "fallback")
    dimensions, _ = _shape(t, "0")
    found = t.new(f"sext i32 {field(t, array, Offset.NDIM, 'i32')} to i64")
    t.put(f"  %batch = sub i64 {found}, {dimensions}")
    t.require(t.new("icmp ult i64 %batch, 2"), "fallback")
    t.put("  store i64 1, ptr %samples")
    leads = t.new("icmp eq i64 %batch, 1")

    def count() -> None:
        n = t.new(f"load i64, ptr {field(t, array, Offset.SHAPE)}")
        t.put(f"  store i64 {n}, ptr %samples")

    t.if_(leads, count)
    t.require(t.new(f"icmp sgt i64 {t.new('load i64, ptr %samples')}, 0"), "fallback")
    t.loop("%GIVEN", 1, lambda k: _take_array(t, t.new(f"load ptr, ptr {_at(t, '%args', k)}"), k, DENSE))


def _take_array(t: Text, array: str, k: str, flags: int) -> None:
    """Write the check of an array, and the pointer to its data."""
    t.require(t.new(f"icmp eq ptr {field(t, array, Offset.TYPE)}, %ARRAY_TYPE"), "fallback")
    dtype, own = field(t, array, Offset.DTYPE), field(t, array, Offset.FLAGS, "i32")
    for value, expected in (
        (field(t, dtype, Offset.TYPE_NUMBER, "i32"), NPY_DOUBLE),
        (t.new(f"zext i8 {field(t, dtype, Offset.BYTE_ORDER, 'i8')} to i32"), NATIVE),
        (t.new(f"and i32 {own}, {flags}"), flags),
    ):
        t.require(t.new(f"icmp eq i32 {value}, {expected}"), "fallback")
    core, lengths = _shape(t, k)
    dimensions = t.new(f"trunc i64 {t.new(f'add i64 {core}, %batch')} to i32")
    t.require(t.new(f"icmp eq i32 {field(t, array, Offset.NDIM, 'i32')}, {dimensions}"), "fallback")
    shape = field(t, array, Offset.SHAPE)

    def equal(one: str, other: str) -> None:
        values = [t.new(f"load i64, ptr {place}") for place in (one, other)]
        t.require(t.new(f"icmp eq i64 {values[0]}, {values[1]}"), "fallback")

    t.if_(t.new("icmp eq i64 %batch, 1"), lambda: equal(shape, "%samples"))
    own_shape = _at(t, shape, "%batch")
    t.if_(
        t.new(f"icmp sgt i64 {core}, 0"),
        lambda: t.loop(core, 1, lambda d: equal(_at(t, own_shape, d), _at(t, lengths, d))),
    )
    t.put(f"  store ptr {field(t, array, Offset.DATA)}, ptr {_at(t, '%data', k)}")


def _take_results(t: Text, entry: Entry) -> None:
    """Write the checks of the option `out`: arrays of the right shapes, apart from the arguments and each other."""
    t.require(t.new(f"icmp eq i64 {field(t, '%names', Offset.SIZE, 'i64')}, 1"), "fallback")
    t.require(t.new(f"icmp eq ptr {field(t, '%names', entry.items)}, %NAME_OUT"), "fallback")
    items = _items(t, entry)

    def result(j: str) -> None:
        k = t.new(f"add i64 {j}, %INPUTS")
        _take_array(t, t.new(f"load ptr, ptr {_at(t, items, j)}"), k, WRITEABLE)
        begin, end = _range(t, k)

        def apart(other: str) -> None:
            first, last = _range(t, other)
            before, after = t.new(f"icmp ule i64 {end}, {first}"), t.new(f"icmp ule i64 {last}, {begin}")
            t.require(t.new(f"or i1 {before}, {after}"), "fallback")

        t.loop(k, 1, apart)

    t.loop("%OUTPUTS", 1, result)


def _items(t: Text, entry: Entry) -> str:
    """Write the address of the arrays of `out`, a tuple, or a single array if there is one result."""
    place = _at(t, "%args", "%count")
    out = t.new(f"load ptr, ptr {place}")
    t.put(f"  store ptr {place}, ptr %items")

    def several() -> None:
        t.require(t.new(f"icmp eq i64 {field(t, out, Offset.SIZE, 'i64')}, %OUTPUTS"), "fallback")
        t.put(f"  store ptr {t.new(f'getelementptr i8, ptr {out}, i64 {entry.items}')}, ptr %items")

    is_tuple = t.new(f"icmp eq ptr {field(t, out, Offset.TYPE)}, %TUPLE_TYPE")
    t.either(is_tuple, several, lambda: t.require(t.new("icmp eq i64 %OUTPUTS, 1"), "fallback"))
    return t.new("load ptr, ptr %items")


def _range(t: Text, k: str) -> tuple[str, str]:
    """Write the addresses of the begin and the end of an array's data."""
    place = t.new(f"load ptr, ptr {_at(t, '%data', k)}")
    begin = t.new(f"ptrtoint ptr {place} to i64")
    row = t.new(f"load i64, ptr {_at(t, _word(t, STEPS), k)}")
    size = t.new(f"mul i64 {row}, {t.new('load i64, ptr %samples')}")
    return begin, t.new(f"add i64 {begin}, {size}")


def _make_results(t: Text) -> None:
    """Write the creation of the arrays for the results."""
    t.put(f"  store i64 {t.new('load i64, ptr %samples')}, ptr %shape")
    first = t.new("sub i64 1, %batch")

    def result(j: str) -> None:
        k = t.new(f"add i64 {j}, %INPUTS")
        core, lengths = _shape(t, k)
        block = f"<{DIMENSIONS} x i64>"
        t.put(f"  store {block} {t.new(f'load {block}, ptr {lengths}, align 8')}, ptr {_at(t, '%shape', '1')}, align 8")
        dimensions = t.new(f"trunc i64 {t.new(f'add i64 {core}, %batch')} to i32")
        array = t.new(
            f"call ptr %NEW_ARRAY(ptr %ARRAY_TYPE, i32 {dimensions}, ptr {_at(t, '%shape', first)}, "
            f"i32 {NPY_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)"
        )
        t.require(t.new(f"icmp ne ptr {array}, null"), "fail")
        t.put(f"  store ptr {array}, ptr {_at(t, '%results', j)}")
        t.put(f"  store ptr {field(t, array, Offset.DATA)}, ptr {_at(t, '%data', k)}")

    t.loop("%OUTPUTS", 1, result)


def _run_kernel(t: Text) -> None:
    """Write the call of the kernel; whatever has to be reported is left to the fallback."""
    place = _at(t, "%COUNTS", "1")
    before = t.new(f"load i64, ptr {place}")
    t.if_(raised_flags(t), lambda: clear_flags(t))  # as NumPy does before a ufunc
    run = f"  call void %KERNEL(ptr %data, ptr %samples, ptr {_word(t, STEPS)}, ptr %LAST)"

    def alone() -> None:
        state = t.new("call ptr %SAVE_THREAD()")
        t.put(run, f"  call void %RESTORE_THREAD(ptr {state})")

    shared = t.new(f"icmp sge i64 {t.new('load i64, ptr %samples')}, {SHARED}")
    t.either(shared, alone, lambda: t.put(run))
    t.require(t.new(f"icmp eq i64 {t.new(f'load i64, ptr {place}')}, {before}"), "leave")
    # On machines whose flags are unknown, every call is left to NumPy, which reads them itself.
    t.require(t.new(f"xor i1 {raised_flags(t)}, true") if reported_flags() else "false", "leave")


def _return_given(t: Text) -> None:
    """Write the return of the arrays of `out`: one by itself, several as the given tuple."""
    one = t.new(f"load ptr, ptr {t.new('load ptr, ptr %items')}")
    out = t.new(f"load ptr, ptr {_at(t, '%args', '%count')}")
    result = t.new(f"select i1 {t.new('icmp eq i64 %OUTPUTS, 1')}, ptr {one}, ptr {out}")
    t.put(f"  call void %RETAIN(ptr {result})", f"  ret ptr {result}")


def _return_results(t: Text) -> None:
    """Write the return of one result by itself, of several as a tuple; an array without dimensions is a scalar."""

    def taken(j: str) -> str:
        place = _at(t, "%results", j)
        array = t.new(f"load ptr, ptr {place}")
        t.put(f"  store ptr null, ptr {place}")
        return t.new(f"call ptr %AS_RESULT(ptr {array})")

    t.require(t.new("icmp eq i64 %OUTPUTS, 1"), "several")
    t.put(f"  ret ptr {taken('0')}", "several:")
    several = t.new("call ptr %NEW_TUPLE(i64 %OUTPUTS)")
    t.require(t.new(f"icmp ne ptr {several}, null"), "fail")

    def item(j: str) -> None:
        result = taken(j)
        t.require(t.new(f"icmp ne ptr {result}, null"), "half")
        t.new(f"call i32 %SET_ITEM(ptr {several}, i64 {j}, ptr {result})")

    t.loop("%OUTPUTS", 1, item)
    t.put(f"  ret ptr {several}", "half:", f"  call void %RELEASE(ptr {several})", "  br label %fail")


def _release_all() -> str:
    """Return the function that releases the results made so far; the others are null, which Py_DecRef ignores."""
    t = Text()
    t.put("define internal void @release_all(ptr %release, i64 %count, ptr %results) {", "entry:")

    def release(j: str) -> None:
        result = t.new(f"load ptr, ptr {_at(t, '%results', j)}")
        t.put(f"  call void %release(ptr {result})")

    t.loop("%count", 1, release)
    t.put("  ret void", "}")
    return t.text()


def _at(t: Text, table: str, index: str) -> str:
    """Write the address of an entry of a table of pointers or 64-bit integers."""
    return t.new(f"getelementptr i64, ptr {table}, i64 {index}")


def _word(t: Text, place: int) -> str:
    return _at(t, "%words", str(int(place)))


def _type(word: Word) -> str:
    return "i64" if word in (Word.GIVEN, Word.INPUTS, Word.OUTPUTS) else "ptr"


def _shape(t: Text, k: str) -> tuple[str, str]:
    """Write the number of dimensions of array k, and the address of their lengths."""
    place = t.new(f"getelementptr [{1 + DIMENSIONS} x i64], ptr {_word(t, SHAPES)}, i64 {k}")
    return t.new(f"load i64, ptr {place}"), _at(t, place, "1")


# --- LLVM assembly of a handler of XLA's foreign function interface (xla_frame.py) ---

COUNT = f"""
define internal i64 @count(ptr %buffer) {{
entry:
  %rank_at = getelementptr i8, ptr %buffer, i64 {RANK}
  %rank = load i64, ptr %rank_at
  %dims_at = getelementptr i8, ptr %buffer, i64 {FRAME_DIMENSIONS}
  %dims = load ptr, ptr %dims_at
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %product = phi i64 [ 1, %entry ], [ %more, %body ]
  %go = icmp slt i64 %k, %rank
  br i1 %go, label %body, label %end
body:
  %at = getelementptr i64, ptr %dims, i64 %k
  %n = load i64, ptr %at
  %more = mul i64 %product, %n
  %next = add i64 %k, 1
  br label %head
end:
  ret i64 %product
}}
"""
"""A function that returns the number of entries of a buffer."""


def emit_handler(unit: Handler, dtype: str) -> str:
    """Return the assembly of a handler; buffers have the precision of its kernel."""
    shapes, outputs, itemsize, constants = unit.shapes, unit.outputs, unit.itemsize, unit.constants
    inputs = len(shapes) - outputs
    t = Text()
    t.put(COUNT, "define ptr @handler(ptr %frame) {", "entry:")
    pointers = t.new(f"alloca [{len(shapes)} x ptr]")
    steps = t.new(f"alloca [{len(shapes) + sum(map(len, shapes))} x i64]")
    samples = t.new("alloca i64")
    extension = _load(t, "ptr", "%frame", EXTENSION)
    t.if_(t.new(f"icmp ne ptr {extension}, null"), lambda: _describe(t, extension, unit.minor))
    buffers = [_load(t, "ptr", _load(t, "ptr", "%frame", ARGUMENTS), 8 * k) for k in range(inputs - bool(constants))]
    addresses = [_load(t, "ptr", buffer, DATA) for buffer in buffers]
    if constants:
        addresses.append(t.new(f"inttoptr i64 {constants} to ptr"))
    results = [_load(t, "ptr", _load(t, "ptr", "%frame", RESULTS), 8 * k) for k in range(outputs)]
    addresses += [_load(t, "ptr", buffer, DATA) for buffer in results]
    strides = [prod(shape) * itemsize for shape in shapes]
    if constants:
        strides[inputs - 1] = 0
    strides += [prod(shape[d + 1 :]) * itemsize for shape in shapes for d in range(len(shape))]
    for k, address in enumerate(addresses):
        _store(t, "ptr", address, pointers, 8 * k)
    for k, stride in enumerate(strides):
        _store(t, "i64", stride, steps, 8 * k)
    count = t.new(f"udiv i64 {t.new(f'call i64 @count(ptr {results[0]})')}, {prod(shapes[inputs])}")
    _store(t, "i64", count, samples, 0)
    loop, last = t.new(f"inttoptr i64 {unit.kernel} to ptr"), t.new(f"inttoptr i64 {unit.data} to ptr")
    call = f"  call void {loop}(ptr {pointers}, ptr {samples}, ptr {steps}, ptr {last})"
    t.if_(t.new(f"icmp ne i64 {count}, 0"), lambda: t.put(call))
    t.put("  ret ptr null", "}")
    return t.text()


def _describe(t: Text, extension: str, minor: int) -> None:
    """Write the answer to the question for the handler's version, and return from it."""
    asked = t.new(f"icmp eq i32 {_load(t, 'i32', extension, EXTENSION_TYPE)}, {METADATA_TYPE}")
    t.put(f"  br i1 {asked}, label %describe, label %run", "describe:")
    metadata = _load(t, "ptr", extension, METADATA)
    _store(t, "i32", MAJOR, metadata, VERSION)
    _store(t, "i32", minor, metadata, VERSION + 4)
    t.put("  ret ptr null", "run:")


def _field(t: Text, base: str, place: int) -> str:
    return t.new(f"getelementptr i8, ptr {base}, i64 {place}")


def _load(t: Text, kind: str, base: str, place: int) -> str:
    return t.new(f"load {kind}, ptr {_field(t, base, place)}")


def _store(t: Text, kind: str, value: str | int, base: str, place: int) -> None:
    t.put(f"  store {kind} {value}, ptr {_field(t, base, place)}")
