"""The interface of CasADi's `external`: functions in C that CasADi loads, with matrices in its order."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

import kinetree as kt
from c_compiler import library, needs_compiler
from strategies import State
from tolerance import assert_close

EPS = float(np.finfo(float).eps)


def loaded(folder, system: kt.System, name: str, **options) -> casadi.Function:
    """Write, compile and load a function."""
    dtype = options.pop("dtype", "float64")
    path = system.function(name, dtype=dtype, **options).save(folder / f"{name}.c")
    shared = library([path], "-DKINETREE_CASADI")
    return casadi.external(name, shared._name)


@needs_compiler
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 100 * EPS), ("float32", 1e-4)])
def test_casadi_loads_functions(dtype, bound, tmp_path):
    """Call vectors, matrices that are not symmetric, stacks of matrices and scalars through CasADi."""
    arm = kt.load("stanford")
    s = State(arm.mechanism, 4)
    q, qd, qdd, w = s.q[0], s.qd[0], s.qdd[0], s.wrenches[0]
    fd = loaded(tmp_path, arm, "inverse_dynamics", dtype=dtype, wrenches=True)
    assert [fd.name_in(k) for k in range(4)] == ["q", "qd", "qdd", "wrenches"] and fd.name_out(0) == "tau"
    assert fd.size_in("wrenches") == (len(arm.bodies), 6)
    expected = arm.inverse_dynamics(q, qd, qdd, wrenches=w)
    assert_close(fd(q, qd, qdd, w), expected[:, None], bound * np.abs(expected).max(), "torques with wrenches")
    J = loaded(tmp_path, arm, "jacobian", frame="tool", dtype=dtype)
    assert J.size_out(0) == (6, arm.nv)
    assert_close(J(q), arm.jacobian(q, "tool"), bound * 10, "a matrix")
    T = loaded(tmp_path, arm, "poses", dtype=dtype)
    assert_close(T(q), arm.poses(q).reshape(-1, 4), bound * 10, "a stack of matrices")
    E = loaded(tmp_path, arm, "kinetic_energy", dtype=dtype)
    assert_close(E(q, qd), [[arm.kinetic_energy(q, qd)]], bound * 100, "a scalar")


@needs_compiler
def test_casadi_uses_a_time_step_in_expressions(tmp_path):
    """Call a step of a closed mechanism from a symbolic expression, and leave an argument out."""
    system = kt.load("four_bar")
    kt.export(system, "step", "c", tmp_path)
    step = casadi.external("time_step", library([tmp_path / "time_step.c"], "-DKINETREE_CASADI")._name)
    q, qd = system.assemble(), np.zeros(system.nv)
    tau = casadi.MX.sym("tau", system.nv)
    after = casadi.Function("after", [tau], step(q, qd, tau, 1e-3))
    moved = after(np.array([0.37, 0.0, 0.0]))
    run = kt.simulate(system, q, qd, times=[0.0, 1e-3], dt=1e-3, method="rk4",
                      control=kt.TorqueFunction(lambda t, q, qd: [0.37, 0.0, 0.0]))  # fmt: skip
    assert_close(moved[0], run.q[-1][:, None], 1e-14, "q")
    assert_close(moved[1], run.qd[-1][:, None], 1e-12, "qd")
    alone = casadi.external("time_step", library([tmp_path / "time_step.c"], "-DKINETREE_CASADI")._name)
    zero = alone.call([q, qd, casadi.DM(system.nv, 1), 1e-3])
    assert_close(alone(q=q, qd=qd, dt=1e-3)["q_next"], zero[0], 0.0, "a null argument is zero")
