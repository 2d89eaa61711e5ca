"""What all forms of a program have in common, straight-line or in loops: arrays, text, a hash and an interpreter."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from .operations import OPERATIONS

Apply = Callable[..., Any]
"""A function of an operation and its operands that carries the operation out."""
Constant = Callable[[float], Any]
"""A function that converts a number to the type of scalars on which a program runs."""


@dataclass(frozen=True)
class Array:
    """A named input or output with its shape, () for a scalar."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of entries."""
        return prod(self.shape)


class Form(Protocol):
    """A program that runs on scalars of any type and can be written as text."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The named inputs."""
        ...

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The named outputs."""
        ...

    def dumps(self) -> str:
        """Return the program as text; numbers keep every bit."""
        ...

    def replay(self, inputs: Sequence[Any], apply: Apply, constant: Constant = ...) -> list[list[Any]]:
        """Return the entries of each output."""
        ...


def plain(x: float) -> float:
    """Return a number unchanged: the conversion for scalars that are numbers."""
    return x


def digest(form: Form) -> str:
    """Return a digest of the text of a program, hence of its arithmetic, its numbers, names and shapes."""
    return hashlib.sha256(form.dumps().encode()).hexdigest()


def interpret(form: Form, *arguments: Any) -> list[np.ndarray]:
    """Run a program operation by operation in NumPy, all samples at once and without any target: simple and slow."""
    arrays = [np.asarray(a, dtype=float) for a in arguments]
    lead = np.broadcast_shapes(*(a.shape[: a.ndim - len(i.shape)] for a, i in zip(arrays, form.inputs, strict=True)))
    flat = [np.broadcast_to(a, lead + i.shape).reshape(*lead, i.size) for a, i in zip(arrays, form.inputs, strict=True)]
    entries = [np.moveaxis(a, -1, 0) for a in flat]
    with np.errstate(all="ignore"):
        results = form.replay(entries, lambda op, *x: OPERATIONS[op].array(*x))
    return [
        np.stack([np.broadcast_to(x, lead) for x in values], axis=-1).reshape(lead + out.shape)
        if values
        else np.zeros(lead + out.shape)
        for out, values in zip(form.outputs, results, strict=True)
    ]


def arrays_data(form: Form) -> list:
    """Return the inputs and outputs of a program as lists for JSON."""
    return [[[a.name, a.shape] for a in group] for group in (form.inputs, form.outputs)]


def arrays_of(data: list) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the inputs and outputs that `arrays_data` has turned into lists."""
    inputs, outputs = (tuple(Array(name, tuple(shape)) for name, shape in group) for group in data)
    return inputs, outputs
