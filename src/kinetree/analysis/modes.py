"""Modes of small vibrations about a position of equilibrium: frequencies, damping and shapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import number, positive, whole
from .._support.lazy_names import picture
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError
from ..model.axes import axis_labels
from ..model.mechanism import one_set
from ..model.scales import loop_units
from .equilibrium import equilibrium
from .linearization import linearize
from .loops.tolerances import CLOSED

if TYPE_CHECKING:
    from ..model.mechanism import Named
    from ..system import System

AT_REST = 1e-6
"""The largest acceleration at a position of equilibrium, relative to the one under gravity alone."""


@dataclass(frozen=True, repr=False)
class Modes(Displayed):
    """The modes about a position of equilibrium, slowest first; motions are real parts of shape exp(eigenvalue t).

    `eigenvalues` [modes] in 1/s are complex, one of each conjugate pair; motions that do not vibrate have real ones.
    `shapes` [modes, nv] have displacements of all degrees of freedom `names`, the largest of which is 1 rad or 1 m.
    """

    q: Numbers
    eigenvalues: Numbers
    shapes: Numbers
    names: tuple[str, ...]
    system: System = field(repr=False, compare=False)
    parameters: Numbers | None = field(default=None, repr=False)

    @property
    def frequencies(self) -> Numbers:
        """The natural frequencies |eigenvalue| / 2 pi [Hz]; damped ones are imag(eigenvalue) / 2 pi."""
        return np.abs(self.eigenvalues) / (2 * np.pi)

    @property
    def damping(self) -> Numbers:
        """The damping ratios: 0 without damping, 1 and -1 for motions that decay and grow without vibrating."""
        size = np.abs(self.eigenvalues)
        return np.where(size > 0, -self.eigenvalues.real / np.where(size > 0, size, 1.0), 0.0)

    @property
    def stable(self) -> bool:
        """Whether no mode grows, to rounding."""
        return bool((self.eigenvalues.real <= 1e-7 * np.abs(self.eigenvalues).max(initial=0.0)).all())

    def run(self, k: int = 1, **options: object) -> Any:
        """Return mode k, counted from 1, as a run of constant amplitude, with loops closed.

        Options: `amplitude`, the largest displacement [rad, m]; `period` [s] of a vibration in the run, None for its
        own; `periods` and `samples` of each. See `kinetree.analysis.modes.mode_motion`.
        """
        return picture("mode_run")(self, k, **options)

    def page(self, k: int = 1, path: str | Path | None = None, **options: object) -> Any:
        """Return a web page that shows mode k; with a `path`, write it there. Options are those of `run` and pages."""
        return picture("mode_page")(self, k, path, **options)

    def animate(self, k: int = 1, path: str | Path = "mode.gif", **options: object) -> Path:
        """Write mode k as an animation, .gif or .mp4; options are those of `run` and of a run's `animate`."""
        return picture("mode_animation")(self, k, path, **options)

    def display(self) -> list[Table]:
        """Return a row per mode: frequency, damping ratio and the largest displacements."""
        rows = []
        for k, shape in enumerate(self.shapes):
            order = np.argsort(-np.abs(shape))[:3]
            parts = ", ".join(f"{self.names[j]} {shape[j].real:+.2f}" for j in order if abs(shape[j]) > 0.05)
            rows.append((k + 1, f"{self.frequencies[k]:.6g}", f"{round(self.damping[k], 4) + 0.0:.4f}", parts))
        return [Table(("mode", "frequency", "damping", "shape"), tuple(rows), ("", "Hz", "", ""))]


def modes(
    system: System,
    q: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    forces: bool = True,
    parameters: Named | None = None,
) -> Modes:
    """Return the modes about a position of equilibrium q [nq] under constant torques tau; by default one is found.

    With loops, the motions keep these closed. InputError if q is no position of equilibrium.
    """
    parameters = one_set(system.mechanism, parameters, "modes")
    torques = np.zeros(system.nv) if tau is None else np.asarray(tau, dtype=float)
    if q is None:
        q = equilibrium(system, tau=torques, forces=forces, parameters=parameters)
    position, rest = np.asarray(q, dtype=float), np.zeros(system.nv)
    if position.shape != (system.nq,):
        raise InputError(f"modes: q has shape {position.shape}; expected one position [{system.nq}]")
    _refuse_moving(system, position, torques, forces, parameters)
    found = linearize(system, position, rest, torques, forces=forces, parameters=parameters)
    values, vectors = np.linalg.eig(found.A.astype(complex))
    n = len(found.names)
    size = np.abs(values).max(initial=0.0)
    kept = [k for k in np.lexsort((np.real(values), np.abs(values))) if np.imag(values[k]) >= -1e-12 * size]
    kept = _one_of_each_pair(values, kept, size)
    shapes = np.array([_scaled(found.G @ vectors[:n, k]) for k in kept]).reshape(len(kept), system.nv)
    names = tuple(axis_labels(system.mechanism, 1))
    return Modes(position, values[kept], shapes, names, system, parameters)


def _one_of_each_pair(values: Numbers, kept: list[int], size: float) -> list[int]:
    """Return the indices of eigenvalues, without the second of two zeros of a motion that nothing resists."""
    still = [k for k in kept if abs(values[k]) <= 1e-6 * size]
    return still[::2] + [k for k in kept if k not in still]


def _scaled(shape: Numbers) -> Numbers:
    largest = shape[int(np.argmax(np.abs(shape)))] if shape.size else 1.0
    return shape / largest if largest != 0 else shape


def _refuse_moving(system: System, q: Numbers, tau: Numbers, forces: bool, parameters: object) -> None:
    """Raise InputError unless the mechanism stays at rest at q."""
    options: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    if not forces:
        options["forces"] = False
    zero = np.zeros(system.nv)
    qdd = system.forward_dynamics(q, zero, tau, **options)
    alone = system.tree.forward_dynamics(q, zero, zero, **options | {"forces": False})
    size = max(np.abs(alone).max(initial=0.0), 1.0)
    if np.abs(qdd).max(initial=0.0) > AT_REST * size:
        worst = int(np.argmax(np.abs(qdd)))
        raise InputError(
            f"modes: q is no position of equilibrium: {axis_labels(system.mechanism, 1)[worst]} accelerates by "
            f"{qdd[worst]:.3g}; find one by kt.equilibrium(arm, q), or give the torques that hold it, "
            "tau=arm.gravity_torque(q)"
        )


# --- Modes of vibration as motions of finite size, with loops closed, for pictures and animations ---

SWING = 0.25
"""The default size of the largest displacement, in rad or in units of the mechanism's characteristic length: large
enough to be seen."""
ROUNDS = 30
"""The most steps of Newton's method that close loops."""


def mode_motion(
    modes: Modes,
    k: int,
    *,
    amplitude: float | None = None,
    period: float | None = 1.0,
    periods: int = 2,
    samples: int = 61,
) -> tuple[Numbers, Numbers, Numbers]:
    """Return times t [nt] and states q [nt, nq], qd [nt, nv] of a mode, counted from 1, with constant amplitude.

    `amplitude` is the largest displacement [rad, m]. A vibration takes `period` seconds in the motion, None for its
    own. A motion that does not vibrate is shown as if it did. There are `samples` in each of the `periods`. With loops,
    positions are the nearest closed ones, and velocities are projected from the small motion.
    """
    count = len(modes.eigenvalues)
    if whole(k, "the number of the mode") > count:
        raise InputError(f"there is no mode {k}; there are {count}, counted from 1")
    system, shape, value = modes.system, modes.shapes[k - 1], modes.eigenvalues[k - 1]
    size = _amplitude(modes, shape) if amplitude is None else number(amplitude, "the amplitude")
    rate = np.abs(np.imag(value)) or np.abs(value) or 2.0 * np.pi
    length = 2.0 * np.pi / rate if period is None else positive(period, "the period")
    phases = np.linspace(0.0, 2.0 * np.pi * whole(periods, "periods"), whole(samples, "samples", least=4) * periods + 1)
    turning = np.exp(1j * phases)[:, None] * shape
    q = np.asarray(system.integrate(modes.q, size * turning.real))
    qd = size * (1j * turning).real * (2.0 * np.pi / length)
    if system.closures:
        q = _closed(modes, q, k, size)
        qd = np.asarray(system.closing_speed(q, qd, **_options(modes)))
    return phases / (2.0 * np.pi) * length, q, qd


def _amplitude(modes: Modes, shape: Numbers) -> float:
    return SWING / float(np.abs(shape / loop_units(modes.system.mechanism)[1]).max(initial=1e-12))


def _closed(modes: Modes, q: Numbers, k: int, size: float) -> Numbers:
    """Return the nearest closed positions; InputError if the amplitude is beyond the reach of the loops."""
    system, options, units = modes.system, _options(modes), loop_units(modes.system.mechanism)[0]
    for _ in range(ROUNDS):
        gap = np.abs(np.asarray(system.closure_residual(q, **options)) / units).max(initial=0.0)
        if gap < CLOSED:
            return q
        q = np.asarray(system.integrate(q, system.closing_step(q, **options)))
    raise InputError(f"the loops do not close along mode {k} with an amplitude of {size:.3g}; give a smaller amplitude")


def _options(modes: Modes) -> dict[str, Any]:
    return {} if modes.parameters is None else {"parameters": modes.parameters}
