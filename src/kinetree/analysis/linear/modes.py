"""Modes of small vibrations about a position of equilibrium: frequencies, damping and shapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import InputError
from ...model.axes import axis_labels
from ...model.parameter_values import in_order
from ...pictures import picture
from .equilibrium import equilibrium
from .linearization import has_forces, linearize

AT_REST = 1e-6
"""The largest acceleration at a position of equilibrium, relative to that of the joints under gravity alone."""


@dataclass(frozen=True)
class Modes:
    """The modes about a position of equilibrium, slowest first; motions are real parts of shape exp(eigenvalue t).

    `eigenvalues` [modes] in 1/s are complex, one of each conjugate pair; those of motions that do not vibrate are real.
    `shapes` [modes, nv] have displacements of all degrees of freedom `names`, the largest of which is 1 rad or 1 m.
    """

    q: Numbers
    eigenvalues: Numbers
    shapes: Numbers
    names: tuple[str, ...]
    system: Any = field(repr=False, compare=False)
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

    def run(self, k: int = 1, **options: Any) -> Any:
        """Return mode k, counted from 1, as a run of constant amplitude, with loops closed.

        Options: `amplitude`, the largest displacement [rad, m]; `period` [s] of a vibration in the run, None for its
        own; `periods` and `samples` of each. See `kinetree.analysis.linear.mode_motions.mode_motion`.
        """
        return picture("mode_run")(self, k, **options)

    def page(self, k: int = 1, path: str | Path | None = None, **options: Any) -> Any:
        """Return a web page that shows mode k; with a `path`, write it there. Options are those of `run` and pages."""
        return picture("mode_page")(self, k, path, **options)

    def animate(self, k: int = 1, path: str | Path = "mode.gif", **options: Any) -> Path:
        """Write mode k as an animation, .gif or .mp4; options are those of `run` and of a run's `animate`."""
        return picture("mode_animation")(self, k, path, **options)

    def __str__(self) -> str:
        """Return a line per mode: frequency, damping ratio and the largest displacements."""
        lines = ["mode  frequency [Hz]  damping  shape"]
        for k, shape in enumerate(self.shapes):
            order = np.argsort(-np.abs(shape))[:3]
            parts = ", ".join(f"{self.names[j]} {shape[j].real:+.2f}" for j in order if abs(shape[j]) > 0.05)
            lines.append(f"{k + 1:>4}{self.frequencies[k]:>16.6g}{self.damping[k]:>9.4f}  {parts}")
        return "\n".join(lines)


def modes(
    system: CompiledMechanism,
    q: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    forces: bool = True,
    parameters: Any = None,
) -> Modes:
    """Return the modes about a position of equilibrium q [nq] under constant torques tau; by default one is found.

    With loops, the motions keep these closed. InputError if q is no position of equilibrium.
    """
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
    names, chosen = tuple(axis_labels(system.mechanism, 1)), None
    if parameters is not None:
        chosen = np.asarray(in_order(system.mechanism, parameters), dtype=float)
    return Modes(position, values[kept], shapes, names, system, chosen)


def _one_of_each_pair(values: Numbers, kept: list[int], size: float) -> list[int]:
    """Return the indices of eigenvalues, without the second of two zeros of a motion that nothing resists."""
    still = [k for k in kept if abs(values[k]) <= 1e-6 * size]
    return still[::2] + [k for k in kept if k not in still]


def _scaled(shape: Numbers) -> Numbers:
    largest = shape[int(np.argmax(np.abs(shape)))] if shape.size else 1.0
    return shape / largest if largest != 0 else shape


def _refuse_moving(system: CompiledMechanism, q: Numbers, tau: Numbers, forces: bool, parameters: Any) -> None:
    """Raise InputError unless the mechanism stays at rest at q."""
    options: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    if forces and has_forces(system):
        options["forces"] = True
    zero = np.zeros(system.nv)
    qdd = system.forward_dynamics(q, zero, tau, **options)
    alone = system.tree.forward_dynamics(q, zero, zero, **({} if parameters is None else {"parameters": parameters}))
    size = max(np.abs(alone).max(initial=0.0), 1.0)
    if np.abs(qdd).max(initial=0.0) > AT_REST * size:
        worst = int(np.argmax(np.abs(qdd)))
        raise InputError(
            f"modes: q is no position of equilibrium: {axis_labels(system.mechanism, 1)[worst]} accelerates by "
            f"{qdd[worst]:.3g}; find one by kt.equilibrium(arm, q), or give the torques that hold it, "
            "tau=arm.gravity_torque(q, forces=True)"
        )
