"""The propagation from a flexible body to one of its nodes: t_k = A_k (t + S_k e')."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .flexible import FlexibleCoriolis, FlexibleMass, along, welded
from .mass import ArticulatedMass, MassMatrix
from .propagation import Propagation, PropagationRate
from .rotations import Planar, Rotation
from .scalars import Scalar, cos, is_number, sin
from .spatial import Motion, Twist, TwistRate, Wrench, power
from .vectors import ZERO, Vector, add, cross, scale, sub, times


@dataclass(frozen=True)
class Node:
    """A place on a flexible body: its position x [m] at rest, and per mode its displacement, bend and rotation angles.

    The position is x + Phi e + e^T G e / 2. The rotation is Rz(c) Ry(b) Rx(a) with the angles (a, b, c) = Psi e:
    exactly a rotation for every e, and smooth.
    """

    name: str
    x: Vector
    Phi: tuple[Vector, ...]
    G: tuple[tuple[Vector, ...], ...]
    Psi: tuple[Vector, ...]

    def at(self, e: tuple, de: tuple) -> NodePropagation:
        """Return the propagation from the body to the node, for modal coordinates and their rates."""
        columns = [along(row, e, start) for row, start in zip(self.G, self.Phi, strict=True)]
        place = self.x
        for x, now, first in zip(e, columns, self.Phi, strict=True):
            place = add(place, scale(x * 0.5, add(now, first)))
        angles = along(self.Psi, e)
        E = Rotation(
            tuple(Planar(k, cos(x), sin(x)) for k, x in ((2, angles[2]), (1, angles[1]), (0, angles[0])) if _acts(x))
        )
        return NodePropagation(place, E, ZERO, self, tuple(columns), angles, de)


@dataclass(frozen=True)
class NodePropagation(Propagation):
    """A propagation to a node: the body's twist there includes S e', and the wrench of the node loads the modes."""

    node: Node | None = None
    s_k: tuple[Vector, ...] = ()
    angles: Vector = ZERO
    de: tuple = ()

    @cached_property
    def turns(self) -> tuple[Vector, ...]:
        """The angular velocity of the node per rate of a mode, in the body's axes."""
        return tuple(map(self._turned, self._psi))

    @property
    def _psi(self) -> tuple[Vector, ...]:
        assert self.node is not None
        return self.node.Psi

    def _turned(self, rates: Vector) -> Vector:
        """Return the angular velocity of rates of the angles."""
        (_, b, c), (da, db, dc) = self.angles, rates
        return (
            da * cos(b) * cos(c) - db * sin(c),
            da * cos(b) * sin(c) + db * cos(c),
            dc - da * sin(b),
        )

    def _turned_rate(self, rates: Vector) -> Vector:
        """Return the rate of `_turned`, for rates that are constant, while the modes move with de."""
        (_, b, c), (da, db, _) = self.angles, rates
        _, vb, vc = along(self._psi, self.de)
        return (
            -(da * (sin(b) * cos(c) * vb + cos(b) * sin(c) * vc)) - db * cos(c) * vc,
            da * (cos(b) * cos(c) * vc - sin(b) * sin(c) * vb) - db * sin(c) * vc,
            -(da * cos(b) * vb),
        )

    @cached_property
    def S(self) -> tuple[Twist, ...]:
        """The node's motion per rate of a mode, about the body's origin: a rigid body that moves like the node."""
        return tuple(Twist(w, sub(s, cross(w, self.r))) for w, s in zip(self.turns, self.s_k, strict=True))

    @property
    def motion(self) -> Motion:
        """S and its rate in the body's axes, as the motion of a joint."""
        assert self.node is not None
        dr = along(self.s_k, self.de)
        rates = []
        for psi, w, bends in zip(self._psi, self.turns, self.node.G, strict=True):
            dw, ds = self._turned_rate(psi), along(bends, self.de)
            rates.append(Twist(dw, sub(ds, add(cross(dw, self.r), cross(w, dr)))))
        return Motion(self.S, tuple(rates))

    def __matmul__(self, x):
        """Return a twist or twist rate of the body at the node, in the node's frame.   docs/theory/flexible.md (4)"""
        if isinstance(x, Twist):
            t = Twist(x.w, x.v)
            for s, rate in zip(self.S, x.e, strict=True) if x.e else ():
                t = t + s * rate
            return super().__matmul__(t)
        if isinstance(x, TwistRate) and (x.e or x.de):
            return self._rate(x)
        return super().__matmul__(x)

    def _rate(self, x: TwistRate) -> TwistRate:
        """Return A (t' + S e'') and the terms of velocities: those of the point, and of the angular velocity."""
        assert self.node is not None
        none = (0.0,) * len(self.s_k)
        rates, more = x.e or none, x.de or none
        own, speed = along(self.turns, rates), along(self.s_k, rates)
        dw = add(add(x.dw, along(self.turns, more)), add(cross(x.w, own), self._turned_rate(along(self._psi, rates))))
        dv = add(x.dv, times(x.U, self.r))
        dv = add(add(dv, along(self.s_k, more)), scale(2.0, cross(x.w, speed)))
        dv = add(dv, along(tuple(along(row, rates) for row in self.node.G), rates))
        return TwistRate(self.E.T @ add(x.w, own), self.E.T @ dw, self.E.T @ dv)

    def rate(self, t: Twist, own: Twist) -> NodeRate:
        """Return dA/dt for a body with twist t; a node has no motion of its own."""
        return NodeRate(self, add(cross(t.w, self.r), along(self.s_k, self.de)), self.motion.rate(t).columns)

    @property
    def rigid(self) -> Propagation:
        """The propagation to the node of a body that does not deform any further."""
        return Propagation(self.r, self.E)

    @property
    def T(self) -> _Transposed:  # type: ignore[override]
        """The transpose, which moves wrenches and mass matrices inward, and loads the modes by S^T."""
        return _Transposed(self)


@dataclass(frozen=True)
class NodeRate(PropagationRate):
    """The rate of a propagation to a node, with the rates dS of its motions S."""

    dS: tuple[Twist, ...] = ()

    def turned(self, w: Wrench) -> Wrench:
        """Return dA^T A^-T w; it loads the modes too."""
        moved = super().turned(w)
        A: Any = self.A
        return Wrench(
            moved.n, moved.f, tuple(power(w, ds) + power(moved, s) for s, ds in zip(A.S, self.dS, strict=True))
        )

    def carried(self, M, B) -> FlexibleCoriolis:
        """Return the sum for a body with modes: with A = A_k [1 S], it is [1; S^T] (B_o [1 S] + M_o [0 dS])."""
        A: Any = self.A
        still = A.rigid
        rigid, carried = super().carried(M, B), still.T @ M @ still
        C = tuple(rigid @ s + carried @ ds for s, ds in zip(A.S, self.dS, strict=True))
        R = tuple(rigid.transpose_times(s).n for s in A.S)
        return FlexibleCoriolis(rigid, C, R, tuple(tuple(power(c, s) for c in C) for s in A.S))


@dataclass(frozen=True)
class _Transposed:
    A: NodePropagation

    def __matmul__(self, x):
        if isinstance(x, Wrench):
            w: Any = self.A.rigid.T @ x
            return Wrench(w.n, w.f, tuple(power(w, s) for s in self.A.S))
        return _Half(self.A, x)


@dataclass(frozen=True)
class _Half:
    A: NodePropagation
    M: MassMatrix | ArticulatedMass | FlexibleMass

    def __matmul__(self, other: Propagation) -> FlexibleMass:
        assert other is self.A, "a mass matrix is carried by one propagation: A.T @ M @ A"
        rigid: Any = self.A.rigid
        return welded(rigid.T @ self.M @ rigid, self.A.S)


def _acts(x: Scalar) -> bool:
    return not (is_number(x) and x == 0.0)
