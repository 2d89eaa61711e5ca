"""The interface of CasADi's `external`: functions in C that CasADi loads, with matrices in its order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import casadi
import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import COMPILER, library, needs_compiler
from strategies import State
from tolerance import assert_close

DOCS = Path(__file__).resolve().parents[3] / "docs"
EPS = float(np.finfo(float).eps)


def loaded(folder, system: kt.System, name: str, **options) -> casadi.Function:
    """Write, compile and load a function."""
    dtype = options.pop("dtype", "float64")
    path = system.function(name, dtype=dtype, **options).save(folder / f"{name}.c")
    shared = library([path], "-DKINETREE_CASADI")
    return casadi.external(name, shared._name)


@needs_compiler
@pytest.mark.parametrize(("dtype", "bound"), everyday.some([("float64", 100 * EPS), ("float32", 1e-4)]))
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


def with_jacobian(folder, system: kt.System, name: str, **options) -> casadi.Function:
    """Write, compile and load a function together with its Jacobian."""
    path = system.function(name, **options).save(folder / f"{name}.c", jacobian=True)
    return casadi.external(name, library([path, folder / f"jac_{name}.c"], "-DKINETREE_CASADI")._name)


@needs_compiler
def test_casadi_finds_exact_jacobians(tmp_path):
    """Differentiate a loaded function by the Jacobian in its library, in expressions and without differences."""
    arm = kt.load("planar_2r")
    s = State(arm.mechanism, 4)
    q, qd, tau = s.q[0], s.qd[0], s.qdd[0]
    f = with_jacobian(tmp_path, arm, "forward_dynamics")
    J = f.jacobian()
    assert J.name_in() == ["q", "qd", "tau", "out_qdd"] and J.name_out() == ["jac_qdd_q", "jac_qdd_qd", "jac_qdd_tau"]
    expected = arm.function("forward_dynamics").jacobian()(q, qd, tau)
    for found, wanted in zip(J(q, qd, tau, 0), expected, strict=True):
        assert_close(found, wanted, 100 * EPS * np.abs(wanted).max(), "blocks of the Jacobian")
    x = casadi.MX.sym("x", 2)
    cost = casadi.Function("cost", [x], [casadi.gradient(casadi.sumsqr(f(x, qd, tau)), x)])
    gradient = 2.0 * expected[0].T @ arm.forward_dynamics(q, qd, tau)
    assert_close(cost(q), gradient[:, None], 1000 * EPS * np.abs(gradient).max(), "a gradient through the function")


@everyday.long
@needs_compiler
def test_jacobians_of_matrices_have_casadis_order(tmp_path):
    """Order the entries of matrix outputs and matrix inputs by columns, as CasADi does, also with quaternions."""
    arm = kt.load("spatial_pendulum")
    s = State(arm.mechanism, 4)
    q, qd, qdd, w = s.q[0], s.qd[0], s.qdd[0], s.wrenches[0]
    for name, more, inputs in (
        ("convective_matrix", {}, (q, qd)),
        ("inverse_dynamics", {"wrenches": True}, (q, qd, qdd, w)),
    ):
        f, g = with_jacobian(tmp_path, arm, name, **more), arm.casadi(name, **more)
        for found, wanted in zip(f.jacobian()(*inputs, 0), g.jacobian()(*inputs, 0), strict=True):
            bound = 1000 * EPS * max(1.0, np.abs(wanted.full()).max())
            assert_close(found.full(), wanted.full(), bound, f"Jacobian of {name}")


@needs_compiler
def test_generated_code_calls_function_and_jacobian(tmp_path, monkeypatch):
    """Let CasADi generate C of the forward sensitivities of an explicit model, as acados does, and link it."""
    monkeypatch.chdir(tmp_path)  # CasADi writes into the working folder
    arm = kt.load("planar_2r")
    f = with_jacobian(tmp_path, arm, "forward_dynamics")
    x, u, S = casadi.MX.sym("x", 4), casadi.MX.sym("u", 2), casadi.MX.sym("S", 4, 6)
    rates = casadi.vertcat(x[2:], f(x[:2], x[2:], u))
    moved = casadi.jtimes(rates, x, S) + casadi.horzcat(casadi.MX(4, 4), casadi.jacobian(rates, u))
    model = casadi.Function("expl_vde_forw", [x, S, u], [rates, moved])
    model.generate("expl_vde_forw.c")
    sources = [tmp_path / name for name in ("expl_vde_forw.c", "forward_dynamics.c", "jac_forward_dynamics.c")]
    out = tmp_path / "vde.so"
    flags = ["-O1", "-fPIC", "-shared", "-DKINETREE_CASADI"]
    subprocess.run([*COMPILER, *flags, *map(str, sources), "-o", str(out), "-lm"], check=True)
    linked = casadi.external("expl_vde_forw", str(out))
    s = State(arm.mechanism, 4)
    at, along, push = np.concatenate([s.q[0], s.qd[0]]), np.eye(4, 6), s.qdd[0]
    found = linked(at, along, push)
    plant = arm.linearize(s.q[0], s.qd[0], push)
    expected = plant.A @ along + np.concatenate([np.zeros((4, 4)), plant.B], axis=1)
    assert_close(found[1].full(), expected, 1e-12 * np.abs(expected).max(), "forward sensitivities in generated code")


@pytest.mark.slow
@needs_compiler
def test_a_program_in_c_runs_the_model_of_acados(tmp_path, monkeypatch):
    """Run the model that acados would generate from a small program in C, linked to the library as the docs say."""
    monkeypatch.chdir(tmp_path)
    arm = kt.load("planar_2r")
    arm.function("forward_dynamics").save("forward_dynamics.c", jacobian=True)
    text = (DOCS / "exporting.md").read_text()
    (line,) = (line for line in text.splitlines() if "-o libforward_dynamics.so" in line)
    subprocess.run([*COMPILER, *line.split()[1:]], check=True)
    f = casadi.external("forward_dynamics", "./libforward_dynamics.so")
    x, Sx, Su, u = (casadi.MX.sym(name, *shape) for name, *shape in (("x", 4), ("Sx", 4, 4), ("Su", 4, 2), ("u", 2)))
    rates = casadi.vertcat(x[2:], f(x[:2], x[2:], u))
    along = casadi.jtimes(rates, x, Sx), casadi.jacobian(rates, u) + casadi.jtimes(rates, x, Su)
    model = casadi.Function("arm_expl_vde_forw", [x, Sx, Su, u, casadi.MX(0, 0)], [rates, *along])
    model.generate("arm_expl_vde_forw.c", {"casadi_int": "int"})
    sources = ["arm_expl_vde_forw.c", str(Path(__file__).with_name("acados_driver.c"))]
    linked = ["-L.", "-lforward_dynamics", "-lm", "-Wl,-rpath,."]
    subprocess.run([*COMPILER, "-std=c99", "-O1", *sources, "-o", "driver", *linked], check=True)
    start, push, h, steps = [0.3, -0.4, 1.0, 2.0], [0.7, -0.2], 0.01, 25
    given = map(repr, [steps, h, *start, *push])
    printed = subprocess.run(["./driver", *given], check=True, capture_output=True, text=True).stdout
    y = np.array(list(map(float, printed.split())))
    d = kt.simulation_derivatives(
        arm, start[:2], start[2:], times=[0.0, h * steps], method="rk4", dt=h, wrt=("q0", "qd0", "tau"),
        control=kt.TorqueFunction(lambda t, q, qd: push), passive=False,
    )  # fmt: skip
    assert_close(y[:4], np.concatenate([d.run.q[-1], d.run.qd[-1]]), 1e-12, "the run")
    expected = np.concatenate([d.dq[-1], d.dqd[-1]])
    assert_close(y[4:].reshape(6, 4).T, expected, 1e-12 * np.abs(expected).max(), "the sensitivities")


@needs_compiler
def test_exported_jacobians_have_self_tests(tmp_path):
    """Write Jacobians beside functions, in C with a self-test and as object code, under names with a prefix."""
    arm = kt.load("planar_2r")
    paths = kt.export(arm, "inverse_dynamics", ["c", "object"], tmp_path, prefix="arm_", jacobian=True)
    names = {path.name for path in paths}
    assert {"jac_arm_inverse_dynamics.c", "jac_arm_inverse_dynamics.h", "jac_arm_inverse_dynamics.o"} <= names
    shared = library([tmp_path / "jac_arm_inverse_dynamics.c"])
    assert shared.jac_arm_inverse_dynamics_selftest() == 0
    text = (tmp_path / "jac_arm_inverse_dynamics.h").read_text()
    assert "dtau_dq[2][2] (out): the derivative of tau with respect to q, output entries first" in text
    with pytest.raises(kt.InputError, match="jacobian: step has none in files; export it by itself"):
        kt.export(arm, ["inverse_dynamics", "step"], "c", tmp_path, jacobian=True)
