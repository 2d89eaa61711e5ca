"""Handlers of XLA's foreign function interface (FFI), by which JAX calls native code without Python.

A handler is a C function of a call frame, which holds the addresses and shapes of all buffers. The places of its fields
are those of xla/ffi/api/c_api.h, whose major version is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .writer import Text

MAJOR = 0
"""The major version of the interface, which changes if fields move."""
EXTENSION, ARGUMENTS, RESULTS = 8, 72, 112  # places of fields in a call frame [bytes]
EXTENSION_TYPE, METADATA = 8, 24  # in an extension of it
METADATA_TYPE = 1
VERSION = 24  # in metadata: two 32-bit numbers
DATA, RANK, DIMENSIONS = 24, 32, 40  # in a buffer

COUNT = f"""
define internal i64 @count(ptr %buffer) {{
entry:
  %rank_at = getelementptr i8, ptr %buffer, i64 {RANK}
  %rank = load i64, ptr %rank_at
  %dims_at = getelementptr i8, ptr %buffer, i64 {DIMENSIONS}
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


def emit_handler(
    kernel: int, data: int, shapes: Sequence[tuple[int, ...]], outputs: int, itemsize: int, constants: int, minor: int
) -> str:
    """Return the assembly of a handler that runs an inner loop of a gufunc on dense buffers.

    `kernel` and `data` are the addresses of the loop and of its last argument, `shapes` the shapes of one sample, the
    last `outputs` of them of results. `constants` is the address of the last input if all samples share it and no
    buffer holds it, otherwise 0. `minor` is the minor version of the interface in the installed XLA.
    """
    inputs = len(shapes) - outputs
    t = Text()
    t.put(COUNT, "define ptr @handler(ptr %frame) {", "entry:")
    pointers = t.new(f"alloca [{len(shapes)} x ptr]")
    steps = t.new(f"alloca [{len(shapes) + sum(map(len, shapes))} x i64]")
    samples = t.new("alloca i64")
    extension = _load(t, "ptr", "%frame", EXTENSION)
    t.if_(t.new(f"icmp ne ptr {extension}, null"), lambda: _describe(t, extension, minor))
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
    loop, last = t.new(f"inttoptr i64 {kernel} to ptr"), t.new(f"inttoptr i64 {data} to ptr")
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
