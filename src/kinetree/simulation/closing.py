"""How loops of a moving mechanism stay closed: the choice of a method, and Newton's method in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from .._support.checks import positive
from ..algebra.scalars import Numbers, Scalar, maximum, where
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..compiler.lanes.form import Kernel
from ..compiler.lower.build import ClosedTree, Request, is_long, tree_maker
from ..compiler.lower.closing_steps import (
    ASTRAY,
    NEAR_ROUNDS,
    allowed_gaps,
    closing_step,
    displace,
    gap_in_parts,
    largest,
)
from ..compiler.lower.loop_pattern import closing_pattern, iterate
from ..dynamics import closed
from ..errors import InputError, argument
from ..model.axes import entries
from ..model.mechanism import Mechanism, kept_with_mechanism, parameter_arguments
from ..model.scales import loop_units
from ..runtime.function import Function
from ..runtime.native import native_kernel
from ..system import System
from .acting.drives import Drives
from .methods.lane_states import closed_states_kernel
from .methods.protocol import Kept
from .outcomes import Ending, Outcome
from .run_states import Run

if TYPE_CHECKING:
    pass

# --- The ways to keep loops closed ---


@dataclass(frozen=True)
class Projection:
    """Correction after each step to the nearest closed position, and to the nearest velocities that keep it closed.

    The nearest is the one whose correction is smallest in the kinetic-energy norm.
    """

    projects: ClassVar[bool] = True
    """Whether loops are closed after each step instead of in the rates."""
    decays: ClassVar[bool] = False
    """Whether gaps remain and decay by the rates."""


@dataclass(frozen=True)
class Baumgarte:
    """Gaps that decay as exp(-rate t), with the rate in 1/s; they never vanish exactly."""

    rate: float = 20.0
    projects: ClassVar[bool] = False
    decays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the rate."""
        object.__setattr__(self, "rate", positive(self.rate, argument("rate", "Baumgarte")))


@dataclass(frozen=True)
class Minimal:
    """A state of independent degrees of freedom; the loops determine the others at every evaluation.

    `independent` are joints by name or indices in qd, by default chosen by rank at the start. They must determine the
    motion throughout the run: at their dead centers they do not.
    """

    independent: tuple[int | str, ...] = ()
    projects: ClassVar[bool] = False
    decays: ClassVar[bool] = False


Loops = Projection | Baumgarte | Minimal
"""The ways to keep loops closed."""


def choose_independent(
    system: System, loops: Loops | None, q: np.ndarray, parameters: np.ndarray | None
) -> Loops | None:
    """Return the method for loops; Minimal gets degrees of freedom that determine the motion at the start."""
    if not isinstance(loops, Loops | None):
        raise InputError(f"loops is {loops!r}; expected Projection(), Baumgarte(rate) or Minimal()")
    if not isinstance(loops, Minimal):
        return loops
    if system.mechanism.rolls:
        raise InputError(
            f"loops is Minimal(), and {system.mechanism.name!r} has equations of velocities alone, such as rolling: "
            "its positions do not follow from independent ones; leave loops out, or give Projection()"
        )
    one = None if parameters is None else parameters.reshape(-1, parameters.shape[-1])[0]
    lead = system.independent(q.reshape(-1, system.nq)[0], parameters=one)
    if not loops.independent:
        return Minimal(lead.at)
    places = _places(system.mechanism, loops.independent)
    if not (
        set(places) <= set(range(system.nv))
        and len(set(places)) == len(places) == lead.mobility
        and np.linalg.matrix_rank(lead.G[list(places)]) == lead.mobility
    ):
        raise InputError(
            f"Minimal: independent is {loops.independent}, and the motion at the start is not determined by these "
            f"entries of qd; give as many as the mobility of {lead.mobility}, such as {lead.at} "
            f"({', '.join(lead.names)}), or none"
        )
    return Minimal(places)


def require_projection(loops: Loops | None) -> None:
    """Refuse a method for loops that driven joints do not support."""
    if loops is not None and not loops.projects:
        raise InputError(f"loops is {loops!r}: with driven joints, loops are closed by Projection(); leave loops out")


def _places(mechanism: Mechanism, independent: Iterable[int | str]) -> tuple[int, ...]:
    """Return indices in qd, given as numbers or by the names of joints."""
    named = [independent] if isinstance(independent, str) else independent
    return tuple(k for x in named for k in (entries(mechanism, x, 1) if isinstance(x, str) else [x]))


def locked_by(loops: Loops | None) -> frozenset[int]:
    """Return the degrees of freedom that corrections of the loops do not change."""
    return frozenset(k for k in loops.independent if isinstance(k, int)) if isinstance(loops, Minimal) else frozenset()


def close_from_locked(
    mechanism: Mechanism,
    given: dict[str, list[Scalar]],
    locked: frozenset[int],
    dtype: str = "float64",
    *,
    rounds: int = 2,
) -> tuple[list[Scalar], list[Scalar]]:
    """Return q and qd as traced scalars, in which the loops determine all but the locked degrees of freedom.

    Two rounds of Newton's method suffice in a stage of a time step, which begins near a closed position.
    """
    q, qd = given["q"], given["qd"]
    for _ in range(rounds):
        now = given | {"q": q}
        q = displace(mechanism, now, closing_step(mechanism, now, locked, dtype)[1])
    return q, closed.closing_speed(tree_maker(mechanism, dtype)(mechanism, given | {"q": q, "qd": qd}), locked)


# --- Nearly redundant equations of loops: they would follow from others except for a small contradiction ---
#
# The usual case is a third rod of a parallelogram that is slightly too long. The equations that come first are
# enforced. The others stay open by the contradiction g, relative to the mechanism's length. Near a singular position
# the enforced equations become weak: positions are off by g / s and velocities by g / s^2, with s^2 the weakest pivot.
# (docs/theory/closed-loops.md)

NEAR = 1e-8
"""The largest contradiction that a run tolerates [rad, or parts of the mechanism's length]."""

EXACT = 1e-12
"""The largest contradiction that is tolerated at singular positions: velocities are off by 1e-4 at most, since
equations with pivots below 1e-8 are not enforced."""

FAITHFUL = 1e-4
"""The largest relative error of velocities that a contradiction may cause."""


def contradicts(mechanism: Mechanism) -> bool:
    """Return whether a mechanism has nearly redundant equations whose contradiction must be checked at every step."""
    return closing_pattern(mechanism).misfit > EXACT


def contradiction(tree: ClosedTree, residual: list[Scalar], locked: frozenset[int] = frozenset()) -> Scalar:
    """Return the contradiction of the equations, relative to the tolerated one, as a traced scalar."""
    units = loop_units(tree.mechanism)[0].tolist()
    gap = largest([x * (1.0 / u) for x, u in zip(residual, units, strict=True)])
    gap = maximum(gap, tree.closing.misfit)
    return maximum(gap * (1.0 / NEAR), gap * (1.0 / FAITHFUL) / closed.at_rest(tree, locked).factors().weakest)


def guard_accelerations(tree: Any, accelerations: list[Scalar], locked: frozenset[int] = frozenset()) -> list[Scalar]:
    """Return accelerations, not finite if the contradiction would change velocities by more than FAITHFUL."""
    if not tree.closing.misfit > EXACT:
        return accelerations
    weakest = closed.at_rest(tree, locked).factors().weakest
    fine = where(weakest < tree.closing.misfit / FAITHFUL, 0.0, 1.0)
    return [a / fine for a in accelerations]


def name_redundant_loops(mechanism: Mechanism, run: Run, parameters: np.ndarray | None) -> Run:
    """Return a run whose failures name the nearly redundant equations that caused them."""
    if not (run.failures and mechanism.closures and contradicts(mechanism)):
        return run
    residual = Function(mechanism, Request("closure_residual")).gufunc

    def text(q: np.ndarray, last: int, own: np.ndarray | None) -> str:
        return name_open_equation(mechanism, residual(q[last], *parameter_arguments(own)))

    return run.open_causes(parameters, text)


def name_open_equation(mechanism: Mechanism, residual: np.ndarray) -> str:
    """Return a text that names the nearly redundant equation with the largest gap at a position; "" if none is open."""
    parts = np.abs(residual) / allowed_gaps(mechanism)
    k = int(np.argmax(parts))
    if not parts[k] > 1.0:
        return ""
    e = mechanism.closures[k]
    return (
        f"loop {e.name!r} ({e.label}) is nearly redundant and stays open by {abs(residual[k]):.3g} {e.unit}, more than "
        f"the run can follow; correct its lengths, or leave it out"
    )


SLACK = 10.0
"""The gap that functions of long mechanisms do not correct, relative to the allowed gap: their sums are longer, and
rounding grows with them."""


START = np.zeros(1)
"""The time of states whose closing does not depend on time [s]."""


def closing_program(
    mechanism: Mechanism,
    locked: frozenset[int] = frozenset(),
    *,
    drives: Drives | None = None,
    dtype: str = "float64",
    kept: Kept | None = None,
) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (q, qd, gap) of one step of Newton's method on the loops.

    The resulting q is one step nearer to a closed position. The resulting qd keeps the loops closed at the given q. The
    gap is the largest residual at the given q, relative to the allowed gap. Locked degrees of freedom do not change.
    Those of `drives` become the ones of the time t, and the gap is above 1 until they are. Entries that are `kept` pass
    as they are: the translations of centered states, on which the gaps do not depend.
    """
    plain = not locked and drives is None and dtype == "float64" and kept is None
    return _plain_closing(mechanism) if plain else _closing(mechanism, locked, drives, dtype, kept)


@kept_with_mechanism
def _plain_closing(mechanism: Mechanism) -> Program:
    """Return the Program that both the start of a run and its steps need."""
    return _closing(mechanism, frozenset(), None, "float64")


def _closing(
    mechanism: Mechanism, locked: frozenset[int], drives: Drives | None, dtype: str, kept: Kept | None = None
) -> Program:
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    given: dict[str, Any] = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    (t,) = given.pop("t")
    before = given["q"]
    if drives is not None:
        given["q"], given["qd"] = drives.placed(t, before, given["qd"])
        given["offsets"] = drives.offsets(t)
        locked = locked | drives.locked
    there, speed, gap = _newton_step(mechanism, given, locked, dtype) if mechanism.closures else (*_state(given), 0.0)
    for k in () if drives is None else drives.q:
        off = before[k] - given["q"][k]
        gap = where((off < 0.0) | (0.0 < off), where(gap > 2.0, gap, 2.0), gap)
    if kept is not None:
        there = [x if k in kept[0] else y for k, (x, y) in enumerate(zip(given["q"], there, strict=True))]
        speed = [x if k in kept[1] else y for k, (x, y) in enumerate(zip(given["qd"], speed, strict=True))]
    outputs = (Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,)), Array("gap", (1,)))
    return Program.of_trace("closing", inputs, outputs, trace, [there, speed, [gap]])


def _state(given: dict[str, list[Scalar]]) -> tuple[list[Scalar], list[Scalar]]:
    return list(given["q"]), list(given["qd"])


def _newton_step(
    mechanism: Mechanism, given: dict[str, list[Scalar]], locked: frozenset[int], dtype: str
) -> tuple[list[Scalar], list[Scalar], Scalar]:
    """Return q after a step, qd that keeps the loops closed, and the gap, as traced scalars."""
    make = tree_maker(mechanism, dtype)
    residual, step = closing_step(mechanism, given, locked, dtype)
    gap = gap_in_parts(mechanism, residual, dtype)
    speed = closed.closing_speed(make(mechanism, given), locked)
    there = displace(mechanism, given, step)
    if contradicts(mechanism):
        astray = contradiction(make(mechanism, given), residual, locked) * ASTRAY[dtype]
        gap = where(gap > 1.0, where(astray > gap, astray, gap), gap)
    return there, speed, gap


class Closer(Protocol):
    """The closing of loops for batches of states."""

    def close(
        self, q: Numbers, qd: Numbers, parameters: Numbers | None = None, t: Numbers = START
    ) -> tuple[Numbers, Numbers]:
        """Return states with their loops closed; NaN if the loops do not close.

        Driven coordinates take their values of the times t [..., 1].
        """
        ...


@dataclass(frozen=True)
class CompiledCloser:
    """A Closer that is one compiled function (t, q, qd[, parameters]) -> (q, qd), with a number of parameters.

    The function is a gufunc, or a kernel on a GPU, made of the kernel that time steps contain too.
    """

    function: Callable[..., tuple[Numbers, ...]]
    parameters: int = 0

    @classmethod
    def of_program(
        cls, program: Program, dtype: str = "float64", build: Callable[[Kernel, str], Any] = native_kernel
    ) -> CompiledCloser:
        """Return the Closer of a `closing_program`; `build` compiles a kernel for numbers of a precision."""
        count = program.inputs[3].size if len(program.inputs) > 3 else 0
        return cls(build(closed_states_kernel(program, dtype=dtype), dtype), count)

    def close(
        self, q: Numbers, qd: Numbers, parameters: Numbers | None = None, t: Numbers = START
    ) -> tuple[Numbers, Numbers]:
        """Return states with their loops closed."""
        given = [t, q, qd]
        if parameters is not None and self.parameters:  # held torques may come after the parameters
            given.append(parameters[..., : self.parameters])
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        with np.errstate(all="ignore"):
            found = self.function(*(np.broadcast_to(x, (*lead, x.shape[-1])) for x in given))
        return found[0], found[1]


class LongCloser:
    """A Closer of a mechanism that is too long for a Program, by compiled functions, which `function` returns."""

    def __init__(self, mechanism: Mechanism, function: Callable[[str], Function]) -> None:
        """Look up or compile the functions."""
        names = ("closure_residual", "closing_step", "closing_speed", "integrate")
        self._residual, self._step, self._speed, self._integrate = (function(name).gufunc for name in names)
        self._allowed = SLACK * allowed_gaps(mechanism)

    def close(
        self, q: Numbers, qd: Numbers, parameters: Numbers | None = None, t: Numbers = START
    ) -> tuple[Numbers, Numbers]:
        """Return states with their loops closed; no joint is driven."""
        more = parameter_arguments(parameters)

        def gap(q: Numbers) -> Numbers:
            return np.abs(self._residual(q, *more) / self._allowed).max(axis=-1, keepdims=True)

        with np.errstate(all="ignore"):
            q = iterate(gap, lambda q: self._integrate(q, self._step(q, *more), *more), q, NEAR_ROUNDS)
            speed, lost = self._speed(q, qd, *more), gap(q) > ASTRAY["float64"]
            return np.where(lost, np.nan, q), np.where(lost, np.nan, speed)


def closer_of(system: System) -> Closer:
    """Return the compiled closing of the loops of a System, which keeps it."""

    def made() -> Closer:
        if is_long(system.mechanism):
            return LongCloser(system.mechanism, system.function)
        return CompiledCloser.of_program(closing_program(system.mechanism))

    return system._parts.part("closer", made)


def closed_run(closer: Closer, run: Run, parameters: Numbers | None) -> Run:
    """Return a run with the loops of all states after the start closed."""
    more = None if parameters is None else parameters[..., None, :]
    before = np.isfinite(run.q).all(axis=-1)
    run.q[..., 1:, :], run.qd[..., 1:, :] = closer.close(run.q[..., 1:, :], run.qd[..., 1:, :], more, run.t[1:, None])
    lost = before & ~np.isfinite(run.q).all(axis=-1)
    for k, at in enumerate(lost.reshape(-1, len(run.t))):
        if at.any():
            last = run.t[int(np.argmax(at)) - 1]
            run.failures.setdefault(k, Ending(Outcome.OPEN, "the loops did not close", last=float(last)))
    return run
