"""Memory of a kernel: small amounts on the stack, larger ones from the heap, once per call."""

from __future__ import annotations

from collections.abc import Mapping

from .writer import Text

STACK = 32 * 1024
"""The largest amount of stack memory of a kernel [bytes]; the stack of a thread may be only a few hundred KiB."""


def reserve(t: Text, sizes: Mapping[str, int]) -> bool:
    """Write pointers %name to memory with these sizes in bytes, aligned to 64; return whether it must be released.

    The code is in the basic block "entry". If memory must be released, the code continues in the block "ready".
    """
    sizes = {name: -(-size // 64) * 64 for name, size in sizes.items()}
    total = sum(sizes.values())
    if total <= STACK:
        t.put(*(f"  %{name} = alloca i8, i64 {size}, align 64" for name, size in sizes.items()))
        return False
    t.used |= {"declare ptr @kt_malloc(i64)", "declare void @kt_free(ptr)"}
    t.put(
        f"  %workspace = call ptr @kt_malloc(i64 {total + 64})",
        "  %none = icmp eq ptr %workspace, null",
        "  br i1 %none, label %lacking, label %ready",
        "lacking:",  # without heap memory, the stack may still be large enough
        f"  %stack = alloca i8, i64 {total + 64}, align 64",
        "  br label %ready",
        "ready:",
        "  %given = phi ptr [ %workspace, %entry ], [ %stack, %lacking ]",
    )
    place = t.new(f"add i64 {t.new('ptrtoint ptr %given to i64')}, 63")
    base = t.new(f"inttoptr i64 {t.new(f'and i64 {place}, -64')} to ptr")
    at = 0
    for name, size in sizes.items():
        t.put(f"  %{name} = getelementptr i8, ptr {base}, i64 {at}")
        at += size
    return True


def release(t: Text) -> None:
    """Write the release of memory that `reserve` took from the heap."""
    t.put("  call void @kt_free(ptr %workspace)")
