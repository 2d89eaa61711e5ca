"""Rolled programs as lists for JSON, with numbers by their bits."""

from __future__ import annotations

import base64
from dataclasses import astuple
from typing import Any

import numpy as np

from ..ir.operations import Op
from .program import BodyClass, Loop, RolledProgram, Step


def program_data(p: RolledProgram) -> list:
    """Return a program as lists for JSON."""
    loops = [[x.index, x.direction, x.keys, [*map(step_data, x.steps)], step_data(x.ground)] for x in p.loops]
    classes = [astuple(c) for c in p.classes]
    return [
        p.name, p.inputs, p.output, classes, loops, step_data(p.last), p.columns, p.slots, p.shared, p.coordinates,
    ]  # fmt: skip


def program_of(data: list) -> RolledProgram:
    """Return the program of lists from JSON."""
    name, inputs, output, classes, loops, last, columns, slots, shared, coordinates = data
    made = (
        Loop(index, direction, _tuples(keys), tuple(map(step_of, steps)), step_of(ground))
        for index, direction, keys, steps, ground in loops
    )
    return RolledProgram(
        name, tuple(inputs), output, tuple(BodyClass(*c) for c in classes), tuple(made), step_of(last),
        _tuples(columns), tuple(slots), tuple(shared), coordinates,
    )  # fmt: skip


def step_data(step: Step) -> list:
    """Return a step as lists for JSON."""
    ops = [[int(op[0]), float(op[1]).hex()] if op[0] is Op.CONST else [int(op[0]), *op[1:]] for op in step.ops]
    return [ops, step.results]


def step_of(data: list) -> Step:
    """Return the step of lists from JSON."""
    ops, results = data
    constant = Op.CONST
    read = ((constant, float.fromhex(op[1])) if op[0] == constant else (Op(op[0]), *_tuples(op[1:])) for op in ops)
    return Step(tuple(read), _tuples(results))


def _tuples(x: Any) -> Any:
    """Return lists of lists as tuples of tuples."""
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def bits(x: np.ndarray) -> str:
    """Return an array of numbers as text."""
    return base64.b64encode(x.astype("<f8").tobytes()).decode()


def numbers(text: str) -> np.ndarray:
    """Return the numbers of a text."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(float)
