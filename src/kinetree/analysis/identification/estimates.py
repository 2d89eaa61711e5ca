"""Least squares for base parameters: ordinary, weighted by joint, and reweighted so that outliers count less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...algebra.scalars import Numbers
from ...errors import InputError, unknown_name

Indices = NDArray[np.integer]

METHODS = ("ols", "wls", "irls")
"""Ordinary least squares; weights by the noise of each joint; these, and less weight for outliers."""
HUBER = 1.345
"""The residual, in deviations, above which its weight falls: without outliers, deviations grow by 2.5 %."""
HOLDING = 1e-4
"""The weight of the model's parameters where the motion does not determine them, relative to the size of columns."""
ROUNDS = 50
SETTLED = 1e-6
"""The change of weights, relative to them, at which reweighting ends."""
UNKNOWN = 1e-7
"""The least singular value of scaled columns, relative to the largest, of parameters that data determine."""
NOISELESS = 1e-11
"""Residuals below this part of the torques are rounding errors, which have no weights of their own."""


@dataclass(frozen=True)
class Estimate:
    """Base parameters [b] with their covariance [b, b], the deviation of the noise of each joint [m], and weights.

    `condition` is that of the weighted columns scaled to unit length. `weights` [rows] are relative to 1 / deviation^2.
    """

    values: Numbers
    covariance: Numbers
    noise: Numbers
    condition: float
    weights: Numbers

    @property
    def deviations(self) -> Numbers:
        """The standard deviations of the parameters [b]."""
        return np.sqrt(np.diagonal(self.covariance))


def estimate(W: Numbers, tau: Numbers, joint: Indices, method: str, names: tuple[str, ...]) -> Estimate:
    """Return the base parameters of W beta = tau; `joint` has the number of the joint of each row."""
    if method not in METHODS:
        raise unknown_name("method", str(method), METHODS)
    count = int(joint.max()) + 1
    members = [joint == k for k in range(count)]
    if len(tau) <= W.shape[1]:
        raise InputError(
            f"{len(tau)} equations for {W.shape[1]} parameters; record more of the motion, or raise the cutoff"
        )
    require_excitation(W, names)
    size = np.array([np.sqrt(np.mean(tau[rows] ** 2)) for rows in members])
    least = NOISELESS * max(float(size.max()), 1e-300)
    noise, robust = np.ones(count), np.ones(len(tau))
    found = None
    for _ in range(1 if method == "ols" else ROUNDS):
        before = noise, robust
        scale = np.sqrt(robust) / noise[joint]
        found = _solved(W * scale[:, None], tau * scale)
        residual = tau - W @ found[0]
        spread = _median_deviation if method == "irls" else _root_mean_square
        noise = np.array([max(spread(residual[rows]), least) for rows in members])
        if method == "irls":
            robust = np.minimum(1.0, HUBER / np.maximum(np.abs(residual) / noise[joint], 1e-300))
        if (noise == least).all() or _settled(before, (noise, robust)):
            break
    assert found is not None
    values, _, condition = found
    residual = tau - W @ values
    freedom = len(tau) / (len(tau) - W.shape[1])
    if method == "ols":  # equal weights, and residuals whose deviations differ by joint
        part = found[1] @ W.T
        covariance = (part * noise[joint] ** 2) @ part.T * freedom
    else:
        covariance = _solved(W / noise[joint][:, None], tau)[1] * freedom
        if method == "irls":  # Huber's covariance of estimates with less weight for outliers
            u = residual / noise[joint]
            covariance = covariance * np.mean((robust * u) ** 2) / np.mean(np.abs(u) <= HUBER) ** 2
    return Estimate(values, covariance, noise * np.sqrt(freedom), condition, robust)


def undetermined(W: Numbers, names: tuple[str, ...]) -> list[str]:
    """Return parameters which the rows do not determine, the worst first."""
    sizes = np.linalg.norm(W, axis=0)
    scaled = W / np.where(sizes > 0, sizes, 1.0)
    _, values, directions = np.linalg.svd(np.linalg.qr(scaled, mode="r"))
    if values[-1] > UNKNOWN * values[0]:
        return []
    weak = np.abs(directions[values <= UNKNOWN * values[0]]).max(axis=0)
    return [names[k] for k in np.argsort(-weak) if weak[k] > 0.1]


def require_excitation(W: Numbers, names: tuple[str, ...]) -> None:
    """Raise an InputError that names parameters which the rows do not determine."""
    listed = undetermined(W, names)
    if not listed:
        return
    more = f" and {len(listed) - 6} more" if len(listed) > 6 else ""
    raise InputError(
        f"the motion does not determine {', '.join(listed[:6])}{more}: too little excitation; move all joints, in "
        "several poses and at different accelerations, such as along kt.excitation(arm)"
    )


def held(W: Numbers, tau: Numbers, joint: Indices, model: Numbers) -> tuple[Numbers, Numbers, Indices]:
    """Return the equations with a light one for each parameter: that it is the model's, where the others do not say."""
    size = np.linalg.norm(W, axis=0)
    weight = HOLDING * np.maximum(size, np.median(size[size > 0.0]) if size.any() else 1.0)
    count = int(joint.max()) + 1
    return (
        np.vstack([W, np.diag(weight)]),
        np.append(tau, weight * model),
        np.append(joint, np.arange(len(model)) % count),
    )


def _solved(W: Numbers, b: Numbers) -> tuple[Numbers, Numbers, float]:
    """Return x of W x = b, (W^T W)^-1, and the condition of the scaled columns."""
    sizes = np.linalg.norm(W, axis=0)
    Q, R = np.linalg.qr(W / sizes)
    U, s, Vt = np.linalg.svd(R)
    back = Vt.T / s
    inverse = (back @ back.T) / np.outer(sizes, sizes)
    return back @ (U.T @ (Q.T @ b)) / sizes, inverse, float(s[0] / s[-1])


def _root_mean_square(residual: Numbers) -> float:
    return float(np.sqrt(np.mean(residual**2)))


def _median_deviation(residual: Numbers) -> float:
    """Return the deviation of residuals, on which outliers have no influence."""
    return float(1.4826 * np.median(np.abs(residual)))


def _settled(before: tuple[Numbers, ...], after: tuple[Numbers, ...]) -> bool:
    return all(np.abs(a - b).max() <= SETTLED * np.abs(b).max() for a, b in zip(after, before, strict=True))
