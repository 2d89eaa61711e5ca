"""Programs as vector code: the alignment of vectors on the stack."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from kinetree.targets.llvm.arithmetic import emit
from kinetree.targets.llvm.object_code import target_machine
from native_program import traced


def test_spilled_vectors_are_aligned():
    """Compile a Program with more values than registers for AVX-512, and find its vectors aligned on the stack."""

    def many(*x):
        products = [a * b for k, a in enumerate(x) for b in x[:k]]
        return [sum(p * x[k % 9] for k, p in enumerate(products)) + p * p for p in products]

    target_machine("x86_64")  # initializes LLVM for all processors
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu="icelake-server")
    text = machine.emit_assembly(llvm.parse_assembly(emit(traced(many, 12), "float64")))
    body = text[text.index("\nbody:") : text.index("\nkernel:")]
    assert re.search(r"andq\s+\$-64, %rsp", body)
    spilled = re.findall(r"(vmov\w+)\s+%zmm\d+, -?\d*\(%rsp\)", body)
    assert spilled and set(spilled) <= {"vmovapd", "vmovaps", "vmovdqa64"}
