from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from complex_runs import derivatives_of_rk4
from kinetree.errors import KinetreeError
from kinetree.model import parse
from kinetree.model.axes import quaternion_places
from kinetree.simulation.acting.driven import combine_controls
from kinetree.simulation.acting.drives import drives_of
from kinetree.simulation.acting.rates import ForcedMechanism, centered_rates, centered_scheme
from kinetree.simulation.closing import closing_program
from kinetree.simulation.methods.fixed_steps import RK4
from kinetree.simulation.methods.table import METHODS, names_of
from pendulums import pendulum
from tolerance import assert_close

TIMES = np.linspace(0.0, 0.3, 4)
H = 0.02


def sprung_mass() -> kt.System:
    """Return a mass on a spring along a rail, with mass and stiffness as free parameters."""
    body = kt.Body("mass", parse("m"), (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    rail = kt.Joint("rail", "prismatic", "ground", "mass", axis=(1.0, 0.0, 0.0))
    free = [kt.Parameter("m", 1.7, free=True), kt.Parameter("k", 23.0, free=True)]
    return kt.System(kt.build_mechanism("sprung", [body], [rail], parameters=free))


def complex_step(system, q, qd, columns, *, control=None):
    """Return the derivatives of a run of rk4 over TIMES by complex steps, [2 nv, columns] in entries of q and qd."""
    m = system.mechanism
    drives = drives_of(control)
    closing = closing_program(m, drives=drives) if m.closures or drives is not None else None
    start = np.concatenate([q, qd])
    steps = round((TIMES[-1] - TIMES[0]) / H)
    dynamics = ForcedMechanism(m, kt.forces_of(m), control)
    program, method = centered_rates(dynamics), centered_scheme(RK4, dynamics)
    return derivatives_of_rk4(
        program, start, columns, steps, H, method, closing=closing, quaternions=quaternion_places(m),
    )  # fmt: skip


def start_columns(system, q):
    """Return the derivatives of the entries of a start along the directions of q0 and qd0."""
    E = np.stack([np.asarray(system.coordinate_rate(q, e)) for e in np.eye(system.nv)], axis=-1)
    zero = np.zeros((system.nq, system.nv)), np.zeros((system.nv, system.nv))
    return np.block([[E, zero[0]], [zero[1], np.eye(system.nv)]])


@pytest.mark.parametrize(
    "name",
    [
        "spatial_pendulum",
        pytest.param("stanford", marks=pytest.mark.slow),
        pytest.param("space_robot_3r", marks=pytest.mark.slow),
    ],
)
def test_a_tree_by_complex_steps(name):
    """Differentiate fixed steps of trees exactly, also with quaternions in the tangent space."""
    system = kt.load(name)
    q, qd = system.random_state(3)
    found = kt.simulation_derivatives(system, q, 0.4 * qd, times=TIMES, method="rk4", dt=H)
    end, expected = complex_step(system, q, 0.4 * qd, start_columns(system, q))
    E = start_columns(system, found.run.q[-1])[: system.nq, : system.nv]
    entries = np.concatenate([E @ found.dq[-1], found.dqd[-1]])
    assert_close(found.run.q[-1], end[: system.nq], 1e-13, "the run itself")
    assert_close(entries, expected, 1e-12 * np.abs(expected).max(), f"derivatives of a run of {name}")


def closed_start(name: str):
    system = kt.load(name)
    q = system.assemble()
    rng = np.random.default_rng(5)
    qd = np.asarray(system.closing_speed(q, rng.normal(size=system.nv)))
    return system, q, qd


@pytest.mark.parametrize(
    "name", ["slider_crank", *(pytest.param(x, marks=pytest.mark.slow) for x in ("four_bar", "five_bar", "three_rrr"))]
)
def test_closed_loops_by_complex_steps(name):
    """Differentiate the steps of a closed mechanism exactly, with the closing of its loops after each."""
    system, q, qd = closed_start(name)
    found = kt.simulation_derivatives(system, q, qd, times=TIMES, method="rk4", dt=H)
    start = np.concatenate([found.dq[0], found.dqd[0]])
    _, expected = complex_step(system, q, qd, start)
    entries = np.concatenate([found.dq[-1], found.dqd[-1]])
    assert_close(entries, expected, 1e-11 * np.abs(expected).max(), f"derivatives of a closed run of {name}")
    J = np.asarray(system.function("closure_jacobian")(found.run.q))
    assert_close(J @ found.dq, np.zeros((len(TIMES), J.shape[1], 2 * system.nv)), 1e-11, "loops along the columns")


@pytest.mark.slow
def test_closed_loops_by_differences_of_projected_runs():
    """Agree with differences of runs of a four-bar from starts that are displaced and closed again."""
    system, q, qd = closed_start("four_bar")
    options = {"times": TIMES, "method": "rk4", "dt": H}
    found = kt.simulation_derivatives(system, q, qd, **options)
    rng = np.random.default_rng(8)
    dq, dqd = rng.normal(size=(2, system.nv))

    def displaced(e):
        at = system.integrate(q, e * dq)
        for _ in range(6):
            at = system.integrate(at, np.asarray(system.function("closing_step")(at)))
        run = kt.simulate(system, at, system.closing_speed(at, qd + e * dqd), **options)
        return np.concatenate([run.q, run.qd], axis=-1)

    h = 1e-4
    near, far = (displaced(h) - displaced(-h)) / (2 * h), (displaced(2 * h) - displaced(-2 * h)) / (4 * h)
    expected = (4 * near - far) / 3
    moved = np.concatenate([found.dq, found.dqd], axis=-2) @ np.concatenate([dq, dqd])
    assert_close(moved, expected, 1e-8 * np.abs(expected).max(), "derivatives against projected runs")


def test_a_linear_oscillator_has_the_exact_derivatives():
    """Agree with the closed form of a sprung mass: start, stiffness, mass and added force."""
    system = sprung_mass()
    t, q0, v0, m, k = np.linspace(0.0, 2.0, 5), 0.31, -0.44, 1.7, 23.0
    found = kt.simulation_derivatives(
        system, [q0], [v0], times=t, wrt=("q0", "qd0", "m", "k", "tau"), method="dopri5", rtol=1e-12, atol=1e-13,
        forces=kt.JointSpring("rail", parse("k")),
    )  # fmt: skip
    w = np.sqrt(k / m)
    c, s = np.cos(w * t), np.sin(w * t)
    by_w = -q0 * t * s - v0 / w**2 * s + v0 / w * t * c
    assert_close(found["q0"][:, 0, 0], c, 1e-9, "by q0")
    assert_close(found["qd0"][:, 0, 0], s / w, 1e-9, "by qd0")
    assert_close(found["k"][:, 0], by_w * 0.5 / np.sqrt(k * m), 1e-9, "by the stiffness")
    assert_close(found["m"][:, 0], -by_w * 0.5 * w / m, 1e-9, "by the mass")
    assert_close(found["tau"][:, 0, 0], (1 - c) / k, 1e-9, "by a constant force")
    assert found.labels == ("q0 of rail", "qd0 of rail", "m", "k", "tau of rail")
    assert found["parameters"].shape == (5, 2, 2)


def test_batches_have_the_bits_of_single_runs():
    """Return for a row of a batch, with its own parameters, the bits of the same run alone."""
    system = pendulum()
    q, qd = np.linspace(-1.1, 1.3, 11)[:, None], np.linspace(0.4, -0.3, 11)[:, None]
    length = np.linspace(0.4, 0.6, 11)
    many = kt.simulation_derivatives(system, q, qd, parameters={"l": length}, times=TIMES, method="rk4", dt=H)
    one = kt.simulation_derivatives(system, q[7], qd[7], parameters={"l": length[7]}, times=TIMES, method="rk4", dt=H)
    assert many.dq.shape == (11, 4, 1, 3)
    assert np.array_equal(many.dq[7], one.dq) and np.array_equal(many.dqd[7], one.dqd)
    plain = kt.simulate(system, q, qd, parameters={"l": length}, times=TIMES, method="rk4", dt=H)
    assert np.array_equal(plain.q, many.run.q)


def test_intervals_multiply_to_the_whole():
    """Return derivatives of each interval whose product is that of the whole run."""
    system = pendulum()
    options = {"times": TIMES, "wrt": ("q0", "qd0", "tau"), "method": "rk4", "dt": H}
    each = kt.simulation_derivatives(system, [0.7], [0.4], intervals=True, **options)
    whole = kt.simulation_derivatives(system, [0.7], [0.4], **options)
    A, B = np.concatenate([each["q0"], each["qd0"]], axis=-1), each["tau"]
    assert A.shape == (3, 2, 2) and B.shape == (3, 2, 1)
    assert_close(A[2] @ A[1] @ A[0], np.concatenate([whole["q0"], whole["qd0"]], -1)[-1], 1e-14, "product of intervals")
    moved = B[2] + A[2] @ (B[1] + A[2 - 1] @ B[0])
    assert_close(moved, whole["tau"][-1], 1e-14, "a torque in all intervals")


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, m in METHODS.items() if m.native and name != "rk4"])
@pytest.mark.parametrize("name", ["planar_2r", "spatial_pendulum", "slider_crank"])
def test_all_methods_by_differences_of_runs(name, method):
    """Agree with differences of runs, extrapolated, for every method that has derivatives."""
    system = kt.load(name)
    q, qd = system.random_state(2)
    if system.closures:
        q = system.assemble()
        qd = np.asarray(system.closing_speed(q, qd))
    adaptive = {"rtol": 1e-12, "atol": 1e-13}
    options = {"times": TIMES, "method": method} | (adaptive if METHODS[method].adaptive else {"dt": 0.01})
    found = kt.simulation_derivatives(system, q, qd, wrt="qd0", **options)
    d = np.random.default_rng(4).normal(size=system.nv)

    def displaced(e):
        v = qd + e * d
        return kt.simulate(system, q, system.closing_speed(q, v) if system.closures else v, **options)

    h = 2e-3
    runs = {e: displaced(e * h) for e in (-2, -1, 1, 2)}
    by = [(system.difference(runs[-e].q, runs[e].q) / (2 * e * h), (runs[e].qd - runs[-e].qd) / (2 * e * h))
          for e in (1, 2)]  # fmt: skip
    for k, got in enumerate((found.dq @ d, found.dqd @ d)):
        expected = (4 * by[0][k] - by[1][k]) / 3
        assert_close(got, expected, 1e-7 * (1.0 + np.abs(expected).max()), f"{method} of {name}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "spatial_pendulum"])
def test_derivatives_along_single_tangents_agree(name, monkeypatch):
    """Return the same derivatives if the Jacobian is too long to compile."""
    system, q, qd = closed_start(name)
    options = {"times": TIMES, "wrt": ("q0", "qd0", "tau"), "method": "rk4", "dt": H}
    found = kt.simulation_derivatives(system, q, qd, **options)
    monkeypatch.setattr("kinetree.simulation.derivatives.programs.LONGEST", 0)
    other = kt.simulation_derivatives(kt.load(name), q, qd, **options)
    assert_close(other.dqd, found.dqd, 1e-11 * np.abs(found.dqd).max(), f"tangents of {name}")


@pytest.mark.slow
def test_driven_joints_pass_no_displacement_on():
    """Differentiate a run with a driven joint, whose own displacement has no effect."""
    system = kt.load("planar_2r")
    control = kt.Driven(system.joints[0].name, kt.Cosine(0.3, 0.5))
    found = kt.simulation_derivatives(system, control=control, times=TIMES, method="rk4", dt=H)
    q, qd = found.run.q[0], found.run.qd[0]
    acted = combine_controls(system.mechanism, (control,))
    _, expected = complex_step(system, q, qd, np.concatenate([found.dq[0], found.dqd[0]]), control=acted)
    assert not found.dq[:, 0].any() and not found.dq[0, :, 0].any()
    entries = np.concatenate([found.dq[-1], found.dqd[-1]])
    assert_close(entries, expected, 1e-12 * np.abs(expected).max(), "derivatives of a driven run")


@pytest.mark.slow
def test_rolling_by_differences_of_projected_runs():
    """Agree with differences of runs of a rolling disc, whose positions have more freedom than its velocities."""
    inertia = (0.08, 0.16, 0.08, 0.0, 0.0, 0.0)
    system = kt.System(
        kt.build_mechanism(
            "disc", [kt.Body("disc", 2.0, inertia=inertia)], [kt.Joint("base", "free", kt.GROUND, "disc")],
            loops=[kt.Loop("floor", "rolling_disc", kt.GROUND, "disc", axis="z", axis2="y", radius=0.4)],
            guess={"base": (0, 0, 0.4, 0, 0, 0, 1)},
        )
    )  # fmt: skip
    q = system.assemble([0.0, 0.0, 0.4, np.sin(0.17), 0.0, 0.0, np.cos(0.17)])
    qd = system.consistent_speeds(q, {"base.wx": 0.3, "base.wy": 5.0, "base.wz": 1.0})
    options = {"times": TIMES, "method": "rk4", "dt": H}
    found = kt.simulation_derivatives(system, q, qd, **options)
    dq, dqd = np.random.default_rng(1).normal(size=(2, 6))

    def displaced(e):
        at = system.integrate(q, e * dq)
        for _ in range(8):
            at = system.integrate(at, np.asarray(system.function("closing_step")(at)))
        return kt.simulate(system, at, system.closing_speed(at, qd + e * dqd), **options)

    def slope(h):
        a, b = displaced(h), displaced(-h)
        return np.concatenate([system.difference(b.q, a.q), a.qd - b.qd], axis=-1) / (2 * h)

    expected = (4 * slope(1e-4) - slope(2e-4)) / 3
    moved = np.concatenate([found.dq, found.dqd], axis=-2) @ np.concatenate([dq, dqd])
    assert_close(moved, expected, 1e-9 * np.abs(expected).max(), "derivatives of a rolling disc")
    rank = np.linalg.matrix_rank(np.concatenate([found["q0"], found["qd0"]], axis=-1)[-1], tol=1e-8)
    assert rank == 5 + 3  # positions and velocities


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": "mass"}, "no quantity of a run 'mass'; available: q0, qd0, parameters, tau, l"),
        ({"wrt": ("q0", "q0")}, "wrt is q0, q0; expected each name once"),
        ({"wrt": 3}, "wrt is 3; give names such as 'q0' or ('q0', 'qd0', 'parameters', 'tau')"),
        (
            {"events": kt.Event(lambda now: now.q[0])},
            "events: the time of an event depends on the run, and a run with events has no derivatives; leave events "
            "out",
        ),
        (
            {"contacts": kt.Contact("tip", "bob")},
            "'pendulum' has hard contacts, and a run with their impacts has no derivatives; give contacts=() to leave "
            "them out, or a ground of springs and dampers",
        ),
        ({"keep": "device"}, "keep: a differentiated run is computed on the CPU; leave keep out"),
        (
            {"method": "scipy"},
            f"runs by scipy have no derivatives; use {names_of(adaptive=False)} with dt, or {names_of(adaptive=True)}",
        ),
        (
            {"control": kt.PythonControl(lambda t, q, qd: [0.0])},
            "PythonControl is evaluated in Python, and a run with it has no derivatives; use compiled control",
        ),
    ],
)
def test_bad_input_is_refused(options, message):
    """Refuse unknown quantities and options without derivatives, with the reason."""
    with pytest.raises(KinetreeError) as caught:
        kt.simulation_derivatives(pendulum(), [0.3], [0.1], **({"duration": 1.0} | options))
    assert str(caught.value) == message


def test_singular_starts_are_refused():
    """Refuse a start at a singular position of the loops, also as a run of a batch."""
    system = kt.load("slider_crank")
    q = np.stack([system.assemble(), [np.pi, -np.pi, 0.0]])
    for start in (q, q[1]):
        with pytest.raises(
            KinetreeError,
            match="q0 has no derivatives: 'slider_crank' is at a singular position of its loops: 2 degrees",
        ):
            kt.simulation_derivatives(system, start, times=TIMES, method="rk4", dt=H)


def test_more_bad_input_is_refused():
    """Refuse parameters of a mechanism without any, unknown options, and unknown names of results."""
    arm = kt.load("planar_2r")
    with pytest.raises(
        KinetreeError, match="wrt has 'parameters', and 'planar_2r' has no free parameters; declare some"
    ):
        kt.simulation_derivatives(arm, wrt="parameters", duration=1.0)
    with pytest.raises(KinetreeError, match="no option of a differentiated run 'wait'; available: duration, times"):
        kt.simulation_derivatives(arm, wait=1.0)
    found = kt.simulation_derivatives(pendulum(), [0.3], [0.1], wrt="l", times=TIMES, method="rk4", dt=H)
    with pytest.raises(KinetreeError, match="no quantity of these derivatives 'q0'; available: parameters, l"):
        found["q0"]
