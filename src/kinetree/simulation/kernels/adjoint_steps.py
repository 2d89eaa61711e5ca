"""Steps differentiated backward: the gradient of a number with respect to the state before each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...compiler.ir.program import Program
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.form import Kernel
from ..rosenbrock import Rosenbrock
from ..slopes import Slopes
from ..tableaus import Pair, Tableau
from .lane_states import LaneStates
from .method_steps import stages_of
from .recorded_steps import StepInputs
from .reverse_implicit import ReverseImplicit
from .reverse_rosenbrock import ReverseRosenbrock
from .reverse_steps import ReverseStep


@dataclass(frozen=True)
class Reversed:
    """The rates, or the step of a method that is one, and the closing of loops, each with its product `back`.

    `back` has the inputs of the Program, then cotangents of q and qd after it. Its outputs are the cotangents of q and
    qd before it and, if there are any, of the parameters. A Rosenbrock method also requires the `slopes` of the rates,
    and `bend`: the product of the derivative of the Jacobian along a tangent of t, q and qd with cotangents.
    """

    rates: Program
    rates_back: Program
    closing: Program | None
    closing_back: Program | None
    slopes: Slopes | None = None
    bend: Program | None = None

    def programs(self) -> dict[str, Program]:
        """Return the Programs by their names in the kernel."""
        named = {
            "rates": self.rates, "rates_back": self.rates_back,
            "closing": self.closing, "closing_back": self.closing_back, "bend": self.bend,
        }  # fmt: skip
        return {name: program for name, program in named.items() if program is not None}


def adjoint_kernel(
    programs: Reversed,
    tableau: Tableau | Pair | None,
    quaternions: Sequence[int],
    *,
    held: int,
    sampled: bool = False,
    dtype: str = "float64",
) -> Kernel:
    """Return (q, qd, end_q, end_qd[, parameters], times, lengths[, torques]) -> (at_q, at_qd[, at_p][, at_tau]).

    q and qd are the states at all times, one step apart. `end` are the cotangents of the last state, and `at` those of
    the first one, of the parameters, and of the torques held during each step. Runs of a Pair have steps of their own,
    of which those of length zero are passed over. If `sampled`, more_q and more_qd are the last arguments: cotangents
    of all states but the last one.
    """
    k = Builder("adjoint", programs.programs())
    own = isinstance(tableau, Pair)
    arrays = _Arguments(k, programs.rates, held, own=own, sampled=sampled)
    given = arrays.steps
    states = LaneStates(k, programs.rates, stages_of(tableau), quaternions, programs.closing, dtype)
    step = _step_of(states, tableau, given.free + held, programs.slopes)
    with k.each_lane():
        given.fill(states)
        states.read(arrays.ends, step.cotangent)
        if arrays.at_tau:
            with k.loop(held) as j:
                arrays.at_tau[k.extent() - 1, j] = 0.0
    with k.loop(given.free) as j:
        step.total[j] = 0.0
    with k.loop(k.extent() - 1) as i:
        at = k.extent() - 2 - i
        with k.each_lane():
            states.read(arrays.known, states.y, at)
            given.hold(states, at)
        with k.loop(held) as j:
            step.total[j + given.free] = 0.0
        (step.write_own if own else step.write)(*given.span(at))
        if arrays.at_tau or arrays.more:
            with k.each_lane():
                if arrays.at_tau:
                    with k.loop(held) as j:
                        arrays.at_tau[at, j] = step.total[j + given.free]
                if arrays.more:
                    step.add_to_cotangent(arrays.more, at)
    with k.each_lane():
        states.write(step.cotangent, arrays.starts)
        if arrays.at_p:
            with k.loop(given.free) as j:
                arrays.at_p[j] = step.total[j]
    return k.kernel()


class _Arguments:
    """The arguments of the kernel in order; those that it does not have are None."""

    def __init__(self, k: Builder, rates: Program, held: int, *, own: bool, sampled: bool) -> None:
        nq, nv = (a.size for a in rates.inputs[1:3])
        self.known = k.array("q", "t", nq), k.array("qd", "t", nv)
        self.ends = k.array("end_q", nq), k.array("end_qd", nv)
        self.steps = StepInputs(k, rates, held, own=own)
        self.more = (k.array("more_q", "t", nq), k.array("more_qd", "t", nv)) if sampled else None
        self.starts = k.array("at_q", nq, output=True), k.array("at_qd", nv, output=True)
        self.at_p = k.array("at_p", self.steps.free, output=True) if self.steps.free else None
        self.at_tau = k.array("at_tau", "t", held, output=True) if held else None


def _step_of(states: LaneStates, tableau: Tableau | Pair | None, parameters: int, slopes: Slopes | None) -> ReverseStep:
    """Return the writer of steps of a method in reverse."""
    if isinstance(tableau, Rosenbrock):
        assert slopes is not None, "a Rosenbrock method requires the Jacobian"
        return ReverseRosenbrock(states, tableau, parameters, slopes)
    if isinstance(tableau, Tableau) and tableau.implicit:
        return ReverseImplicit(states, tableau, parameters)
    return ReverseStep(states, tableau, parameters)
