"""Steps of one four-bar and of thousands with closed loops, compared with Exudyn if it is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from measure import Contender, Disagreement, Figure, interleaved, ratio
from report import Table
from whole_runs import fixed_run

BARS, STEP, SPAN = 1024, 1e-3, 0.5


def section(quick: bool) -> Section:
    """Return steps per second and errors of Kinetree, and of the peer if it is installed."""
    bars = kt.load("four_bar")
    q0 = bars.assemble()
    qd0 = bars.consistent_speeds(q0, {"crank": 4.0})
    step = fixed_run(bars.mechanism, "rk4")
    times, short = np.array([0.0, SPAN]), np.array([0.0, 20 * STEP])
    truth = kt.simulate(bars, q0, qd0, times=times, method="dop853", rtol=1e-12, atol=1e-14).q[-1]
    many_q, many_qd = np.tile(q0, (BARS, 1)), np.linspace(0.5, 1.5, BARS)[:, None] * qd0
    end = step(q0, qd0, times, STEP)[0][-1]
    gap = float(np.abs(bars.closure_residual(end)).max())
    errors = {"ours, one": float(np.abs(end - truth)[0])}
    contenders = {
        f"ours, {BARS:,}": Contender(lambda: step(many_q, many_qd, short, STEP), 20 * BARS),
        "ours, one": Contender(lambda: step(q0, qd0, times, STEP), round(SPAN / STEP)),
    }
    try:
        peer = exudyn_crank(bars, q0, qd0)
    except ImportError:
        peer = None
    if peer is not None:
        whole, quarter = (abs(peer(dt) - (truth - q0)[0]) for dt in (STEP, STEP / 4))
        if not quarter < whole / 8 < 1e-2:  # second order: a quarter of the step has a sixteenth of the error
            raise Disagreement(f"Exudyn's crank is off by {whole:.1e} rad, with a quarter of the step by {quarter:.1e}")
        errors["Exudyn, one"] = whole
        contenders["Exudyn, one"] = Contender(lambda: peer(STEP), round(SPAN / STEP))
    found = interleaved(contenders, 5 if quick else 15)
    ours = found[f"ours, {BARS:,}"]
    rows = [
        (
            name,
            Figure.of([1e9 / x for x in values]).text(4),
            f"{errors[name]:.0e}" if name in errors else "as of one",
            "-"
            if name.startswith("ours")
            else f"{ratio(values, ours).text()}; {ratio(values, found['ours, one']).text()}",
        )
        for name, values in found.items()
    ]
    note = (
        f"The library's four_bar rotating at 4 rad/s under gravity, steps of {STEP:g} s, {SPAN:g} s in all. Ours: "
        f"Runge-Kutta 4 with loops closed after each step (a gap of {gap:.0e} m). Exudyn: planar bodies and joints, "
        "its implicit trapezoidal rule of index 2, no output; of second order, so that its error at this step is "
        "larger, and falls by a factor of sixteen with a quarter of it. The errors are of the crank's angle at the "
        "end, against DOP853 at 1e-12. Ratios are to a batch of ours, and to one of ours."
    )
    rate = 1e3 / Figure.of(ours).median
    beside = ""
    if "Exudyn, one" in found:
        alone = ratio(found["Exudyn, one"], found["ours, one"]).median
        beside = f"; one alone runs {alone:.0f} times as fast as in Exudyn"
    else:
        note += " Exudyn is not installed here."
    return Section(
        "Steps of closed mechanisms",
        f"{rate:.2g} million steps of four-bars per second on one core{beside}.",
        (Table("Four-bars", ("contender", "steps/s", "error [rad]", "ours to it"), tuple(rows), note),),
    )


def exudyn_crank(bars: kt.System, q0: np.ndarray, qd0: np.ndarray) -> Callable[[float], float]:
    """Return a function of the step that runs the mechanism in Exudyn and returns the crank's change of angle."""
    import exudyn
    from exudyn import itemInterface as items

    mechanism, poses, twists = bars.mechanism, bars.poses(q0), bars.twists(q0, qd0)
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    ground, numbers = system.AddObject(items.ObjectGround()), []
    coms = [np.array(b.com, dtype=float) for b in mechanism.bodies]

    def marker(body: int, at: np.ndarray) -> Any:
        """Return a point of a body, from its frame's origin; -1 is the ground."""
        number, place = (ground, at) if body < 0 else (numbers[body], at - coms[body])
        where = [float(place[0]), float(place[1]), 0.0]
        return system.AddMarker(items.MarkerBodyPosition(bodyNumber=number, localPosition=where))

    for body, com, pose, twist in zip(mechanism.bodies, coms, poses, twists, strict=True):
        turn = pose[:3, :3]
        at, speed = pose[:3, 3] + turn @ com, turn @ (twist[3:] + np.cross(twist[:3], com))
        angle = float(np.arctan2(turn[1, 0], turn[0, 0]))
        node = system.AddNode(
            items.NodeRigidBody2D(
                referenceCoordinates=[at[0], at[1], angle], initialVelocities=[speed[0], speed[1], twist[2]]
            )
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # parameter names change between versions
            made = items.ObjectRigidBody2D(
                physicsMass=float(body.mass), physicsInertia=float(body.inertia[2]), nodeNumber=node
            )
        numbers.append(system.AddObject(made))
        pull = system.AddMarker(items.MarkerBodyMass(bodyNumber=numbers[-1]))
        system.AddLoad(items.LoadMassProportional(markerNumber=pull, loadVector=list(mechanism.gravity)))
    names = [b.name for b in mechanism.bodies]
    pins = [
        (mechanism.parents[k], np.array(j.placement.translation, dtype=float), k, np.zeros(3))
        for k, j in enumerate(mechanism.joints)
    ]
    for loop in mechanism.loops:
        a, b = (np.array(p.translation, dtype=float) for p in (loop.placement_a, loop.placement_b))
        pins.append((names.index(loop.body_a), a, names.index(loop.body_b), b))
    for one, at_one, two, at_two in pins:
        ends = [marker(one, at_one), marker(two, at_two)]
        system.AddObject(items.ObjectJointRevolute2D(markerNumbers=ends))
    system.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.endTime, settings.timeIntegration.verboseMode = SPAN, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = 2 * SPAN

    def run(step: float) -> float:
        settings.timeIntegration.numberOfSteps = round(SPAN / step)
        system.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.TrapezoidalIndex2)
        return float(system.systemData.GetODE2Coordinates()[2])

    return run
