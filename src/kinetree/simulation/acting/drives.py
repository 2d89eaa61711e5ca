"""Driven degrees of freedom of a run: coordinates that are functions of time, whose torques are results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...algebra.scalars import Scalar
from ...algebra.vectors import Vector
from ...errors import InputError
from ...model.mechanism import Mechanism
from .references.motions import Lists, Reference


@dataclass(frozen=True)
class Drives:
    """The driven joints of a mechanism with their references, and their entries in q and in qd, in the same order.

    `couplings` are those whose offsets are driven, by name, each with its reference.
    """

    motions: tuple[tuple[str, Reference], ...]
    counts: tuple[int, ...]
    q: tuple[int, ...]
    v: tuple[int, ...]
    couplings: tuple[tuple[str, Reference], ...] = ()

    @property
    def locked(self) -> frozenset[int]:
        """The degrees of freedom that nothing but their references moves."""
        return frozenset(self.v)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the joints and couplings."""
        return tuple(name for name, _ in (*self.motions, *self.couplings))

    def offsets(self, t: Scalar) -> dict[str, Vector]:
        """Return offset, rate and acceleration of the driven couplings at a time, by name."""
        found = {
            name: evaluate_reference(reference, t, 1, f"the drive of {name!r}") for name, reference in self.couplings
        }
        return {name: (x[0], v[0], a[0]) for name, (x, v, a) in found.items()}

    def begun(self, mechanism: Mechanism, t: float) -> Mechanism:
        """Return a mechanism whose driven couplings have the offsets of a time."""
        if not self.couplings:
            return mechanism
        now = self.offsets(float(t))
        changed = (replace(c, offset=float(now[c.name][0])) if c.name in now else c for c in mechanism.couplings)
        return replace(mechanism, couplings=tuple(changed))

    def released(self, mechanism: Mechanism) -> Mechanism:
        """Return a mechanism without its driven couplings, whose drives act by torques in their joints."""
        names = [name for name, _ in self.couplings]
        return replace(mechanism, couplings=tuple(c for c in mechanism.couplings if c.name not in names))

    def at(self, t: Scalar) -> Lists:
        """Return q, qd and qdd of all driven coordinates at a time: a float, a traced value or an array."""
        out: Lists = [], [], []
        for (name, reference), count in zip(self.motions, self.counts, strict=True):
            for whole, entries in zip(
                out, evaluate_reference(reference, t, count, f"the drive of {name!r}"), strict=True
            ):
                whole += entries
        return out

    def placed(self, t: Scalar, q: Sequence[Scalar], qd: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """Return a state with the driven coordinates and velocities of a time."""
        wanted, speeds, _ = self.at(t)
        return replace_entries(q, self.q, wanted), replace_entries(qd, self.v, speeds)

    def accelerations(self, t: Scalar, count: int) -> list[Scalar]:
        """Return qdd of the driven degrees of freedom at a time, zeros for the others."""
        return replace_entries([0.0] * count, self.v, self.at(t)[2])


def drives_of(control: object) -> Drives | None:
    """Return the driven degrees of freedom of the control of a run; None without any."""
    return getattr(control, "drives", None)


def driven_of(drives: Drives | None) -> frozenset[int]:
    """Return the degrees of freedom that references move; none without drives."""
    return frozenset() if drives is None else drives.locked


def replace_entries(x: Sequence[Scalar], places: Sequence[int], values: Sequence[Scalar]) -> list[Scalar]:
    """Return a list with some entries replaced."""
    out = list(x)
    for k, value in zip(places, values, strict=True):
        out[k] = value
    return out


def evaluate_reference(reference: Reference, t: Scalar, count: int, who: str = "") -> Lists:
    """Return q, qd, qdd of a reference at a time, lists with one scalar per coordinate."""
    of = f"the reference of {who}" if who else "the reference"
    try:
        q, qd, qdd = (list(entries) for entries in reference(t))
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{of} does not return lists (q, qd, qdd) at a traced time ({error})") from error
    for label, entries in (("coordinates", q), ("velocities", qd), ("accelerations", qdd)):
        if len(entries) != count:
            raise InputError(f"{of} returns {len(entries)} {label}; expected {count}", path=("reference",))
    return q, qd, qdd
