"""Driven joints: their coordinates follow references exactly, and the torques that this takes are results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...algebra.scalars import Scalar
from ...errors import InputError, Where, brief, unknown_name
from ...model.axes import entries
from ...model.mechanism import Mechanism
from .controllers import Sum
from .drives import Drives
from .instants import Controller, Instant
from .joint_forces import require_flat


@dataclass(frozen=True)
class Driven:
    """A joint, an axis of one such as "base.x", or a coupling's offset, that follows a reference exactly.

    The torques that this takes are results. Driven("crank", Hold(speed=10.0)) drives one joint, Driven(["j1", "j2"],
    reference) several by one reference, whose coordinates are theirs in this order, and Driven({"j1": reference, "j2":
    reference}) each by its own. A reference has as many coordinates as its joints. Other joints are free, or under
    another controller of a list, such as control=[Driven(...), PD(...)].
    """

    joint: Any
    reference: Any = None

    def __post_init__(self) -> None:
        """Check names and references; a mapping becomes pairs (joint, reference)."""
        if isinstance(self.joint, Mapping):
            if self.reference is not None:
                raise InputError("Driven has joints with references, and another reference; leave the second one out")
            object.__setattr__(self, "joint", tuple(self.joint.items()))
        elif isinstance(self.joint, list | tuple):
            object.__setattr__(self, "joint", ((tuple(self.joint), self.reference),) if self.joint else ())
        if not self.motions:
            raise InputError("Driven has no joints; name one, or give {joint: reference}", path=("joint",))
        for name, reference in self.motions:
            if not all(isinstance(x, str) for x in _names(name)):
                what = f"the joint of Driven is {brief(name)}; give the name of a joint, or a list of names"
                raise InputError(what, path=("joint",))
            if not callable(reference):
                raise InputError(
                    f"the reference of the driven joint {name!r} is {brief(reference)}; give a motion such as "
                    "Hold(speed=10.0) or Cycloid(q0, q1, duration)",
                    path=("reference",),
                )

    @property
    def motions(self) -> tuple[tuple[Scalar, Scalar], ...]:
        """The joints with their references; several joints with one reference are a tuple of names."""
        return self.joint if isinstance(self.joint, tuple) else ((self.joint, self.reference),)

    def torque(self, now: Instant) -> list[Scalar]:
        """Refuse to be a part of another controller, which has no torque to read."""
        raise InputError(
            "Driven cannot be inside another controller: its torques are results; put both into a list, such as "
            "control=[Driven(...), PD(...)]"
        )


@dataclass(frozen=True)
class DrivenControl:
    """The control of a run with driven joints: `drives`, and the torques of another controller, if there is one."""

    drives: Drives
    controller: Controller | None = None

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of the other controller; the torques of the drives follow from the motion."""
        return [0.0] * now.mechanism.nv if self.controller is None else list(self.controller.torque(now))


def combine_controls(mechanism: Mechanism, controllers: Sequence[Controller]) -> Any:
    """Return one controller for a run; those of a list act together, with all driven joints in one DrivenControl."""
    motions = [motion for c in controllers if isinstance(c, Driven) for motion in c.motions]
    others = [c for c in controllers if not isinstance(c, Driven)]
    for other in others:
        if getattr(other, "outside", False) and len(controllers) > 1:
            raise InputError(
                f"{type(other).__name__} computes torques outside of the compiled run and cannot act together with "
                "other control; leave the others out, or use a compiled controller"
            )
    rest = None if not others else others[0] if len(others) == 1 else Sum(tuple(others))
    return DrivenControl(_drives(mechanism, motions), rest) if motions else rest


def _names(joint: object) -> tuple[Scalar, ...]:
    return joint if isinstance(joint, tuple) else (joint,)


def _drives(mechanism: Mechanism, motions: Sequence[tuple[Scalar, Scalar]]) -> Drives:
    """Return the drives of joints or axes of joints by name; refuse one that is driven twice."""
    names = [joint.name for joint in mechanism.joints]
    coupled = [c.name for c in mechanism.couplings]
    q: list[int] = []
    v: list[int] = []
    counts: list[int] = []
    moved: dict[str, Any] = {}
    of_joints: list[tuple[str, Any]] = []
    for group, reference in motions:
        if group in coupled and group not in names:
            if group in moved:
                raise InputError(f"the coupling {group!r} is driven twice; give it one reference", path=("joint",))
            moved[group] = reference
            continue
        before = len(q)
        for name in _names(group):
            joint = name if name in names else name.rpartition(".")[0]
            if joint not in names:
                if name in coupled:
                    raise InputError(f"the coupling {name!r} is driven among joints; give it a reference of its own")
                raise unknown_name("joint", name, [*names, *coupled], where=Where("Driven", ("joint",)))
            require_flat(mechanism.joint(joint), "Driven", key="joint")
            own = entries(mechanism, name, 0)
            if set(own) & set(q):
                raise InputError(f"the joint {name!r} is driven twice; give it one reference", path=("joint",))
            q += own
            v += entries(mechanism, name, 1)
        of_joints.append((", ".join(_names(group)), reference))
        counts.append(len(q) - before)
    found = Drives(tuple(of_joints), tuple(counts), tuple(q), tuple(v), tuple(moved.items()))
    found.at(0.0)  # refuses references of other sizes
    found.offsets(0.0)
    return found
