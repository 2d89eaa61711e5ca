"""Environments in the memory of a GPU: a step of all is one kernel, on tensors of torch that stay there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import whole
from .._support.optional import torch as require_torch
from ..backends.cuda.code import LaneKernel
from ..backends.cuda.libraries import Torch
from ..errors import InputError, brief, unknown_name
from ..targets import ptx
from .kernels import MODES, WORDS, Compilable, begin_kernel, step_kernel
from .spaces import spaces_of
from .tasks import Continuous, Task
from .vector import PRECISIONS, seeded_words, seeds_of

if TYPE_CHECKING:
    from ..targets.ptx.driver import Device

    Tensor = Any
    """A tensor of torch, which is an optional package."""

TORCH = Torch()
"""How tensors are described, and which stream they use."""

SPARE = 0.95
"""The part of the free memory of a GPU that environments may take."""


@lru_cache(maxsize=16)
def _compiled(task: Task, precision: str) -> Compilable:
    return Compilable(task, precision, on_gpu=True)


class DeviceBatch:
    """Environments on a GPU: states, actions, observations, rewards and ends are tensors in its memory.

    `step` queues one kernel on the current stream and returns at once, and CUDA graphs can capture it. It returns the
    same tensors in every step, which the next step overwrites. As learners expect, it has `num_envs`, `num_obs`,
    `num_actions`, `device`, `max_episode_length` and `episode_length_buf`.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int,
        mode: str = "same_step",
        device: str = "cuda",
        *,
        precision: str = "float32",
        dtype: str = "float32",
    ) -> None:
        """Compile a task for a GPU, or read its code from the cache, and take the memory of its environments."""
        torch = require_torch()
        if mode not in MODES:
            raise unknown_name("autoreset mode", str(mode), MODES)
        if precision not in PRECISIONS:
            raise unknown_name("precision", str(precision), PRECISIONS)
        if dtype not in PRECISIONS or (dtype, precision) == ("float64", "float32"):
            raise InputError(f"dtype is {dtype}; observations are float32, or float64 with precision='float64'")
        self.task, self.num_envs, self.mode, self.precision = task, whole(num_envs, "num_envs"), mode, precision
        self.made = made = _compiled(task, precision)
        gpu = ptx.driver.driver().device(device_number(device))
        self.device = TORCH.place(gpu.index)
        self._index, n = gpu.index, self.num_envs
        self.num_obs, self.max_episode_length = made.observed, task.max_steps
        self.num_actions = task.actions.size if isinstance(task.actions, Continuous) else 1
        self._refuse_too_many(gpu, n, dtype)
        self.kernels: dict[str, LaneKernel] = {}

        def columns(size: int, kind: str) -> Tensor:  # neighboring environments are next to each other in memory
            return torch.zeros((size, n), dtype=getattr(torch, kind), device=self.device).T

        def rows(*shape: int, kind: str) -> Tensor:
            return torch.zeros((n, *shape), dtype=getattr(torch, kind), device=self.device)

        self._rows, self._words = columns(made.width, precision), columns(WORDS, "float64")
        self.observation, self.final = rows(made.observed, kind=dtype), rows(made.observed, kind=dtype)
        self.reward = rows(kind="float32")
        self.terminated, self.truncated, self.lost_now = (rows(kind="bool") for _ in range(3))
        self._terms = columns(len(made.finish[1]), "float32")
        self._all = torch.ones(n, dtype=torch.bool, device=self.device)
        continuous = isinstance(task.actions, Continuous)
        self._wanted = (n, self.num_actions) if continuous else (n,), torch.float32 if continuous else torch.int64
        observed = "" if dtype == precision else dtype
        out = (self._rows, self._words, self.observation, self.reward, self.terminated, self.truncated, self.lost_now)
        out += (self._terms,) if self._terms.shape[1] > 1 else ()
        out += (self.final,) if mode == "same_step" else ()
        shape, kind = self._wanted
        self._step = self._prepared(gpu, step_kernel(made, mode, observed), torch.empty(shape, dtype=kind), out)
        out = (self._rows, self._words, self.observation)
        self._begin = self._prepared(gpu, begin_kernel(made, observed), self._all, out)
        self.begun = False
        self.infos = {"time_outs": self.truncated, "lost": self.lost_now}
        if mode == "same_step":
            self.infos |= {"final_obs": self.final}

    def _prepared(self, gpu: Device, kernel: Any, first: Tensor, outputs: Sequence[Tensor]) -> Any:
        """Return the launch of a kernel whose first argument changes."""
        places: list[int] = []
        for x in (first, *outputs):
            places += _place(x)
        self.kernels[kernel.name] = LaneKernel(kernel, self.precision, gpu)  # keeps the code in memory
        return self.kernels[kernel.name].prepare(places, self.num_envs)

    def _refuse_too_many(self, gpu: Device, n: int, dtype: str) -> None:
        """Raise InputError for environments that do not fit into the memory of the GPU."""
        made, number = self.made, np.dtype(self.precision).itemsize
        each = made.width * number + 8 * WORDS + 2 * made.observed * np.dtype(dtype).itemsize
        each += 4 * (1 + len(made.finish[1]) + self.num_actions) + 4
        free = SPARE * gpu.free_memory()
        if n * each > free:
            raise InputError(
                f"num_envs is {n}: they take {n * each / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB of {gpu.name} are "
                f"free; give at most {int(free / each)}"
            )

    # --- states

    @property
    def q(self) -> Tensor:
        """The coordinates of all environments, [n, nq]: a view, which may be written."""
        return self._part("q")

    @property
    def qd(self) -> Tensor:
        """The velocities of all environments, [n, nv]: a view, which may be written."""
        return self._part("qd")

    @property
    def parameters(self) -> Tensor:
        """The free parameters of the mechanism in the present episodes, [n, np]."""
        return self._part("parameters")

    @property
    def episode_length_buf(self) -> Tensor:
        """The numbers of steps of the present episodes, [n], as whole numbers; it may be set."""
        return self._part("steps")[:, 0].long()

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        self._part("steps")[:, 0] = steps

    @property
    def terms(self) -> dict[str, Tensor]:
        """The terms of the reward of the last step by name, each [n]: views, which the next step overwrites."""
        names = self.made.finish[1]
        if len(names) == 1:
            return {names[0]: self.reward}
        return {name: self._terms[:, k] for k, name in enumerate(names)}

    @property
    def lost(self) -> int:
        """The number of episodes that ended because something was not finite; waits for the GPU."""
        return int(self._part("lost").sum())

    def kept(self, name: str) -> Tensor:
        """Return what the resets of the present episodes have drawn under a name, [n] or [n, size]: a view."""
        return self.made.kept(self._rows, name)

    def _part(self, name: str) -> Tensor:
        return self.made.part(self._rows, name)

    # --- episodes

    def reset(
        self,
        seed: int | Sequence[int] | None = None,
        mask: Tensor | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Begin new episodes, all or those of a mask [n], and return the observations [n, o] and infos.

        Environment i gets the seed `seed` + i, or its own of a sequence, and the random numbers that it has on the CPU;
        without one, its random numbers go on. A `state` has q and qd of the environments instead of those drawn.
        """
        torch = require_torch()
        chosen = self._all if mask is None else self._checked_mask(mask)
        if seed is not None or not self.begun:
            words = torch.as_tensor(seeded_words(seeds_of(seed, self.num_envs)), device=self.device)
            some = chosen[:, None] if self.begun else self._all[:, None]
            self._words.copy_(torch.where(some, words, self._words))
        self.begun = True
        self._start(self._begin, chosen)
        if state is not None:
            for name, value in state.items():
                if name not in ("q", "qd"):
                    raise unknown_name("part of a state", str(name), ("q", "qd"))
                part = self._part(name)
                given = torch.as_tensor(value, dtype=part.dtype, device=self.device)
                try:
                    part.copy_(torch.where(chosen[:, None], given.expand_as(part), part))
                except RuntimeError:
                    shape, wanted = tuple(given.shape), tuple(part.shape)
                    raise InputError(f"{name} has shape {shape}; expected {wanted}, or {wanted[1:]} for all") from None
            self._start(self._begin, torch.zeros_like(self._all))
        return self.observation, {}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Advance by a step; return observations [n, o], rewards [n], terminated [n], truncated [n] and infos.

        Actions are float32 [n, a], or int64 [n] for a choice; a choice that does not exist, and anything that is not
        finite, ends the episode with the reward 0: infos["lost"] has these environments, `lost` counts them. With
        same_step, infos["final_obs"] has the observations before the resets of this step.
        """
        if not self.begun:
            raise InputError("call reset before step")
        shape, kind = self._wanted
        try:
            suitable = actions.shape == shape and actions.dtype is kind and actions.device == self.device
        except AttributeError:
            suitable = False
        if not suitable:
            raise self._unsuitable(actions)
        self._start(self._step, actions)
        return self.observation, self.reward, self.terminated, self.truncated, self.infos

    def _start(self, launch: Any, first: Tensor) -> None:
        launch.start(enumerate(_place(first)), TORCH.stream(self._index))

    def _checked_mask(self, mask: Tensor) -> Tensor:
        found = mask if isinstance(mask, require_torch().Tensor) else None
        if found is None or tuple(found.shape) != (self.num_envs,) or str(found.dtype) != "torch.bool":
            raise InputError(f"the mask of a reset is {_described(mask)}; expected torch.bool of ({self.num_envs},)")
        return found.to(self.device)

    def _unsuitable(self, actions: object) -> InputError:
        shape, kind = self._wanted
        return InputError(
            f"actions are {_described(actions)}; {self.task.name} takes a tensor of shape {shape}, {kind}, on "
            f"{self.device}"
        )

    @property
    def observation_space(self) -> Any:
        """The space of the observations of one environment, for learners that ask for it; needs Gymnasium."""
        return spaces_of(self, str(self.observation.dtype).removeprefix("torch."))[0]

    @property
    def action_space(self) -> Any:
        """The space of the actions of one environment; needs Gymnasium."""
        return spaces_of(self, "float32")[1]

    def with_dones(self, group: str = "") -> WithDones:
        """Return the same environments with a single mask for ends, as rl_games and RSL-RL take them.

        With a `group`, observations are a TensorDict with one entry of this name, as RSL-RL 3 and later take them.
        """
        if self.mode != "same_step":
            raise InputError(f"the autoreset mode is {self.mode!r}; learners that take dones need 'same_step'")
        return WithDones(self, group)

    def with_columns(self) -> WithColumns:
        """Return the same environments with rewards and ends as columns [n, 1], as skrl takes them."""
        if self.mode != "same_step":
            raise InputError(f"the autoreset mode is {self.mode!r}; skrl needs 'same_step'")
        return WithColumns(self)


class Learned:
    """The same environments for a library of learners: tensors of a step stay as they are in the next one."""

    def __init__(self, batch: DeviceBatch) -> None:
        """Store the environments."""
        self.batch, self.cfg, self.unwrapped = batch, {}, batch

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the environments."""
        return getattr(self.__dict__["batch"], name)

    @property
    def episode_length_buf(self) -> Tensor:
        """The numbers of steps of the present episodes, [n]; it may be set."""
        return self.batch.episode_length_buf

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        self.batch.episode_length_buf = steps

    def close(self) -> None:
        """Do nothing: the memory of the environments is freed with them."""

    def _stepped(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Step and return copies: learners keep observations until after the next step."""
        x, reward, terminated, truncated, infos = self.batch.step(actions)
        infos = {name: value.clone() for name, value in infos.items()}
        return x.clone(), reward.clone(), terminated.clone(), truncated.clone(), infos


class WithDones(Learned):
    """Environments whose step returns observations, rewards, dones and infos, for RSL-RL and rl_games.

    It has the attributes of a DeviceBatch. infos["time_outs"] are the ends at which an episode was cut off.
    """

    def __init__(self, batch: DeviceBatch, group: str = "") -> None:
        """Store the environments, and the name of the group of observations."""
        super().__init__(batch)
        self.group = group

    def reset(self) -> Any:
        """Begin new episodes and return the observations."""
        return self._grouped(self.batch.reset()[0].clone())

    def step(self, actions: Tensor) -> tuple[Any, Tensor, Tensor, dict[str, Tensor]]:
        """Advance by a step; return observations, rewards, whether episodes ended, and infos."""
        x, reward, terminated, truncated, infos = self._stepped(actions)
        return self._grouped(x), reward, terminated | truncated, infos

    def get_observations(self) -> Any:
        """Return the present observations; without a group, with a mapping of others, which is empty."""
        if not self.batch.begun:
            self.batch.reset()
        x = self._grouped(self.batch.observation.clone())
        return x if self.group else (x, {"observations": {}})

    def _grouped(self, x: Tensor) -> Any:
        return self._made({self.group: x}, batch_size=[len(x)]) if self.group else x

    @cached_property
    def _made(self) -> Any:
        """The class TensorDict."""
        try:
            return import_module("tensordict").TensorDict
        except ImportError:
            raise InputError(
                "groups of observations need the package tensordict, which RSL-RL 3 and later bring along; without it, "
                "with_dones() has plain tensors"
            ) from None

    # --- what rl_games asks for besides

    def get_number_of_agents(self) -> int:
        """Return 1: all environments have one agent."""
        return 1

    def get_env_info(self) -> dict[str, Any]:
        """Return the spaces, and the number of values of a state."""
        return {"observation_space": self.observation_space, "action_space": self.action_space, "value_size": 1}

    def has_action_masks(self) -> bool:
        """Return False: all actions are allowed in every state."""
        return False

    def seed(self, seed: int) -> None:
        """Begin new episodes with the random numbers of a seed."""
        self.batch.reset(seed=seed)

    def set_train_info(self, frames: int, *_: object) -> None:
        """Take no notice of how far the training is: the task does not change."""

    def get_env_state(self) -> None:
        """Return None: environments have nothing to be saved with a policy."""

    def set_env_state(self, state: object) -> None:
        """Take no notice of what was saved with a policy."""


class WithColumns(Learned):
    """Environments whose rewards and ends are columns [n, 1], for the agents and trainers of skrl.

    It has the attributes of a DeviceBatch.
    """

    num_agents, state_space = 1, None

    def reset(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the present observations: episodes begin on their own, and all of them at the first call."""
        if not self.batch.begun:
            self.batch.reset()
        return self.batch.observation.clone(), {}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Advance by a step; choices may be a column, too."""
        x, reward, terminated, truncated, infos = self._stepped(actions.reshape(self.batch._wanted[0]))
        return x, reward[:, None], terminated[:, None], truncated[:, None], infos

    def state(self) -> None:
        """Return None: critics see the observations."""

    def render(self, *_: object, **__: object) -> None:
        """Draw nothing: `record` and a page show episodes."""


def _place(x: Tensor) -> list[int]:
    """Return the address of a tensor and its strides [bytes], as kernels take them."""
    size = x.element_size()
    return [x.data_ptr(), *(s * size for s in x.stride())]


def _described(x: object) -> str:
    """Return the shape, the type and the device of what is given instead of a tensor on a GPU."""
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is None:
        return brief(x)
    return f"a {type(x).__name__} of shape {tuple(shape)}, {dtype}, on {getattr(x, 'device', 'the host')}"


def device_number(device: str) -> int:
    """Return the number of a GPU in "cuda:1", 0 for "cuda"; InputError for other texts, and without such a GPU."""
    from ..backends.cuda.system import device_index

    return device_index(device) or 0
