"""The ledger of a torque: the share of every cause and of every body, exact to rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError, unknown_name
from ..formulations.denoc import denoc
from ..formulations.kinematics import BodyState, body_states, gravity
from ..joints import kind
from ..model.mechanism import Mechanism, resolve_parts
from ..runtime.compiled import CompiledMechanism

# --- The motion of each body in the ground's axes: its center of mass, its columns of N, and the wrench it requires.


@dataclass(frozen=True)
class BodyMotion:
    """A body with N [6, nv], its twist [omega; v] at the center of mass per unit qd, and the rate of that twist."""

    body: BodyState
    N: Numbers
    dw: Numbers
    dc: Numbers

    def wrench(self, acceleration: Numbers | None = None) -> Numbers:
        """Return the wrench [n; f] about the center of mass that causes the motion, by the Newton-Euler equations."""
        b = self.body
        n = b.I @ self.dw + np.cross(b.w, b.I @ b.w)
        return np.concatenate([n, b.m * (self.dc if acceleration is None else acceleration)])


def body_motions(mechanism: Mechanism, q: Numbers, qd: Numbers | None = None, qdd: Numbers | None = None):
    """Return the motion of every body for joint velocities and accelerations, which are zero by default."""
    states = body_states(mechanism, q, qd)
    speed = np.zeros(mechanism.nv) if qd is None else np.asarray(qd, dtype=float)
    rate = np.zeros(mechanism.nv) if qdd is None else np.asarray(qdd, dtype=float)
    out: list[BodyMotion] = []
    origins: list[tuple[Numbers, Numbers]] = []  # dw and dv of each body origin
    columns: list[Numbers] = []
    for b in states:
        own = b.P @ rate[b.dofs] + b.dP @ speed[b.dofs]
        N = np.zeros((6, mechanism.nv))
        if b.parent < 0:
            dw, dv = own[:3], own[3:]
        else:
            p, (dwp, dvp) = states[b.parent], origins[b.parent]
            r = b.o - p.o
            dw = dwp + own[:3]
            dv = dvp + np.cross(dwp, r) + np.cross(p.w, b.v - p.v) + own[3:]
            N = _shifted(columns[b.parent], r)
        N[:, b.dofs] += b.P
        origins.append((dw, dv))
        columns.append(N)
        dc = dv + np.cross(dw, b.d) + np.cross(b.w, np.cross(b.w, b.d))
        out.append(BodyMotion(b, _shifted(N, b.d), dw, dc))
    return out


def _shifted(N: Numbers, r: Numbers) -> Numbers:
    """Return twists shifted to a point at the offset r."""
    return np.vstack([N[:3], N[3:] + np.cross(N[:3].T, r).T])


CAUSES = ("inertia", "convective", "gravity", "external")
"""Causes that act through the bodies; armature and friction act in the joints themselves."""


@dataclass(frozen=True, repr=False)
class Ledger(Displayed):
    """Each torque as a sum: `parts` [..., cause, body, nv] by CAUSES and bodies, `armature` and `friction` [..., nv].

    `torque` is the inverse dynamics of the compiled recursion. All parts but friction add up to it. Friction is that of
    the mechanism's joints: damping qd + friction sign(qd).
    """

    torque: Numbers
    parts: Numbers
    armature: Numbers
    friction: Numbers
    bodies: tuple[str, ...]
    axes: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def by_cause(self) -> dict[str, Numbers]:
        """The shares of inertia, convective terms, gravity, external wrenches and armature, [..., nv] each."""
        shares = self.parts.sum(axis=-2)
        return {name: shares[..., k, :] for k, name in enumerate(CAUSES)} | {"armature": self.armature}

    @property
    def by_body(self) -> dict[str, Numbers]:
        """The shares of the bodies' masses and of the wrenches on them, [..., nv] each, without armature."""
        shares = self.parts.sum(axis=-3)
        return {name: shares[..., k, :] for k, name in enumerate(self.bodies)}

    @property
    def with_friction(self) -> Numbers:
        """The torque required of the drives: inverse dynamics plus friction, [..., nv]."""
        return self.torque + self.friction

    @property
    def rounding(self) -> float:
        """The largest difference between a torque and the sum of its parts, relative to the sum of their magnitudes."""
        total = sum(self.by_cause.values())
        size = np.abs(self.parts).sum(axis=(-3, -2)) + np.abs(self.armature)
        scale = size.max(axis=-1, keepdims=True, initial=0.0)
        return float((np.abs(total - self.torque) / np.where(scale > 0, scale, 1.0)).max(initial=0.0))

    def index(self, axis: int | str) -> int:
        """Return the number of an axis, given by name or number."""
        if isinstance(axis, str):
            if axis not in self.axes:
                raise unknown_name("axis", axis, self.axes)
            return self.axes.index(axis)
        if not 0 <= axis < len(self.axes):
            raise InputError(f"axis {axis}; expected 0 to {len(self.axes) - 1}")
        return axis

    def table(self, digits: int = 4) -> str:
        """Return one state as text: a row per axis and a column per cause, then the same with a column per body."""
        if self.torque.ndim != 1:
            raise InputError(f"the ledger holds states of shape {self.torque.shape[:-1]}; a table shows one of them")
        causes, bodies = (table.text() for table in self._tables(digits))
        return "\n\n".join((causes, bodies, self._sum()))

    def display(self) -> list[str | Table]:
        """Return the tables of one state, or the shape of many."""
        if self.torque.ndim != 1:
            return [f"causes of torques in states of shape {self.torque.shape[:-1]}", self._sum()]
        causes, bodies = self._tables(4)
        return [causes, "", bodies, "", self._sum()]

    def _sum(self) -> str:
        return f"The parts add up to the torque within {self.rounding:.1e} of their size."

    def _tables(self, digits: int) -> tuple[Table, Table]:
        causes = {
            **self.by_cause,
            "torque": self.torque,
            "friction": self.friction,
            "with friction": self.with_friction,
        }
        labels = [f"{axis} [{unit}]" for axis, unit in zip(self.axes, self.units, strict=True)]
        bodies = {**self.by_body, "armature": self.armature, "torque": self.torque}
        return _table("by cause", labels, causes, digits), _table("by body", labels, bodies, digits)


def ledger(
    system: CompiledMechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: ArrayLike | None = None
) -> Ledger:
    """Return the causes of the torques of a motion; all arrays may have leading axes."""
    torque = np.asarray(system.inverse_dynamics(q, qd, qdd, wrenches=wrenches, forces=False), dtype=float)
    mechanism = system.mechanism
    shape = torque.shape[:-1]
    nb, nv = len(mechanism.bodies), mechanism.nv
    sizes = {"q": (mechanism.nq,), "qd": (nv,), "qdd": (nv,), "w": (nb, 6)}
    given = {"q": q, "qd": qd, "qdd": qdd, "w": np.zeros((nb, 6)) if wrenches is None else wrenches}
    arrays = {name: np.broadcast_to(np.asarray(x, dtype=float), shape + sizes[name]) for name, x in given.items()}
    parts = np.zeros((*shape, len(CAUSES), nb, nv))
    for at in np.ndindex(*shape):
        parts[at] = _parts(mechanism, *(arrays[name][at] for name in ("q", "qd", "qdd", "w")))
    armature, damping, friction = (_of_joints(mechanism, name) for name in ("armature", "damping", "friction"))
    axes, units = zip(*_axes(mechanism), strict=True) if nv else ((), ())
    return Ledger(
        torque,
        parts,
        armature * arrays["qdd"],
        damping * arrays["qd"] + friction * np.sign(arrays["qd"]),
        tuple(b.name for b in mechanism.bodies),
        axes,
        units,
    )


def _parts(mechanism: Mechanism, q: Numbers, qd: Numbers, qdd: Numbers, wrenches: Numbers) -> Numbers:
    """Return the shares [cause, body, nv] at one state: N^T w of each body by itself. [Saha1999] (20)

    I qdd is the motion from rest, C qd is the share of the joint velocities, and gravity is an acceleration -g of every
    body.
    """
    if mechanism.has_flexible:
        return _flexible_parts(mechanism, q, qd, qdd, wrenches)
    g = gravity(mechanism)
    rest, moving = body_motions(mechanism, q, None, qdd), body_motions(mechanism, q, qd)
    out = np.zeros((len(CAUSES), len(wrenches), mechanism.nv))
    for k, (a, b, w) in enumerate(zip(rest, moving, wrenches, strict=True)):
        R, d = a.body.R, a.body.d
        n, f = R @ w[:3], R @ w[3:]
        out[0, k] = a.N.T @ a.wrench()
        out[1, k] = b.N.T @ b.wrench()
        out[2, k] = -a.N[3:].T @ (a.body.m * g)
        out[3, k] = -a.N.T @ np.concatenate([n - np.cross(d, f), f])
    return out


def _flexible_parts(mechanism: Mechanism, q: Numbers, qd: Numbers, qdd: Numbers, wrenches: Numbers) -> Numbers:
    """Return the same shares by the DeNOC matrices, whose twists have the rates of modes. docs/theory/flexible.md (12)

    A deformed body, such as "boom.elastic", has the share of its points in the torques of its modes too.
    """
    d = denoc(mechanism, q, qd)
    acceleration = np.array([0.0, 0.0, 0.0, *-d.links.gravity])
    out = np.zeros((len(CAUSES), len(wrenches), mechanism.nv))
    for k, (b, rows, w) in enumerate(zip(d.bodies, d.links.rows, wrenches, strict=True)):
        N, dN = d.N[rows], d.dN[rows]
        out[0, k] = N.T @ (b.M @ (N @ qdd))
        out[1, k] = N.T @ (b.M @ (dN @ qd) + b.dM @ b.t)
        out[2, k] = N.T @ (b.M[:, :6] @ acceleration)
        out[3, k] = -N[:6].T @ np.concatenate([b.R @ w[:3], b.R @ w[3:]])
    return out


def _of_joints(mechanism: Mechanism, name: str) -> Numbers:
    joints = resolve_parts(mechanism.joints, mechanism.values())
    numbers = [x for j in joints for x in (getattr(j, name) or (0.0,) * kind(j.kind).NV)]
    return np.array(numbers, dtype=float)


def _axes(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return a name and the unit of the torque for each degree of freedom."""
    out = []
    for joint in mechanism.joints:
        units = kind(joint.kind).UNITS
        for k, unit in enumerate(units, 1):
            out.append((joint.name if len(units) == 1 else f"{joint.name} {k}", "N m" if unit == "rad" else "N"))
    return out


def _table(title: str, rows: list[str], columns: dict[str, Numbers], digits: int) -> Table:
    noise = 1e-14 * np.max([np.abs(values) for values in columns.values()], axis=0)  # rounding left of exact zeros
    cells = [[f"{x:.{digits}g}" for x in np.where(np.abs(v) <= noise, 0.0, v)] for v in columns.values()]
    return Table((title, *columns), tuple(zip(rows, *cells, strict=True)))
