"""Logs as controllers write them: headers, units, times and faults, and the arm that is identified from them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree import InputError
from kinetree.analysis.identification.logs import read_log
from tolerance import assert_close

ARM = kt.load("puma560")
N = ARM.nv
GAINS = np.array([11.0, 10.5, 9.5, 6.4, 6.2, 6.1])
T = np.arange(0.0, 40.0, 0.01)


def motion(t: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a Fourier series of five harmonics of 0.1 Hz for each joint, about a bent pose."""
    rng, w = np.random.default_rng(seed), 0.2 * np.pi * np.arange(1, 6)
    a, b = 0.55 * rng.normal(size=(2, 5, N))
    s, c = np.sin(w * t[:, None]), np.cos(w * t[:, None])
    q = s @ (a / w[:, None]) * 0.5 - c @ (b / w[:, None]) * 0.5 + [0.1, -1.2, 1.0, 0.4, 0.6, 0.2]
    return q, 0.5 * (c @ a + s @ b), 0.5 * ((c * w) @ b - (s * w) @ a)


def torques(q, qd, qdd) -> np.ndarray:
    """Return the torques of an arm that is heavier than described, with friction and drives."""
    bodies = tuple(replace(b, mass=1.2 * b.mass, inertia=tuple(1.3 * x for x in b.inertia)) for b in ARM.bodies)
    real = kt.System(replace(ARM.mechanism, bodies=bodies))
    return (
        real.inverse_dynamics(q, qd, qdd)
        + 0.3 * qdd
        + 0.4 * qd
        + np.array([2, 2, 1.5, 0.6, 0.5, 0.5]) * np.tanh(qd / 0.005)
    )


Q, QD, QDD = motion(T)
RNG = np.random.default_rng(3)
TAU = torques(Q, QD, QDD) * (1.0 + 0.0 * Q) + 0.05 * RNG.normal(size=Q.shape)
NOISY = Q + 2e-5 * RNG.normal(size=Q.shape)


def names(pattern: str, first: int = 1) -> list[str]:
    """Return a name per joint."""
    return [pattern.format(k + first) for k in range(N)]


def written(tmp_path, head: str | None, rows, mark: str = ",", fmt: str = "%.7g"):
    """Write a table and return its path."""
    path = tmp_path / "log.csv"
    np.savetxt(path, rows, fmt=fmt, delimiter=mark, header=head or "", comments="")
    if head is None:
        path.write_text(path.read_text().lstrip("\n"))
    return path


def same(path, *, t=T, q=NOISY, tau=TAU, what: str = "tau", tol: float = 2e-6, **options) -> list[str]:
    """Read a log, compare it with what was written, and return the findings."""
    findings: list[str] = []
    found = read_log(path, ARM, findings, **options)
    assert_close(found.t, t - t[0], 1e-4, "t")
    assert_close(found.q, q, tol * 4.0, "q")
    assert_close(getattr(found, what), tau, tol * 100.0, what)
    return findings


def test_all_columns_of_a_controller(tmp_path):
    """Read positions and currents among targets, tool data and windows, separated by blanks."""
    groups = ("target_q_{}", "actual_q_{}", "actual_qd_{}", "actual_current_{}", "actual_current_window_{}",
              "actual_TCP_pose_{}", "actual_TCP_speed_{}", "joint_temperatures_{}")  # fmt: skip
    head = ["timestamp", *(x for g in groups for x in names(g, 0)), "robot_mode", "actual_robot_current"]
    none = np.zeros_like(Q)
    rows = np.c_[T + 77.5, none, NOISY, QD, TAU / GAINS, none + 1.0, none, none, none + 30.0, none[:, :2]]
    assert same(written(tmp_path, " ".join(head), rows, " "), tau=TAU / GAINS, what="current") == []


@pytest.mark.parametrize(("head", "columns"), [
    (["%time", *names("field.position{}", 0), *names("field.velocity{}", 0), *names("field.effort{}", 0)], "qvt"),
    (["# t", *names("q{}"), *names("dq{}"), *names("tau{}")], "qvt"),
    (["time", *names("q_{}", 0), *names("tau_J_{}", 0), *names("tau_J_d_{}", 0), *names("tau_ext_hat_{}", 0)], "qt00"),
    (["t", *names("joint_{}_position", 0), *names("joint_{}_effort", 0)], "qt"),
    (["Elapsed Time", *(f"{j.name}/position" for j in ARM.joints), *(f"{j.name}/effort" for j in ARM.joints)], "qt"),
    (None, "qvt"),
])  # fmt: skip
def test_headers(tmp_path, head, columns):
    """Read names of robot systems, comments as headers, and tables without any."""
    parts = {"q": NOISY, "v": QD, "t": TAU, "0": 0.0 * TAU}
    rows = np.c_[T, np.hstack([parts[x] for x in columns])]
    findings = same(written(tmp_path, None if head is None else ",".join(head), rows))
    assert findings == ([] if head else [
        "log.csv: no header; columns are taken as t, q1 to q6, qd1 to qd6, tau1 to tau6; --header t,q,current says "
        "otherwise"
    ])  # fmt: skip


def test_headers_that_are_given(tmp_path):
    """Name the columns of a table without names, and the rate of one without times."""
    path = written(tmp_path, None, np.c_[T, NOISY, TAU / GAINS])
    assert same(path, tau=TAU / GAINS, what="current", header=["t", "q", "current"]) == []
    path = written(tmp_path, ",".join(names("q{}") + names("tau{}")), np.c_[NOISY, TAU])
    assert same(path, rate=100.0) == []
    with pytest.raises(InputError, match=r"no column of times among q1, .* or give rate= \(--rate 500\)"):
        read_log(path, ARM, [])
    odd = written(tmp_path, None, np.c_[T, NOISY, TAU, T, T])
    with pytest.raises(InputError, match=r"has no header: its first line .* or by header= \(--header t,q,qd,current\)"):
        read_log(odd, ARM, [])


def test_units_of_names_and_of_a_row(tmp_path):
    """Read degrees, milliamperes, revolutions per minute and milliseconds, by names or by a row of units."""
    head = ["time_ms", *names("pos_{} [deg]"), *names("vel_{} [rpm]"), *names("current_{} [mA]")]
    rows = np.c_[1e3 * T, np.degrees(NOISY), QD * 30.0 / np.pi, 1e3 * TAU / GAINS]
    assert same(written(tmp_path, ",".join(head), rows), tau=TAU / GAINS, what="current") == []
    units = "s," + ",".join(["deg"] * N + ["N mm"] * N)
    head = "Time," + ",".join(names("Position Axis {}") + names("Torque Axis {}")) + "\n" + units
    assert same(written(tmp_path, head, np.c_[T, np.degrees(NOISY), 1e3 * TAU])) == []


def test_dates_and_decimal_commas(tmp_path):
    """Read dates with times of day, and semicolons with decimal commas."""
    stamps = np.datetime64("2024-03-01T23:59:50") + np.round(T * 1e6).astype("timedelta64[us]")
    cells = [",".join([str(t).replace("T", " "), *(f"{x:.8f}" for x in row)]) for t, row in zip(
        stamps, np.c_[np.degrees(NOISY), TAU], strict=True)]  # fmt: skip
    path = tmp_path / "log.csv"
    path.write_text("\n".join([",".join(["Timestamp", *names("J{} Position (deg)"), *names("J{} Torque")]), *cells]))
    assert same(path) == []
    path = written(tmp_path, ";".join(["Time [s]", *names("q{}[deg]"), *names("I{} [A]")]), np.c_[
        T, np.degrees(NOISY), TAU], ";", "%.7f")  # fmt: skip
    head, rest = path.read_text().split("\n", 1)
    path.write_text(head + "\n" + rest.replace(".", ","))
    assert same(path, what="current") == []


HEAD = ",".join(["t", *names("q{}"), *names("tau{}")])


def test_commanded_currents_where_nothing_is_measured(tmp_path):
    """Read commanded currents and say so, but not beside measured ones."""
    head = ["timestamp", *names("actual_q_{}", 0), *names("target_current_{}", 0), *names("target_moment_{}", 0)]
    rows = np.c_[T, NOISY, TAU / GAINS, 0.8 * TAU]
    path = written(tmp_path, ",".join(head[:13]), rows[:, :13])
    findings = same(path, tau=TAU / GAINS, what="current")
    assert findings == ["log.csv: currents are read from 'target_current_0' and so on: nothing measured is there"]
    both = written(tmp_path, ",".join(head).replace("target_current", "actual_current"), rows)
    assert same(both, tau=TAU / GAINS, what="current") == []


def test_names_without_a_quantity(tmp_path):
    """Read positions by the names of axes alone, and torques by their unit, and say so."""
    head = ";".join(["Time", *names("AXIS_ACT.A{}"), *names("T_{}[Nm]")])
    findings = same(written(tmp_path, head, np.c_[T, NOISY, TAU], ";"))
    assert findings == [
        "log.csv: positions are read from 'AXIS_ACT.A1' and so on: no other name tells",
        "log.csv: torques are read from 'T_1[Nm]' and so on: by their unit",
    ]


def test_cells_with_lists_and_words(tmp_path):
    """Read lists of numbers, joints in the order of a list of their names, and rows with the words of a state."""
    order = [2, 0, 1, 5, 4, 3]
    listed = "[" + ", ".join(f"'{ARM.joints[k].name}'" for k in order) + "]"

    def row(t, q, tau) -> str:
        cells = [" ".join(f"{x[k]:.8g}" for k in order) for x in (q, tau)]
        return f'{t:.3f},"{listed}","[{cells[0]}]","({cells[1].replace(" ", ", ")})",RUNNING'

    lines = [row(*x) for x in zip(T, NOISY, TAU, strict=True)]
    lines[7] = lines[7].replace(" ", "\n ", 8)  # long lists of NumPy go over several lines
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["time,name,position,effort,state", *lines]))
    assert same(path) == []
    lines[9] = lines[9].replace("[", "[0.5 ", 2).replace("0.5 '", "'")  # seven entries
    path.write_text("\n".join(["time,name,position,effort,state", *lines]))
    findings: list[str] = []
    assert len(read_log(path, ARM, findings).t) == len(T) - 1
    assert findings == ["log.csv: 1 rows have no time; they are left out"]
    lines[9] = row(T[9], NOISY[9], TAU[9])
    lines[20] += '"'  # a mark that nothing closes
    path.write_text("\n".join(["time,name,position,effort,state", *lines]))
    assert same(path) == []


def test_tables_of_spreadsheets(tmp_path):
    """Read UTF-16 with tabs, an index without a name, and degrees by their sign."""
    head = "\t".join(["", "Time (s)", *names("Joint {} Angle (\N{DEGREE SIGN})"), *names("Joint {} Torque (Nm)")])
    rows = np.c_[np.arange(len(T)), T, np.degrees(NOISY), TAU]
    text = "\r\n".join([head, *("\t".join(f"{x:.9g}" for x in row) for row in rows)])
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("utf-16"))
    assert same(path) == []


def test_rounded_times_and_times_out_of_order(tmp_path):
    """Spread times that are rounded to more than a step, or that tremble by more than a step."""
    t = np.arange(len(T)) * 0.008
    findings = same(written(tmp_path, HEAD, np.c_[np.round(t, 2), NOISY, TAU], fmt="%.9g"), t=t, tol=1e-3)
    assert findings == ["log.csv: 800 rows repeat the time of the row before; times are spread evenly"]
    jitter = T + 0.004 * np.random.default_rng(5).normal(size=len(T))
    back = (np.diff(jitter) < 0.0).sum()
    findings: list[str] = []
    found = read_log(written(tmp_path, HEAD, np.c_[jitter, NOISY, TAU], fmt="%.9g"), ARM, findings)
    assert findings == [f"log.csv: {back} times are before those of the row before; times are spread evenly"]
    assert_close(np.diff(found.t), np.full(len(T) - 1, 0.01), 1e-5, "steps")
    assert_close(found.q, NOISY, 1e-5, "rows")


def test_coarse_and_trembling_times(tmp_path):
    """Spread times that repeat, and take even steps where stamps tremble."""
    findings = same(written(tmp_path, HEAD, np.c_[np.floor(T * 20.0) / 20.0, NOISY, TAU], fmt="%.9g"), t=T)
    assert findings == ["log.csv: 3200 rows repeat the time of the row before; times are spread evenly"]
    jitter = T + np.random.default_rng(2).uniform(0.0, 0.007, len(T))
    findings: list[str] = []
    found = read_log(written(tmp_path, HEAD, np.c_[jitter, NOISY, TAU], fmt="%.9g"), ARM, findings)
    assert np.ptp(np.diff(found.t)) < 1e-9
    assert_close(found.t[-1], T[-1], 5e-4, "duration")
    assert "positions are smoother over even steps of 0.01 s, which are used" in findings[0]


def test_faults_of_rows(tmp_path):
    """Find runs that begin anew, rows that repeat older samples, turns that wrap, and spikes."""
    rows = np.c_[np.r_[T[:1700], T[:2300]], NOISY, TAU]
    findings: list[str] = []
    found = read_log(written(tmp_path, HEAD, rows), ARM, findings)
    assert findings[0] == "log.csv: times begin anew 1 times; the runs are read one after the other"
    assert (np.diff(found.t) > 0.0).all()

    held = (np.arange(len(T)) // 4) * 4
    findings = []
    found = read_log(written(tmp_path, HEAD, np.c_[T, NOISY[held], TAU[held]]), ARM, findings)
    assert findings[0] == "log.csv: positions change every 4 rows; one row of each 4 is used"
    assert_close(found.q, NOISY[::4], 1e-5, "fresh rows")

    head = ",".join(["t", *names("q{} [deg]"), *names("tau{}")])
    ahead = NOISY.copy()
    ahead[:, 0] += 3.0
    findings = []
    found = read_log(written(tmp_path, head, np.c_[T, np.degrees(ahead) % 360.0, TAU]), ARM, findings)
    assert_close((found.q - found.q[0]) - (ahead - ahead[0]), 0.0 * ahead, 1e-5, "turns")
    assert any("jump by a revolution; the jumps are removed" in x for x in findings)

    q, tau = NOISY.copy(), TAU.copy()
    q[[700, 1900]] = 0.0
    tau[2500, 3] = 900.0
    findings = []
    found = read_log(written(tmp_path, HEAD, np.c_[T, q, tau]), ARM, findings)
    assert findings[0].startswith("log.csv: 2 rows have spikes of positions (joint1, joint2")
    assert findings[1] == "log.csv: 1 rows have spikes of torques (joint4)"
    assert np.isnan(found.q[700]).any() and np.isnan(found.tau[2500, 3])


OPTIONS = {"method": "irls", "consistent": "log-cholesky", "signs": True}


def identified(q=NOISY, tau=None, current=None, **options):
    """Identify the arm from positions and torques or currents."""
    return kt.identify(ARM, kt.Recording(T, q, tau=tau, current=current), **{**OPTIONS, **options})


@cache
def plain():
    """Return what is identified from torques as they are."""
    return identified(tau=TAU)


@everyday.long
def test_signs_and_zeros_of_positions():
    """Count positions of two joints the other way round, and one from another zero, and find the same residuals."""
    assert not plain().findings
    assert plain().relative_residuals.max() < 0.1
    sign = np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    found = identified(q=NOISY * sign, tau=TAU * sign)
    assert any(x.startswith("positions of ") and "count the other way round than joints of the model" in x
               for x in found.findings)  # fmt: skip
    assert_close(found.relative_residuals, plain().relative_residuals, 0.02, "residuals")
    turned = identified(q=NOISY - [0.0, 0.5 * np.pi, 0.0, 0.0, 0.0, 0.0], tau=TAU)
    assert any("joint2 has its zero" in x for x in turned.findings)
    assert_close(turned.relative_residuals, plain().relative_residuals, 0.03, "residuals")


@everyday.long
def test_currents_without_gains():
    """Find gains of currents from the masses of the model, one of them negative, and the same residuals."""
    found = identified(current=TAU / GAINS * [1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
    assert found.gains is not None
    assert (np.sign(found.gains) == [1, 1, 1, -1, 1, 1]).all()
    assert_close(np.abs(found.gains[:3]) * 1.2 / GAINS[:3], np.ones(3), 0.05, "gains, up to the mass")
    assert_close(found.relative_residuals, plain().relative_residuals, 0.02, "residuals")
    milli = identified(current=TAU / GAINS * 1e3)
    assert_close(milli.relative_residuals, plain().relative_residuals, 0.02, "residuals of mA")


@everyday.long
def test_what_currents_alone_say_of_gains():
    """Give ratios of gains with intervals that hold the true ones, and name gains that rest on the model."""
    found = identified(current=TAU / GAINS)
    ratios = found.estimated_gains.ratios
    true = GAINS / GAINS[ratios.reference]
    assert found.joints[ratios.reference] == "joint2"  # under the most gravity
    assert_close(
        np.abs(ratios.values / true - 1.0) / np.maximum(ratios.widths, 1e-300), np.ones(N), 1.0, "in intervals"
    )
    assert (ratios.widths <= ratios.alone * (1.0 + 1e-9)).all()
    assert ratios.alone[[0, 2]].max() < 0.1 < ratios.alone[5]
    assert f"the log alone does not determine the gains of {', '.join(found.joints[k] for k in ratios.weak())}:" in str(
        found
    )
    assert "ratio to joint2" in str(found) and "by the log alone" in str(found)
    known = identified(current=TAU / GAINS, gains=GAINS)
    assert known.estimated_gains is None and "ratio" not in str(known)


@everyday.long
def test_the_verdict_is_that_of_held_out_data():
    """Say whether held-out torques confirm the model, and name the joints where they do not."""
    assert plain().verdict.startswith("validated: residuals of held-out torques are ")
    other = TAU.copy()
    other[3000:, 3] = RNG.normal(size=1000)
    assert "not validated: residuals of held-out torques are joint4 " in str(identified(tau=other))
    assert identified(tau=TAU, validation=0.0).verdict == "not validated: no data were held out"


def test_joints_in_the_order_of_their_names():
    """Find that joints of a log are sorted by name, as robot systems do, and read them so."""
    two = kt.load("planar_2r")
    labels = dict(zip((j.name for j in two.joints), ("shoulder", "elbow"), strict=True))
    arm = kt.System(replace(two.mechanism, joints=tuple(replace(j, name=labels[j.name]) for j in two.joints)))
    q, qd, qdd = (x[:, :2] for x in (Q, QD, QDD))
    tau = 1.2 * arm.inverse_dynamics(q, qd, qdd) + 0.3 * qd + 0.02 * RNG.normal(size=q.shape)
    log = kt.Recording(T, q[:, ::-1], tau=tau[:, ::-1])
    found = kt.identify(arm, log, validation=log, **OPTIONS)
    assert found.findings[0].startswith("joints of the log are in the order of their names, elbow, shoulder, by which ")
    assert found.relative_residuals.max() < 0.05
    assert_close(found.validation[0].measured.std(axis=0), tau.std(axis=0), 0.02, "joints")


@everyday.long
def test_rounded_positions_of_a_periodic_motion():
    """Find the motion below the noise of rounding, whose spectrum has lines where a motion repeats."""
    found = identified(q=np.round(np.degrees(Q), 2) * np.pi / 180.0, tau=TAU)
    assert max(x for x in found.cutoffs if x is not None) < 10.0
    assert found.relative_residuals.max() < 0.1  # 0.078, and 0.043 with the noise that is not rounded


@everyday.long
def test_torques_of_motors_before_gears():
    """Find that torques have another size than the model's, and gains as of currents."""
    found = identified(tau=TAU / 90.0)
    assert "of the model's size: they are read like currents, as those of motors before gears" in found.findings[0]
    assert_close(found.relative_residuals, plain().relative_residuals, 0.02, "residuals")
    assert_close(found.gains[:3] * 1.2 / 90.0, np.ones(3), 0.05, "ratios, up to the mass")


@everyday.long
def test_rest_and_limits_of_drives_are_left_out():
    """Stop for a while under friction that may be anything, and saturate a drive, and find the residuals of motion."""
    t = np.arange(0.0, 50.0, 0.01)
    slow = np.clip((t - 36.0) / 4.0, 0.0, 1.0)  # the motion comes to rest in 4 s
    run = t - 4.0 * (slow**3 - 0.5 * slow**4) - np.maximum(t - 40.0, 0.0)
    rate, change = 1.0 - 3.0 * slow**2 + 2.0 * slow**3, (6.0 * slow**2 - 6.0 * slow) / 4.0
    q, v, a = motion(run)
    tau = torques(q, v * rate[:, None], a * rate[:, None] ** 2 + v * change[:, None])
    tau += 0.05 * RNG.normal(size=q.shape) + np.where(slow[:, None] == 1.0, [1.5, 1.5, 1.0, 0.4, 0.3, 0.3], 0.0)
    q = q + 2e-5 * RNG.normal(size=q.shape)
    most = np.quantile(np.abs(tau[:, 0]), 0.9)
    tau[:, 0] = np.clip(tau[:, 0], -most, most)
    found = kt.identify(ARM, kt.Recording(t, q, tau=tau), **OPTIONS)
    line = next(x for x in found.findings if x.startswith("samples at rest, where friction may be anything"))
    assert "joint1" in line and "joint6" in line and "part of neither the fit nor the residuals" in line
    assert "part of neither the fit nor the residuals, which would be " in line
    assert_close(found.relative_residuals, plain().relative_residuals, 0.05, "residuals")
    assert not found.validation[0].use.all()


def test_long_logs_need_little_memory():
    """Identify from 300 s at 500 samples per second by no more than some thousand times."""
    t = np.arange(0.0, 300.0, 0.002)
    q, qd, qdd = motion(t)
    recording = kt.Recording(t, q + 2e-5 * RNG.normal(size=q.shape), tau=torques(q, qd, qdd))
    found = kt.identify(ARM, recording, delays=False, **OPTIONS)
    assert 2_000 < sum(len(f.t) for f in (*found.training, *found.validation)) < 13_000
    assert found.relative_residuals.max() < 0.1
