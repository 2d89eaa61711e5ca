"""Environments as users hold them: a batch in native code; their names, and how Gymnasium knows them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import whole
from .._support.tables import count_text
from ..errors import InputError, ModelError, brief, unknown_name
from ..results.trajectory import Trajectory
from ..runtime.kernels import KernelFunction
from ..simulation.options import with_contacts
from ..system import System
from .kernels import LOST, M2, MODES, WORDS, Compilable, begin_kernel, step_kernel
from .tasks import Discrete, Dynamics, Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from ..plots.animation import Pictures

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: the difference between two states of SplitMix64."""


def seeded_words(seeds: np.ndarray) -> np.ndarray:
    """Return the words of the random numbers of seeds [n], [n, 6]: the output of SplitMix64 from each seed."""
    with np.errstate(over="ignore"):
        z = seeds.astype(np.uint64)[:, None] * np.uint64(0xD1342543DE82EF95) + np.uint64(GOLDEN) * np.arange(
            1, WORDS + 1, dtype=np.uint64
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z % np.uint64(M2 - 1)).astype(float) + 1.0  # none is zero, and all are below both moduli


def seeds_of(seed: ArrayLike | None, n: int) -> np.ndarray:
    """Return the seeds of n environments: those after a seed, others that are given, or at random, [n]."""
    if seed is None:
        return np.random.SeedSequence().generate_state(n, np.uint64)
    if isinstance(seed, int | np.integer):
        if seed < 0:
            raise InputError(f"seed is {seed}; give a whole number of at least 0")
        return np.uint64(seed) + np.arange(n, dtype=np.uint64)
    found = np.asarray(seed)
    if found.shape != (n,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise InputError(f"seed is {brief(seed)}; give a whole number, or {n} of them")
    return found.astype(np.uint64)


PRECISIONS = ("float32", "float64")
"""The precisions of the motion, on the CPU and on a GPU."""


@lru_cache(maxsize=16)
def _compiled(task: Task, precision: str) -> Compilable:
    return Compilable(task, precision)


class Batch:
    """Environments of a task in one native call for a step, on arrays of NumPy, without any other package.

    `precision` is that of the motion and of all arrays. `lost` is the number of episodes that ended because a state, an
    observation or a reward was not finite.
    """

    def __init__(
        self, task: Task, num_envs: int, mode: str = "next_step", threads: int = 1, *, precision: str = "float64"
    ) -> None:
        """Compile a task, or read its code from the cache."""
        if not isinstance(task, Task):
            raise InputError(f"task is {brief(task)}; give a kt.Task, or the name of one: {', '.join(names())}")
        if mode not in MODES:
            raise unknown_name("autoreset mode", str(mode), MODES)
        if precision not in PRECISIONS:
            raise unknown_name("precision", str(precision), PRECISIONS)
        self.task, self.num_envs, self.mode, self.precision = task, whole(num_envs, "num_envs"), mode, precision
        self.threads, self.lost = threads, 0
        self.made = made = _compiled(task, precision)
        self._step, self._begin = (KernelFunction(x, precision) for x in (step_kernel(made, mode), begin_kernel(made)))
        n, o = self.num_envs, made.observed
        _refuse_too_many(n, np.dtype(precision).itemsize * (made.width + 2 * o + 8 + task.actions.size) + 8 * WORDS)
        self._rows, self._words = self._zeros(n, made.width), np.zeros((n, WORDS))
        self._final = self._zeros(n, o)
        self._ends, self._reward = self._zeros(2, n), self._zeros(n)
        self._terms = self._zeros(n, len(made.finish[1]))
        self._begun = False
        self._pictures: dict[tuple, Pictures] = {}

    def __repr__(self) -> str:
        """Return the task, the number of environments and the precision."""
        return f"<Batch of {self.about}>"

    @property
    def about(self) -> str:
        """The task, the number of environments and the precision, as text."""
        return f"{self.task.name!r}: {count_text(self.num_envs, 'environment')} in {self.precision}"

    def _zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, self.precision)

    @property
    def q(self) -> np.ndarray:
        """The coordinates of all environments, [n, nq]: a view, which may be written."""
        return self._part("q")

    @property
    def qd(self) -> np.ndarray:
        """The velocities of all environments, [n, nv]: a view, which may be written."""
        return self._part("qd")

    @property
    def steps(self) -> np.ndarray:
        """The numbers of steps of the present episodes, [n]."""
        return self._part("steps")[:, 0]

    @property
    def parameters(self) -> np.ndarray:
        """The free parameters of the mechanism in the present episodes, [n, np]."""
        return self._part("parameters")

    @property
    def terms(self) -> dict[str, np.ndarray]:
        """The terms of the reward of the last step by name, each [n]."""
        names = self.made.finish[1]
        if len(names) == 1:
            return {names[0]: self._reward.copy()}
        return {name: self._terms[:, k].copy() for k, name in enumerate(names)}

    @property
    def final(self) -> np.ndarray:
        """The observations before the resets of the last step, [n, o], in the mode same_step."""
        return self._final

    def kept(self, name: str) -> np.ndarray:
        """Return what the resets of the present episodes have drawn under a name, [n] or [n, size]."""
        return self.made.kept(self._rows, name)

    def _part(self, name: str) -> np.ndarray:
        return self.made.part(self._rows, name)

    def reset(
        self,
        seed: int | np.integer | Sequence[int] | None = None,
        mask: np.ndarray | None = None,
        state: Mapping | None = None,
    ) -> np.ndarray:
        """Begin new episodes, all or those of a mask [n], and return the observations [n, o].

        Environment i gets the seed `seed` + i, or its own of a sequence; without one, its random numbers go on. A
        `state` has q and qd of the environments instead of those that are drawn.
        """
        n = self.num_envs
        begins = self._zeros(n) + 1.0 if mask is None else _mask(mask, n).astype(self.precision)
        chosen = begins > 0.5
        if seed is not None or not self._begun:
            words = seeded_words(seeds_of(seed, n))
            some = chosen if self._begun else slice(None)
            self._words[some] = words[some]
        self._begun = True
        observation = self._zeros(n, self.made.observed)
        self._run(self._begin, (begins,), (self._rows, self._words, observation))
        if state is not None:
            self._place(state, chosen)
            self._run(self._begin, (self._zeros(n),), (self._rows, self._words, observation))
        return observation

    def _place(self, state: Mapping, chosen: np.ndarray) -> None:
        for name, value in state.items():
            if name not in ("q", "qd"):
                raise unknown_name("part of a state", str(name), ("q", "qd"))
            part = self._part(name)
            try:
                given = np.broadcast_to(np.asarray(value, dtype=float), part.shape)
            except (TypeError, ValueError):
                raise InputError(
                    f"{name} has shape {np.shape(value)}; expected {part.shape}, or {part.shape[1:]} for all"
                ) from None
            part[chosen] = given[chosen]

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Advance by a step; return observations [n, o], rewards, and whether episodes were terminated or cut off.

        An environment whose state, observation or reward is not finite has the reward 0 and is cut off; `lost_now`
        has those of the last step, and `lost` their number since the start.
        """
        if not self._begun:
            raise InputError("call reset before step")
        given = self._actions(actions)
        n = self.num_envs
        observation = np.empty((n, self.made.observed), self.precision)
        self._reward = np.empty(n, self.precision)
        out = (self._rows, self._words, observation, self._reward, *self._ends)
        out += (self._terms,) if self._terms.shape[1] > 1 else ()
        out += (self._final,) if self.mode == "same_step" else ()
        self._run(self._step, (given,), out)
        terminated, truncated = self._ends > 0.5
        self.lost += int(np.count_nonzero(self._ends[1] == LOST))
        return observation, self._reward.copy(), terminated, truncated

    def record(
        self,
        act: Callable[[np.ndarray], ArrayLike],
        steps: int,
        *,
        seed: int | np.integer | Sequence[int] | None = None,
        index: int = 0,
    ) -> Trajectory:
        """Return the motion of an environment from a new start of all, under actions act(observation).

        It has a sample per step, and ends where its episode ends. Tasks of equations need a `system` with their
        coordinates, as Gymnasium's classics have.
        """
        motion, system = self.task.motion, self.system
        if not 0 <= whole(index, "index", least=0) < self.num_envs:
            raise InputError(f"index is {index}; there are {self.num_envs} environments")
        observation, states = self.reset(seed), []
        own = self.parameters[index].copy() if self.made.layout.parameters else None
        states.append((self.q[index].copy(), self.qd[index].copy()))
        for _ in range(whole(steps, "steps")):
            observation, _, terminated, truncated = self.step(act(observation))
            if self.mode == "same_step" and (terminated | truncated)[index]:
                break
            states.append((self.q[index].copy(), self.qd[index].copy()))
            if (terminated | truncated)[index]:
                break
        q, qd = (np.array(x) for x in zip(*states, strict=True))
        method = self.made.stepping.method if self.made.stepping else "euler"
        options = {"dt": motion.dt / (motion.substeps if isinstance(motion, Dynamics) else 1)}
        return Trajectory(system, np.arange(len(q)) * motion.dt, q, qd, parameters=own, method=method, options=options)

    @property
    def system(self) -> System:
        """The mechanism of the task, with its contacts; InputError for equations without one."""
        motion = self.task.motion
        if isinstance(motion, Dynamics):
            return with_contacts(motion.system, motion.contacts)
        if motion.system is None:
            raise InputError(
                f"{self.task.name} has equations without a mechanism, which has no pictures and no Trajectory; give "
                "kt.Equations(..., system=...) one with the same coordinates"
            )
        return motion.system

    def picture(self, index: int = 0, size: tuple[int, int] = (640, 480)) -> np.ndarray:
        """Return a picture of an environment as it is now, [height, width, 3] in uint8."""
        from ..plots.animation import Pictures

        if not 0 <= whole(index, "index", least=0) < self.num_envs:
            raise InputError(f"index is {index}; there are {self.num_envs} environments")
        q, own = self.q[index].copy(), None
        if self.made.layout.parameters:
            own = self.parameters[index].copy()
        key = (size, None if own is None else own.tobytes())
        if key not in self._pictures:
            start = Trajectory(self.system, np.zeros(1), q[None], self.qd[index][None], parameters=own)
            self._pictures = {key: Pictures(start, size)}  # of the last mechanism alone
        if not np.isfinite(q).all():
            raise InputError(f"environment {index} is not finite; reset it")
        t = self.steps[index] * self.task.motion.dt
        return self._pictures[key].pixels(q, f"{self.task.name}   t = {t:.2f} s")

    @property
    def lost_now(self) -> np.ndarray:
        """Whether each environment was lost in the last step, since something was not finite, [n]."""
        return self._ends[1] == LOST

    def _actions(self, actions: ArrayLike) -> np.ndarray:
        a, n = self.task.actions, self.num_envs
        shape = (n,) if isinstance(a, Discrete) else (n, a.size)
        try:
            found = np.asarray(actions)
        except (TypeError, ValueError):
            found = np.empty(0, object)
        kinds = "iu" if isinstance(a, Discrete) else "iuf"
        if found.shape != shape or found.dtype.kind not in kinds:
            what = "whole numbers" if isinstance(a, Discrete) else "numbers"
            raise InputError(
                f"actions have shape {found.shape} and type {found.dtype}; {self.task.name} takes {what} of shape "
                f"{shape}"
            )
        if isinstance(a, Discrete) and found.size and (found.min() < 0 or found.max() >= a.count):
            bad = int(np.flatnonzero((found < 0) | (found >= a.count))[0])
            raise InputError(f"actions[{bad}] is {found[bad]}; {self.task.name} takes 0 to {a.count - 1}")
        return found.astype(self.precision)

    def _run(self, function: KernelFunction, given: tuple, out: tuple) -> None:
        with np.errstate(all="ignore"):  # environments that are not finite are counted
            function.run(given, (), out, None if self.threads == 1 else self.threads)


def _mask(mask: ArrayLike, n: int) -> np.ndarray:
    found = np.asarray(mask)
    if found.shape != (n,) or found.dtype != np.bool_:
        raise InputError(f"the mask of a reset has shape {found.shape} and type {found.dtype}; expected bool of ({n},)")
    return found


def _refuse_too_many(n: int, each: int) -> None:
    """Raise InputError for environments of so many bytes that do not fit into the memory of the machine."""
    needed = float(n * each)
    most = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else 2.0**62
    if needed > most:
        raise InputError(
            f"num_envs is {n}: they take {needed / 2**30:.3g} GiB, and this machine has {most / 2**30:.3g} GiB; give "
            f"at most {int(most / each)}"
        )


# --- Gymnasium's environments ---


def env(
    task: Task | str,
    num_envs: int | None = None,
    *,
    device: str = "cpu",
    autoreset: str = "next_step",
    threads: int = 1,
    dtype: DTypeLike = np.float32,
    render_mode: str | None = None,
    precision: str | None = None,
) -> Any:
    """Return environments of a task, a name in `kinetree.environments.robots.TASKS`, or a task file (.toml).

    They have Gymnasium's interface.

    With `num_envs`, it is a gymnasium.vector.VectorEnv whose step is one native call on so many `threads` (0 for all
    cores), otherwise a single gymnasium.Env. `autoreset` is "next_step", "same_step" or "disabled"; `dtype` is that of
    observations. With `render_mode="rgb_array"`, `render()` returns pictures. `.batch` has the states.

    `precision` is that of the motion, "float32" or "float64", which is usual on the CPU. With `device="cuda"`, it is a
    DeviceBatch, whose states, actions and results are tensors of torch on that GPU, and whose motion is usually
    computed in float32.
    """
    found = named_task(task) if isinstance(task, str) else task
    if device != "cpu":
        from .device import DeviceBatch

        if num_envs is None or threads != 1 or render_mode is not None:
            raise InputError(f"num_envs is {num_envs}; on a GPU give a number, and neither threads nor render_mode")
        kind = {"dtype": np.dtype(dtype).name, "precision": precision or "float32"}
        return DeviceBatch(found, num_envs, autoreset, device, **kind)
    kind = {"precision": precision or "float64"}
    from .spaces import gymnasium_classes

    vector, single = gymnasium_classes()
    if num_envs is None:
        return single(found, dtype, render_mode, **kind)
    return vector(Batch(found, num_envs, autoreset, threads, **kind), dtype, render_mode)


def names() -> list[str]:
    """Return the names of the tasks that come with Kinetree."""
    from .robots import TASKS

    return list(TASKS)


def named_task(name: str) -> Task:
    """Return a task by name, or that of a file (.toml)."""
    from .robots import TASKS

    if any(mark in name for mark in "/\\."):
        from .task_files import read_task

        return read_task(name)

    if name not in TASKS:
        error = unknown_name("task", name, TASKS)
        raise ModelError(error.what, remedy=f"{error.remedy}; or give a file, such as reach.toml")
    return TASKS[name]()


def register() -> None:
    """Register all tasks with Gymnasium, as kinetree/NAME-v0; the import of kinetree.environments does."""
    from .spaces import require_gymnasium

    gymnasium = require_gymnasium()
    for name in names():
        gymnasium.register(
            f"kinetree/{name}-v0",
            entry_point="kinetree.environments.vector:_make",
            vector_entry_point="kinetree.environments.vector:_make_many",
            kwargs={"task": name},
        )


def _make(task: str, **options: Any) -> Any:
    return env(task, **options)


def _make_many(task: str, num_envs: int = 1, **options: Any) -> Any:
    return env(task, num_envs, **options)
