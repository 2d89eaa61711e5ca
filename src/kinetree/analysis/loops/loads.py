"""Loads: the reaction at every joint of a closed mechanism, in the tree or cut by a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import InputError, unknown_name
from ...model.mechanism import Mechanism, Named, kept_with_mechanism, resolve_parts
from ...model.parts import Placement
from ...runtime.compiled import CompiledMechanism
from .actuation import PART, NativeTorques, actuation, driven_dofs, native_loads, native_torques, replace_samples
from .constraints import ActingForces, Split, require_closed, singular_split
from .load_sharing import Share, share_loads, transmission
from .samples import frame_pose, values_of
from .tolerances import CONSISTENT

Flags = NDArray[np.bool_]

AXES = ("body", "parent", "world")


@dataclass(frozen=True, repr=False)
class Loads(Displayed):
    """Wrenches [n; f] of the parent on the child at each joint, and of body a on body b at each loop [N m, N].

    `joints` [..., nb, 6] are at the joints' origins and include the torques of drives and couplings. `cuts`
    [..., nl, 6] are at the origins of frames b. Both are in the axes of the child (of frame b). Components that are not
    unique (`unique_joints`, `unique_cuts`) do not follow from motion alone: joints share them by compliance.
    `multipliers` [..., nc] belong to the loops' equations; `qdd` and `tau` [..., nv] are the motion and its torques.
    """

    joints: Numbers
    cuts: Numbers
    unique_joints: Flags
    unique_cuts: Flags
    multipliers: Numbers
    qdd: Numbers
    tau: Numbers
    joint_names: tuple[str, ...]
    loop_names: tuple[str, ...]
    turns_of: Callable[[], dict[str, Numbers]] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The joints, then the loops."""
        return self.joint_names + self.loop_names

    @cached_property
    def turns(self) -> dict[str, Numbers]:
        """The rotations of the frames of "parent" and "child" at joints and loops, [..., nb + nl, 3, 3] each."""
        return self.turns_of()

    def at(self, name: str, *, axes: str = "body") -> Numbers:
        """Return the wrench [..., 6] at a joint or loop, in the axes of the child, of the parent or of the world.

        A loop has frame b for the child and frame a for the parent.
        """
        if axes not in AXES:
            raise unknown_name("axes", str(axes), AXES)
        if name not in self.names:
            raise unknown_name("joint or loop", name, self.names)
        k = self.names.index(name)
        own = self.joints[..., k, :] if k < len(self.joint_names) else self.cuts[..., k - len(self.joint_names), :]
        if axes == "body":
            return own
        turn = self.turns["child"][..., k, :, :]
        if axes == "parent":
            turn = np.swapaxes(self.turns["parent"][..., k, :, :], -1, -2) @ turn
        return (turn[..., None, :, :] @ own.reshape(*own.shape[:-1], 2, 3)[..., None]).reshape(own.shape)

    def unique(self, name: str) -> bool:
        """Return whether motion determines all components of the wrench at a joint or loop, in all states."""
        if name not in self.names:
            raise unknown_name("joint or loop", name, self.names)
        k, count = self.names.index(name), len(self.joint_names)
        return bool((self.unique_joints[..., k, :] if k < count else self.unique_cuts[..., k - count, :]).all())

    def table(self, digits: int = 4) -> str:
        """Return one state as text: a row per joint with the wrench in the child's axes; ~ marks values not unique."""
        if self.joints.ndim != 2:
            raise InputError(f"the loads are of states of shape {self.joints.shape[:-2]}; a table shows one of them")
        return "\n".join(part if isinstance(part, str) else part.text() for part in self._parts(*self._whole, digits))

    @property
    def _whole(self) -> tuple[Numbers, Flags]:
        flags = np.concatenate([self.unique_joints, self.unique_cuts], axis=-2)
        return np.concatenate([self.joints, self.cuts], axis=-2), flags

    def _parts(self, wrenches: Numbers, flags: Flags, digits: int) -> list[str | Table]:
        noise = 1e-13 * np.abs(wrenches).max(initial=0.0)  # rounding of zeros
        labels = [*self.joint_names, *(f"{name} (cut)" for name in self.loop_names)]
        heads = [f"{letter}_{axis} [{unit}]" for letter, unit in (("n", "N m"), ("f", "N")) for axis in "xyz"]
        rows = tuple(
            (label, *(f"{x:.{digits}g}{' ' if u else '~'}" for x, u in zip(w, unique, strict=True)))
            for label, w, unique in zip(labels, np.where(np.abs(wrenches) <= noise, 0.0, wrenches), flags, strict=True)
        )
        note = [] if flags.all() else ["~ shared by the joints' compliance: motion alone does not determine it."]
        return [Table(("joint", *heads), rows), *note]

    def display(self) -> list[str | Table]:
        """Return the wrenches of one state; of many states, the largest magnitude of each component."""
        if self.joints.ndim == 2:
            return self._parts(*self._whole, 4)
        wrenches, flags = self._whole
        states = tuple(range(wrenches.ndim - 2))
        largest = np.fmax.reduce(np.abs(wrenches), axis=states, initial=0.0)
        count = int(np.prod(wrenches.shape[:-2]))
        parts = self._parts(largest, np.logical_and.reduce(flags, axis=states), 4)
        return [f"largest sizes in {count} states", *parts]


def loads(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    tau: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    actuated: str | Iterable[str] | None = None,
    wrenches: ArrayLike | None = None,
    forces: bool = True,
    share: Share | None = None,
    parameters: Named | None = None,
    tol: float = CONSISTENT,
) -> Loads:
    """Return the reactions at all joints and loops, under torques `tau` [..., nv] or for a motion `qdd` [..., nv].

    Without either, no torque acts. A motion of a closed mechanism needs the names of the `actuated` joints, whose
    torques `actuation` finds. External `wrenches` [..., nb, 6] are in body axes; the forces of the mechanism act
    unless `forces` is False. `share` has compliances by joint or loop. States and `parameters` [..., np] may have
    leading shapes that fit together.
    """
    acting = ActingForces.of(system, wrenches, forces, parameters)
    q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
    if qdd is None:
        if actuated is not None:
            raise InputError("actuated names the joints that make a motion; it goes with qdd")
        return _under_torques(acting, q, qd, tau, tol, share)
    if tau is not None:
        raise InputError("both tau and qdd are given; give the torques, or the motion that they must make")
    if actuated is None and system.closures:
        raise InputError("a motion qdd of a closed mechanism needs actuated=[...]: the joints that drive it")
    names = [j.name for j in system.joints] if actuated is None else actuated
    native = native_torques(acting, q, qd, qdd, driven_dofs(system, names), tol)
    if native is not None and native.good.all() and (quick := _quick(acting, native, q, qdd, share)) is not None:
        return quick
    found = actuation(
        system, q, qd, qdd, names, share=share, wrenches=wrenches, forces=forces, parameters=parameters, tol=tol
    )
    if not found.achieved.all():
        raise InputError(f"the actuators cannot make this motion ({found.summary()}); give tau, or actuate more joints")
    motion = np.asarray(qdd, dtype=float)
    acting, at, speed, made, torques = _spread(acting, found.multipliers, q, qd, motion, found.tau)
    T = transmission(system.mechanism, acting.poses(at), acting.parameters)
    carried = acting.carried(T, at, speed, made, found.multipliers)
    settled = _settled(singular_split(system, at, acting.parameters), T)
    whole = _loads(acting, at, settled, carried, found.multipliers, made, torques)
    if native is None or native.good.all():
        return whole
    good, own = native.good, acting.of_samples(native.good)
    some = loads(system, at[good], speed[good], qdd=made[good], actuated=names, share=share, tol=tol, **own)
    return replace_samples(whole, good, some)


def _under_torques(
    acting: ActingForces, q: Numbers, qd: Numbers, tau: ArrayLike | None, tol: float, share: Share | None
) -> Loads:
    """Return the loads of the motion that torques make, by default none."""
    system = acting.system
    torques = np.zeros(system.nv) if tau is None else np.asarray(tau, dtype=float)
    made = acting.call("forward_dynamics", q, qd, torques)
    multipliers = acting.call("multipliers", q, qd, torques)
    acting, q, qd, made, torques = _spread(acting, multipliers, q, qd, made, torques)
    at = singular_split(system, q, acting.parameters)
    require_closed(system, at, q, qd, None, tol, acting.parameters)
    T = transmission(system.mechanism, acting.poses(q), acting.parameters)
    if (at.rank < at.J.shape[-2]).any():
        rough = acting.carried(T, q, qd, made, multipliers)
        multipliers = share_loads(system.mechanism, at, T, rough, multipliers, share)
    carried = acting.carried(T, q, qd, made, multipliers)
    return _loads(acting, q, _settled(at, T), carried, multipliers, made, torques)


def _spread(acting: ActingForces, multipliers: Numbers, *arrays: Numbers) -> tuple[Any, ...]:
    """Return what acts, and arrays, with the leading shape of multipliers."""
    lead = multipliers.shape[:-1]
    return acting.spread(lead), *(_over(lead, x) for x in arrays)


def _over(lead: tuple[int, ...], x: Numbers) -> Numbers:
    """Return an array [..., n] with a leading shape."""
    return x if x.shape[:-1] == lead else np.broadcast_to(x, (*lead, x.shape[-1]))


def _quick(acting: ActingForces, made: NativeTorques, q: Numbers, qdd: ArrayLike, share: Share | None) -> Loads | None:
    """Return the loads of as many actuators as degrees of freedom; None if native code does not share them."""
    found = native_loads(acting, made, share)
    if found is None:
        return None
    q, motion = (_over(made.tau.shape[:-1], np.asarray(x, dtype=float)) for x in (q, qdd))
    wrenches, multipliers, unique = found
    return _loads(acting.spread(made.tau.shape[:-1]), q, unique, wrenches, multipliers, motion, made.tau)


def _loads(acting: ActingForces, q: Numbers, unique: Flags, wrenches: Numbers, multipliers, qdd, tau) -> Loads:
    system, nb = acting.system, len(acting.system.bodies)
    return Loads(
        wrenches[..., :nb, :],
        wrenches[..., nb:, :],
        unique[..., :nb, :],
        unique[..., nb:, :],
        multipliers,
        qdd,
        tau,
        *_names(system.mechanism),
        partial(turns_of, acting, q),
    )


@kept_with_mechanism
def _names(mechanism: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the joints and of the loops."""
    return tuple(j.name for j in mechanism.joints), tuple(p.name for p in mechanism.loops)


def _settled(at: Split, T: Numbers) -> Flags:
    """Return a mask of components that are independent of multipliers without joint torques, [..., nb + nl, 6]."""
    moved = np.linalg.norm(T @ at.idle[..., None, :, :], axis=-1)
    units = np.where(np.arange(6) < 3, at.length[..., None], 1.0)[..., None, :]
    return moved <= PART * units


def turns_of(acting: ActingForces, q: Numbers) -> dict[str, Numbers]:
    """Return the rotations of the frames of "parent" and "child" at joints and loops, [..., nb + nl, 3, 3] each."""
    system, poses = acting.system, acting.poses(q)
    joints = [((j.parent, Placement()), (j.child, Placement())) for j in system.joints]
    cuts = [
        ((p.body_a, p.placement_a), (p.body_b, p.placement_b))
        for p in resolve_parts(system.mechanism.loops, values_of(system.mechanism, acting.parameters))
    ]
    return {
        side: np.stack(
            [frame_pose(system.mechanism, poses, *pair[k])[..., :3, :3] for pair in joints + cuts] or [np.eye(3)],
            axis=-3,
        )
        for k, side in enumerate(("parent", "child"))
    }
