"""Long runs: a single one by any method of the library, and a cloud of many from scattered starts."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ....algebra.scalars import Numbers
from ....errors import InputError, brief, unknown_name
from ....exporting.acting import coordinates
from ....page.ground import feet, floor_under, gravity_of
from ....page.kernel import last_frame
from ....page.run import run_frames
from ....plots.camera import MOST, even_frames
from ....simulation.acting.controllers import PD, FeedForward, Sum, TorqueFunction
from ....simulation.acting.references import Hold, Table
from ....simulation.options import RunOptions
from ....simulation.simulate import simulate as simulated
from ....system import System
from ..tabs import Studio, for_page
from .model import system_with_edits

# --- A floor under a mechanism that floats: its named frames touch it ---


def on_floor(system: System, q: Any, friction: float, values: dict[str, Any]) -> System:
    """Return a System whose named frames are points that touch a floor, with Coulomb friction.

    The floor is perpendicular to gravity, through the lowest of the frames at the coordinates q. `values` has the free
    parameters, as an option of functions.
    """
    m = system.mechanism
    if not feet(m) or not gravity_of(m, values).any():
        raise InputError(f"{m.name}: a floor needs gravity, and frames that touch it; name frames in the file")
    return System(replace(m, contacts=floor_under(system, q, values).contacts(m, friction)), system.report)


LONGEST = 3600.0
"""The longest run [s]."""
MOST_RUNS, MOST_POINTS = 50_000, 3_050_000
"""The most runs of a cloud, and the most samples of them together, to bound memory."""
DRAWN, BANDED = 5_000, 8
"""The most runs of a cloud that are drawn, and the most coordinates with bands of quantiles."""
PARTS = (0.05, 0.95, 0.25, 0.75, 0.5)
"""The quantiles of bands, as page/js/run_cloud.js has them: two bands and the median."""


FIRST = {"duration": 10.0, "dt": 1e-3}
"""What the form of a run begins with, where the library has no default."""


def run_options(studio: Studio) -> dict[str, Any]:
    """Return the options of a run for a form, as RunOptions declares them; each has the value that it begins with."""
    return {"options": [x | {"first": FIRST.get(x["name"], x["default"])} for x in RunOptions.form()]}


def simulate(
    studio: Studio,
    q: object,
    qd: object,
    duration: object,
    drives: object = None,
    parameters: object = None,
    model: object = None,
    floor: object = None,
    **options: object,
) -> dict[str, Any]:
    """Simulate a run of the tab's mechanism and return {"run": ...}, with states at 60 frames per second.

    `parameters` are values of free parameters by name, those of the page included. `model` is the text of a TOML file
    whose mechanism is simulated instead: that of the tab with numbers that the reader changed. `floor` is the
    coefficient of friction of a floor that the named frames touch; None for no floor. Contacts of the mechanism act.
    `options` are those of `run_options`; those that the method does not have are left out.
    """
    system, values = system_with_edits(studio, parameters, model)
    seconds = _positive(duration, "the duration", LONGEST)
    if floor is not None:
        system = on_floor(system, studio.tab.data["first"]["q"], _friction(floor), values)
    start = _start(system, _numbers(q, system.nq, "q"), _numbers(qd, system.nv, "qd"), values)
    frames = 60.0 if seconds * 60 < MOST else MOST / (seconds + 1.0)
    times = np.linspace(0.0, seconds, round(seconds * frames) + 1)
    run = simulated(
        system,
        *start,
        times=times,
        control=_control(system, drives),
        progress=studio.report,
        **values,
        **_run_options(options),
    )
    shown = run_frames(run, even_frames(run, frames)[0], None)
    return {"run": shown | {"status": for_page(shown["status"])}}


def _run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return options of a form that the chosen method has."""
    known = {x["name"]: x for x in RunOptions.form() if x["name"] != "duration"}
    for name in given:
        if name not in known:
            raise unknown_name("option", name, known)
    method = given.get("method", RunOptions.method)
    if not isinstance(method, str) or method not in known["method"]["choices"]:
        raise unknown_name("method", method if isinstance(method, str) else brief(method), known["method"]["choices"])
    return {name: x for name, x in given.items() if method in known[name].get("methods", (method,))}


def batch(
    studio: Studio,
    q: Any,
    qd: object,
    duration: object,
    runs: object = 1000,
    spread: object = 0.02,
    spread_qd: object = 0.0,
    samples: object = 61,
    dt: object = 1e-3,
    frame: Any = None,
    drives: object = None,
    parameters: object = None,
    model: object = None,
    seed: object = 1,
) -> dict[str, Any]:
    """Simulate many runs from starts that scatter normally about one, and return them as a cloud.

    `spread` and `spread_qd` are the standard deviations of coordinates and velocities; the first run has the start
    itself. The result has the times `t` [samples], `points` [up to 5,000 runs, samples, 3] of the origin of the frame,
    NaN where a run ended, and quantiles over all runs: `point_bands` [3, 5, samples] and `q_bands` [up to 8, 5,
    samples]. `failed` is the number of runs that ended early. `parameters` and `model` are those of `simulate`.
    """
    system, values = system_with_edits(studio, parameters, model)
    seconds = _positive(duration, "the duration", LONGEST)
    count, number = _count(runs, "runs", MOST_RUNS), _count(samples, "samples", 10_000)
    if count * number > MOST_POINTS:
        raise InputError(f"{count} runs of {number} samples are more than {MOST_POINTS:,} points; take fewer of them")
    random = np.random.default_rng(_count(seed, "seed", 2**32))
    q0, qd0 = (_numbers(x, n, name) for x, n, name in ((q, system.nq, "q"), (qd, system.nv, "qd")))
    moved, faster = (
        _spread(x, name) * random.standard_normal((count, system.nv))
        for x, name in ((spread, "spread"), (spread_qd, "spread_qd"))
    )
    moved[0] = faster[0] = 0.0
    starts = np.asarray(system.integrate(np.broadcast_to(q0, (count, system.nq)), moved))
    times = np.linspace(0.0, seconds, number)
    run = simulated(
        system,
        *_start(system, starts, qd0 + faster, values),
        times=times,
        dt=_positive(dt, "the step", seconds),
        control=_control(system, drives),
        threads=0,
        progress=studio.report,
        **values,
    )
    name = frame if frame is not None else last_frame(system.mechanism)
    points = np.asarray(system.pose(run.q, name, **values))[..., :3, 3]
    good = np.isfinite(run.q).all(axis=(1, 2))
    return {
        "t": times,
        "runs": count,
        "samples": number,
        "frame": str(name),
        "points": points[:DRAWN].astype(np.float32),
        "point_bands": _bands(points),
        "q_bands": _bands(run.q[..., :BANDED]),
        "failed": int(count - good.sum()),
    }


def _bands(values: Numbers) -> Numbers:
    """Return quantiles [entries, parts, samples] of values [runs, samples, entries], of the finite ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a sample that no run reached is NaN
        return np.ascontiguousarray(np.nanquantile(values, PARTS, axis=0).transpose(2, 0, 1))


def _start(system: System, q: Numbers, qd: Numbers, values: dict[str, Any]) -> tuple[Numbers, Numbers]:
    """Return a start, or many, with the loops closed."""
    if not system.closures:
        return q, qd
    closed = np.asarray(system.assemble(q, **values))
    return closed, np.asarray(system.closing_speed(closed, qd, **values))


def _control(system: System, drives: object) -> Any:
    """Return the controller of the page's drives: torque, or stiffness and damping with a target or a motion.

    They have one number per velocity, a motion arrays [times] of t and [times, velocities] of q, qd and qdd.
    """
    if not drives:
        return None
    if not isinstance(drives, dict):
        raise InputError(f"the drives are {brief(drives)}; expected torques, or gains and targets")
    given = {key: _numbers(x, system.nv, key) for key, x in drives.items() if key != "motion"}
    if "motion" in drives and given.keys() == {"stiffness", "damping"}:
        motion = _motion(drives["motion"])
        return Sum([FeedForward(motion), PD(given["stiffness"], given["damping"], motion)])
    if given.keys() == {"torque"} and "motion" not in drives:
        torque = given["torque"].tolist()
        return TorqueFunction(lambda t, q, qd: torque)
    if given.keys() != {"stiffness", "damping", "target"} or "motion" in drives:
        raise InputError(
            f"the drives have {', '.join(drives)}; expected torque, or stiffness and damping with a target or a motion"
        )
    m, driven = system.mechanism, coordinates(system.mechanism)
    joints = [
        j.name for j, v in zip(m.joints, m.v_slices, strict=True) if any(k in driven for k in range(v.start, v.stop))
    ]
    k, c, target = (given[key][sorted(driven)] for key in ("stiffness", "damping", "target"))
    return PD(k, c, Hold(target), joints=joints)


def _motion(given: object) -> Table:
    """Return the reference of a planned motion by its samples."""
    if not isinstance(given, dict) or given.keys() != {"t", "q", "qd", "qdd"}:
        raise InputError(f"the motion is {brief(given)}; expected t, q, qd and qdd")
    return Table(given["t"], given["q"], rates=given["qd"], accelerations=given["qdd"])


def _numbers(x: object, count: int, name: str) -> Numbers:
    try:
        found = np.array(x, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {brief(x)}; expected {count} numbers") from None
    if found.shape != (count,) or not np.isfinite(found).all():
        raise InputError(f"{name} is {brief(x)}; expected {count} finite numbers")
    return found


def _positive(x: object, name: str, most: float) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float) or not 0 < x <= most:
        raise InputError(f"{name} is {brief(x)}; expected a number above 0, up to {most:g}")
    return float(x)


def _spread(x: object, name: str) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float) or not 0 <= x < 1e3:
        raise InputError(f"{name} is {brief(x)}; expected a standard deviation from 0 to 1000")
    return float(x)


def _friction(x: object) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float) or not 0 <= x <= 10:
        raise InputError(f"the friction of the floor is {brief(x)}; expected a coefficient from 0 to 10")
    return float(x)


def _count(x: object, name: str, most: int) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or not 1 <= x <= most:
        raise InputError(f"{name} is {brief(x)}; expected a whole number from 1 to {most:,}")
    return x
