"""The ledger of a torque: the share of every cause and of every body, exact to rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
from ..compiled import CompiledMechanism
from ..errors import InputError, unknown_name
from ..formulations.kinematics import gravity
from ..joints import kind
from ..model.mechanism import Mechanism, resolved
from .body_motion import body_motions

CAUSES = ("inertia", "convective", "gravity", "external")
"""Causes that act through the bodies; armature and friction act in the joints themselves."""


@dataclass(frozen=True)
class Ledger:
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
        causes = {
            **self.by_cause,
            "torque": self.torque,
            "friction": self.friction,
            "with friction": self.with_friction,
        }
        labels = [f"{axis} [{unit}]" for axis, unit in zip(self.axes, self.units, strict=True)]
        return "\n\n".join(
            (
                _table("by cause", labels, causes, digits),
                _table("by body", labels, {**self.by_body, "armature": self.armature, "torque": self.torque}, digits),
                f"The parts add up to the torque within {self.rounding:.1e} of their size.",
            )
        )

    def __str__(self) -> str:
        """Return the table."""
        return self.table()


def ledger(
    system: CompiledMechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrenches: ArrayLike | None = None
) -> Ledger:
    """Return the causes of the torques of a motion; all arrays may have leading axes."""
    torque = np.asarray(system.inverse_dynamics(q, qd, qdd, wrenches=wrenches), dtype=float)
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


def _of_joints(mechanism: Mechanism, name: str) -> Numbers:
    joints = resolved(mechanism.joints, mechanism.values())
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


def _table(title: str, rows: list[str], columns: dict[str, Numbers], digits: int) -> str:
    noise = 1e-14 * np.max([np.abs(values) for values in columns.values()], axis=0)  # rounding left of exact zeros
    cells = {name: [f"{x:.{digits}g}" for x in np.where(np.abs(v) <= noise, 0.0, v)] for name, v in columns.items()}
    widths = {name: max(len(name), *map(len, texts), 1) + 2 for name, texts in cells.items()}
    first = max(len(title), *map(len, rows), 1)
    lines = [f"{title:<{first}}" + "".join(f"{name:>{widths[name]}}" for name in columns)]
    for k, label in enumerate(rows):
        lines.append(f"{label:<{first}}" + "".join(f"{cells[name][k]:>{widths[name]}}" for name in columns))
    return "\n".join(lines)
