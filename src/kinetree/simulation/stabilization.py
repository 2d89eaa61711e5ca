"""How the loops of a mechanism stay closed while it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..algebra.scalars import where
from ..analysis.joint_entries import entries
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..compiler.lower.build import Request, is_long, lean_tree
from ..compiler.lower.closed_tree import ClosedTree
from ..compiler.lower.newton import RANK
from ..compiler.lower.sweeps import Tree
from ..compiler.runtime.function import Function
from ..compiler.runtime.native import native
from ..dynamics import closed, closure, states
from ..errors import InputError
from ..model.mechanism import Mechanism, resolved
from ..system import System
from .arguments import positive
from .kernels.runs_of_lanes import ASTRAY, ROUNDS

if TYPE_CHECKING:
    from .engines.runs import Run

GAP = 1e-13
"""The gap that is left alone [rad], and [m] for mechanisms of up to a metre; more for larger ones."""


@dataclass(frozen=True)
class Projection:
    """After each step the state goes to the nearest closed one, and the speeds to those that keep it so.

    Near is what the masses say: the least kinetic energy of a correction.
    """

    projects: ClassVar[bool] = True
    """Loops are closed after each step, and are no part of the rates."""
    decays: ClassVar[bool] = False
    """Gaps stay, and decay by themselves."""


@dataclass(frozen=True)
class Baumgarte:
    """Gaps decay as exp(-rate t) [1/s] by themselves; they are never quite closed."""

    rate: float = 20.0
    projects: ClassVar[bool] = False
    decays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the rate."""
        object.__setattr__(self, "rate", positive(self.rate, "the rate of Baumgarte"))


@dataclass(frozen=True)
class Minimal:
    """The state is that of independent degrees of freedom; the others follow from the loops at every evaluation.

    `independent` are joints by name or places in qd, chosen by rank at the start where none are given. They must lead
    throughout: at their dead centres the others cannot follow.
    """

    independent: tuple[int | str, ...] = ()
    projects: ClassVar[bool] = False
    decays: ClassVar[bool] = False


Loops = Projection | Baumgarte | Minimal
"""The ways to keep loops closed."""


def settled(system: System, loops: Loops | None, q: np.ndarray, parameters: np.ndarray | None) -> Loops | None:
    """Return how loops stay closed, with independent degrees of freedom, which determine the motion at the start."""
    if not isinstance(loops, Loops | None):
        raise InputError(f"loops is {loops!r}; expected Projection(), Baumgarte(rate) or Minimal()")
    if not isinstance(loops, Minimal):
        return loops
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
            f"places in qd; give as many as the mobility of {lead.mobility}, such as {lead.at} "
            f"({', '.join(lead.names)}), or none"
        )
    return Minimal(places)


def _places(mechanism: Mechanism, independent: Iterable[int | str]) -> tuple[int, ...]:
    """Return places in qd, of joints that are named too."""
    named = [independent] if isinstance(independent, str) else independent
    return tuple(k for x in named for k in (entries(mechanism, x, 1) if isinstance(x, str) else [x]))


def locked_by(loops: Loops | None) -> frozenset[int]:
    """Return the degrees of freedom that corrections of the loops leave alone."""
    return frozenset(k for k in loops.independent if isinstance(k, int)) if isinstance(loops, Minimal) else frozenset()


def followed(mechanism: Mechanism, given: dict[str, Any], locked: frozenset[int]) -> tuple[list[Any], list[Any]]:
    """Return q and qd with all but the locked degrees of freedom where the loops put them, as traced scalars.

    Two steps of Newton's method: a stage of a step begins near.
    """
    make = ClosedTree if mechanism.free_parameters else lean_tree
    q, qd = given["q"], given["qd"]
    for _ in range(2):
        step = closed.closing_step(make(mechanism, given | {"q": q}), locked)
        q = states.integrate(Tree(mechanism, given | {"q": q, "qd": step}))
    return q, closed.closing_speed(make(mechanism, given | {"q": q, "qd": qd}), locked)


def closing_program(mechanism: Mechanism, locked: frozenset[int] = frozenset()) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (q, qd, gap) that closes the loops, step by step.

    q is one step of Newton's method nearer to closed, qd keeps loops closed at the given q, and the gap is the largest
    residual at the given q over what is left alone. Degrees of freedom that are locked stay.
    """
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    given.pop("t")
    make = ClosedTree if mechanism.free_parameters else lean_tree
    gap = _largest(closure.closure_residual(Tree(mechanism, given))) * (1.0 / allowed_gap(mechanism))
    step = closed.closing_step(make(mechanism, given), locked)
    speed = closed.closing_speed(make(mechanism, given), locked)
    moved = states.integrate(Tree(mechanism, given | {"qd": step}))
    outputs = (Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,)), Array("gap", (1,)))
    return Program.of_trace("closing", inputs, outputs, trace, [moved, speed, [gap]])


class ProgramCloser:
    """Newton's method by a `closing_program`."""

    def __init__(self, program: Program) -> None:
        """Compile the program."""
        self._once = native(program)
        self._parameters = program.inputs[3].size if len(program.inputs) > 3 else 0

    def close(self, q: np.ndarray, qd: np.ndarray, parameters: np.ndarray | None = None):
        """Return states with their loops closed, or as far as they come; held torques may follow the parameters."""
        more = (parameters[..., : self._parameters],) if parameters is not None and self._parameters else ()
        with np.errstate(all="ignore"):
            for _ in range(ROUNDS):
                moved, speed, gap = self._once([0.0], q, qd, *more)
                if not (open_ := gap > 1.0).any():
                    return q, speed
                q = np.where(open_, moved, q)
            return q, self._once([0.0], q, qd, *more)[1]


class Closer:
    """Newton's method by compiled functions: for mechanisms that are too long for a Program of it."""

    def __init__(self, mechanism: Mechanism, function: Callable[[str], Function] | None = None) -> None:
        """Compile the functions, or take those that `function` returns by name."""
        make = function or (lambda name: Function(mechanism, Request(name)))
        names = ("closure_residual", "closing_step", "closing_speed", "integrate")
        self._of = {name: make(name).gufunc for name in names}
        self._allowed, self._astray = (x * allowed_gap(mechanism) for x in (10, ASTRAY))

    def close(self, q: np.ndarray, qd: np.ndarray, more: tuple = ()) -> tuple[np.ndarray, np.ndarray]:
        """Return states with their loops closed, NaN where they stay open; `more` are the parameters, if any."""
        with np.errstate(all="ignore"):
            gap = self._gap(q, more)
            for _ in range(ROUNDS):
                if not (open_ := gap > self._allowed).any():
                    break
                q = np.where(open_, self._of["integrate"](q, self._of["closing_step"](q, *more), *more), q)
                gap = self._gap(q, more)
            q = np.where(gap > self._astray, np.nan, q)
            return q, self._of["closing_speed"](q, qd, *more)

    def _gap(self, q: np.ndarray, more: tuple) -> np.ndarray:
        return np.abs(self._of["closure_residual"](q, *more)).max(axis=-1, keepdims=True)


def closed_run(closer: ProgramCloser, run: Run, parameters: np.ndarray | None) -> Run:
    """Return a run with the loops of its states closed, but for the start."""
    more = None if parameters is None else parameters[..., None, :]
    q, qd = closer.close(run.q[..., 1:, :], run.qd[..., 1:, :], more)
    run.q[..., 1:, :], run.qd[..., 1:, :] = q, qd
    return run


def closed_start(
    mechanism: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    parameters: np.ndarray | None,
    *,
    function: Callable[[str], Function] | None = None,
    closer: Callable[[], ProgramCloser] | None = None,
):
    """Return a start with the last digits of its loops closed, or say which loop is open and what to do.

    A System's `function`, and its `closer`, have what is compiled already.
    """
    if not mechanism.closures:
        return q, qd
    more = () if parameters is None else (parameters,)
    if is_long(mechanism):
        q2, qd2 = Closer(mechanism, function).close(q, qd, more)
    else:
        made = closer() if closer else ProgramCloser(closing_program(mechanism))
        q2, qd2 = made.close(q, qd, parameters)
    make = function or (lambda name: Function(mechanism, Request(name)))
    gap = make("closure_residual")(q, *more)
    astray = ASTRAY * allowed_gap(mechanism)
    k = _worst(gap, astray)
    if k is not None:
        raise InputError(
            f"q0 does not close {_named(mechanism, k[-1])}: off by {gap[k]:.6g} {mechanism.closures[k[-1]].unit}; "
            "start from system.assemble(q0), and see system.doctor(q0)"
        )
    J = make("closure_jacobian")(q2, *more)
    _refuse_locked(mechanism, J)
    rate = np.einsum("...ij,...j->...i", J, qd)
    k = _worst(rate, astray * max(1.0, float(np.abs(qd).max(initial=0.0))))
    if k is not None:
        raise InputError(
            f"qd0 breaks {_named(mechanism, k[-1])}: it opens at {rate[k]:.6g} {mechanism.closures[k[-1]].unit}/s; "
            "start with system.closing_speed(q0, qd0), or system.consistent_speeds(q0, {joint: speed})"
        )
    return q2, qd2


def _refuse_locked(mechanism: Mechanism, J: np.ndarray) -> None:
    """Raise InputError where the loops leave nothing that could move, in every run."""
    if not J.size or J.shape[-2] < J.shape[-1]:
        return
    sizes = np.linalg.svd(J, compute_uv=False)
    if (sizes > RANK * sizes.max(axis=-1, keepdims=True)).all():
        raise InputError(
            f"the loops of {mechanism.name!r} lock it: they leave none of its {mechanism.nv} degrees of freedom; see "
            "system.doctor(q0) for which say the same, or system.loads(q0, qd0) for what a structure carries"
        )


def _worst(x: np.ndarray, limit: float) -> tuple[int, ...] | None:
    """Return the place of the largest entry, if it is above a limit."""
    if not x.size:  # of no runs
        return None
    k = np.unravel_index(int(np.argmax(np.abs(x))), x.shape)
    return tuple(map(int, k)) if not np.abs(x[k]) <= limit else None


def _named(mechanism: Mechanism, k: int) -> str:
    closure_ = mechanism.closures[k]
    if closure_.label == "coupling":
        return f"coupling {closure_.name!r}"
    return f"loop {closure_.name!r} ({closure_.label})"


def allowed_gap(mechanism: Mechanism) -> float:
    """Return the gap that is left alone: rounding in a mechanism of this size."""
    places = [p.translation for p in _placements(mechanism)]
    return GAP * max([1.0, *(float(hypot(*p)) for p in places)])


def _placements(mechanism: Mechanism) -> list[Any]:
    joints, loops = resolved((mechanism.joints, mechanism.loops), mechanism.values())
    return [j.placement for j in joints] + [x for loop in loops for x in (loop.placement_a, loop.placement_b)]


def _largest(xs: Sequence[Any]) -> Any:
    sizes = [where(x < 0.0, -x, x) for x in xs]
    top = sizes[0]
    for x in sizes[1:]:
        top = where(top < x, x, top)
    return top
