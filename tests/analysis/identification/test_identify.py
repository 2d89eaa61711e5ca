"""Identification of arms and of a closed mechanism from simulated recordings: exact, noisy, delayed, gapped, wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree import InputError, UnknownNameError
from kinetree.analysis.identification.consistency import margins
from kinetree.analysis.identification.identify import with_dynamic_parameters
from kinetree.analysis.loops.driven_motion import nearest_motion
from kinetree.loading import write
from strategies import FLAT, State, random_mechanism
from tolerance import assert_close

COLUMNS = ("viscous", "coulomb", "offset", "armature")
EXACT = {"consistent": "log-cholesky"}
"""The fit without optional packages."""


def described(seed: int = 3) -> tuple[kt.System, np.ndarray]:
    """Return an arm of three joints as a maker describes it, and what its parameters really are."""
    arm = kt.System(random_mechanism(["revolute"] * 3, [-1, 0, 1], seed))
    rng = np.random.default_rng(seed)
    bodies = tuple(
        replace(b, mass=b.mass * rng.uniform(0.8, 1.3), inertia=tuple(rng.uniform(1.1, 1.4) * x for x in b.inertia))
        for b in arm.bodies
    )
    pi = kt.System(replace(arm.mechanism, bodies=bodies)).dynamic_parameters(COLUMNS)
    pi[30:] = np.concatenate([rng.uniform(0.4, 1.5, 6), rng.normal(size=3), rng.uniform(0.1, 0.4, 3)])
    return arm, pi


ARM, TRUE = described()


def motion(n: int, seed: int, t: np.ndarray | None = None):
    """Return n times, and positions, velocities and accelerations of Fourier series of five harmonics [n, 3]."""
    rng, t, w = np.random.default_rng(seed), 0.005 * np.arange(n) if t is None else t, 2 * np.pi * 0.13
    k = np.arange(1, 6)[:, None]
    a, b = rng.normal(size=(2, 5, 3)) * 0.7
    angle = t[:, None, None] * w * k
    q = (a * np.sin(angle) - b * np.cos(angle)) / k
    qd = w * (a * np.cos(angle) + b * np.sin(angle))
    qdd = w * w * k * (b * np.cos(angle) - a * np.sin(angle))
    return (t, *(x.sum(axis=1) for x in (q, qd, qdd)))


def torques(q, qd, qdd) -> np.ndarray:
    """Return the torques of the real arm."""
    return ARM.regressor(q, qd, qdd, columns=COLUMNS) @ TRUE


T, Q, QD, QDD = motion(4000, 1)
TAU = torques(Q, QD, QDD)
BASE = ARM.base_parameters(COLUMNS).of(TRUE)


@pytest.mark.parametrize("consistent", ["sdp", "log-cholesky", None])
@pytest.mark.parametrize("method", ["ols", "irls"])
def test_without_noise_it_is_exact(consistent, method):
    """Identify an arm from exact accelerations and find its base parameters, and possible bodies of that motion."""
    if consistent == "sdp":
        pytest.importorskip("cvxpy")
    found = kt.identify(ARM, kt.Recording(T, Q, QD, QDD, TAU), consistent=consistent, method=method)
    size = np.abs(BASE).max()
    assert_close(found.estimate, BASE, 1e-11 * size, "estimate")
    assert_close(found.base.of(found.parameters), BASE, (1e-9 if consistent == "sdp" else 1e-6) * size, "parameters")
    assert not found.delays.any()
    if consistent:
        assert (found.margins > 0.0).all()
        assert (found.parameters[30:36] >= 0.0).all()
    assert (found.relative_residuals < 1e-6).all()
    new = motion(50, 9)[1:]
    assert_close(found.predict(*new), torques(*new), 1e-5 * np.abs(TAU).max(), "prediction")
    again = found.system.regressor(*new, columns=COLUMNS) @ found.system.dynamic_parameters(COLUMNS)
    offsets = found.parameters[36:39]
    assert_close(again + offsets, torques(*new), 1e-5 * np.abs(TAU).max(), "its system")


@pytest.mark.parametrize("method", ["wls", "irls"])
def test_noise_leaves_parameters_within_their_intervals(method):
    """Add noise to torques and positions, and find nine of ten parameters in their 95 % intervals, and a small z."""
    inside, z = [], []
    for seed in range(3):
        t, q, qd, qdd = motion(4000, 20 + seed)
        rng = np.random.default_rng(seed)
        tau = torques(q, qd, qdd) + rng.normal(size=q.shape) * [0.5, 0.2, 0.1]
        if method == "irls":
            tau[rng.integers(0, 2500, 8)] += 200.0  # spikes, before what is held out
        recording = kt.Recording(t, q + 1e-5 * rng.normal(size=q.shape), tau=tau)
        found = kt.identify(ARM, recording, method=method, delays=False, **EXACT)
        inside.append((found.intervals[:, 0] < BASE) & (found.intervals[:, 1] > BASE))
        z.append((found.estimate - BASE) / found.deviations)
        assert (found.relative_residuals < 0.1).all()
    assert np.mean(inside) > 0.9
    assert np.sqrt(np.mean(np.square(z))) < 1.4


def test_outliers_count_less():
    """Find parameters near the real ones by reweighting, where spikes spoil those of weights by joint."""
    rng = np.random.default_rng(4)
    tau = TAU + rng.normal(size=TAU.shape) * 0.2
    tau[rng.integers(0, len(T), 60), rng.integers(0, 3, 60)] += 150.0
    errors = {}
    for method in ("wls", "irls"):
        found = kt.identify(ARM, kt.Recording(T, Q, QD, QDD, tau), method=method, delays=False, **EXACT)
        errors[method] = np.abs(found.estimate - BASE).max()
    assert errors["irls"] < 0.3 * errors["wls"]


def test_delays_are_found():
    """Read torques 13 and 7 ms later than the motion and find the delays, and parameters as without."""
    late = np.stack([np.interp(T - d, T, x) for d, x in zip((0.013, 0.013, 0.007), TAU.T, strict=True)], axis=-1)
    noise = np.random.default_rng(1).normal(size=TAU.shape)
    found = kt.identify(ARM, kt.Recording(T, Q, tau=late + 0.05 * noise), **EXACT)
    assert_close(found.delays, [0.013, 0.013, 0.007], 5e-4, "delays")
    blind = kt.identify(ARM, kt.Recording(T, Q, tau=late + 0.05 * noise), delays=False, **EXACT)
    assert (found.noise < 0.6 * blind.noise).all()


def test_known_loads_give_drive_gains():
    """Record motor currents with and without a known load, and find gains and parameters."""
    gains = np.array([11.3, -7.1, 5.9])
    load = kt.Body("b2", 2.3, (0.1, -0.05, 0.2), (0.02, 0.03, 0.025, 0.001, -0.002, 0.003))
    t, q, qd, qdd = motion(4000, 6)
    bodies = tuple(replace(b, mass=0.0, com=(0.0,) * 3, inertia=(0.0,) * 6) for b in ARM.bodies[:2])
    alone = kt.System(replace(ARM.mechanism, bodies=(*bodies, replace(load))))
    loaded = torques(q, qd, qdd) + alone.regressor(q, qd, qdd) @ alone.dynamic_parameters()
    data = [kt.Recording(T, Q, QD, QDD, current=TAU / gains),
            kt.Recording(t, q, qd, qdd, current=loaded / gains, load=load)]  # fmt: skip
    found = kt.identify(ARM, data, **EXACT)
    assert found.gains is not None
    assert_close(found.gains, gains, 1e-7, "gains")
    assert_close(found.estimate, BASE, 1e-7 * np.abs(BASE).max(), "base parameters")
    known = kt.identify(ARM, data, gains=gains, **EXACT)
    assert_close(known.estimate, BASE, 1e-9 * np.abs(BASE).max(), "with given gains")
    anchored = kt.identify(ARM, data[0], **EXACT)
    assert "no gains and no known load" in anchored.findings[0]
    assert_close(anchored.gains / anchored.gains[0], gains / gains[0], 1e-6, "ratios of gains")


def test_gaps_and_nan_lose_nothing_else():
    """Cut a recording by a gap and by NaN, with uneven steps, and find the parameters and what was left out."""
    rng = np.random.default_rng(2)
    t = T + 1e-4 * rng.normal(size=len(T))
    _, q, qd, qdd = motion(4000, 1, t)
    tau = torques(q, qd, qdd)
    tau[1000:1004, 1] = np.nan
    keep = np.r_[0:2000, 2100:4000]
    found = kt.identify(ARM, {"t": t[keep], "q": q[keep], "tau": tau[keep]}, delays=False, **EXACT)
    assert found.findings[0] == "recording: 4 of 3900 rows have entries that are not finite; they are left out"
    assert found.findings[1].startswith("recording: 2 gaps of up to 0.505 s; the recording is cut there")
    assert len(found.training) == 3
    assert (found.relative_residuals < 0.02).all()


def test_closed_mechanisms_by_their_drives():
    """Identify a four-bar from the torque of its crank, exactly."""
    bar = kt.load("four_bar")
    angle = np.linspace(0.1, 14.0, 1500)
    q = bar.driven_motion({"crank": angle}).q
    rng = np.random.default_rng(1)
    speed = bar.consistent_speeds(q[0], {"crank": 1.0})
    qd = np.stack([bar.closing_speed(x, speed * 0 + 1.0) for x in q]) * rng.uniform(0.5, 3.0, (len(q), 1))
    q, qd, qdd = nearest_motion(bar, q, qd, rng.normal(size=qd.shape) * 5.0)
    tau = bar.inverse_dynamics(q, qd, qdd, actuated="crank", forces=False)
    recording = kt.Recording(0.01 * np.arange(len(q)), q, qd, qdd, tau)
    found = kt.identify(bar, recording, columns=(), actuated="crank", **EXACT)
    assert_close(found.estimate, found.base.values, 1e-9 * np.abs(found.base.values).max(), "estimate")
    assert found.joints == ("crank",)
    assert (found.margins > 0.0).all()


def test_runs_are_recordings():
    """Identify an arm from a run of its own simulation."""
    arm = kt.load("planar_2r")
    control = kt.PD([40.0, 25.0], [4.0, 2.5], kt.Constant([1.3, -0.8]))
    run = kt.simulate(arm, [0.3, -0.4], [0.1, 0.2], duration=4.0, dt=1e-3, control=control)
    found = kt.identify(arm, run, columns=(), **EXACT)
    assert_close(found.estimate, found.base.values, 1e-6, "estimate")


def test_results_can_be_written(tmp_path):
    """Write the identified arm as TOML and URDF, and read it with the same torques."""
    tau = ARM.regressor(Q, QD, QDD, columns=COLUMNS[:3]) @ TRUE[:-3]  # URDF has no inertia of drives
    found = kt.identify(ARM, kt.Recording(T, Q, QD, QDD, tau), columns=COLUMNS[:3], **EXACT)
    new = motion(5, 11)[1:]
    expected = found.system.inverse_dynamics(*new)
    for name in ("arm.toml", "arm.urdf"):
        read = kt.load(write(found.system, tmp_path / name))
        fixed = kt.System(replace(read.mechanism, gravity=ARM.mechanism.gravity))
        assert_close(fixed.inverse_dynamics(*new), expected, 1e-9 * np.abs(expected).max(), name)


def test_parameters_return():
    """Give a mechanism its own dynamic parameters and find the same bodies and joints."""
    mechanism = random_mechanism(FLAT, range(-1, len(FLAT) - 1), 5)
    system = kt.System(mechanism)
    same = with_dynamic_parameters(system, system.dynamic_parameters(COLUMNS), COLUMNS)
    s = State(mechanism)
    assert_close(same.dynamic_parameters(COLUMNS), system.dynamic_parameters(COLUMNS), 1e-12, "parameters")
    tau = system.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(same.inverse_dynamics(s.q, s.qd, s.qdd), tau, 1e-12 * np.abs(tau).max(), "torques")
    assert (margins(system.dynamic_parameters(), len(system.bodies)) > -1e-12).all()


@pytest.mark.parametrize(("change", "message"), [
    ({"tau": None}, "recording has neither tau nor current"),
    ({"current": TAU}, "recording has both tau and current"),
    ({"q": Q[:, :2]}, r"recording: q has shape \(4000, 2\); expected \[4000, 3\]"),
    ({"t": T[::-1]}, r"times do not increase: t = 19.995 s is followed by 19.99 s \(row 1\); sort the rows"),
    ({"t": T[:20], "q": Q[:20]}, r"t has shape \(20,\); give at least 40 times"),
    ({"tau": TAU * np.nan}, "0 rows are finite; give at least 40"),
    ({"qd": None}, "has qdd without qd; give both, or q alone"),
    ({"q": Q * 0 + 0.3, "qd": Q * 0, "qdd": Q * 0}, r"does not determine .* too little excitation; move all joints"),
    ({"load": kt.Body("hand", 1.0)}, "load is welded to 'hand', which is no body"),
])  # fmt: skip
def test_bad_recordings(change, message):
    """Read what is wrong with a recording, and the remedy."""
    with pytest.raises(InputError, match=message):
        kt.identify(ARM, replace(kt.Recording(T, Q, QD, QDD, TAU), **change), **EXACT)


def test_what_a_motion_does_not_determine_stays_as_it_is():
    """Hold a joint still, and keep its friction as it is in the model, with the torques of the others."""
    t, q, qd, qdd = motion(4000, 3)
    q, qd, qdd = (x * [1.0, 1.0, 0.0] for x in (q, qd, qdd))
    recording = kt.Recording(t, q, qd, qdd, torques(q, qd, qdd))
    found = kt.identify(ARM, recording, undetermined="model", **EXACT)
    line = next(x for x in found.findings if x.startswith("the motion does not determine"))
    assert "j2.viscous" in line and "they keep the values of the model; move all joints" in line
    assert (found.relative_residuals[:2] < 1e-6).all()
    assert (found.margins > 0.0).all()
    at = found.base.names.index("j2.viscous")
    assert found.parameters[at] == pytest.approx(ARM.dynamic_parameters(COLUMNS)[at], abs=1e-3)
    with pytest.raises(InputError, match="undetermined is 'skip'; expected 'raise' or 'model'"):
        kt.identify(ARM, recording, undetermined="skip")


def test_masses_at_points():
    """Fit masses at points and find that they are positive, and move like the bodies."""
    found = kt.identify(ARM, kt.Recording(T, Q, QD, QDD, TAU), consistent="points", columns=COLUMNS)
    assert_close(found.base.of(found.parameters), BASE, 1e-6 * np.abs(BASE).max(), "parameters")
    assert (found.margins > 0.0).all()
    assert [x.body for x in found.point_masses] == [b.name for b in ARM.bodies]
    for body, points in zip(found.system.bodies, found.point_masses, strict=True):
        m, r = points.masses, points.points
        assert (m > 0.0).all()
        assert_close(m.sum(), body.mass, 1e-9 * body.mass, "mass")
        assert_close(m @ r / m.sum(), body.com, 1e-9, "center of mass")
        away = r - m @ r / m.sum()
        inertia = np.einsum(
            "k,kij->ij", m, (away**2).sum(axis=1)[:, None, None] * np.eye(3) - np.einsum("ki,kj->kij", away, away)
        )
        xx, yy, zz, xy, yz, zx = body.inertia
        assert_close(inertia, [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]], 1e-9 * inertia.max(), "inertia")


def test_friction_that_differs_by_direction_and_at_low_speed():
    """Identify all sorts of friction exactly, and refuse nothing that a mechanism has no place for."""
    sorts = (*COLUMNS, "stribeck", "asymmetry")
    more = np.append(TRUE, [0.7, 0.5, 0.9, 0.2, -0.3, 0.1])
    tau = ARM.regressor(Q, QD, QDD, columns=sorts) @ more
    found = kt.identify(ARM, kt.Recording(T, Q, QD, QDD, tau), columns=sorts, consistent="log-cholesky")
    assert_close(found.parameters[-6:], more[-6:], 1e-9, "stribeck and asymmetry")
    new = motion(20, 8)[1:]
    expected = ARM.regressor(*new, columns=sorts) @ more
    assert_close(found.predict(*new), expected, 1e-6 * np.abs(expected).max(), "prediction")


def test_bad_options():
    """Read what is wrong with options, and the remedy."""
    data = kt.Recording(T, Q, QD, QDD, TAU)
    with pytest.raises(UnknownNameError, match="no method 'lsq'"):
        kt.identify(ARM, data, method="lsq")
    with pytest.raises(InputError, match="consistent is 'cone'; expected 'sdp', 'log-cholesky', 'points' or None"):
        kt.identify(ARM, data, consistent="cone")
    with pytest.raises(InputError, match="gains are torques per unit of current, and the recordings have torques"):
        kt.identify(ARM, data, gains=[1.0, 2.0, 3.0], **EXACT)
    with pytest.raises(InputError, match="validation is 1; give the part of the data that is held out"):
        kt.identify(ARM, data, validation=1.0, **EXACT)
    with pytest.raises(InputError, match=r"cutoff is 150 Hz, and the recording has 200 samples per second"):
        kt.identify(ARM, kt.Recording(T, Q, tau=TAU), cutoff=150.0, **EXACT)
    with pytest.raises(InputError, match="data has 'torque'; a recording has t, q, qd"):
        kt.identify(ARM, {"t": T, "q": Q, "torque": TAU})
    with pytest.raises(InputError, match="give a kt.Recording, a run, or a list of them"):
        kt.identify(ARM, 3)  # type: ignore[arg-type]
    current = kt.Recording(T, Q, QD, QDD, current=TAU)
    with pytest.raises(InputError, match="gains has no j2; give the gain of every measured joint"):
        kt.identify(ARM, current, gains={"j0": 1.0, "j1": 2.0})


def test_reports_are_pages(tmp_path):
    """Write a report and find a chart of torques and one of residuals for each joint, and the findings."""
    found = kt.identify(ARM, kt.Recording(T, Q, current=TAU), **EXACT)
    page = found.report(tmp_path / "report.html").read_text()
    assert page.count('<svg class="chart"') == 6
    assert "no gains and no known load" in page
    assert "b0.Izz" in page
    assert "residual of j2" in page
