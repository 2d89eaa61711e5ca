"""Parameters of which torques are linear functions: those of the bodies, and further ones of the joints by option.

Every degree of freedom has one parameter of each further sort, whose column is that of a torque in this joint alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ... import joints as joint_kinds
from ...algebra.mass import MassMatrix
from ...algebra.scalars import Numbers
from ...algebra.vectors import from_moments
from ...dynamics.force_laws import SLIP_SPEED
from ...dynamics.regressor import PARAMETERS
from ...errors import InputError, unknown_name
from ...model.axes import axis_labels, axis_names
from ...model.checks import JOINT_SPRING
from ...model.mechanism import Mechanism, Named, one_set, resolve_parts
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import as_list
from ..loops.actuation import dofs, effort_weights, efforts
from ..loops.constraints import ActingForces, Split, require_closed, singular_split
from ..loops.tolerances import CONSISTENT

if TYPE_CHECKING:
    from ...algebra.scalars import Scalar
    from ...algebra.vectors import Matrix, Vector
    from ..loops.actuation import Weights


@dataclass(frozen=True)
class Column:
    """The torque of a unit parameter as a function of (q, qd, qdd) of its degree of freedom, and what it is.

    `unit` is that of the parameter in a joint that rotates, `sliding` in one that slides. With `position`, the torque
    depends on the coordinate, which the joint must have one of per degree of freedom.
    """

    torque: Callable[[Numbers, Numbers, Numbers], Numbers]
    unit: str
    sliding: str
    position: bool = False


STRIBECK_SPEED = 0.1
"""The speed [rad/s, m/s] over which friction falls from that of sticking to that of slipping."""


def _sign(qd: Numbers) -> Numbers:
    """Return the smooth sign of velocities, as in simulations."""
    return qd / np.sqrt(qd * qd + SLIP_SPEED * SLIP_SPEED)


COLUMNS = {
    "viscous": Column(lambda q, qd, qdd: qd, "N m s/rad", "N s/m"),
    "coulomb": Column(lambda q, qd, qdd: _sign(qd), "N m", "N"),
    "offset": Column(lambda q, qd, qdd: np.ones_like(qd), "N m", "N"),
    "armature": Column(lambda q, qd, qdd: qdd, "kg m^2", "kg"),
    "stiffness": Column(lambda q, qd, qdd: q, "N m/rad", "N/m", position=True),
    "stribeck": Column(lambda q, qd, qdd: _sign(qd) * np.exp(-((qd / STRIBECK_SPEED) ** 2)), "N m", "N"),
    "asymmetry": Column(lambda q, qd, qdd: _sign(qd) * qd, "N m s/rad", "N s/m"),
}
"""The further sorts of parameters: damping, dry friction as in simulations, a constant torque, the inertia of the
drive, a spring, what friction at low speeds has above dry friction, and half the difference of damping forward and
back. A spring that is relaxed at another position than zero also has an offset, as has dry friction that differs by the
direction. Mechanisms have no place for offset, stribeck and asymmetry."""

UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
"""The units of the ten parameters of a body."""


def column_names(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Return the sorts of further columns, checked, in the order given."""
    names = tuple(map(str, as_list(columns)))
    for k, name in enumerate(names):
        if name not in COLUMNS:
            raise unknown_name("column", name, COLUMNS)
        if name in names[:k]:
            raise InputError(f"columns has {name!r} twice; name it once")
    return names


def parameter_names(mechanism: Mechanism, columns: str | Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the columns of a regressor: "forearm.mx", and "elbow.viscous" of a joint."""
    inertial = [f"{b.name}.{p}" for b in mechanism.bodies for p in PARAMETERS]
    labels = axis_labels(mechanism, 1)
    return (*inertial, *(f"{joint}.{name}" for name in column_names(columns) for joint in labels))


def parameter_units(mechanism: Mechanism, columns: str | Iterable[str] = ()) -> tuple[str, ...]:
    """Return the units of the columns of a regressor."""
    turning = [unit == "rad" for _, _, unit in axis_names(mechanism, 1)]
    chosen = [COLUMNS[name] for name in column_names(columns)]
    return (*UNITS * len(mechanism.bodies), *(c.unit if turns else c.sliding for c in chosen for turns in turning))


def dynamic_parameters(
    system: CompiledMechanism, columns: str | Iterable[str] = (), *, parameters: Named | None = None
) -> Numbers:
    """Return the parameters of a mechanism in the order of the columns of its regressor."""
    m = system.mechanism
    values = m.values(None if parameters is None else one_set(m, parameters, "dynamic_parameters"))
    names = column_names(columns)
    bodies, joints, forces = resolve_parts((m.bodies, m.joints, m.forces), values)
    out = [x for b in bodies for x in inertial(b.mass, b.com, from_moments(b.inertia))]
    springs = _springs(m, forces) if {"stiffness", "offset"} & set(names) else {}
    of_joint = {"viscous": "damping", "coulomb": "friction", "armature": "armature"}
    for name in names:
        for joint in joints:
            count = joint_kinds.kind(joint.kind).NV
            own = getattr(joint, of_joint[name]) if name in of_joint else springs.get((joint.name, name), ())
            out += own or (0.0,) * count
    return np.array(out, dtype=float)


def inertial(mass: Scalar, com: Vector, inertia: Matrix) -> tuple:
    """Return the ten parameters of a body from its mass, center of mass and inertia about it (3x3)."""
    M = MassMatrix.of_body(mass, com, inertia)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = M.inertia
    return (M.m, *M.mc, xx, xy, yy, xz, yz, zz)


def _springs(mechanism: Mechanism, forces: Iterable[Any]) -> dict[tuple[str, str], list[float]]:
    """Return the stiffness of the springs in each joint, and the torques that they need at zero displacement."""
    out: dict[tuple[str, str], list[float]] = {}
    carried = {j.child: j for j in mechanism.joints}
    for element in (f for f in forces if f.kind == JOINT_SPRING):
        joint, given = carried[element.body_b], dict(element.coefficients)
        for n in range(joint_kinds.kind(joint.kind).NV):
            k, rest = given.get(f"stiffness_{n + 1}", 0.0), given.get(f"rest_{n + 1}", 0.0)
            for name, x in (("stiffness", k), ("offset", -k * rest)):
                out.setdefault((joint.name, name), [0.0] * joint_kinds.kind(joint.kind).NV)[n] += x
    return out


def regressor(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    columns: str | Iterable[str] = (),
    actuated: str | Iterable[str] | None = None,
    weights: Weights | None = None,
    tol: float = CONSISTENT,
    **options: Any,
) -> Numbers:
    """Return Y [..., nv, p] with tau = Y pi, with further `columns`, for all joints or for the `actuated` ones.

    The torques of actuated joints are those of inverse_dynamics with the same `actuated` and `weights`: linear in the
    torques of the open tree, by the same map of singular values.
    """
    names, m = column_names(columns), system.mechanism
    if "out" in options:
        raise InputError("regressor with columns= or actuated= returns a new array; leave out out=")
    inertia = CompiledMechanism.regressor(system, q, qd, qdd, **options)
    lead = inertia.shape[:-2]
    q, qd, qdd = (np.broadcast_to(np.asarray(x, dtype=float), (*lead, np.shape(x)[-1])) for x in (q, qd, qdd))
    if any(COLUMNS[name].position for name in names):
        _require_coordinates(m)
    parts = [inertia]
    for name in names:
        torque = COLUMNS[name].torque(q if COLUMNS[name].position else qd, qd, qdd)
        parts.append(torque[..., None] * np.eye(m.nv))
    Y = np.concatenate(parts, axis=-1) if len(parts) > 1 else inertia
    if actuated is None:
        return Y
    acting = ActingForces.of(system, None, False, options.get("parameters"))
    driven = dofs(m, actuated)
    at = singular_split(system, q, acting.parameters)
    require_closed(system, at, q, qd, qdd, tol, acting.parameters)
    return _actuating(system, at, driven, weights) @ Y


def _actuating(system: CompiledMechanism, at: Split, driven: list[int], weights: Weights | None) -> Numbers:
    """Return the matrix [..., nv, nv] from the torques of the open tree to those of the actuated joints."""
    nv = system.nv
    lead = at.rank.shape
    units = np.broadcast_to(np.eye(nv).reshape(nv, *(1,) * len(lead), nv), (nv, *lead, nv))
    columns, rank, _ = efforts(at, units, driven, effort_weights(system.mechanism, at, driven, weights))
    short = np.broadcast_to(rank, lead) < nv - at.rank
    if short.any():
        free = int((nv - at.rank).max())
        raise InputError(
            f"the actuators drive {int(np.min(rank))} of {free} degrees of freedom of {system.mechanism.name!r}, and "
            "the torques of others have no regressor; actuate more joints"
        )
    return np.moveaxis(columns, 0, -1)


def _require_coordinates(mechanism: Mechanism) -> None:
    for joint in mechanism.joints:
        kind = joint_kinds.kind(joint.kind)
        if kind.NQ != kind.NV:
            raise InputError(
                f"columns has 'stiffness', and joint {joint.name!r} rotates by a quaternion, which no spring of a "
                "joint depends on; leave it out"
            )
