"""Twists t = [omega; v], their rates and wrenches w = [n; f], about the joint's origin, in the body's frame.

A flexible body has modal coordinates e as well: its twist is [omega; v; e'], its wrench [n; f; Q] with the generalized
forces Q of the modal coordinates. The modal parts of all other bodies are empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .scalars import Scalar
from .vectors import ZERO, Matrix, Vector, add, cross, dot, neg, scale, sub


def _sum(a: tuple, b: tuple) -> tuple:
    """Return the sum of two modal parts, either of which may be empty."""
    return tuple(x + y for x, y in zip(a, b, strict=True)) if a and b else a or b


@dataclass(frozen=True)
class Twist:
    """Angular velocity w, velocity v of the origin, and rates e of the modal coordinates.   [Saha2013] (1)"""

    w: Vector = ZERO
    v: Vector = ZERO
    e: tuple = ()

    def __add__(self, other: Twist) -> Twist:
        """Return the sum."""
        return Twist(add(self.w, other.w), add(self.v, other.v), _sum(self.e, other.e))

    def __sub__(self, other: Twist) -> Twist:
        """Return the difference."""
        return Twist(sub(self.w, other.w), sub(self.v, other.v), _sum(self.e, tuple(-x for x in other.e)))

    def __mul__(self, k: Scalar) -> Twist:
        """Return the twist times a scalar."""
        return Twist(scale(k, self.w), scale(k, self.v), tuple(k * x for x in self.e))

    def entries(self) -> tuple:
        """Return the six scalars, and those of the modal coordinates."""
        return (*self.w, *self.v, *self.e)


@dataclass(frozen=True)
class TwistRate:
    """Angular acceleration dw and acceleration dv of the origin, with the angular velocity w.

    Both are true rates of vectors (not Featherstone's spatial acceleration), so that v itself is never needed.
    With w, a twist rate gives the acceleration of any point of its body: dv + U r. That of a flexible body has the
    rates e of the modal coordinates for the same reason, and their accelerations de.
    """

    w: Vector = ZERO
    dw: Vector = ZERO
    dv: Vector = ZERO
    e: tuple = ()
    de: tuple = ()

    @cached_property
    def U(self) -> Matrix:
        """[dw x] + [w x][w x]: the acceleration of a point relative to the origin is U r."""
        (x, y, z), (dx, dy, dz) = self.w, self.dw
        xx, yy, zz, xy, yz, zx = x * x, y * y, z * z, x * y, y * z, z * x
        return (
            (-(yy + zz), xy - dz, zx + dy),
            (xy + dz, -(xx + zz), yz - dx),
            (zx - dy, yz + dx, -(xx + yy)),
        )

    def __add__(self, other: Twist | TwistRate) -> TwistRate:
        """Add the rates of a joint: P qdd (a Twist), or its bias, which includes the joint's angular velocity."""
        if isinstance(other, TwistRate):
            e, de = _sum(self.e, other.e), _sum(self.de, other.de)
            return TwistRate(add(self.w, other.w), add(self.dw, other.dw), add(self.dv, other.dv), e, de)
        return TwistRate(self.w, add(self.dw, other.w), add(self.dv, other.v), self.e, _sum(self.de, other.e))

    def entries(self) -> tuple:
        """Return the six scalars [dw; dv]."""
        return (*self.dw, *self.dv)


@dataclass(frozen=True)
class Wrench:
    """Moment n about the origin, force f, and generalized forces Q of the modal coordinates.  [Saha2013] (1)"""

    n: Vector = ZERO
    f: Vector = ZERO
    Q: tuple = ()

    def __add__(self, other: Wrench) -> Wrench:
        """Return the sum."""
        return Wrench(add(self.n, other.n), add(self.f, other.f), _sum(self.Q, other.Q))

    def __sub__(self, other: Wrench) -> Wrench:
        """Return the difference."""
        return Wrench(sub(self.n, other.n), sub(self.f, other.f), _sum(self.Q, tuple(-x for x in other.Q)))

    def __neg__(self) -> Wrench:
        """Return the opposite wrench."""
        return Wrench(neg(self.n), neg(self.f), tuple(-x for x in self.Q))

    def __mul__(self, k: Scalar) -> Wrench:
        """Return the wrench times a scalar."""
        return Wrench(scale(k, self.n), scale(k, self.f), tuple(k * x for x in self.Q))

    def replaced(self, k: int, x: Scalar) -> Wrench:
        """Return the wrench with its k-th entry replaced."""
        entries = (*self.entries()[:k], x, *self.entries()[k + 1 :])
        return Wrench(entries[:3], entries[3:6], entries[6:])

    def entries(self) -> tuple:
        """Return the six scalars, and those of the modal coordinates."""
        return (*self.n, *self.f, *self.Q)


def unit_index(t: Twist) -> int | None:
    """Return k where t is the k-th unit twist, of which there are six without modal coordinates, else None."""
    entries = t.entries()
    if not all(isinstance(x, int | float) for x in entries):
        return None
    return entries.index(1.0) if sorted(entries) == [0.0] * (len(entries) - 1) + [1.0] else None


def power(w: Wrench, t: Twist) -> Scalar:
    """Return n . omega + f . v + Q . e'; a modal part that is empty is zero."""
    whole = dot(w.n, t.w) + dot(w.f, t.v)
    for Q, e in zip(w.Q, t.e, strict=True) if w.Q and t.e else ():
        whole = whole + Q * e
    return whole


@dataclass(frozen=True)
class Motion:
    """A joint's motion P: one twist per degree of freedom, in the child's frame, with its rate along qd.

    `rates` holds d P / dt in the child's axes, one twist per column; it is zero for joints whose axes are fixed in
    the child.                                                                    [Saha2013] (36b), (43)-(45)
    """

    columns: tuple[Twist, ...] = ()
    rates: tuple[Twist, ...] | None = None

    def __matmul__(self, qd) -> Twist:
        """Return P qd."""
        total = Twist()
        for column, rate in zip(self.columns, qd, strict=True):
            total = total + column * rate
        return total

    @property
    def T(self) -> _Projection:
        """The transpose: P^T w is the generalized force of a wrench along the joint's motion."""
        return _Projection(self)

    def bias(self, t: Twist, qd) -> TwistRate:
        """Return the joint's part in the twist rate of a body with twist t, without P qdd.

        With the joint's own [w_r; v_r] = P qd: [w x w_r; (2 w - w_r) x v_r] + P' qd; the last product is the
        Coriolis term.                                                                        [Saha2013] (23)
        """
        own = self @ qd
        dw = cross(t.w, own.w)
        dv = cross(sub(add(t.w, t.w), own.w), own.v)
        seen = Motion(self.rates) @ qd if self.rates else Twist()
        return TwistRate(own.w, dw, dv, own.e) + seen

    def rate(self, t: Twist) -> Motion:
        """Return d P / dt of a body with twist t: Omega P + P'.                            [Saha1999] (26)"""
        turned = tuple(Twist(cross(t.w, c.w), cross(t.w, c.v)) for c in self.columns)
        if self.rates:
            turned = tuple(a + b for a, b in zip(turned, self.rates, strict=True))
        return Motion(turned)


@dataclass(frozen=True)
class _Projection:
    motion: Motion

    def __matmul__(self, w: Wrench) -> tuple:
        return tuple(power(w, column) for column in self.motion.columns)
