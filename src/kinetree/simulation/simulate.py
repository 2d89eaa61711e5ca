"""`simulate`: the motion of a System from a start, under forces and control, as a Trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from .._support.interruption import keep_in_interrupt
from .._support.progress import show_progress
from ..errors import warn_caller
from ..model.contacts import Contact
from ..model.flexible import is_modes
from ..model.mechanism import Mechanism, Named
from ..results.trajectory import Trajectory
from ..system import System
from .acting.driven_states import name_blocked_drives
from .acting.instants import Force
from .acting.sampled import sample_reference
from .closing import Loops, name_redundant_loops
from .engines.engine import Fields, Motion, engine_of
from .engines.gpu import device_runs
from .engines.native import with_hints
from .events import Event, EventHit, Watch, as_options
from .methods.table import METHODS
from .options import Control, RunOptions, events_of, kept_by, system_of
from .problem import Problem, problem_of
from .run_states import Run
from .schedules import has_schedule, run_by_schedule

if TYPE_CHECKING:
    from .engines.engine import Progress


def simulate(
    system: System | Mechanism,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    *,
    duration: float | None = None,
    times: ArrayLike | None = None,
    control: Control | Sequence[Control] | None = None,
    forces: Force | Sequence[Force] | None = None,
    passive: bool = True,
    contacts: Contact | Sequence[Contact] | None = None,
    events: Event | Sequence[Event] = (),
    parameters: Named | Mapping[str, Any] | None = None,
    method: str = "auto",
    dt: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int | None = None,
    threads: int = 1,
    progress: bool | Callable[[float], None] | None = None,
    checkpoint: str | Path | None = None,
    loops: Loops | None = None,
    keep: str = "host",
) -> Trajectory:
    """Return the motion of a mechanism from one state, or from many at once: q0 [..., nq] and qd0 [..., nv].

    The output `times` default to 1001 times over the `duration` [s]. The passive forces of the mechanism act unless
    `passive` is False: damping and friction of its joints, springs and dampers. `forces` are added to them.
    `parameters` are the values of all free parameters in order, or of some by name; a kt.Schedule is a value that
    changes at given times, such as the mass of a load that is picked up. `threads` is the number of threads
    for a batch, 0 for all cores. `progress` shows a bar, by default on a terminal; a function is called with the part
    that is done, from 0 to 1, and ends the run by raising an error.

    Methods with fixed steps require `dt` [s]. The others keep the error of a step below atol + rtol |y|. `max_steps`
    bounds the steps of both; by default 10^12 fixed steps, or 10^6 attempts at steps of variable length. `auto`
    switches to "rodas5p" if a single run proves stiff, or to "radau" for mechanisms of many bodies.

    Ctrl-C raises a KeyboardInterrupt whose `run` is the Trajectory so far, None before its first step. With a
    `checkpoint` file, a run that was killed continues when it is called again, with the same bits as without the
    interruption. `events` are located between the output times (see docs/events-and-monitors.md), and `event_hits(run)`
    lists them.

    `control` is a controller, or a list of several that act together. Joints of a Driven follow their references
    exactly, and run["control"] has the torques that this takes; they start where their references do.

    A closed mechanism requires a closed start. `loops` selects how it stays closed: corrected after each step
    (Projection, the default), with gaps that decay (Baumgarte), or by independent degrees of freedom that determine the
    others (Minimal).

    `contacts` are hard contacts with Coulomb friction and restitution, by default those of the mechanism, () for none.
    The run then goes from event to event, or in native time steps with method="moreau" and `dt`. `run.contact` has
    events, forces and residuals (docs/contact.md).

    With a system on a GPU, `arm.on("cuda")`, each run is a thread of the GPU (docs/gpu.md). `keep="device"` leaves the
    samples there, as arrays of the library of q0, and returns DeviceRuns instead of a Trajectory.
    """
    options = RunOptions(
        duration=duration,
        times=times,
        control=control,
        forces=forces,
        passive=passive,
        contacts=contacts,
        parameters=parameters,
        method=method,
        dt=dt,
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
        threads=threads,
        checkpoint=checkpoint,
        loops=loops,
    )
    if parameters is not None and has_schedule(parameters):
        given = vars(options) | {"events": events, "keep": keep}
        return run_by_schedule(simulate, system_of(system), q0, qd0, given, progress)
    try:
        return _carried_out(system, q0, qd0, options, events, keep, progress)
    except KeyboardInterrupt as error:
        vars(error).setdefault("run", None)  # before the run began, as while it was compiled
        raise


def _carried_out(
    system: System | Mechanism,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    options: RunOptions,
    events: object,
    keep: object,
    progress: bool | Progress | None,
) -> Trajectory:
    library = kept_by(keep, system, q0)
    problem = problem_of(system, q0, qd0, options, library)
    events = events_of(events)
    watch = watch_of(problem, events)
    if library is not None:
        with show_progress(progress) as show:
            return device_runs(problem, watch, library, show)  # type: ignore[return-value]
    with show_progress(progress) as show:
        motion = engine_of(problem)(problem, watch, show)
        if motion.instead and not motion.run.interrupted:
            # restart from the beginning: few evaluations are lost, and one method serves the whole run
            other = replace(problem, method=METHODS[motion.instead], auto=False)
            watching = watch_of(other, events)
            try:
                motion = engine_of(other)(other, watching, show)
                problem, watch = other, watching
            except KeyboardInterrupt:  # before the other method began, as while it was compiled: keep the first run
                motion = replace(motion, run=replace(motion.run, interrupted=True).with_end())
    hits, run = _located(watch, motion) if watch else ([], motion.run)
    pressed, now = run.interrupted, run.now
    found = trajectory_of(problem, *motion.complete(watch.cut(run, hits) if watch else run), hits)
    if pressed:
        raise keep_in_interrupt(f"simulate was interrupted at t = {now:.9g} s; the states so far are `run`", run=found)
    return found


def watch_of(problem: Problem, events: Sequence[Event]) -> Watch | None:
    """Return the compiled events of a run; None without events."""
    return Watch(problem.mechanism, events, problem.parameters, problem.kept.native) if events else None


def _located(watch: Watch, motion: Motion) -> tuple[list[EventHit], Run]:
    """Return the events of a motion, and its run; none if Ctrl-C interrupts their location, which takes short runs."""
    try:
        return watch.locate(motion.run, motion.onward), motion.run
    except KeyboardInterrupt:
        return [], replace(motion.run, interrupted=True)


def name_causes(problem: Problem, done: Run) -> Run:
    """Return a run whose failures name their causes: loops, steps that are too long, drives that loops stop."""
    mechanism, parameters = problem.mechanism, problem.parameters
    done = with_hints(problem, name_redundant_loops(mechanism, done, parameters))
    return name_blocked_drives(problem.system, done, parameters, problem.control)


def _warn_of_deflections(mechanism: Mechanism, q: np.ndarray) -> None:
    """Warn of the flexible body that deflects most beyond what its modes are valid for."""
    worst = (1.0, "")
    for joint, own in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if is_modes(joint) and joint.limits.upper and q.size:
            reached = np.abs(q[..., own]).reshape(-1, own.stop - own.start).max(axis=0)
            ratios = reached / np.array(joint.limits.upper)
            k = int(ratios.argmax())
            if ratios[k] > worst[0]:
                name, unit = (getattr(joint_kinds.kind(joint.kind), x)[k] for x in ("names", "UNITS"))
                worst = (ratios[k], f"{joint.name}.{name} reaches {reached[k]:.3g} {unit}, {ratios[k]:.3g} times")
    if worst[1]:
        warn_caller(
            f"deflections are not small: {worst[1]} the largest for which its body is valid; use several beams in a "
            "row, kt.rod, or a stiffer body"
        )


def trajectory_of(problem: Problem, done: Run, acted: Fields, hits: Sequence[EventHit]) -> Trajectory:
    """Return the run as a Trajectory; a single run ends with its last finite state."""
    drives, system = problem.drives, problem.system
    if done.failures:
        done = name_causes(problem, done)
    if drives is not None and drives.couplings:  # their drives are among the torques
        system = System(drives.released(problem.mechanism), system.report)
    t, q, qd = done.t, done.q, done.qd
    if q.ndim == 2:
        good = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
        end = len(t) if good.all() else int(np.argmin(good))
        t, q, qd = t[:end], q[:end], qd[:end]
        acted = {name: x if callable(x) or isinstance(x, dict) else x[:end] for name, x in acted.items()}
    if problem.mechanism.has_flexible:
        _warn_of_deflections(problem.mechanism, q)
    method, settings = problem.method, problem.settings
    options: dict[str, Any] = {"dt": settings.dt}
    if method.adaptive:
        options = {"rtol": settings.rtol, "atol": settings.atol, "max_steps": settings.most}
    options |= acted.pop("options", {})
    control = problem.control
    reference = None if control is None else sample_reference(problem.mechanism, control, t)
    return Trajectory(
        system,
        t,
        q,
        qd,
        **acted,
        parameters=problem.parameters,
        reference=reference,
        method=method.name,
        options=options | ({"events": as_options(hits)} if hits else {}),
        endings=done.endings,
        evaluations=int(done.evaluations.sum()),
    )
