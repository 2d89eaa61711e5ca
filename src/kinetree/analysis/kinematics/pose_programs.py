"""Programs of inverse kinematics: the error of a pose with its Jacobian, and steps within the limits.

The error of the rotation is the rotation vector from the frame to the target, in the frame's axes. The error of the
position is in the target's axes. With F the errors and the gaps of loops, and A dq the change of -F under a step dq,
F and A are the inputs of the step. Rotations are in radians, lengths in units of the characteristic length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...algebra.quaternions import from_matrix, logarithm, unsweep
from ...algebra.scalars import is_number, where
from ...algebra.vectors import Matrix, Vector, matmul, sub, times, transpose
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lower.closing_steps import displace, largest
from ...compiler.lower.sweeps import Tree
from ...dynamics import closure
from ...dynamics.jacobians import jacobian
from ...dynamics.kinematics import pose
from ...joints import kind
from ...model.mechanism import Mechanism
from ...model.scales import characteristic_length, loop_units

Scalars = list[Any]


@dataclass(frozen=True)
class PoseEquations:
    """The equations of one frame: those of the six errors [rotation; position] that are used, then those of loops."""

    mechanism: Mechanism
    frame: str
    used: tuple[bool, ...]

    @cached_property
    def count(self) -> int:
        """The number of equations."""
        return sum(self.used) + len(self.mechanism.closures)

    @cached_property
    def limited(self) -> tuple[tuple[int, int, float], ...]:
        """The entries in q and in qd, and the unit, of coordinates that are angles and lengths."""
        m, out = self.mechanism, []
        units = loop_units(m)[1].tolist()
        for joint, own_q, own_v in zip(m.joints, m.q_slices, m.v_slices, strict=True):
            if kind(joint.kind).QUATERNION is None:
                places = zip(range(own_q.start, own_q.stop), range(own_v.start, own_v.stop), strict=True)
                out += [(at, k, units[k]) for at, k in places]
        return tuple(out)

    def evaluation(self) -> Program:
        """Return the Program (q, target, weights[, parameters]) -> (F, A, size, worst).

        `target` is a 4x4 pose row by row. `size` is half the squared norm of the weighted F. `worst` is the largest
        error that has a weight, without the weight.
        """
        m = self.mechanism
        shapes = {"q": m.nq, "target": 16, "weights": 6, "parameters": len(m.free_parameters)}
        made = _Tracing({name: size for name, size in shapes.items() if size})
        given = made.given
        F, A = self._pose_errors(given)
        weights = [w for w, used in zip(given["weights"], self.used, strict=True) if used]
        worst = largest([where(w > 0.0, x, 0.0) for w, x in zip(weights, F, strict=True)]) if F else 0.0
        F = [w * x for w, x in zip(weights, F, strict=True)]
        A = [[w * x for x in a] for w, a in zip(weights, A, strict=True)]
        gaps, rows = self._gaps(given)
        if gaps:
            worst = largest([worst, *gaps])
        F, A = F + gaps, A + rows
        size = _total(0.5 * x * x for x in F)
        return made.program(
            "pose_errors", {"F": F, "A": [x for row in A for x in row], "size": [size], "worst": [worst]}
        )

    def _pose_errors(self, given: dict[str, Scalars]) -> tuple[Scalars, list[Scalars]]:
        """Return the errors that are used, without weights, and their rows of A."""
        m, t = self.mechanism, given["target"]
        tree, length, units = Tree(m, given), characteristic_length(m), loop_units(m)[1].tolist()
        T = pose(tree, self.frame)
        (R, r), (to, place) = _parts(T), _parts(t)
        J = jacobian(Tree(m, given), self.frame, "world")
        columns = [[J[row * m.nv + k] * u for row in range(6)] for k, u in enumerate(units)]
        errors: Scalars = [0.0] * 6
        A: list[Scalars] = [[0.0] * m.nv for _ in range(6)]
        back, home = transpose(R), transpose(to)
        if any(self.used[:3]):
            turn = logarithm(from_matrix(matmul(back, to)))
            errors[:3] = turn
            for k, column in enumerate(columns):
                w = tuple(column[:3])
                if not all(is_number(x) and x == 0 for x in w):
                    for i, x in enumerate(unsweep(turn, times(back, w))):  # the rate of the rotation vector
                        A[i][k] = x
        if any(self.used[3:]):
            errors[3:] = [x * (1.0 / length) for x in times(home, sub(place, r))]
            for k, column in enumerate(columns):
                for i, x in enumerate(times(home, tuple(column[3:]))):
                    A[3 + i][k] = x * (1.0 / length)
        at = [i for i, used in enumerate(self.used) if used]
        return [errors[i] for i in at], [A[i] for i in at]

    def _gaps(self, given: dict[str, Scalars]) -> tuple[Scalars, list[Scalars]]:
        """Return the residuals of loops with the sign of F, and their rows of A."""
        m = self.mechanism
        equations, units = loop_units(m)
        F, A = [], []
        for row, unit in zip(closure.rows(Tree(m, given)) if m.closures else (), equations.tolist(), strict=True):
            entries = closure.of_row(row)
            F.append(row.residual * (-1.0 / unit))
            A.append([entries.get(k, 0.0) * (u / unit) for k, u in enumerate(units.tolist())])
        return F, A

    def move(self) -> Program:
        """Return the Program (q, dq, lower, upper) -> (q): a step in units of the velocities, within the limits."""
        m = self.mechanism
        made = _Tracing({"q": m.nq, "dq": m.nv, "lower": m.nv, "upper": m.nv})
        given, units = made.given, loop_units(m)[1].tolist()
        there = displace(m, {"q": given["q"]}, [x * u for x, u in zip(given["dq"], units, strict=True)])
        for at, k, _ in self.limited:
            low, high = given["lower"][k], given["upper"][k]
            there[at] = where(there[at] < low, low, where(there[at] > high, high, there[at]))
        return made.program("pose_step", {"q": there})


class _Tracing:
    """A trace with its inputs by name."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.trace = Trace()
        self.inputs = [Array(name, (size,)) for name, size in sizes.items()]
        self.given: dict[str, Scalars] = {
            a.name: [self.trace.input(g, k) for k in range(a.size)] for g, a in enumerate(self.inputs)
        }

    def program(self, name: str, outputs: dict[str, Scalars]) -> Program:
        arrays = [Array(x, (len(entries),)) for x, entries in outputs.items()]
        return Program.of_trace(name, self.inputs, arrays, self.trace, list(outputs.values()))


def _parts(T: Scalars) -> tuple[Matrix, Vector]:
    """Return the rotation and the translation of a 4x4 pose, given row by row."""
    a, b, c = (tuple(T[4 * i : 4 * i + 3]) for i in range(3))
    return (a, b, c), (T[3], T[7], T[11])  # type: ignore[return-value]


def _total(terms: Any) -> Any:
    total: Any = 0.0
    for x in terms:
        total = total + x
    return total
