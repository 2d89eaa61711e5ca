"""Inverse kinematics in native code: the error of a pose with its Jacobian, and damped steps from one start per lane.

The error of the rotation is the rotation vector from the frame to the target, in the frame's axes. The error of the
position is in the target's axes. With F the errors and the gaps of loops, and A dq the change of -F under a step dq,
F and A are the inputs of the step. Rotations are in radians, lengths in units of the characteristic length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ...algebra.quaternions import from_matrix, logarithm, unsweep
from ...algebra.scalars import Scalar, is_number, where
from ...algebra.vectors import Matrix, Vector, matmul, sub, times, to_matrix, transpose
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kernel, Kind
from ...compiler.lower.closing_steps import displace, largest
from ...compiler.lower.sweeps import Tree
from ...dynamics import closure
from ...dynamics.jacobians import jacobian
from ...dynamics.kinematics import pose
from ...joints import kind
from ...model.mechanism import Mechanism
from ...model.scales import characteristic_length, loop_units

Scalars = list[Scalar]


@dataclass(frozen=True)
class PoseEquations:
    """The equations of one frame: of the six errors [rotation; position] the ones used, then the loops' equations."""

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
    return to_matrix(T[4 * i : 4 * i + 3] for i in range(3)), (T[3], T[7], T[11])


def _total(terms: Iterable[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x in terms:
        total = total + x
    return total


# --- Damped least-squares steps of lanes: the dq that minimizes |A dq - F|^2 + damping |dq|^2, as loops over memory.
#
# The smaller of the two normal matrices, A A^T and A^T A, is factored by Cholesky.


class DampedSteps:
    """The memory of A [n, nv] and of its factors in an unfinished kernel, and the statements of a solution."""

    def __init__(self, k: Builder, equations: int, unknowns: int) -> None:
        """Declare the memory."""
        self.k, self.n, self.nv = k, equations, unknowns
        self.dual = equations <= unknowns
        self.size = min(equations, unknowns)
        self.A, self.open = k.block("A", equations * unknowns), k.block("open", unknowns)
        self.S, self.x = k.block("S", self.size * self.size), k.block("x", self.size)
        self.inverse, self.sum = k.block("inverse", self.size), k.block("sum")

    def solve(self, F: Block, damping: Value, dq: Block) -> None:
        """Write the step into dq [nv]; columns of A are scaled by `open`, 1 or 0."""
        self._matrix(damping)
        self._right_side(F)
        self._factor(damping)
        self._substitute()
        k = self.k
        with k.loop(self.nv) as j:
            if self.dual:
                total = self.total(self.n, lambda i: self.A[i * self.nv + j] * self.x[i])
                dq[j] = total * self.open[j]
            else:
                dq[j] = self.x[j] * self.open[j]

    def total(self, count: object, term: Callable[[Value], Value]) -> Value:
        """Write a sum of terms and return it."""
        self.sum.value = 0.0
        with self.k.loop(count) as i:
            self.sum.value = self.sum.value + term(i)
        return self.sum.value

    def _matrix(self, damping: Value) -> None:
        """Write the lower triangle of the normal matrix, with the damping on its diagonal."""
        k, A, nv = self.k, self.A, self.nv
        with k.loop(self.size) as i:
            with k.loop(i + 1) as j:
                if self.dual:
                    entry = self.total(nv, lambda m, i=i, j=j: A[i * nv + m] * A[j * nv + m] * self.open[m])
                else:
                    both = self.open[i] * self.open[j]
                    entry = self.total(self.n, lambda m, i=i, j=j: A[m * nv + i] * A[m * nv + j]) * both
                self.S[i * self.size + j] = entry
            self.S[i * self.size + i] = self.S[i * self.size + i] + damping

    def _right_side(self, F: Block) -> None:
        with self.k.loop(self.size) as i:
            if self.dual:
                self.x[i] = F[i]
            else:
                self.x[i] = self.total(self.n, lambda m, i=i: self.A[m * self.nv + i] * F[m]) * self.open[i]

    def _factor(self, damping: Value) -> None:
        """Write the Cholesky factor over the matrix; pivots are at least the damping, as in exact arithmetic."""
        k, S, size = self.k, self.S, self.size
        with k.loop(size) as i:
            with k.loop(i) as j:
                inner = self.total(j, lambda m, i=i, j=j: S[i * size + m] * S[j * size + m])
                S[i * size + j] = (S[i * size + j] - inner) * self.inverse[j]
            square = self.total(i, lambda m, i=i: S[i * size + m] * S[i * size + m])
            pivot = S[i * size + i] - square
            root = (pivot > damping).where(pivot, damping).sqrt()
            self.inverse[i] = k.cast(1.0, Kind.LANE) / root

    def _substitute(self) -> None:
        """Write the solution over the right-hand side."""
        k, S, x, size = self.k, self.S, self.x, self.size
        with k.loop(size) as i:
            inner = self.total(i, lambda m, i=i: S[i * size + m] * x[m])
            x[i] = (x[i] - inner) * self.inverse[i]
        with k.loop(size) as back:
            i = size - 1 - back
            inner = self.total(back, lambda m, i=i: S[(i + 1 + m) * size + i] * x[i + 1 + m])
            x[i] = (x[i] - inner) * self.inverse[i]


DAMPING, LARGEST = 1e-2, 1e9
"""The damping at the start, relative to the squared error, and that above which no step reduces the error."""
FLOOR = 1e-13
"""The least damping: Cholesky factors of a singular matrix then exist in spite of rounding."""
EASE, STRENGTHEN, KEEP = 1 / 8, 8.0, 0.25
"""Factors of the damping after a step that reduces the error to less than KEEP of it, and after one that does not."""
SLOW, PATIENCE = 0.9, 8.0
"""A search that keeps more than SLOW of its error in each of PATIENCE successive steps is given up."""
FINE = 1e-15
"""The error that is not corrected [rad, characteristic lengths]."""
LONGEST = 1.0
"""The largest entry of a step [rad, characteristic lengths]."""
REPORT = ("worst", "size", "iterations")
"""The entries of the report: the largest error [rad, characteristic lengths], half the sum of squares, and steps."""


def pose_kernel(equations: PoseEquations) -> Kernel:
    """Return (q0, target, weights, lower, upper, free[, parameters], tolerance, most) -> (q, report)."""
    return _Search(equations).kernel()


class _Search:
    """The writer of the kernel; `v` has the variables of a lane."""

    def __init__(self, equations: PoseEquations) -> None:
        """Declare the arguments and the memory."""
        m, n = equations.mechanism, equations.count
        k = self.k = Builder("inverse_kinematics", {"errors": equations.evaluation(), "move": equations.move()})
        self.equations, self.nq, self.nv, self.n, free = equations, m.nq, m.nv, n, len(m.free_parameters)
        self.q0, self.target, self.weights = k.array("q0", m.nq), k.array("target", 16), k.array("weights", 6)
        self.ranges = [k.array(name, m.nv) for name in ("lower", "upper", "free")]
        self.parameters = k.array("parameters", free) if free else None
        self.tolerance, self.most = k.array("tolerance", shared=True), k.array("most", shared=True)
        self.q, self.report = k.array("q", m.nq, output=True), k.array("report", len(REPORT), output=True)
        self.y, self.pose_in = k.block("y", m.nq), k.block("pose_in", m.nq + 22 + free)
        self.found, self.F, self.left = k.block("found", n + n * m.nv + 2), k.block("F", n), k.block("left", n)
        self.steps = DampedSteps(k, n, m.nv)
        self.dq, self.stop = k.block("dq", m.nv), k.block("stop", m.nv)
        self.move_in, self.trial = k.block("move_in", m.nq + 3 * m.nv), k.block("trial", m.nq)
        self.limits = {name: k.block(name + "_limit", m.nv) for name in ("lower", "upper", "free")}
        self.v = {name: k.block(name) for name in (*REPORT, "damping", "slow", "longest")}
        self.active, self.rounds = k.block("active", kind=Kind.MASK), k.block("rounds", kind=Kind.COUNT)

    def kernel(self) -> Kernel:
        """Write the whole loop and return the finished kernel."""
        k, v = self.k, self.v
        self._load()
        self._evaluate(self.y)
        for name, at in (("size", 0), ("worst", 1)):
            v[name].value = self._measure(at)
        self._keep(None)
        v["damping"].value, v["slow"].value, v["iterations"].value, self.rounds.value = DAMPING, 0.0, 0.0, 0
        self.active.value = v["worst"].value > FINE
        with k.whilst(self._unfinished):
            self._step()
            self._judge()
        with k.each_lane():
            with k.loop(self.nq) as j:
                self.q[j] = self.y[j]
            for i, name in enumerate(REPORT):
                self.report[i] = v[name].value
        return k.kernel()

    def _load(self) -> None:
        k = self.k
        with k.each_lane():
            given = [(self.q0, self.y, self.nq, 0), (self.target, self.pose_in, 16, self.nq)]
            given.append((self.weights, self.pose_in, 6, self.nq + 16))
            given += [
                (array, block, self.nv, 0) for array, block in zip(self.ranges, self.limits.values(), strict=True)
            ]
            given += [
                (array, self.move_in, self.nv, self.nq + (1 + i) * self.nv) for i, array in enumerate(self.ranges[:2])
            ]
            if self.parameters:
                given.append((self.parameters, self.pose_in, int(self.parameters.argument.shape[0]), self.nq + 22))
            for array, block, size, first in given:
                with k.loop(size) as j:
                    block[j + first] = array[j]

    def _unfinished(self) -> Value:
        k = self.k
        return k.any(self.active.value) & (k.number(self.rounds.value) < self.most[()])

    def _evaluate(self, q: Block) -> None:
        """Write the errors at positions q and their Jacobian into `found`."""
        with self.k.loop(self.nq) as j:
            self.pose_in[j] = q[j]
        self.k.call("errors", self.pose_in, self.found)

    def _measure(self, at: int) -> Value:
        return self.found[self.n + self.n * self.nv + at]

    def _keep(self, better: Value | None) -> None:
        """Write the errors and the Jacobian found into the input of the next step, in the lanes of a mask."""
        for block, count, first in ((self.F, self.n, 0), (self.steps.A, self.n * self.nv, self.n)):
            with self.k.loop(count) as j:
                new = self.found[j + first]
                block[j] = new if better is None else better.where(new, block[j])

    def _step(self) -> None:
        """Write a step within the limits, and the errors at its end.

        At a limit, joints that would leave the range do not move. Joints that would pass a limit stop there, and a
        second solution for the others makes up for the difference.
        """
        k, v, steps, free = self.k, self.v, self.steps, self.limits["free"]
        damping = v["damping"].value * v["size"].value + FLOOR
        with k.loop(self.nv) as j:
            steps.open[j], self.stop[j] = free[j], 0.0
        for at, j, unit in self.equations.limited:
            slope = steps.total(self.n, lambda i, j=j: steps.A[i * self.nv + j] * self.F[i])
            low, high = self._room(at, j, unit)
            shut = ((high <= 0.0) & (slope > 0.0)) | ((low >= 0.0) & (slope < 0.0))
            steps.open[j] = shut.where(0.0, steps.open[j])
        steps.solve(self.F, damping, self.dq)
        passed = self.active.value & ~self.active.value
        for at, j, unit in self.equations.limited:
            low, high = self._room(at, j, unit)
            over, under = self.dq[j] > high, self.dq[j] < low
            self.stop[j] = over.where(high, under.where(low, k.constant(0.0, Kind.LANE)))
            steps.open[j] = (over | under).where(0.0, steps.open[j])
            passed = passed | over | under
        with k.when(k.any(passed)):
            with k.loop(self.n) as i:
                self.left[i] = self.F[i] - steps.total(self.nv, lambda j, i=i: steps.A[i * self.nv + j] * self.stop[j])
            steps.solve(self.left, damping, self.dq)
            with k.loop(self.nv) as j:
                self.dq[j] = self.dq[j] + self.stop[j]
        self._move()

    def _room(self, at: int, j: int, unit: float) -> tuple[Value, Value]:
        """Return the ways from a coordinate to its limits."""
        below, above = ((self.limits[name][j] - self.y[at]) * (1.0 / unit) for name in ("lower", "upper"))
        return below, above

    def _move(self) -> None:
        """Write the position after the step, shortened to LONGEST, and the errors there."""
        k, longest = self.k, self.v["longest"]
        longest.value = LONGEST
        with k.loop(self.nv) as j:
            size = abs(self.dq[j])
            longest.value = (size > longest.value).where(size, longest.value)
        reach = k.cast(LONGEST, Kind.LANE) / longest.value
        with k.loop(self.nq) as j:
            self.move_in[j] = self.y[j]
        with k.loop(self.nv) as j:
            self.move_in[j + self.nq] = self.dq[j] * reach
        k.call("move", self.move_in, self.trial)
        self._evaluate(self.trial)

    def _judge(self) -> None:
        """Write the end of the step into the lanes whose error it reduces, the next damping, and which lanes go on."""
        k, v, active = self.k, self.v, self.active.value
        size, damping, after = v["size"].value, v["damping"].value, self._measure(0)
        better = (after < size) & active
        with k.loop(self.nq) as j:
            self.y[j] = better.where(self.trial[j], self.y[j])
        self._keep(better)
        quick, slow = after < KEEP * size, ~(after < SLOW * size)
        v["size"].value = better.where(after, size)
        v["worst"].value = better.where(self._measure(1), v["worst"].value)
        v["damping"].value = better.where(quick.where(damping * EASE, damping), damping * STRENGTHEN)
        v["slow"].value = slow.where(v["slow"].value + 1.0, 0.0)
        v["iterations"].value = v["iterations"].value + active.where(k.constant(1.0, Kind.LANE), 0.0)
        self.rounds.value = self.rounds.value + 1
        worst = v["worst"].value
        reached = (worst <= FINE) | ((worst <= k.cast(self.tolerance[()], Kind.LANE)) & ~quick)
        lost = (v["damping"].value > LARGEST) | (v["slow"].value > PATIENCE)
        self.active.value = active & ~(reached | lost)
