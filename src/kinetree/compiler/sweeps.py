"""The tree that a page of sweeps runs on: records of bodies, and steps from parent to child and back.

A step function sees only `i`, the record of a body, and `p`, that of its parent. Here every step is run once for each
body on traced scalars (unrolled); nothing in a page depends on that.

Each body has a working frame: that of the joint, turned by a constant so that the joint's axis is z. Placements and
masses are turned at trace time, where they are constants, so that every joint kind is written for z alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from .. import joints as joint_kinds
from ..algebra.mass import MassMatrix
from ..algebra.propagation import Propagation
from ..algebra.rotations import constant, snapped
from ..algebra.spatial import Motion, Twist, TwistRate, Wrench
from ..algebra.vectors import IDENTITY, ZERO, Matrix, add, from_moments, matmul, neg, times, transpose
from ..model.mechanism import Mechanism, resolved
from ..model.parts import GROUND
from ..model.topology import path


class Record:
    """What is known of one body: data of the mechanism, inputs, and whatever the sweeps put here."""

    q: tuple
    qd: tuple

    def __init__(self, body, joint, axes: Matrix, parent: Record | Ground) -> None:
        """Hold a body and its joint, whose numbers are scalars already."""
        self.body, self.joint, self.kind = body, joint, joint_kinds.kind(joint.kind)
        self.axes = axes  # the working frame's axes in the body's frame
        self.parent = parent
        self.t = Twist()
        self.w_ext = Wrench()

    @cached_property
    def stand(self) -> Propagation:
        """The propagation from the parent where the joint is not displaced."""
        to_parent = transpose(self.parent.axes)
        placement = self.joint.placement
        turn = constant(snapped(matmul(to_parent, matmul(placement.rotation, self.axes))))
        return Propagation(times(to_parent, placement.translation), turn)

    @cached_property
    def A(self) -> Propagation:
        """The propagation from the parent."""
        before, turn, after = self.kind.displacement(self.joint, self.q)
        return Propagation(add(self.stand.r, self.stand.E @ before), self.stand.E @ turn, after)

    @cached_property
    def P(self) -> Motion:
        """The joint's motion."""
        return self.kind.motion(self.joint, self.q, self.qd)

    @property
    def bias(self) -> TwistRate:
        """The joint's share of the twist rate that does not depend on qdd, once i.t is known."""
        return self.P.bias(self.t, self.qd)

    @cached_property
    def M(self) -> MassMatrix:
        """The mass matrix."""
        to_work = constant(snapped(transpose(self.axes)))
        inertia = to_work.symmetric_congruence(from_moments(self.body.inertia))
        return MassMatrix.of_body(self.body.mass, to_work @ self.body.com, inertia)

    @cached_property
    def armature(self) -> tuple:
        """The inertia of each degree of freedom's own drive."""
        return self.joint.armature or (0.0,) * self.kind.NV

    def in_body(self, x):
        """Return a twist, twist rate or wrench of the working frame in the body's own axes."""
        back = constant(self.axes)
        if isinstance(x, Wrench):
            return Wrench(back @ x.n, back @ x.f)
        if isinstance(x, TwistRate):
            return TwistRate(back @ x.w, back @ x.dw, back @ x.dv)
        return Twist(back @ x.w, back @ x.v)


class Ground:
    """The record of the ground: at rest, with gravity as an upward acceleration; whatever is added to it vanishes."""

    axes = IDENTITY
    t = Twist()

    def __getattr__(self, name: str) -> _Nothing:
        """Return something that swallows sums, for what nobody asked the ground to collect."""
        return NOTHING


class _Nothing:
    def __add__(self, other):
        return self

    def __or__(self, other):
        return self


NOTHING = _Nothing()


class FrameRecord:
    """A named frame: the record it rides on and its place in that record's working frame."""

    def __init__(self, frame, record: Record | Ground) -> None:
        """Turn the frame's placement into the working frame."""
        to_work = transpose(record.axes)
        self.record = record
        self.r = times(to_work, frame.placement.translation)
        self.R = snapped(matmul(to_work, frame.placement.rotation))
        self.A = Propagation(self.r, constant(self.R))


class Tree:
    """A mechanism on traced scalars, with the sweeps over it."""

    def __init__(self, mechanism: Mechanism, inputs: Mapping[str, Sequence[Any]]) -> None:
        """Make a record for each body; inputs are flat scalars: q, and any of qd, qdd, tau, wrenches, parameters."""
        self.mechanism = mechanism
        self.ground: Any = Ground()
        values = mechanism.values(inputs.get("parameters"))
        self.gravity = resolved(mechanism.gravity, values)
        self.rho = TwistRate(ZERO, ZERO, neg(self.gravity))  # [Saha2013] (26)
        self.records: list[Any] = []
        at_q = at_v = 0
        for index, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
            kind = joint_kinds.kind(joint.kind)
            parent = mechanism.parents[index]
            plain = resolved(joint, values)
            record: Any = Record(
                resolved(body, values),
                plain,
                kind.frame(plain),
                self.records[parent] if parent >= 0 else self.ground,
            )
            for name in ("q", "q2"):
                setattr(record, name, _slice(inputs, name, at_q, kind.NQ))
            for name in ("qd", "qdd", "tau"):
                setattr(record, name, _slice(inputs, name, at_v, kind.NV))
            record.labels = tuple(range(at_v, at_v + kind.NV))
            if "wrenches" in inputs:
                w = inputs["wrenches"][6 * index : 6 * index + 6]
                turn = constant(snapped(transpose(record.axes)))
                record.w_ext = Wrench(turn @ tuple(w[:3]), turn @ tuple(w[3:]))
            self.records.append(record)
            at_q, at_v = at_q + kind.NQ, at_v + kind.NV
        self.nv = at_v
        self._values = values

    def lump(self) -> None:
        """Count every mass to the body nearest to the ground that could carry it, tips first.

        The points of a joint's axis, say, move with both bodies: the same motion needs the same torques, whichever
        of the two has their mass. What is left beyond the joints is sparse, and the ground takes its share for
        nothing. Only the joints' reactions and the energies' constant tell the difference.
        """
        for i in reversed(self.records):
            part = i.kind.common(i.M)
            i.M = i.M - part
            i.parent.M += i.stand.T @ part @ i.stand

    def each(self, step: Callable) -> None:
        """Run a step on every body."""
        for record in self.records:
            step(record)

    def outward(self, step: Callable) -> None:
        """Run a step from the ground to the tips."""
        for record in self.records:
            step(record, record.parent)

    def inward(self, step: Callable) -> None:
        """Run a step from the tips to the ground."""
        for record in reversed(self.records):
            step(record, record.parent)

    def frame(self, name: str) -> FrameRecord:
        """Return a frame by name."""
        frame = self.mechanism.frame(name)
        return FrameRecord(resolved(frame, self._values), self._record(frame.body))

    def chain(self, frame: FrameRecord) -> Chain:
        """Return the bodies between the ground and a frame, to sweep over these alone."""
        if frame.record is self.ground:
            return Chain([])
        index = self.records.index(frame.record)
        return Chain([self.records[k] for k in path(self.mechanism, index)])

    def joints(self, name: str) -> list:
        """Return what each record holds under a name for its degrees of freedom, in order."""
        return [x for record in self.records for x in getattr(record, name)]

    def bodies(self, name: str) -> list:
        """Return the entries of what each record holds under a name (twists, wrenches, poses), in order."""
        return [x for record in self.records for x in getattr(record, name).entries()]

    def matrix(self, entries: Mapping[tuple[int, int], Any]) -> list:
        """Return the entries of an nv x nv matrix, row by row; missing ones are zero."""
        return [entries.get((i, j), 0.0) for i in range(self.nv) for j in range(self.nv)]

    def _record(self, body: str) -> Any:
        if body == GROUND:
            return self.ground
        return self.records[[b.name for b in self.mechanism.bodies].index(body)]


class Chain:
    """The bodies of one path, with the sweeps of a tree."""

    def __init__(self, records: list) -> None:
        """Hold the records from the ground outward."""
        self.records = records

    each, outward, inward = Tree.each, Tree.outward, Tree.inward


def _slice(inputs: Mapping[str, Sequence[Any]], name: str, start: int, count: int) -> tuple:
    """Return a joint's share of an input; what is not an input is at rest."""
    if name not in inputs:
        return (0.0,) * count
    return tuple(inputs[name][start : start + count])
