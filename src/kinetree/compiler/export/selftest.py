"""Self-tests: inputs of a function, its outputs, and how far the outputs of another machine may differ.

The tolerances follow from the arithmetic itself: all operations are repeated with small random errors, and the spread
of the results shows how rounding grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ..ir.operations import BOOLEANS, OPERATIONS, Op
from ..ir.program import Program
from ..lanes.form import Kernel
from ..lanes.interpret import interpret

SAMPLES = 3
"""The samples of a self-test: the best conditioned of all candidates."""
DRAWS = 8
"""The repetitions with random errors."""
ERROR = 2.0**-30
"""The relative error of each operation in a repetition: far above rounding, and small enough to be linear."""
FACTOR = 20.0
"""The tolerance in units of rounding, multiplied by the growth of errors."""


@dataclass(frozen=True)
class Selftest:
    """Samples of inputs and outputs [SAMPLES, *shape], and one tolerance per output and sample [SAMPLES]."""

    inputs: dict[str, Numbers]
    outputs: dict[str, Numbers]
    tolerances: dict[str, Numbers]

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(next(iter(self.inputs.values())))


def selftest(
    unit: Program | Kernel, dtype: str, candidates: Mapping[str, Numbers], floors: Mapping[str, float] | None = None
) -> Selftest:
    """Return the self-test with the best conditioned of the candidates, which are [count, *shape] by name of input.

    `floors` are the least tolerances of outputs, by name, relative to their largest entry.
    """
    given = {name: np.asarray(x, dtype=dtype).astype(float) for name, x in candidates.items()}
    arrays = list(given.values())
    if isinstance(unit, Kernel):
        names = [a.name for a in unit.arguments if a.output]
        outputs, growth = _grown_kernel(unit, dtype, arrays)
    else:
        names = [a.name for a in unit.outputs]
        outputs, growth = unit.interpret(*arrays), _grown(unit, arrays)
    eps = float(np.finfo(dtype).eps)
    flat = [np.abs(y).reshape(len(y), -1).max(axis=1, initial=0.0) for y in outputs]
    least = [(floors or {}).get(name, eps) for name in names]
    tolerances = [np.fmax(FACTOR * eps * g, x * size) for g, size, x in zip(growth, flat, least, strict=True)]
    chosen = _best(outputs, tolerances, flat, unit.name)
    pick = lambda xs: {name: x[chosen] for name, x in zip(names, xs, strict=True)}  # noqa: E731
    return Selftest({name: x[chosen] for name, x in given.items()}, pick(outputs), pick(tolerances))


def _best(outputs: Sequence[Numbers], tolerances: Sequence[Numbers], sizes: Sequence[Numbers], name: str) -> list[int]:
    """Return the indices of the candidates with the smallest relative tolerances, in order; only finite ones."""
    finite = np.all([np.isfinite(y).reshape(len(y), -1).all(axis=1) for y in outputs], axis=0)
    with np.errstate(all="ignore"):
        worst = np.max([t / np.where(s > 0, s, 1.0) for t, s in zip(tolerances, sizes, strict=True)], axis=0)
    order = np.argsort(np.where(finite & np.isfinite(worst), worst, np.inf), kind="stable")
    good = [int(k) for k in order if finite[k] and np.isfinite(worst[k])][:SAMPLES]
    if not good:
        raise InputError(f"{name}: no sample state has finite results, so no self-test can be written; check the model")
    return sorted(good)


def _grown(program: Program, arrays: Sequence[Numbers]) -> list[Numbers]:
    """Return the largest differences of each output [count] under random errors, in units of the errors."""
    rng = np.random.default_rng(20)
    count = len(arrays[0])

    def rough(x: Numbers) -> Numbers:
        return x * (1.0 + ERROR * rng.uniform(-1.0, 1.0, size=(DRAWS, count)))

    def apply(op: Op, *x: Numbers) -> Numbers:
        y = OPERATIONS[op].array(*x)
        return y if op in BOOLEANS or op is Op.NEG else rough(y)

    flat = [np.moveaxis(a.reshape(count, -1), 1, 0)[:, None] for a in arrays]
    with np.errstate(all="ignore"):
        perturbed = program.replay(flat, apply, lambda x: rough(np.full((1, 1), x)))
        exact = program.replay([x[:, 0] for x in flat], lambda op, *x: OPERATIONS[op].array(*x))
        return [
            np.max([np.abs(p - e).max(axis=0) for p, e in zip(ps, es, strict=True)], axis=0, initial=0.0) / ERROR
            if ps
            else np.zeros(count)
            for ps, es in zip(perturbed, exact, strict=True)
        ]


def _grown_kernel(kernel: Kernel, dtype: str, arrays: Sequence[Numbers]) -> tuple[list[Numbers], list[Numbers]]:
    """Return the outputs of a kernel, and their largest differences under random errors of the inputs of each run."""
    rng = np.random.default_rng(21)
    error = 1024.0 * float(np.finfo(dtype).eps)
    inputs = [a for a in kernel.arguments if not a.output]
    given = []
    for a, x in zip(inputs, arrays, strict=True):
        if a.shared:  # the same for all runs
            given.append(x[0])
            continue
        noise = rng.uniform(-1.0, 1.0, size=(DRAWS + 1, *x.shape)) if a.shape else np.zeros((DRAWS + 1, *x.shape))
        noise[0] = 0.0
        given.append(x * (1.0 + error * noise))
    results = interpret(kernel, *given, dtype=dtype)
    outputs = [np.asarray(y[0], dtype=float) for y in results]
    spread = [np.abs(np.asarray(y[1:], dtype=float) - y[0]).max(axis=0) / error for y in results]
    return outputs, [x.reshape(len(x), -1).max(axis=1, initial=0.0) for x in spread]
