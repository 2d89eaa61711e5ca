"""`simulate`: a System, a start, forces and control in; a Trajectory out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .compiler.lower.build import Request, is_long
from .compiler.rolled.weightless import refuse_singular
from .compiler.runtime.cache import digest
from .errors import InputError
from .results.trajectory import Trajectory
from .simulation.acting import Acting
from .simulation.control.following import followed
from .simulation.control.sampled import Law, PythonControl, Sampled, run_held
from .simulation.engines.held_torques import held_loads
from .simulation.engines.marching import STEPS, March
from .simulation.engines.runs import Run, Settings, check_times, run
from .simulation.engines.scipy_referee import run_scipy
from .simulation.engines.sundials import run_bdf
from .simulation.events import Event, EventHit, Onward, Watch, as_options, of_run
from .simulation.forces.joint_forces import JointSpring
from .simulation.forces.point_forces import forces_of
from .simulation.integrators import Method, choose, stepper
from .simulation.rates import Controller, Force, loads_and_drives, rates
from .simulation.stabilization import Baumgarte, Loops, Minimal, closed_run, closed_start, settled
from .system import System

PLAIN = {"bdf": run_bdf, "scipy": run_scipy}
"""Methods that are not native, by name."""

MARCHED = ("implicit_euler", "implicit_midpoint")
"""Methods that step in Python whatever the mechanism."""

OUTPUTS = 1001
"""Output times, where none are asked for."""


def simulate(
    system: System,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    *,
    duration: float | None = None,
    times: ArrayLike | None = None,
    control: Controller | Sampled | PythonControl | None = None,
    forces: Sequence[Force] | None = None,
    events: Sequence[Event] = (),
    parameters: ArrayLike | None = None,
    method: str = "auto",
    dt: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 1_000_000,
    threads: int = 1,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    loops: Loops | None = None,
) -> Trajectory:
    """Return the motion of a mechanism from a state, or of many at once from [..., nq] and [..., nv].

    The output `times` are 1001 over the `duration` [s] where they are not given. `forces` are those that the mechanism
    describes (damping and friction of its joints, springs and dampers) unless others are given; [] means none. Methods
    with fixed steps take `dt` [s], the others keep the error of a step below atol + rtol |y|. A `checkpoint` file
    lets a run that was killed go on to the same bits. Ctrl-C ends a run with what was computed. `events` are looked for
    between the output times (see docs/events-and-monitors.md); `event_hits(run)` lists those that were found. `loops`
    of closed mechanisms are closed after each step (Projection), decay (Baumgarte), or make all but independent degrees
    of freedom follow (Minimal); the start must be closed.
    """
    times = _times(duration, times)
    start = _start(system, q0, qd0, parameters)
    refuse_singular(system.mechanism, Request("forward_dynamics"))
    values = _parameters(system, parameters, start[0].shape[:-1])
    start = closed_start(system.mechanism, *start, values, function=system.function)
    loops = settled(system, loops, start[0], values)
    acting = forces_of(system.mechanism) if forces is None else list(forces)
    springy = is_long(system.mechanism) and any(isinstance(force, JointSpring) for force in acting)
    chosen = choose(method, dt, rtol, springy=springy)
    settings = _settings(chosen, times, dt, rtol, atol, max_steps)
    watch = Watch(system.mechanism, events, values)
    marched = chosen.name in MARCHED or is_long(system.mechanism)
    law: Any = control
    if marched and isinstance(control, PythonControl) and control.rate is None:
        law = Law(system.mechanism, control, values)
    elif isinstance(control, Sampled | PythonControl):
        if is_long(system.mechanism):
            raise InputError(
                f"{system.mechanism.name!r} has {len(system.bodies)} bodies: too many for torques that are sampled; "
                "use a PythonControl without a rate"
            )
        _no_checkpoint(checkpoint, type(control).__name__)
        if isinstance(loops, Baumgarte | Minimal):
            raise InputError(f"{type(control).__name__} closes loops by Projection alone; leave loops out")
        with _shown(progress) as show:
            moved = run_held(
                system.mechanism, chosen, acting, control, start, times, settings,
                parameters=values, threads=threads, progress=show, watch=watch,
            )  # fmt: skip
        hits = watch.locate(moved.run, moved.onward) if watch else []
        moved = moved.cut_to(watch.cut(moved.run, hits), times)
        acted = held_loads(system.mechanism, acting, moved)
        return _trajectory(system, moved.run, chosen, settings, acted, values, hits, control)
    if marched:
        _no_checkpoint(checkpoint, "this run")
        return _marched(system, chosen, acting, law, start, times, settings, values, loops, watch, progress)
    if chosen.scheme is None:
        _no_checkpoint(checkpoint, chosen.name)
        kept = loops if isinstance(loops, Baumgarte | Minimal) else Baumgarte()
        program = rates(system.mechanism, acting, control, loops=kept if system.closures else None)

        def again(q, qd, t, more):
            plain = PLAIN[chosen.name](program, q, qd, t, settings, more)
            return plain if isinstance(loops, Baumgarte) else closed_run(system.mechanism, plain, more)

        done = again(*start, times, values)
    else:
        made = stepper(system.mechanism, chosen, acting, control, loops=loops)
        arrays = (*start, times, *(() if values is None else (values,)))
        key = digest(made.program.hash, chosen.name, repr(settings), *(x.tobytes().hex() for x in arrays))

        def again(q, qd, t, more):
            return run(made, q, qd, t, settings, parameters=more)

        with _shown(progress) as show:
            done = run(
                made, *start, times, settings, parameters=values, threads=threads,
                progress=show, checkpoint=checkpoint, key=key, until=watch.stops if watch else None,
            )  # fmt: skip
    hits = watch.locate(done, _onward(done, again, values)) if watch else []
    done = watch.cut(done, hits)
    acted = Acting(*loads_and_drives(system.mechanism, acting, control)).fields()
    return _trajectory(system, done, chosen, settings, acted, values, hits, control)


def _marched(
    system: System, method: Method, acting, control, start, times, settings, values, loops, watch: Watch, progress
) -> Trajectory:
    """Return the motion by steps in Python: of a long mechanism, or implicit in springs and dampers of joints."""
    if method.name not in STEPS:
        raise InputError(
            f"{method.name} cannot be compiled for the {len(system.bodies)} bodies of {system.mechanism.name!r}; use "
            f"{', '.join(STEPS[:-1])} or {STEPS[-1]}, with a step dt"
        )
    made = March(system.mechanism, method.name, acting, control, loops, function=system.function)

    def again(q, qd, t, more):
        return made.run(q, qd, t, settings, more)

    with _shown(progress) as show:
        done = made.run(start[0], start[1], times, settings, values, progress=show)
    hits = watch.locate(done, _onward(done, again, values)) if watch else []
    done = watch.cut(done, hits)
    acted = made.acting(done.t, done.q, done.qd, values)
    return _trajectory(system, done, method, settings, acted, values, hits, control)


def _onward(done: Run, again: Callable[..., Run], parameters: np.ndarray | None) -> Onward:
    """Return how to go on from a sample of a run to a time before the next."""

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if parameters is None else of_run(parameters, index)
        short = again(done.q[(*index, k)], done.qd[(*index, k)], np.array([done.t[k], t]), own)
        return short.q[-1], short.qd[-1]

    return onward


def _no_checkpoint(checkpoint: str | Path | None, who: str) -> None:
    if checkpoint is not None:
        raise InputError(f"{who} keeps no checkpoints; use a native method")


def _trajectory(
    system: System,
    done: Run,
    method: Method,
    settings: Settings,
    acted: dict[str, Any],
    values,
    hits: Sequence[EventHit],
    control: Any,
) -> Trajectory:
    """Return the run as a Trajectory, a single one cut after its last good state."""
    t, q, qd = done.t, done.q, done.qd
    if q.ndim == 2:
        good = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
        end = len(t) if good.all() else int(np.argmin(good))
        t, q, qd = t[:end], q[:end], qd[:end]
        acted = {name: x if callable(x) else x[:end] for name, x in acted.items()}
    options = {"dt": settings.dt}
    if method.adaptive:
        options = {"rtol": settings.rtol, "atol": settings.atol, "max_steps": settings.most}
    return Trajectory(
        system, t, q, qd,
        **acted, parameters=values, reference=followed(system.mechanism, control, t), method=method.name,
        options=options | ({"events": as_options(hits)} if hits else {}), status=done.status,
        evaluations=int(done.evaluations.sum()),
    )  # fmt: skip


def _times(duration: float | None, times: ArrayLike | None) -> np.ndarray:
    if (duration is None) == (times is None):
        raise InputError("give either a duration or output times")
    if times is not None:
        return check_times(np.asarray(times, dtype=float))
    if not (isinstance(duration, int | float | np.number) and np.isfinite(duration) and duration > 0):
        raise InputError(f"duration is {duration!r}; expected a positive number of seconds")
    return np.linspace(0.0, float(duration), OUTPUTS)


def _start(
    system: System, q0: ArrayLike | None, qd0: ArrayLike | None, parameters: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    given = (
        ("q0", _default_position(system, parameters) if q0 is None else q0, system.nq),
        ("qd0", np.zeros(system.nv) if qd0 is None else qd0, system.nv),
    )
    arrays = []
    for name, value, size in given:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"{name} is not an array of real numbers{_by_name(system, name, value)}") from None
        if array.ndim < 1 or array.shape[-1] != size:
            raise InputError(f"{name} has shape {array.shape}; expected [..., {size}]")
        if not np.isfinite(array).all():
            raise InputError(f"{name} has entries that are not finite")
        arrays.append(array)
    try:
        lead = np.broadcast_shapes(arrays[0].shape[:-1], arrays[1].shape[:-1])
    except ValueError:
        raise InputError(f"q0 {arrays[0].shape} and qd0 {arrays[1].shape} do not fit together") from None
    if system.nv == 0:
        raise InputError(f"{system.mechanism.name!r} cannot move: it has no degrees of freedom")
    q, qd = (np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays)
    return q, qd


def _by_name(system: System, name: str, value: Any) -> str:
    """Return what to do with numbers by joint, where a closed mechanism was given some."""
    if not (isinstance(value, Mapping) and system.closures):
        return ""
    by = "assemble(hold={joint: position})" if name == "q0" else "consistent_speeds(q0, {joint: speed})"
    return f"; numbers by joint make one with system.{by}"


def _default_position(system: System, parameters: ArrayLike | None) -> np.ndarray:
    """Return no displacement, or the closed position nearest to a closed mechanism's own guess."""
    return system.assemble(parameters=parameters) if system.closures else system.neutral()


def _parameters(system: System, parameters: ArrayLike | None, lead: tuple[int, ...]) -> np.ndarray | None:
    free = system.mechanism.free_parameters
    if not free:
        if parameters is not None:
            raise InputError(f"{system.mechanism.name!r} has no free parameters")
        return None
    values = np.array([p.value for p in free]) if parameters is None else np.asarray(parameters, dtype=float)
    if values.shape not in ((len(free),), (*lead, len(free))):
        raise InputError(f"parameters have shape {values.shape}; expected [{len(free)}] or {[*lead, len(free)]}")
    return values


def _settings(method: Method, times, dt: float | None, rtol: float, atol: float, max_steps: int) -> Settings:
    for name, value in (("dt", dt), ("rtol", rtol), ("atol", atol)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value!r}; expected a positive number")
    if method.adaptive:
        if dt is not None:
            raise InputError(f"{method.name} chooses its steps: leave dt out, or use rk4, euler, midpoint or gauss")
        return Settings(rtol=rtol, atol=atol, first=1e-3 * float(times[-1] - times[0]), most=max_steps)
    if dt is None:
        raise InputError(f"{method.name} takes fixed steps: give dt [s]")
    return Settings(dt=float(dt))


@contextmanager
def _shown(progress: bool | None) -> Iterator[Callable[[float], None] | None]:
    """Show a bar with the time left, by default where standard error is a terminal."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=1.0)
        yield lambda part: bar.update(task, completed=part)
