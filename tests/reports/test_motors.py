"""Motors and elastic joints in load reports: energies, temperatures by two time constants, catalogues."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import everyday
import kinetree as kt
from kinetree.reports.catalogue import read_catalogue_text
from kinetree.reports.motors import winding_temperature
from tolerance import assert_close

HEAT = {"thermal_resistances": (1.3, 4.1), "thermal_times": (17.0, 610.0)}
MOTOR = kt.Motor("m", "j", 0.07, 0.9, **HEAT)
ALPHA = 0.00393


def temperatures(current, times):
    """Return the temperatures of winding and housing under a current, by SciPy."""
    (r1, r2), (t1, t2) = HEAT["thermal_resistances"], HEAT["thermal_times"]

    def rates(t, T):
        heat = 0.9 * current(t) ** 2 * (1 + ALPHA * (T[0] - 25.0))
        flow = (T[0] - T[1]) / r1
        return [(heat - flow) * r1 / t1, (flow - (T[1] - 25.0) / r2) * r2 / t2]

    return solve_ivp(
        rates, (times[0], times[-1]), [25.0, 25.0], "DOP853", times, rtol=1e-11, atol=1e-11, max_step=5.0
    ).y


def test_winding_at_constant_current():
    """Warm up as two time constants tell, to the temperature at which the housing cools the winding's heat."""
    t = np.linspace(0.0, 2000.0, 41)
    found, hot = winding_temperature(MOTOR, t, np.full(41, 3.7))
    assert_close(found, temperatures(lambda t: 3.7, t)[0], 1e-6, "temperature")
    heat = 0.9 * 3.7**2
    steady = 25.0 + 5.4 * heat / (1 - 5.4 * heat * ALPHA)
    assert_close(hot, steady, 1e-9 * steady, "in the long run")


def test_winding_in_a_cycle():
    """Repeat a cycle until nothing changes, and find the hottest instant of the winding."""
    t = np.linspace(0.0, 60.0, 601)
    current = np.where(abs(t - 15.0) < 10.0, 8.0, 1.0) * np.cos(0.3 * t)
    found, hot = winding_temperature(MOTOR, t, current)
    exact = temperatures(lambda x: np.interp(x, t, current), t)[0]
    assert_close(found, exact, 0.02, "first cycle")
    many = np.concatenate([t[:-1] + 60.0 * k for k in range(120)])
    repeated, _ = winding_temperature(MOTOR, many, np.tile(current[:-1], 120))
    assert_close(hot, repeated[-600:].max(), 0.1, "in the long run")
    assert found.max() < 0.7 * hot


def test_winding_without_bound():
    """Find no temperature where the copper heats faster than the housing cools."""
    t = np.linspace(0.0, 100.0, 11)
    assert 0.9 * 8.0**2 * ALPHA * 5.4 > 1
    assert winding_temperature(MOTOR, t, np.full(11, 8.0))[1] == np.inf
    assert winding_temperature(MOTOR, t[:1], np.full(1, 8.0)) == (25.0, 25.0)


@pytest.fixture(scope="module")
def report():
    """Return the report of an arm whose elbow is elastic, driven by motors."""
    arm = kt.with_elastic_joints(kt.load("planar_2r"), {"joint2": kt.Elastic(900.0, 0.7, inertia=3e-5, ratio=60.0)})
    motors = [
        kt.Motor("first", "joint1", 0.05, 0.8, gear=60.0, efficiency=0.8, friction=4e-3, current=50.0, **HEAT),
        kt.Motor("second", "joint2", 0.05, 0.8, 5e-4, gear=60.0, current=20.0, voltage=48.0),
    ]
    arm = kt.with_motors(arm, *motors)
    law = kt.AtMotors(kt.ComputedTorque(100.0, 20.0, kt.Cycloid([0.1, 0.2], [0.9, -0.4], 1.0), forces=True))
    start = kt.elastic_start(arm, [0.1, 0.2])
    run = kt.simulate(arm, start, duration=1.0, dt=5e-4, control=kt.MotorControl(law))
    return kt.load_report(run)


def test_motors_of_a_run(report):
    """Find current, voltage and energies of motors, with and without an inductance."""
    first, second = report.motors
    run = report.run
    at = {j.name: k for k, j in enumerate(run.system.joints)}
    assert (first.drive, second.drive) == ("joint1", "joint2.motor")
    torque, speed = run["control"][:, at["joint1"]], run.qd[:, at["joint1"]]
    assert_close(first.voltage, 0.8 * first.current + 0.05 * 60 * speed, 1e-12, "voltage")
    assert_close(first.mechanical, np.trapezoid(torque * speed, run.t), 1e-5, "work")
    assert_close(first.electrical, first.copper + first.drag + first.mechanical, 1e-12, "energy")
    assert first.drag > 0.1 * first.electrical > 0
    assert_close(second.current, run.qd[:, at["second.circuit"]], 0.0, "current")
    assert abs(second.drag) < 1e-4 * abs(second.electrical)  # neither friction nor losses of the gear
    assert report.motor("second") is second and second.warm is None
    assert first.warm.value > 25.0 and first.hot > first.warm.value
    assert "second.circuit" not in [d.name for d in report.drives] + [b.name for b in report.bearings]


def test_elastic_joint_of_a_run(report):
    """Find torque, twist and energies of an elastic joint."""
    (spring,) = report.elastic
    run = report.run
    at = {j.name: k for k, j in enumerate(run.system.joints)}
    x = run.q[:, at["joint2.motor"]] - run.q[:, at["joint2"]]
    rate = run.qd[:, at["joint2.motor"]] - run.qd[:, at["joint2"]]
    assert (spring.name, spring.joint, spring.unit) == ("joint2.spring", "joint2", "N m")
    assert_close(spring.torque, 900.0 * x + 0.7 * rate, 1e-10, "torque")
    assert_close(spring.stored, 450.0 * (x**2).max(), 1e-12, "energy")
    assert_close(spring.lost, np.trapezoid(0.7 * rate**2, run.t), 1e-6, "lost")
    assert report.energy.error < 2e-4


def test_words_tables_and_page(report, tmp_path):
    """State motors in words, in tables and on the page."""
    words = "\n".join(report.words)
    assert "The motor first takes up to" in words and "Repeated without end, the run heats it to" in words
    assert "electrical energy" in report.table("motors") and "joint2.spring" in report.table("elastic")
    page = report.save(tmp_path / "report.html").read_text()
    assert "Electric motors" in page and "first: winding, from cold" in page and "Elastic joints" in page


def test_limits_are_reported():
    """Name the limits that a motion by hand exceeds, with the voltage of its inductance."""
    s = kt.with_motors(
        kt.load("planar_2r"), kt.Motor("m", "joint1", 0.05, 0.8, 0.02, gear=60.0, current=1.0, voltage=9.0)
    )
    t = np.linspace(0, 1, 201)
    q = np.zeros((201, 3))
    tau = np.zeros((201, 3))
    tau[:, 0] = 6.0 * np.sin(20 * t)
    run = kt.Trajectory(s, t, q, 0 * q, torque=tau)
    (load,) = kt.load_report(run).motors
    assert load.over == ("current",)
    i = tau[:, 0] / 3.0
    assert_close(load.voltage, 0.8 * i + 0.02 * 40 * np.cos(20 * t), 1e-3, "voltage")
    assert "Exceeded: its limit of current" in "\n".join(kt.load_report(run).words)


HEAD = (
    "kind,name,peak_torque [N m],continuous_torque [N m],max_speed [rpm],inertia [kg cm^2],torque_constant [mN m/A],"
    "resistance [Ohm],winding_thermal_resistance [K/W],housing_thermal_resistance [K/W],winding_thermal_time [s],"
    "housing_thermal_time [min],max_temperature [C]\n"
)


def test_catalogue_with_windings(report):
    """Rank motors by the temperature of their windings, too."""
    catalogue = read_catalogue_text(HEAD + "motor,a,40,20,6000,0.1,700,0.9,1.3,4.1,17,10,120\nmotor,b,40,20,6000,0.1\n")
    a, b = catalogue.parts
    assert (
        a.electric.torque_constant == pytest.approx(0.7)
        and a.electric.thermal_times == (17.0, 600.0)
        and b.electric is None
    )
    found = kt.load_report(report.run, catalogue=catalogue).ranking("joint1")
    own = {c.motor.name: c for c in found}
    hot = winding_temperature(a.electric, report.t, kt_torque(report, own["a"]) / 0.7)[1]
    margin = own["a"].margin("motor temperature")
    assert margin.allowed == 95.0 and margin.unit == "K"
    assert_close(margin.needed, hot - 25.0, 1e-9 * abs(hot), "warming")
    assert "motor temperature" not in [m.limit for m in own["b"].margins]


def kt_torque(report, candidate):
    """Return the torque of a motor that drives the first joint directly."""
    drive = report.drive("joint1")
    return drive.effort + (candidate.motor.inertia - report.armature("joint1")) * drive.acceleration


def test_catalogue_errors():
    """Refuse windings of which a number is missing, and those of gearboxes."""
    with pytest.raises(
        kt.ModelError, match=r"<text>:2: motor 'a': the value max_temperature is missing; a motor whose"
    ):
        read_catalogue_text(HEAD + "motor,a,40,20,6000,0.1,70,0.9,1.3,4.1,17,10\n")


@pytest.fixture(scope="module")
def bent():
    """Return the report of two flexible links in a row that swing down."""
    beam = kt.Beam(0.9, E=70e9, rho=2700, section=("tube", 0.03, 0.027), modes=(1, 2, 0, 0), nodes={"middle": 0.4})
    bodies = [kt.Body("upper", flexible=beam), kt.Body("lower", flexible=beam), kt.Body("load", 0.8)]
    joints = [
        kt.Joint("shoulder", "revolute", "ground", "upper", axis=(0.0, 1.0, 0.0)),
        kt.Joint("elbow", "revolute", "upper.tip", "lower", axis=(0.3, 1.0, 0.0)),
        kt.Joint("grip", "fixed", "lower.tip", "load"),
    ]
    arm = kt.System(kt.build_mechanism("swing", bodies, joints))
    return kt.load_report(kt.simulate(arm, arm.neutral(), times=np.linspace(0, 0.4, 81)))


@everyday.long
def test_deflections_of_a_run(bent):
    """Find the deflections of nodes from the shapes of their beams, and those of all bodies."""
    run, found = bent.run, {x.name: x for x in bent.deflections}
    assert list(found) == ["upper.middle", "upper.tip", "lower.middle", "lower.tip"]
    for body in ("upper", "lower"):
        beam = {b.name: b for b in run.system.mechanism.bodies}[f"{body}.elastic"].flexible
        names = [j.name for j in run.system.mechanism.joints]
        e = run.q[:, run.system.mechanism.q_slices[names.index(f"{body}.modes")]]
        for node in beam.modal.nodes:
            Phi, G = np.array(node.Phi), np.array(node.G)
            moved = e @ Phi + 0.5 * np.einsum("tj,jka,tk->ta", e, G, e)
            load = found[f"{body}.{node.name}"]
            assert load.body == body
            assert_close(load.values, np.linalg.norm(moved, axis=1), 1e-14, "deflection")
            k = int(load.values.argmax())
            assert (load.own.value, load.own.t) == (load.values[k], run.t[k])
        load = found[f"{body}.tip"]
        parts = np.abs(e) / np.array(beam.modal.valid)
        k = int(parts.max(axis=0).argmax())
        assert load.mode == beam.names[k] and load.part.value == parts[:, k].max()
        assert load.part.t == run.t[parts[:, k].argmax()]
    assert_close(found["upper.tip"].total.value, found["upper.tip"].own.value, 1e-14, "of all bodies")
    assert found["lower.tip"].total.value > 1.5 * found["lower.tip"].own.value


def test_deflections_are_shown(bent, tmp_path):
    """Show deflections in words, as a table and on the page, and those of the bodies on chosen joints alone."""
    assert "deflection of the body [m]" in bent.table("deflections")
    words = "\n".join(bent.words)
    assert "The largest deflection is " in words and "% of its largest valid deflection" in words
    assert "not small" not in words
    assert "Deflections of flexible bodies" in bent.save(tmp_path / "report.html").read_text()
    (path,) = bent.to_csv(tmp_path / "d.csv", "deflections")
    lines = path.read_text().splitlines()
    assert len(lines) == 5 and lines[1].startswith("upper.middle,upper,")
    chosen = kt.load_report(bent.run, joints="elbow")
    assert [x.body for x in chosen.deflections] == ["lower", "lower"]


def test_large_deflections_are_stated():
    """State that deflections are not small; rigid mechanisms have no such table."""
    beam = kt.Beam(0.9, E=70e9, rho=2700, section=("circle", 0.002), modes=(0, 2, 0, 0))
    joints = [kt.Joint("root", "fixed", "ground", "b")]
    arm = kt.System(kt.build_mechanism("soft", [kt.Body("b", flexible=beam)], joints))
    with pytest.warns(RuntimeWarning, match="deflections are not small") as found:
        run = kt.simulate(arm, times=np.linspace(0, 0.6, 61))
    assert found[0].filename == __file__  # the line of the user
    report = kt.load_report(run)
    (tip,) = report.deflections
    assert tip.part and tip.part.value > 1
    assert "deflections are not small, and the figures are in doubt" in "\n".join(report.words)
    rigid = kt.load("planar_2r")
    assert "deflections" not in kt.load_report(kt.simulate(rigid, [0.3, 0.2], duration=0.1)).tables
