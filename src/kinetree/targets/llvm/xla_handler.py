"""LLVM assembly of a handler of XLA's foreign function interface, through which JAX calls compiled code."""

from __future__ import annotations

from math import prod

from .. import abi
from .writer import Text

COUNT = f"""
define internal i64 @count(ptr %buffer) {{
entry:
  %rank_at = getelementptr i8, ptr %buffer, i64 {abi.RANK}
  %rank = load i64, ptr %rank_at
  %dims_at = getelementptr i8, ptr %buffer, i64 {abi.FRAME_DIMENSIONS}
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


def emit_handler(unit: abi.Handler, dtype: str) -> str:
    """Return the assembly of a handler; buffers have the precision of its kernel."""
    shapes, outputs, itemsize, constants = unit.shapes, unit.outputs, unit.itemsize, unit.constants
    inputs = len(shapes) - outputs
    t = Text()
    t.put(COUNT, "define ptr @handler(ptr %frame) {", "entry:")
    pointers = t.new(f"alloca [{len(shapes)} x ptr]")
    steps = t.new(f"alloca [{len(shapes) + sum(map(len, shapes))} x i64]")
    samples = t.new("alloca i64")
    extension = _load(t, "ptr", "%frame", abi.EXTENSION)
    t.if_(t.new(f"icmp ne ptr {extension}, null"), lambda: _describe(t, extension, unit.minor))
    buffers = [
        _load(t, "ptr", _load(t, "ptr", "%frame", abi.ARGUMENTS), 8 * k) for k in range(inputs - bool(constants))
    ]
    addresses = [_load(t, "ptr", buffer, abi.DATA) for buffer in buffers]
    if constants:
        addresses.append(t.new(f"inttoptr i64 {constants} to ptr"))
    results = [_load(t, "ptr", _load(t, "ptr", "%frame", abi.RESULTS), 8 * k) for k in range(outputs)]
    addresses += [_load(t, "ptr", buffer, abi.DATA) for buffer in results]
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
    asked = t.new(f"icmp eq i32 {_load(t, 'i32', extension, abi.EXTENSION_TYPE)}, {abi.METADATA_TYPE}")
    t.put(f"  br i1 {asked}, label %describe, label %run", "describe:")
    metadata = _load(t, "ptr", extension, abi.METADATA)
    _store(t, "i32", abi.MAJOR, metadata, abi.VERSION)
    _store(t, "i32", minor, metadata, abi.VERSION + 4)
    t.put("  ret ptr null", "run:")


def _field(t: Text, base: str, place: int) -> str:
    return t.new(f"getelementptr i8, ptr {base}, i64 {place}")


def _load(t: Text, kind: str, base: str, place: int) -> str:
    return t.new(f"load {kind}, ptr {_field(t, base, place)}")


def _store(t: Text, kind: str, value: str | int, base: str, place: int) -> None:
    t.put(f"  store {kind} {value}, ptr {_field(t, base, place)}")
