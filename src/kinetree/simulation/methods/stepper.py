"""Native functions made from the rates of a state and a method: whole runs as gufuncs, and single time steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...model.axes import quaternion_places
from ...model.mechanism import Mechanism
from ...runtime.native import native_kernel
from ..acting.drives import Drives
from ..acting.rates import ForcedMechanism, centered_scheme
from ..closing import Baumgarte, Closer, CompiledCloser, Loops, closing_program, locked_by
from .protocol import Integrator, Scheme

if TYPE_CHECKING:
    from ...algebra.scalars import Scalar
    from ...backends.cuda.code import LaneKernel
    from ...compiler.lanes.expressions import Index
    from ...targets.ptx.driver import Device


from dataclasses import replace

from ...compiler.ir.operations import apply
from ...compiler.ir.staging import constant_part, some_outputs
from ...compiler.ir.trace import Trace
from ...compiler.lanes.expressions import Builder, Value
from ...compiler.lanes.form import Kind
from .lane_states import LaneStates, builder_of
from .protocol import FixedScheme


@dataclass(frozen=True)
class Stepper:
    """The integrator of one Program of rates, or of one that is a step, by one method.

    `closing` is the Program that closes loops after each step (`closing.closing_program`). With a `device`, a GPU,
    runs are computed there.
    """

    program: Program
    method: Integrator
    quaternions: tuple[int, ...]
    dtype: str = "float64"
    closing: Program | None = None
    device: Device | None = None

    @property
    def adaptive(self) -> bool:
        """Whether the method controls the length of its steps."""
        return self.method.adaptive

    @cached_property
    def closer(self) -> Closer | None:
        """The closing of loops for states between steps; None without loops."""
        if self.closing is None:
            return None
        build = native_kernel if self.device is None else lambda kernel, _: self._on_device(kernel)
        return CompiledCloser.of_program(self.closing, self.dtype, build)

    @cached_property
    def kernel(self) -> Kernel:
        """The loop over time steps in the lane language; its arguments are listed in the modules of `kernels`."""
        return self._kernel(in_registers=False)

    @cached_property
    def register_kernel(self) -> Kernel:
        """The same loop for processors that keep the state of a run in registers, such as graphics cards."""
        return self._kernel(in_registers=True)

    def _kernel(self, *, in_registers: bool) -> Kernel:
        return self.method.kernel(
            self.program, self.quaternions, self.closing, dtype=self.dtype, in_registers=in_registers
        )

    @cached_property
    def gufunc(self) -> Callable[..., Any]:
        """The compiled function of the arguments of the kernel: a gufunc, or a kernel on a GPU."""
        if self.device is None:
            return native_kernel(self.kernel, self.dtype)
        return self._on_device(self.register_kernel)

    def _on_device(self, kernel: Kernel) -> LaneKernel:
        from ...backends.cuda.code import LaneKernel

        assert self.device is not None, "a kernel on a GPU requires one"
        return LaneKernel(kernel, self.dtype, self.device)


def stepper(dynamics: ForcedMechanism, scheme: Scheme, *, device: Device | None = None) -> Stepper:
    """Return the native integrator of a mechanism under forces and control; loops are projected by default.

    With a `device`, it runs on that GPU.
    """
    d, scheme = dynamics, centered_scheme(scheme, dynamics)
    return stepper_of(d.mechanism, scheme.make_program(d), scheme, d.loops, d.dtype, device, drives=d.drives)


def stepper_of(
    mechanism: Mechanism,
    program: Program,
    scheme: Integrator,
    loops: Loops | None = None,
    dtype: str = "float64",
    device: Device | None = None,
    drives: Drives | None = None,
) -> Stepper:
    """Return the native integrator of a Program of rates, or of one that is a step."""
    alone = drives is None and (isinstance(loops, Baumgarte) or not mechanism.closures)
    kept = scheme.centering.kept if scheme.centering else None
    closing = None if alone else closing_program(mechanism, locked_by(loops), drives=drives, dtype=dtype, kept=kept)
    return Stepper(program, scheme, tuple(quaternion_places(mechanism)), dtype, closing, device)


# --- Single steps (t, q, qd[, tau][, parameters], dt[, steps]) -> (q_next, qd_next), for loops outside of Kinetree ---


# --- Rates whose parameters stay the same over many steps: what is computed once, in every stage, and without loads.

MOST = 2000
"""The most operations of rates that are written a second time, for steps without loads: some 5 kB for an arm."""


@dataclass(frozen=True)
class HeldRates:
    """Rates in parts: `once` before the steps, which `each` stage takes as further inputs.

    `idle` replaces `each` if all held inputs are zero; it is None for large mechanisms. `once` is None if nothing
    follows from the parameters alone.
    """

    once: Program | None
    each: Program
    idle: Program | None


def held_rates(program: Program, held: int) -> HeldRates:
    """Return the parts of rates (t, q, qd, parameters) -> (dq, dqd), whose last `held` parameters are loads.

    The bits are those of the Program.
    """
    both = _with_and_without(program, held) if len(program.ops) <= MOST else program
    parts = constant_part(both, "parameters")
    once, each = parts or (None, both)
    if both is program:
        return HeldRates(once, each, None)
    return HeldRates(once, some_outputs(each, (0, 1)), replace(some_outputs(each, (2, 3)), outputs=program.outputs))


def _with_and_without(program: Program, held: int) -> Program:
    """Return one Program of the outputs and, after them, of the outputs with zeros for the held inputs."""
    trace = Trace()
    given: list[list[Scalar]] = [[trace.input(g, k) for k in range(a.size)] for g, a in enumerate(program.inputs)]
    whole = program.replay(given, apply)
    group = [a.name for a in program.inputs].index("parameters")
    given[group] = [*given[group][:-held], *[0.0] * held]
    idle = [replace(a, name=f"{a.name}_idle") for a in program.outputs]
    results = [*whole, *program.replay(given, apply)]
    return Program.of_trace(program.name, program.inputs, (*program.outputs, *idle), trace, results)


class HeldStates(LaneStates):
    """States whose rates are those without loads if there are none."""

    idle: Value
    """Whether all held inputs of all lanes are zero, when the kernel runs."""

    def test(self, first: int, count: int) -> None:
        """Write the test of the held inputs, which begin at an entry of the inputs."""
        acted = self.k.block("acted", kind=Kind.MASK)
        acted.value = False
        with self.k.loop(count) as j:
            acted.value = acted.value | ~self.inputs[j + first].equals(0.0)
        self.idle = ~self.k.any(acted.value)

    def rates(self, now: Value, stage: Index) -> None:
        """Write k_stage = rates of the state in the inputs, at the time `now`."""
        self.inputs[0] = now
        for condition, name in ((self.idle, "idle"), (~self.idle, "rates")):
            with self.k.when(condition):
                self.k.call(name, self.inputs, self.stages, stage * self.n)


def step_kernel(
    program: Program,
    scheme: FixedScheme,
    quaternions: Sequence[int],
    closing: Program | None = None,
    *,
    dtype: str,
    held: int = 0,
    timed: bool = False,
    many: bool = False,
) -> Kernel:
    """Return a kernel of one step of a method with fixed steps.

    The last `held` parameters of the Program are joint torques, which become the argument `tau`. The time is an
    argument only of a `timed` step, and zero otherwise. With `many`, the number of steps is the last argument, all that
    follows from the parameters alone is computed once, before the first of them, and loads that are zero take no time.
    """
    parts = held_rates(program, held) if many else HeldRates(None, program, None)
    k = builder_of("step", parts.each, closing)
    k.programs |= {name: p for name, p in (("once", parts.once), ("idle", parts.idle)) if p}
    given = _Arguments(k, parts.each, held, timed=timed, many=many)
    kind = HeldStates if parts.idle else LaneStates
    states = kind(k, parts.each, scheme.memory, quaternions, closing, dtype)
    begin, length = k.block("begin"), k.block("length")
    begin.value = 0.0
    with k.each_lane():
        if given.t:
            begin.value = given.t[()]
        length.value = given.dt[()]
        states.read((given.q, given.qd), states.y)
        states.give(given.parameters)
        states.give(given.tau, shift=given.free)
    if parts.once:
        _compute_once(states, parts.once, given.free + held)
    if isinstance(states, HeldStates):
        states.test(1 + states.n + given.free, held)
    step = scheme.step(states, parts.each)
    if given.steps:
        with k.loop(k.whole(given.steps[()])) as m:
            step(begin.value, length.value, m)
    else:
        step(begin.value, length.value, k.constant(0, Kind.COUNT))
    with k.each_lane():
        states.write(states.y, given.after)
    return k.kernel()


class _Arguments:
    """The arguments of a step in order; those that it does not have are None."""

    def __init__(self, k: Builder, program: Program, held: int, *, timed: bool, many: bool) -> None:
        nq, nv = program.inputs[1].size, program.inputs[2].size
        self.free = sum(a.size for a in program.inputs if a.name == "parameters") - held
        self.t = k.array("t") if timed else None
        self.q, self.qd = k.array("q", nq), k.array("qd", nv)
        self.tau = k.array("tau", held) if held else None
        self.parameters = k.array("parameters", self.free) if self.free else None
        self.dt = k.array("dt")
        self.steps = k.array("steps", shared=True) if many else None
        self.after = k.array("q_next", nq, output=True), k.array("qd_next", nv, output=True)


def _compute_once(states: LaneStates, once: Program, parameters: int) -> None:
    """Write what follows from the parameters alone into the inputs behind them."""
    k = states.k
    kept = k.block("kept", once.outputs[0].size)
    k.call("once", states.inputs, kept)
    with k.loop(kept.memory.size) as j:
        states.inputs[j + (1 + states.n + parameters)] = kept[j]
