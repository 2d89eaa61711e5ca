"""What a method of integration provides: its kernel, tangent, reverse and single step, behind one protocol.

A scheme is data of a family, such as the tableau of an explicit Runge-Kutta method. The families are `Explicit` and
`TimeStep` in `fixed_steps`, `Implicit` in `implicit_steps`, `Pair` in `adaptive_steps` and `Rosenbrock` in
`rosenbrock`. Kernels, exports and derivatives of runs ask a scheme for what they need, never for its family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel

if TYPE_CHECKING:
    from ..acting.rates import ForcedMechanism
    from .lane_states import LaneStates
    from .reverse_steps import ReverseStep
    from .tangent_states import Varied

Row = tuple[float, ...]
"""The coefficients of a stage."""

Step = Callable[[Value, Value, Value], None]
"""The code of a step; its arguments are the time at the beginning of an interval, the length of a step, its number."""


Kept = tuple[frozenset[int], frozenset[int]]
"""Entries of q and of qd."""


@dataclass(frozen=True)
class Centering:
    """The Programs (t, q, qd[, parameters]) -> (q, qd) from a state to its centered one, and back.

    Floating trees take a step in centered states: see dynamics/centered.py. `center` is None for Programs that are a
    step themselves and center their states. `kept` are the entries of q and qd that loops leave alone: these are then
    closed before the way back, so that they do not change the momentum.
    """

    center: Program | None
    uncenter: Program
    kept: Kept | None = None


class Integrator(Protocol):
    """A method that computes runs in native code."""

    @property
    def adaptive(self) -> bool:
        """Whether the method controls the length of its steps."""
        ...

    @property
    def centering(self) -> Centering | None:
        """The change to centered states around each step; None without one."""
        ...

    @property
    def evaluations(self) -> int:
        """The number of evaluations of the rates in a step that `recording_kernel` keeps, or in a fixed one."""
        ...

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return the loop over steps between output times, for processors that keep states `in_registers` or not.

        Its arguments are those of `fixed_steps.steps_between` or of `adaptive_steps.Adaptive`.
        """
        ...


class Scheme(Integrator, Protocol):
    """A method whose runs also have derivatives."""

    @property
    def make_program(self) -> Callable[[ForcedMechanism], Program]:
        """The function of `acting.rates` that makes the Program to be integrated, of a `ForcedMechanism`."""
        ...

    @property
    def on_gpu(self) -> bool:
        """Whether runs are also computed on a GPU."""
        ...

    def centered(self, centering: Centering) -> Scheme:
        """Return the scheme with a Centering, or itself if it takes no steps in centered states."""
        ...

    def tangent_kernel(self, program: Program, varied: Varied, quaternions: Sequence[int]) -> Kernel:
        """Return the kernel of runs with the derivatives of their states."""
        ...

    def recording_kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, held: int
    ) -> Kernel:
        """Return a kernel that keeps the state before every step; the last `held` parameters are those of a step."""
        ...

    @property
    def memory(self) -> int:
        """The number of stages in memory that `reverse_step` requires."""
        ...

    def reverse_step(self, states: LaneStates, parameters: int) -> ReverseStep:
        """Return the writer of one step in reverse."""
        ...


@runtime_checkable
class FixedScheme(Scheme, Protocol):
    """A method with steps of a given length."""

    @property
    def name(self) -> str:
        """The name of the method, and of its kernels."""
        ...

    def step(self, states: LaneStates, program: Program, *, patient: bool = False) -> Step:
        """Return the code of one step; `patient` makes its stages exact enough to be differentiated."""
        ...
