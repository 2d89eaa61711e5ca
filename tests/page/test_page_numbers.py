"""The page's numbers in plain Node: each file in tests/page/node compares modules of page/js with the library."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import everyday
import kinetree as kt
from kinetree.algebra.vectors import from_moments
from kinetree.analysis.loops.kinematics import LoopKinematics
from kinetree.apps.lessons.reading import evaluate_formula, page_tree
from kinetree.exporting.acting import coordinates
from kinetree.formats.urdf_writer import write_urdf
from kinetree.page.data import page_model, system_data
from kinetree.page.file import pack
from kinetree.page.ground import ground_of
from wasm_hosts import NODE, needs_node

FOLDER = Path(__file__).parent / "node"

KNOWN = {"mass.link3": 1.7, "length.a_b.c": -0.3, "q": np.array([0.4, -1.1, 2.3]), "T": np.arange(12.0).reshape(3, 4)}
FORMULAS = (
    "-2**2 + 3*4 - 7/2",
    "2 * mass.link3 - length.a_b.c**2",
    "norm(q) * sqrt(2) + atan2(q[1], q[0])",
    "[30*deg, -pi/2, mass.link3]",
    "q - 2*[1, 0.5, -0.25] / mass.link3",
    "T[2, 1] + q[-1]",
    "-q",
    "cos(acos(0.3)) - abs(-log(7e-2)) + 1.5e2",
)


def formulas() -> dict[str, Any]:
    """Return formulas as trees, what they may name, and their values by Python."""
    names = {key: _plain(x) for key, x in KNOWN.items() if key != "T"}
    values = [_plain(evaluate_formula(text, KNOWN)) for text in FORMULAS]
    return {
        "names": names | {"T": {"data": _plain(KNOWN["T"]), "shape": [3, 4]}},
        "formulas": [{"tree": page_tree(x), "value": value} for x, value in zip(FORMULAS, values, strict=True)],
    }


TYPED = (
    "1/3",
    "pi/2",
    "-2**2 + 3*4 - 7/2",
    "2*sqrt(3)/(1+1e-3)",
    "sin(pi/6) - -.5",
    "2**3**2",
    "2**-1 * 3.",
    "abs(-1.5e+2)",
)


def numbers() -> dict[str, Any]:
    """Return expressions with their values, and tables before and after a change with the masses that fit."""
    known = {"pi": np.pi, "sqrt": np.sqrt, "sin": np.sin, "abs": abs}
    typed = [{"text": text, "value": float(eval(text, known))} for text in TYPED]
    return {"typed": typed, "adapted": [_adapted("standard", -1.0), _adapted("modified", 1.0)]}


def _adapted(form: str, side: float) -> dict[str, Any]:
    """Return a row whose link became longer and heavier; its masses are points, which move along the link."""
    rng = np.random.default_rng(9)
    points, weights = rng.normal(scale=0.2, size=(12, 3)), rng.uniform(0.1, 1.0, size=12)
    points[:, 0] += 0.5 * side * 0.3
    s, heavier = 0.45 / 0.3, 2.25 / weights.sum()
    before, after = _masses(points, weights), _masses(points * (s, 1.0, 1.0), weights * heavier)
    kept = {"joint": "revolute", "form": form, "theta": 0.4, "b": 0.0, "alpha": 0.0, "gamma": 0.0, "epsilon": 0.0}
    other = {
        **kept,
        "name": "one",
        "parent": -1,
        "a": 0.2,
        "mass": 1.0,
        "com": [0, 0, 0],
        "inertia": [1, 1, 1, 0, 0, 0],
    }

    def table(length: float, mass: float) -> dict[str, Any]:
        row = {**kept, "name": "two", "parent": 0, "a": length if form == "standard" else 0.2, "mass": mass}
        row |= {"com": before[:3], "inertia": before[3:]}
        end = {"a": length, "alpha": 0.0} if form == "modified" else None
        return {"form": form, "rows": [other, row], "base": None, "end": end, "gravity": [0, 0, 0], "loops": []}

    return {"first": table(0.3, weights.sum()), "now": table(0.45, 2.25), "adapted": after}


def _masses(points: np.ndarray, weights: np.ndarray) -> list[float]:
    """Return the center of points and xx, yy, zz, xy, yz, zx of their inertia about it."""
    com = weights @ points / weights.sum()
    x = points - com
    moments = (
        weights[:, None, None] * ((x**2).sum(axis=1)[:, None, None] * np.eye(3) - x[:, :, None] * x[:, None, :])
    ).sum(0)
    return [*com.tolist(), *moments[[0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]].tolist()]


def linear() -> dict[str, Any]:
    """Return matrices with their singular values, ranks and solutions by NumPy, and a page whose function has them."""
    rng = np.random.default_rng(4)
    thin, wide = rng.normal(size=(7, 4)), rng.normal(size=(3, 6))
    dependent = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 6))
    graded = thin * 10.0 ** np.array([0.0, -4.0, -8.0, 3.0])
    cases = []
    for A in (thin, wide, dependent, graded, np.zeros((2, 3))):
        b = rng.normal(size=A.shape[0])
        sizes = np.linalg.svd(A)[1]
        rank = int((sizes > 1e-13 * max(sizes.max(), 1e-300)).sum())
        x = np.linalg.pinv(A, rcond=1e-13) @ b
        cases.append({"A": _plain(A), "m": A.shape[0], "n": A.shape[1], "b": _plain(b), "values": _plain(sizes),
                      "rank": rank, "x": _plain(x)})  # fmt: skip
    A, b, damping = rng.normal(size=(4, 6)), rng.normal(size=4), 0.3
    step = A.T @ np.linalg.solve(A @ A.T + damping * np.eye(4), b)
    inertia = (0.4, -0.7, 1.3, 0.2, -0.5, 0.6)  # xx, yy, zz, xy, yz, zx
    moments, axes = np.linalg.eigh(np.array(from_moments(inertia), dtype=float))
    return {
        "data": pack(system_data(kt.load("three_rrr"))),
        "cases": cases,
        "damped": {"A": _plain(A), "m": 4, "n": 6, "b": _plain(b), "damping": damping, "x": _plain(step)},
        "inertia": {"inertia": inertia, "moments": moments[::-1].tolist(), "axes": axes.T[::-1].tolist()},
    }


def motions() -> dict[str, Any]:
    """Return points with their splines by SciPy."""
    t = np.array([0.0, 0.7, 1.1, 2.9])
    points = np.array([[0.3, -1.0], [1.2, 0.4], [-0.7, 0.9], [0.1, 2.2]])
    at = np.linspace(t[0], t[-1], 41)
    curves = {end: CubicSpline(t, points, bc_type=end) for end in ("clamped", "natural")}
    return {
        "t": t.tolist(),
        "points": points.tolist(),
        "splines": {end: [curve(at, k).tolist() for k in range(3)] for end, curve in curves.items()},
    }


def curves() -> dict[str, Any]:
    """Return motions with positions, velocities and accelerations of points and of rotations, energies and loads."""
    out = []
    for name in ("stanford", "planar_3r"):
        arm = kt.load(name)
        q0, q1 = (arm.random_state(seed)[0] for seed in (5, 8))
        law = kt.Cycloid(q0=q0, q1=q1, duration=1.7)
        t = np.linspace(0.0, 1.7, 13)[3:6]
        q, qd, qdd = (np.array(x).T for x in law(t))
        body = arm.mechanism.bodies[1]

        def place(times, arm=arm, law=law, body=body):
            T = arm.poses(np.array(law(times)[0]).T)[:, 1]
            return T[:, :3, :3] @ np.array(body.com, dtype=float) + T[:, :3, 3]

        h, steps = 1e-2, np.arange(-4, 5)  # differences of order eight
        ahead = np.stack([place(t + k * h) for k in steps])
        first = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3]) / 840 / h
        second = np.array([-9, 128, -1008, 8064, -14350, 8064, -1008, 128, -9]) / 5040 / h**2
        out.append({
            "data": pack(system_data(arm)), "q0": _plain(q0), "q1": _plain(q1), "body": body.name,
            "position": _plain(place(t)), "velocity": _plain(np.tensordot(first, ahead, 1)),
            "acceleration": _plain(np.tensordot(second, ahead, 1)), "tau": _plain(arm.inverse_dynamics(q, qd, qdd)),
            "gravity": _plain(arm.gravity_torque(q)), "kinetic": _plain(arm.kinetic_energy(q, qd)),
            "potential": _plain(arm.potential_energy(q)), "qdd": _plain(qdd),
            "reaction": _plain(np.linalg.norm(arm.reactions(q, qd, qdd)[:, 0, 3:], axis=-1)),
        })  # fmt: skip
    return {"motions": out}


def tables() -> dict[str, Any]:
    """Return the rows of Denavit-Hartenberg tables, and the poses of bodies by the library."""
    out = []
    for name in ("stanford", "puma560", "planar_3r"):
        arm = kt.load(name)
        table = system_data(arm)["table"]
        poses = arm.poses(np.zeros(arm.nq)).reshape(-1, 16).tolist()
        model = page_model(arm.mechanism, arm.mechanism.values())
        out.append({"table": table, "poses": poses, "model": model, "urdf": _urdf(arm)})
    return {"tables": out}


def _urdf(arm: kt.System) -> str:
    """Return URDF with numbers, also of a robot with armatures, which the page leaves out, as it does comments."""
    joints = tuple(replace(j, armature=()) for j in arm.joints)
    return re.sub(r"<!--.*?-->\n?", "", write_urdf(replace(arm.mechanism, joints=joints))[0], flags=re.DOTALL)


def kernels() -> dict[str, Any]:
    """Return the data of pages with states, and what the library computes there."""
    return {
        "trees": [_tree(name) for name in ("stanford", "kuka_lwr4")],
        "loops": [_closed(x) for x in CLOSED],
        "findings": _findings(),
        "grounds": [_carried(name, **given) for name, given in GROUNDS],
    }


CLOSED = ("four_bar", "five_bar", "three_rrr", "spatial_slider_crank")
FOUND = (
    ("parallelogram", None),
    ("parallelogram", (np.pi / 2, -np.pi / 2, np.pi / 2, np.pi / 2)),
    ("parallelogram", (np.pi / 2 - 0.02, 0.02 - np.pi / 2, np.pi / 2 - 0.02, np.pi / 2 - 0.02)),
    ("five_bar", None),
    ("press", None),
)
"""Closed mechanisms, and positions at which their findings are compared, by default an assembled one."""


def _tree(name: str) -> dict[str, Any]:
    arm = kt.load(name)
    q, qd = arm.random_state(3)
    frame = arm.mechanism.bodies[-1].name
    run = kt.simulate(arm, q, qd, times=np.array([0.0, 0.05]), method="rk4", dt=1e-3)
    return {
        "name": name, "data": pack(system_data(arm)), "q": q.tolist(), "qd": qd.tolist(),
        "poses": _plain(arm.poses(q)), "jacobian": _plain(arm.jacobian(q, frame)),
        "kinetic": float(arm.kinetic_energy(q, qd)), "potential": float(arm.potential_energy(q)),
        "inertias": np.diagonal(arm.inertia_matrix(q)).tolist(),
        "after": {"q": _plain(run.q[-1]), "qd": _plain(run.qd[-1])},
    }  # fmt: skip


GROUNDS = (
    ("quadruped", {"gain": 90.0}),
    ("hexapod", {}),
    ("crate", {"friction": 0.4}),
)
"""Mechanisms on a ground: few contacts, with stiff drives of light legs; many; and contacts of a mechanism's own."""


def _crate() -> kt.System:
    """Return a crate with a ball under its lid, on a ground of its own."""
    floor = kt.Surface("plane", placement=kt.Placement((0.1, 0.2, -0.3)))
    shapes = (("box", (0.4, 0.3, 0.2), (0.0, 0.0, 0.0)), ("sphere", (0.07,), (0.05, 0.0, 0.15)))
    crate = kt.Body("crate", 2.3, (0.02, -0.01, 0.03), (0.05, 0.06, 0.07, 0.001, 0.0, -0.002))
    contacts = tuple(kt.Contact(x, "crate", x, s, kt.Placement(at), floor, friction=0.4) for x, s, at in shapes)
    root = kt.Joint("root", "free", "ground", "crate")
    return kt.System(kt.Mechanism("crate", (crate,), (root,), gravity=(0.0, 0.0, -9.81), contacts=contacts))


def _carried(name: str, *, gain: float = 0.0, friction: float = 0.55) -> dict[str, Any]:
    """Return a motion on the ground with its impulses, by the library with drives that act implicitly in a step."""
    arm, dt, seconds = _crate() if name == "crate" else kt.load(name), 1e-3, 0.25
    q = arm.neutral()
    if name == "crate":
        q[2] = -0.1
    m, rng = arm.mechanism, np.random.default_rng(5)
    ground = ground_of(arm, q)
    qd = rng.normal(scale=0.3, size=arm.nv)
    driven = sorted(coordinates(m))
    k, c = gain * np.ones(len(driven)), 0.2 * gain * np.ones(len(driven))
    goal = q[[coordinates(m)[v] for v in driven]] + 0.1
    legs = [joint.name for joint in m.joints if joint.kind == "revolute"]
    joints = tuple(
        replace(j, armature=(dt * c[0] + dt * dt * k[0],)) if j.name in legs and gain else j for j in m.joints
    )
    soft = kt.System(replace(m, joints=joints, contacts=ground.contacts(m, friction)))
    control = {"control": kt.PD(k, c, kt.Hold(goal.tolist()), joints=legs)} if gain else {}
    run = kt.simulate(soft, q, qd, times=np.array([0.0, seconds]), method="moreau", dt=dt, **control)
    still = np.zeros(arm.nv)
    live = {"stiffness": still.copy(), "damping": still.copy(), "target": still.copy()}
    for key, numbers in zip(live, (k, c, goal), strict=True):
        live[key][driven] = numbers
    assert np.abs(run["contact_forces"][-1]).max() > 1.0
    return {
        "name": name, "data": pack(system_data(arm, q=q)), "q": q.tolist(), "qd": qd.tolist(), "steps": 250, "dt": dt,
        "friction": friction, "live": {key: x.tolist() for key, x in live.items()} if gain else {},
        "after": {"q": _plain(run.q[-1]), "qd": _plain(run.qd[-1]), "forces": _plain(run["contact_forces"][-1])},
        "gaps": _plain(run["contact_gaps"][-1]),
    }  # fmt: skip


def _closed(name: str) -> dict[str, Any]:
    arm = kt.load(name)
    q0 = arm.assemble()
    leads = list(arm.independent(q0).names)
    at = [arm.mechanism.v_slices[[j.name for j in arm.joints].index(x)].start for x in leads]
    rates = dict(zip(leads, (0.7, -0.4, 0.9), strict=False))
    qd = arm.consistent_speeds(q0, rates)
    qdd = arm.consistent_accelerations(q0, qd, dict.fromkeys(leads, 0.3))
    given = {"actuated": leads, "forces": True}
    tau, loads = arm.actuation(q0, qd, qdd, **given).tau, arm.loads(q0, qd, qdd=qdd, **given)
    doctor = arm.doctor(q0)
    near = arm.integrate(q0, np.random.default_rng(6).normal(scale=0.1, size=arm.nv))
    held = np.arange(arm.nv) == at[0]
    return {
        "name": name, "data": pack(system_data(arm)), "q": q0.tolist(), "leads": at, "rates": list(rates.values()),
        "qd": _plain(qd), "qdd": _plain(qdd), "tau": _plain(tau), "mobility": int(doctor.mobility),
        "loads": _plain(np.concatenate([loads.joints, loads.cuts], axis=-2)),
        "near": _plain(near), "closed": _plain(LoopKinematics(arm).close(near, held)[0]),
    }  # fmt: skip


def _findings() -> list[dict[str, Any]]:
    """Return closed positions with the mobility, and the titles of the doctor's findings."""
    out = []
    for name, position in FOUND:
        arm = kt.load(name)
        q = arm.assemble() if position is None else arm.assemble(np.array(position))
        doctor = arm.doctor(q)
        titles = [finding.title for finding in doctor.findings]
        out.append({"name": name, "data": pack(system_data(arm)), "q": q.tolist(), "titles": titles,
                    "mobility": int(doctor.mobility)})  # fmt: skip
    return out


def _plain(x: Any) -> Any:
    return np.ravel(x).tolist() if np.ndim(x) else float(x)


CASES = {
    "formulas": formulas,
    "numbers": numbers,
    "linear": linear,
    "motions": motions,
    "curves": curves,
    "tables": tables,
    "kernels": kernels,
    "stage": dict,  # what the stage draws, without numbers of the library
}


@needs_node
@pytest.mark.parametrize("name", everyday.seldom(CASES, ["kernels"]))
def test_numbers_of_the_page_are_the_library_s(tmp_path, name):
    """Run the comparisons of one file in Node, which reads the library's numbers."""
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(CASES[name]()))
    environment = os.environ | {"KINETREE_CASES": str(path)}
    command = [str(NODE), "--test", "--test-reporter=spec", str(FOLDER / f"{name}.test.mjs")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests 0" not in done.stdout


def test_every_comparison_is_run():
    """Find a list of cases for every file of comparisons."""
    assert {f.name.removesuffix(".test.mjs") for f in FOLDER.glob("*.test.mjs")} == set(CASES)
