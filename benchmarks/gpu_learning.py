"""Environments for learning on an NVIDIA GPU: whole steps per second, what bounds them, and the time of a call."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kinetree as kt
from book import Section
from kinetree.compiler.ir.operations import Op
from kinetree.compiler.lanes.form import Call, Constant, Kernel, Loop, Statement, When, nested_statements
from kinetree.environments.device import DeviceBatch
from kinetree.environments.kernels import CHANGING
from kinetree.environments.robots import UR5_TORQUES, arm_reach
from kinetree.environments.tasks import Discrete, Task
from kinetree.environments.vector import Batch, named_task
from measure import Figure, NotMeasured, agree
from report import Table
from robot_files import ROBOTS

PRECISIONS = ("float32", "float64")
ENVS = {"CartPole": 1 << 23, "Acrobot": 1 << 23, "Pendulum": 1 << 23}
MANY = 1 << 20
"""The environments of the other tasks."""
TARGETS = {"CartPole": 5.0, "UR5 reach": 1.0, "quadruped, standing": 0.1, "quadruped, random actions": 0.1}
"""The billions of steps per second to reach."""
SETTLED, STEPS = 60, 20
"""The steps before a measurement, after which episodes have ended at different times, and those of a measurement."""
CALLS = 300
"""The calls whose time on the host is measured together."""
AGREE = {"float64": 1e-6, "float32": 1e-2}
"""The largest difference of observations, which are float32, from the CPU's after a few steps."""
PER_CYCLE = {"float32": 128, "float64": 64}
"""The operations that a multiprocessor of an H200 starts in a cycle."""


SEEDS, LEARNING, LEARNED = 5, 15.0, 950.0
"""The policies that learn to walk, the time of each [s], and the return of an episode at which it walks, of 1,050."""
WALKERS, WALK = 4096, 450
"""The quadrupeds of a test, and its steps of 0.02 s, of which the first 100 are not counted."""


@dataclass(frozen=True)
class Case:
    """A task on the GPU in a precision: billions of steps per second, bytes and operations of a step, and resources."""

    name: str
    dtype: str
    rate: Figure
    bytes: int
    operations: int
    registers: int
    local: int


def section(quick: bool) -> Section:
    """Return the steps per second of all tasks, and the times of calls."""
    try:
        torch: Any = __import__("torch")
        from kinetree.targets.ptx.driver import driver

        device = driver().device()
    except (ImportError, kt.KinetreeError) as error:
        raise NotMeasured(str(error)) from None
    rounds = 3 if quick else 9
    found = [measure(torch, device, name, task, size, dtype, rounds)
             for name, task, size in cases() for dtype in PRECISIONS]  # fmt: skip
    copied = copy_rate(torch, rounds)
    clock = device.properties["multiprocessors"] * device.properties["clock_khz"] * 1e3
    rows = []
    for c in found:
        target, traffic = TARGETS.get(c.name), c.rate.median * c.bytes / copied
        busy = c.rate.median * 1e9 * c.operations / (clock * PER_CYCLE[c.dtype])
        verdict = "" if target is None else f">= {target:g}: {'met' if c.rate.median >= target else 'missed'}"
        rows.append((c.name, c.dtype, c.rate.text(3), verdict, str(c.bytes), f"{100 * traffic:.0f} %",
                     str(c.operations), f"{100 * busy:.0f} %", str(c.registers), str(c.local)))  # fmt: skip
    calls = [(what, Figure.of(times).text(2)) for what, times in times_of_calls(torch, rounds).items()]
    cart = next(c.rate.median for c in found if (c.name, c.dtype) == ("CartPole", "float32"))
    return Section(
        "Environments on a GPU",
        f"{cart:.3g} billion whole steps of CartPole per second in float32 on an {device.name}.",
        (
            Table(
                "Whole steps per second",
                ("task", "precision", "10^9 steps/s", "target", "bytes", "of a copy's rate", "operations",
                 "of the peak", "registers", "local memory [B]"),
                tuple(rows),
                f"{device.name}: action, motion, observation (float32), reward, ends and new starts with random "
                f"numbers in one launch, of {ENVS['CartPole']:,} environments of the classics and {MANY:,} of others. "
                f"Bytes are those that a step reads and writes, beside a copy on this GPU at {copied:,.0f} GB/s; "
                "operations are those outside of conditions, with one turn of each solution of contacts, beside one "
                "per cycle and lane. A step of the quadruped has four time steps with hard contact, in which threads "
                "of a warp take different paths; random actions are even over the whole range.",
            ),
            walking(torch, quick),
            Table("Times of calls on the host [us]", ("call", "time"), tuple(calls), "Without waiting for the GPU."),
        ),
    )  # fmt: skip


def cases() -> list[tuple[str, Task, float]]:
    """Return names, tasks and sizes of random actions."""
    ur5 = kt.load(ROBOTS[0].path)
    reach = arm_reach(ur5, ur5.bodies[-1].name, UR5_TORQUES)
    walker = named_task("Quadruped")
    return [
        *((name, named_task(name), 1.0) for name in ("CartPole", "Acrobot", "Pendulum", "FourBar")),
        ("UR5 reach", reach, 1.0), ("quadruped, standing", walker, 0.0), ("quadruped, random actions", walker, 1.0),
    ]  # fmt: skip


def measure(torch: Any, device: Any, name: str, task: Task, size: float, dtype: str, rounds: int) -> Case:
    """Return the figures of a task, after a comparison with the CPU."""
    _compare(torch, task, dtype)
    envs = DeviceBatch(task, ENVS.get(name, MANY), precision=dtype)
    actions = [_actions(torch, envs, size, k) for k in range(4)]
    envs.reset(seed=0)
    for k in range(SETTLED):
        envs.step(actions[k % 4])
    rates = []
    for _ in range(rounds):
        begin, end = device.event(timing=True), device.event(timing=True)
        stream = torch.cuda.current_stream().cuda_stream
        begin.record(stream)
        for k in range(STEPS):
            envs.step(actions[k % 4])
        end.record(stream)
        end.synchronize()
        rates.append(envs.num_envs * STEPS / end.since(begin) / 1e9)
    if envs.lost:
        raise RuntimeError(f"{name}: {envs.lost} episodes were lost")
    kernel = envs.kernels["env_step"]
    resources = kernel.resources()
    return Case(name, dtype, Figure.of(rates), _bytes(envs), _operations(kernel.kernel, kernel.kernel.body),
                resources["registers"], resources["local"])  # fmt: skip


def _compare(torch: Any, task: Task, dtype: str) -> None:
    """Compare a few steps with those of the CPU."""
    short = task.changed(max_steps=4)
    cpu, gpu = Batch(short, 64, "same_step"), DeviceBatch(short, 64, precision=dtype)
    cpu.reset(1)
    gpu.reset(seed=1)
    for k in range(6):
        a = _actions(torch, gpu, 0.3, k)
        agree(f"{task.name} {dtype}", gpu.step(a)[0].cpu().numpy(), cpu.step(a.cpu().numpy())[0], AGREE[dtype])


def _actions(torch: Any, envs: DeviceBatch, size: float, seed: int) -> Any:
    """Return random actions on the GPU."""
    made = torch.Generator(envs.device).manual_seed(seed)
    a = envs.task.actions
    if isinstance(a, Discrete):
        return torch.randint(a.count, (envs.num_envs,), device=envs.device, generator=made)
    return size * (2.0 * torch.rand((envs.num_envs, a.size), device=envs.device, generator=made) - 1.0)


def _bytes(envs: DeviceBatch) -> int:
    """Return what a step reads and writes, without new starts."""
    sizes, number = {name: size for name, (_, size) in envs.made.places.items()}, np.dtype(envs.precision).itemsize
    changing = sum(sizes[name] for name in CHANGING)
    rows = (2 * changing + sizes["kept"] + sizes["parameters"]) * number
    terms = len(envs.made.finish[1])
    out = 4 * (2 * envs.num_obs + 1 + (terms if terms > 1 else 0)) + 3
    return rows + out + (8 if isinstance(envs.task.actions, Discrete) else 4 * envs.num_actions)


def _operations(kernel: Kernel, body: Iterable[Statement]) -> int:
    """Return the operations of Programs that every step computes."""
    programs, total = dict(kernel.programs), 0
    for s in body:
        if isinstance(s, Call):
            total += sum(op[0] is not Op.INPUT for op in programs[s.program].ops)
        elif isinstance(s, Loop):
            times = int(s.stop.value) if isinstance(s.stop, Constant) else 1
            total += times * _operations(kernel, s.body)
        elif not isinstance(s, When):
            total += _operations(kernel, nested_statements(s))
    return total


def copy_rate(torch: Any, rounds: int) -> float:
    """Return the bytes per second of a copy on the GPU, read and written [10^9/s]."""
    x = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
    y, best = torch.empty_like(x), 0.0
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            y.copy_(x)
        end.record()
        end.synchronize()
        best = max(best, 20 * x.numel() / begin.elapsed_time(end) / 1e6)
    return best


def times_of_calls(torch: Any, rounds: int) -> dict[str, list[float]]:
    """Return the times of calls on the host without waiting [us]."""
    arm = kt.load(ROBOTS[0].path)
    step = arm.on("cuda").stepper(dt=1e-3)
    q, qd, tau, q2, qd2 = torch.zeros((5, 64, arm.nv), dtype=torch.float64, device="cuda").unbind()
    envs = DeviceBatch(named_task("CartPole"), 64)
    envs.reset(seed=0)
    actions = _actions(torch, envs, 1.0, 0)
    found = {
        "step of a UR5 by torch, out=": _spent(torch, lambda: step(q, qd, tau, out=(q2, qd2)), rounds),
        "step of environments": _spent(torch, lambda: envs.step(actions), rounds),
    }
    try:
        cupy: Any = __import__("cupy")
    except ImportError:
        return found
    own = [cupy.asarray(x) for x in (q, qd, tau, q2, qd2)]
    known = arm.on("cuda").stepper(dt=1e-3)
    found["step of a UR5 by CuPy, out="] = _spent(torch, lambda: known(*own[:3], out=tuple(own[3:])), rounds)
    return found


def _spent(torch: Any, call: Callable[[], object], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - begin) / CALLS * 1e6)
    return times[1:]


def walking(torch: Any, quick: bool) -> Table:
    """Return how several policies of the quadruped learn to follow commanded velocities."""
    place = Path(__file__).resolve().parents[1] / "examples" / "ppo.py"
    spec = importlib.util.spec_from_file_location("ppo", place)
    assert spec is not None and spec.loader is not None
    ppo = sys.modules["ppo"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ppo)
    rows, count = [], 0
    for seed in range(2 if quick else SEEDS):
        begin = time.perf_counter()
        learner = ppo.Learner("Quadruped", "cuda", seed)
        torch.cuda.synchronize()
        made = time.perf_counter() - begin
        curve = learner.learn(LEARNING, quiet=True)
        reached = next((f"{t:.1f}" for t, mean in curve if mean >= LEARNED), "-")
        points = ", ".join(f"{t:.0f} s: {mean:.0f}" for t, mean in curve[:: max(1, len(curve) // 6)])
        count = learner.s.envs
        errors, falls = follow(torch, learner)
        rows.append(
            (
                str(seed),
                f"{made:.1f}",
                reached,
                points,
                f"{curve[-1][1]:.0f}",
                *(f"{x:.3f}" for x in errors),
                str(falls),
            )
        )
    note = (
        f"Proximal policy optimization by examples/ppo.py with {count:,} quadrupeds, {LEARNING:.0f} s each. "
        "Code is compiled for the first one, unless it is cached. Then the means of the policy walk: errors are root "
        f"mean squares over {WALKERS:,} commands and {0.02 * (WALK - 100):.0f} s, from rest."
    )
    heads = ("seed", "compiled, made [s]", f"return {LEARNED:.0f} after [s]", "return over time", "last return",
             "error forward [m/s]", "aside [m/s]", "turning [rad/s]", "falls")  # fmt: skip
    return Table("A quadruped learns to follow a velocity", heads, tuple(rows), note)


def follow(torch: Any, learner: Any) -> tuple[list[float], int]:
    """Return the errors of the velocities of a policy without randomness, and the number of falls."""
    envs, policy, falls, errors = DeviceBatch(named_task("Quadruped"), WALKERS), learner.policy, 0, []
    x, _ = envs.reset(seed=10**6)
    with torch.no_grad():
        for k in range(WALK):
            x, _, terminated, _, _ = envs.step(policy.acts(policy.scaled(x)))
            falls += int(terminated.sum())
            if k >= 100:
                errors.append(envs.qd[:, [5, 3, 1]] - envs.kept("command"))
    return torch.stack(errors).square().mean(dim=(0, 1)).sqrt().tolist(), falls
