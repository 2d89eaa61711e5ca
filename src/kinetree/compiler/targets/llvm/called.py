"""Programs as functions on blocks of vectors, for kernels that call them."""

from __future__ import annotations

from ...ir.program import Program
from .arithmetic import arithmetic, bare_angles, places_of
from .block_checks import check_inputs, reduce_angles, scan_entries
from .instructions import Writer
from .writer import Text


def called(program: Program, w: Writer, name: str) -> list[str]:
    """Return the assembly of `name(in, k, bad)`, which reduces large angles and writes the results to k in order.

    `bad` points to two counts of blocks with angles that are not finite. Results are stored as soon as they are
    computed: their memory must be different from that of the inputs.
    """
    lanes = w.lanes
    w.label = "entry"
    arithmetic(program, w, places=places_of(program))
    body, w.lines = w.lines, []
    t = Text()
    t.put(
        f"define internal void @{name}_body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out) "
        "noinline #0 {",
        "entry:",
        *body,
        "  ret void",
        "}",
        f"define internal void @{name}(ptr %in, ptr %k, ptr %bad) noinline #0 {{",
        "compute:",
    )
    _, angles = bare_angles(program)
    if angles:
        t.put(f"  %top = alloca {lanes.integers}, align 64")
        t.put(f"  store {lanes.integers} zeroinitializer, ptr %top, align 64")
        scan_entries(t, lanes, "%in", angles, "%top")
        check_inputs(t, lanes, f"{name}_reduce")
    t.put(f"  call void @{name}_body(ptr %in, ptr %k)", "  ret void", "}")
    w.used |= t.used
    return [t.text(), reduce_angles(lanes, w, angles, f"{name}_reduce")] if angles else [t.text()]
