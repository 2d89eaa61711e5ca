"""Programs as functions on blocks of vectors, for kernels that call them."""

from __future__ import annotations

from ...ir.program import Program
from .arithmetic import Writer, arithmetic, bare_angles, slots_of
from .block_checks import check_inputs, reduce_angles, scan
from .dense_rows import output_vector
from .writer import Text


def called(program: Program, w: Writer, name: str) -> list[str]:
    """Return the assembly of `name(in, k, bad)`, which checks the inputs and writes the results to k in order.

    `bad` points to the two counts of blocks with numbers that are not finite, as in blocks.py.
    """
    lanes, slots = w.lanes, slots_of(program)
    V = lanes.vector
    w.label = "entry"
    arithmetic(program, w)
    body, w.lines = w.lines, []
    t = Text()
    t.put(
        f"define internal void @{name}_body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out) "
        "noinline #0 {",
        "entry:",
        *body,
        "  ret void",
        "}",
        f"@{name}_slots = internal constant [{len(slots)} x i64] [{', '.join(f'i64 {j}' for j in slots)}]",
        f"define internal void @{name}(ptr %in, ptr %k, ptr %bad) noinline #0 {{",
        "compute:",
        f"  %out = alloca {V}, i64 {max(slots) + 1}, align 64",
        f"  %top = alloca {lanes.integers}, align 64",
        f"  store {lanes.integers} zeroinitializer, ptr %top, align 64",
    )
    scan(t, lanes, "%in", sum(a.size for a in program.inputs), "%top")
    check_inputs(t, lanes, f"{name}_reduce")
    t.put(f"  call void @{name}_body(ptr %in, ptr %out)")

    def move(j: str) -> None:
        x = t.new(f"load {V}, ptr {output_vector(t, lanes, j, f'{name}_slots')}, align 64")
        t.put(f"  store {V} {x}, ptr {t.new(f'getelementptr {V}, ptr %k, i64 {j}')}, align 64")

    t.loop(len(slots), 1, move)
    t.put("  ret void", "}")
    w.used |= t.used
    return [t.text(), reduce_angles(lanes, w, bare_angles(program)[1], f"{name}_reduce")]
