"""LLVM assembly of the direct entry: checks of the arguments, new arrays, one call of the kernel, and the result."""

from __future__ import annotations

from ..entry import (
    ARRAYS,
    DENSE,
    DIMENSIONS,
    DIMS,
    NATIVE,
    NPY_DOUBLE,
    POINTERS,
    SHAPES,
    STEPS,
    Entry,
    Offset,
    Word,
)
from .flags import clear_flags, reported_flags
from .writer import Text


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
    )
    words = _field(t, _field(t, "%self", entry.items), Offset.DATA)
    t.put(f"  %words = getelementptr i8, ptr {words}, i64 0")
    for word in Word:
        t.put(f"  %{word.name} = load {_type(word)}, ptr {_word(t, word)}")
    _check_arguments(t)
    _make_results(t)
    _run_kernel(t)
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
    """Write the checks, and the pointers to the data of all inputs."""
    block = f"<{ARRAYS} x i64>"
    t.put(f"  store {block} {t.new(f'load {block}, ptr {_word(t, POINTERS)}, align 8')}, ptr %data, align 64")
    t.require(t.new("icmp eq ptr %names, null"), "fallback")
    t.require(t.new("icmp eq i64 %count, %GIVEN"), "fallback")

    def argument(k: str) -> None:
        array = t.new(f"load ptr, ptr {_at(t, '%args', k)}")
        t.require(t.new(f"icmp eq ptr {_field(t, array, Offset.TYPE)}, %ARRAY_TYPE"), "fallback")
        dtype, flags = _field(t, array, Offset.DTYPE), _field(t, array, Offset.FLAGS, "i32")
        for value, expected in (
            (_field(t, dtype, Offset.TYPE_NUMBER, "i32"), NPY_DOUBLE),
            (t.new(f"zext i8 {_field(t, dtype, Offset.BYTE_ORDER, 'i8')} to i32"), NATIVE),
            (t.new(f"and i32 {flags}, {DENSE}"), DENSE),
        ):
            t.require(t.new(f"icmp eq i32 {value}, {expected}"), "fallback")
        dimensions, lengths = _shape(t, k)
        found = _field(t, array, Offset.NDIM, "i32")
        t.require(t.new(f"icmp eq i32 {found}, {t.new(f'trunc i64 {dimensions} to i32')}"), "fallback")
        shape = _field(t, array, Offset.SHAPE)

        def length(d: str) -> None:
            one, other = (t.new(f"load i64, ptr {_at(t, place, d)}") for place in (shape, lengths))
            t.require(t.new(f"icmp eq i64 {one}, {other}"), "fallback")

        t.if_(t.new(f"icmp sgt i64 {dimensions}, 0"), lambda: t.loop(dimensions, 1, length))
        t.put(f"  store ptr {_field(t, array, Offset.DATA)}, ptr {_at(t, '%data', k)}")

    t.loop("%GIVEN", 1, argument)


def _make_results(t: Text) -> None:
    """Write the creation of the arrays for the results."""
    t.put(f"  store <{ARRAYS} x i64> zeroinitializer, ptr %results, align 64")

    def result(j: str) -> None:
        k = t.new(f"add i64 {j}, %INPUTS")
        dimensions, lengths = _shape(t, k)
        array = t.new(
            f"call ptr %NEW_ARRAY(ptr %ARRAY_TYPE, i32 {t.new(f'trunc i64 {dimensions} to i32')}, ptr {lengths}, "
            f"i32 {NPY_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)"
        )
        t.require(t.new(f"icmp ne ptr {array}, null"), "fail")
        t.put(f"  store ptr {array}, ptr {_at(t, '%results', j)}")
        t.put(f"  store ptr {_field(t, array, Offset.DATA)}, ptr {_at(t, '%data', k)}")

    t.loop("%OUTPUTS", 1, result)


def _run_kernel(t: Text) -> None:
    """Write the call of the kernel; whatever has to be reported is left to the fallback."""
    place = _at(t, "%COUNTS", "1")
    before = t.new(f"load i64, ptr {place}")
    t.if_(t.new(f"icmp ne i32 {_flags(t)}, 0"), lambda: clear_flags(t))  # as NumPy does before a ufunc
    dims, steps = _word(t, DIMS), _word(t, STEPS)
    t.put(f"  call void %KERNEL(ptr %data, ptr {dims}, ptr {steps}, ptr %COUNTS)")
    t.require(t.new(f"icmp eq i64 {t.new(f'load i64, ptr {place}')}, {before}"), "leave")
    # On machines whose flags are unknown, every call is left to NumPy, which reads them itself.
    t.require(t.new(f"icmp eq i32 {_flags(t)}, 0") if reported_flags() else "false", "leave")


def _flags(t: Text) -> str:
    """Write the raised flags among those that NumPy reports."""
    t.used.add("declare i32 @kt_fetestexcept(i32)")
    return t.new(f"call i32 @kt_fetestexcept(i32 {reported_flags()})")


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


def _field(t: Text, thing: str, offset: int, kind: str = "ptr") -> str:
    """Write the load of a field of an object."""
    return t.new(f"load {kind}, ptr {t.new(f'getelementptr i8, ptr {thing}, i64 {int(offset)}')}")


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
