"""Products of the Jacobian of a Program with tangents and cotangents, as Programs, and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.operations import Op
from ..ir.program import Array, Program
from .jacobians import ENTRIES, Charts, combine_adjoints, directions, forward, input_rows, reverse
from .recorded import Recorded, add_to, trace_inputs


def jvp(program: Program, wrt: Sequence[str], *, charts: Charts = ENTRIES) -> Program:
    """Return the Program of the derivative of all outputs along a tangent of each of the inputs `wrt`.

    Its inputs are those of the Program, then tangent_{input}; its outputs are tangent_{output}.
    """
    along = [Array(f"tangent_{name}", (directions(program, name, charts).size,)) for name in wrt]
    arrays = (*program.inputs, *along)
    trace, inputs = trace_inputs(arrays)
    recorded = Recorded(program, inputs)
    rates = {name: directions(program, name, charts).displaced(inputs[name], inputs[f"tangent_{name}"]) for name in wrt}
    names = [a.name for a in program.inputs]
    seeds = {
        k: {0: rates[names[op[1]]][op[2]]}
        for k, op in enumerate(program.ops)
        if op[0] is Op.INPUT and names[op[1]] in rates
    }
    found = forward(recorded, seeds, {k for r in program.results for k in r})
    outputs = [Array(f"tangent_{a.name}", a.shape) for a in program.outputs]
    results = [[found[k].get(0, 0.0) for k in r] for r in program.results]
    return Program.of_trace(f"jvp_of_{program.name}", arrays, outputs, trace, results)


def vjp(program: Program, wrt: Sequence[str], *, charts: Charts = ENTRIES) -> Program:
    """Return the Program of the derivatives of the outputs, weighted by cotangents and summed, for the inputs `wrt`.

    Its inputs are those of the Program, then cotangent_{output}; its outputs are cotangent_{input}.
    """
    arrays = (*program.inputs, *(Array(f"cotangent_{a.name}", a.shape) for a in program.outputs))
    trace, inputs = trace_inputs(arrays)
    recorded = Recorded(program, inputs)
    weights: dict = {}
    for a, r in zip(program.outputs, program.results, strict=True):
        for k, x in zip(r, inputs[f"cotangent_{a.name}"], strict=True):
            add_to(weights, k, x)
    seeds = input_rows(recorded, inputs, wrt, charts)
    row = combine_adjoints(reverse(recorded, weights, set(seeds)), seeds)
    sizes: Mapping[str, int] = {name: directions(program, name, charts).size for name in wrt}
    outputs = [Array(f"cotangent_{name}", (n,)) for name, n in sizes.items()]
    results = [[row.get((name, j), 0.0) for j in range(n)] for name, n in sizes.items()]
    return Program.of_trace(f"vjp_of_{program.name}", arrays, outputs, trace, results)


def hvp(program: Program, wrt: Sequence[str], *, charts: Charts = ENTRIES) -> Program:
    """Return the Program of the derivative of `vjp` along a tangent of each of the inputs `wrt`; cotangents stay.

    Its inputs are those of the Program, then cotangent_{output}, then tangent_{input}.
    """
    return jvp(vjp(program, wrt, charts=charts), wrt, charts=charts)
