"""Physically consistent parameters nearest to estimated base parameters: every body could be made of mass at points.

The pseudo-inertia of a body is the 4x4 matrix [J, m c; (m c)^T, m] with the second moment J = tr(I) / 2 - I. A body can
have the ten parameters if and only if this matrix is positive definite. Damping, friction and inertia of drives must
not be negative. Three fits minimize the same sum of squares, of the estimate's deviations and, with little weight, of
the differences from the parameters of the model, which decide where the data do not:

* "sdp", a semidefinite program, by cvxpy and Clarabel;
* "log-cholesky", least squares over the factors of the matrices, P = U U^T + floor, whose diagonals are exponentials,
  by SciPy;
* "points", least squares over masses that are not negative, at points of lattices about each body's center of mass
  [Gupta2013]: bodies are equimomental to these points, and lie within their box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.optional import optional
from ...algebra.scalars import Numbers
from ...dynamics.regressor import COUNT
from ...errors import InputError, unknown_name

PRIOR, FAINTEST = 1e-3, 1e-5
"""The weight of a difference from the model's parameters, relative to their sizes, against one standard deviation; and
the least one against the largest weight of data, below which it would be rounding."""
LEAST = 1e-6
"""The least eigenvalue of a pseudo-inertia in units of the body's mass and size, so that masses are above zero."""
POSITIVE = ("viscous", "coulomb", "armature", "stiffness", "stribeck")
"""The sorts of columns whose parameters must not be negative."""
SCALES = 0.6, 1.6
"""Sizes of lattices of point masses, in radii of gyration of the model's body; a third has that of the mechanism."""
CUBE = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)], dtype=float)
STEPS = 300
FARTHEST = 20.0
"""The largest magnitude of an exponent: factors from 2e-9 to 5e8 of the sizes."""


@dataclass(frozen=True)
class Target:
    """What a fit minimizes: |R (K pi - beta)|^2 + PRIOR^2 |(pi - prior) / sizes|^2, R^T R the inverse covariance.

    `bodies` is the number of bodies and `positive` [p] marks further parameters that must not be negative.
    """

    R: Numbers
    K: Numbers
    beta: Numbers
    prior: Numbers
    sizes: Numbers
    bodies: int
    positive: NDArray[np.bool_]


def pseudo_inertia(pi: Numbers) -> Numbers:
    """Return the 4x4 pseudo-inertias of parameters [..., 10]."""
    m, mx, my, mz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(pi, dtype=float), -1, 0)
    half = (xx + yy + zz) / 2.0
    rows = [[half - xx, -xy, -xz, mx], [-xy, half - yy, -yz, my], [-xz, -yz, half - zz, mz], [mx, my, mz, m]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def parameters_of(P: Any) -> Numbers:
    """Return the parameters [..., 10] of pseudo-inertias, the inverse of `pseudo_inertia`."""
    J = [[P[..., i, k] for k in range(4)] for i in range(4)]
    columns = (
        J[3][3], J[0][3], J[1][3], J[2][3], J[1][1] + J[2][2], -J[0][1], J[0][0] + J[2][2], -J[0][2], -J[1][2],
        J[0][0] + J[1][1],
    )  # fmt: skip
    return np.stack(columns, axis=-1)


def margins(pi: Numbers, bodies: int) -> Numbers:
    """Return the least eigenvalue of each body's pseudo-inertia, relative to its largest; negative: impossible."""
    values = np.linalg.eigvalsh(pseudo_inertia(pi[: COUNT * bodies].reshape(bodies, COUNT)))
    return values[:, 0] / np.maximum(np.abs(values).max(axis=-1), 1e-300)


def consistent(target: Target, method: str) -> Numbers:
    """Return consistent parameters pi [p] nearest to an estimate, by "sdp" or "log-cholesky"."""
    if method not in FITS:
        raise unknown_name("consistent fit", str(method), FITS)
    pi = FITS[method](target)
    if method == "points":  # which the exact estimate would leave
        return pi
    exact = pi + np.linalg.lstsq(target.K, target.beta - target.K @ pi, rcond=None)[0]
    return exact if _possible(target, exact) else pi  # the estimate itself is consistent


def _possible(target: Target, pi: Numbers) -> bool:
    return bool((margins(pi, target.bodies) > 0.0).all() and (pi[target.positive] >= 0.0).all())


def _floors(target: Target) -> Numbers:
    """Return the least pseudo-inertia of each body, a diagonal [bodies, 4], by the sizes of its parameters."""
    mass, _, _, _, *moments = target.sizes[: COUNT * target.bodies].reshape(target.bodies, COUNT).T
    return LEAST * np.stack([*(moments[0],) * 3, mass], axis=-1)


def by_semidefinite_program(target: Target) -> Numbers:
    """Return the consistent parameters of least cost, by a semidefinite program."""
    cp = optional("cvxpy", "Physically consistent fits by semidefinite programs", "identification")
    x = cp.Variable(len(target.prior))  # in units of the sizes
    A = target.R @ target.K * target.sizes
    scale = max(float(np.abs(A).max()), 1e-300)
    cost = cp.sum_squares((A @ x - target.R @ target.beta) / scale)
    cost += max(PRIOR / scale, FAINTEST) ** 2 * cp.sum_squares(x - target.prior / target.sizes)
    bounds = [x[k] >= 0.0 for k in np.flatnonzero(target.positive)]
    floors = _floors(target)
    for body in range(target.bodies):
        own = slice(COUNT * body, COUNT * (body + 1))
        unit = np.sqrt(floors[body] / LEAST)
        terms = [pseudo_inertia(size * e) / np.outer(unit, unit)
                 for size, e in zip(target.sizes[own], np.eye(COUNT), strict=True)]  # fmt: skip
        P: Any = sum(x[own.start + k] * term for k, term in enumerate(terms))
        bounds.append(P - LEAST * np.eye(4) >> 0)
    problem = cp.Problem(cp.Minimize(cost), bounds)
    try:
        problem.solve(solver="CLARABEL")
    except cp.error.SolverError as error:
        raise InputError(f"the semidefinite program was not solved ({error}); use consistent='log-cholesky'") from None
    if x.value is None:
        raise InputError(f"the semidefinite program is {problem.status}; use consistent='log-cholesky'")
    return np.asarray(x.value) * target.sizes


def by_factors(target: Target) -> Numbers:
    """Return the consistent parameters of least cost, over the factors of pseudo-inertias: P = U U^T."""
    from scipy.optimize import least_squares

    n, end = target.bodies, COUNT * target.bodies
    units = np.sqrt(_floors(target) / LEAST)
    above = np.triu_indices(4, 1)

    def unpacked(theta: Numbers) -> tuple[Numbers, Numbers]:
        """Return the upper factors [n, 4, 4], and the further parameters."""
        U = np.zeros((n, 4, 4))
        part = theta[:end].reshape(n, COUNT)
        U[:, range(4), range(4)] = np.exp(np.clip(part[:, :4], -FARTHEST, FARTHEST))
        U[:, above[0], above[1]] = part[:, 4:]
        return U, np.where(target.positive[end:], np.exp(np.clip(theta[end:], -FARTHEST, FARTHEST)), theta[end:])

    def parameters(theta: Numbers) -> Numbers:
        U, rest = unpacked(theta)
        P = units[:, :, None] * (U @ np.swapaxes(U, -1, -2) + LEAST * np.eye(4)) * units[:, None, :]
        return np.concatenate([parameters_of(P).ravel(), rest * target.sizes[end:]])

    def slopes(theta: Numbers) -> Numbers:
        U, rest = unpacked(theta)
        out = np.zeros((len(target.prior), len(theta)))
        for k in range(COUNT):
            dU = np.zeros((n, 4, 4))
            if k < 4:
                dU[:, k, k] = U[:, k, k]
            else:
                dU[:, above[0][k - 4], above[1][k - 4]] = 1.0
            change = dU @ np.swapaxes(U, -1, -2)
            change = units[:, :, None] * (change + np.swapaxes(change, -1, -2)) * units[:, None, :]
            for body, column in enumerate(parameters_of(change)):
                out[COUNT * body : COUNT * (body + 1), COUNT * body + k] = column
        at = np.arange(end, len(theta))
        out[at, at] = np.where(target.positive[end:], rest, 1.0) * target.sizes[end:]
        return out

    A, b = _least_squares(target)
    start = _start(target, units, above)
    found = least_squares(
        lambda theta: A @ parameters(theta) - b, start, lambda theta: A @ slopes(theta), max_nfev=STEPS,  # pyright: ignore
        xtol=1e-10, ftol=1e-10, gtol=1e-10, x_scale="jac",
    )  # fmt: skip
    return parameters(found.x)


def _start(target: Target, units: Numbers, above: tuple) -> Numbers:
    """Return the factors of the model's own pseudo-inertias, made possible by the least change of their eigenvalues."""
    n, end = target.bodies, COUNT * target.bodies
    P = pseudo_inertia(target.prior[:end].reshape(n, COUNT)) / (units[:, :, None] * units[:, None, :])
    values, vectors = np.linalg.eigh(P)
    P = (vectors * np.maximum(values, 1e-3)[:, None, :]) @ np.swapaxes(vectors, -1, -2)
    U = np.linalg.cholesky(P[:, ::-1, ::-1])[:, ::-1, ::-1]  # an upper factor, by the lower one of the reverse
    theta = np.concatenate([np.log(U[:, range(4), range(4)]), U[:, above[0], above[1]]], axis=1).ravel()
    rest = target.prior[end:] / target.sizes[end:]
    return np.concatenate([theta, np.where(target.positive[end:], np.log(np.maximum(rest, 0.01)), rest)])


@dataclass(frozen=True)
class PointMasses:
    """Masses [k] at points [k, 3] of a body's frame, to which the body is equimomental."""

    body: str
    masses: Numbers
    points: Numbers


def point_masses(target: Target, names: tuple[str, ...]) -> tuple[tuple[PointMasses, ...], Numbers]:
    """Return masses of least cost at points of lattices about each body, none negative, and the further parameters."""
    from scipy.optimize import lsq_linear

    n, end = target.bodies, COUNT * target.bodies
    lattices = [_lattice(target, k) for k in range(n)]
    count = sum(map(len, lattices))
    rest = len(target.prior) - end
    M = np.zeros((len(target.prior), count + rest))  # pi = M (masses, further parameters)
    at = 0
    for k, points in enumerate(lattices):
        M[COUNT * k : COUNT * (k + 1), at : at + len(points)] = _of_points(points).T
        at += len(points)
    M[end:, count:] = np.diag(target.sizes[end:])
    units = np.concatenate([*(np.full(len(p), target.sizes[COUNT * k]) for k, p in enumerate(lattices)), np.ones(rest)])
    A, b = _least_squares(target)
    corners = np.concatenate(
        [np.append(np.abs(CUBE).all(axis=1), np.zeros(len(p) - len(CUBE), dtype=bool)) for p in lattices]
    )
    least = np.append(np.where(corners, LEAST, 0.0), np.zeros(rest))  # of masses at corners, so that bodies have volume
    lowest = np.where(np.append(np.ones(count, dtype=bool), target.positive[end:]), least, -np.inf)
    found: Any = lsq_linear(A @ M * units, b, (lowest, np.inf), method="bvls", tol=1e-14, max_iter=50 * len(units))
    x = found.x * units
    cuts = np.cumsum([len(p) for p in lattices])[:-1]
    bodies = tuple(
        PointMasses(name, own[own > 0.0], points[own > 0.0])
        for name, own, points in zip(names, np.split(x[:count], cuts), lattices, strict=True)
    )
    return bodies, x[count:] * target.sizes[end:]


def by_points(target: Target) -> Numbers:
    """Return the parameters of masses at points that are not negative, of least cost."""
    bodies, rest = point_masses(target, ("",) * target.bodies)
    own = [_of_points(b.points).T @ b.masses if len(b.masses) else np.zeros(COUNT) for b in bodies]
    return np.concatenate([*own, rest])


def _of_points(points: Numbers) -> Numbers:
    """Return the ten parameters of unit masses at points [k, 3], about the origin [k, 10]."""
    x, y, z = points.T
    return np.stack(
        [np.ones(len(x)), x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y], axis=-1
    )


def _lattice(target: Target, body: int) -> Numbers:
    """Return points about the center of mass of the model's body: lattices of its own size and of the mechanism's."""
    own = slice(COUNT * body, COUNT * (body + 1))
    length = target.sizes[own][1] / target.sizes[own][0]
    P = pseudo_inertia(target.prior[own])
    center, gyration = np.zeros(3), 0.3 * length
    if P[3, 3] > 0.0:
        center = P[:3, 3] / P[3, 3]
        gyration = np.sqrt(max(float(np.trace(P[:3, :3]) / P[3, 3] - center @ center), 0.0))
    sizes = [SCALES[0] * max(gyration, 0.02 * length), SCALES[1] * max(gyration, 0.02 * length), length]
    return np.concatenate([center + sizes[0] * CUBE, *(center + s * CUBE[np.abs(CUBE).any(axis=1)] for s in sizes[1:])])


def _least_squares(target: Target) -> tuple[Numbers, Numbers]:
    """Return A and b of the cost |A pi - b|^2."""
    scale = max(float(np.abs(target.R @ target.K * target.sizes).max()), 1e-300)
    weight = max(PRIOR / scale, FAINTEST)
    A = np.vstack([target.R @ target.K / scale, weight * np.diag(1.0 / target.sizes)])
    return A, np.concatenate([target.R @ target.beta / scale, weight * target.prior / target.sizes])


FITS: dict[str, Callable[[Target], Numbers]] = {
    "sdp": by_semidefinite_program, "log-cholesky": by_factors, "points": by_points,
}  # fmt: skip
"""The consistent fits by name."""
