"""Loads over a run, of drives, force elements and bearings: force or torque, speed, power and energy, and wrenches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.scalars import Numbers
from ..analysis.loops.constraints import frame_pose
from ..dynamics.force_laws import TINY, spring_damper, transmission
from ..errors import InputError, brief
from ..model.axes import axis_labels, axis_names, entries, rate_unit
from ..model.mechanism import resolve_parts
from ..model.parts import GROUND
from ..results.columns import EFFORTS, acting_wrenches, call_options
from ..results.trajectory import Trajectory
from ..simulation.acting.joint_forces import JointSpring, Transmission
from ..simulation.acting.point_forces import LinearActuator, SpringDamper, from_element
from .measures import Extreme, extreme, heating_load, highest, mean, rms, share_above, work

LOADED = 0.05
"""The part of its peak above which a force or torque counts as a load in the duty cycle."""
IDLE = 1e-9
"""The part of the largest power below which a drive neither delivers nor brakes: well above rounding."""
UNDRIVEN = 1e-12
"""The part of the largest force or torque below which a joint has no drive: rounding of inverse dynamics."""


@dataclass(frozen=True)
class DriveLoad:
    """The load of the drive of one degree of freedom over a run.

    `effort` is its force or torque [nt] in `unit`, N or N m, `speed` that of the joint in `speed_unit`. Power [W] is
    their product, positive if the drive delivers it. `continuous` is the RMS over the run, `thermal` the value that
    `heating_load` finds with a time constant, None without one. `delivered` and `regenerated` are energies [J], both
    positive. `duty` is the share of the time in which the effort exceeds LOADED of its peak; `motoring` and `braking`
    are the shares in which the power is positive and negative.
    """

    name: str
    joint: str
    unit: str
    speed_unit: str
    driven: bool
    peak: Extreme
    continuous: float
    thermal: float | None
    peak_speed: Extreme
    rms_speed: float
    peak_power: Extreme
    peak_braking: Extreme
    mean_power: float
    delivered: float
    regenerated: float
    duty: float
    motoring: float
    braking: float
    t: Numbers = field(repr=False)
    effort: Numbers = field(repr=False)
    speed: Numbers = field(repr=False)
    acceleration: Numbers = field(repr=False)
    power: Numbers = field(repr=False)

    @property
    def rotates(self) -> bool:
        """Whether the degree of freedom is a rotation."""
        return self.unit == "N m"

    @property
    def quantity(self) -> str:
        """The word for its load: "torque" or "force"."""
        return "torque" if self.rotates else "force"


def drive_efforts(run: Trajectory) -> Numbers:
    """Return the forces and torques of the drives [nt, nv]: the control or, if a run has none, all joint torques."""
    return run["tau"] if run.control is None else run.control


def driven_columns(efforts: Numbers) -> list[int]:
    """Return the degrees of freedom at which a drive acts at some instant."""
    largest = np.abs(efforts).max(axis=0)
    return [k for k, x in enumerate(largest) if x > UNDRIVEN * largest.max(initial=0.0)]


def drive_loads(run: Trajectory, thermal_time: float | None = None) -> tuple[DriveLoad, ...]:
    """Return the loads of all degrees of freedom of a single run, in the order of qd."""
    mechanism = run.system.mechanism
    efforts, qdd = drive_efforts(run), run["qdd"]
    with_drive = driven_columns(efforts)
    powers = efforts * run.qd
    busy = IDLE * float(np.abs(powers).max(initial=0.0))
    out = []
    for k, (label, axis) in enumerate(zip(axis_labels(mechanism, 1), axis_names(mechanism, 1), strict=True)):
        joint, _, unit = axis
        driven = k in with_drive
        effort = efforts[:, k] if driven else np.zeros(len(run))
        names = (label, joint, EFFORTS[unit], rate_unit(unit), driven)
        out.append(_load(names, run.t, effort, run.qd[:, k], qdd[:, k], busy, thermal_time))
    return tuple(out)


def _load(
    names: tuple[str, str, str, str, bool],
    t: Numbers,
    effort: Numbers,
    speed: Numbers,
    acceleration: Numbers,
    busy: float,
    thermal_time: float | None,
) -> DriveLoad:
    power = effort * speed
    delivered, regenerated = work(t, power)
    peak, lowest = extreme(t, effort), highest(t, -power)
    return DriveLoad(
        *names,
        peak=peak,
        continuous=rms(t, effort),
        thermal=None if thermal_time is None else heating_load(t, effort, thermal_time),
        peak_speed=extreme(t, speed),
        rms_speed=rms(t, speed),
        peak_power=_at_least_zero(highest(t, power)),
        peak_braking=_at_least_zero(lowest),
        mean_power=mean(t, power),
        delivered=delivered,
        regenerated=regenerated,
        duty=share_above(t, np.abs(effort), LOADED * abs(peak.value)),
        motoring=share_above(t, power, busy),
        braking=share_above(t, -power, busy),
        t=t,
        effort=effort,
        speed=speed,
        acceleration=acceleration,
        power=power,
    )


def _at_least_zero(found: Extreme) -> Extreme:
    """Return zero for the peak of a power that the drive never has."""
    return Extreme(max(0.0, found.value), found.t)


# --- Springs, dampers and linear actuators over a run: force, length and speed of each, and the wrenches on the bodies


@dataclass(frozen=True)
class ElementLoad:
    """A force element between two points over a run.

    `force` [nt] pushes the points apart if positive, and pulls them together if negative [N]. `length` [nt] is their
    distance [m], `speed` its rate [m/s]. `delivered` is the work that the element does, `absorbed` that which is done
    on it, both positive [J].
    """

    name: str
    sort: str
    peak: Extreme
    rms: float
    shortest: Extreme
    longest: Extreme
    peak_speed: Extreme
    peak_power: Extreme
    delivered: float
    absorbed: float
    t: Numbers = field(repr=False)
    force: Numbers = field(repr=False)
    length: Numbers = field(repr=False)
    speed: Numbers = field(repr=False)


@dataclass(frozen=True)
class ElementLoads:
    """Loads of force elements, and what they exert: joint torques [nt, nv] and wrenches on bodies [nt, nb, 6]."""

    loads: tuple[ElementLoad, ...]
    torques: Numbers
    wrenches: Numbers


def own_elements(run: Trajectory) -> list[tuple[str, Any]]:
    """Return the force elements of a run's mechanism as (name, force)."""
    mechanism = run.system.mechanism
    carried = {j.child: j for j in mechanism.joints}
    return [(element.name, from_element(element, carried)) for element in mechanism.forces]


def name_forces(forces: Iterable[object]) -> list[tuple[str, Any]]:
    """Return forces that were given to `simulate` as (name, force), or raise an InputError for other kinds."""
    out = []
    for k, force in enumerate(forces, 1):
        if not isinstance(force, SpringDamper | LinearActuator):
            raise InputError(
                f"forces has {brief(force)}; a load report takes SpringDamper and LinearActuator, whose forces follow "
                "from the states of a run"
            )
        out.append((f"{type(force).__name__} {k}", force))
    return out


def load_elements(run: Trajectory, elements: Iterable[tuple[str, object]]) -> ElementLoads:
    """Return the loads of force elements at all samples of a single run."""
    mechanism = run.system.mechanism
    values = mechanism.values(run.constant_parameters)
    torques = np.zeros((len(run), mechanism.nv))
    wrenches = np.zeros((len(run), len(mechanism.bodies), 6))
    loads, pairs = [], list(elements)
    in_joints = (JointSpring, Transmission)
    twists = _twists(run) if any(not isinstance(force, in_joints) for _, force in pairs) else np.zeros(0)
    for name, force in pairs:
        if isinstance(force, JointSpring):
            at, coordinates = (entries(mechanism, force.joint, which) for which in (1, 0))
            k, rest = (np.array(resolve_parts(x, values), dtype=float) for x in (force.stiffness, force.rest))
            torques[:, at] += k * (rest - run.q[:, coordinates])
        elif isinstance(force, Transmission):
            (a, b), x, rate = twist_of(run, force)
            numbers = resolve_parts((force.stiffness, force.damping, force.backlash), values)
            pull, _ = transmission(x, rate, *numbers)
            torques[:, a] -= pull
            torques[:, b] += pull
        else:
            loads.append(_between_points(run, name, force, values, wrenches, twists))
    return ElementLoads(tuple(loads), torques, wrenches)


def twist_of(run: Trajectory, force: Transmission) -> tuple[list[int], Numbers, Numbers]:
    """Return the entries of motor and joint in qd, and the twist of a transmission [nt] with its rate."""
    m = run.system.mechanism
    at, to = ([entries(m, name, which)[0] for name in (force.motor, force.joint)] for which in (1, 0))
    return at, run.q[:, to[0]] - run.q[:, to[1]], run.qd[:, at[0]] - run.qd[:, at[1]]


def _between_points(
    run: Trajectory, name: str, force: Any, values: dict[str, Any], wrenches: Numbers, twists: Numbers
) -> ElementLoad:
    """Return the load of an element, and add its wrenches to those on the bodies."""
    a, va = _point_motion(run, force.body_a, resolve_parts(force.point_a, values), twists)
    b, vb = _point_motion(run, force.body_b, resolve_parts(force.point_b, values), twists)
    d = b - a
    length = np.sqrt((d * d).sum(axis=-1) + TINY**2)
    direction = d / length[:, None]
    speed = (direction * (vb - va)).sum(axis=-1)
    if isinstance(force, SpringDamper):
        numbers = resolve_parts((force.stiffness, force.damping, force.free_length, force.preload), values)
        push = spring_damper(length, speed, *numbers)
    elif callable(force.force):
        law: Any = force.force
        push = np.array([float(law(float(t))) for t in run.t])
    else:
        push = np.full(len(run), resolve_parts(force.force, values), dtype=float)
    for body, point, sign in ((force.body_a, force.point_a, -1.0), (force.body_b, force.point_b, 1.0)):
        if body != GROUND:
            k = [x.name for x in run.system.bodies].index(body)
            own = (np.swapaxes(run["poses"][:, k, :3, :3], -1, -2) @ direction[..., None])[..., 0]
            f = sign * push[:, None] * own
            arm = np.array(resolve_parts(point, values), dtype=float)
            wrenches[:, k] += np.concatenate([np.cross(arm, f), f], axis=-1)
    delivered, absorbed = work(run.t, push * speed)
    sort = "spring and damper" if isinstance(force, SpringDamper) else "linear actuator"
    low, high = highest(run.t, -length), highest(run.t, length)
    return ElementLoad(
        name, sort, extreme(run.t, push), rms(run.t, push), Extreme(-low.value, low.t), high,
        extreme(run.t, speed), extreme(run.t, push * speed), delivered, absorbed, run.t, push, length, speed,
    )  # fmt: skip


def _point_motion(run: Trajectory, body: str, point: object, twists: Numbers) -> tuple[Numbers, Numbers]:
    """Return positions [nt, 3] and velocities [nt, 3] of a point of a body, in the axes of the ground."""
    place = np.array(point, dtype=float)
    if body == GROUND:
        return np.broadcast_to(place, (len(run), 3)), np.zeros((len(run), 3))
    k = [b.name for b in run.system.bodies].index(body)
    pose, twist = run["poses"][:, k], twists[:, k]
    velocity = twist[:, 3:] + np.cross(twist[:, :3], place)
    return pose[:, :3, :3] @ place + pose[:, :3, 3], (pose[:, :3, :3] @ velocity[..., None])[..., 0]


def _twists(run: Trajectory) -> Numbers:
    return run.system.twists(run.q, run.qd, **call_options(run))


# --- Bearing loads: the reaction at every joint and loop, split by the axis of the joint ---

PARTS = {"radial": "N", "axial": "N", "bending": "N m", "torsion": "N m"}
"""The parts of a reaction at a joint with an axis, with their units."""
TOTALS = {"force": "N", "moment": "N m"}
"""The magnitudes of the whole force and moment, which every joint has."""
ROUNDING = 1e-12
"""The part of the largest entry of all reactions below which a part is rounding and shown as zero."""
ALONG = 1e-9
"""The least direction cosine at which a component counts as contributing to a part: above rounding of poses."""


@dataclass(frozen=True)
class BearingLoad:
    """The reaction at a joint or loop over a run, at the origin of its child frame (frame b of a loop).

    `values` has magnitudes [nt]: "force" and "moment" of every joint and, if it has an axis, "radial", the force
    perpendicular to it, "axial" along it, "bending", the moment perpendicular to the axis, and "torsion" about it.
    `drives` names those parts that the joint leaves free: there the drive acts, not the bearing. `shared` names those
    that motion alone does not determine, so that joints share them by their compliance.
    """

    name: str
    sort: str
    kind: str
    drives: tuple[str, ...]
    shared: tuple[str, ...]
    peaks: dict[str, Extreme]
    rms: dict[str, float]
    t: Numbers = field(repr=False)
    values: dict[str, Numbers] = field(repr=False)

    @property
    def has_axis(self) -> bool:
        """Whether the joint has one axis, by which its reaction is split."""
        return "radial" in self.values


def bearing_loads(run: Trajectory, share: object = None) -> tuple[BearingLoad, ...]:
    """Return the loads at all joints of a single run, then at its loops; joints that leave all motions free have none.

    Reactions that the run does not have are computed from its states and torques, all samples at once. `share` are
    compliances of joints and loops, as for `System.loads`.
    """
    mechanism = run.system.mechanism
    values = mechanism.values(run.constant_parameters)
    wrenches, unique = reactions(run, share)
    noise = ROUNDING * float(np.abs(wrenches).max(initial=0.0))
    out = []
    for k, joint in enumerate(resolve_parts(mechanism.joints, values)):
        kind = joint_kinds.kind(joint.kind)
        if kind.NV < 6:
            axes, free = None, ()
            if one_axis(kind.DATA):
                axes, free = np.array(kind.frame(joint), dtype=float), _free_parts(joint)
            names = (joint.name, "joint", joint.kind, free)
            out.append(_bearing(names, run.t, wrenches[:, k], unique[:, k], axes, noise))
    poses = run["poses"] if mechanism.loops else np.zeros((0, 0, 4, 4))
    for k, loop in enumerate(resolve_parts(mechanism.loops, values), len(mechanism.joints)):
        kind, axes, free = loop_kinds.kind(loop.kind), None, ()
        if one_axis(kind.data):  # the axis is fixed in frame a; the wrench is in the axes of frame b
            a, b = (
                frame_pose(mechanism, poses, body, place)[:, :3, :3]
                for body, place in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b))
            )
            axes = np.swapaxes(b, -1, -2) @ a @ np.array(loop_kinds.frame(loop), dtype=float)
            free = _free_parts(loop) if kind.joint else ()
        names = (loop.name, "loop", loop.kind, free)
        out.append(_bearing(names, run.t, wrenches[:, k], unique[:, k], axes, noise))
    return tuple(out)


def reactions(run: Trajectory, share: object = None) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the wrenches at joints and loops [nt, nb + nl, 6], and whether motion determines their components."""
    if not run.system.closures:
        return run["reactions"], np.ones(run["reactions"].shape, dtype=bool)
    more = {} if run.parameters is None else {"parameters": run.parameters}
    found = run.system.loads(
        run.q, run.qd, tau=run["tau"], wrenches=acting_wrenches(run), forces=False, share=share, **more
    )
    return (
        np.concatenate([found.joints, found.cuts], axis=-2),
        np.concatenate([found.unique_joints, found.unique_cuts], axis=-2),
    )


def _bearing(
    names: tuple[str, str, str, tuple[str, ...]],
    t: Numbers,
    wrench: Numbers,
    unique: NDArray[np.bool_],
    axes: Numbers | None,
    noise: float,
) -> BearingLoad:
    values = {part: x if x.max() > noise else np.zeros_like(x) for part, x in split_wrench(wrench, axes).items()}
    peaks = {part: highest(t, x) for part, x in values.items()}
    means = {part: rms(t, x) for part, x in values.items()}
    return BearingLoad(*names, _shared_axes(unique, axes), peaks, means, t, values)


def _shared_axes(unique: NDArray[np.bool_], axes: Numbers | None) -> tuple[str, ...]:
    """Return the parts to which components contribute that motion does not determine in some state."""
    vague = np.logical_not(np.logical_and.reduce(unique, axis=0))
    out = [total for total, entries in (("force", vague[3:]), ("moment", vague[:3])) if entries.any()]
    if axes is None or not vague.any():
        return tuple(out)
    used = np.abs(axes).reshape(-1, 3, 3).max(axis=0) > ALONG
    for n, f, across in (("bending", "radial", slice(0, 2)), ("torsion", "axial", slice(2, 3))):
        own = used[:, across].any(axis=1)
        out += [part for part, entries in ((f, vague[3:]), (n, vague[:3])) if (own & entries).any()]
    return tuple(out)


def split_wrench(wrench: Numbers, axes: Numbers | None) -> dict[str, Numbers]:
    """Return the magnitudes of a wrench [..., 6] by part; `axes` [..., 3, 3] have z along the joint's axis, or None."""
    return {part: magnitude(wrench, axes, part) for part in (TOTALS if axes is None else {**TOTALS, **PARTS})}


def magnitude(wrench: Numbers, axes: Numbers | None, part: str) -> Numbers:
    """Return the magnitude [...] of one part of a wrench [..., 6]."""
    half = wrench[..., 3:] if {**TOTALS, **PARTS}[part] == "N" else wrench[..., :3]
    if part in TOTALS or axes is None:
        return np.linalg.norm(half, axis=-1)
    own = (half[..., None, :] @ axes)[..., 0, :]
    return np.linalg.norm(own[..., :2], axis=-1) if part in ("radial", "bending") else np.abs(own[..., 2])


def one_axis(data: tuple[str, ...]) -> bool:
    """Return whether a kind has a single axis; the two axes of a universal joint have no common split."""
    return "axis" in data and "axis2" not in data


def _free_parts(joint) -> tuple[str, ...]:
    """Return the parts along which a joint moves freely, for single rotations and translations."""
    kind = joint_kinds.kind(joint.kind)
    motion = kind.motion(joint, kind.neutral(joint), (0.0,) * kind.NV)
    out = []
    for column in motion.columns:
        entries = [*column.w, *column.v]
        moved = [k for k, x in enumerate(entries) if x != 0.0]
        if len(moved) == 1:
            out.append(("bending", "bending", "torsion", "radial", "radial", "axial")[moved[0]])
    return tuple(dict.fromkeys(out))
