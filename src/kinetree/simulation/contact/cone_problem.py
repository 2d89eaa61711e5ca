"""The cone problem: contact forces that satisfy Signorini's conditions and Coulomb's law, with certified residuals.

For u = W f + b, find per contact the force f = (f_n, f_t) and the velocity u = (u_n, u_t) with

    0 <= f_n - floor,  0 <= u_n,  (f_n - floor) u_n = 0,  |f_t| <= mu f_n,  f_t |u_t| = -mu f_n u_t.

The cone is Coulomb's own, not a pyramid. Contacts are solved exactly one after the other, in sweeps, until the modes
(open, sticking, slipping) are those of the solution; Newton's method on the equations of these modes then gives the
forces to rounding. What is returned has been inserted into the conditions above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from ...contact_geometry.cone import (
    SLIP,
    STICK,
    Cones,
    force_unit,
    length,
    null_space,
    probe,
    residual,
    speed_unit,
    within_cones,
)
from ...errors import InputError

ACCEPTED = 1e-12
"""The largest residual of a solution; see contact_geometry/cone.py."""
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

    @cached_property
    def speed(self) -> float:
        """The largest velocity without forces, or under the least normal forces."""
        pushed = self.floor * self.compliances
        return max(float(np.abs(self.b).max(initial=0.0)), float(pushed.max(initial=0.0)))

    @cached_property
    def compliances(self) -> np.ndarray:
        """The mean of the three diagonal entries of W of each contact; the largest of all where nothing moves one."""
        w = np.diag(self.W).reshape(-1, 3).mean(axis=1)
        return np.where(w > 0.0, w, w.max(initial=0.0) or 1.0)

    def residuals(self, f: np.ndarray) -> tuple[float, float, float]:
        """Return the residuals of Signorini's conditions, of the cone, and of Coulomb's law."""
        return largest_residuals(f, self.velocities(f), self.mu, self.rays, self.floor, self.units(f), self.speed_of(f))

    def units(self, f: np.ndarray) -> list[float]:
        """Return the units of the forces of all contacts."""
        w = self.compliances.tolist()
        return [force_unit(length(x), y, self.speed) for x, y in zip(f.tolist(), w, strict=True)]

    def speed_of(self, f: np.ndarray) -> float:
        """Return the unit of the velocities."""
        return speed_unit((self.compliances * np.linalg.norm(f, axis=1)).tolist(), self.speed)


def largest_residuals(f, u, mu, rays, floor, units, speed: float) -> tuple[float, float, float]:
    """Return the largest residuals of forces f and velocities u [n, 3] relative to their units.

    They are those of the normal, of forces outside of their cones, and of all that Coulomb's law requires.
    """
    normals, cones, tangents = [0.0], [0.0], [0.0]
    given = (x.tolist() for x in (f, u, mu, rays[:, 0], floor))
    for force, v, friction, ray, least, unit in zip(*given, units, strict=True):
        above = [force[0] - least, *force[1:]]
        found = probe(above, v, friction, unit / speed, friction * least)
        normal, tangent = residual(found.lacks(above), unit)
        outside = float(np.hypot(*force[1:]) - friction * force[0]) / unit
        normals.append(normal)
        cones.append(max(outside, 0.0))
        tangents.append(tangent if np.isnan(ray) else cones[-1])
    return float(np.max(normals)), float(np.max(cones)), float(np.max(tangents))


@dataclass(frozen=True)
class ConeSolution:
    """Forces [n, 3], velocities [n, 3], and the residuals relative to the sizes of the problem."""

    forces: np.ndarray
    velocities: np.ndarray
    residuals: tuple[float, float, float] = (0.0, 0.0, 0.0)
    sweeps: int = field(default=0)


class NoForces(InputError):
    """A problem for which no contact forces were found."""


def solve(problem: ConeProblem, start: np.ndarray | None = None) -> ConeSolution:
    """Return forces that satisfy all conditions up to rounding; raise NoForces if none are found."""
    w0, b0 = float(problem.compliances.max()), problem.speed
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

    Sweeps converge slowly to such forces where they are redundant, as at four corners.
    """
    if problem.floor.any():
        return None
    mu, rays = problem.mu, problem.rays
    modes = ["stick" if np.isnan(ray[0]) and friction > 0 else "ray" for ray, friction in zip(rays, mu, strict=True)]
    basis, rows = directions_of_forces(modes, mu, rays), rows_at_rest(modes)
    A = (problem.W @ basis)[rows]
    z = np.linalg.lstsq(A, -problem.b.ravel()[rows], rcond=RANK)[0]
    f = (basis @ z).reshape(-1, 3)
    if np.abs(problem.velocities(f).ravel()[rows]).max() > ACCEPTED * problem.speed_of(f):
        return None  # they contradict each other
    found = shift_into_cones(f, A, basis, modes, mu, rays)
    return found if found is not None and max(problem.residuals(found)) <= ACCEPTED else None


def _swept(problem: ConeProblem, f: np.ndarray) -> np.ndarray:
    """Solve the contacts one after the other, each with the forces that the others have at present."""
    f = f.copy()
    for i in range(len(problem)):
        own = slice(3 * i, 3 * i + 3)
        block = problem.W[own, own]
        c = problem.b[i] + problem.W[own] @ f.ravel() - block @ f[i]
        f[i] = solve_contact(block, c, problem.mu[i], problem.rays[i], problem.floor[i])
    return f


def _modes(problem: ConeProblem, f: np.ndarray) -> list[str]:
    """Return the modes that forces indicate: open, stick, slip or ray."""
    u, units, speed, out = problem.velocities(f), problem.units(f), problem.speed_of(f), []
    for i in range(len(problem)):
        if (f[i, 0] - problem.floor[i]) / units[i] <= u[i, 0] / speed * 1e-3 or f[i, 0] <= 0:
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
    basis = directions_of_forces(modes, problem.mu, problem.rays)
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


def _equations(problem: ConeProblem, modes: list[str], f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the equations of the modes and their derivatives with respect to all forces."""
    u, W, eye, units = problem.velocities(f), problem.W, np.eye(3 * len(problem)), problem.units(f)
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
            F.append((f[i, 1:] * speed + mu * f[i, 0] * u[i, 1:]) / units[i])
            turned = np.outer(f[i, 1:], along @ W[t]) + mu * (np.outer(u[i, 1:], eye[n]) + f[i, 0] * W[t])
            dF.append((speed * eye[t] + turned) / units[i])
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


# --- Contacts in given modes: open, stick, slip, or ray for those that slide in a known direction ---


def directions_of_forces(modes: Sequence[str], mu: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Return the directions in which forces of these modes may change, as columns."""
    size, columns = 3 * len(modes), []
    for i, mode in enumerate(modes):
        if mode == "ray":
            e = np.zeros(size)
            e[3 * i] = 1.0
            if mu[i]:
                e[3 * i + 1 : 3 * i + 3] = -mu[i] * rays[i]
            columns.append(e)
        elif mode != "open":
            columns += list(np.eye(size)[3 * i : 3 * i + 3])
    return np.array(columns).T.reshape(size, -1)


def rows_at_rest(modes: Sequence[str]) -> list[int]:
    """Return the rows of the velocities that closed contacts keep at zero: all where they stick, else the normal."""
    return [3 * k + j for k, mode in enumerate(modes) for j in ((0, 1, 2) if mode == "stick" else (0,))]


def shift_into_cones(
    f: np.ndarray, A: np.ndarray, basis: np.ndarray, modes: Sequence[str], mu: np.ndarray, rays: np.ndarray
) -> np.ndarray | None:
    """Return forces with the same effect as f, the rows A of velocities, that are in their cones; None without any."""
    loose = np.linalg.qr(basis @ null_space(A, RANK))[0]
    kinds = np.array([[STICK if mode == "stick" else SLIP for mode in modes]])
    return within_cones(f, loose, Cones.of(kinds, mu, np.nan_to_num(rays)[None]))


# --- One contact, solved exactly: open, sticking, or slipping in the direction that fits ---

ANGLES = np.linspace(-np.pi, np.pi, 49)
"""Directions of slip between which roots are bracketed [rad]."""
COSINES, SINES = np.cos(ANGLES), np.sin(ANGLES)
HALVINGS = 60
"""The largest number of steps of the search for a direction."""


def solve_contact(W: np.ndarray, c: np.ndarray, mu: float, ray: np.ndarray, floor: float) -> np.ndarray:
    """Return the force (n, t1, t2) of a contact with u = W f + c; its normal force is `floor` or more."""
    if not np.isnan(ray[0]) or mu == 0.0:
        along = np.zeros(2) if mu == 0.0 else -mu * ray
        slope = W[0, 0] + W[0, 1:] @ along
        normal = max(floor, -c[0] / slope) if slope > 0 else floor
        return np.array([normal, *(normal * along)])
    left = _tangential(W, c, mu, np.full_like(ANGLES, floor), floor)
    if c[0] + W[0] @ left >= 0:
        return left
    stick, _, rank, _ = np.linalg.lstsq(W, -c, rcond=RANK)
    if stick[0] >= floor and np.hypot(stick[1], stick[2]) <= mu * stick[0]:
        return stick
    if rank < 3 and floor == 0.0:  # the body cannot move in some direction: it may be wedged
        free = null_space(W, RANK)
        wedged = within_cones(stick[None], free, Cones.of(np.array([[STICK]]), np.array([mu]), np.zeros((1, 1, 2))))
        if wedged is not None and np.abs(W @ wedged[0] + c).max() <= 1e-13 * np.abs(c).max():
            return wedged[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = W[0, 0] - mu * (W[0, 1] * COSINES + W[0, 2] * SINES)
        normals = np.where(slopes > 0, -c[0] / slopes, np.inf)
    return _tangential(W, c, mu, normals, None)


def _tangential(W: np.ndarray, c: np.ndarray, mu: float, normals: np.ndarray, fixed: float | None) -> np.ndarray:
    """Return the force that slips, with its normal force fixed or that of u_n = 0; if fixed, it may also stick."""
    if fixed is not None:
        if fixed == 0.0:
            return np.zeros(3)
        rest = _resting(W[1:, 1:], -(c[1:] + W[1:, 0] * fixed))
        if np.hypot(*rest) <= mu * fixed:
            return np.array([fixed, *rest])

    def normal(cos: float, sin: float) -> float:
        if fixed is not None:
            return fixed
        slope = W[0, 0] - mu * (W[0, 1] * cos + W[0, 2] * sin)
        return -c[0] / slope if slope > 0 else np.inf

    def slip(angle: float) -> tuple[float, float, np.ndarray]:
        cos, sin = np.cos(angle), np.sin(angle)
        size = normal(cos, sin)
        f = size * np.array([1.0, -mu * cos, -mu * sin])
        u = c[1:] + W[1:] @ f
        return cos * u[1] - sin * u[0], cos * u[0] + sin * u[1], f

    with np.errstate(invalid="ignore"):
        f = normals * np.array([np.ones_like(ANGLES), -mu * COSINES, -mu * SINES])
        u = c[1:, None] + W[1:] @ f
        turn, along = COSINES * u[1] - SINES * u[0], COSINES * u[0] + SINES * u[1]
        crossing = (turn[:-1] * turn[1:] <= 0) & ((along[:-1] > 0) | (along[1:] > 0))
    best = None  # a direction to which slip turns back comes before others, then a smaller force
    for k in np.flatnonzero(crossing & np.isfinite(normals[:-1]) & np.isfinite(normals[1:])):
        low, high, at_low = ANGLES[k], ANGLES[k + 1], turn[k]
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            value = slip(middle)[0]
            if value * at_low > 0:
                low = middle
            else:
                high = middle
            if high - low < 4e-16:
                break
        _, speed, force = slip(0.5 * (low + high))
        rank = (at_low < 0, force[0])
        if speed >= 0 and (best is None or rank < best[0]):
            best = rank, force
    if best is not None:
        return best[1]
    middle = int(np.nanargmin(np.where(along > 0, np.abs(turn), np.inf))) if (along > 0).any() else 0
    return slip(float(ANGLES[middle]))[2]


def _resting(S: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the tangential force with S f = wanted; infinite if there is none, the smallest if a motion is planar."""
    if np.linalg.det(S) > RANK * np.trace(S) ** 2:
        return np.linalg.solve(S, wanted)
    found = np.linalg.lstsq(S, wanted, rcond=RANK)[0]
    fits = np.abs(S @ found - wanted).max() <= 1e-12 * np.abs(wanted).max()
    return found if fits else np.full(2, np.inf)
