"""The rolled tree, on which an algorithm is traced once per class of bodies, for loops over the bodies.

A step reads from `i` the fields that earlier sweeps stored for the body (slots of a workspace). It reads from `p`
fields that are carried from body to body (carries): outward the results of the parent, inward sums over the children.
Consecutive sweeps in the same direction are one loop, and values that are never read are not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...algebra.scalars import Scalar
from ...algebra.spatial import Motion, TwistRate
from ...algebra.vectors import ZERO, neg
from ..ir.trace import Op, Trace, Value
from .program import GLOBAL, TABLE, BodyClass
from .records import GroundRecord, Inward, Outward, Patterns, RolledFrame, StepRecord, at_rest, map_scalars

CHEAP = 6
"""The largest number of operations that a later loop repeats instead of loading a stored result; they take as long."""


class Sweep:
    """Steps that run in one loop over the bodies, in one direction, with their results per class.

    `patterns` has the patterns of the carries by name, `out` their values by class, `base` their values at the ground.
    """

    def __init__(self, index: int) -> None:
        """Start without steps."""
        self.index, self.direction = index, "each"
        self.steps: list[tuple[str, Callable]] = []
        self.patterns = Patterns()
        self.owner: dict[str, int] = {}  # the step that adds to a carry, inward
        self.out: dict[int, dict[str, Any]] = {}
        self.base: dict[str, Any] = {}

    def takes(self, direction: str) -> bool:
        """Return whether a step in this direction can be added."""
        return "each" in (direction, self.direction) or direction == self.direction

    def add(self, direction: str, step: Callable) -> None:
        """Add a step."""
        self.steps.append((direction, step))
        if direction != "each":
            self.direction = direction


class RolledTree:
    """A tree of classes of bodies, on which an algorithm runs instead of on a tree of bodies."""

    loops = couplings = ()

    def __init__(
        self, mechanism, classes: tuple[BodyClass, ...], inputs: frozenset[str], known: Sequence[Mapping[str, float]]
    ) -> None:
        """Start without sweeps; `inputs` are names of arrays, `known` has the constant numbers of each class."""
        self.mechanism, self.classes, self.inputs, self.known = mechanism, classes, inputs, known
        self.trace = Trace()
        self.sweeps: list[Sweep] = []
        self.fields: list[dict[str, tuple[int, Any]]] = [{} for _ in classes]
        self.produced: dict[tuple[int, int], int] = {}  # the sweep that computes the slot (class, value)
        self.gravity: Scalar = tuple(self.trace.input(GLOBAL, f"g{k}") for k in range(3))
        self.rho = TwistRate(ZERO, ZERO, neg(self.gravity))
        self.ground: Any = GroundRecord(self)
        self._pending: Sweep | None = None

    def each(self, step: Callable) -> None:
        """Add a step for every body."""
        self._add("each", step)

    def outward(self, step: Callable) -> None:
        """Add a step from the ground to the tips."""
        self._add("outward", step)

    def inward(self, step: Callable) -> None:
        """Add a step from the tips to the ground."""
        self._add("inward", step)

    def frame(self, name: str) -> RolledFrame:
        """Return the frame, whose placement is an input."""
        return RolledFrame(self)

    def chain(self, frame: RolledFrame) -> RolledTree:
        """Return the tree itself, whose bodies are those between the ground and the frame."""
        return self

    def motion(self, i: StepRecord) -> Motion:
        """Return the motion of a body on the chain: that of its joint."""
        return i.P

    def joints(self, name: str) -> tuple[str, str]:
        """Return the request for a field with entries per degree of freedom."""
        self.flush()
        return ("joints", name)

    def bodies(self, name: str) -> tuple[str, str]:
        """Return the request for a field with entries per body."""
        self.flush()
        return ("bodies", name)

    def columns(self, name: str) -> tuple[str, str]:
        """Return the request for a field of twists, as columns of a matrix."""
        self.flush()
        return ("columns", name)

    def flush(self) -> None:
        """Trace the steps that have been added since the last sweep was closed."""
        if self._pending is not None:
            self._trace(self._pending)
            self.sweeps.append(self._pending)
            self._pending = None

    def carried(self, name: str, direction: str) -> Sweep | None:
        """Return the last sweep that carries a field in a direction."""
        self.flush()
        return next((s for s in reversed(self.sweeps) if s.direction == direction and name in s.patterns), None)

    def row(self, sweep: Sweep, name: str, place: str) -> Any:
        """Return the value of a carried field after a sweep, at the ground or at the body of the frame."""
        group = ("row", sweep.index, place)
        return sweep.patterns.filled(name, lambda key: self.trace.input(group, key))

    def _add(self, direction: str, step: Callable) -> None:
        if self._pending is None or not self._pending.takes(direction):
            self.flush()
            self._pending = Sweep(len(self.sweeps))
        self._pending.add(direction, step)

    def _trace(self, sweep: Sweep) -> None:
        """Trace every class repeatedly, until the patterns of the carries fit all classes."""
        changed, records = True, []
        while changed:
            names = sweep.patterns.names
            records = [self._run(sweep, c) for c in range(len(self.classes))]
            changed = names != sweep.patterns.names
            for c in range(len(self.classes)):
                changed |= sweep.patterns.join(sweep.out[c])
        for c, record in enumerate(records):
            self.fields[c] |= {name: (sweep.index, value) for name, value in record.made.items()}

    def _run(self, sweep: Sweep, c: int) -> StepRecord:
        i = StepRecord(self.trace, self.inputs, self.classes[c], self.known[c], lambda name: self._recall(c, name))
        out = sweep.out[c] = {}
        for k, (direction, step) in enumerate(sweep.steps):
            if direction == "each":
                step(i)
            elif direction == "outward":
                out |= i.made
                step(i, Outward(self, sweep))
                out |= i.made
            else:
                for name, owner in sweep.owner.items():
                    if owner == k:  # add the sum over the children
                        setattr(i, name, getattr(i, name) + self.carry(sweep, name))
                step(i, Inward(sweep, k, out))
        return i

    def carry(self, sweep: Sweep, name: str) -> Any:
        """Return a field that the previous body of a sweep passes on."""
        return sweep.patterns.filled(name, lambda key: self.trace.input(("in", sweep.index), key))

    def _recall(self, c: int, name: str) -> Any:
        """Return a field that an earlier sweep has stored for bodies of a class."""
        if name not in self.fields[c]:
            return at_rest(name)
        index, value = self.fields[c][name]
        return map_scalars(value, lambda x: self._later(c, index, x))

    def _later(self, c: int, sweep: int, x: object) -> Any:
        """Return a scalar of an earlier sweep: computed again if that is cheap, otherwise loaded from a slot."""
        if type(x) is not Value:
            return x
        op = self.trace.ops[x.id]
        if op[0] is Op.NEG:
            return -self._later(c, sweep, Value(self.trace, op[1]))
        if self._is_cheap(x.id) or (op[0] is Op.INPUT and op[1] == ("slot", c)):
            return x
        self.produced[c, x.id] = sweep
        return self.trace.input(("slot", c), x.id)

    def _is_cheap(self, root: int) -> bool:
        stack, count = [root], 0
        while stack:
            op, *x = self.trace.ops[stack.pop()]
            if op is Op.INPUT:
                if x[0] not in (TABLE, GLOBAL) and x[0][0] != "array":
                    return False
            elif op in (Op.SIN, Op.COS):
                inner = self.trace.ops[x[0]]
                if inner[:2] != (Op.INPUT, ("array", "q")):
                    return False
            elif op is not Op.CONST:
                count += 1
                if count > CHEAP or op not in (Op.ADD, Op.SUB, Op.MUL, Op.NEG):
                    return False
                stack.extend(x)
        return True
