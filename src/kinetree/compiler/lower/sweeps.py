"""The tree on which algorithms run: one record per body, and sweeps from the ground to the tips and back.

A step function has two arguments: `i`, the record of a body, and `p`, that of its parent. Here every step runs once per
body on traced scalars (unrolled), but algorithms do not depend on that.

Each body has a working frame (working_frames.py), whose z axis is the axis of its joint. Placements and masses are
transformed to it at trace time, when they are constants. Inputs and outputs (wrenches, twists, poses) are transformed
from and to the body's own frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ...algebra.scalars import Scalar
from ...algebra.spatial import Motion, Twist, TwistRate, Wrench
from ...algebra.vectors import ZERO, neg
from ...model.mechanism import Mechanism, resolve_parts
from ...model.topology import path
from .tree_records import (
    ContactRecord,
    CouplingRecord,
    ForceRecord,
    FrameRecord,
    Ground,
    LoopRecord,
    bare_loops,
    bare_records,
    constant_loops,
    constant_records,
    contact_ends,
    force_records,
)


class Tree:
    """A mechanism on scalars of any type, traced or plain, with the sweeps over its bodies."""

    def __init__(self, mechanism: Mechanism, inputs: Mapping[str, Any]) -> None:
        """Make one record per body; inputs are flat lists: q, and any of qd, qdd, tau, added, wrenches, parameters.

        The input `offsets` has (offset, rate, acceleration) of couplings with moving offsets, by name.
        """
        self.mechanism = mechanism
        self._offsets: Mapping[str, Sequence[Scalar]] = inputs.get("offsets", {})
        self.ground: Any = Ground()
        values = mechanism.values(inputs.get("parameters"))
        self.gravity = resolve_parts(mechanism.gravity, values)
        self.rho = TwistRate(ZERO, ZERO, neg(self.gravity))  # [Saha2013] (26)
        self.records: list[Any] = []
        bare = bare_records(mechanism, values) if mechanism.free_parameters else constant_records(mechanism)
        for index, constants in enumerate(bare):
            parent = mechanism.parents[index]
            record: Any = constants.copied(self.records[parent] if parent >= 0 else self.ground)
            own_q, own_v = mechanism.q_slices[index], mechanism.v_slices[index]
            for name in ("q", "q2"):
                setattr(record, name, _slice(inputs, name, own_q))
            for name in ("qd", "qdd", "tau", "added"):
                setattr(record, name, _slice(inputs, name, own_v))
            record.labels = tuple(range(own_v.start, own_v.stop))
            if "wrenches" in inputs:
                w = inputs["wrenches"][6 * index : 6 * index + 6]
                record.w_ext = record.from_body(Wrench(tuple(w[:3]), tuple(w[3:])))
            self.records.append(record)
        self.nv = mechanism.nv
        self._values = values

    def lump(self) -> None:
        """Assign every mass to the body nearest to the ground that could carry it, tips first.

        For example, points on the axis of a revolute joint move with both of its bodies. The same motion requires the
        same torques, whichever body has their mass. The remaining mass matrices are sparse, and mass on the ground
        costs nothing. Only the reactions at joints and the constant in the potential energy change.
        """
        for i in reversed(self.records):
            part = i.kind.common(i.M)
            i.M = i.M - part
            i.parent.M += i.stand.T @ part @ i.stand

    def each(self, step: Callable) -> None:
        """Run a step function on every body."""
        for record in self.records:
            step(record)

    def outward(self, step: Callable) -> None:
        """Run a step function from the ground to the tips."""
        for record in self.records:
            step(record, record.parent)

    def inward(self, step: Callable) -> None:
        """Run a step function from the tips to the ground."""
        for record in reversed(self.records):
            step(record, record.parent)

    def frame(self, name: str) -> FrameRecord:
        """Return a frame by name."""
        frame = self.mechanism.frame(name)
        return FrameRecord(resolve_parts(frame, self._values), self._record(frame.body))

    def part(self, records: list) -> Chain:
        """Return some bodies, parents before children, for sweeps over these alone."""
        return Chain(records)

    def chain(self, frame: FrameRecord) -> Chain:
        """Return the bodies between the ground and a frame, for sweeps over these alone."""
        if frame.record is self.ground:
            return Chain([])
        index = self.records.index(frame.record)
        return Chain([self.records[k] for k in path(self.mechanism, index)])

    @cached_property
    def loops(self) -> list[LoopRecord]:
        """The records of the loops, in the order of the mechanism."""
        mechanism = self.mechanism
        free = mechanism.free_parameters
        bare = bare_loops(mechanism, self._values, self.records) if free else constant_loops(mechanism)
        out = []
        for plain, a, b in bare:
            a, b = a.copied(self._record(plain.body_a)), b.copied(self._record(plain.body_b))
            out.append(LoopRecord(plain, a, b, *self._apart(a, b)))
        return out

    @cached_property
    def contacts(self) -> list[ContactRecord]:
        """The records of the contacts, in the order of the mechanism."""
        out = []
        for contact in self.mechanism.contacts:
            plain = resolve_parts(contact, self._values)
            a, b = contact_ends(plain, self._record(plain.surface.body), self._record(plain.body))
            out.append(ContactRecord(plain, a, b, *self._apart(a, b)))
        return out

    def _apart(self, a: FrameRecord, b: FrameRecord) -> tuple[list, list]:
        """Return the bodies outward from the nearest rigid common ancestor of two frames to each of them."""
        to_a, to_b = self.chain(a).records, self.chain(b).records
        shared = sum(x is y for x, y in zip(to_a, to_b, strict=False))
        if shared and to_a[shared - 1].body.flexible is not None:
            shared -= 1  # two nodes of a body move relative to each other
        return to_a[shared:], to_b[shared:]

    @cached_property
    def couplings(self) -> list[CouplingRecord]:
        """The records of the couplings, in the order of the mechanism."""
        by_joint = {i.joint.name: i for i in self.records}
        out = []
        for coupling in self.mechanism.couplings:
            plain = resolve_parts(coupling, self._values)
            out.append(CouplingRecord(plain, by_joint, self._offsets.get(coupling.name)))
        return out

    @cached_property
    def forces(self) -> list[ForceRecord]:
        """The records of the force elements, in the order of the mechanism."""
        return force_records(self.mechanism, self._values, self._record)

    def joints(self, name: str) -> list:
        """Return a field with one scalar per degree of freedom, of all records in order."""
        return [x for record in self.records for x in getattr(record, name)]

    def bodies(self, name: str) -> list:
        """Return the entries of a field (twists, wrenches, poses) of all records in order."""
        return [x for record in self.records for x in getattr(record, name).entries()]

    def columns(self, name: str) -> list:
        """Return the 6 x nv matrix, row by row, whose columns are a field of twists; zero where a record has none."""
        zero = (0.0,) * 6
        held = [getattr(i, name, None) or [None] * len(i.labels) for i in self.records]
        columns = [zero if t is None else t.entries() for twists in held for t in twists]
        return [column[row] for row in range(6) for column in columns]

    def matrix(self, entries: Mapping[tuple[int, int], Scalar]) -> list:
        """Return the entries of an nv x nv matrix, row by row; missing entries are zero."""
        return [entries.get((i, j), 0.0) for i in range(self.nv) for j in range(self.nv)]

    def _record(self, body: str) -> Any:
        index = self.mechanism.body_indices[body]
        return self.records[index] if index >= 0 else self.ground


class Chain:
    """The bodies of one path or of one part, with the sweeps of a tree."""

    def __init__(self, records: list) -> None:
        """Store the records, from the ground outward."""
        self.records = records

    each, outward, inward = Tree.each, Tree.outward, Tree.inward

    def motion(self, i: Any) -> Motion:
        """Return what a body's joint moves further out on the chain: modes move the next body by its node."""
        if i.body.flexible is None:
            return i.P
        after = self.records[self.records.index(i) + 1 :]
        return after[0].A.motion if after else Motion((Twist(),) * len(i.labels))


def _slice(inputs: Mapping[str, Sequence[Scalar]], name: str, own: slice) -> tuple:
    """Return the entries of an input that belong to one joint; zeros if there is no such input."""
    if name not in inputs:
        return (0.0,) * (own.stop - own.start)
    return tuple(inputs[name][own])
