"""Mechanism: a checked, frozen tree of bodies and joints, in depth order, with a content hash."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, wraps
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from .._support.checks import real_array
from .._support.tables import count_text
from ..algebra.scalars import Scalar
from ..errors import InputError, unknown_name
from .beams import Beam
from .curves import Curve, Law
from .modal_bodies import ModalBody
from .parameters import Expression, Parameter, resolve
from .parts import GROUND, Body, Coupling, ForceElement, Frame, Joint, Loop, Shape

if TYPE_CHECKING:
    from .contacts import Contact
    from .drives import Actuator, Keyframe, Motor

T = TypeVar("T")

LATER = (
    "flexible",
    "ratio",
    "elastic",
    "motors",
    "child_placement",
    "contacts",
    "radius",
    "angle",
    "curve",
    "curve_b",
    "law",
    "actuators",
    "keyframes",
)
"""Fields that hashes leave out where they are None or empty, so that files of earlier versions keep their hashes."""


@dataclass(frozen=True)
class Closure:
    """One equation of a loop or coupling: the name of the part, the direction (in the axes of frame a), the unit.

    Equations that are not holonomic restrict velocities alone, as those of rolling do; their residuals are zero.
    """

    name: str
    label: str
    unit: str
    holonomic: bool = True


@dataclass(frozen=True, repr=False)
class Mechanism:
    """Bodies and joints, one joint per body, parents first: body i is the child of joint i.

    Build it with `build_mechanism`, which orders and checks the parts. q and qd list the joints' coordinates and
    velocities in this order. `scenery` has the shapes that are drawn with the ground. `guess` has coordinates by joint
    name, at or near which a closed mechanism is assembled; all other joints start at zero displacement. `contacts` are
    those of `contacts.py`, `actuators`, `keyframes` and `motors` those of `drives.py`.
    """

    name: str
    bodies: tuple[Body, ...] = ()
    joints: tuple[Joint, ...] = ()
    frames: tuple[Frame, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    forces: tuple[ForceElement, ...] = ()
    gravity: tuple = (0.0, 0.0, -9.81)
    parameters: tuple[Parameter, ...] = ()
    scenery: tuple[Shape, ...] = ()
    source: str = ""
    description: str = ""
    guess: tuple[tuple[str, tuple[float, ...]], ...] = ()
    contacts: tuple[Contact, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    keyframes: tuple[Keyframe, ...] = ()
    motors: tuple[Motor, ...] = ()

    def __repr__(self) -> str:
        """Return the name and the numbers of parts: the parts themselves fill pages."""
        counts = [count_text(len(self.bodies), "body", "bodies")]
        counts += [count_text(len(self.loops), "loop")] * bool(self.loops)
        counts += [count_text(len(self.free_parameters), "free parameter")]
        return f"<Mechanism {self.name!r}: {', '.join(counts)}>"

    def __getstate__(self) -> dict[str, object]:
        """Return the content alone: what was computed from it and kept is computed again where it is needed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def hash(self) -> str:
        """A digest of the whole content except source and description."""
        return _digest(replace(self, source="", description=""))

    @cached_property
    def motion_hash(self) -> str:
        """A digest of the content on which compiled functions depend: everything but shapes, contacts, keyframes.

        The guess is included for closed mechanisms only, where it determines the position at which loops are analyzed.
        """
        bodies, guess = tuple(replace(b, shapes=()) for b in self.bodies), self.guess if self.closures else ()
        bare = replace(self, contacts=(), keyframes=())
        return _digest(replace(bare, bodies=bodies, scenery=(), source="", description="", guess=guess))

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The index of each body's parent; -1 is the ground."""
        return tuple(self.body_indices[j.parent] for j in self.joints)

    @cached_property
    def body_indices(self) -> dict[str, int]:
        """The index of each body by name; -1 is the ground."""
        return {GROUND: -1} | {b.name: i for i, b in enumerate(self.bodies)}

    @cached_property
    def nq(self) -> int:
        """The number of coordinates."""
        return self.q_slices[-1].stop if self.joints else 0

    @cached_property
    def nv(self) -> int:
        """The number of degrees of freedom of the tree."""
        return self.v_slices[-1].stop if self.joints else 0

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        """The slice of q with the coordinates of each joint."""
        return _slices(joint_kinds.kind(j.kind).NQ for j in self.joints)

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        """The slice of qd, qdd and tau with the degrees of freedom of each joint."""
        return _slices(joint_kinds.kind(j.kind).NV for j in self.joints)

    @cached_property
    def kind_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the kinds of its joints, and of its loops, each once."""
        return tuple(dict.fromkeys(j.kind for j in self.joints)), tuple(dict.fromkeys(x.kind for x in self.loops))

    @cached_property
    def closures(self) -> tuple[Closure, ...]:
        """The equations of all loops, then of the couplings."""
        values = self.values()
        out = [Closure(p.name, *e) for p in resolve_parts(self.loops, values) for e in loop_kinds.labels(p)]
        for coupling in self.couplings:
            unit = joint_kinds.kind(self.joint(coupling.joint).kind).UNITS[0]
            out.append(Closure(coupling.name, "coupling", unit))
        return tuple(out)

    @cached_property
    def rolls(self) -> bool:
        """Whether some equations restrict velocities alone, so that positions do not determine each other."""
        return not all(c.holonomic for c in self.closures)

    @cached_property
    def has_flexible(self) -> bool:
        """Whether a body of it is flexible."""
        return bool(self.flexible_name)

    @cached_property
    def flexible_name(self) -> str:
        """The name of its first flexible body, empty if there is none."""
        return next((b.name for b in self.bodies if b.flexible is not None), "")

    @cached_property
    def has_forces(self) -> bool:
        """Whether it has forces of its own: force elements, or damping or friction of its joints."""
        return bool(self.forces) or any(any(j.damping) or any(j.friction) for j in self.joints)

    @property
    def closed_by(self) -> str:
        """The numbers of loops and couplings as words to append to a sentence: ", 2 loops"; empty for a tree."""
        counts = {"loop": len(self.loops), "coupling": len(self.couplings)}
        return "".join(f", {count_text(n, what)}" for what, n in counts.items() if n)

    @cached_property
    def lengths(self) -> tuple[float, ...]:
        """The lengths of the mechanism that are above zero [m]: see `scales.characteristic_length`."""
        joints, loops, bodies = resolve_parts((self.joints, self.loops, self.bodies), self.values())
        places = [j.placement for j in joints] + [p for x in loops for p in (x.placement_a, x.placement_b)]
        sizes = [math.hypot(*p.translation) for p in places] + [float(x.length) for x in loops]
        sizes += [float(x.radius) for x in loops if x.radius is not None]
        sizes += [b.flexible.modal.size for b in bodies if b.flexible is not None]
        sizes += [c.size for x in loops for c in (x.curve, x.curve_b) if c is not None]
        if not any(sizes):
            sizes = [math.hypot(*b.com) for b in bodies]
        return tuple(x for x in sizes if x > 0)

    @cached_property
    def resolved_joints(self) -> tuple[Joint, ...]:
        """The joints with every expression replaced by its number, for the stored values of the parameters."""
        return resolve_parts(self.joints, self.values())

    @property
    def neutral(self) -> tuple[float, ...]:
        """The coordinates at which the mechanism is given: its guess, and zero displacement of joints without one."""
        given = dict(self.guess)
        own = (given.get(j.name) or joint_kinds.kind(j.kind).neutral(j) for j in self.resolved_joints)
        return tuple(float(x) for joint in own for x in joint)

    @cached_property
    def free_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that remain inputs of the compiled functions, in order."""
        return tuple(p for p in self.parameters if p.free)

    def values(self, free: Iterable[Scalar] | None = None) -> dict[str, Scalar]:
        """Return the values of all parameters by name; `free`, if given, has those of the free parameters."""
        out: dict[str, object] = {p.name: p.value for p in self.parameters}
        if free is not None:
            out |= zip((p.name for p in self.free_parameters), free, strict=True)
        return out

    def fixed(self, values: Iterable[float]) -> Mechanism:
        """Return the mechanism with its free parameters at given values, no longer inputs of compiled functions."""
        given = dict(zip((p.name for p in self.free_parameters), map(float, values), strict=True))
        return replace(
            self,
            parameters=tuple(replace(p, value=given[p.name], free=False) if p.free else p for p in self.parameters),
        )

    def body(self, name: str) -> Body:
        """Return a body by name."""
        return _named("body", name, self.bodies)

    def joint(self, name: str) -> Joint:
        """Return a joint by name."""
        return _named("joint", name, self.joints)

    def frame(self, name: str) -> Frame:
        """Return a frame by name; every body, and the ground, is also a frame."""
        for f in self.frames:
            if f.name == name:
                return f
        if name == GROUND or any(b.name == name for b in self.bodies):
            return Frame(name, name)
        raise unknown_name("frame", name, self.frame_names)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names that `frame` accepts."""
        return tuple(dict.fromkeys([*(f.name for f in self.frames), *(b.name for b in self.bodies), GROUND]))


def kept_with_mechanism(function: Callable[[Mechanism], T]) -> Callable[[Mechanism], T]:
    """Decorate a function of a mechanism: its result is stored with the mechanism, which never changes.

    A result is computed again after a kind of its joints or loops was replaced.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(mechanism: Mechanism) -> T:
        stored, kinds = vars(mechanism), _kinds(mechanism)
        before, value = stored.get(name, (None, None))
        if before is None or not all(map(operator.is_, before, kinds)):
            value = function(mechanism)
            stored[name] = kinds, value
        return cast("T", value)

    return kept


def _kinds(mechanism: Mechanism) -> list[Any]:
    """Return the kinds that the joints and loops of a mechanism have at present."""
    of_joints, of_loops = mechanism.kind_names
    return [*map(joint_kinds.KINDS.get, of_joints), *map(loop_kinds.KINDS.get, of_loops)]


def _slices(counts: Iterable[int]) -> tuple[slice, ...]:
    """Return consecutive slices of the given lengths."""
    ends = tuple(accumulate(counts, initial=0))
    return tuple(slice(a, b) for a, b in pairwise(ends))


def _digest(mechanism: Mechanism) -> str:
    return hashlib.sha256(canonical(mechanism).encode()).hexdigest()


def _named(what: str, name: str, items):
    for item in items:
        if item.name == name:
            return item
    raise unknown_name(what, name, (item.name for item in items))


def canonical(x: object) -> str:
    """Return a text that is the same for equal content: the basis of hashes."""
    if isinstance(x, float | int) and not isinstance(x, bool):
        return repr(float(x) + 0.0)  # -0.0 and 0.0, 1 and 1.0 are the same number
    if isinstance(x, str | bool) or x is None:
        return repr(x)
    if isinstance(x, Expression):
        return f"<{x}>"
    if isinstance(x, Mapping):
        return "{" + ",".join(f"{k!r}:{canonical(v)}" for k, v in sorted(x.items())) + "}"
    if isinstance(x, tuple | list):
        return "(" + ",".join(map(canonical, x)) + ")"
    if is_dataclass(x) and not isinstance(x, type):
        given = (getattr(x, f.name) for f in fields(x) if f.name not in LATER or getattr(x, f.name))
        inner = ",".join(map(canonical, given))
        return f"{type(x).__name__}({inner})"
    raise TypeError(f"cannot hash a {type(x).__name__}")


def resolve_parts(x: object, values: Mapping[str, object]) -> Any:
    """Return a part of a mechanism with every expression replaced by its number."""
    if isinstance(x, Expression):
        return resolve(x, values)
    if isinstance(x, Curve | Law | Beam | ModalBody):  # of numbers alone, up to thousands
        return x
    if isinstance(x, tuple):
        return tuple(resolve_parts(a, values) for a in x)
    if is_dataclass(x) and not isinstance(x, type):
        changed = {f.name: resolve_parts(getattr(x, f.name), values) for f in fields(x)}
        return type(x)(**changed)
    return x


# --- Values of the free parameters of a mechanism, given in order or by name ---

Named = ArrayLike | Mapping[str, ArrayLike]
"""Values of all free parameters in order, [..., np], or of some of them by name."""


def parameter_arguments(values: np.ndarray | None, *, samples: bool = False) -> tuple[np.ndarray, ...]:
    """Return values of the free parameters as further arguments of a compiled function; none if they are None.

    With `samples`, values [..., np] get an axis for the samples of a run, [..., 1, np].
    """
    if values is None:
        return ()
    return (values[..., None, :],) if samples else (values,)


def in_order(mechanism: Mechanism, given: Named) -> ArrayLike:
    """Return values of all free parameters, [..., np]; those given in order are returned as they are.

    Values by name may be arrays of any shapes that fit together. Parameters that are not named keep their own values.
    """
    if not isinstance(given, Mapping):
        return given
    free = mechanism.free_parameters
    for name in given:
        if name not in [p.name for p in free]:
            raise unknown_name("free parameter", str(name), [p.name for p in free])
    values = [real_array(given.get(p.name, p.value), f"parameter {p.name!r}") for p in free]
    return np.stack(np.broadcast_arrays(*values), axis=-1) if values else np.zeros(0)


def without_parameters(mechanism: Mechanism) -> InputError:
    """Return the error of parameters that are given for a mechanism without free ones."""
    return InputError(
        f"{mechanism.name!r} has no free parameters; declare them with free = true in the mechanism, or by "
        'kt.with_free(system, "mass.*")'
    )


def parameter_sets(mechanism: Mechanism, given: Named | None) -> NDArray[np.float64] | None:
    """Return checked values of all free parameters, [..., np]; None if none are given."""
    if given is None:
        return None
    count, values = len(mechanism.free_parameters), real_array(in_order(mechanism, given), "parameters")
    if not count:
        raise without_parameters(mechanism)
    if values.shape[-1:] != (count,):
        names = ", ".join(p.name for p in mechanism.free_parameters)
        raise InputError(f"parameters have shape {values.shape}; expected [..., {count}], for {names}")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        *at, k = bad[0].tolist()
        where = f" of set {at}" if at else ""
        raise InputError(
            f"parameter {mechanism.free_parameters[k].name!r}{where} is {values[tuple(bad[0])]}; give finite numbers"
        )
    return values


def inputs_of(mechanism: Mechanism, given: Named | None) -> NDArray[np.float64] | None:
    """Return the free parameters as inputs of programs, [..., np], by default their own values; None without any."""
    free = mechanism.free_parameters
    values = parameter_sets(mechanism, given)
    return np.array([p.value for p in free]) if values is None and free else values


def one_set(mechanism: Mechanism, given: Named | None, who: str) -> NDArray[np.float64] | None:
    """Return checked values of all free parameters for a function of one design, [np]; None if none are given."""
    values = parameter_sets(mechanism, given)
    if values is not None and values.ndim > 1:
        raise InputError(f"{who}: parameters have shape {values.shape}; expected one set, [{values.shape[-1]}]")
    return values
