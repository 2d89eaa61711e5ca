"""Stiff systems: backward differentiation formulas by SUNDIALS (CasADi's CVODES), with the exact Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiler.ir.operations import FUNCTIONS, Op, apply
from ...compiler.ir.program import Program
from ...errors import InputError
from .runs import Run, Settings

FAILED = "CVODES gave up ({reason}); try smaller tolerances or a shorter run"


def symbolic(program: Program) -> Any:
    """Return a Program as a CasADi function of its inputs, operation by operation."""
    import casadi as ca

    inputs = [ca.SX.sym(a.name, a.size) for a in program.inputs]
    own = {Op.SELECT: ca.if_else, Op.AND: ca.logic_and, Op.OR: ca.logic_or, Op.NOT: ca.logic_not, Op.ATAN2: ca.atan2}
    own |= {op: getattr(ca, op.name.lower()) for op in FUNCTIONS}
    results = program.replay(
        [ca.vertsplit(x) for x in inputs], lambda op, *x: own[op](*x) if op in own else apply(op, *x), ca.SX
    )
    outputs = [ca.vertcat(*entries) for entries in results]
    return ca.Function(
        program.name, inputs, outputs, [a.name for a in program.inputs], [a.name for a in program.outputs]
    )


def run_bdf(program: Program, q0, qd0, times, settings: Settings, parameters=None) -> Run:
    """Integrate each run of a batch, one after the other, to the tolerances of the settings."""
    import casadi as ca

    f = symbolic(program)
    nq, nv = q0.shape[-1], qd0.shape[-1]
    t, y = ca.SX.sym("t"), ca.SX.sym("y", nq + nv)
    p = ca.SX.sym("p", parameters.shape[-1]) if parameters is not None else ca.SX(0, 1)
    rates = f(t, y[:nq], y[nq:], *(() if parameters is None else (p,)))
    options = {"reltol": settings.rtol, "abstol": settings.atol, "max_num_steps": settings.most}
    problem = {"t": t, "x": y, "p": p, "ode": ca.vertcat(*rates)}
    try:
        solver = ca.integrator("bdf", "cvodes", problem, float(times[0]), [float(x) for x in times[1:]], options)
    except RuntimeError as error:
        raise InputError(f"CVODES cannot be set up: {_short(error)}") from None
    lead = q0.shape[:-1]
    q = np.full((*lead, len(times), nq), np.nan)
    qd = np.full((*lead, len(times), nv), np.nan)
    evaluations, steps, failures = np.zeros(lead), np.zeros(lead), {}
    for flat, index in enumerate(np.ndindex(*lead)):
        q[(*index, 0)], qd[(*index, 0)] = q0[index], qd0[index]
        start = np.concatenate([q0[index], qd0[index]])
        given = () if parameters is None else (parameters[index] if parameters.ndim > 1 else parameters,)
        try:
            path = np.array(solver(x0=start, **({"p": given[0]} if given else {}))["xf"]).T
        except RuntimeError as error:
            failures[flat] = FAILED.format(reason=_short(error))
            continue
        q[(*index, slice(1, None))], qd[(*index, slice(1, None))] = path[:, :nq], path[:, nq:]
        stats = solver.stats()
        evaluations[index], steps[index] = stats["nfevals"], stats["nsteps"]
    return Run(times, q, qd, evaluations, steps, np.zeros(lead), len(times), False, failures)


def _short(error: Exception) -> str:
    """Return the last sentence of an error of CasADi, where the reason stands."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__
