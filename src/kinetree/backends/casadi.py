"""A mechanism's functions in CasADi, returned by `system.casadi(name)`: as expressions, or native with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from .._support.optional import casadi
from ..compiler.derive.jacobians import derivative, vjp
from ..compiler.export.casadi_abi import expression, matrix
from ..compiler.export.exportable import distinct
from ..compiler.ir.operations import Op
from ..compiler.ir.program import Array, Program
from ..errors import InputError
from ..runtime.compiled import CompiledMechanism
from ..runtime.derived import derive
from ..runtime.function import Function
from ..runtime.native import native as compiled

FORMS = ("sx", "native")


def casadi_function(system: CompiledMechanism, name: str, *, form: str = "sx", **options: Any) -> Any:
    """Return a function of a mechanism as a casadi.Function; with the options of `system.function`."""
    casadi()
    if form not in FORMS:
        raise InputError(f"form is {form!r}; expected 'sx' for an expression, or 'native' for compiled code")
    function = system.function(name, **options)
    if function.request.dtype != "float64":
        raise InputError(f"{name}: dtype is {function.request.dtype!r}; CasADi computes in float64")
    program = function.program
    if not isinstance(program, Program):
        raise InputError(
            f"{name} of {system.mechanism.name!r} is compiled with loops over the bodies, and CasADi needs "
            "straight-line code; use lowering='unrolled'"
        )
    program = distinct(program, function.request.name)
    key = "casadi", form, function.request
    if form == "sx":
        return system._parts.part(key, lambda: expression(program))

    return system._parts.part(key, lambda: native(function, program))


# --- Native code as callbacks of CasADi, whose derivatives of all orders are compiled Programs with known sparsity.
#
# CasADi stores matrices column by column, and only their nonzeros. A callback therefore runs a Program on vectors: the
# entries of each input in this order, and the nonzeros of each output.

_kept: list[Any] = []
"""All callbacks: CasADi's expressions refer to them without keeping them alive."""


@dataclass(frozen=True)
class Node:
    """A Program on vectors with the sparsity of its matrices; `used` are the inputs that the Program reads.

    `jacobian` returns the Program of the Jacobian, which has the inputs of `program`, and whose outputs are matrices
    with a row per nonzero of an output and a column per entry of an input.
    """

    program: Program
    given: tuple[Any, ...]
    made: tuple[Any, ...]
    used: tuple[int, ...]
    jacobian: Callable[[], Program]
    has_reverse: bool = False


def native(function: Function, straight: Program) -> Any:
    """Return a function as a callback of CasADi with exact derivatives; `straight` has distinct names of arrays."""
    ca = casadi()
    arrays = (*function.inputs, *function.outputs)
    if empty := [a.name for a in arrays if not a.size]:
        raise InputError(f"{function.name}: {empty[0]} has no entries; use form='sx'")
    program = _by_columns(straight)
    m = function.mechanism

    def jacobian() -> Program:
        # without quaternions, coordinates are displaced one by one in the tangent space too, with shorter Programs
        found = derive(function, "jacobian", None, tangent=m.nq == m.nv).program
        assert isinstance(found, Program)  # derivatives are straight-line code
        return _jacobian_by_columns(found, function)

    given, made = ([ca.Sparsity.dense(*matrix(a.shape)) for a in x] for x in (function.inputs, function.outputs))
    node = Node(program, tuple(given), tuple(made), tuple(range(len(given))), jacobian, has_reverse=True)
    return _callback(straight.name, node, [a.name for a in straight.inputs], [a.name for a in straight.outputs])


def jacobian_node(node: Node) -> Node:
    """Return the Jacobian of a node as CasADi calls it: with the outputs as further inputs, which are not read."""
    ca = casadi()
    blocks = node.jacobian()
    pairs = iter(blocks.results)
    made, outputs, results = [], [], []
    for out in node.made:
        rows = [int(k) for k in out.find()]
        for i, x in enumerate(node.given):
            nonzero = sorted(_nonzero(blocks, next(pairs), rows, x.numel())) if rows and i in node.used else []
            columns, at, entries = ([z[k] for z in nonzero] for k in range(3))
            made.append(ca.Sparsity.triplet(out.numel(), x.numel(), at, columns))
            if nonzero:
                outputs.append(Array(f"block_{len(made)}", (len(nonzero),)))
                results.append(tuple(entries))
    program = replace(blocks, outputs=tuple(outputs), results=tuple(results))
    unread = tuple(ca.Sparsity(x.size1(), x.size2()) for x in node.made)
    return Node(program, (*node.given, *unread), tuple(made), node.used, lambda: _entries_jacobian(program))


def _nonzero(program: Program, entries: Sequence[int], rows: Sequence[int], count: int) -> list[tuple[int, int, int]]:
    """Return column, row and operation of the entries of a Jacobian that are not zero for all inputs."""
    listed = [(j, row, entries[k * count + j]) for k, row in enumerate(rows) for j in range(count)]
    return [x for x in listed if program.ops[x[2]] != (Op.CONST, 0.0)]


def reverse_node(node: Node) -> Node:
    """Return the vector-Jacobian product of a node as CasADi calls it: inputs, outputs that are not read, seeds."""
    ca = casadi()
    program = vjp(node.program, [a.name for a in node.program.inputs])
    unread = tuple(ca.Sparsity(x.size1(), x.size2()) for x in node.made)
    n, m = len(node.given), len(node.made)
    used = (*range(n), *range(n + m, n + 2 * m))
    return Node(program, (*node.given, *unread, *node.made), node.given, used, lambda: _entries_jacobian(program))


def _entries_jacobian(program: Program) -> Program:
    return derivative(program, [a.name for a in program.inputs])


def _callback(name: str, node: Node, given: Sequence[str], made: Sequence[str]) -> Any:
    made_now = _class()(name, node, tuple(given), tuple(made))
    _kept.append(made_now)
    return made_now


@cache
def _class() -> Any:
    """Return the class of callbacks, which is derived from one of CasADi's."""

    class Compiled(_Methods, casadi().Callback):
        """A Program in native code."""

    return Compiled


class _Methods:
    """The methods that CasADi calls of a callback."""

    construct: Callable[[str], None]

    def __init__(self, name: str, node: Node, given: tuple[str, ...], made: tuple[str, ...]) -> None:
        """Compile a node."""
        super().__init__()
        self.node, self.given, self.made = node, given, made
        self.run = compiled(node.program) if node.program.outputs else None
        self.zeros = [np.zeros(x.numel()) for x in node.given]
        self.filled = [k for k, x in enumerate(node.made) if x.nnz()]
        self.construct(name)

    def get_n_in(self) -> int:
        return len(self.given)

    def get_n_out(self) -> int:
        return len(self.made)

    def get_name_in(self, k: int) -> str:
        return self.given[k]

    def get_name_out(self, k: int) -> str:
        return self.made[k]

    def get_sparsity_in(self, k: int) -> Any:
        return self.node.given[k]

    def get_sparsity_out(self, k: int) -> Any:
        return self.node.made[k]

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arg: Sequence[Any], res: Sequence[Any]) -> int:
        if self.run is not None:
            # in CasADi a missing argument is zero
            read = [self.zeros[k] if arg[k] is None else np.frombuffer(arg[k]) for k in self.node.used]
            results = self.run(*read)
            for k, x in zip(self.filled, results if len(self.filled) > 1 else (results,), strict=True):
                if res[k] is not None:
                    np.frombuffer(res[k])[:] = x
        return 0

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, given: Any, made: Any, options: object) -> Any:
        return _callback(name, self.slopes(), given, made)

    def has_jac_sparsity(self, out: int, of: int) -> bool:
        return True

    def get_jac_sparsity(self, out: int, of: int, symmetric: bool) -> Any:
        return self.slopes().made[out * len(self.given) + of]

    def slopes(self) -> Node:
        """Return the node of the Jacobian, made once."""
        if not hasattr(self, "_slopes"):
            self._slopes = jacobian_node(self.node)
        return self._slopes

    def has_reverse(self, count: int) -> bool:
        return self.node.has_reverse and count == 1

    def get_reverse(self, count: int, name: str, given: Any, made: Any, options: object) -> Any:
        return _callback(name, reverse_node(self.node), given, made)


def _columns(shape: tuple[int, ...]) -> list[int]:
    """Return the place, column by column, of each entry of an array in the order of rows."""
    rows, columns = matrix(shape)
    return [j * rows + i for i in range(rows) for j in range(columns)]


def _by_columns(program: Program) -> Program:
    """Return a Program on vectors, which have the entries of the matrices column by column."""
    results = []
    for a, entries in zip(program.outputs, program.results, strict=True):
        results.append(tuple(k for _, k in sorted(zip(_columns(a.shape), entries, strict=True))))
    outputs = tuple(Array(a.name, (a.size,)) for a in program.outputs)
    return replace(_inputs_by_columns(program), outputs=outputs, results=tuple(results))


def _inputs_by_columns(program: Program) -> Program:
    places = [_columns(a.shape) for a in program.inputs]
    inputs = tuple(Array(a.name, (a.size,)) for a in program.inputs)
    ops = tuple((op[0], op[1], places[op[1]][op[2]]) if op[0] is Op.INPUT else op for op in program.ops)
    return replace(program, inputs=inputs, ops=ops)


def _jacobian_by_columns(program: Program, function: Function) -> Program:
    """Return the Jacobians of a function with rows and columns in the order of CasADi's matrices."""
    results, outputs = [], []
    pairs = [(out, x) for out in function.outputs for x in function.inputs]
    for (out, x), entries in zip(pairs, program.results, strict=True):
        rows, columns = _columns(out.shape), _columns(x.shape)
        moved = [0] * len(entries)
        for k, row in enumerate(rows):
            for j, column in enumerate(columns):
                moved[row * x.size + column] = entries[k * x.size + j]
        results.append(tuple(moved))
        outputs.append(Array(f"d{out.name}_d{x.name}", (out.size, x.size)))
    return replace(_inputs_by_columns(program), outputs=tuple(outputs), results=tuple(results))
