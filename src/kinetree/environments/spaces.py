"""Gymnasium's vector and single environments around a batch, with their spaces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.optional import optional
from ..errors import InputError, unknown_name
from .kernels import MODES
from .tasks import Continuous, Discrete, Task
from .vector import Batch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from .device import DeviceBatch


def require_gymnasium(part: str = "") -> Any:
    """Return the package gymnasium, or a part of it; InputError if it is not installed."""
    return optional(f"gymnasium{part}", "Environments", "")


def spaces_of(batch: Batch | DeviceBatch, dtype: DTypeLike) -> tuple[Any, Any]:
    """Return the spaces of a single observation and a single action."""
    spaces = require_gymnasium(".spaces")

    task, size = batch.task, batch.made.observed
    bounds = []
    for name, sign in (("low", -1.0), ("high", 1.0)):
        given = getattr(task, name)
        if given is not None and len(given) != size:
            raise InputError(f"task {task.name!r} has {len(given)} numbers in {name}; it observes {size}")
        bounds.append(np.full(size, sign * np.inf, dtype) if given is None else np.array(given, dtype))
    a = task.actions
    if isinstance(a, Discrete):
        return spaces.Box(*bounds, dtype=dtype), spaces.Discrete(a.count)
    assert isinstance(a, Continuous)
    low, high = ((-1.0,) * a.size, (1.0,) * a.size) if a.scaled else (a.low, a.high)
    space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)
    return spaces.Box(*bounds, dtype=dtype), space


@cache
def gymnasium_classes() -> tuple[type, type]:
    """Return the classes of vector and single environments; they are made when Gymnasium is first needed."""
    gymnasium, vector, utils = (require_gymnasium(part) for part in ("", ".vector", ".vector.utils"))

    modes = {name: vector.AutoresetMode[name.upper()] for name in MODES}

    class Environments(vector.VectorEnv):
        """Environments of a task as Gymnasium's vector environment; `batch` has their states."""

        def __init__(self, batch: Batch, dtype: DTypeLike, render_mode: str | None) -> None:
            """Make the spaces."""
            self.batch, self.num_envs, self._dtype = batch, batch.num_envs, np.dtype(dtype)
            self.metadata = _shown(batch) | {"autoreset_mode": modes[batch.mode]}
            self.render_mode = _render_mode(batch, render_mode)
            self.single_observation_space, self.single_action_space = spaces_of(batch, dtype)
            self.observation_space = utils.batch_space(self.single_observation_space, self.num_envs)
            self.action_space = utils.batch_space(self.single_action_space, self.num_envs)

        def __repr__(self) -> str:
            """Return the task, the number of environments and the precision."""
            return f"<Environments of {self.batch.about}>"

        def reset(
            self, *, seed: int | np.integer | Sequence[int] | None = None, options: dict | None = None
        ) -> tuple[np.ndarray, dict]:
            """Begin new episodes: see Batch.reset. Options: "reset_mask", "q" and "qd"."""
            if isinstance(seed, int | np.integer):
                super().reset(seed=int(seed))
            mask, state = _options(options)
            return self.batch.reset(seed, mask, state).astype(self._dtype, copy=False), {}

        def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
            """Advance all environments by a step. With same_step, infos have the observations before resets."""
            b, infos = self.batch, {}
            before = b.lost
            found, rewards, terminated, truncated = b.step(actions)
            done = None
            if b.mode == "same_step" and (done := terminated | truncated).any():
                final = np.full(self.num_envs, None, dtype=object)
                for k in np.flatnonzero(done):
                    final[k] = b.final[k].astype(self._dtype)
                infos = {"final_obs": final, "_final_obs": done, "final_info": {}, "_final_info": done.copy()}
            if b.lost > before:
                lost = b.lost_now
                infos |= {"lost": lost, "_lost": lost.copy()}
            return found.astype(self._dtype, copy=False), rewards, terminated, truncated, infos

        def render(self) -> tuple[np.ndarray, ...] | None:
            """Return a picture of each environment, as Gymnasium's vector environments do."""
            if self.render_mode is None:
                return None
            return tuple(self.batch.picture(k) for k in range(self.num_envs))

    class Environment(gymnasium.Env):
        """One environment of a task; `batch` has its state."""

        def __init__(
            self,
            task: Task,
            dtype: DTypeLike = np.float32,
            render_mode: str | None = None,
            precision: str = "float64",
        ) -> None:
            """Make the spaces."""
            self.batch, self._dtype = Batch(task, 1, "disabled", precision=precision), np.dtype(dtype)
            self.metadata = _shown(self.batch)
            self.render_mode = _render_mode(self.batch, render_mode)
            self.observation_space, self.action_space = spaces_of(self.batch, dtype)

        def __str__(self) -> str:
            """Return the task and the precision."""
            return f"<Environment of {self.batch.about}>"

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
            """Begin a new episode; options are "q" and "qd"."""
            super().reset(seed=seed)
            _, state = _options(options)
            return self.batch.reset(seed, None, state)[0].astype(self._dtype, copy=False), {}

        def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict]:
            """Advance by a step."""
            found, rewards, terminated, truncated = self.batch.step(np.asarray(action)[None])
            infos = {"lost": True} if self.batch.lost_now[0] else {}
            return (
                found[0].astype(self._dtype, copy=False),
                float(rewards[0]),
                bool(terminated[0]),
                bool(truncated[0]),
                infos,
            )

        def render(self) -> np.ndarray | None:
            """Return a picture of the environment."""
            return None if self.render_mode is None else self.batch.picture()

    return Environments, Environment


RENDER = "rgb_array"
"""The render mode of Gymnasium that environments have."""


def _shown(batch: Batch) -> dict[str, Any]:
    """Return what Gymnasium is told about pictures."""
    return {"render_modes": [RENDER], "render_fps": max(1, round(1.0 / batch.task.motion.dt))}


def _render_mode(batch: Batch, mode: str | None) -> str | None:
    """Return a render mode; an error for an unknown one, and for a task without a mechanism."""
    if mode is not None:
        if mode != RENDER:
            raise unknown_name("render mode", str(mode), (RENDER,))
        _ = batch.system
    return mode


def _options(options: dict | None) -> tuple[np.ndarray | None, dict | None]:
    """Return the mask and the state of the options of a reset."""
    given = dict(options or {})
    mask = given.pop("reset_mask", None)
    for name in given:
        if name not in ("q", "qd"):
            raise unknown_name("option of a reset", str(name), ("reset_mask", "q", "qd"))
    return mask, given or None
