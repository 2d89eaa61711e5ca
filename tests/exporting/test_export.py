"""`kt.export`: many functions of open and closed mechanisms, with forces and control, in C against the library."""

from __future__ import annotations

import ctypes
import importlib.metadata
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import called, library, needs_compiler
from closed_mechanisms import closed_mechanisms
from kinetree.dynamics import ALGORITHMS
from kinetree.errors import InputError, UnknownNameError, WriteError
from kinetree.simulation.methods.table import METHODS
from strategies import State, examples, moving_mechanisms
from tolerance import assert_close

EPS = float(np.finfo(float).eps)
PAYLOAD = """
[mechanism]
name = "arm"
[parameters]
payload = { value = 1.3, free = true, unit = "kg" }
[[body]]
name = "upper"
mass = 2.1
com = [0.21, 0.02, -0.03]
inertia = [0.011, 0.047, 0.051, 0.001, -0.002, 0.003]
[[body]]
name = "lower"
mass = "0.7 + payload"
com = [0.19, -0.04, 0.02]
inertia = [0.009, 0.031, 0.033, 0.0, 0.001, 0.0]
[[joint]]
name = "shoulder"
kind = "revolute"
parent = "ground"
child = "upper"
axis = [0.0, 1.0, 0.0]
damping = 0.13
[[joint]]
name = "elbow"
kind = "revolute"
parent = "upper"
child = "lower"
axis = [0.0, 1.0, 0.0]
translation = [0.43, 0.0, 0.0]
"""


def passes(folder: Path, names) -> None:
    """Compile the self-tests of functions and run them."""
    compiled = library([folder / f"{name}.c" for name in names])
    assert {name: compiled[f"{name}_selftest"]() for name in names} == dict.fromkeys(names, 0)


@needs_compiler
@pytest.mark.parametrize(
    "name", ["planar_2r", *(pytest.param(x, marks=pytest.mark.slow) for x in ("stanford", "four_bar", "spatial_biped"))]
)
def test_every_function_passes_its_self_test(name, tmp_path):
    """Export all functions of an open, a closed and a free-floating mechanism and run their self-tests in C."""
    system = kt.load(name)
    closed = [f for f in ALGORITHMS if not f.startswith("clos") and f != "multipliers"]
    functions = [*ALGORITHMS] if system.closures else closed
    frame = system.mechanism.frame_names[-1]
    paths = kt.export(system, functions, "c", tmp_path, frame=frame, wrenches=True)
    assert len(paths) == 2 * len(functions)
    passes(tmp_path, [p.stem for p in paths if p.suffix == ".c"])


@needs_compiler
@examples(3)
@hypothesis.given(mechanism=moving_mechanisms(most=4))
def test_steps_of_random_trees(mechanism, tmp_path_factory):
    """Compare a step in C with a run of one step, for random trees."""
    folder, system = tmp_path_factory.mktemp("tree"), kt.System(mechanism)
    kt.export(system, "step", "c", folder)
    compiled = library([folder / "time_step.c"])
    assert compiled.time_step_selftest() == 0
    s = State(mechanism, 4)
    dt = np.full((3, 1), 1e-4)
    found = called(compiled.time_step, (s.q, s.qd, s.tau, dt), [(system.nq,), (system.nv,)])
    for k in range(3):
        held = kt.TorqueFunction(lambda t, q, qd, tau=s.tau[k]: [float(x) for x in tau])
        run = kt.simulate(system, s.q[k], s.qd[k], times=[0.0, 1e-4], dt=1e-4, method="rk4", control=held)
        if np.isfinite(run.q).all() and len(run.q) == 2:
            scale = max(np.abs(run.qd).max(), np.abs(found[1][k]).max(), 1.0) * np.linalg.cond(
                system.inertia_matrix(s.q[k])
            )
            assert_close(found[0][k], run.q[-1], 20 * EPS * scale, "q")
            assert_close(found[1][k], run.qd[-1], 20 * EPS * scale, "qd")


@needs_compiler
@pytest.mark.slow
@examples(4)
@hypothesis.given(made=closed_mechanisms(most=3))
def test_random_closed_mechanisms(made, tmp_path_factory):
    """Run the self-tests of a function and a step of random mechanisms with loops."""
    folder = tmp_path_factory.mktemp("closed")
    kt.export(kt.System(made[0]), ["forward_dynamics", "step"], "c", folder)
    passes(folder, ["forward_dynamics", "time_step"])


@needs_compiler
def test_control_forces_and_parameters(tmp_path):
    """Export a controller, rates, loads, a step and a run of an arm with a free parameter, damping and a spring."""
    (tmp_path / "arm.toml").write_text(PAYLOAD)
    arm = kt.load(tmp_path / "arm.toml")
    control = kt.PDGravity(40.0, 5.0, kt.Cycloid([0.0, 0.0], [0.8, -0.5], 2.0))
    spring = kt.JointSpring("elbow", 3.0, rest=0.2)
    kt.export(arm, ["control", "rates", "loads", "step", "run"], "c", tmp_path, control=control, forces=spring)
    passes(tmp_path, ["control", "rates", "loads", "time_step", "run"])
    header = (tmp_path / "time_step.h").read_text()
    assert "void time_step(const double *t, const double *q, const double *qd, const double *parameters" in header
    assert "payload [kg]" in header and "one time step by rk4 under 2 forces and PDGravity" in header
    compiled = library([tmp_path / "run.c"])
    times = np.linspace(0.0, 0.5, 6)
    given = [[[0.1, 0.2]], [[0.0, 0.3]], [[2.7]], times[None], [1e-3], [0.0], [1e9]]
    shapes = [(6, 2), (6, 2), (2,), (2,), (4,)]
    q, qd, q_end, _, report = called(compiled.run, given, shapes, first=(6,))
    run = kt.simulate(
        arm,
        [0.1, 0.2],
        [0.0, 0.3],
        times=times,
        dt=1e-3,
        method="rk4",
        parameters=[2.7],
        control=control,
        forces=spring,
    )
    assert_close(q[0], run.q, 1e-12, "q of a run")
    assert_close(qd[0], run.qd, 1e-11, "qd of a run")
    np.testing.assert_array_equal(q_end[0], q[0, -1])
    assert report[0].tolist() == [500.0, 6.0, 0.0, 0.0]


@needs_compiler
@pytest.mark.parametrize("method", everyday.some([name for name, m in METHODS.items() if m.native and name != "rk4"]))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_and_runs_by_other_methods(method, dtype, tmp_path):
    """Run the self-tests of steps by fixed methods and of runs by adaptive ones, with loops and in both precisions."""
    function, file = ("run", "run") if METHODS[method].adaptive else ("step", "time_step")
    kt.export(kt.load("slider_crank"), function, "c", tmp_path, method=method, dtype=dtype)
    passes(tmp_path, [file])
    if method == "euler":
        kt.export(kt.load("slider_crank"), "step", "c", tmp_path, method=method, dtype=dtype, prefix="b_",
                  loops=kt.Baumgarte(30.0))  # fmt: skip
        passes(tmp_path, ["b_time_step"])


@needs_compiler
def test_a_step_may_write_over_its_input(tmp_path):
    """Step in place and find the same numbers as with other arrays."""
    system = kt.load("space_robot_3r")
    kt.export(system, "step", "c", tmp_path)
    step = library([tmp_path / "time_step.c"]).time_step
    s = State(system.mechanism, 3)
    q, qd, tau, dt = (np.ascontiguousarray(x) for x in (s.q[0], s.qd[0], s.tau[0], [1e-3]))
    found = called(step, [x[None] for x in (q, qd, tau, dt)], [(system.nq,), (system.nv,)])
    step(*(x.ctypes.data_as(ctypes.c_void_p) for x in (q, qd, tau, dt, q, qd)))
    np.testing.assert_array_equal(q, found[0][0])
    np.testing.assert_array_equal(qd, found[1][0])


def test_names_and_folders(tmp_path):
    """Find the names of files with a prefix and a frame, in a folder that did not exist."""
    paths = kt.export(
        kt.load("stanford"), ["pose", "gravity_torque"], ["c"], tmp_path / "a" / "b", frame="tool", prefix="s_"
    )
    assert [p.name for p in paths] == ["s_pose_tool.c", "s_pose_tool.h", "s_gravity_torque.c", "s_gravity_torque.h"]
    assert "void s_pose_tool(const double *q, double *T);" in paths[1].read_text()


def test_errors(tmp_path):
    """Refuse unknown names and formats, control in Python, methods without code, and files in place of folders."""
    arm = kt.load("planar_2r")
    with pytest.raises(UnknownNameError, match="no function 'stp'; did you mean 'step'|no function 'stp'"):
        kt.export(arm, "stp", "c", tmp_path)
    with pytest.raises(UnknownNameError, match="no format 'rust'; available: c, object, wasm, ptx"):
        kt.export(arm, "step", "rust", tmp_path)
    with pytest.raises(InputError, match="the format 'c:aarch64' has a processor; only object:PROCESSOR has one"):
        kt.export(arm, "step", "c:aarch64", tmp_path)
    with pytest.raises(InputError, match="export takes a System, not 5"):
        kt.export(5, "step", "c", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="functions is 5; give a name or a list of names"):
        kt.export(arm, 5, "c", tmp_path)  # type: ignore[arg-type]
    for wrong in ("float16", 5):
        with pytest.raises(InputError, match=f"dtype is {wrong!r}; expected 'float64' or 'float32'"):
            kt.export(arm, "step", "c", tmp_path, dtype=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="prefix is 3; give the beginning of names"):
        kt.export(arm, "step", "c", tmp_path, prefix=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'control' needs a controller"):
        kt.export(arm, "control", "c", tmp_path)
    with pytest.raises(InputError, match="control is a PythonControl, which runs in Python"):
        kt.export(arm, "step", "c", tmp_path, control=kt.PythonControl(lambda t, q, qd: q, rate=10.0))
    with pytest.raises(
        InputError, match="a step has a fixed length, and dopri5 chooses its own; use rk4, euler, midpoint"
    ):
        kt.export(arm, "step", "c", tmp_path, method="dopri5")
    with pytest.raises(InputError, match="bdf is not exported; use one of rk4, euler, midpoint, gauss, dopri5, dop853"):
        kt.export(arm, "run", "c", tmp_path, method="bdf")
    with pytest.raises(InputError, match="exported code takes Projection"):
        kt.export(kt.load("four_bar"), "step", "c", tmp_path, loops=kt.Minimal())
    with pytest.raises(InputError, match="the mechanism is too long for straight-line code"):
        kt.export(kt.chain(100), "step", "c", tmp_path)
    with pytest.raises(InputError, match="compiled with loops over its bodies"):
        kt.export(kt.chain(100), "gravity_torque", "c", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="cannot be written"):
        kt.export(arm, "gravity_torque", "c", tmp_path / "file")


def robots() -> list[str]:
    """Return the URDFs of public robots that are installed."""
    try:
        files = importlib.metadata.files("example-robot-data") or ()
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(str(f.locate()) for f in files if f.suffix == ".urdf")


def robot(stem: str) -> str:
    """Return the URDF of a robot by its file name, or skip."""
    found = [path for path in robots() if Path(path).stem == stem]
    if not found:
        pytest.skip("example-robot-data is not installed")
    return found[0]


def check_robot(path: str, base: str, folder: Path) -> None:
    """Compare both dynamics of a robot in C with the gufuncs."""
    system = kt.load(path, base=base)
    functions = ["inverse_dynamics"]
    if np.linalg.matrix_rank(system.inertia_matrix(system.neutral())) == system.nv:  # some grippers have no inertia
        functions.append("forward_dynamics")
    for name in functions:
        system.function(name, lowering="unrolled").save(folder / f"{name}.c")
    s = State(system.mechanism, 4)
    for name in functions:
        compiled = library([folder / f"{name}.c"])
        assert compiled[f"{name}_selftest"]() == 0
        (found,) = called(compiled[name], (s.q, s.qd, s.tau), [(system.nv,)])
        expected = getattr(system, name)(s.q, s.qd, s.tau)
        condition = np.linalg.cond(system.inertia_matrix(s.q)).max() if name == "forward_dynamics" else 100.0
        assert_close(found, expected, 20 * EPS * condition * np.abs(expected).max(), f"{name} of {Path(path).stem}")


@needs_compiler
@pytest.mark.parametrize(
    ("stem", "base"), [("ur5_robot", "fixed"), pytest.param("solo12", "free", marks=pytest.mark.slow)]
)
def test_public_robots(stem, base, tmp_path):
    """Compare public robots, fixed and free-flying, in C with the gufuncs."""
    check_robot(robot(stem), base, tmp_path)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("path", robots(), ids=lambda path: Path(path).stem)
def test_all_public_robots(path, base, tmp_path):
    """Compare all public robots that can be loaded."""
    try:
        system = kt.load(path, base=base)
    except kt.KinetreeError as error:
        pytest.skip(str(error)[:80])
    if not system.nv:
        pytest.skip("no joint moves")
    check_robot(path, base, tmp_path)


def test_motions_without_their_contacts_are_not_exported(tmp_path):
    """Refuse code that would let a body fall through the ground; write functions that have no contacts anyway."""
    body, joint = kt.Body("ball", 1.3, inertia=(0.1, 0.1, 0.1, 0, 0, 0)), kt.Joint("base", "free", kt.GROUND, "ball")
    ball = kt.build_mechanism("ball", [body], [joint], contacts=[kt.Contact("floor", "ball", "sphere", 0.1)])
    with pytest.raises(InputError, match="'ball' has contacts, which exported code does not have: step, rates would"):
        kt.export(kt.System(ball), ["gravity_torque", "step", "rates"], "c", tmp_path / "out")
    assert kt.export(kt.System(ball), "gravity_torque", "c", tmp_path / "out")
