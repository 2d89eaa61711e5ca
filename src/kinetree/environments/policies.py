"""Trained policies: networks as data, as controllers that are compiled and exported, and in runs of `simulate`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from .._support.atomic import replacing
from .._support.checks import positive, whole
from ..algebra.scalars import Scalar, exp, where
from ..algebra.vectors import dot, sub
from ..contact_geometry import labels
from ..errors import InputError, brief, unknown_name
from ..model.mechanism import resolve_parts
from ..model.parameters import Parameter
from ..model.parts import GROUND
from ..results.trajectory import Trajectory
from ..runtime.native import native
from ..simulation.acting.instants import Instant
from ..simulation.acting.smooth import clip
from ..simulation.engines.held_torques import HELD
from ..simulation.options import with_contacts
from ..simulation.simulate import simulate
from ..system import System
from .kernels import Compilable
from .programs import ActionControl, observe
from .tasks import Continuous, Discrete, Dynamics, Layout, Moment, Task
from .vector import Batch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# --- Networks ---

ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Scalar], Scalar]]] = {
    "tanh": (np.tanh, lambda x: 1.0 - 2.0 / (exp(2.0 * x) + 1.0)),
    "elu": (
        lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
        lambda x: where(x > 0.0, x, exp(where(x > 0.0, 0.0, x)) - 1.0),
    ),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: where(x > 0.0, x, 0.0)),
}
"""The functions between two layers by name, on arrays and on traced scalars."""
MOST_BYTES = 2**28
"""The largest size of the arrays of a policy's file, unpacked [bytes]."""


@dataclass(frozen=True, eq=False)
class Policy:
    """A network from an observation to an action: layers (weights [n, m], biases [n]) with an activation in between.

    Observations are scaled first, less their `mean` [o] and over their `deviation` [o], and clipped to +-`clipped`. It
    is called with observations [..., o] and returns actions [..., a]. For actions by number, the index of the largest
    output is taken by `choose`.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    activation: str = "tanh"
    mean: Any = 0.0
    deviation: Any = 1.0
    clipped: float = 8.0

    def __post_init__(self) -> None:
        """Check the shapes and the numbers."""
        if self.activation not in ACTIVATIONS:
            raise unknown_name("activation", str(self.activation), ACTIVATIONS)
        found, before = [], None
        for k, layer in enumerate(self.layers):
            W, b = (np.array(x, dtype=float) for x in layer)
            if W.ndim != 2 or b.shape != W.shape[:1] or before not in (None, W.shape[1]):
                raise InputError(
                    f"layer {k} has weights {W.shape} and biases {b.shape}; expected [n, {before or 'm'}] and [n]"
                )
            if not (np.isfinite(W).all() and np.isfinite(b).all()):
                raise InputError(f"layer {k} has numbers that are not finite")
            before = W.shape[0]
            found.append((W, b))
        if not found:
            raise InputError("a policy needs at least one layer")
        object.__setattr__(self, "layers", tuple(found))
        for name in ("mean", "deviation"):
            x = np.asarray(getattr(self, name), dtype=float)
            if x.shape not in ((), (self.observed,)) or not np.isfinite(x).all():
                raise InputError(f"{name} has shape {x.shape}; expected {self.observed} finite numbers")
            object.__setattr__(self, name, np.broadcast_to(x, (self.observed,)))
        if self.deviation.min() <= 0.0:
            raise InputError(f"deviation has {self.deviation.min():g}; give more than zero")
        object.__setattr__(self, "clipped", positive(self.clipped, "clipped"))

    @property
    def observed(self) -> int:
        """The number of entries of an observation."""
        return self.layers[0][0].shape[1]

    @property
    def size(self) -> int:
        """The number of outputs."""
        return self.layers[-1][0].shape[0]

    def __call__(self, observation: ArrayLike) -> np.ndarray:
        """Return the outputs [..., a] for observations [..., o]."""
        x = np.asarray(observation, dtype=float)
        if x.shape[-1:] != (self.observed,):
            raise InputError(f"observation has shape {x.shape}; the policy takes [..., {self.observed}]")
        x = np.clip((x - self.mean) / self.deviation, -self.clipped, self.clipped)
        between = ACTIVATIONS[self.activation][0]
        for k, (W, b) in enumerate(self.layers):
            x = (between(x) if k else x) @ W.T + b
        return x

    def choose(self, observation: ArrayLike) -> np.ndarray:
        """Return the index of the largest output, for actions by number."""
        return self(observation).argmax(axis=-1)

    def traced(self, observation: list[Scalar]) -> list[Scalar]:
        """Return the outputs as traced scalars."""
        if len(observation) != self.observed:
            raise InputError(f"the task has {len(observation)} observations; the policy takes {self.observed}")
        scales = zip(observation, self.mean.tolist(), self.deviation.tolist(), strict=True)
        x = [clip((v - m) * (1.0 / d), -self.clipped, self.clipped) for v, m, d in scales]
        between = ACTIVATIONS[self.activation][1]
        for k, (W, b) in enumerate(self.layers):
            x = [between(v) for v in x] if k else x
            out = []
            for row, first in zip(W.tolist(), b.tolist(), strict=True):
                total: Scalar = first
                for w, v in zip(row, x, strict=True):
                    total = total + w * v
                out.append(total)
            x = out
        return x

    def control(self, task: Task, **kept: object) -> PolicyControl:
        """Return the policy with the control of a task as a controller, for `simulate`, `stepper` and `export`.

        `kept` are values of the episode, such as command=[0.5, 0, 0]; those that are left out are zero.
        """
        return PolicyControl(self, task, _kept(Compilable(task).layout, kept))

    def save(self, path: str | Path) -> Path:
        """Write the policy into a file (.npz), and return its path."""
        path = Path(path)
        arrays = {f"{x}{k}": a for k, layer in enumerate(self.layers) for x, a in zip("Wb", layer, strict=True)}
        with replacing(path) as written, open(written, "wb") as file:
            arrays |= {"mean": self.mean, "deviation": self.deviation, "clipped": np.array(self.clipped)}
            np.savez_compressed(file, activation=np.array(self.activation), **arrays)  # type: ignore[arg-type]
        return path

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read a policy from a file that `save` wrote."""
        try:
            with ZipFile(path) as packed:
                size = sum(part.file_size for part in packed.infolist())
            if size > MOST_BYTES:
                raise InputError(
                    f"{path}: its arrays have {size:,} bytes; those of a policy have at most {MOST_BYTES:,}"
                )
            with np.load(path, allow_pickle=False) as data:
                count = sum(name.startswith("W") for name in data.files)
                layers = tuple((data[f"W{k}"], data[f"b{k}"]) for k in range(count))
                return cls(layers, str(data["activation"]), data["mean"], data["deviation"], data["clipped"].item())
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: is not the file of a policy ({error}); give one of Policy.save") from None

    @classmethod
    def from_torch(cls, state: Mapping[str, Any], name: str, activation: str, **scales: Any) -> Policy:
        """Return the policy of a torch Sequential of linear layers from a `state_dict` in which it has a name.

        `scales` are mean, deviation and clipped.
        """
        keys = sorted((k for k in state if k.startswith(f"{name}.") and k.endswith(".weight")), key=_number)
        if not keys:
            raise InputError(f"state has no layers of {name!r}; it has {', '.join(state)}")
        arrays = [(state[k], state[f"{k.removesuffix('weight')}bias"]) for k in keys]
        return cls(tuple((np.asarray(w.cpu()), np.asarray(b.cpu())) for w, b in arrays), activation, **scales)


def _number(key: str) -> int:
    part = key.split(".")[-2]
    return int(part) if part.isdecimal() else 0


# --- As a controller ---

TOUCH = 1e-3
"""The gap below which a contact counts as pressed where its force is unknown [m]."""


@dataclass(frozen=True, eq=False)
class PolicyControl:
    """A policy with the control of its task, compiled: observation, network, scaling and torques at every instant.

    Environments hold an action over a step; here it follows the state. Forces of contacts are not known to a
    controller: a contact that is closer than TOUCH to a plane counts as pressed with the weight of the mechanism.
    """

    policy: Policy
    task: Task
    kept: np.ndarray

    def __post_init__(self) -> None:
        """Check that the policy fits the task."""
        task = self.task
        if not isinstance(task.motion, Dynamics):
            raise InputError(f"task {task.name!r} has equations; only mechanisms have controllers")
        if not isinstance(task.actions, Continuous) or task.delay:
            raise InputError(f"task {task.name!r} has actions by number, or a delay; a controller has neither")
        if task.actions.size != self.policy.size:
            raise InputError(f"the policy has {self.policy.size} outputs; task {task.name!r} takes {task.actions.size}")

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of all degrees of freedom."""
        task, made = self.task, Compilable(self.task)
        motion, actions = task.motion, task.actions
        assert isinstance(motion, Dynamics) and isinstance(actions, Continuous)
        mechanism = motion.mechanism
        weight = [w for name in made.layout.contacts for w in (_pressed(now, mechanism, name), 0.0, 0.0)]
        step = motion.dt / motion.substeps
        given: dict[str, Any] = {
            "q": now.q, "qd": now.qd, "t": [now.t], "steps": [now.t * (1.0 / motion.dt)], "kept": self.kept.tolist(),
            "action": list(actions.first), "impulses": [w * step for w in weight],
        }  # fmt: skip
        seen = observe(task, Moment(made.layout, given, now, step))
        out = []
        for x, low, high in zip(self.policy.traced(seen), actions.low, actions.high, strict=True):
            least, most = (-1.0, 1.0) if actions.scaled else (low, high)
            x = clip(x, least, most)
            out.append(x * (0.5 * (high - low)) + 0.5 * (low + high) if actions.scaled else x)
        now.given = {**now.given, HELD: [*out, *self.kept.tolist()]}
        return ActionControl(task, made.layout, HELD).torque(now)


def _pressed(now: Instant, mechanism: Any, name: str) -> Scalar:
    """Return the weight of a mechanism where a contact is closed, else 0."""
    contact = next((c for c in mechanism.contacts if name in labels(c)), None)
    surface = None if contact is None else contact.surface
    if contact is None or surface is None or (surface.kind, surface.body, contact.shape) != ("plane", GROUND, "point"):
        raise InputError(
            f"contact {name!r} is no point on a plane of the ground, so that a controller cannot know whether it is "
            "pressed; leave contacts out of the observation"
        )
    values = mechanism.values(now._parameters)
    place, level = (resolve_parts(x.placement, values) for x in (contact, surface))
    normal = tuple(row[2] for row in level.rotation)
    gap = dot(normal, sub(now.point(contact.body, place.translation)[0], level.translation))
    mass = sum(b.mass for b in resolve_parts(mechanism.bodies, values))
    g = [float(x) for x in resolve_parts(tuple(mechanism.gravity), values)]
    return where(gap < TOUCH, mass * float(np.linalg.norm(g)), 0.0)


# --- In runs of simulate ---


def simulate_task(
    task: Task,
    act: Callable[[np.ndarray], ArrayLike],
    steps: int,
    *,
    seed: int = 0,
    method: str = "auto",
    kept: Mapping[str, object] | None = None,
    **options: Any,
) -> Trajectory:
    """Return an episode of a task by `simulate` under actions act(observation) [a], each held over a step.

    With method="auto", contacts go from event to event, and other mechanisms have adaptive steps; the name of a method
    with fixed steps takes those of the task. `kept` are values of the episode in the place of drawn ones, and `options`
    those of `simulate`. The episode ends where the task ends it; its rewards are in `run.options["rewards"]`.
    """
    motion, made = task.motion, Compilable(task)
    if not isinstance(motion, Dynamics):
        raise InputError(f"task {task.name!r} has equations, which simulate does not run; use Batch.record")
    if task.delay or isinstance(task.actions, Discrete):
        raise InputError(f"task {task.name!r} has actions by number, or a delay; use Batch.record")
    batch, layout = Batch(task, 1, "disabled"), made.layout
    batch.reset(seed)
    numbers = _kept(layout, {**{x: batch.kept(x)[0] for x in layout.kept}, **(kept or {})})
    system, names = _with_actions(motion, layout)
    law, h = _HeldActions(task, layout, names), motion.dt / motion.substeps
    if method != "auto":
        options = {"dt": h} | options
    look, finish = native(made.look), native(made.finish[0])
    q, qd, impulses = batch.q[0].copy(), batch.qd[0].copy(), np.zeros(3 * len(layout.contacts))
    free = batch.parameters[0].copy()
    given = {
        "t": [0.0], "q": q, "qd": qd, "parameters": free, "action": np.zeros(layout.actions), "kept": numbers,
        "before_q": q, "before_qd": qd, "steps": [0.0], "impulses": impulses,
    }  # fmt: skip
    observation = look(*(np.asarray(given[a.name]) for a in layout.seen))
    states, forces, rewards, used = [(q, qd)], [impulses], [], method
    for n in range(whole(steps, "steps")):
        action = _scaled(task.actions, act(np.asarray(observation)))
        t = np.array([n, n + 1]) * motion.dt
        run = simulate(
            system, q, qd, times=t, control=law, forces=list(motion.forces), passive=motion.passive, method=method,
            parameters=[*free, *action, *numbers], loops=motion.loops, progress=False, **options,
        )  # fmt: skip
        before, used = (q, qd), run.method
        q, qd = run.q[-1], run.qd[-1]
        if layout.contacts:
            impulses = np.asarray(run.contact_forces)[-1].ravel() * h
        given |= {
            "t": [t[1]], "q": q, "qd": qd, "action": action, "before_q": before[0], "before_qd": before[1],
            "steps": [n + 1.0], "impulses": impulses,
        }  # fmt: skip
        observation, reward, ends, _ = finish(*(np.asarray(given[a.name]) for a in layout.seen))
        states.append((q, qd))
        forces.append(impulses)
        rewards.append(float(reward[0]))
        if ends[0] > 0.5 or ends[1] > 0.5 or n + 1 >= task.max_steps:
            break
    every = [np.array(x) for x in zip(*states, strict=True)]
    times, own = np.arange(len(states)) * motion.dt, free if len(free) else None
    found = {"rewards": rewards, "touching": (np.array(forces)[:, ::3] > 0.0).astype(int).tolist()}
    return Trajectory(batch.system, times, *every, parameters=own, method=used, options=found)


@dataclass(frozen=True, eq=False)
class _HeldActions:
    """The control of a task whose actions and kept values are free parameters."""

    task: Task
    layout: Layout
    names: tuple[str, ...]

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of the task's control."""
        now.given = {**now.given, HELD: [now.parameter(name) for name in self.names]}
        return ActionControl(self.task, self.layout, HELD).torque(now)


def _with_actions(motion: Dynamics, layout: Layout) -> tuple[System, tuple[str, ...]]:
    """Return a system with actions and kept values as free parameters, and their names."""
    system = with_contacts(motion.system, motion.contacts)
    names = tuple([f"action.{k}" for k in range(layout.actions)] + [f"kept.{k}" for k in range(layout.values)])
    more = tuple(Parameter(name, 0.0, free=True) for name in names)
    mechanism = replace(system.mechanism, parameters=(*system.mechanism.parameters, *more))
    return System(mechanism, system.report), names


def _scaled(actions: Continuous, given: ArrayLike) -> np.ndarray:
    """Return an action as the control takes it."""
    x = np.asarray(given, dtype=float)
    if x.shape != (actions.size,):
        raise InputError(f"act returned {brief(given)} of shape {x.shape}; expected {actions.size} numbers")
    low, high = np.array(actions.low), np.array(actions.high)
    return 0.5 * (low + high) + 0.5 * (high - low) * np.clip(x, -1, 1) if actions.scaled else np.clip(x, low, high)


def _kept(layout: Layout, given: Mapping[str, object]) -> np.ndarray:
    """Return the values of an episode in order; those that are left out are zero."""
    out = np.zeros(layout.values)
    for name, x in given.items():
        if name not in layout.kept:
            raise unknown_name("value of the episode", name, layout.kept)
        at, size = layout.kept[name]
        values = np.atleast_1d(np.asarray(x, dtype=float))
        if values.shape != (size or 1,):
            raise InputError(f"{name} has shape {values.shape}; expected {size or 1} numbers")
        out[at : at + len(values)] = values
    return out
