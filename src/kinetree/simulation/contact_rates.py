"""The Program of a time step with contacts: accelerations without them, and the answers to contact impulses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..compiler.ir.operations import Op
from ..compiler.ir.program import Array, Program
from ..compiler.ir.splitting import split
from ..compiler.ir.trace import Trace
from ..compiler.lower.contacts import candidate_names
from ..compiler.lower.sweeps import Tree
from ..dynamics import contact, states
from ..model.mechanism import Mechanism
from .rates import Controller, Force, acted_on, rate_inputs

IMPULSE = "impulse"
"""The input that is known only after the first Program of a step."""


def contact_programs(
    mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None, *, dtype: str = "float64"
) -> tuple[Program, Program]:
    """Return the Program of a step before its impulses are known, and that of the changes of velocities by them.

    The first is (t, q, qd[, parameters]) -> (qdd, gap, velocity, change, W, friction, restitution, kept). qdd are the
    accelerations without contacts, loops closed, and `change` the rates J qdd of the velocities J qd of the contacts
    [nc, 3]. W [3 nc, 3 nc] are the answers of these velocities to impulses. The second is (kept, impulse) -> dqd.
    """
    trace = Trace()
    nc, nv = len(candidate_names(mechanism)), mechanism.nv
    inputs = rate_inputs(mechanism)
    now = acted_on(mechanism, trace, inputs, forces, control, dtype=dtype)
    inputs.append(Array(IMPULSE, (3 * nc,)))
    impulse = [trace.input(len(inputs) - 1, k) for k in range(3 * nc)]
    qdd = now.accelerations()
    tree = now.moving_tree()
    found = contact.touches(tree)
    rows = [row for x in found for row in x.rows]
    answers = contact.Answers(tree, rows)
    laws = [x.record.contact for x in found]
    outputs: dict[str, tuple[tuple[int, ...], Any]] = {
        "qdd": ((nv,), qdd),
        "gap": ((nc,), [x.gap for x in found]),
        "velocity": ((nc, 3), [row.rate for row in rows]),
        "change": ((nc, 3), contact.of_accelerations(tree, found, qdd)),
        "W": ((3 * nc, 3 * nc), [x for row in answers.delassus() for x in row]),
        "friction": ((nc,), [x.friction for x in laws]),
        "restitution": ((nc,), [x.restitution for x in laws]),
        "dqd": ((nv,), answers.moved(impulse)),
    }
    arrays = tuple(Array(name, shape) for name, (shape, _) in outputs.items())
    whole = Program.of_trace("contact", inputs, arrays, trace, [list(x) for _, x in outputs.values()])
    return split(whole, IMPULSE, "dqd")


def widened(program: Program, extra: int) -> Program:
    """Return a Program of (t, q, qd, ...) whose qd has further entries, which an output qd passes on unchanged.

    So the state of a run may hold more than velocities: the impulses of its last step.
    """
    wide = replace(program.inputs[2], shape=(program.inputs[2].size + extra,))
    inputs = (*program.inputs[:2], wide, *program.inputs[3:])
    ops, outputs, results = list(program.ops), list(program.outputs), list(program.results)
    for k, array in enumerate(outputs):
        if array.name == wide.name:
            ops += [(Op.INPUT, 2, array.size + i) for i in range(extra)]
            outputs[k], results[k] = wide, (*results[k], *range(len(ops) - extra, len(ops)))
    return Program(program.name, inputs, tuple(outputs), tuple(ops), tuple(results))


def moving_program(mechanism: Mechanism) -> Program:
    """Return (q, dq) -> q: coordinates moved by a step, along the motion of each joint."""
    trace = Trace()
    inputs = (Array("q", (mechanism.nq,)), Array("dq", (mechanism.nv,)))
    q, dq = ([trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs))
    moved = states.integrate(Tree(mechanism, {"q": q, "qd": dq}))
    return Program.of_trace("moving", inputs, (Array("q", (mechanism.nq,)),), trace, [moved])
