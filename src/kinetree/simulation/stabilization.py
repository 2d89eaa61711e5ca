"""Methods that keep the loops of a moving mechanism closed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._support.checks import positive
from ..compiler.lower.build import tree_maker
from ..compiler.lower.closing_steps import closing_step, displace
from ..dynamics import closed
from ..errors import InputError, argument
from ..model.axes import entries
from ..model.mechanism import Mechanism
from ..system import System


@dataclass(frozen=True)
class Projection:
    """Correction after each step to the nearest closed position, and to the nearest velocities that keep it closed.

    The nearest is the one whose correction is smallest in the kinetic-energy norm.
    """

    projects: ClassVar[bool] = True
    """Whether loops are closed after each step instead of in the rates."""
    decays: ClassVar[bool] = False
    """Whether gaps remain and decay by the rates."""


@dataclass(frozen=True)
class Baumgarte:
    """Gaps that decay as exp(-rate t), with the rate in 1/s; they never vanish exactly."""

    rate: float = 20.0
    projects: ClassVar[bool] = False
    decays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the rate."""
        object.__setattr__(self, "rate", positive(self.rate, argument("rate", "Baumgarte")))


@dataclass(frozen=True)
class Minimal:
    """A state of independent degrees of freedom; the loops determine the others at every evaluation.

    `independent` are joints by name or indices in qd, by default chosen by rank at the start. They must determine the
    motion throughout the run: at their dead centers they do not.
    """

    independent: tuple[int | str, ...] = ()
    projects: ClassVar[bool] = False
    decays: ClassVar[bool] = False


Loops = Projection | Baumgarte | Minimal
"""The ways to keep loops closed."""


def choose_independent(
    system: System, loops: Loops | None, q: np.ndarray, parameters: np.ndarray | None
) -> Loops | None:
    """Return the method for loops; that of Minimal gets degrees of freedom that determine the motion at the start."""
    if not isinstance(loops, Loops | None):
        raise InputError(f"loops is {loops!r}; expected Projection(), Baumgarte(rate) or Minimal()")
    if not isinstance(loops, Minimal):
        return loops
    if system.mechanism.rolls:
        raise InputError(
            f"loops is Minimal(), and {system.mechanism.name!r} has equations of velocities alone, such as rolling: "
            "its positions do not follow from independent ones; leave loops out, or give Projection()"
        )
    one = None if parameters is None else parameters.reshape(-1, parameters.shape[-1])[0]
    lead = system.independent(q.reshape(-1, system.nq)[0], parameters=one)
    if not loops.independent:
        return Minimal(lead.at)
    places = _places(system.mechanism, loops.independent)
    if not (
        set(places) <= set(range(system.nv))
        and len(set(places)) == len(places) == lead.mobility
        and np.linalg.matrix_rank(lead.G[list(places)]) == lead.mobility
    ):
        raise InputError(
            f"Minimal: independent is {loops.independent}, and the motion at the start is not determined by these "
            f"entries of qd; give as many as the mobility of {lead.mobility}, such as {lead.at} "
            f"({', '.join(lead.names)}), or none"
        )
    return Minimal(places)


def require_projection(loops: Loops | None) -> None:
    """Refuse a method for loops that driven joints do not support."""
    if loops is not None and not loops.projects:
        raise InputError(f"loops is {loops!r}: with driven joints, loops are closed by Projection(); leave loops out")


def _places(mechanism: Mechanism, independent: Iterable[int | str]) -> tuple[int, ...]:
    """Return indices in qd, given as numbers or by the names of joints."""
    named = [independent] if isinstance(independent, str) else independent
    return tuple(k for x in named for k in (entries(mechanism, x, 1) if isinstance(x, str) else [x]))


def locked_by(loops: Loops | None) -> frozenset[int]:
    """Return the degrees of freedom that corrections of the loops do not change."""
    return frozenset(k for k in loops.independent if isinstance(k, int)) if isinstance(loops, Minimal) else frozenset()


def close_from_locked(
    mechanism: Mechanism, given: dict[str, Any], locked: frozenset[int], dtype: str = "float64", *, rounds: int = 2
) -> tuple[list[Any], list[Any]]:
    """Return q and qd as traced scalars, in which the loops determine all but the locked degrees of freedom.

    Two rounds of Newton's method suffice in a stage of a time step, which begins near a closed position.
    """
    q, qd = given["q"], given["qd"]
    for _ in range(rounds):
        now = given | {"q": q}
        q = displace(mechanism, now, closing_step(mechanism, now, locked, dtype)[1])
    return q, closed.closing_speed(tree_maker(mechanism, dtype)(mechanism, given | {"q": q, "qd": qd}), locked)
