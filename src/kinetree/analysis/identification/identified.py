"""What identification finds: parameters, intervals, residuals of held-out data, gains, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.lazy_names import picture
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ..loops.actuation import dofs
from .alignment import Gains
from .base_parameters import BaseParameters
from .columns import regressor
from .consistency import PointMasses, margins

if TYPE_CHECKING:
    from ..loops.loads import Flags

CONFIDENCE = 1.959963984540054
"""The half width of the 95 % interval of a normal distribution, in standard deviations."""
POOR_FIT = 0.2
"""The residual of held-out torques, relative to them, above which a model counts as not validated."""


@dataclass(frozen=True)
class Fit:
    """Measured torques of a set of data [n, m] at times t [n], by piece, and those of the identified parameters.

    `use` [n, m] is false where a joint rests, so that friction may be anything up to its bound, or a drive is at its
    limit; there is no residual of the model there.
    """

    name: str
    t: Numbers
    measured: Numbers
    predicted: Numbers
    use: Flags

    @property
    def residual(self) -> Numbers:
        """The difference, measured less predicted [n, m]."""
        return self.measured - self.predicted


@dataclass(frozen=True, repr=False)
class Identification(Displayed):
    """Identified parameters of a mechanism.

    `estimate` [b] are the base parameters of least squares with their standard `deviations` and 95 % `intervals`
    [b, 2]. `parameters` [p] are all parameters, physically consistent if `consistent` is not None, in the order of
    `base.names`. `training` and `validation` have measured and predicted torques of the measured joints by piece;
    predictions are those of `parameters`. `noise` [m] are the deviations of residuals, `delays` [m] those of torques
    behind the motion [s], and `gains` [m] the torques per unit of current, None if torques were given. Where these were
    estimated, `estimated_gains` has their deviations. `findings` are sentences about the data. `system` is the
    mechanism with the identified parameters, and `point_masses` are masses and points that move like its bodies, of
    the fit "points".
    """

    base: BaseParameters
    estimate: Numbers
    deviations: Numbers
    covariance: Numbers
    parameters: Numbers
    system: Any
    joints: tuple[str, ...]
    units: tuple[str, ...]
    training: tuple[Fit, ...]
    validation: tuple[Fit, ...]
    noise: Numbers
    delays: Numbers
    condition: float
    method: str
    consistent: str | None
    cutoffs: tuple[float | None, ...] = ()
    gains: Numbers | None = None
    estimated_gains: Gains | None = None
    findings: tuple[str, ...] = ()
    point_masses: tuple[PointMasses, ...] = ()

    @property
    def intervals(self) -> Numbers:
        """The 95 % confidence intervals of the base parameters [b, 2]."""
        half = CONFIDENCE * self.deviations
        return np.stack([self.estimate - half, self.estimate + half], axis=-1)

    @property
    def margins(self) -> Numbers:
        """The least eigenvalue of each body's pseudo-inertia, relative to its largest: negative if impossible."""
        return margins(self.parameters, len(self.system.bodies))

    @property
    def relative_residuals(self) -> Numbers:
        """The root of the mean square of held-out residuals of each joint, relative to that of its torques [m]."""
        return relative_residuals(self.validation or self.training)

    @property
    def training_residuals(self) -> Numbers:
        """The same of the data from which the parameters were estimated [m]."""
        return relative_residuals(self.training)

    @property
    def gain_deviations(self) -> Numbers | None:
        """The standard deviations of estimated gains [m]."""
        return None if self.estimated_gains is None else self.estimated_gains.deviations

    @property
    def verdict(self) -> str:
        """A sentence on whether the held-out data confirm the model."""
        if not self.validation:
            return "not validated: no data were held out"
        left = self.relative_residuals
        poor = [f"{name} {100.0 * x:.0f} %" for name, x in zip(self.joints, left, strict=True) if x > POOR_FIT]
        if not poor:
            return f"validated: residuals of held-out torques are {100 * left.min():.2g} to {100 * left.max():.2g} %"
        return (
            f"not validated: residuals of held-out torques are {', '.join(poor)}; do not use the model before columns, "
            "units, times, signs and payload of the log are as the findings say, or the noise explains them"
        )

    def predict(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Numbers:
        """Return the torques of the measured joints [..., m] for a motion, friction and offsets included."""
        Y = regressor(self.system, q, qd, qdd, columns=self.base.columns, actuated=self.base.actuated)
        driven = dofs(self.system.mechanism, self.joints)
        return (Y @ self.parameters)[..., driven]

    def noting(self, findings: Iterable[str]) -> Identification:
        """Return the same result with further findings before its own."""
        return replace(self, findings=(*findings, *self.findings))

    def report(self, path: str | Path) -> Any:
        """Write a report as a page of HTML, with charts of torques and residuals of each joint; return the path."""
        return picture("identification_report")(self, path)

    def display(self) -> list[str | Table]:
        """Return what was found in the data, residuals by joint, and the base parameters."""
        fit = "as estimated, not checked" if self.consistent is None else f"consistent ({self.consistent})"
        n = sum(len(f.t) for f in self.training)
        held = sum(len(f.t) for f in self.validation)
        text = (
            f"{self.base.mechanism}: {len(self.base)} base parameters from {n} samples ({self.method}), "
            f"{held} samples held out; condition {self.condition:.3g}; parameters {fit}"
        )
        ratios = None if self.estimated_gains is None else self.estimated_gains.ratios
        heads = (
            "joint",
            "unit",
            "noise",
            "residual",
            "held out",
            "delay",
            *(("gain",) if self.gains is not None else ()),
            *(() if ratios is None else ratios.heads(self.joints)),
        )
        rows = []
        for k, joint in enumerate(self.joints):
            parts = (f"{100 * x[k]:.2f} %" for x in (self.training_residuals, self.relative_residuals))
            more = () if self.gains is None else (float(self.gains[k]),)
            more += () if ratios is None else ratios.cells(k)
            rows.append((joint, self.units[k], float(self.noise[k]), *parts, f"{1e3 * self.delays[k]:.2f} ms", *more))
        deviation = [
            (text, float(x), float(1.96 * d), self.base.units[k])
            for text, x, d, k in zip(self.base.groupings, self.estimate, self.deviations, self.base.kept, strict=True)
        ]
        return [
            text, self.verdict, *self.findings, Table(heads, tuple(rows)),
            Table(("base parameter", "value", "+/- (95 %)", "unit"), tuple(deviation)),
        ]  # fmt: skip


def relative_residuals(fits: Sequence[Fit]) -> Numbers:
    """Return root mean squares of residuals by joint, relative to those of the torques [m]."""
    use = np.concatenate([f.use for f in fits])
    measured = np.concatenate([f.measured for f in fits]) * use
    residual = np.concatenate([f.residual for f in fits]) * use
    size = np.linalg.norm(measured, axis=0)
    return np.linalg.norm(residual, axis=0) / np.where(size > 0, size, 1.0)
