"""The cone problem: contact forces that satisfy Signorini's conditions and Coulomb's law, with certified residuals.

For u = W f + b, find per contact the force f = (f_n, f_t) and the velocity u = (u_n, u_t) with

    0 <= f_n - floor,  0 <= u_n,  (f_n - floor) u_n = 0,  |f_t| <= mu f_n,  f_t |u_t| = -mu f_n u_t.

The cone is Coulomb's own, not a pyramid. Contacts are solved exactly one after the other, in sweeps, until the modes
(open, sticking, slipping) are those of the solution; Newton's method on the equations of these modes then gives the
forces to rounding. What is returned has been inserted into the conditions above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from ...errors import InputError
from .one_contact import solved
from .redundant_forces import null_space, within_cones

ACCEPTED = 1e-12
"""The largest residual of a solution, in parts of the largest force or velocity of the problem."""
TOLERATED = 1e-10
"""The largest residual of a solution that sweeps alone approach, as in the second phase of Poisson's law."""
RANK = 1e-11
"""The ratio to the largest below which a singular value of W is rounding: forces are then not unique."""
SWEEPS = 600
"""The largest number of sweeps over the contacts."""
EVERY = 5
"""Sweeps between two attempts by Newton's method."""
ROUNDS = 25
"""The largest number of Newton steps."""
ENUMERATED = 5
"""The largest number of contacts for which all modes are tried if the sweeps do not settle: 3^5 attempts."""


@dataclass(frozen=True)
class ConeProblem:
    """Matrix W [3 n, 3 n], velocities b [n, 3] without forces, friction mu [n], and the least normal forces [n].

    Rows are along the normal and two tangents. `rays` [n, 2] has the direction of slip of contacts that slide already,
    whose friction is -mu f_n times it, and NaN for the others.
    """

    W: np.ndarray
    b: np.ndarray
    mu: np.ndarray
    rays: np.ndarray
    floor: np.ndarray

    @classmethod
    def of(cls, W, b, mu, rays=None, floor=None) -> ConeProblem:
        """Return a problem with default rays (none) and floors (zero)."""
        count = len(mu)
        return cls(
            np.asarray(W, dtype=float),
            np.asarray(b, dtype=float).reshape(count, 3),
            np.asarray(mu, dtype=float),
            np.full((count, 2), np.nan) if rays is None else np.asarray(rays, dtype=float),
            np.zeros(count) if floor is None else np.asarray(floor, dtype=float),
        )

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.mu)

    def velocities(self, f: np.ndarray) -> np.ndarray:
        """Return u = W f + b [n, 3]."""
        return self.b + (self.W @ f.ravel()).reshape(-1, 3)

    def residuals(self, f: np.ndarray) -> tuple[float, float, float]:
        """Return the largest violations of Signorini's conditions, of the cone, and of maximal dissipation."""
        u = self.velocities(f)
        size, speed = np.hypot(f[:, 1], f[:, 2]), np.hypot(u[:, 1], u[:, 2])
        slides = ~np.isnan(self.rays[:, 0])
        signorini = np.abs(np.minimum(f[:, 0] - self.floor, u[:, 0])).max(initial=0.0)
        cone = np.maximum(size - self.mu * f[:, 0], 0.0).max(initial=0.0)
        power = np.abs((f[:, 1:] * u[:, 1:]).sum(axis=1) + self.mu * f[:, 0] * speed)
        return float(signorini), float(cone), float(np.where(slides, 0.0, power).max(initial=0.0))


@dataclass(frozen=True)
class ConeSolution:
    """Forces [n, 3], velocities [n, 3], and the residuals in parts of the sizes of the problem."""

    forces: np.ndarray
    velocities: np.ndarray
    residuals: tuple[float, float, float] = (0.0, 0.0, 0.0)
    sweeps: int = field(default=0)


class NoForces(InputError):
    """A problem for which no contact forces were found."""


def solve(problem: ConeProblem, start: np.ndarray | None = None) -> ConeSolution:
    """Return forces that satisfy all conditions up to rounding; raise NoForces if none are found."""
    w0 = float(np.abs(np.diag(problem.W)).max(initial=0.0)) or 1.0
    b0 = max(float(np.abs(problem.b).max(initial=0.0)), float(problem.floor.max(initial=0.0)) * w0)
    if b0 == 0.0:
        return ConeSolution(np.zeros((len(problem), 3)), problem.b.copy())
    unit = b0 / w0
    scaled = ConeProblem(problem.W / w0, problem.b / b0, problem.mu, problem.rays, problem.floor / unit)
    if (held := _held(scaled)) is not None:
        return _answer(problem, scaled, held, unit, 0)
    f = _started(scaled, None if start is None else start / unit)
    best = f, np.inf
    for k in range(SWEEPS):
        if k % EVERY == 0:
            for candidate in (f, _polished(scaled, f)):
                if candidate is not None and (worst := max(scaled.residuals(candidate))) < best[1]:
                    best = candidate, worst
            if best[1] <= ACCEPTED:
                return _answer(problem, scaled, best[0], unit, k)
        f = _swept(scaled, f)
    found = _enumerated(scaled, best[0])
    if found is None and best[1] <= TOLERATED:
        found = best[0]
    if found is not None:
        return _answer(problem, scaled, found, unit, SWEEPS)
    raise NoForces(f"no contact forces satisfy Signorini's conditions and Coulomb's law, with {best[1]:.3g} at best")


def _answer(problem: ConeProblem, scaled: ConeProblem, f: np.ndarray, unit: float, sweeps: int) -> ConeSolution:
    return ConeSolution(f * unit, problem.velocities(f * unit), scaled.residuals(f), sweeps)


def _started(problem: ConeProblem, start: np.ndarray | None) -> np.ndarray:
    f = np.zeros((len(problem), 3)) if start is None else start.copy()
    f[:, 0] = np.maximum(f[:, 0], problem.floor)
    return f


def _held(problem: ConeProblem) -> np.ndarray | None:
    """Return forces that close all contacts and let none slip that does not slide already, or None.

    Sweeps converge slowly to such forces where they are redundant, as those of four corners.
    """
    if problem.floor.any():
        return None
    modes = [
        "stick" if np.isnan(ray[0]) and mu > 0 else "ray" for ray, mu in zip(problem.rays, problem.mu, strict=True)
    ]
    basis = _basis(problem, modes)
    rows = [3 * k + j for k, mode in enumerate(modes) for j in ((0, 1, 2) if mode == "stick" else (0,))]
    A = (problem.W @ basis)[rows]
    z = np.linalg.lstsq(A, -problem.b.ravel()[rows], rcond=RANK)[0]
    f, slides = (basis @ z).reshape(-1, 3), np.array([mode == "ray" for mode in modes])
    if np.abs(problem.velocities(f).ravel()[rows]).max() > ACCEPTED:
        return None  # they contradict each other
    loose = np.linalg.qr(basis @ null_space(A, RANK))[0]
    found = within_cones(f, loose, problem.mu, slides)
    return found if found is not None and max(problem.residuals(found)) <= ACCEPTED else None


def _swept(problem: ConeProblem, f: np.ndarray) -> np.ndarray:
    """Solve the contacts one after the other, each with the forces that the others have at present."""
    f = f.copy()
    for i in range(len(problem)):
        own = slice(3 * i, 3 * i + 3)
        block = problem.W[own, own]
        c = problem.b[i] + problem.W[own] @ f.ravel() - block @ f[i]
        f[i] = solved(block, c, problem.mu[i], problem.rays[i], problem.floor[i])
    return f


def _modes(problem: ConeProblem, f: np.ndarray) -> list[str]:
    """Return the modes that forces indicate: open, stick, slip or ray."""
    u = problem.velocities(f)
    out = []
    for i in range(len(problem)):
        if f[i, 0] - problem.floor[i] <= u[i, 0] * 1e-3 or f[i, 0] <= 0:
            out.append("open")
        elif not np.isnan(problem.rays[i, 0]):
            out.append("ray")
        elif problem.mu[i] == 0 or np.hypot(*f[i, 1:]) < problem.mu[i] * f[i, 0] * (1 - 1e-9):
            out.append("stick" if problem.mu[i] else "ray")
        else:
            out.append("slip")
    return out


def _polished(problem: ConeProblem, f: np.ndarray, modes: list[str] | None = None) -> np.ndarray | None:
    """Return the solution of the equations of the modes of f by Newton's method, or None if it does not converge."""
    if problem.floor.any():
        return None  # the second phase of Poisson's law is solved by sweeps alone
    modes = _modes(problem, f) if modes is None else modes
    basis = _basis(problem, modes)
    if not basis.shape[1]:
        return np.zeros_like(f)
    f = np.where(np.array([m == "open" for m in modes])[:, None], 0.0, f)
    for i, mode in enumerate(modes):
        if mode == "ray":
            f[i, 1:] = 0.0 if problem.mu[i] == 0 else -problem.mu[i] * f[i, 0] * problem.rays[i]
    for _ in range(ROUNDS):
        F, dF = _equations(problem, modes, f)
        if not np.isfinite(F).all():
            return None
        step = np.linalg.lstsq(dF @ basis, -F, rcond=1e-13)[0]
        f = f + (basis @ step).reshape(-1, 3)
        if np.abs(step).max(initial=0.0) <= 1e-15 * max(1.0, np.abs(f).max()):
            break
    return f


def _basis(problem: ConeProblem, modes: list[str]) -> np.ndarray:
    """Return the directions in which forces of these modes may change, as columns."""
    columns = []
    for i, mode in enumerate(modes):
        if mode == "ray":
            e = np.zeros(3 * len(problem))
            e[3 * i] = 1.0
            if problem.mu[i]:
                e[3 * i + 1 : 3 * i + 3] = -problem.mu[i] * problem.rays[i]
            columns.append(e)
        elif mode != "open":
            columns += list(np.eye(3 * len(problem))[3 * i : 3 * i + 3])
    return np.array(columns).T.reshape(3 * len(problem), -1)


def _equations(problem: ConeProblem, modes: list[str], f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the equations of the modes and their derivatives with respect to all forces."""
    u, W, eye = problem.velocities(f), problem.W, np.eye(3 * len(problem))
    F, dF = [], []
    for i, mode in enumerate(modes):
        n, t = 3 * i, slice(3 * i + 1, 3 * i + 3)
        if mode == "open":
            continue
        F.append(u[i, :1])
        dF.append(W[n : n + 1])
        if mode == "stick":
            F.append(u[i, 1:])
            dF.append(W[t])
        elif mode == "slip":
            speed, mu = np.hypot(*u[i, 1:]), problem.mu[i]
            along = u[i, 1:] / speed if speed > 0 else np.zeros(2)
            F.append(f[i, 1:] * speed + mu * f[i, 0] * u[i, 1:])
            dF.append(
                speed * eye[t] + np.outer(f[i, 1:], along @ W[t]) + mu * (np.outer(u[i, 1:], eye[n]) + f[i, 0] * W[t])
            )
    return np.concatenate(F), np.concatenate(dF)


def _enumerated(problem: ConeProblem, f: np.ndarray) -> np.ndarray | None:
    """Return a solution by trying all modes, for few contacts; None if there is none."""
    if len(problem) > ENUMERATED:
        return None
    choices = [
        ("open", "ray") if not np.isnan(ray[0]) or mu == 0 else ("open", "stick", "slip")
        for ray, mu in zip(problem.rays, problem.mu, strict=True)
    ]
    for modes in product(*choices):
        found = _polished(problem, np.where(f == 0, 1e-3, f), list(modes))
        if found is not None and max(problem.residuals(found)) <= ACCEPTED:
            return found
    return None
